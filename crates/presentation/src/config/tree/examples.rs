//! `matches` and `not_matches`: examples with which a rule is tested when it is loaded.

use crate::config::{
    sections::command_lines::commands_of,
    tree::{problem::Problem, value::RuleExample},
};
use std::{path::Path, sync::Arc};
use toolstead_domain::{
    Access, AccessPath, PermissionRule, RuleSubject, ServerName, WorkspaceRoots, workspace_roots::lexical,
};

/// Base of relative example paths if there is no root.
const NO_ROOT: &str = "/workspace";

/// Adds a problem for every example that the rule does not treat as stated.
pub(in crate::config) fn check(
    rule: &PermissionRule,
    examples: &[RuleExample],
    roots: &WorkspaceRoots,
    problems: &mut Vec<Problem>,
) {
    let fallback = WorkspaceRoots { write: vec![NO_ROOT.into()], ..WorkspaceRoots::default() };
    let roots = if roots.start().is_some() { roots } else { &fallback };
    for RuleExample { text, origin, matches } in examples {
        let rule_said = || format!("the {} rule `{}`", rule.effect.as_str(), rule.text);
        let message = match (meets(rule, text, roots), matches) {
            (Ok(true), true) | (Ok(false), false) => continue,
            (Ok(false), true) => format!("{} does not match its example `{text}`", rule_said()),
            (Ok(true), false) => format!("{} matches `{text}`, which it must not", rule_said()),
            (Err(reason), _) => format!("{}: the example `{text}` {reason}", rule_said()),
        };
        problems.push(Problem::new(origin.clone(), message));
    }
}

/// Returns `true` if the rule matches the example.
fn meets(rule: &PermissionRule, example: &str, roots: &WorkspaceRoots) -> Result<bool, &'static str> {
    Ok(match rule.subject() {
        RuleSubject::Command => {
            let commands: Vec<Access> = commands_of(example).into_iter().map(Access::RunCommand).collect();
            rule.meets(&commands, roots)
        }
        RuleSubject::Path => {
            let start = roots.start().unwrap_or(Path::new(NO_ROOT));
            let path = AccessPath::plain(lexical(start, Path::new(example)));
            [Access::ReadPath(path.clone()), Access::WritePath(path)]
                .into_iter()
                .any(|access| rule.meets(&[access], roots))
        }
        RuleSubject::Host => {
            let host = url::Url::parse(example).ok().and_then(|url| Some(url.host_str()?.to_owned()));
            let host = host.unwrap_or_else(|| example.to_ascii_lowercase());
            rule.meets(&[Access::ReachHost(host.into())], roots)
        }
        RuleSubject::Name => {
            let name: Arc<str> = example.into();
            [Access::RunAgent(name.clone()), Access::OfferTools(name)]
                .into_iter()
                .any(|access| rule.meets(&[access], roots))
        }
        RuleSubject::Resource => {
            rule.meets(&[requested(example, |server, uri| Access::ReadResource { server, uri })?], roots)
        }
        RuleSubject::Prompt => {
            rule.meets(&[requested(example, |server, prompt| Access::GetPrompt { server, prompt })?], roots)
        }
        RuleSubject::ToolName => rule.meets_name(example),
        RuleSubject::Arguments => {
            let arguments = serde_json::from_str(example).map_err(|_| "must be a JSON object of arguments")?;
            rule.meets_arguments(&arguments)
        }
    })
}

/// Parses `SERVER:URI` or `SERVER:NAME`.
fn requested(example: &str, access: impl Fn(ServerName, Arc<str>) -> Access) -> Result<Access, &'static str> {
    let parts = example.split_once(':').and_then(|(server, name)| Some((ServerName::parse(server).ok()?, name)));
    parts.map(|(server, name)| access(server, name.into())).ok_or("must begin with the server's name and a colon")
}
