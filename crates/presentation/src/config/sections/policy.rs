//! Converts the configuration to permission rules, and checks that the names in rules are names of tools.

use crate::config::{
    Config,
    layers::{ResolvedSettings, UntrustedValue, folders::StandardFolders},
    sections::{read_only_commands, tool_block},
    servers::mcp_server::{self, ConfiguredServer},
    tree::{
        check::PathBase,
        examples,
        origin::Origin,
        problem::{ConfigError, Problem},
    },
};
use std::{collections::BTreeSet, path::Path, sync::Arc};
use toolstead_application::orchestration;
use toolstead_domain::{
    AccessKind, Effect, InvalidRule, PermissionRule, Tool, WorkspaceRoots, context, permission::rule::RuleOrigin,
    tool::BUILT_IN, tool_input_schema::nearest_name, tool_selection::wildcard_match,
};
use toolstead_infrastructure::{
    builtin::{aliases_of, command_tools, names_and_aliases, names_by_tool},
    mcp::client::config::ToolNaming,
};

/// Returns every rule: those of `[permissions]` by effect (deny, ask, allow), then those of servers, tools and
/// read-only commands.
pub(in crate::config) fn rules(
    folders: &StandardFolders,
    resolved: &ResolvedSettings,
    roots: &WorkspaceRoots,
    problems: &mut Vec<Problem>,
) -> Vec<Arc<PermissionRule>> {
    let mut rules = Vec::new();
    for effect in [Effect::Deny, Effect::Ask, Effect::Allow] {
        let setting = resolved.setting(&format!("permissions.{}", effect.as_str()));
        for item in setting.iter().filter_map(|setting| setting.value.as_ref()).flat_map(|value| value.items()) {
            match parsed(effect, &item.text, &item.origin, folders) {
                Ok(rule) => {
                    let rule = match &item.entry {
                        Some(entry) => rule.derived_from(entry),
                        None => rule,
                    };
                    examples::check(&rule, &item.examples, roots, problems);
                    rules.push(Arc::new(rule));
                }
                Err(error) => problems.push(Problem::new(item.origin.clone(), error.reason)),
            }
        }
    }
    rules.extend(mcp_server::rules(resolved, problems));
    rules.extend(tool_block::rules(resolved, problems));
    rules.extend(read_only_commands::rules(resolved, problems));
    rules
}

/// Returns the allow rules of files that wait for trust.
pub(in crate::config) fn waiting_rules(
    folders: &StandardFolders,
    resolved: &ResolvedSettings,
) -> Vec<Arc<PermissionRule>> {
    let setting = resolved.setting("permissions.allow");
    let waiting = setting.iter().flat_map(|setting| &setting.waiting);
    let rule = |one: &UntrustedValue| parsed(Effect::Allow, one.value.as_text()?, &one.origin, folders).ok();
    waiting.filter_map(rule).map(Arc::new).collect()
}

pub(in crate::config) fn parsed(
    effect: Effect,
    text: &str,
    origin: &Origin,
    folders: &StandardFolders,
) -> Result<PermissionRule, InvalidRule> {
    let folder = match origin {
        Origin::File(path, _) => path.parent().unwrap_or(Path::new("/")),
        Origin::Environment(_) | Origin::Flag(_) | Origin::Default => &folders.start,
    };
    let base = PathBase { folder, home: folders.home.as_deref() }.patterns();
    PermissionRule::parse(effect, text, origin.to_rule_origin(), &base)
}

/// Checks that every tool named in rules, tool tables and `--tools` is in `known`: the names and aliases of all
/// built-in tools. Names of MCP tools are not checked, because their servers may be unavailable.
///
/// # Errors
/// Each unknown name, with the nearest known one.
pub fn check_tool_names(config: &Config, known: &[&str]) -> Result<(), ConfigError> {
    let mut problems = Vec::new();
    let is_of_server = |name: &str| name.split_once("__").is_some_and(|(server, _)| config.names_server(server));
    let mut check = |name: &str, origin: Origin, what: String| {
        if is_of_server(name) && !name.starts_with("mcp__") {
            problems.push(Problem::new(origin, format!("{what}: the tools of that server are called `mcp__{name}`")));
        } else if !known.contains(&name) {
            problems.push(Problem::new(origin, format!("{what}: {}", no_such_tool(name, known))));
        }
    };
    for rule in config.every_rule() {
        if let Some(name) = rule.named_tool() {
            check(name, origin_of(&rule.origin), format!("the {} rule `{}`", rule.effect.as_str(), rule.text));
        }
    }
    for (name, keys) in config.resolved.named("tools") {
        let contribution = keys.values().find_map(|setting| setting.contributions.first());
        let origin = contribution.map_or(Origin::Default, |one| one.origin.clone());
        if !is_of_mcp(&name) {
            check(&name, origin, format!("`tools.{name}`"));
        }
    }
    // A server that offers plain names may offer any name.
    let plain = config.mcp_servers.iter().any(|server| server.names == ToolNaming::Plain && !server.disabled);
    for item in config.tools.selected.iter().filter(|item| !plain && !item.text.contains('*') && !is_of_mcp(&item.text))
    {
        check(&item.text, item.origin.clone(), "the choice of tools".into());
    }
    // Report a name once per origin, even if several rules were derived from it.
    let mut seen = BTreeSet::new();
    problems.retain(|problem| seen.insert(problem.to_string()));
    ConfigError::unless_none(problems)
}

/// Returns a message that the tool is unknown, with the nearest name.
pub(in crate::config) fn no_such_tool(name: &str, known: &[&str]) -> String {
    let near = nearest_name(name, known.iter().copied());
    let advice = near.map_or("`toolstead tools --all` lists them".into(), |near| format!("did you mean `{near}`?"));
    format!("no tool is called `{name}`; {advice}")
}

/// Checks that rules on `tools` are valid for these tools, and that every parameter that they name exists. A rule on an
/// unknown parameter could never match.
///
/// # Errors
/// Each invalid rule, and each unknown parameter with the nearest known one.
pub fn check_parameters(config: &Config, tools: &[Tool]) -> Result<(), ConfigError> {
    let mut problems = Vec::new();
    for rule in config.every_rule() {
        if let Some(reason) = tools.iter().find_map(|tool| rule.unreadable_for(tool)) {
            let message = format!("the {} rule `{}` cannot be used: {reason}", rule.effect.as_str(), rule.text);
            problems.push(Problem::new(origin_of(&rule.origin), message));
            continue;
        }
        let Some((named, parameter)) = rule.named_parameter() else { continue };
        let bears =
            |tool: &&Tool| tool.name().as_str() == named || tool.aliases.iter().any(|alias| alias.name == named);
        let Some(tool) = tools.iter().find(bears) else { continue };
        let schema = tool.input_schema();
        let is_closed = schema.get("additionalProperties") == Some(&false.into());
        let Some(known) = schema.get("properties").and_then(|known| known.as_object()).filter(|_| is_closed) else {
            continue;
        };
        if !known.contains_key(parameter) {
            let near = nearest_name(parameter, known.keys().map(String::as_str));
            let all = || format!("it has {}", known.keys().cloned().collect::<Vec<_>>().join(", "));
            let advice = near.map_or_else(all, |near| format!("did you mean `{near}`?"));
            let (effect, text, name) = (rule.effect.as_str(), &rule.text, tool.name());
            let message = format!(
                "the {effect} rule `{text}` would never match: `{name}` has no parameter `{parameter}`; {advice}"
            );
            problems.push(Problem::new(origin_of(&rule.origin), message));
        }
    }
    ConfigError::unless_none(problems)
}

/// Returns `true` if the name belongs to a built-in tool, or to another subject of rules.
pub(in crate::config) fn is_known_tool(name: &str) -> bool {
    nameable().contains(&name)
}

/// Returns every name and alias of a built-in tool, including tools that call other tools, and the names of resource
/// and prompt requests.
pub fn nameable() -> Vec<&'static str> {
    let calling_others = orchestration::NAMES.iter().copied();
    let aliases = calling_others.clone().flat_map(aliases_of).map(|alias| alias.name);
    names_and_aliases().into_iter().chain(calling_others).chain(aliases).chain(context::RULE_NAMES).collect()
}

/// Returns the canonical name of the built-in tool with this name or alias. Returns any other name unchanged.
pub(in crate::config) fn canonical_name(name: &str) -> &str {
    let tools = names_by_tool();
    let is_own = tools.iter().any(|names| names.first() == Some(&name));
    let tool = tools.iter().find(|names| !is_own && names.contains(&name));
    tool.and_then(|names| names.first()).copied().unwrap_or(name)
}

/// Returns `true` if the name may be one of the names of an MCP server's tool.
pub(in crate::config) fn is_of_mcp(name: &str) -> bool {
    name.starts_with("mcp_") || name.contains("__")
}

pub(in crate::config) fn origin_of(origin: &RuleOrigin) -> Origin {
    match origin {
        RuleOrigin::File(path, line) => Origin::File(path.as_path().into(), *line),
        RuleOrigin::CommandLine => Origin::Flag("--allow"),
        RuleOrigin::Environment(name) => Origin::Environment(name.as_str().into()),
        RuleOrigin::Program | RuleOrigin::Session => Origin::Default,
    }
}

/// Adds a note for each allow rule that permits any program. Such rules are valid, but often a mistake.
pub(in crate::config) fn wide_rules(config: &Config, notes: &mut Vec<Problem>) {
    let is_wide = |rule: &&Arc<PermissionRule>| rule.allows_any_program(|tool| command_tools().contains(&tool));
    for rule in config.permissions.rules.iter().filter(is_wide) {
        let message =
            format!("the allow rule `{}` lets any program run: name programs, such as `Bash(git *)`", rule.text);
        notes.push(Problem::new(origin_of(&rule.origin), message));
    }
}

/// Adds a note for each allow rule whose name resembles a resource or prompt request, which it no longer covers.
pub(in crate::config) fn rules_of_tools_only(config: &Config, notes: &mut Vec<Problem>) {
    for rule in config.permissions.rules.iter() {
        let Some((kind, wanted)) = rule.named_requests() else { continue };
        let what = if kind == AccessKind::Prompt { "prompts" } else { "resources" };
        let message = format!(
            "the allow rule `{}` covers a tool of that name and no {what}: to allow {what}, write `{wanted}`",
            rule.text
        );
        notes.push(Problem::new(origin_of(&rule.origin), message));
    }
}

/// Adds a note for each entry of a tool selection that matches neither a built-in tool nor a tool of a configured
/// server. This is not an error, because an embedding application may have further tools.
pub(in crate::config) fn idle_choices(config: &Config, notes: &mut Vec<Problem>) {
    let names = names_and_aliases();
    let may_fit = |text: &str| {
        names.iter().any(|name| wildcard_match(text, name))
            || config.mcp_servers.iter().any(|server| may_be_of(text, server))
    };
    // Servers that are not configured are reported by another note.
    let idle = config.tools.selected.iter().filter(|item| !item.text.starts_with("mcp__") && !may_fit(&item.text));
    notes.extend(idle.map(|item| {
        let message = format!("the choice of tools: `{}` fits no tool, and none of a configured MCP server", item.text);
        Problem::new(item.origin.clone(), message)
    }));
}

/// Returns `true` if the entry may match a tool of the server.
fn may_be_of(text: &str, server: &ConfiguredServer) -> bool {
    let (fixed, is_open) = text.split_once('*').map_or((text, false), |(fixed, _)| (fixed, true));
    let name = server.name.as_str();
    let begins = |start: String| fixed.starts_with(&start) || (is_open && start.starts_with(fixed));
    server.names == ToolNaming::Plain
        || begins(format!("{name}__"))
        || begins(format!("mcp_{name}_"))
        || begins(format!("mcp__{name}__"))
        || (!is_open && fixed.starts_with("mcp_"))
}

/// Adds a note for each rule and selection that names a server which is not configured. This is not an error, because
/// servers may be added later.
pub(in crate::config) fn absent_servers(config: &Config, notes: &mut Vec<Problem>) {
    let known: BTreeSet<&str> = config.mcp_servers.iter().map(|server| server.name.as_str()).collect();
    let in_text = |text: &str| {
        let rest = text.strip_prefix("mcp__")?;
        rest.split("__").next().unwrap_or(rest).split('(').next().map(str::to_owned)
    };
    let named = config.every_rule().filter_map(|rule| {
        let server = rule.named_server().filter(|server| *server != BUILT_IN).map(str::to_owned);
        Some((rule.text.as_str(), server.or_else(|| in_text(&rule.text))?, origin_of(&rule.origin)))
    });
    let chosen = config.tools.selected.iter();
    let chosen = chosen.filter_map(|item| Some((item.text.as_str(), in_text(&item.text)?, item.origin.clone())));
    for (text, server, origin) in named.chain(chosen) {
        let server = server.as_str();
        if !server.contains('*') && !known.contains(server) {
            notes.push(Problem::new(
                origin,
                format!("`{text}` names the MCP server `{server}`, which is not configured"),
            ));
        }
    }
}
