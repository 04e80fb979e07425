//! Commands that only read, as allow rules: for `[permissions] read_only_commands`, and for approvals that include
//! them.

use crate::{
    access::Access,
    permission::{
        path_pattern::PatternContext,
        rule::{Effect, PermissionRule, RuleOrigin},
    },
    ports::approver::{ApprovalPart, ApprovalScope},
    tool::Tool,
    workspace_roots::WorkspaceRoots,
};

/// Patterns of commands that only read; none by default. No pattern covers a command whose options make it write or run
/// something: the analysis of command lines does not return such a command as plain.
///
/// ```
/// use toolstead_domain::permission::read_only_commands::ReadOnlyCommands;
///
/// let commands = ReadOnlyCommands::new(&["git status", "ls *"]);
/// assert_eq!(commands.rules().collect::<Vec<_>>(), ["Bash(git status)", "Bash(ls *)"]);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOnlyCommands(&'static [&'static str]);

impl ReadOnlyCommands {
    /// Creates the list of these patterns of command rules.
    pub const fn new(patterns: &'static [&'static str]) -> Self {
        Self(patterns)
    }

    /// Returns the texts of the allow rules.
    pub fn rules(self) -> impl Iterator<Item = String> {
        self.0.iter().map(|pattern| format!("Bash({pattern})"))
    }

    /// Returns `true` if an approval of these parts may include all commands that only read, until the session ends:
    /// one of the parts is such a command of a command line, and each part may be approved for the session by a rule.
    pub fn are_offered(self, tool: &Tool, parts: &[ApprovalPart]) -> bool {
        let has_session_rule =
            |part: &ApprovalPart| part.rule.is_some() && part.scopes.contains(&ApprovalScope::Session);
        tool.takes_command_lines
            && parts.iter().all(has_session_rule)
            && parts.iter().filter_map(|part| part.access.as_ref()).any(|access| self.covers(access))
    }

    fn covers(self, access: &Access) -> bool {
        let meets = |rule: PermissionRule| rule.meets(std::slice::from_ref(access), &WorkspaceRoots::default());
        let parse =
            |text: String| PermissionRule::parse(Effect::Allow, &text, RuleOrigin::Session, &PatternContext::default());
        self.rules().any(|text| parse(text).is_ok_and(meets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::{AccessPath, CommandAccess, ParseConfidence},
        permission::decision::Cause,
        testing::samples,
    };

    fn part(access: Access) -> ApprovalPart {
        let (cause, scopes) = (Cause::Default("asked"), vec![ApprovalScope::Once, ApprovalScope::Session]);
        ApprovalPart { access: Some(access), cause, rule: Some("a rule".into()), scopes }
    }

    fn run(line: &str) -> ApprovalPart {
        part(Access::RunCommand(CommandAccess::program(line.split(' '))))
    }

    fn exact(line: &str) -> ApprovalPart {
        let clarity = ParseConfidence::Exact("it writes".into());
        part(Access::RunCommand(CommandAccess { clarity, ..CommandAccess::program(line.split(' ')) }))
    }

    #[test]
    fn approvals_offer_read_only_commands_if_one_part_matches_and_all_have_session_rules() {
        let commands = ReadOnlyCommands::new(&["ls *", "cat *", "grep *", "find *", "git status *", "git branch"]);
        let mut tool = samples::tool("bash");
        tool.takes_command_lines = true;
        let write = || part(Access::WritePath(AccessPath::plain("/w/a")));
        let once = |part| ApprovalPart { scopes: vec![ApprovalScope::Once], ..part };
        let without_rule = |part| ApprovalPart { rule: None, ..part };
        for (parts, expected) in [
            (vec![run("ls -la")], true),
            (vec![run("git status")], true),
            (vec![run("git branch")], true),
            (vec![run("make lint"), run("grep -rn TODO src"), write()], true),
            (vec![exact("sort -o a b"), run("cat a")], true),
            (vec![run("make lint")], false),
            (vec![run("git branch -D main")], false),
            (vec![exact("find . -delete")], false),
            (vec![write()], false),
            // A rule or a hook asks, or the analysis is uncertain.
            (vec![once(run("ls"))], false),
            (vec![run("ls"), once(run("make lint"))], false),
            (vec![run("ls"), without_rule(run("x"))], false),
            (vec![run("ls"), ApprovalPart { access: None, ..once(write()) }], false),
        ] {
            assert_eq!(commands.are_offered(&tool, &parts), expected, "{parts:?}");
        }
        assert!(!ReadOnlyCommands::default().are_offered(&tool, &[run("ls")]), "there is no list");
        tool.takes_command_lines = false;
        assert!(!commands.are_offered(&tool, &[run("ls")]), "a program is not a command line");
    }
}
