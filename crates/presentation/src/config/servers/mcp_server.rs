//! `[mcp_servers.NAME]`: the upstream MCP servers.

mod look_alikes;

use crate::config::{
    layers::{EffectiveSetting, LayerKind, ResolvedSettings, environment::EnvironmentVariables},
    servers::{server_auth, server_programs::WritableServerPrograms},
    tree::{
        expansion::expand,
        origin::Origin,
        problem::Problem,
        schema::REACHED_BY,
        source_file::{project_of, read_bounded},
        value::ValidatedConfigValue,
    },
};
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};
use toolstead_domain::{ChangePolicy, Effect, PatternContext, PermissionRule, ProtocolVersion, ServerName, ToolName};
use toolstead_infrastructure::{
    mcp::client::{
        config::{
            HttpUpstream, McpTransport, OutputSizePolicy, ServerSandboxProfile, StdioUpstream, ToolAllowlist,
            ToolNaming,
        },
        connection::question_kind::QuestionKind,
    },
    upstream_auth::settings::UpstreamAuth,
};
use url::Url;

/// Default idle time in seconds after which a stateless server is stopped.
const IDLE_SECONDS: u64 = 900;

/// A server as configured.
#[derive(Debug, Clone)]
pub struct ConfiguredServer {
    /// Name of the server.
    pub name: ServerName,
    /// Origin of the key that defines the transport.
    pub origin: Origin,
    /// Transport with all variables expanded, or the reason why it is invalid, for display. An invalid server does not
    /// affect the others.
    pub transport: Result<McpTransport, String>,
    /// Credentials for a server over HTTP, if the configuration names any.
    pub auth: Option<UpstreamAuth>,
    /// Path of the `env_file`, whose values are included in the transport.
    pub env_file: Option<PathBuf>,
    /// Filter for the tools that are listed.
    pub only_tools: ToolAllowlist,
    /// Form of the names under which its tools are offered.
    pub names: ToolNaming,
    /// Kinds of questions that it may ask its callers.
    pub may_ask: Vec<QuestionKind>,
    /// Limit on the size of its results.
    pub output: OutputSizePolicy,
    /// Fixed protocol version; `None`: negotiated.
    pub protocol: Option<ProtocolVersion>,
    /// Maximum time to start and to list its tools.
    pub connect_timeout: Duration,
    /// Timeout of calls that request none; `None`: the general default.
    pub timeout: Option<Duration>,
    /// Maximum number of tools that are listed.
    pub max_tools: usize,
    /// `true` if Toolstead must not start without this server.
    pub required: bool,
    /// Idle time after which its connections are closed; `None`: never.
    pub ends_unused_after: Option<Duration>,
    /// `true` if each principal gets its own connection.
    pub stateful: bool,
    /// Confinement of a stdio server.
    pub profile: ServerSandboxProfile,
    /// Files and folders that it may read and write, in addition to those of its profile.
    pub roots: Vec<PathBuf>,
    /// `true` if its tools are in every list, even if others are deferred.
    pub always_load: bool,
    /// `true` if the server is not started.
    pub disabled: bool,
    /// Layer that defines its transport.
    pub(in crate::config) launched_by: LayerKind,
    /// Treatment of its tools whose definitions change.
    pub on_change: ChangePolicy,
    /// Programs that it runs from locations that tools can write to.
    pub programs: WritableServerPrograms,
}

/// Table `[mcp_servers.NAME]` as written, with defaults.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerTable {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    env_file: Option<PathBuf>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    #[serde(rename = "type")]
    kind: Option<TransportKind>,
    headers: BTreeMap<String, String>,
    #[serde(rename = "allow_tools")]
    _allow_tools: Vec<String>,
    #[serde(rename = "deny_tools")]
    _deny_tools: Vec<String>,
    only_tools: Option<Vec<String>>,
    names: ToolNaming,
    may_ask: Vec<QuestionKind>,
    output: OutputSizePolicy,
    protocol: Option<String>,
    connect_timeout_seconds: u64,
    timeout_seconds: Option<u64>,
    max_tools: usize,
    required: bool,
    idle_seconds: Option<u64>,
    stateful: bool,
    profile: ServerSandboxProfile,
    roots: Vec<PathBuf>,
    always_load: bool,
    disabled: bool,
    on_change: ChangePolicy,
}

/// Value of the key `type` of a server: its transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TransportKind {
    Stdio,
    Http,
    Sse,
}

/// Returns the configured servers, sorted by name. Adds a note for each table without `command` and `url`. Omits
/// invalid tables and rejected names, which are problems or notes.
pub(in crate::config) fn servers(
    resolved: &ResolvedSettings,
    environment: &EnvironmentVariables,
    folder: &Path,
    problems: &mut Vec<Problem>,
    notes: &mut Vec<Problem>,
) -> Vec<ConfiguredServer> {
    let mut servers = Vec::new();
    for (name, keys) in resolved.named("mcp_servers") {
        let (launched_by, origin) = place(&keys);
        let project = match &origin {
            Origin::File(path, _) if launched_by.is_of_project() => Some(project_of(path)),
            _ => None,
        };
        let mut wrong = |message: String| problems.push(Problem::new(origin.clone(), message));
        let Ok(name) = ServerName::parse(&name) else { continue };
        let written: ServerTable = match serde_json::from_value(resolved.named_section("mcp_servers", name.as_str())) {
            Ok(written) => written,
            Err(error) => {
                wrong(format!("`mcp_servers.{name}` cannot be read: {error}"));
                continue;
            }
        };
        let described = match (&written.command, &written.url) {
            (Some(_), Some(_)) => Err(format!("`mcp_servers.{name}` has both `command` and `url`: keep one")),
            (None, Some(_)) if !written.args.is_empty() || !written.env.is_empty() || written.cwd.is_some() => {
                Err(format!("`mcp_servers.{name}` has a `url`; `args`, `env` and `cwd` are for servers with `command`"))
            }
            (Some(_), None) if !written.headers.is_empty() => {
                Err(format!("`mcp_servers.{name}` has a `command`; `headers` is for servers with `url`"))
            }
            (Some(_), None) if matches!(written.kind, Some(TransportKind::Http | TransportKind::Sse)) => Err(format!(
                "`mcp_servers.{name}` has a `command`; the types `http` and `sse` are for servers with `url`"
            )),
            (None, Some(_)) if written.kind == Some(TransportKind::Stdio) => {
                Err(format!("`mcp_servers.{name}` has a `url`; the type `stdio` is for servers with `command`"))
            }
            (None, None) => {
                let waits = REACHED_BY.iter().any(|key| keys.get(key).is_some_and(|one| !one.waiting.is_empty()));
                if !waits {
                    let message =
                        format!("`mcp_servers.{name}` has neither `command` nor `url`, so the server is ignored");
                    notes.push(Problem::new(origin.clone(), message));
                }
                continue;
            }
            _ => Ok(()),
        };
        if let Err(message) = described {
            wrong(message);
            continue;
        }
        let expand = |text: &str| expand_for_server(text, environment, project, folder);
        let auth = server_auth::auth(resolved, name.as_str(), expand).and_then(|auth| match &auth {
            Some(_) if written.url.is_none() => Err("its `auth` table is for servers with `url`".into()),
            Some(_) if written.headers.keys().any(|header| header.eq_ignore_ascii_case("authorization")) => {
                Err("it has both an `auth` table and the header `Authorization`: keep one".into())
            }
            Some(_) | None => Ok(auth),
        });
        let (transport, auth) = match (transport(&written, environment, project, folder), auth) {
            (Err(reason), _) | (_, Err(reason)) => (Err(reason), None),
            (Ok(transport), Ok(auth)) => (Ok(transport), auth),
        };
        if let (Err(reason), true, false) = (&transport, written.required, written.disabled) {
            wrong(format!("`mcp_servers.{name}` is required and cannot be started: {reason}"));
        }
        servers.push(ConfiguredServer {
            name,
            transport,
            auth,
            env_file: written.env_file,
            only_tools: written.only_tools.map(ToolAllowlist::of).unwrap_or_default(),
            names: written.names,
            may_ask: written.may_ask,
            output: written.output,
            protocol: written.protocol.as_deref().and_then(ProtocolVersion::parse),
            connect_timeout: Duration::from_secs(written.connect_timeout_seconds),
            timeout: written.timeout_seconds.map(Duration::from_secs),
            max_tools: written.max_tools,
            required: written.required,
            ends_unused_after: ends_unused_after(written.idle_seconds, written.stateful),
            stateful: written.stateful,
            profile: written.profile,
            roots: written.roots,
            always_load: written.always_load,
            disabled: written.disabled,
            launched_by,
            on_change: written.on_change,
            programs: WritableServerPrograms::default(),
            origin,
        });
    }
    look_alikes::reject(servers, problems, notes)
}

/// Returns the idle time after which a server is stopped; `None` if it never is, which an idle time of 0 means. A
/// stateful server is stopped only if an idle time is configured.
fn ends_unused_after(idle_seconds: Option<u64>, stateful: bool) -> Option<Duration> {
    let seconds = idle_seconds.unwrap_or(if stateful { 0 } else { IDLE_SECONDS });
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// Returns the layer and the origin of the key that defines the transport, or of the first key of the table if there is
/// none.
fn place(keys: &BTreeMap<&str, &EffectiveSetting>) -> (LayerKind, Origin) {
    let decisive = REACHED_BY.iter().find_map(|key| keys.get(key)).or_else(|| keys.values().next());
    let contributions = decisive.map(|setting| setting.contributions.as_slice()).unwrap_or_default();
    let contribution = contributions.iter().find(|one| one.trusted).or(contributions.first());
    contribution.map_or((LayerKind::Chosen, Origin::Default), |one| (one.kind, one.origin.clone()))
}

/// Replaces the variables in a text of a server. `${workspaceFolder}` is `project`, the folder of the project whose
/// file defines the server, or else `folder`.
fn expand_for_server(
    text: &str,
    environment: &EnvironmentVariables,
    project: Option<&Path>,
    folder: &Path,
) -> Result<String, String> {
    expand(text, |name| match name {
        // Variables of other clients.
        "workspaceFolder" => project.unwrap_or(folder).to_str().map(str::to_owned),
        "workspaceFolderBasename" => project.unwrap_or(folder).file_name()?.to_str().map(str::to_owned),
        "userHome" => environment.home()?.to_str().map(str::to_owned),
        "pathSeparator" | "/" => Some("/".to_owned()),
        _ => environment.get(name.strip_prefix("env:").unwrap_or(name)).map(str::to_owned),
    })
}

/// Parses the transport. `project` is the folder of the project whose file defines the server, and `folder` is the
/// project around the start folder.
fn transport(
    written: &ServerTable,
    environment: &EnvironmentVariables,
    project: Option<&Path>,
    folder: &Path,
) -> Result<McpTransport, String> {
    let expand = |text: &str| expand_for_server(text, environment, project, folder);
    if let Some(url) = &written.url {
        let url = Url::parse(&expand(url)?).map_err(|error| format!("its URL cannot be used: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("its URL begins with `{}:`, not with `http://` or `https://`", url.scheme()));
        }
        let headers = written.headers.iter().map(|(name, value)| {
            let parsed = HeaderName::from_str(name).map_err(|_| format!("`{name}` is not a valid header name"))?;
            let value = expand(value)?;
            HeaderValue::from_str(&value)
                .map_err(|_| format!("the header `{name}` has a value that cannot be sent"))?;
            Ok((parsed.as_str().to_owned(), value))
        });
        let server = HttpUpstream { url, headers: headers.collect::<Result<_, String>>()? };
        return Ok(match written.kind {
            Some(TransportKind::Sse) => McpTransport::Sse(server),
            Some(_) => McpTransport::StreamableHttp(server),
            None => McpTransport::Http(server),
        });
    }
    let mut env = BTreeMap::new();
    if let Some(path) = &written.env_file {
        let read = read_bounded(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        let text = String::from_utf8(read).map_err(|_| format!("{} is not UTF-8", path.display()))?;
        for (name, value) in env_file(&text).map_err(|line| format!("{}:{line}: no `NAME=value`", path.display()))? {
            env.insert(name, value);
        }
    }
    for (name, value) in &written.env {
        env.insert(name.clone(), expand(value)?);
    }
    let args = written.args.iter().map(|text| expand(text)).collect::<Result<_, _>>()?;
    let command = expand(written.command.as_deref().unwrap_or_default())?;
    let working_dir = written.cwd.clone().or_else(|| project.map(Path::to_path_buf));
    Ok(McpTransport::Stdio(StdioUpstream { command, args, env, working_dir }))
}

/// Parses the lines `NAME=value` of a file. Comments, `export` and quotes are supported. The error is the number of the
/// invalid line.
fn env_file(text: &str) -> Result<Vec<(String, String)>, usize> {
    let mut variables = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let line = line.strip_prefix("export ").map_or(line, str::trim_start);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or(at + 1)?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || name.contains(char::is_whitespace) || value.contains('\0') {
            return Err(at + 1);
        }
        let quoted = ['"', '\''].iter().find_map(|quote| {
            let rest = value.strip_prefix(*quote)?;
            rest.find(*quote).map(|end| &rest[..end])
        });
        let value = quoted.unwrap_or_else(|| value.split_once(" #").map_or(value, |(value, _)| value.trim_end()));
        variables.push((name.to_owned(), value.to_owned()));
    }
    Ok(variables)
}

/// Returns the rules of `allow_tools` and `deny_tools`.
pub(in crate::config) fn rules(resolved: &ResolvedSettings, problems: &mut Vec<Problem>) -> Vec<Arc<PermissionRule>> {
    let mut rules = Vec::new();
    for (server, keys) in resolved.named("mcp_servers") {
        let Ok(server) = ServerName::parse(&server) else { continue };
        for (key, effect) in [("allow_tools", Effect::Allow), ("deny_tools", Effect::Deny)] {
            let Some(ValidatedConfigValue::List(items)) = keys.get(key).and_then(|setting| setting.value.as_ref())
            else {
                continue;
            };
            for item in items {
                let text = match item.text.contains('*') {
                    true => format!("mcp__{server}__{}", item.text),
                    // Rules refer to the offered name, which differs if the original name does not fit.
                    false => ToolName::for_upstream(&server, &item.text).to_string(),
                };
                match PermissionRule::parse(effect, &text, item.origin.to_rule_origin(), &PatternContext::default()) {
                    Ok(rule) if effect == Effect::Deny => {
                        let entry = format!("`{}` of `mcp_servers.{server}.{key}`", item.text);
                        rules.push(Arc::new(rule.derived_from(entry)));
                    }
                    // An allow rule never appears in a refusal, and its text is recorded with every call, so no entry
                    // is added.
                    Ok(rule) => rules.push(Arc::new(rule)),
                    Err(error) => {
                        let message = format!("`mcp_servers.{server}.{key}`: {:?}: {}", item.text, error.reason);
                        problems.push(Problem::new(item.origin.clone(), message));
                    }
                }
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stateful_server_is_not_stopped_when_idle_unless_a_time_is_configured() {
        let seconds = |said, stateful| ends_unused_after(said, stateful).map(|time| time.as_secs());
        assert_eq!((seconds(None, false), seconds(None, true)), (Some(900), None));
        assert_eq!((seconds(Some(0), false), seconds(Some(60), true)), (None, Some(60)));
    }

    #[test]
    fn an_env_file_is_parsed_in_shell_notation() {
        let text = "# comment\n\nA=1\nexport B = two words # note\nC=\"# kept\"\nD='x' y\nE=\n";
        let expected = [("A", "1"), ("B", "two words"), ("C", "# kept"), ("D", "x"), ("E", "")];
        let expected: Vec<_> = expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(env_file(text), Ok(expected));
        assert_eq!(env_file("A=1\nnonsense\n"), Err(2));
        assert_eq!(env_file("A B=1"), Err(1));
    }
}
