//! Answers that a user gives for ordinary command lines and for their dangerous look-alikes, beside those that the same
//! lines needed before there were built-in rules, one answer for a line, rules on more than the command itself, and a
//! choice that includes the commands that only read.

use super::*;
use crate::shell_analysis::catalogue::READ_ONLY_COMMANDS;
use serde_json::Map;
use std::fmt::Write;
use toolstead_domain::{
    ApprovalPart, ApprovalScope, Category, Cause, Effect, ParseConfidence, PatternContext, PermissionPolicy,
    PermissionRule, ReadOnlyCommands, Tool, ToolName, ToolSource, Verdict,
    permission::{offered_rule::offered_rule, rule::RuleOrigin},
};

const FIXTURE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/command-lines.txt"));

/// One line of the fixture.
struct Row<'a> {
    /// Answers as they were counted before.
    before: &'a str,
    line: &'a str,
}

/// Returns the rows of a part of the fixture.
fn rows(part: usize) -> Vec<Row<'static>> {
    let parts: Vec<&str> = FIXTURE.split("\n\n").collect();
    let rows = parts[part].lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let (counts, line) = row.split_once(" | ").unwrap();
        Row { before: &counts[..5], line }
    })
    .collect()
}

struct User {
    workspace: Workspace,
    folder: PathBuf,
    tool: Tool,
    fresh: PermissionPolicy,
    /// Each answer was "session".
    session: PermissionPolicy,
    /// Each answer was "commands that only read", or "session" where that was not offered.
    reading: PermissionPolicy,
    _here: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        let here = tempfile::tempdir().unwrap();
        let folder = here.path().canonicalize().unwrap();
        std::fs::create_dir(folder.join("web")).unwrap();
        let roots = WorkspaceRoots { write: vec![folder.clone()], ..Default::default() };
        let workspace = Workspace::open(&roots, UserPathAliases::default()).unwrap();
        let name = ToolName::parse("bash").unwrap();
        let mut tool = Tool::new(name, Map::new(), Category::Shell, ToolSource::BuiltIn);
        tool.takes_command_lines = true;
        let fresh = PermissionPolicy { roots, ..Default::default() };
        Self { workspace, folder, tool, session: fresh.clone(), reading: fresh.clone(), fresh, _here: here }
    }

    /// Returns the verdict and what needs approval.
    fn decided(&self, policy: &PermissionPolicy, line: &str) -> (Verdict, Vec<Access>) {
        let search_path = ShellPathAndHome { folders: "/usr/local/bin:/usr/bin:/bin".into(), home: None };
        let accesses = accesses(&self.workspace, line, &self.folder, Some(&search_path));
        let decision = policy.decide(&self.tool, &Map::new(), &accesses);
        (decision.verdict, decision.asked().cloned().collect())
    }

    /// Returns the parts of a question about this line, with the rules that are offered.
    fn parts(&self, policy: &PermissionPolicy, line: &str) -> Vec<ApprovalPart> {
        let (_, asked) = self.decided(policy, line);
        let is_opaque = |access: &Access| match access {
            Access::RunCommand(command) => matches!(command.clarity, ParseConfidence::Opaque(_)),
            _ => false,
        };
        let part = |access: Access| ApprovalPart {
            rule: offered_rule(&access, "bash").filter(|_| !is_opaque(&access)),
            access: Some(access),
            cause: Cause::Default("asked"),
            scopes: vec![ApprovalScope::Once, ApprovalScope::Session],
        };
        asked.into_iter().map(part).collect()
    }

    /// Returns the answers for a line by itself, in a session in which each answer was "session", and in a session in
    /// which it was "commands that only read" where that was offered.
    fn answers(&mut self, line: &str) -> [usize; 3] {
        let commands = ReadOnlyCommands::new(READ_ONLY_COMMANDS);
        let policies = [&self.fresh, &self.session, &self.reading];
        let answers = policies.map(|policy| usize::from(self.decided(policy, line).0 != Verdict::Allow));
        let rules = |parts: &[ApprovalPart]| parts.iter().filter_map(|part| part.rule.clone()).collect::<Vec<_>>();
        let parts = self.parts(&self.session, line);
        self.session.rules.extend(rules(&parts).into_iter().map(allowing));
        let parts = self.parts(&self.reading, line);
        self.reading.rules.extend(rules(&parts).into_iter().map(allowing));
        if commands.are_offered(&self.tool, &parts) {
            self.reading.rules.extend(commands.rules().map(allowing));
        }
        answers
    }
}

fn allowing(rule: String) -> Arc<PermissionRule> {
    Arc::new(PermissionRule::parse(Effect::Allow, &rule, RuleOrigin::Session, &PatternContext::default()).unwrap())
}

/// The rows of a part with the answers of today, and the number of these answers.
fn counted(user: &mut User, part: usize) -> (String, [usize; 3]) {
    rows(part).iter().fold((String::new(), [0; 3]), |(mut text, mut sums), Row { before, line }| {
        let answers = user.answers(line);
        let [fresh, session, reading] = answers;
        writeln!(text, "{before}   {fresh} {session} {reading} | {line}").unwrap();
        sums.iter_mut().zip(answers).for_each(|(sum, answers)| *sum += answers);
        (text, sums)
    })
}

#[test]
fn ordinary_lines_need_the_recorded_approvals_and_every_look_alike_needs_approval() {
    let mut user = User::new();
    let parts: Vec<&str> = FIXTURE.split("\n\n").collect();
    for (part, title, sums) in
        [(1, "# Ordinary command lines of coding agents", [38, 37, 25]), (2, "# Look-alikes", [20, 20, 15])]
    {
        let expected = parts[part].trim_end();
        assert!(expected.starts_with(title));
        let (counted, counted_sums) = counted(&mut user, part);
        let heading = expected.lines().next().unwrap();
        assert_eq!(format!("{heading}\n{}", counted.trim_end()), expected, "counted:\n{counted}");
        assert_eq!(counted_sums, sums, "{title}");
    }
    let fresh = User::new();
    for Row { line, .. } in rows(2) {
        assert_ne!(fresh.decided(&fresh.fresh, line).0, Verdict::Allow, "{line}");
    }
}
