//! `[tools] defer_above` and `[tools.search]`: deferral of tools, and the embeddings that rank them.

use crate::config::{
    Config,
    layers::{ResolvedSettings, environment::EnvironmentVariables},
    sections::{models::parse_base_url, plaintext_url::is_plaintext},
    tree::{expansion::expand, problem::Problem, value::ValidatedConfigValue},
};
use std::path::PathBuf;
use toolstead_application::ToolDeferral;
use toolstead_domain::Secret;
use toolstead_infrastructure::models::{EmbeddingsSettings, KeySource};
use url::Url;

/// Built-in tools that agents use in almost every task. Lists of tools contain them even if other tools are deferred.
const LOADED_TOOLS: [&str; 5] = ["read_file", "edit_file", "glob", "grep", "bash"];

/// Path in the configuration of the section that describes the embeddings for tool search.
const EMBEDDINGS: &str = "tools.search.embeddings";

impl Config {
    /// Returns the numbers of tools and tokens above which lists defer tools, and the servers and tools that every list
    /// contains.
    pub fn tool_deferral(&self) -> ToolDeferral {
        let limit = |path: &str| match self.resolved.value(path) {
            Some(ValidatedConfigValue::Integer(limit)) if limit > 0 => {
                Some(usize::try_from(limit).unwrap_or(usize::MAX))
            }
            _ => None,
        };
        let loaded_servers = self.mcp_servers.iter().filter(|server| server.always_load);
        ToolDeferral {
            above_tools: limit("tools.defer_above"),
            above_tokens: limit("tools.defer_above_tokens"),
            loaded_servers: loaded_servers.map(|server| server.name.clone()).collect(),
            loaded_tools: LOADED_TOOLS.map(str::to_owned).into(),
        }
    }
}

/// Returns the embeddings that rank tools; `None` if no `base_url` is configured, or if they cannot be used, which a
/// note reports. A key that is configured twice is added to `problems`.
pub(in crate::config) fn embeddings(
    resolved: &ResolvedSettings,
    environment: &EnvironmentVariables,
    problems: &mut Vec<Problem>,
    notes: &mut Vec<Problem>,
) -> Option<EmbeddingsSettings> {
    let text = |key: &str| Some(resolved.value(&format!("{EMBEDDINGS}.{key}"))?.as_text()?.to_owned());
    let origin = |key: &str| resolved.origin(&format!("{EMBEDDINGS}.{key}"));
    let base_url = text("base_url")?;
    let base_url =
        expand(&base_url, |name| environment.get(name).map(str::to_owned)).and_then(|url| parse_base_url(&url));
    let unusable =
        |reason: String| Problem::new(origin("base_url"), format!("`{EMBEDDINGS}` cannot be used: {reason}"));
    let base_url = match (base_url, text("model")) {
        (Ok(base_url), Some(_)) => base_url,
        (Err(reason), _) => {
            notes.push(unusable(reason));
            return None;
        }
        (_, None) => {
            notes.push(unusable("it has no `model`: set it in the file that sets `base_url`".into()));
            return None;
        }
    };
    let (variable, file) = (text("api_key_env"), text("api_key_file"));
    if variable.is_some() && file.is_some() {
        let message = format!("`{EMBEDDINGS}` names its key in `api_key_env` and `api_key_file`: keep one");
        problems.push(Problem::new(origin("api_key_file"), message));
    }
    let key = match (variable, file) {
        (Some(name), _) => match environment.get(&name).map(str::trim).filter(|key| !key.is_empty()) {
            Some(key) => KeySource::Known(Secret::new(key)),
            None => KeySource::Missing(format!("the environment variable `{name}` holds no key: set it")),
        },
        (None, Some(path)) => KeySource::File(PathBuf::from(path)),
        (None, None) => KeySource::None,
    };
    if Url::parse(&base_url).is_ok_and(|url| is_plaintext(&url)) && key != KeySource::None {
        let message = format!("the key of `{EMBEDDINGS}` goes to its `base_url` without encryption");
        notes.push(Problem::new(origin("base_url"), message));
    }
    Some(EmbeddingsSettings { base_url, model: text("model").unwrap_or_default(), key })
}

/// Returns the configured path of the file with the key of the embeddings. No tool may access this file.
pub(in crate::config) fn key_file(resolved: &ResolvedSettings) -> Option<PathBuf> {
    resolved.value(&format!("{EMBEDDINGS}.api_key_file"))?.as_text().map(PathBuf::from)
}
