//! `[profiles.NAME]`: a model, tools and a prompt under one name.
//!
//! A profile is a restricted view of the tools that the rules allow or ask for. It can remove tools and never adds any.

use crate::config::{
    layers::{Contribution, EffectiveSetting, ResolvedSettings},
    sections::models::ConfiguredModels,
    tree::{
        origin::Origin,
        problem::Problem,
        value::{TextItem, ValidatedConfigValue},
    },
};
use std::collections::BTreeMap;
use toolstead_domain::{SelectionFormConflict, ServerName, ToolSelection, tool_input_schema::nearest_name};

/// A profile `[profiles.NAME]` for agents: a model, tools and a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentProfile {
    /// Name of the profile.
    pub name: String,
    /// Configured name of the model; `None`: the default model.
    pub model: Option<String>,
    /// Selection of tools; `None`: not set.
    pub tools: Option<ToolSelection>,
    /// `false` if the profile offers no tools at all; `tools` then selects none.
    pub use_tools: bool,
    /// System prompt; empty: the one of `[agent]`.
    pub prompt: String,
    /// Names of the servers whose tools are offered; `None`: all. `tools` already excludes the others.
    pub mcp_servers: Option<Vec<String>>,
    /// Name of the view whose tools are offered; `None`: no view.
    pub view: Option<String>,
    /// Origin of the prompt, or else of the tools, the model or the view.
    pub origin: Origin,
}

/// Error: no profile has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no profile is called `{name}`; {advice}")]
pub struct NoSuchProfile {
    name: String,
    advice: String,
}

/// Returns the profiles, sorted by name, and every tool name that they contain.
pub(in crate::config) fn profiles(
    resolved: &mut ResolvedSettings,
    models: &ConfiguredModels,
    servers: &[&ServerName],
    problems: &mut Vec<Problem>,
    notes: &mut Vec<Problem>,
) -> (Vec<AgentProfile>, Vec<TextItem>) {
    let mut profiles = Vec::new();
    let mut chosen = Vec::new();
    // Computed values, for displaying the configuration.
    let mut shown = Vec::new();
    for (name, keys) in resolved.named("profiles") {
        // A profile of an untrusted file does not exist yet.
        if !keys.values().any(|setting| setting.contributions.iter().any(|one| one.trusted)) {
            notes.extend(waiting(&name, &keys));
            continue;
        }
        let text = |key: &str| keys.get(key).and_then(|setting| setting.value.as_ref()?.as_text());
        let place = |key: &str| keys.get(key).and_then(|setting| setting.origins.first().cloned());
        let model = text("model").map(str::to_owned);
        if let Some(reason) = model.as_deref().and_then(|model| models.check_name(model).err()) {
            let origin = place("model").unwrap_or(Origin::Default);
            problems.push(Problem::new(origin, format!("`profiles.{name}.model`: {reason}")));
        }
        let tools = keys.get("tools").and_then(|setting| {
            let before = chosen.len();
            let tools = tools(&name, setting, &mut chosen, notes);
            shown.push(worked_out(setting, chosen[before..].to_vec()));
            tools
        });
        let of = |item: &TextItem| {
            let Some(known) = servers.iter().find(|server| server.as_str() == item.text) else {
                let near = nearest_name(&item.text, servers.iter().map(|server| server.as_str()));
                let advice = near.map_or("it is not configured".into(), |near| format!("did you mean `{near}`?"));
                let message = format!("`profiles.{name}.mcp_servers` names the server `{}`: {advice}", item.text);
                notes.push(Problem::new(item.origin.clone(), message));
                return None;
            };
            Some(known.to_string())
        };
        let offered = keys.get("mcp_servers").and_then(|setting| {
            let offered = offered_servers(setting)?;
            shown.push(worked_out(setting, offered.clone()));
            Some(offered)
        });
        let mcp_servers: Option<Vec<String>> = offered.map(|items| items.iter().filter_map(of).collect());
        let use_tools = keys.get("use_tools").and_then(|setting| setting.value.as_ref())
            != Some(&ValidatedConfigValue::Boolean(false));
        let tools = match (use_tools, &mcp_servers) {
            (false, _) => Some(ToolSelection::only([""; 0])),
            (true, None) => tools,
            (true, Some(offered)) => Some(without_others(tools.unwrap_or_default(), servers, offered)),
        };
        profiles.push(AgentProfile {
            model,
            tools,
            use_tools,
            prompt: text("prompt").unwrap_or_default().to_owned(),
            mcp_servers,
            view: text("view").map(str::to_owned),
            origin: place("prompt").or(place("tools")).or(place("model")).or(place("view")).unwrap_or(Origin::Default),
            name,
        });
    }
    shown.into_iter().for_each(|setting| resolved.put(setting));
    for word in &mut chosen {
        word.text = word.text.trim_start_matches(['+', '-']).trim().to_owned();
    }
    (profiles, chosen)
}

/// Returns the setting with the value computed from its layers.
fn worked_out(setting: &EffectiveSetting, items: Vec<TextItem>) -> EffectiveSetting {
    let trusted = setting.contributions.iter().filter(|one| one.trusted);
    let origins = trusted.map(|one| one.origin.clone()).collect();
    EffectiveSetting { value: Some(ValidatedConfigValue::List(items)), origins, ..setting.clone() }
}

/// Returns the selection after applying each trusted layer, from the lowest precedence up; `None` if none sets it. If
/// another layer also defines the profile, a project file can only remove tools. Adds the applied entries to `chosen`.
fn tools(
    profile: &str,
    setting: &EffectiveSetting,
    chosen: &mut Vec<TextItem>,
    notes: &mut Vec<Problem>,
) -> Option<ToolSelection> {
    let mut selection: Option<ToolSelection> = None;
    let trusted: Vec<&Contribution> = setting.contributions.iter().rev().filter(|one| one.trusted).collect();
    for one in trusted {
        let Some(text) = one.value.as_text() else { continue };
        if selection.is_some() && one.kind.is_of_project() && !only_removes(text) {
            let message = format!(
                "`profiles.{profile}.tools` does not count: a profile of another file loses tools here and gets none, \
                 as in `\"-bash\"`"
            );
            notes.push(Problem::new(one.origin.clone(), message));
            continue;
        }
        // The text was validated when its layer was checked.
        selection = selection.clone().unwrap_or_default().adjusted(text).ok().or(selection);
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        chosen.extend(words.map(|word| TextItem::new(word, one.origin.clone())));
    }
    selection
}

/// Returns the servers named by the highest trusted layer; `None` if none names any. A project file can only reduce the
/// servers named by lower layers.
fn offered_servers(setting: &EffectiveSetting) -> Option<Vec<TextItem>> {
    let mut offered: Option<Vec<TextItem>> = None;
    for one in setting.contributions.iter().rev().filter(|one| one.trusted) {
        let named = one.value.items().to_vec();
        offered = Some(match offered {
            Some(below) if one.kind.is_of_project() => {
                below.into_iter().filter(|item| named.iter().any(|other| other.text == item.text)).collect()
            }
            _ => named,
        });
    }
    offered
}

fn only_removes(text: &str) -> bool {
    let mut words = text.split(',').map(str::trim).filter(|word| !word.is_empty()).peekable();
    words.peek().is_some() && words.all(|word| word.starts_with('-'))
}

/// Returns the selection without the tools of servers that are not in `offered`.
fn without_others(tools: ToolSelection, servers: &[&ServerName], offered: &[String]) -> ToolSelection {
    let others = servers.iter().filter(|server| !offered.iter().any(|name| name == server.as_str()));
    let removed: Vec<String> = others.map(|server| format!("-mcp__{server}__*")).collect();
    match removed.is_empty() {
        true => tools,
        false => tools.clone().adjusted(&removed.join(",")).unwrap_or(tools),
    }
}

fn waiting(name: &str, keys: &BTreeMap<&str, &EffectiveSetting>) -> Option<Problem> {
    let waiting = keys.values().flat_map(|setting| &setting.waiting).next()?;
    let Origin::File(path, _) = &waiting.origin else { return None };
    let message = format!("the profile `{name}` waits for `toolstead config trust {}`", path.display());
    Some(Problem::new(waiting.origin.clone(), message))
}

impl AgentProfile {
    /// Returns the selection after applying `--tools`: `a,b` replaces it, `+a,-b` adjusts it, and an empty text selects
    /// no tool. Returns `None` if neither sets it.
    ///
    /// # Errors
    /// [`SelectionFormConflict`] if both forms are mixed.
    pub fn tools_with(&self, typed: Option<&str>) -> Result<Option<ToolSelection>, SelectionFormConflict> {
        match typed {
            None => Ok(self.tools.clone()),
            Some(typed) => self.tools.clone().unwrap_or_default().adjusted(typed).map(Some),
        }
    }
}

/// Returns the profile with this name.
pub(in crate::config) fn named<'p>(
    profiles: &'p [AgentProfile],
    name: &str,
) -> Result<&'p AgentProfile, NoSuchProfile> {
    profiles.iter().find(|profile| profile.name == name).ok_or_else(|| {
        let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        let advice = match nearest_name(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => {
                "there is none at all: write `[profiles.NAME]` into a configuration file".into()
            }
            None => format!("there are {}", names.join(", ")),
        };
        NoSuchProfile { name: name.to_owned(), advice }
    })
}
