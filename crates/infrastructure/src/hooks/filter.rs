//! The `if` of a hook: one permission rule that chooses among the calls of a tool.

use crate::builtin::shell_analysis::analyse;
use std::path::Path;
use toolstead_domain::{
    access::{Access, PathAccess},
    category::Category,
    permission::{
        path_pattern::PatternBase,
        rule::{Effect, InvalidRule, PermissionRule, RuleOrigin},
    },
    ports::output_store::OutputHandle,
    tool_call::ToolCall,
    workspace_roots::{WorkspaceRoots, lexical},
};

/// Chooses calls, as well as that can be told before what they touch is known. Where it cannot be told the hook runs.
#[derive(Debug, Clone)]
pub struct HookFilter {
    rule: PermissionRule,
}

impl HookFilter {
    /// The filter of that rule.
    ///
    /// # Errors
    /// [`InvalidRule`].
    pub fn parse(rule: &str, origin: RuleOrigin, base: &PatternBase) -> Result<Self, InvalidRule> {
        // An *ask* rule catches what is unclear, and so does this.
        PermissionRule::parse(Effect::Ask, rule, origin, base).map(|rule| Self { rule })
    }

    /// Whether the hook runs for the call.
    pub fn chooses(&self, call: &ToolCall, roots: &WorkspaceRoots, start: &Path) -> bool {
        let accesses = presumed(call, start);
        let of_another_tool = || self.rule.named_tool().is_some_and(|name| !bears(call, name));
        self.rule.catches(&call.tool, &call.arguments, &accesses, roots).is_some()
            || (accesses.is_empty() && !of_another_tool())
    }
}

impl std::fmt::Display for HookFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.rule.text)
    }
}

fn bears(call: &ToolCall, name: &str) -> bool {
    let tool = &call.tool;
    [tool.name().as_str(), tool.rule_name().as_str()].contains(&name) || tool.aliases.iter().any(|one| one.name == name)
}

/// What the call would touch, by the usual names of parameters.
fn presumed(call: &ToolCall, start: &Path) -> Vec<Access> {
    let text = |name: &str| call.arguments.get(name).and_then(|value| value.as_str());
    let mut accesses = Vec::new();
    if let Some(command) = text("command").filter(|_| call.tool.category == Category::Shell) {
        accesses.extend(analyse(command, start).commands.into_iter().map(Access::RunCommand));
    }
    if let Some(path) = text("path").filter(|path| path.parse::<OutputHandle>().is_err()) {
        let path = PathAccess::plain(lexical(start, Path::new(path)));
        accesses.push(Access::ReadPath(path.clone()));
        if call.tool.annotations().read_only_hint != Some(true) {
            accesses.push(Access::WritePath(path));
        }
    }
    if let Some(host) = text("url").and_then(|url| Some(url::Url::parse(url).ok()?.host_str()?.to_owned())) {
        accesses.push(Access::ReachHost(host.into()));
    }
    accesses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::input::tests::call;
    use serde_json::json;

    #[track_caller]
    fn check(rule: &str, tool: &str, arguments: serde_json::Value, expected: bool) {
        let base = PatternBase { folder: Some("/w".into()), home: None };
        let filter = HookFilter::parse(rule, RuleOrigin::Program, &base).unwrap();
        let roots = WorkspaceRoots { write: vec!["/w".into()], ..Default::default() };
        assert_eq!(filter.chooses(&call(tool, arguments), &roots, Path::new("/w")), expected, "{rule} {tool}");
    }

    #[test]
    fn a_rule_chooses_among_calls_and_what_is_unclear_is_chosen() {
        check("Edit(src/**)", "write_file", json!({"path": "src/a", "content": ""}), true);
        check("Edit(src/**)", "write_file", json!({"path": "a", "content": ""}), false);
        check("Edit(src/**)", "read_file", json!({"path": "src/a"}), false);
        check("Read(.env)", "read_file", json!({"path": "x/.env"}), true);
        check("Edit(src/**)", "apply_patch", json!({"patch": "*** Begin Patch"}), true);
        check("write_file", "write_file", json!({"path": "a", "content": ""}), true);
        check("Write", "apply_patch", json!({"patch": ""}), true);
        check("grep", "apply_patch", json!({"patch": ""}), false);
    }

    #[test]
    fn a_rule_on_commands_chooses_by_each_command_of_the_line() {
        for (command, expected) in [
            ("git push origin", true),
            ("cd src && 'git' push; ls", true),
            ("timeout 5 git push", true),
            ("echo \"$(git push)\"", true),
            ("git status | grep push", false),
            ("echo git push", false),
            // What cannot be told could be anything.
            ("$PROGRAM push", true),
            ("git push '", true),
            ("", true),
        ] {
            check("Bash(git push *)", "bash", json!({"command": command}), expected);
        }
        check("Bash(git push *)", "write_file", json!({"path": "a", "command": "git push"}), false);
    }
}
