//! Checks that the matcher and the `if` of a hook can match a call, so that a typing mistake does not disable a gate.

use crate::config::{
    Config,
    imports::foreign_tools::FOREIGN_TOOLS,
    sections::{
        command_lines::commands_of,
        policy::{check_parameters, check_tool_names},
    },
    tree::{
        origin::Origin,
        problem::{ConfigError, Problem},
    },
};
use std::sync::Arc;
use toolstead_domain::{PermissionRule, RuleSubject, Tool, tool_input_schema::nearest_name};
use toolstead_infrastructure::{
    hooks::{filter::HookFilter, matcher::Matcher},
    mcp::client::config::ToolNaming,
};

/// Matchers and filters of tool hooks that have to be checked.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolHookSelectors {
    matchers: Vec<MatcherWithOrigin>,
    filters: Vec<HookFilterRule>,
    /// Filters that match less than they appear to.
    narrow: Vec<IneffectiveSelector>,
}

#[derive(Debug, Clone)]
pub(super) struct MatcherWithOrigin {
    pub(super) matcher: Matcher,
    pub(super) origin: Origin,
    pub(super) is_gate: bool,
    /// `true` if the hook is defined in a file of Claude Code and may name its tools.
    pub(super) is_of_claude_code: bool,
}

#[derive(Debug, Clone)]
struct HookFilterRule {
    rule: Arc<PermissionRule>,
    /// `true` if the filter may name an unknown tool that resembles no known one: it is from a file of Claude Code, and
    /// the hook is not a gate.
    may_be_foreign: bool,
}

impl HookFilterRule {
    /// Returns `true` if the filter names an unknown tool that resembles no known one, and may do so.
    fn is_foreign(&self, known: &[&str]) -> bool {
        let is_strange = |name| !known.contains(&name) && nearest_name(name, known.iter().copied()).is_none();
        self.may_be_foreign && self.rule.named_tool().is_some_and(is_strange)
    }
}

/// A part of a matcher that matches no tool, or a filter that does not match calls that it appears to match.
#[derive(Debug, Clone)]
struct IneffectiveSelector {
    problem: Problem,
    /// `true` if this would make a gate ineffective.
    opens_gate: bool,
}

impl ToolHookSelectors {
    pub(super) fn add(&mut self, matcher: MatcherWithOrigin, filter: Option<(&HookFilter, Origin)>) {
        let narrow = filter.as_ref().and_then(|(filter, origin)| {
            let problem = Problem::new(origin.clone(), of_one_line(filter.rule())?);
            Some(IneffectiveSelector { problem, opens_gate: matcher.is_gate })
        });
        self.narrow.extend(narrow);
        let is_foreign = |name: &str| matcher.is_of_claude_code && FOREIGN_TOOLS.contains(&name);
        let filter = filter.map(|(filter, _)| filter.rule()).filter(|rule| !rule.named_tool().is_some_and(is_foreign));
        let may_be_foreign = matcher.is_of_claude_code && !matcher.is_gate;
        self.filters.extend(filter.map(|rule| HookFilterRule { rule: Arc::new(rule.clone()), may_be_foreign }));
        self.matchers.push(matcher);
    }
}

/// Checks the `if` of each hook like a rule, and checks that each part of a gate's matcher matches a tool: a `known`
/// one, or one that a configured MCP server may offer.
///
/// # Errors
/// Each unknown name, with the nearest known one.
pub fn check_choices(config: &Config, known: &[&str]) -> Result<(), ConfigError> {
    let mut problems = of_filters(config, |one| !one.is_foreign(known), |rules| check_tool_names(rules, known));
    problems.extend(misses(config, known).filter(|miss| miss.opens_gate).map(|miss| miss.problem));
    ConfigError::unless_none(problems)
}

/// Checks that the parameters named in the `if` of hooks exist in `tools`, as [`check_parameters`] does for rules.
///
/// # Errors
/// Each unknown parameter, with the nearest known one.
pub fn check_filter_parameters(config: &Config, tools: &[Tool]) -> Result<(), ConfigError> {
    ConfigError::unless_none(of_filters(config, |_| true, |rules| check_parameters(rules, tools)))
}

/// Returns remarks about matchers and filters that match nothing and are not errors.
pub fn notes(config: &Config, known: &[&str]) -> Vec<Problem> {
    let mut notes = of_filters(config, |one| one.is_foreign(known), |rules| check_tool_names(rules, known));
    notes.extend(misses(config, known).filter(|miss| !miss.opens_gate).map(|miss| miss.problem));
    notes
}

/// Applies a check of rules to the `if`s of those hooks that `is_checked` selects, parsed as ask rules, and returns the
/// problems.
fn of_filters(
    config: &Config,
    is_checked: impl Fn(&HookFilterRule) -> bool,
    check: impl FnOnce(&Config) -> Result<(), ConfigError>,
) -> Vec<Problem> {
    let filters = config.hooks.choices.filters.iter().filter(|one| is_checked(one));
    let rules: Vec<_> = filters.map(|one| one.rule.clone()).collect();
    if rules.is_empty() {
        return Vec::new();
    }
    let mut of_filters = config.clone();
    of_filters.permissions.rules = rules;
    let problems = check(&of_filters).err().map(|error| error.problems).unwrap_or_default();
    let to_problem = |problem: Problem| {
        let message = problem.message.strip_prefix("the ask rule ").unwrap_or(&problem.message);
        Problem::new(problem.origin, format!("the `if` of a hook: {message}"))
    };
    problems.into_iter().map(to_problem).collect()
}

fn misses<'a>(config: &'a Config, known: &'a [&str]) -> impl Iterator<Item = IneffectiveSelector> + 'a {
    let ToolHookSelectors { matchers, narrow, .. } = &*config.hooks.choices;
    let missed = matchers.iter().flat_map(move |written| {
        let parts = written.matcher.alternatives();
        parts.into_iter().filter_map(move |part| miss(config, known, written, &part))
    });
    missed.chain(narrow.iter().cloned())
}

/// Returns a remark about a filter that contains several commands of one line. Such a filter is compared with whole
/// lines and does not match the same commands in any other line.
fn of_one_line(rule: &PermissionRule) -> Option<String> {
    let (_, line) = rule.text.strip_suffix(')')?.split_once('(')?;
    if rule.subject() != RuleSubject::Command || !line.contains(['&', '|', ';', '\n']) {
        return None;
    }
    let commands = commands_of(line);
    let last = commands.last().filter(|_| commands.len() > 1)?;
    Some(format!(
        "the `if` of a hook: `{}` meets only lines that are written so, and none of its commands elsewhere; name one \
         command, such as `Bash({})`",
        rule.text, last.text
    ))
}

/// Returns the reason why this part of a matcher matches nothing; `None` if it matches, or may match, a tool.
fn miss(config: &Config, known: &[&str], written: &MatcherWithOrigin, part: &Matcher) -> Option<IneffectiveSelector> {
    let foreign = if written.is_of_claude_code { FOREIGN_TOOLS } else { &[] };
    if part.chooses(known.iter().chain(foreign).copied()) {
        return None;
    }
    let text = part.to_string();
    let servers: Vec<&str> = config.mcp_servers.iter().map(|server| server.name.as_str()).collect();
    let waiting = config.untrusted_servers.iter().map(|server| server.name.as_str());
    let servers: Vec<&str> = servers.into_iter().chain(waiting).collect();
    // A server that offers plain names may offer any name.
    let anything = config.mcp_servers.iter().any(|server| server.names == ToolNaming::Plain && !server.disabled);
    let (may_come, what) = match (ServerReference::named_in(&text, part), part) {
        (ServerReference::Server(server), _) if servers.contains(&server) => return None,
        (ServerReference::Server(server), _) => match nearest_name(server, servers) {
            Some(near) => (false, format!("no MCP server is called `{server}`; did you mean `{near}`?")),
            // Servers may be added later. Without the server, there is nothing to guard.
            None => (true, format!("the MCP server `{server}` is not configured")),
        },
        (ServerReference::Some, _) if !servers.is_empty() => return None,
        (ServerReference::Some, _) => (true, "no MCP server is configured".to_owned()),
        (ServerReference::Other, Matcher::Names(_)) => {
            let what = "hits no tool: those of a server are `mcp__server__tool`, all of them `mcp__server__.*`";
            (false, format!("`{text}` {what}"))
        }
        (ServerReference::None, Matcher::Names(_)) => {
            let near = nearest_name(&text, known.iter().copied());
            let advice =
                near.map_or("`toolstead tools --all` lists them".into(), |near| format!("did you mean `{near}`?"));
            (anything, format!("no tool is called `{text}`; {advice}"))
        }
        (ServerReference::None | ServerReference::Other, _) => {
            (!servers.is_empty(), format!("`{text}` is found in no name of a built-in tool"))
        }
    };
    let of_gate = if written.is_gate { " of a gate" } else { "" };
    let message = format!("the matcher `{}`{of_gate}: {what}", written.matcher);
    let problem = Problem::new(written.origin.clone(), message);
    Some(IneffectiveSelector { problem, opens_gate: written.is_gate && !may_come })
}

/// Reference to MCP servers in a part of a matcher.
enum ServerReference<'t> {
    /// Refers to this server.
    Server(&'t str),
    /// Refers to some servers.
    Some,
    /// Appears to refer to servers, but does not use the form of their tool names.
    Other,
    /// Does not refer to servers.
    None,
}

impl<'t> ServerReference<'t> {
    fn named_in(text: &'t str, part: &Matcher) -> Self {
        let Some((_, rest)) = text.split_once("mcp__") else {
            return if text.contains("mcp") || text.contains("__") { Self::Other } else { Self::None };
        };
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let named = &rest[..rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())];
        match (named.split_once("__"), part) {
            (Some((server, "")), Matcher::Names(_)) if !server.is_empty() => Self::Other,
            (Some((server, _)), _) if !server.is_empty() => Self::Server(server),
            (None, Matcher::Names(_)) => Self::Other,
            // A name without its end, as in `mcp__git.*`, may be the start of any server's name.
            _ => Self::Some,
        }
    }
}
