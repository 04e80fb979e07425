//! Answers that a user gives for ordinary command lines and for their dangerous look-alikes, beside those that the same
//! lines needed before there were built-in rules, one answer for a line, and rules on more than the command itself.

use super::*;
use serde_json::Map;
use std::fmt::Write;
use toolstead_domain::{
    access::Clarity,
    category::Category,
    permission::{
        decision::Verdict,
        offered_rule::offered_rule,
        path_pattern::PatternBase,
        policy::PermissionPolicy,
        rule::{Effect, PermissionRule, RuleOrigin},
    },
    tool::{Tool, ToolSource},
    tool_name::ToolName,
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
    session: PermissionPolicy,
    _here: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        let here = tempfile::tempdir().unwrap();
        let folder = here.path().canonicalize().unwrap();
        std::fs::create_dir(folder.join("web")).unwrap();
        let roots = WorkspaceRoots { write: vec![folder.clone()], ..Default::default() };
        let workspace = Workspace::open(&roots, FolderNames::default()).unwrap();
        let name = ToolName::parse("bash").unwrap();
        let mut tool = Tool::new(name, Map::new(), Category::Shell, ToolSource::BuiltIn);
        tool.takes_command_lines = true;
        let fresh = PermissionPolicy { roots, ..Default::default() };
        Self { workspace, folder, tool, session: fresh.clone(), fresh, _here: here }
    }

    /// Returns the verdict and what needs approval.
    fn decided(&self, policy: &PermissionPolicy, line: &str) -> (Verdict, Vec<Access>) {
        let search_path = SearchPath { folders: "/usr/local/bin:/usr/bin:/bin".into(), home: None };
        let accesses = accesses(&self.workspace, line, &self.folder, Some(&search_path));
        let decision = policy.decide(&self.tool, &Map::new(), &accesses);
        (decision.verdict, decision.asked().cloned().collect())
    }

    /// Returns the answers for a line by itself, and in a session in which each answer was "session".
    fn answers(&mut self, line: &str) -> (usize, usize) {
        let (verdict, _) = self.decided(&self.fresh, line);
        let (in_session, asked) = self.decided(&self.session, line);
        for access in &asked {
            let is_opaque =
                matches!(access, Access::RunCommand(command) if matches!(command.clarity, Clarity::Opaque(_)));
            if let Some(rule) = offered_rule(access, "bash").filter(|_| !is_opaque) {
                let rule = PermissionRule::parse(Effect::Allow, &rule, RuleOrigin::Session, &PatternBase::default());
                self.session.rules.push(Arc::new(rule.unwrap()));
            }
        }
        (usize::from(verdict != Verdict::Allow), usize::from(in_session != Verdict::Allow))
    }
}

/// The rows of a part with the answers of today.
fn counted(user: &mut User, part: usize) -> String {
    rows(part).iter().fold(String::new(), |mut text, Row { before, line }| {
        let (fresh, session) = user.answers(line);
        writeln!(text, "{before}   {fresh} {session} | {line}").unwrap();
        text
    })
}

#[test]
fn ordinary_lines_need_fewer_answers_and_every_look_alike_needs_one() {
    let mut user = User::new();
    let parts: Vec<&str> = FIXTURE.split("\n\n").collect();
    for (part, title) in [(1, "# Ordinary command lines of coding agents"), (2, "# Look-alikes")] {
        let expected = parts[part].trim_end();
        assert!(expected.starts_with(title));
        let counted = counted(&mut user, part);
        let heading = expected.lines().next().unwrap();
        assert_eq!(format!("{heading}\n{}", counted.trim_end()), expected, "counted:\n{counted}");
    }
    let fresh = User::new();
    for Row { line, .. } in rows(2) {
        assert_ne!(fresh.decided(&fresh.fresh, line).0, Verdict::Allow, "{line}");
    }
}
