//! The `if` of a hook: a permission rule that selects calls of a tool.

use toolstead_domain::{
    Access, Effect, InvalidRule, PatternContext, PermissionRule, ToolCall, WorkspaceRoots, permission::rule::RuleOrigin,
};

/// Filter of calls by their accesses, with the semantics of an ask rule.
#[derive(Debug, Clone)]
pub struct HookFilter {
    rule: PermissionRule,
}

impl HookFilter {
    /// Parses a filter.
    ///
    /// # Errors
    /// Returns [`InvalidRule`].
    pub fn parse(rule: &str, origin: RuleOrigin, base: &PatternContext) -> Result<Self, InvalidRule> {
        // *Ask* rules also match unclear accesses, as this filter must.
        PermissionRule::parse(Effect::Ask, rule, origin, base).map(|rule| Self { rule })
    }

    /// Returns the rule, for the checks of rules at startup.
    pub fn rule(&self) -> &PermissionRule {
        &self.rule
    }

    /// Returns `true` if the hook runs for a call with these accesses. If they are unknown (`None`), it runs for every
    /// tool that the rule may match.
    pub fn chooses(&self, call: &ToolCall, accesses: Option<&[Access]>, roots: &WorkspaceRoots) -> bool {
        let of_another_tool = || self.rule.named_tool().is_some_and(|name| !has_name(call, name));
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

fn has_name(call: &ToolCall, name: &str) -> bool {
    let tool = &call.tool;
    [tool.name().as_str(), tool.rule_name().as_str()].contains(&name) || tool.aliases.iter().any(|one| one.name == name)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the folders of a test are its own")]
mod tests {
    use super::*;
    use crate::{
        hooks::input::tests::call,
        sandbox::workspace::{UserPathAliases, Workspace},
        shell_analysis::{FileAccessOrigin, analyse},
    };
    use serde_json::{Value, json};

    /// Accesses of a call as reported to hooks.
    enum SampleCallAccesses<'a> {
        Nothing,
        Reads(&'a str),
        Writes(&'a str),
        /// Commands of this line, and the files in it.
        Runs(&'a str),
        /// Unknown from the arguments.
        Unknown,
    }

    fn accesses(
        touches: &SampleCallAccesses<'_>,
        workspace: &Workspace,
        root: &std::path::Path,
    ) -> Option<Vec<Access>> {
        let written = |path: &str| Access::WritePath(workspace.access(path).unwrap());
        match *touches {
            SampleCallAccesses::Nothing => Some(Vec::new()),
            SampleCallAccesses::Reads(path) => Some(vec![Access::ReadPath(workspace.access(path).unwrap())]),
            SampleCallAccesses::Writes(path) => Some(vec![written(path)]),
            SampleCallAccesses::Runs(line) => {
                let mut analysis = analyse(line, root);
                let mut opened = Vec::new();
                for file_access in analysis.file_accesses.iter().filter(|file_access| file_access.writes) {
                    let access = written(file_access.path.to_str().unwrap());
                    match file_access.origin {
                        FileAccessOrigin::Redirection { .. } => opened.push(access),
                        FileAccessOrigin::Operand { command } => analysis.commands[command].operands = [access].into(),
                    }
                }
                Some(analysis.commands.into_iter().map(Access::RunCommand).chain(opened).collect())
            }
            SampleCallAccesses::Unknown => None,
        }
    }

    #[track_caller]
    fn check(rule: &str, tool: &str, arguments: Value, touches: SampleCallAccesses<'_>, expected: bool) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let roots = WorkspaceRoots { write: vec![root.clone()], ..Default::default() };
        let workspace = Workspace::open(&roots, UserPathAliases::default()).unwrap();
        let accesses = accesses(&touches, &workspace, &root);
        let base = PatternContext { folder: Some(root), ..PatternContext::default() };
        let filter = HookFilter::parse(rule, RuleOrigin::Program, &base).unwrap();
        let call = call(tool, arguments.clone());
        assert_eq!(filter.chooses(&call, accesses.as_deref(), &roots), expected, "{rule} {tool} {arguments}");
    }

    #[test]
    fn a_rule_selects_matching_calls_and_calls_with_unknown_accesses() {
        use SampleCallAccesses::{Nothing, Reads, Unknown, Writes};
        let file = |path: &str| json!({"path": path, "content": ""});
        check("Edit(src/**)", "write_file", file("src/a"), Writes("src/a"), true);
        check("Edit(src/**)", "write_file", file("a"), Writes("a"), false);
        check("Edit(src/**)", "read_file", json!({"path": "src/a"}), Reads("src/a"), false);
        check("Read(.env)", "read_file", json!({"path": "x/.env"}), Reads("x/.env"), true);
        check("Edit(src/**)", "apply_patch", json!({"patch": "*** Begin Patch"}), Unknown, true);
        check("write_file", "write_file", file("a"), Writes("a"), true);
        check("Write", "apply_patch", json!({"patch": ""}), Unknown, true);
        check("grep", "apply_patch", json!({"patch": ""}), Unknown, false);
        check("echo(message:rm *)", "echo", json!({"message": "rm x"}), Nothing, true);
        check("Edit", "echo", json!({"message": "rm x"}), Nothing, false);
    }

    #[test]
    fn a_file_rule_selects_commands_that_write_a_matching_file_anywhere_in_the_line() {
        for (command, expected) in
            [("echo x > src/a", true), ("touch src/a", true), ("cd src && touch a", true), ("touch a > b", false)]
        {
            check("Edit(src/**)", "bash", json!({"command": command}), SampleCallAccesses::Runs(command), expected);
        }
    }

    #[test]
    fn a_command_rule_is_matched_against_every_command_of_the_line() {
        for (command, expected) in [
            ("git push origin", true),
            ("cd src && 'git' push; ls", true),
            ("timeout 5 git push", true),
            ("echo \"$(git push)\"", true),
            ("git status | grep push", false),
            ("echo git push", false),
            // An unknown program could be any.
            ("$PROGRAM push", true),
            ("git push '", true),
            ("", true),
        ] {
            check("Bash(git push *)", "bash", json!({"command": command}), SampleCallAccesses::Runs(command), expected);
        }
        let written = json!({"path": "a", "content": "git push"});
        check("Bash(git push *)", "write_file", written, SampleCallAccesses::Writes("a"), false);
    }
}
