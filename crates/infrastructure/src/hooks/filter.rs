//! The `if` of a hook: one permission rule that chooses among the calls of a tool.

use toolstead_domain::{
    access::Access,
    permission::{
        path_pattern::PatternBase,
        rule::{Effect, InvalidRule, PermissionRule, RuleOrigin},
    },
    tool_call::ToolCall,
    workspace_roots::WorkspaceRoots,
};

/// Chooses calls by what they touch, as an ask rule does.
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

    /// The rule that chooses, for the checks that rules go through when they are loaded.
    pub fn rule(&self) -> &PermissionRule {
        &self.rule
    }

    /// Whether the hook runs for a call that touches this. Where that is not known (`None`), it runs for every tool that
    /// the rule may be about.
    pub fn chooses(&self, call: &ToolCall, accesses: Option<&[Access]>, roots: &WorkspaceRoots) -> bool {
        let of_another_tool = || self.rule.named_tool().is_some_and(|name| !bears(call, name));
        let known = accesses.unwrap_or_default();
        self.rule.catches(&call.tool, &call.arguments, known, roots).is_some()
            || (accesses.is_none() && !of_another_tool())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        builtin::{self, provider::BuiltInTools, world::World},
        hooks::input::tests::call,
        sandbox::workspace::{FolderNames, Workspace},
        system_clock::SystemClock,
    };
    use serde_json::{Value, json};
    use std::sync::Arc;
    use tokio::runtime::Runtime;
    use toolstead_domain::ports::tool_provider::ToolProvider;

    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "tests lay out a workspace behind the hooks' back")]
    fn check(rule: &str, tool: &str, arguments: Value, expected: bool) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let roots = WorkspaceRoots { write: vec![root.clone()], ..Default::default() };
        let workspace = Arc::new(Workspace::open(&roots, FolderNames::default()).unwrap());
        let world = World::new(workspace, Arc::new(SystemClock), "test".into());
        let tools = BuiltInTools::new(builtin::all(), world).unwrap();
        let base = PatternBase { folder: Some(root), ..PatternBase::default() };
        let filter = HookFilter::parse(rule, RuleOrigin::Program, &base).unwrap();
        let call = call(tool, arguments.clone());
        let accesses = Runtime::new().unwrap().block_on(tools.accesses(&call)).ok();
        assert_eq!(filter.chooses(&call, accesses.as_deref(), &roots), expected, "{rule} {tool} {arguments}");
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
        check("echo(message:rm *)", "echo", json!({"message": "rm x"}), true);
        check("Edit", "echo", json!({"message": "rm x"}), false);
    }

    #[test]
    fn every_path_that_a_call_names_counts_wherever_it_stands() {
        let edits = |path: &str| json!({"edits": [{"path": path, "old_text": "a", "new_text": "b"}]});
        check("Edit(src/**)", "multi_edit", edits("src/a"), true);
        check("Edit(src/**)", "multi_edit", edits("a"), false);
        let patch = |path: &str| json!({"patch": format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch")});
        check("Edit(src/**)", "apply_patch", patch("src/a"), true);
        check("Edit(src/**)", "apply_patch", patch("a"), false);
        for (command, expected) in
            [("echo x > src/a", true), ("touch src/a", true), ("cd src && touch a", true), ("touch a > b", false)]
        {
            check("Edit(src/**)", "bash", json!({"command": command}), expected);
        }
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
        check("Bash(git push *)", "write_file", json!({"path": "a", "content": "git push"}), false);
    }
}
