use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{
    sync::{Arc, LazyLock},
    time::Instant,
};
use toolstead_domain::{
    Caller, Category, ClientProfile, CommandAccess, Decision, Effect, PendingDefinitionChange, PermissionPolicy,
    PermissionRule, Principal, ServerName, SilentCaller, Tool, ToolCall, ToolName, permission::rule::RuleOrigin,
    testing::samples,
};

/// A call about which is asked, with what a request borrows.
pub(crate) struct Asked {
    pub(crate) call: ToolCall,
    pub(crate) accesses: Vec<Access>,
    pub(crate) parts: Vec<ApprovalPart>,
    pub(crate) references: Vec<String>,
    pub(crate) preview: Option<String>,
    pub(crate) client: ClientProfile,
    pub(crate) caller: Arc<dyn Caller>,
    pub(crate) within: Option<Tool>,
    pub(crate) agent: Option<&'static str>,
    decision: Decision,
}

impl Asked {
    /// Returns a call with these arguments, each access of which needs approval and can be approved for any scope. None
    /// is a command that only reads.
    pub(crate) fn about(arguments: Value, accesses: Vec<Access>) -> Self {
        let call = samples::call(1, samples::tool("write_file"), arguments);
        let decision = PermissionPolicy::default().decide(&call.tool, &call.arguments, &[Access::Send("x".into())]);
        let scopes =
            || ApprovalScope::ALL.iter().copied().filter(|scope| *scope != ApprovalScope::ReadOnlyCommands).collect();
        let part = |access: &Access| ApprovalPart {
            access: Some(access.clone()),
            cause: Cause::Default("changes to files need approval by default"),
            rule: access.path().map(|path| format!("Write(/{})", path.real.display())),
            scopes: scopes(),
        };
        let parts = accesses.iter().map(part).collect();
        let client = ClientProfile::without_protocol("test");
        Self {
            call,
            accesses,
            parts,
            references: Vec::new(),
            preview: None,
            client,
            caller: Arc::new(SilentCaller),
            within: None,
            agent: None,
            decision,
        }
    }

    pub(crate) fn request(&self) -> ApprovalRequest<'_> {
        static PRINCIPAL: LazyLock<Principal> = LazyLock::new(Principal::local);
        ApprovalRequest {
            call: &self.call,
            references: &self.references,
            within: self.within.as_ref(),
            agent: self.agent,
            principal: &PRINCIPAL,
            preview: self.preview.as_deref(),
            accesses: &self.accesses,
            decision: &self.decision,
            parts: &self.parts,
            client: &self.client,
            caller: self.caller.as_ref(),
            deadline: Instant::now(),
        }
    }
}

/// A call of two commands, one of which only reads, with the scopes of such a question.
pub(crate) fn asked_about_reading() -> Asked {
    let command = |line: &str| Access::RunCommand(CommandAccess::program(line.split(' ')));
    let mut asked = Asked::about(json!({}), vec![command("make lint"), command("cat a.txt")]);
    for (part, rule) in asked.parts.iter_mut().zip(["Bash(make lint)", "Bash(cat a.txt)"]) {
        part.cause = Cause::Default("commands need approval by default");
        part.rule = Some(rule.into());
        part.scopes = vec![ApprovalScope::Once, ApprovalScope::Session, ApprovalScope::ReadOnlyCommands];
    }
    asked
}

/// A call of a server's tool whose definition changed by this number of lines.
pub(crate) fn asked_about_definition(lines: usize) -> Asked {
    let source = ToolSource::McpServer { server: ServerName::parse("notes").unwrap(), tool: "search".into() };
    let definition = json!({"inputSchema": {"type": "object"}}).as_object().unwrap().clone();
    let mut tool = Tool::new(ToolName::parse("mcp__notes__search").unwrap(), definition, Category::Utility, source);
    let shown: String = (1..=lines).map(|number| format!("+line {number}\n")).collect();
    let diff = format!("--- search (approved)\n+++ search (offered)\n@@ description @@\n{shown}");
    let reason = "its definition changed since it was approved (text, schema widened)".to_owned();
    let pending = PendingDefinitionChange { reason: reason.clone(), diff: diff.clone(), number: 2, is_withheld: false };
    tool.pending = Some(Arc::new(pending));
    let mut asked = Asked::about(json!({"query": "q".repeat(60)}), Vec::new());
    asked.call.tool = Arc::new(tool);
    let cause = Cause::Definition(reason);
    asked.parts = vec![ApprovalPart { access: None, cause, rule: None, scopes: vec![ApprovalScope::Once] }];
    asked.preview = Some(diff);
    asked
}

pub(crate) fn write(path: &str) -> Access {
    Access::WritePath(AccessPath::plain(path))
}

fn question(asked: &Asked) -> ApprovalQuestion {
    ApprovalQuestion::of(&asked.request()).unwrap()
}

#[test]
fn an_approval_question_omits_arguments_that_equal_their_defaults() {
    let schema = json!({"properties": {"n": {"default": 1}, "o": {"default": {}}, "path": {}}});
    let definition = json!({"description": "x", "inputSchema": schema}).as_object().unwrap().clone();
    let mut asked = Asked::about(json!({"path": "a", "n": 1, "o": {"deep": true}}), vec![write("/w/a")]);
    let tool = &asked.call.tool;
    asked.call.tool = Arc::new(Tool::new(tool.name().clone(), definition, tool.category, tool.source().clone()));
    assert_eq!(question(&asked).facts, [r#"With `path`: `"a"`"#, r#"With `o`: `{"deep":true}`"#]);
}

#[test]
fn a_question_about_one_file_does_not_mention_paths_below_it() {
    let folder = tempfile::tempdir().unwrap();
    let (file, new) = (folder.path().join("a.txt"), folder.path().join("b.txt"));
    std::fs::write(&file, "x").unwrap();
    for (path, preview, expected) in [(&*file, None, false), (&*new, Some("+x"), false), (folder.path(), None, true)] {
        let asked = Asked {
            preview: preview.map(str::to_owned),
            ..Asked::about(json!({}), vec![write(path.to_str().unwrap())])
        };
        let covers = question(&asked).rows.remove(0).covers.unwrap();
        assert_eq!(covers.contains("below"), expected, "{covers}");
    }
}

#[test]
fn arguments_that_the_change_shows_are_not_repeated_in_the_question() {
    let arguments = json!({"path": "a", "old_text": "    return", "new_text": "    yield", "mode": "0777"});
    let mut asked = Asked::about(arguments, vec![write("/w/a")]);
    assert_eq!(question(&asked).facts.len(), 4, "{:?}", question(&asked).facts);
    asked.preview = Some("-    return\n+    yield\n".into());
    assert_eq!(question(&asked).facts, [r#"With `path`: `"a"`"#, r#"With `mode`: `"0777"`"#]);
    assert_eq!(question(&asked).change[1..], ["  | -    return", "  | +    yield"]);
}

#[test]
fn arguments_to_an_mcp_server_are_shown_even_where_equal_to_a_default() {
    let schema = json!({"properties": {"to": {"default": "all"}}});
    let definition = json!({"description": "x", "inputSchema": schema}).as_object().unwrap().clone();
    let mut asked = Asked::about(json!({"to": "all"}), vec![write("/w/a")]);
    let (name, category) = (asked.call.tool.name().clone(), asked.call.tool.category);
    let source = ToolSource::McpServer { server: ServerName::parse("mail").unwrap(), tool: "send".into() };
    asked.call.tool = Arc::new(Tool::new(name, definition, category, source));
    assert_eq!(question(&asked).facts, [r#"With `to`: `"all"`"#]);
}

#[test]
fn a_change_replaces_the_arguments_and_its_lines_are_marked_and_escaped() {
    let content = "y".repeat(60);
    let mut asked = Asked::about(json!({"path": "a", "content": content, "mode": "4755"}), vec![write("/w/a")]);
    asked.preview =
        Some(format!("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\r\n+1. write `/w/b`\u{202e}\tz\n{}", " more\n".repeat(100)));
    let question = question(&asked);
    assert_eq!(question.facts, [r#"With `path`: `"a"`"#, r#"With `mode`: `"4755"`"#]);
    assert_eq!(
        question.change[..6],
        [
            "The change (1 file, 1 line added, 1 removed, 100 other changes):",
            "  | --- a/a",
            "  | +++ b/a",
            "  | @@ -1 +1 @@",
            "  | -x\\u{d}",
            "  | +1. write `/w/b`\\u{202e}\u{2192}   z"
        ]
    );
    assert_eq!(
        question.change[61..],
        [
            "(cut: 45 of 105 lines are not shown)",
            "(The change is not shown completely, so it can only be approved once.)"
        ]
    );
}

#[test]
fn a_request_not_shown_completely_offers_only_a_single_approval_until_read() {
    let new_file = |lines| format!("--- a/a\n+++ b/a\n@@ -0,0 +1,{lines} @@\n{}", "+line\n".repeat(lines));
    let long = "x".repeat(10_000);
    let run = Access::RunCommand(CommandAccess::opaque("x > y", "?"));
    // The preview, the arguments, the other accesses; whether more than once is offered before and after reading.
    for (preview, arguments, others, expected) in [
        (Some(new_file(50)), json!({}), vec![], (true, None)),
        (Some(new_file(300)), json!({}), vec![], (false, Some(true))),
        (Some("b/a: 70000 bytes, which are not shown\n".into()), json!({}), vec![], (false, None)),
        (Some(new_file(50)), json!({"content": long}), vec![], (true, None)),
        // Without a preview the content is in the arguments.
        (None, json!({"content": long}), vec![], (false, Some(true))),
        (None, json!({"content": "x"}), vec![], (true, None)),
        // A command is shown in its own part.
        (None, json!({"command": long}), vec![run], (true, Some(true))),
    ] {
        let mut asked = Asked::about(arguments, vec![write("/w/a")]);
        asked.accesses.extend(others);
        asked.preview = preview;
        let question = question(&asked);
        let offers_more = |question: &ApprovalQuestion| question.rows[0].scopes.len() > 1;
        let after_reading = ApprovalQuestion::after_reading(&asked.request()).unwrap();
        let after_reading = question.full_text.as_ref().map(|_| offers_more(&after_reading));
        assert_eq!((offers_more(&question), after_reading), expected, "{:?}", question.change.last());
    }
}

#[test]
fn the_full_text_of_a_question_cuts_nothing() {
    let lines: String = (0..300).map(|number| format!("+line {number}\u{202e}\n")).collect();
    let mut asked = Asked::about(json!({"path": "a"}), vec![write(&format!("/w/{}", "x".repeat(9_000)))]);
    asked.preview = Some(format!("--- a/a\n+++ b/a\n@@ -0,0 +1,300 @@\n{lines}"));
    let text = question(&asked).full_text.unwrap();
    assert_eq!(text[0], "May the tool `write_file` run?");
    assert_eq!(text[1].chars().filter(|c| *c == 'x').count(), 9_000);
    assert_eq!(text.last().unwrap(), "  | +line 299\\u{202e}");
    assert_eq!(text.iter().filter(|line| line.starts_with("  | +line")).count(), 300);
}

#[test]
fn a_definition_that_is_not_shown_completely_cannot_be_approved_before_it_was_read() {
    let short = question(&asked_about_definition(3));
    assert_eq!(short.rows[0].scopes, [ApprovalScope::Once]);
    assert_eq!(short.change[0], "The change of its definition (6 lines):");
    // The difference contains no arguments, so they are facts.
    assert_eq!(short.facts, [format!("With `query`: `\"{}\"`", "q".repeat(60))]);
    let asked = asked_about_definition(300);
    let long = question(&asked);
    assert_eq!(long.rows[0].scopes, [], "no answer approves it");
    let withheld = "(The definition is not shown completely, so it cannot be approved before all of it was viewed. \
        `toolstead servers diff notes` shows all of it, and `toolstead servers approve notes` approves it.)";
    let cut = "(cut: 243 of 303 lines are not shown)";
    assert_eq!(long.change[long.change.len() - 2..], [cut, withheld]);
    let full = long.full_text.unwrap();
    assert!((1..=300).all(|number| full.contains(&format!("  | +line {number}"))), "{full:?}");
    let read = ApprovalQuestion::after_reading(&asked.request()).unwrap();
    assert_eq!(read.rows[0].scopes, [ApprovalScope::Once]);
}

#[test]
fn a_question_about_a_nested_call_names_the_calling_tool_or_agent() {
    let within = Some(samples::tool("many"));
    let mut asked = Asked { within, ..Asked::about(json!({}), vec![write("/w/a")]) };
    assert_eq!(question(&asked).heading, "May the tool `write_file` run, called by the tool `many`?");
    asked.agent = Some("review`er");
    assert_eq!(question(&asked).heading, "May the tool `write_file` run, called by the agent `review\\u{60}er`?");
}

#[test]
fn an_approval_question_states_the_access_its_reason_and_what_an_approval_covers() {
    let mut asked = Asked::about(
        json!({"path": "a", "description": "store the notes"}),
        vec![write("/w/a"), Access::Send("a@b.c".into()), Access::ReadPath(AccessPath::plain("/w/b").whole_tree())],
    );
    asked.parts.truncate(2);
    asked.parts[1].scopes.truncate(2);
    let origin = RuleOrigin::File("/etc/x.toml".into(), 3);
    let rule = PermissionRule::parse(Effect::Ask, "write_file", origin, &Default::default()).unwrap();
    let (cause, scopes) = (Cause::Rule(Arc::new(rule)), vec![ApprovalScope::Once]);
    asked.parts.push(ApprovalPart { access: None, cause, rule: None, scopes });
    insta::assert_debug_snapshot!(question(&asked), @r#"
    ApprovalQuestion {
        heading: "May the tool `write_file` run?",
        rows: [
            ApprovalPartRow {
                what: "write `/w/a`",
                why: "changes to files need approval by default",
                covers: Some(
                    "the rule `Write(//w/a)`, and everything below it",
                ),
                scopes: [
                    Once,
                    Run,
                    Session,
                    Project,
                    Always,
                ],
            },
            ApprovalPartRow {
                what: "send to `a@b.c`",
                why: "changes to files need approval by default",
                covers: Some(
                    "this tool with exactly these arguments",
                ),
                scopes: [
                    Once,
                    Run,
                ],
            },
            ApprovalPartRow {
                what: "call the tool at all",
                why: "the ask rule `write_file` in `/etc/x.toml:3`",
                covers: None,
                scopes: [
                    Once,
                ],
            },
        ],
        facts: [
            "The model says: `store the notes`",
            "With `path`: `\"a\"`",
            "With `description`: `\"store the notes\"`",
            "Allowed already: read `/w/b` and everything below",
        ],
        change: [],
        full_text: None,
    }
    "#);
}

#[test]
fn a_question_states_which_other_commands_the_offered_rule_allows() {
    for (rule, expected) in [
        ("Bash(git log *)", "the rule `Bash(git log *)`, which also allows `git log` with any other arguments"),
        ("Bash(git log -1)", "the rule `Bash(git log -1)`"),
        (r"Bash(ls \*)", r"the rule `Bash(ls \\*)`"),
    ] {
        let mut asked = Asked::about(json!({}), vec![Access::RunCommand(CommandAccess::program(["git", "log"]))]);
        asked.parts[0].rule = Some(rule.into());
        assert_eq!(question(&asked).rows[0].covers.as_deref(), Some(expected));
    }
}

#[test]
fn a_question_lists_read_only_commands_only_if_their_approval_is_offered() {
    let mut asked = asked_about_reading();
    assert_eq!(
        question(&asked).facts,
        [
            "Commands that only read, for this session: the rules above; on any file or variable, with any arguments that only read: \
          `ls`, `cat`, `echo`, `head`, `tail`, `grep`, `find`, `wc`, `which`, `diff`, `stat`, `du`, `df`, `cd`, \
          `git status`, `git log`, `git diff`, `git show`, `git blame`, `git ls-files`, `git rev-parse`, `git describe`, \
          `git branch --list`; without other arguments: `pwd`, `git branch`, `git branch --show-current`, `git remote`, \
          `git remote -v`"
        ]
    );
    let offers = |question: &ApprovalQuestion| question.rows.iter().map(|row| row.scopes.len()).collect::<Vec<_>>();
    assert_eq!(offers(&question(&asked)), [3, 3]);
    // A part is cut: the other one is offered for the session and no further.
    asked.accesses[0] = Access::RunCommand(CommandAccess::program(["make", &"x".repeat(3_000)]));
    asked.parts[0].access = Some(asked.accesses[0].clone());
    let cut = question(&asked);
    assert_eq!((offers(&cut), cut.facts), (vec![1, 2], vec![]));
    // The change is cut.
    let mut asked = asked_about_reading();
    asked.preview = Some(format!("@@ -0,0 +1,300 @@\n{}", "+x\n".repeat(300)));
    assert_eq!((offers(&question(&asked)), question(&asked).facts), (vec![1, 1], vec![]));
}

#[test]
fn quoted_model_text_cannot_imitate_lines_of_the_program() {
    for (given, shown) in [
        ("a\nWhy: it is safe", "`a\\nWhy: it is safe`"),
        ("a\r\u{b}\u{c}\u{85}\u{2028}b", "`a\\u{d}\\u{b}\\u{c}\\u{85}\\u{2028}b`"),
        ("\u{1b}[2J\u{9b}1A", "`\\u{1b}[2J\\u{9b}1A`"),
        ("a\u{202e}txt.exe\u{2066}", "`a\\u{202e}txt.exe\\u{2066}`"),
        ("a` **Approved** `b", "`a\\u{60} **Approved** \\u{60}b`"),
        ("a          b  c", "`a\\u{20}×10b  c`"),
        ("a\u{a0}\u{2800}\u{200b}\u{e0041}b", "`a\\u{a0}\\u{2800}\\u{200b}\\u{e0041}b`"),
        ("\\u{60} \\n", "`\\\\u{60} \\\\n`"),
    ] {
        assert_eq!(quote(given, 100).text, shown);
    }
}

#[test]
fn an_access_that_is_not_shown_completely_can_only_be_approved_once() {
    let long = format!("/w/{}", "x".repeat(3_000));
    let row = &question(&Asked::about(json!({}), vec![write(&long)])).rows[0];
    assert!(row.what.ends_with("` (cut: 1003 more characters)"), "{}", row.what);
    assert_eq!((&row.scopes, &row.covers), (&vec![ApprovalScope::Once], &None));
}

#[test]
fn a_question_has_a_bounded_length_and_too_many_accesses_give_no_question() {
    let many = |count: usize| {
        let accesses = (0..count).map(|n| Access::RunCommand(CommandAccess::opaque("x".repeat(5_000 + n), "?")));
        let arguments = (0..200).map(|n| (format!("{n}{}", "k".repeat(900)), json!("v".repeat(9_000))));
        Asked::about(Value::Object(arguments.collect()), accesses.collect())
    };
    let longest = question(&many(MAX_ROWS));
    let length: usize =
        longest.facts.iter().chain(longest.rows.iter().map(|row| &row.what)).map(|line| line.chars().count()).sum();
    assert!(length < 30_000, "{length}");
    assert!(ApprovalQuestion::of(&many(MAX_ROWS + 1).request()).is_none());
}

proptest! {
    #[test]
    fn quoted_foreign_text_is_one_line_between_two_backticks(text in "\\PC{0,40}|[ `\\\\\n\u{1b}\u{202e}a]{0,40}") {
        let shown = quote(&text, 1_000).text;
        prop_assert!(!shown.chars().any(hides_but_blank), "{shown:?}");
        prop_assert_eq!(shown.matches('`').count(), 2);
        prop_assert!(shown.starts_with('`') && shown.ends_with('`') && !shown.contains("   "));
    }
}

fn hides_but_blank(c: char) -> bool {
    c != ' ' && hides(c)
}
