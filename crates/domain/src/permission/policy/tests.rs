//! Decisions, over rules, modes, roots and defaults.

mod requests;

use super::*;
use crate::{
    access::{BuiltInAllowRule, CommandAccess},
    alias::{Alias, Dialect},
    permission::{path_pattern::PatternContext, rule::RuleOrigin},
    server_name::ServerName,
    suggestion::{DefaultSuggestions, Suggestion, SuggestionFormatter},
    tool_name::ToolName,
};
use proptest::prelude::*;
use serde_json::json;

fn policy(mode: PermissionMode, rules: &[(Effect, &str)]) -> PermissionPolicy {
    let parse = |(effect, text): &(Effect, &str)| {
        Arc::new(PermissionRule::parse(*effect, text, RuleOrigin::CommandLine, &PatternContext::default()).unwrap())
    };
    let roots =
        WorkspaceRoots { write: vec!["/w".into()], read_only: vec!["/ro".into()], forbidden: vec!["/w/data".into()] };
    PermissionPolicy { rules: rules.iter().map(parse).collect(), mode, roots, ..Default::default() }
}

fn tool(name: &str) -> Tool {
    let (source, category) = match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        Some((server, tool)) => {
            (ToolSource::McpServer { server: ServerName::parse(server).unwrap(), tool: tool.into() }, Category::Mcp)
        }
        None => (ToolSource::BuiltIn, Category::File),
    };
    let mut tool = Tool::new(ToolName::parse(name).unwrap(), Map::new(), category, source);
    tool.takes_command_lines = name == "bash";
    tool
}

/// Accesses as texts: `read /w/a`, `write /w/a`, `run ls -l`, `run rm x naming /w/x freely /tmp/x`, `opaque $x`, `host x`, `up`, `send x`, `agent x`, `offer x`, `resource x`, `prompt x`, or nothing.
fn accesses(text: &str) -> Vec<Access> {
    let path = |path: &str| match path.split_once("->") {
        Some((lexical, real)) => AccessPath { lexical: lexical.into(), real: real.into(), tree: false },
        None => AccessPath::plain(path),
    };
    let one = |text: &str| match text.split_once(' ') {
        Some(("read", rest)) => Access::ReadPath(path(rest)),
        Some(("write", rest)) => Access::WritePath(path(rest)),
        Some(("run", rest)) => {
            let named = |text: Option<&str>| text.map(|text| Access::WritePath(path(text))).into_iter().collect();
            let split = |text: &'_ str, at: &str| {
                let (before, behind) = text.split_once(at)?;
                Some((before.to_owned(), behind.to_owned()))
            };
            let (rest, free) =
                split(rest, " freely ").map_or((rest.to_owned(), None), |(rest, path)| (rest, Some(path)));
            let (words, operand) =
                split(&rest, " naming ").map_or((rest.clone(), None), |(words, path)| (words, Some(path)));
            let (operands, free) = (named(operand.as_deref()), named(free.as_deref()));
            let program = words.split(' ').next();
            Access::RunCommand(CommandAccess {
                operands,
                free,
                only_changes_files: matches!(program, Some("mkdir" | "touch" | "rm")),
                ..CommandAccess::program(words.split(' '))
            })
        }
        Some(("opaque", rest)) => Access::RunCommand(CommandAccess::opaque(rest, "it holds a variable")),
        Some(("host", rest)) => Access::ReachHost(rest.into()),
        Some(("send", rest)) => Access::Send(rest.into()),
        Some(("agent", rest)) => Access::RunAgent(rest.into()),
        Some(("resource", rest)) => {
            Access::ReadResource { server: ServerName::parse("git").unwrap(), uri: rest.into() }
        }
        Some(("prompt", rest)) => Access::GetPrompt { server: ServerName::parse("git").unwrap(), prompt: rest.into() },
        Some(("offer", rest)) => Access::OfferTools(rest.into()),
        None if text == "up" => Access::CallUpstream { server: ServerName::parse("git").unwrap(), tool: "t".into() },
        _ => panic!("`{text}` is no access"),
    };
    text.split(", ").filter(|part| !part.is_empty()).map(one).collect()
}

#[track_caller]
fn check(rules: &[(Effect, &str)], call: &str, touches: &str, expected: Verdict) {
    check_mode(PermissionMode::Default, rules, call, touches, expected);
}

#[track_caller]
fn check_mode(mode: PermissionMode, rules: &[(Effect, &str)], call: &str, touches: &str, expected: Verdict) {
    let decision = policy(mode, rules).decide(&tool(call), &Map::new(), &accesses(touches));
    assert_eq!(decision.verdict, expected, "{rules:?} {call} {touches}: {}", decision.reason());
}

use Effect::{Allow as A, Ask as Q, Deny as D};
use Verdict::{Allow, Ask, Deny};

#[test]
fn by_default_only_reads_within_the_roots_are_allowed_without_approval() {
    check(&[], "echo", "", Allow);
    check(&[], "read_file", "read /w/a", Allow);
    check(&[], "read_file", "read /ro/a", Allow);
    check(&[], "write_file", "write /w/a", Ask);
    check(&[], "write_file", "write /ro/a", Deny);
    check(&[], "read_file", "read /etc/passwd", Deny);
    check(&[], "read_file", "read /w/data/token", Deny);
    check(&[], "bash", "run ls", Ask);
    check(&[], "web_fetch", "host example.com", Ask);
    check(&[], "gmail_send", "send a@example.com", Ask);
    check(&[], "mcp__git__t", "up", Ask);
}

#[test]
fn deny_wins_over_ask_over_allow() {
    check(&[(A, "Write"), (Q, "Write(secret/**)"), (D, "Write(secret/deep/**)")], "write_file", "write /w/a", Allow);
    check(&[(A, "Write"), (Q, "Write(secret/**)")], "write_file", "write /w/secret/a", Ask);
    check(&[(A, "Write"), (Q, "Write"), (D, "Write(secret/**)")], "write_file", "write /w/secret/a", Deny);
}

#[test]
fn a_path_rule_applies_to_all_tools_and_a_tool_rule_to_its_tool_only() {
    check(&[(D, "Read(.env)")], "grep", "read /w/x/.env", Deny);
    check(&[(D, "Read(.env)")], "write_file", "write /w/x/.env", Deny);
    check(&[(D, "Edit(.env)")], "read_file", "read /w/x/.env", Allow);
    check(&[(A, "Edit(src/**)")], "write_file", "write /w/src/a", Allow);
    check(&[(A, "Write(src/*)")], "edit_file", "read /w/src/a/b, write /w/src/a/b", Allow);
    check(&[(A, "Edit(src/**)")], "write_file", "write /w/a/src/x", Ask);
    check(&[(A, "write_file")], "write_file", "write /w/a", Allow);
    check(&[(A, "write_file")], "edit_file", "write /w/a", Ask);
}

#[test]
fn a_call_is_allowed_only_if_rules_cover_every_access_and_both_path_forms() {
    check(&[(A, "Write(src/**)")], "move", "write /w/src/a, write /w/b", Ask);
    check(&[(A, "Write(src/**)")], "write_file", "write /w/src/a->/w/b", Ask);
    check(&[(D, "Read(secret/**)")], "read_file", "read /w/a->/w/secret/k", Deny);
    check(&[], "read_file", "read /w/link->/etc/passwd", Deny);
}

#[test]
fn rules_match_tools_of_mcp_servers_by_server_and_tool_name() {
    check(&[(A, "mcp__git")], "mcp__git__t", "up", Allow);
    check(&[(A, "mcp__git__*")], "mcp__git__t", "up", Allow);
    check(&[(A, "mcp__git__t")], "mcp__git__t", "up", Allow);
    check(&[(A, "mcp__git__u")], "mcp__git__t", "up", Ask);
    check(&[(A, "mcp__git"), (D, "mcp__*__t")], "mcp__git__t", "up", Deny);
    check(&[(D, "mcp__*")], "mcp__git__t", "up", Deny);
    check(&[(A, "mcp__git"), (D, "*")], "echo", "", Deny);
}

#[test]
fn deny_and_ask_rules_apply_to_parameter_values() {
    let policy = policy(PermissionMode::Default, &[(D, "mcp__git__t(opts.force:true)"), (Q, "echo(message:rm *)")]);
    let decide = |name: &str, arguments: Value| policy.decide(&tool(name), arguments.as_object().unwrap(), &[]).verdict;
    assert_eq!(decide("mcp__git__t", json!({"opts": {"force": true}})), Deny);
    assert_eq!(decide("mcp__git__t", json!({})), Allow);
    assert_eq!(decide("echo", json!({"message": "rm -rf"})), Ask);
}

#[test]
fn sending_requires_approval_despite_allow_rules() {
    check(&[(A, "gmail_send")], "gmail_send", "send a@example.com", Ask);
    check(&[(A, "mcp__git__*")], "mcp__git__t", "up, send a@example.com", Ask);
}

#[test]
fn rules_on_agents_apply_under_the_names_agent_and_task() {
    check(&[], "subagent", "agent reviewer", Allow);
    for head in ["Agent", "Task"] {
        let named = |effect, spec: &str| (effect, format!("{head}({spec})"));
        for (rules, agent, expected) in [
            (vec![named(D, "reviewer")], "reviewer", Deny),
            (vec![named(D, "reviewer")], "reviewer2", Allow),
            (vec![named(Q, "rev*")], "reviewer", Ask),
            (vec![named(D, "git:*")], "git:commit", Deny),
            (vec![(D, head.to_owned())], "anyone", Deny),
            (vec![(Q, head.to_owned()), named(A, "reviewer")], "reviewer", Ask),
            (vec![named(A, "reviewer"), named(D, "rev*")], "reviewer", Deny),
        ] {
            let rules: Vec<(Effect, &str)> = rules.iter().map(|(effect, text)| (*effect, text.as_str())).collect();
            check(&rules, "subagent", &format!("agent {agent}"), expected);
        }
    }
    check_mode(PermissionMode::Plan, &[], "subagent", "agent reviewer", Allow);
    check_mode(PermissionMode::Plan, &[(D, "Agent(reviewer)")], "subagent", "agent reviewer", Deny);
}

#[test]
fn a_deny_rule_on_all_agents_hides_a_tool_with_an_agent_alias() {
    let mut subagent = tool("subagent");
    let is_hidden = |tool: &Tool, rule: &str| !policy(PermissionMode::Default, &[(D, rule)]).advertises(tool);
    assert!(!is_hidden(&subagent, "Agent"));
    subagent.aliases = vec![Alias { name: "Task", dialect: Dialect("other"), rewrites: &[], adapter: None }];
    assert!(is_hidden(&subagent, "Agent") && is_hidden(&subagent, "Task") && is_hidden(&subagent, "subagent"));
    assert!(!is_hidden(&subagent, "Agent(reviewer)") && !is_hidden(&subagent, "Tools"));
}

#[test]
fn rules_decide_which_tools_are_offered_to_a_program() {
    for (rules, offered, expected) in [
        (&[][..], "grep", Ask),
        (&[(A, "Tools(grep)")], "grep", Allow),
        (&[(A, "Tools(grep)")], "glob", Ask),
        (&[(A, "Tools(grep)")], "gr*", Ask),
        (&[(A, "Tools(mcp__git__*)")], "mcp__git__push", Allow),
        (&[(A, "Tools(mcp__git__*)")], "mcp__git__p*", Allow),
        (&[(A, "Tools(mcp__git__*)")], "mcp__*", Ask),
        (&[(A, "Tools")], "*", Allow),
        (&[(A, "Tools"), (Q, "Tools(grep)")], "g*", Ask),
        (&[(A, "Tools"), (Q, "Tools(grep)")], "r*", Allow),
        // A pattern leaves room for what is denied.
        (&[(A, "Tools"), (D, "Tools(mcp__git__push)")], "mcp__*", Deny),
        (&[(A, "Tools"), (D, "Tools(mcp__*__push)")], "mcp__git__*", Deny),
        (&[(A, "Tools"), (D, "Tools(mcp__git__push)")], "mcp__git__pull", Allow),
        // Programs are not offered tools that no call may use. A pattern that can match such a tool just does not
        // include it.
        (&[(A, "Tools"), (D, "grep")], "grep", Deny),
        (&[(A, "Tools"), (D, "grep")], "gr*", Allow),
        (&[(A, "Tools"), (D, "mcp__git")], "mcp__git__push", Deny),
        (&[(A, "Tools"), (D, "mcp__git")], "mcp__git__p*", Deny),
        (&[(A, "Tools"), (D, "mcp__git")], "mcp__*", Allow),
        (&[(A, "Tools"), (D, "*_grep")], "grep", Allow),
        // Such rules are about its calls, which are judged one by one.
        (&[(A, "Tools"), (Q, "grep")], "grep", Allow),
        (&[(A, "Tools"), (D, "grep(secret/**)")], "grep", Allow),
        (&[(A, "grep")], "grep", Ask),
    ] {
        check(rules, "bash", &format!("offer {offered}"), expected);
    }
    check_mode(PermissionMode::Plan, &[(A, "Tools")], "bash", "offer grep", Deny);
    check_mode(PermissionMode::DontAsk, &[], "bash", "offer grep", Deny);
}

#[test]
fn the_narrowest_rule_names_one_agent_or_the_offered_tools() {
    for (touch, expected) in [
        ("agent reviewer", Some("Agent(reviewer)")),
        ("agent git:commit", Some("Agent(git:commit)")),
        ("agent rev*", None),
        ("agent *", None),
        ("agent a b", None),
        ("agent a)", None),
        ("offer grep", Some("Tools(grep)")),
        ("offer mcp__git__*", Some("Tools(mcp__git__*)")),
        ("offer *", Some("Tools(*)")),
        ("offer a,b", None),
        ("send a@example.com", None),
    ] {
        let rule = crate::permission::decision::narrowest_rule(&accesses(touch)[0], "bash");
        assert_eq!(rule.as_deref(), expected, "{touch}");
    }
}

#[test]
fn command_rules_match_by_words_and_apply_to_each_command_of_a_line() {
    check(&[(A, "Bash(ls *)")], "bash", "run ls -l", Allow);
    check(&[(A, "Bash(ls *)")], "bash", "run lsof", Ask);
    check(&[(A, "bash(ls *)")], "bash", "run ls -l", Allow);
    check(&[(A, "bash(ls *)")], "git", "run ls -l", Ask);
    check(&[(A, "Bash(git *)")], "bash", "run git status, run rm -rf x", Ask);
    check(&[(A, "Bash(git *)"), (D, "Bash(rm *)")], "bash", "run git status, run rm -rf x", Deny);
    check(&[(A, "Bash")], "bash", "run ls -l", Allow);
    check(&[(D, "Bash")], "bash", "run ls -l", Deny);
    check(&[(A, "Bash"), (D, "Bash(rm *)")], "bash", "run ls -l", Allow);
    check(&[(A, "Bash"), (Q, "Bash(ls *)")], "bash", "run ls -l", Ask);
}

#[test]
fn rules_naming_a_tool_match_commands_only_if_the_tool_takes_command_lines() {
    let mut shell = tool("bash");
    shell.aliases = vec![Alias::new("async_cmd", Dialect("other"), &[])];
    let mut other = shell.clone();
    other.takes_command_lines = false;
    let verdict = |rules: &[(Effect, &str)], tool: &Tool, touches| {
        policy(PermissionMode::Default, rules).decide(tool, &Map::new(), &accesses(touches)).verdict
    };
    for name in ["bash", "async_cmd", "a*cmd", "*"] {
        let deny = format!("{name}(rm *)");
        assert_eq!(verdict(&[(A, "Bash"), (D, &deny)], &shell, "run rm x"), Deny, "{deny}");
        assert_eq!(verdict(&[(A, "Bash"), (D, &deny)], &shell, "run ls x"), Allow, "{deny}");
        assert_eq!(verdict(&[(A, "Bash"), (D, &deny)], &shell, "opaque $x"), Deny, "{deny}");
        assert_eq!(verdict(&[(A, "Bash"), (D, &deny)], &other, "run rm x"), Allow, "{deny}");
        // A rule that means nothing for the tool lets nothing of it pass.
        let broken = format!("{name}(psql -c \"drop *)");
        assert_eq!(verdict(&[(A, "Bash"), (D, &broken)], &shell, "run ls"), Deny, "{broken}");
        assert_eq!(verdict(&[(A, "Bash"), (D, &broken)], &other, "run ls"), Allow, "{broken}");
    }
    for name in ["bash", "async_cmd"] {
        assert_eq!(verdict(&[(A, &format!("{name}(ls *)"))], &shell, "run ls x"), Allow, "{name}");
        assert_eq!(verdict(&[(A, &format!("{name}(ls *)"))], &shell, "run rm x"), Ask, "{name}");
    }
    assert_eq!(verdict(&[(D, "bash(secret/**)")], &other, "read /w/secret/x"), Deny);
}

#[test]
fn an_opaque_command_ignores_allow_wildcards_and_matches_every_deny_and_ask_rule() {
    check(&[(A, "Bash(ls *)")], "bash", "opaque ls $x", Ask);
    check(&[(A, "Bash(ls $x)")], "bash", "opaque ls $x", Allow);
    check(&[(A, "Bash")], "bash", "opaque ls $x", Allow);
    check(&[(A, "Bash"), (D, "Bash(rm *)")], "bash", "opaque ls $x", Deny);
    check(&[(A, "Bash"), (Q, "Bash(rm *)")], "bash", "opaque ls $x", Ask);
    check_mode(PermissionMode::Bypass, &[(D, "Bash(rm *)")], "bash", "opaque ls $x", Deny);
}

#[test]
fn a_file_that_a_command_writes_to_needs_a_rule_of_its_own() {
    let echo = "run echo hi, write /w/x";
    check(&[(A, "Bash(echo *)")], "bash", echo, Ask);
    check(&[(A, "Bash(echo *)"), (A, "Edit(//w/x)")], "bash", echo, Allow);
    check(&[(A, "Bash(echo hi > x)")], "bash", echo, Ask);
    check(&[(A, "Bash(echo *)"), (A, "Edit(//etc/x)")], "bash", "run echo hi, write /etc/x", Deny);
    check(&[(D, "Bash(echo *)")], "bash", echo, Deny);
    check_mode(PermissionMode::AcceptEdits, &[(A, "Bash(echo *)")], "bash", echo, Allow);
}

#[test]
fn accept_edits_mode_allows_file_changing_commands_only_on_permitted_paths() {
    let accepted = |touches, verdict| check_mode(PermissionMode::AcceptEdits, &[], "bash", touches, verdict);
    accepted("run rm x naming /w/x", Allow);
    accepted("run mkdir a naming /w/a", Allow);
    accepted("run rm x naming /etc/x", Ask);
    accepted("run touch a naming /w/a freely /tmp/x", Allow);
    accepted("run touch /tmp/x freely /tmp/x", Allow);
    accepted("run touch a naming /etc/a freely /tmp/x", Ask);
    accepted("run make freely /tmp/x", Ask);
    check_mode(
        PermissionMode::AcceptEdits,
        &[(D, "Edit(//tmp/**)")],
        "bash",
        "run touch a naming /w/a freely /tmp/x",
        Deny,
    );
    accepted("run rm x", Ask);
    accepted("run dd of=x naming /w/x", Ask);
    accepted("run rm x naming /w/x, run make", Ask);
    accepted("opaque rm $x, write /w/x", Ask);
    check_mode(PermissionMode::AcceptEdits, &[(Q, "Bash(rm *)")], "bash", "run rm x naming /w/x", Ask);
    check_mode(PermissionMode::AcceptEdits, &[(D, "Edit(x)")], "bash", "run rm x naming /w/x", Deny);
    check_mode(PermissionMode::Default, &[], "bash", "run rm x naming /w/x", Ask);
}

#[test]
fn a_command_rule_covers_the_named_files_unless_a_path_rule_catches_them() {
    check(&[(A, "Bash(rm *)")], "bash", "run rm x naming /w/x", Allow);
    check(&[(A, "Bash(mkdir *)")], "bash", "run mkdir x naming /elsewhere/x", Allow);
    check(&[(A, "Bash(rm *)"), (D, "Edit(secret/**)")], "bash", "run rm secret/x naming /w/secret/x", Deny);
    check(&[(A, "Bash(rm *)"), (D, "Read(.env)")], "bash", "run rm .env naming /w/.env", Deny);
    check(&[(A, "Bash(rm *)"), (Q, "Write(src/**)")], "bash", "run rm src/x naming /w/src/x", Ask);
    check(&[(A, "Bash(rm *)"), (D, "Edit(secret/**)")], "bash", "run rm x naming /w/x", Allow);
}

#[test]
fn of_all_command_rules_only_a_bare_bash_rule_covers_redirect_targets() {
    let shell = Tool::new(ToolName::parse("bash").unwrap(), Map::new(), Category::Shell, ToolSource::BuiltIn);
    let verdict = |rules: &[(Effect, &str)], touches| {
        policy(PermissionMode::Default, rules).decide(&shell, &Map::new(), &accesses(touches)).verdict
    };
    let echo = "run echo hi, write /w/x";
    assert_eq!(verdict(&[(A, "Bash")], echo), Allow);
    assert_eq!(verdict(&[(A, "Bash(echo *)")], echo), Ask);
    assert_eq!(verdict(&[(A, "Bash(echo *)"), (A, "Edit(x)")], echo), Allow);
    assert_eq!(verdict(&[(A, "Bash"), (D, "Edit(x)")], echo), Deny);
    assert_eq!(verdict(&[(A, "Bash")], "run echo hi, write /elsewhere/x"), Deny);
    check(&[(A, "Bash")], "write_file", "write /w/x", Ask);
}

#[test]
fn a_write_rule_takes_effect_on_the_tool_that_writes() {
    // Claude Code reads `Write(src/*)` and never asks it.
    check(&[(A, "Write(src/*)")], "write_file", "write /w/src/a.rs", Allow);
    check(&[(D, "Write(src/*)")], "write_file", "write /w/src/deep/a.rs", Deny);
}

#[test]
fn a_call_of_an_unselected_tool_is_denied_and_the_tool_is_not_advertised() {
    for (choice, name, verdict) in [("glob", "bash", Deny), ("", "echo", Deny), ("echo", "echo", Allow)] {
        let mut policy = policy(PermissionMode::Bypass, &[]);
        policy.selection = ToolSelection::all().adjusted(choice).unwrap();
        let decision = policy.decide(&tool(name), &Map::new(), &[]);
        assert_eq!(decision.verdict, verdict, "{choice:?} {name}");
        assert_eq!(policy.advertises(&tool(name)), verdict == Allow, "{choice:?} {name}");
    }
    let decision =
        policy(PermissionMode::Bypass, &[(D, "bash")]).decide(&tool("bash"), &Map::new(), &accesses("run ls"));
    assert_eq!(decision.trace_json()[0]["rule"], "bash");
}

#[test]
fn the_trace_lists_every_part_with_its_verdict_and_cause() {
    let rules = [(A, "Bash(ls *)"), (D, "Bash(rm *)")];
    let decision = policy(PermissionMode::Default, &rules).decide(
        &tool("bash"),
        &Map::new(),
        &accesses("run ls -l, run rm x, write /w/a"),
    );
    assert_eq!(
        decision.trace_json(),
        json!([
            {"verdict": "allow", "part": "run ls -l", "cause": "the allow rule `Bash(ls *)` in the command line",
             "rule": "Bash(ls *)", "origin": "the command line"},
            {"verdict": "deny", "part": "run rm x", "cause": "the deny rule `Bash(rm *)` in the command line",
             "rule": "Bash(rm *)", "origin": "the command line"},
            {"verdict": "ask", "part": "write /w/a", "cause": "changes to files need approval by default"},
        ])
    );
    assert_eq!(decision.reason(), "the deny rule `Bash(rm *)` in the command line: to run rm x");
    assert_eq!(decision.more(), " Also: changes to files need approval by default: to write /w/a.");
    assert!(decision.suggestions("bash").is_empty(), "no rule allows what another denies");
}

#[test]
fn permission_modes_change_default_verdicts_but_never_lift_a_denial() {
    check_mode(PermissionMode::Plan, &[(A, "Write")], "write_file", "write /w/a", Deny);
    check_mode(PermissionMode::Plan, &[(Q, "Write")], "write_file", "write /w/a", Deny);
    check_mode(PermissionMode::Plan, &[], "read_file", "read /w/a", Allow);
    check_mode(PermissionMode::AcceptEdits, &[], "write_file", "write /w/a", Allow);
    check_mode(PermissionMode::AcceptEdits, &[], "mcp__git__t", "up", Ask);
    check_mode(PermissionMode::DontAsk, &[], "write_file", "write /w/a", Deny);
    check_mode(PermissionMode::Bypass, &[], "mcp__git__t", "up", Allow);
    check_mode(PermissionMode::Bypass, &[(Q, "mcp__git__t")], "mcp__git__t", "up", Ask);
    check_mode(PermissionMode::Bypass, &[(D, "mcp__git__t")], "mcp__git__t", "up", Deny);
    check_mode(PermissionMode::Bypass, &[], "read_file", "read /etc/passwd", Deny);
}

#[test]
fn exactly_the_tools_that_are_always_denied_are_not_advertised() {
    let mut policy = policy(PermissionMode::Default, &[(D, "mcp__git__t"), (D, "Read(secret)"), (Q, "echo")]);
    policy.selection = ToolSelection::all().adjusted("-glob").unwrap();
    for (name, advertised) in [("mcp__git__t", false), ("glob", false), ("read_file", true), ("echo", true)] {
        assert_eq!(policy.advertises(&tool(name)), advertised, "{name}");
        let verdict = policy.decide(&tool(name), &Map::new(), &[]).verdict;
        assert_eq!(verdict == Deny, !advertised, "{name}");
    }
}

#[test]
fn a_deny_rule_in_any_form_of_the_name_hides_the_tool_and_refuses_every_call() {
    for rule in ["mcp__git__t", "git__t", "mcp_git_t", "mcp_t", "mcp_git_*", "git__*"] {
        let policy = policy(PermissionMode::Default, &[(D, rule)]);
        let decision = policy.refusal_of_every_call(&tool("mcp__git__t"));
        assert_eq!(decision.map(|decision| decision.verdict), Some(Deny), "{rule}");
        assert!(!policy.advertises(&tool("mcp__git__t")) && policy.advertises(&tool("read_file")), "{rule}");
    }
}

#[test]
fn a_tool_is_hidden_if_its_only_kind_of_access_is_denied_entirely() {
    let shell = Tool::new(ToolName::parse("bash").unwrap(), Map::new(), Category::Shell, ToolSource::BuiltIn);
    for (rule, advertised) in [("Bash", false), ("Bash(rm *)", true), ("WebFetch", true), ("bash", false)] {
        assert_eq!(policy(PermissionMode::Default, &[(D, rule)]).advertises(&shell), advertised, "{rule}");
    }
}

#[test]
fn a_decision_reports_its_rule_with_origin_and_suggests_an_allow_rule() {
    let decision = policy(PermissionMode::Default, &[(D, "Read(.env)")]).decide(
        &tool("read_file"),
        &Map::new(),
        &accesses("read /w/.env"),
    );
    assert_eq!(decision.reason(), "the deny rule `Read(.env)` in the command line: to read /w/.env");
    let decision =
        policy(PermissionMode::Default, &[]).decide(&tool("write_file"), &Map::new(), &accesses("write /w/a"));
    let suggestion = decision.suggestion("write_file").unwrap();
    assert_eq!(suggestion, Suggestion::AllowRules(vec!["Write(//w/a)".into()]));
    assert_eq!(DefaultSuggestions.format(&suggestion).as_deref(), Some("To allow it, allow `Write(//w/a)`."));
    let allowed = policy(PermissionMode::Default, &[(A, "Write(//w/a)")]).decide(
        &tool("write_file"),
        &Map::new(),
        &accesses("write /w/a"),
    );
    assert_eq!(allowed.verdict, Allow, "the suggested rule works");
}

/// Returns the reason for a call of `bash` to which some rules apply; `waiting` rules are in a file that is not
/// trusted.
fn reason(mode: PermissionMode, rules: &[(Effect, &str)], waiting: &[&str], access: Access) -> String {
    let parse = |text: &&str| {
        let origin = RuleOrigin::File("/w/it's.toml".into(), 3);
        Arc::new(PermissionRule::parse(A, text, origin, &PatternContext::default()).unwrap())
    };
    let policy = PermissionPolicy { waiting: waiting.iter().map(parse).collect(), ..policy(mode, rules) };
    policy.decide(&tool("bash"), &Map::new(), &[access]).reason()
}

#[test]
fn the_reason_names_an_allow_rule_that_nearly_covers_the_access() {
    let exact = |line: &str| {
        let clarity = ParseConfidence::Exact("npx starts another program".into());
        Access::RunCommand(CommandAccess { clarity, ..CommandAccess::program(line.split(' ')) })
    };
    let said = reason(PermissionMode::Default, &[(A, "Bash(git *)"), (A, "Bash(npx *)")], &[], exact("npx tsc"));
    let expected = "; the allow rule `Bash(npx *)` in the command line does not cover it, because npx starts another \
                    program, and a wildcard never covers that";
    assert!(said.ends_with(expected), "{said}");
    let opaque = Access::RunCommand(CommandAccess::opaque("git $x", "it holds a variable"));
    let said = reason(PermissionMode::Default, &[(A, "Bash(git *)")], &[], opaque);
    assert!(
        said.ends_with("does not cover it, because it holds a variable, and a wildcard never covers that"),
        "{said}"
    );

    let plain = || Access::RunCommand(CommandAccess::program(["ls", "-l"]));
    let said = reason(PermissionMode::Default, &[], &["Bash(ls *)"], plain());
    let expected = "; the allow rule `Bash(ls *)` in /w/it's.toml:3 would cover it, but its file is not trusted";
    assert!(said.ends_with(expected), "{said}");

    let outside = || Access::WritePath(AccessPath::plain("/o/a"));
    let said = reason(PermissionMode::Default, &[(A, "Write"), (A, "Edit(//o/**)")], &[], outside());
    let expected = "; the allow rule `Edit(//o/**)` in the command line does not allow it, because rules apply only \
                    inside the roots";
    assert!(said.ends_with(expected), "{said}");

    for said in [
        reason(PermissionMode::Default, &[(A, "Bash(git *)")], &["Bash(git *)"], plain()),
        reason(PermissionMode::Default, &[(A, "Bash(npx tsc)")], &[], exact("npx tsc x")),
        reason(PermissionMode::Default, &[(A, "Bash(ls *)")], &["Bash(ls *)"], plain()),
        reason(PermissionMode::Default, &[(Q, "Bash(ls *)")], &["Bash(ls *)"], plain()),
        reason(PermissionMode::Default, &[(A, "Write")], &[], outside()),
    ] {
        assert!(!said.contains("; the allow rule"), "{said}");
    }
}

#[test]
fn a_rule_that_awaits_trust_does_not_affect_the_decision() {
    let rule = PermissionRule::parse(A, "Bash", RuleOrigin::CommandLine, &PatternContext::default()).unwrap();
    let policy = PermissionPolicy { waiting: vec![Arc::new(rule)], ..policy(PermissionMode::Default, &[]) };
    assert_eq!(policy.judge(&tool("bash"), &accesses("run ls")[0]).verdict, Ask);
}

#[test]
fn a_denial_by_the_dont_ask_mode_names_the_mode() {
    let write = || Access::WritePath(AccessPath::plain("/w/a"));
    let said = "; the mode `dont_ask` denies what would need approval";
    for rules in [&[][..], &[(Q, "Write")]] {
        assert!(reason(PermissionMode::DontAsk, rules, &[], write()).ends_with(said), "{rules:?}");
        assert!(!reason(PermissionMode::Default, rules, &[], write()).contains("dont_ask"), "{rules:?}");
    }
    assert!(!reason(PermissionMode::DontAsk, &[(D, "Write")], &[], write()).contains("dont_ask"));
}

#[test]
fn a_read_only_hint_allows_commands_without_approval_only_for_built_in_tools() {
    let mut definition = Map::new();
    definition.insert("annotations".into(), json!({"readOnlyHint": true}));
    let reading = |source| Tool::new(ToolName::parse("git").unwrap(), definition.clone(), Category::Shell, source);
    let verdict = |mode, rules: &[(Effect, &str)], source, touches: &str| {
        policy(mode, rules).decide(&reading(source), &Map::new(), &accesses(touches)).verdict
    };
    let run = "run git log, read /w";
    for mode in PermissionMode::ALL {
        assert_eq!(verdict(*mode, &[], ToolSource::BuiltIn, run), Allow, "{mode:?}");
        assert_eq!(verdict(*mode, &[(D, "Bash(git *)")], ToolSource::BuiltIn, run), Deny, "{mode:?}");
    }
    assert_eq!(verdict(PermissionMode::Plan, &[(Q, "Bash(git *)")], ToolSource::BuiltIn, run), Ask);
    assert_eq!(verdict(PermissionMode::Plan, &[], ToolSource::BuiltIn, "run git log, write /w/a"), Deny);
    assert_eq!(verdict(PermissionMode::Plan, &[], ToolSource::BuiltIn, "run git log, host a.org"), Deny);
    assert_eq!(verdict(PermissionMode::Plan, &[], ToolSource::BuiltIn, "run git log, read /etc"), Deny);
    let foreign = || ToolSource::McpServer { server: ServerName::parse("git").unwrap(), tool: "git".into() };
    assert_eq!(verdict(PermissionMode::Default, &[], foreign(), run), Ask, "its server says so, and nobody else");
    let embedded = || ToolSource::Embedded(ServerName::parse("deploys").unwrap());
    for (mode, rules, touches, expected) in [
        (PermissionMode::Default, &[][..], "run terraform destroy", Ask),
        (PermissionMode::DontAsk, &[], "run terraform destroy", Deny),
        (PermissionMode::Plan, &[], "run terraform destroy", Deny),
        (PermissionMode::Plan, &[(A, "git")], "run terraform destroy", Deny),
        (PermissionMode::Plan, &[], "write /w/a", Deny),
        (PermissionMode::Plan, &[], "read /w/a", Allow),
        (PermissionMode::Default, &[(D, "mcp__deploys__*")], "read /w/a", Deny),
        (PermissionMode::Default, &[(A, "git")], "run terraform destroy", Allow),
    ] {
        let decided = verdict(mode, rules, embedded(), touches);
        assert_eq!(decided, expected, "the program says that it reads, and nobody else: {mode:?} {rules:?} {touches}");
    }
    check_mode(PermissionMode::Plan, &[(A, "Bash")], "bash", "run ls", Deny);
}

fn any_access() -> impl Strategy<Value = Access> {
    let name =
        || "[a-z*?{},!\\[\\] '\"().\\\\-]{1,6}".prop_filter("a name", |name| !matches!(name.trim(), "." | ".." | ""));
    let path = prop::collection::vec(name(), 1..3).prop_map(|names| format!("/w/{}", names.join("/")));
    let path = (path.clone(), path, any::<bool>(), any::<bool>()).prop_map(|(lexical, other, linked, tree)| {
        let real = if linked { other } else { lexical.clone() };
        AccessPath { lexical: lexical.into(), real: real.into(), tree }
    });
    let words = prop::collection::vec("[a-z*'\"\\\\$;|<> -]{1,5}", 1..4);
    let clarity = prop_oneof![
        Just(ParseConfidence::Plain),
        Just(ParseConfidence::Exact("it writes".into())),
        Just(ParseConfidence::Opaque("nobody knows".into()))
    ];
    prop_oneof![
        path.prop_map(Access::WritePath),
        (words, clarity).prop_map(|(words, clarity)| {
            Access::RunCommand(CommandAccess { clarity, ..CommandAccess::program(words) })
        }),
        "[a-z]{1,5}[.]example[.]com".prop_map(|host| Access::ReachHost(host.into())),
        Just(Access::Send("a@example.com".into())),
    ]
}

fn any_policy() -> impl Strategy<Value = PermissionPolicy> {
    let text = prop::sample::select(vec![
        "bash",
        "Bash(git *)",
        "Bash(rm *)",
        "Read(secret/**)",
        "Read(a/**)",
        "Edit(b)",
        "Edit",
        "WebFetch(domain:a.org)",
        "mcp__git",
        "Write(//w/a)",
        "Agent(reviewer)",
        "Tools",
        "Tools(b*)",
        "*",
    ]);
    let effect = prop::sample::select(vec![D, Q, A]);
    // An allow rule names something.
    let rule = (effect, text).prop_filter("too wide", |rule| *rule != (A, "*"));
    let rules = prop::collection::vec(rule, 0..5);
    let roots = prop::collection::vec(prop::sample::select(vec!["/w", "/w/a", "/w/a/b", "/ro", "/else"]), 0..3);
    let chosen = prop::sample::select(vec!["", "bash", "-bash", "read_file,bash"]);
    (rules, prop::sample::select(PermissionMode::ALL), roots.clone(), roots, chosen).prop_map(
        |(rules, mode, write, read, chosen)| {
            let paths = |all: Vec<&str>| all.into_iter().map(Into::into).collect();
            let roots =
                WorkspaceRoots { write: paths(write), read_only: paths(read), forbidden: vec!["/w/data".into()] };
            let selection = match chosen {
                "" => ToolSelection::default(),
                chosen => ToolSelection::all().adjusted(chosen).unwrap(),
            };
            PermissionPolicy { roots, selection, ..policy(mode, &rules) }
        },
    )
}

fn any_touch() -> impl Strategy<Value = Access> {
    let touches = vec![
        "read /w/a/x",
        "read /w/secret/k",
        "write /w/a",
        "write /w/a/b/c",
        "write /w/b",
        "read /ro/a",
        "write /ro/a",
        "read /w/data/x",
        "run git log",
        "run rm x naming /w/b",
        "opaque $x",
        "host a.org",
        "send ann@a.org",
        "up",
        "agent reviewer",
        "offer bash",
        "offer *",
    ];
    prop::sample::select(touches).prop_map(|text| accesses(text).remove(0))
}

proptest! {
    #[test]
    fn a_narrowed_policy_is_as_strict_as_the_stricter_of_both_and_never_wider(
        ours in any_policy(), theirs in any_policy(), third in any_policy(),
        touched in prop::collection::vec(any_touch(), 0..3), name in prop::sample::select(vec!["bash", "read_file"]),
    ) {
        let (tool, theirs) = (tool(name), Arc::new(theirs));
        let third = Arc::new(third.narrowed(&theirs));
        let verdict = |policy: &PermissionPolicy| policy.decide(&tool, &Map::new(), &touched).verdict;
        let narrowed = ours.narrowed(&theirs);
        prop_assert_eq!(verdict(&narrowed), verdict(&ours).max(verdict(&theirs)));
        let twice = ours.narrowed(&third);
        prop_assert_eq!(verdict(&twice), verdict(&ours).max(verdict(&third)));
        prop_assert_eq!(narrowed.advertises(&tool), ours.advertises(&tool) && theirs.advertises(&tool));
        let grant = |policy: &PermissionPolicy| {
            crate::permission::grant::CallPermissions::new(Arc::new(policy.clone()), Arc::new(tool.clone()), Vec::new())
        };
        for access in &touched {
            let permitted = [&ours, &*theirs].map(|policy| grant(policy).permits(access));
            prop_assert_eq!(grant(&narrowed).permits(access), permitted == [true, true], "{}", access);
            if let Access::ReadPath(path) = access {
                let below = grant(&narrowed);
                prop_assert_eq!(below.reading_below(path).permits(path), below.permits(access), "{}", access);
            }
        }
    }

    #[test]
    fn suggested_rules_allow_the_refused_call_and_no_other_access(
        wanted in prop::collection::vec(any_access(), 1..3), other in any_access(),
    ) {
        let tool = tool("gmail_send");
        let suggested = policy(PermissionMode::Default, &[]).decide(&tool, &Map::new(), &wanted).suggestions("gmail_send");
        if !suggested.is_empty() {
            let rules: Vec<(Effect, &str)> = suggested.iter().map(|rule| (A, rule.as_str())).collect();
            let policy = policy(PermissionMode::Default, &rules);
            prop_assert_eq!(policy.decide(&tool, &Map::new(), &wanted).verdict, Allow, "{:?}", suggested);
            let is_new = |access: &Access| match (access, &other) {
                (Access::RunCommand(wanted), Access::RunCommand(other)) => wanted.text.trim() != other.text.trim(),
                (Access::WritePath(wanted), Access::WritePath(other)) => {
                    other.forms().any(|form| wanted.forms().all(|wanted| !form.starts_with(wanted)))
                }
                (Access::Send(_), _) => false,
                (wanted, other) => wanted != other,
            };
            if wanted.iter().all(is_new) {
                prop_assert_ne!(policy.judge(&tool, &other).verdict, Allow, "{:?} {}", suggested, other);
            }
        }
    }

    #[test]
    fn ordinary_accesses_get_a_suggestion(names in prop::collection::vec("[a-z][a-z0-9 *?{},()'-]{0,6}[a-z]", 1..4)) {
        let path = Access::WritePath(AccessPath::plain(format!("/w/{}", names.join("/"))));
        let command = Access::RunCommand(CommandAccess::program(names.iter().map(String::as_str)));
        for access in [path, command] {
            let decision = policy(PermissionMode::Default, &[]).decide(&tool("bash"), &Map::new(), std::slice::from_ref(&access));
            prop_assert_eq!(decision.suggestions("bash").len(), 1, "{}", access);
        }
    }
}

#[test]
fn the_built_in_pipe_filter_rule_applies_unless_a_rule_or_mode_forbids_the_command() {
    let command =
        |words: &str, built_in_rule| CommandAccess { built_in_rule, ..CommandAccess::program(words.split(' ')) };
    let head = command("head -5", Some(BuiltInAllowRule::PipeFilter));
    let decided = |mode, rules: &[(Effect, &str)], command: &CommandAccess| {
        policy(mode, rules).judge(&tool("bash"), &Access::RunCommand(command.clone()))
    };
    let allowed = decided(PermissionMode::Default, &[], &head);
    assert_eq!(allowed.verdict, Allow);
    assert_eq!(allowed.cause.to_string(), "the built-in rule `pipe filter` allows programs that only filter a pipe");
    assert_eq!(decided(PermissionMode::DontAsk, &[], &head).verdict, Allow);
    for (mode, rules, expected) in [
        (PermissionMode::Default, &[(Effect::Ask, "Bash(head *)")][..], Ask),
        (PermissionMode::Default, &[(Effect::Deny, "Bash(head *)")], Deny),
        (PermissionMode::Default, &[(Effect::Ask, "Bash")], Ask),
        (PermissionMode::Plan, &[], Deny),
    ] {
        assert_eq!(decided(mode, rules, &head).verdict, expected, "{mode:?} {rules:?}");
    }
    let file = Access::WritePath(AccessPath::plain("/tmp/x"));
    for not_proven in [
        command("head -5", None),
        CommandAccess { free: [file.clone()].into(), ..head.clone() },
        CommandAccess { operands: [file].into(), ..head.clone() },
        CommandAccess { clarity: ParseConfidence::Opaque("it is not understood".into()), ..head.clone() },
    ] {
        assert_eq!(decided(PermissionMode::Default, &[], &not_proven).verdict, Ask, "{not_proven:?}");
    }
}
