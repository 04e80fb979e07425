//! Commands that only read, as allow rules: for `[permissions] read_only_commands`, and for approvals that include them.

use crate::{
    access::Access,
    permission::{
        path_pattern::PatternBase,
        rule::{Effect, PermissionRule, RuleOrigin},
    },
    ports::approver::{ApprovalPart, ApprovalScope},
    tool::Tool,
    workspace_roots::WorkspaceRoots,
};

/// Patterns of the commands. None of them covers a command whose options make it write or run something: the analysis
/// of command lines does not return such a command as plain.
pub const READ_ONLY_COMMANDS: &[&str] = &[
    "ls *",
    "cat *",
    "echo *",
    "pwd",
    "head *",
    "tail *",
    "grep *",
    "find *",
    "wc *",
    "which *",
    "diff *",
    "stat *",
    "du *",
    "cd *",
    "git status *",
    "git log *",
    "git diff *",
    "git show *",
    "git blame *",
    "git ls-files *",
    "git rev-parse *",
    "git describe *",
    "git branch",
    "git branch --list *",
    "git remote",
    "git remote -v",
];

/// Returns the texts of the allow rules on [`READ_ONLY_COMMANDS`].
pub fn read_only_rules() -> impl Iterator<Item = String> {
    READ_ONLY_COMMANDS.iter().map(|pattern| format!("Bash({pattern})"))
}

/// Returns `true` if an approval of these parts may include all commands that only read, until the session ends: one of
/// the parts is such a command of a command line, and each part may be approved for the session by a rule.
pub fn offers_read_only_commands(tool: &Tool, parts: &[ApprovalPart]) -> bool {
    let has_session_rule = |part: &ApprovalPart| part.rule.is_some() && part.scopes.contains(&ApprovalScope::Session);
    tool.takes_command_lines
        && parts.iter().all(has_session_rule)
        && parts.iter().filter_map(|part| part.access.as_ref()).any(is_read_only_command)
}

fn is_read_only_command(access: &Access) -> bool {
    let covers = |rule: PermissionRule| rule.meets(std::slice::from_ref(access), &WorkspaceRoots::default());
    let parse =
        |text: String| PermissionRule::parse(Effect::Allow, &text, RuleOrigin::Session, &PatternBase::default());
    read_only_rules().any(|text| parse(text).is_ok_and(covers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::{Clarity, CommandAccess, PathAccess},
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
        let clarity = Clarity::Exact("it writes".into());
        part(Access::RunCommand(CommandAccess { clarity, ..CommandAccess::program(line.split(' ')) }))
    }

    #[test]
    fn every_pattern_is_a_rule() {
        for text in read_only_rules() {
            PermissionRule::parse(Effect::Allow, &text, RuleOrigin::Session, &PatternBase::default()).unwrap();
        }
    }

    #[test]
    fn they_are_offered_where_one_of_them_asks_and_each_part_has_a_rule_for_the_session() {
        let mut tool = samples::tool("bash");
        tool.takes_command_lines = true;
        let write = || part(Access::WritePath(PathAccess::plain("/w/a")));
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
            assert_eq!(offers_read_only_commands(&tool, &parts), expected, "{parts:?}");
        }
        tool.takes_command_lines = false;
        assert!(!offers_read_only_commands(&tool, &[run("ls")]), "a program is no command line");
    }
}
