//! Hooks of the user, through the real binary and with real small scripts.

use crate::binaries::{Home, kill, stderr, stdout};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    fmt::Write as _,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};
use toolstead_domain::{
    PatternContext, ToolProvider as _, WorkspaceRoots, permission::rule::RuleOrigin, testing::samples,
};
use toolstead_infrastructure::{
    builtin::{self, InProcessTools, ToolEnvironment},
    hooks::filter::HookFilter,
    sandbox::workspace::{UserPathAliases, Workspace},
    system_clock::SystemClock,
};

/// A workspace with hooks.
struct Bench {
    home: Home,
    config: PathBuf,
}

impl Bench {
    /// One with this configuration; `PreToolUse` hooks by name and command, if any, are added.
    fn new(config: &str, hooks: &[(&str, &str)]) -> Self {
        let home = Home::new();
        let mut text = config.to_owned();
        for (name, command) in hooks {
            write!(text, "\n[hooks.{name}]\nevent = \"PreToolUse\"\ncommand = '''{command}'''\n").unwrap();
        }
        let config = home.config(&text);
        Self { home, config }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.home.run(&[&["--config", self.config.to_str().unwrap()], arguments].concat())
    }

    /// Checks the exit code, and that the output contains the texts.
    #[track_caller]
    fn check(&self, arguments: &[&str], code: i32, texts: &[&str]) -> String {
        let output = self.run(arguments);
        let printed = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {printed}");
        for text in texts {
            assert!(printed.contains(text), "{arguments:?} does not say `{text}`: {printed}");
        }
        printed
    }

    /// Writes `a.txt`, which the rules allow.
    #[track_caller]
    fn write(&self, code: i32, texts: &[&str]) -> String {
        self.check(&["--allow", "Write", "call", "write_file", r#"{"path":"a.txt","content":"new\n"}"#], code, texts)
    }

    fn has(&self, name: &str) -> bool {
        self.home.work().join(name).exists()
    }

    fn last_row(&self) -> Value {
        let listed: Value = serde_json::from_slice(&self.run(&["executions", "list", "--json"]).stdout).unwrap();
        listed["executions"][0].clone()
    }
}

/// A hook that prints this.
fn says(specific: Value) -> String {
    format!("echo '{}'", json!({"hookSpecificOutput": specific}))
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

const SETTINGS: &str = r#"{
  "permissions": {"allow": ["Read"]},
  "hooks": {
    "PreToolUse": [
      {"matcher": "Edit|Write", "hooks": [
        {"type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/check.sh", "timeout": 20}
      ]}
    ],
    "PostToolUse": [
      {"matcher": "Write", "hooks": [{"type": "command", "command": "cat > \"$CLAUDE_PROJECT_DIR/seen.json\""}]}
    ],
    "PostCompact": [{"hooks": [{"type": "command", "command": "./not-looked-for.sh"}]}]
  }
}"#;

#[test]
fn a_settings_file_of_claude_code_works_unchanged_once_it_is_trusted() {
    let home = Home::new();
    let settings = home.work().join(".claude/settings.json");
    put(&settings, SETTINGS);
    let check =
        "#!/bin/sh\nif grep -q '\"file_path\":\"/[^\"]*secret'; then echo 'keep out of secrets' >&2; exit 2; fi\n";
    put(&home.work().join(".claude/hooks/check.sh"), check);
    let config = home.config(&format!("[hooks]\nimport = [{settings:?}]\n"));
    let bench = Bench { home, config };
    let secret = ["--allow", "Write", "call", "write_file", r#"{"path":"secret.txt","content":"x"}"#];
    bench.check(&secret, 0, &["settings.json: its hooks do not run until `toolstead config trust`"]);
    bench.check(&["hooks", "list"], 0, &["no hooks run here", "waits for `toolstead config trust`"]);

    bench.check(
        &["config", "trust", "--yes", settings.to_str().unwrap()],
        0,
        &["the hook `PreToolUse` at ", ".claude/hooks/check.sh", "is trusted as it is now"],
    );
    let idle = "settings.json:12: a hook of `PostCompact`: nothing fires this event here";
    bench.check(&secret, 3, &["The hook `settings.json:6` refused the call: keep out of secrets", idle]);
    assert!(!bench.write(0, &[]).contains(idle), "it is told once");
    let seen: Value = serde_json::from_slice(&std::fs::read(bench.home.work().join("seen.json")).unwrap()).unwrap();
    let path = bench.home.work().join("a.txt");
    assert_eq!(
        (&seen["hook_event_name"], &seen["tool_name"], &seen["canonical_tool_name"], &seen["permission_mode"]),
        (&json!("PostToolUse"), &json!("Write"), &json!("write_file"), &json!("default"))
    );
    assert_eq!(seen["tool_input"], json!({"content": "new\n", "file_path": path}));
    assert!(seen["tool_response"]["content"][0]["text"].is_string(), "{seen}");

    // A call that could change the hook could change everything.
    for name in [".claude/hooks/check.sh", ".claude/settings.json"] {
        let arguments = json!({"path": name, "content": "#!/bin/sh\n"}).to_string();
        bench.check(&["--allow", "Write", "call", "write_file", &arguments], 3, &["the deny rule `Write("]);
    }
    put(&settings, &format!("{SETTINGS}\n"));
    bench.check(&secret, 0, &["its hooks do not run until"]);
}

#[test]
fn a_changed_gate_file_blocks_all_calls_until_it_is_trusted_again() {
    let home = Home::new();
    let settings = home.work().join(".claude/settings.json");
    let gate = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": "exit 2", "gate": true}]}]}}"#;
    put(&settings, gate);
    let config = home.config(&format!("[hooks]\nimport = [{settings:?}]\n"));
    let bench = Bench { home, config };
    let echo = ["-q", "--allow", "Bash", "call", "bash", r#"{"command":"echo ran"}"#];
    let message = format!(
        ".claude/settings.json: its gates do not run, so no call is made: read it, then say `toolstead config trust {}`",
        settings.display()
    );
    let trust = ["config", "trust", "--yes", settings.to_str().unwrap()];
    bench.check(&echo, 2, &[&message]);
    bench.check(&trust, 0, &["is trusted as it is now"]);
    bench.check(&echo, 3, &["refused the call"]);
    // Whatever it holds now: another space, no gate, nothing.
    for changed in
        [format!("{gate}\n"), gate.replace("true", "false"), "{}".into(), r#"{"disableAllHooks": true}"#.into()]
    {
        put(&settings, &changed);
        bench.check(&echo, 2, &[&message]);
        bench.check(&["config", "check"], 2, &[&message]);
    }
    bench.check(&["hooks", "list"], 0, &["no hooks run here"]);
    bench.check(&trust, 0, &["is trusted as it is now"]);
    bench.check(&echo, 0, &["ran"]);
    // What a person took the gate out of holds none, and changes without a stop.
    put(&settings, r#"{"hooks": {}}"#);
    bench.check(&echo, 0, &["ran"]);
}

#[test]
fn exit_code_and_output_of_a_hook_decide_the_call() {
    let deny =
        says(json!({"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "r"}));
    let ask = says(json!({"permissionDecision": "ask", "permissionDecisionReason": "sure?"}));
    let allow = says(json!({"permissionDecision": "allow"}));
    for (command, code, outcome) in [
        ("exit 2", 3, "it gave no reason"),
        ("echo not today >&2; exit 2", 3, "The hook `h` refused the call: not today"),
        (&format!("{allow}; exit 2"), 3, "refused the call"),
        (&deny, 3, "refused the call: r"),
        (r#"echo '{"continue": false, "stopReason": "enough"}'"#, 3, "enough"),
        (r#"echo '{"decision": "block", "reason": "old style"}'"#, 3, "old style"),
        (
            &says(json!({"permissionDecision": "defer", "permissionDecisionReason": "later"})),
            3,
            "deferred the call: later",
        ),
        (&ask, 3, "sure?. No approver is available"),
        (&allow, 0, "a.txt"),
        ("exit 1", 0, "the hook `h` failed: it ended with code 1"),
        ("echo only text", 0, "a.txt"),
        ("echo '{nonsense'", 0, "failed: its answer is not valid JSON"),
        (&says(json!({"additionalContext": "mind the gap"})), 0, "[the hook `h` says: mind the gap]"),
        (r#"echo '{"systemMessage": "for you"}'"#, 0, "h: for you"),
        // A hook need not read its input, may write without end, and may leave a process behind that holds its pipes.
        ("exec 0<&-", 0, "a.txt"),
        ("yes | head -c 5000000", 0, "a.txt"),
        ("printf '{'; yes | head -c 3000000", 0, "longer than 1 MiB"),
        ("sleep 300 & echo done", 0, "a.txt"),
        (
            r#"test "$TOOLSTEAD_HOOK_EVENT" = PreToolUse && test "$PWD" = "$CLAUDE_PROJECT_DIR" && test -z "$SECRET""#,
            0,
            "a",
        ),
    ] {
        let bench = Bench::new("", &[("h", command)]);
        bench.write(code, &[outcome]);
        assert_eq!(bench.has("a.txt"), code == 0, "{command}");
    }
}

#[test]
fn a_gate_blocks_the_call_unless_its_hook_allows_it() {
    let allow = says(json!({"permissionDecision": "allow"}));
    for (command, more, code, outcome) in [
        (allow.as_str(), "gate = true", 0, "a.txt"),
        ("true", "gate = true", 3, "it is a gate and did not approve the call"),
        (r#"echo '{"continue": true}'"#, "gate = true", 3, "it is a gate"),
        ("exit 1", "gate = true", 3, "the hook failed: it ended with code 1"),
        ("$NOT_SET/missing", "gate = true", 3, "it ended with code 127"),
        ("echo '{nonsense'", "gate = true", 3, "not valid JSON"),
        ("kill -9 $$", "gate = true", 3, "signal 9"),
        ("sleep 300", "gate = true\ntimeout_seconds = 1", 3, "it did not answer in time"),
        ("true", "gate = true\non_error = \"ask\"", 3, "No approver is available"),
        ("exit 1", "on_error = \"deny\"", 3, "the hook failed"),
        ("exit 1", "on_error = \"ask\"", 3, "No approver is available"),
        ("sleep 300", "timeout_seconds = 1", 0, "it did not answer in time"),
        ("exit 2", "matcher = \"Read|grep\"", 0, "a.txt"),
        ("exit 2", "matcher = \"Write\"", 3, ""),
        ("exit 2", "matcher = \"file_write\"", 3, ""),
        ("exit 2", "matcher = \"^write_.*$\"", 3, ""),
        ("exit 2", "if = \"Edit(src/**)\"", 0, "a.txt"),
        ("exit 2", "if = \"Edit(*.txt)\"", 3, ""),
    ] {
        let bench = Bench::new(&format!("[hooks.h]\nevent = \"PreToolUse\"\ncommand = '''{command}'''\n{more}\n"), &[]);
        bench.write(code, &[outcome]);
        assert_eq!(bench.has("a.txt"), code == 0, "{command} {more}");
    }
}

#[test]
fn a_hook_that_could_not_run_is_an_error_of_the_configuration_with_its_place() {
    for (lines, outcome) in [
        ("command = \"./typo.sh\"", "test.toml:5: `hooks.h`: "),
        ("command = \"sh ./typo.sh\"", "the script `"),
        ("command = \"no-such-program-here\"", "is not in the `PATH`"),
        ("command = \"no-such-program-here\"\nargs = [\"a\"]", "is not in the `PATH`"),
        ("command = \"true\"\nmatcher = \"(\"", "is not a valid regular expression"),
        ("command = \"true\"\nif = \"Edit(\"", "`if`: the closing parenthesis is missing"),
        ("command = \"true\"\ngate = true\non_error = \"allow\"", "a gate that does not stop anything is none"),
        ("matcher = \"Write\"", "`command` is missing"),
        ("comand = \"true\"", "did you mean `command`?"),
    ] {
        let bench = Bench::new(&format!("[hooks.h]\nevent = \"PreToolUse\"\n{lines}\n"), &[]);
        bench.check(&["call", "echo", r#"{"message":"hi"}"#], 2, &[outcome]);
    }
    let bench = Bench::new("[hooks]\nimport = [\"missing.json\"]\n", &[]);
    bench.check(&["config", "check"], 0, &["test.toml:4: there is no `", "missing.json` to import hooks from"]);
    let typo = SETTINGS.replace("hooks/check.sh", "hooks/chekc.sh");
    std::fs::write(bench.config.with_file_name("missing.json"), typo).unwrap();
    bench.check(&["call", "echo", "{}"], 2, &["missing.json:6: a hook of `PreToolUse`: ", "chekc.sh` cannot be run"]);
}

#[test]
fn a_deleted_import_that_contained_a_gate_blocks_all_calls() {
    let bench = Bench::new("[hooks]\nimport = [\"settings.json\"]\n", &[]);
    let settings = bench.config.with_file_name("settings.json");
    let echo = ["call", "echo", r#"{"message":"hi"}"#];
    let hook = |gate: bool| {
        let handler = json!({"type": "command", "command": "exit 2", "gate": gate});
        json!({"hooks": {"PreToolUse": [{"hooks": [handler]}]}}).to_string()
    };
    put(&settings, &hook(true));
    bench.check(&echo, 3, &["refused the call"]);
    std::fs::remove_file(&settings).unwrap();
    bench.check(&echo, 2, &["settings.json` held a gate and is gone, so nothing starts"]);
    // Who takes the gate out before takes nothing away.
    put(&settings, &hook(false));
    bench.check(&echo, 3, &["refused the call"]);
    std::fs::remove_file(&settings).unwrap();
    bench.check(&echo, 0, &["hi", "to import hooks from"]);
}

/// Lines with which a hook could never be chosen, and the error for each.
const NEVER_CHOSEN: &[(&str, &str)] = &[
    (
        "matcher = \"Wirte\"",
        "test.toml:6: the matcher `Wirte` of a gate: no tool is called `Wirte`; did you mean `Write`?",
    ),
    ("matcher = \"Bsh\"", "did you mean `Bash`?"),
    ("matcher = \"Edit, Wirte\"", "no tool is called `Wirte`; did you mean `Write`?"),
    ("matcher = \"Monitor\"", "no tool is called `Monitor`"),
    ("matcher = \"^Wirte\"", "`^Wirte` is found in no name of a built-in tool"),
    ("matcher = \"^(Edit|Wirte)$\"", "`^Wirte$` is found in no name"),
    ("matcher = \"Edit.*|Wirte\"", "`Wirte` is found in no name"),
    ("matcher = \"mcp__docs\"", "`mcp__docs` hits no tool: those of a server are `mcp__server__tool`"),
    ("matcher = \"docs__read\"", "`docs__read` hits no tool"),
    ("matcher = \"mcp__dosc__read\"", "no MCP server is called `dosc`; did you mean `docs`?"),
    ("matcher = \"mcp__dosc__.*\"", "no MCP server is called `dosc`; did you mean `docs`?"),
];

#[test]
fn a_matcher_that_matches_no_tool_is_an_error_for_a_gate_and_a_note_for_other_hooks() {
    let echo = ["call", "echo", r#"{"message":"hi"}"#];
    let with = |lines: &str, server: &str| {
        Bench::new(&format!("[hooks.h]\nevent = \"PreToolUse\"\ncommand = \"exit 2\"\n{lines}\n{server}"), &[])
    };
    let server = "[mcp_servers.docs]\ncommand = \"true\"\n";
    for (lines, outcome) in NEVER_CHOSEN {
        let server = if lines.contains("mcp") { server } else { "" };
        let gate = with(&format!("{lines}\ngate = true"), server);
        gate.check(&["config", "check"], 2, &[outcome]);
        gate.check(&echo, 2, &[outcome]);
        let hook = with(lines, server);
        hook.check(&["config", "check"], 0, &["note: ", &outcome.replace(" of a gate", ""), "can be used"]);
    }
    for (lines, server, outcome) in [
        ("matcher = \"Write|file_edit,bash\"", "", ""),
        ("matcher = \"^(Write|Edit)$\"", "", ""),
        ("matcher = \"(?i)^write$|nothing\"", "", ""),
        ("matcher = \"mcp__docs__read\"", server, ""),
        ("matcher = \"mcp__docs__.*|^Write$\"", server, ""),
        ("matcher = \"mcp__.*__write.*\"", server, ""),
        ("matcher = \"mcp__elsewhere__.*\"", server, "note: "),
        ("matcher = \"mcp__.*\"", "", "note: "),
        // A server may call a tool of its own so.
        ("matcher = \"delete_issue$\"", server, "is found in no name of a built-in tool"),
        (
            "matcher = \"delete_issue\"",
            "[mcp_servers.docs]\ncommand = \"true\"\nnames = \"plain\"\n",
            "no tool is called",
        ),
    ] {
        let said =
            with(&format!("{lines}\ngate = true"), server).check(&["config", "check"], 0, &[outcome, "can be used"]);
        assert!(!outcome.is_empty() || !said.contains("note: "), "{lines}: {said}");
    }
    let of_session = "[hooks.h]\nevent = \"SessionStart\"\nmatcher = \"resume\"\ncommand = \"true\"\n";
    let said = Bench::new(of_session, &[]).check(&["config", "check"], 0, &[]);
    assert!(!said.contains("note: "), "{said}");
}

#[test]
fn the_if_condition_of_a_hook_is_validated_like_a_permission_rule() {
    for (rule, message) in [
        ("Bsh(rm *)", "test.toml:6: the `if` of a hook: `Bsh(rm *)`: no tool is called `Bsh`; did you mean `Bash`?"),
        ("Grep(patern:x)", "`grep` has no parameter `patern`; did you mean `pattern`?"),
        ("Bash()", "the parentheses are empty and would never match"),
    ] {
        for more in ["", "gate = true"] {
            let lines = format!("[hooks.h]\nevent = \"PreToolUse\"\ncommand = \"exit 2\"\nif = \"{rule}\"\n{more}\n");
            let bench = Bench::new(&lines, &[]);
            bench.check(&["config", "check"], 2, &[message]);
            bench.check(&["call", "echo", r#"{"message":"hi"}"#], 2, &[message]);
        }
    }
    // What meets one way to write a line leaves the others open.
    let with = |rule: &str, more: &str| {
        let lines = format!("[hooks.h]\nevent = \"PreToolUse\"\ncommand = \"exit 2\"\nif = \"{rule}\"\n{more}\n");
        Bench::new(&lines, &[])
    };
    let message = "test.toml:6: the `if` of a hook: `Bash(cd x && rm *)` meets only lines that are written so";
    with("Bash(cd x && rm *)", "gate = true").check(&["config", "check"], 2, &[message, "such as `Bash(rm *)`"]);
    with("Bash(cd x && rm *)", "").check(&["config", "check"], 0, &["note: ", message]);
    for rule in ["Bash(rm *)", "Bash(timeout 5 rm *)", "Bash(git log --format='%h;%s' *)", "Edit(a;b)"] {
        let said = with(rule, "gate = true").check(&["config", "check"], 0, &[]);
        assert!(!said.contains("note: "), "{rule}: {said}");
    }
}

#[test]
fn imported_hooks_may_name_claude_code_tools_but_a_gate_rejects_unknown_tools() {
    let settings = |matcher: &str, more: &str| {
        let bench = Bench::new("[hooks]\nimport = [\"settings.json\"]\n", &[]);
        let handler = format!("{{\"type\": \"command\", \"command\": \"exit 2\"{more}}}");
        let text =
            format!("{{\"hooks\": {{\"PreToolUse\": [\n{{\"matcher\": \"{matcher}\", \"hooks\": [{handler}]}}]}}}}");
        std::fs::write(bench.config.with_file_name("settings.json"), text).unwrap();
        bench
    };
    for gate in ["", ", \"gate\": true", ", \"if\": \"Monitor\""] {
        let said = settings("Task|Edit|WebFetch|TodoWrite", gate).check(&["config", "check"], 0, &["can be used"]);
        assert!(!said.contains("note: "), "{said}");
    }
    settings("Task|Wirte", ", \"gate\": true").check(
        &["config", "check"],
        2,
        &["settings.json:2: the matcher `Task|Wirte` of a gate: "],
    );
    settings("Task|Wirte", "").check(&["config", "check"], 0, &["note: ", "no tool is called `Wirte`"]);
    settings("Task", ", \"if\": \"Bsh(rm *)\"").check(
        &["config", "check"],
        2,
        &["settings.json:2: the `if` of a hook: "],
    );
    // Tools of Claude Code change over time. A name that resembles no tool here is not reported as a mistake, and only
    // makes a gate fail.
    let (foreign, message) = (", \"if\": \"PlanTheDay(x)\"", "the `if` of a hook: `PlanTheDay(x)`: no tool is called");
    settings("Task", foreign).check(&["config", "check"], 0, &["note: ", message]);
    settings("Task", &format!("{foreign}, \"gate\": true")).check(&["config", "check"], 2, &[message]);
    for known in ["TeamCreate(x)", "RemoteTrigger", "Workflow(x)"] {
        let said = settings("Task", &format!(", \"if\": \"{known}\"")).check(&["config", "check"], 0, &[]);
        assert!(!said.contains("note: "), "{said}");
    }
}

#[test]
fn the_strictest_hook_decision_applies_and_no_hook_overrides_a_rule() {
    let decides = |word: &str| says(json!({"permissionDecision": word, "permissionDecisionReason": word}));
    for (words, code, outcome) in [
        (["allow", "ask", "deny"], 3, "The hook `h2` refused the call: deny"),
        (["deny", "defer", "ask"], 3, "The hook `h0` refused the call: deny"),
        (["ask", "defer", "allow"], 3, "The hook `h1` deferred the call: defer"),
        (["allow", "ask", "allow"], 3, "the hook `h1` requires approval: ask"),
        (["allow", "allow", "allow"], 0, "a.txt"),
    ] {
        let commands: Vec<String> = words.into_iter().map(decides).collect();
        let hooks: Vec<(String, &str)> =
            commands.iter().enumerate().map(|(at, command)| (format!("h{at}"), command.as_str())).collect();
        let hooks: Vec<(&str, &str)> = hooks.iter().map(|(name, command)| (name.as_str(), *command)).collect();
        Bench::new("", &hooks).write(code, &[outcome]);
    }
    let allow = decides("allow");
    Bench::new("[permissions]\ndeny = [\"Write(a.txt)\"]\n", &[("h", &allow)])
        .write(3, &["the deny rule `Write(a.txt)`"]);
    let bench = Bench::new("", &[("h", &allow)]);
    bench.check(&["call", "write_file", r#"{"path":"a.txt","content":""}"#], 3, &["No approver is available"]);
}

#[test]
fn arguments_rewritten_by_a_hook_are_validated_and_authorized_again() {
    let rewrite = |input: Value| says(json!({"permissionDecision": "allow", "updatedInput": input}));
    let elsewhere = rewrite(json!({"file_path": "b.txt", "content": "other\n"}));
    let bench = Bench::new("", &[("h", &elsewhere)]);
    bench.write(0, &["b.txt"]);
    assert_eq!(std::fs::read_to_string(bench.home.work().join("b.txt")).unwrap(), "other\n");
    assert!(!bench.has("a.txt"));
    assert_eq!(bench.last_row()["arguments"]["path"], "b.txt");

    Bench::new("[permissions]\ndeny = [\"Write(b.txt)\"]\n", &[("h", &elsewhere)])
        .write(3, &["the deny rule `Write(b.txt)`"]);
    let outside = rewrite(json!({"file_path": "/etc/b.txt", "content": ""}));
    Bench::new("", &[("h", &outside)]).write(3, &["outside of the workspace's roots"]);
    Bench::new("", &[("h", &rewrite(json!({"file_path": 7, "content": ""})))]).write(2, &["/path: expected a string"]);
    let both = rewrite(json!({"file_path": "b", "path": "c", "content": ""}));
    Bench::new("", &[("h", &both)]).write(3, &["its arguments are invalid"]);
    let bench = Bench::new("", &[("h0", &elsewhere), ("h1", &outside)]);
    bench.write(3, &["The hook `h1` refused the call: its arguments differ from those of the hook `h0`"]);
}

#[test]
fn output_of_a_post_call_hook_reaches_the_model_and_the_audit_log() {
    let config = |event: &str, command: &str| format!("[hooks.h]\nevent = \"{event}\"\ncommand = '''{command}'''\n");
    let after = |command: &str| Bench::new(&config("PostToolUse", command), &[]);
    let echo = ["call", "echo", r#"{"message":"hi"}"#];
    let context = says(json!({"hookEventName": "PostToolUse", "additionalContext": "format it"}));
    after(&context).check(&echo, 0, &["Echo: hi\n[the hook `h` says: format it]"]);
    after("echo lint failed >&2; exit 2").check(&echo, 0, &["Echo: hi\n[the hook `h` says: lint failed]"]);
    after("exit 1").check(&echo, 0, &["the hook `h` failed: it ended with code 1"]);
    let bench = after(&says(json!({"updatedToolOutput": "hidden"})));
    assert_eq!(stdout(&bench.run(&echo)), "hidden\n");
    let reason = bench.last_row()["decision"]["reason"].as_str().unwrap().to_owned();
    assert!(reason.ends_with("; the hook `h` changed the output"), "{reason}");

    let bench = Bench::new(&config("PostToolUseFailure", "cat > seen.json; echo 'try b.txt' >&2; exit 2"), &[]);
    bench.check(&["call", "read_file", r#"{"path":"missing"}"#], 4, &["the hook `h` says: try b.txt"]);
    let seen: Value = serde_json::from_slice(&std::fs::read(bench.home.work().join("seen.json")).unwrap()).unwrap();
    assert_eq!((&seen["tool_name"], &seen["is_interrupt"]), (&json!("Read"), &json!(false)));
    assert!(seen["error"].as_str().unwrap().contains("missing"), "{seen}");
}

#[test]
fn hooks_run_on_permission_requests_denials_and_session_start_and_end() {
    let hook =
        |event: &str, command: &str| format!("[hooks.{event}]\nevent = \"{event}\"\ncommand = '''{command}'''\n");
    let write = ["call", "write_file", r#"{"path":"a.txt","content":""}"#];
    let answers = |decision: Value| says(json!({"hookEventName": "PermissionRequest", "decision": decision}));
    let yes = hook("PermissionRequest", &answers(json!({"behavior": "allow"})));
    let bench = Bench::new(&yes, &[]);
    bench.check(&write, 0, &[]);
    assert_eq!(bench.last_row()["decision"]["approved_by"], "the hook `PermissionRequest`");
    // What a rule wants a person to see is for a person.
    Bench::new(&format!("{yes}[permissions]\nask = [\"Write\"]\n"), &[]).check(
        &write,
        3,
        &["No approver is available"],
    );
    let no = hook("PermissionRequest", &answers(json!({"behavior": "deny", "message": "never"})));
    Bench::new(&no, &[]).check(&write, 3, &["refused by the hook `PermissionRequest` (never)"]);

    let answer = hook("PermissionDenied", &says(json!({"additionalContext": "ask Ada"})));
    Bench::new(&answer, &[]).check(&write, 3, &["the hook `PermissionDenied` says: ask Ada"]);

    let begins = hook("SessionStart", "cat >> log; echo welcome");
    let ends = hook("SessionEnd", "cat >> log");
    let bench = Bench::new(&format!("{begins}{ends}"), &[]);
    bench.check(&["call", "echo", r#"{"message":"hi"}"#], 0, &["the hook `SessionStart` says: welcome"]);
    let log = std::fs::read_to_string(bench.home.work().join("log")).unwrap();
    assert!(log.contains(r#""source":"startup""#) && log.contains(r#""reason":"other""#), "{log}");
}

fn fifo(bench: &Bench, name: &str) -> PathBuf {
    let pipe = bench.home.work().join(name);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    pipe
}

#[test]
fn hooks_of_one_event_run_concurrently_up_to_the_configured_limit() {
    // Neither of the two ends without the other.
    let hooks = [("a", "cat pipe > got"), ("b", "echo met > pipe")];
    let bench = Bench::new("[hooks]\ntimeout_seconds = 60\n", &hooks);
    fifo(&bench, "pipe");
    bench.write(0, &["a.txt"]);
    assert_eq!(std::fs::read_to_string(bench.home.work().join("got")).unwrap(), "met\n");
    let bench = Bench::new("[hooks]\nconcurrency = 1\ntimeout_seconds = 1\n", &hooks);
    fifo(&bench, "pipe");
    bench.write(0, &["the hook `a` failed: it did not answer in time"]);
}

#[test]
fn cancelling_a_call_terminates_its_hooks() {
    let bench = Bench::new("", &[("h", "echo $$ > pipe; sleep 300")]);
    let pipe = fifo(&bench, "pipe");
    let config = bench.config.to_str().unwrap();
    let mut child = bench
        .home
        .toolstead(&["--config", config, "call", "echo", r#"{"message":"hi"}"#])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let hook: u32 = std::fs::read_to_string(&pipe).unwrap().trim().parse().unwrap();
    kill(child.id(), Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let began = Instant::now();
    while Path::new(&format!("/proc/{hook}")).exists() {
        assert!(began.elapsed() < Duration::from_secs(120), "the hook lives on");
        std::thread::yield_now();
    }
    assert_eq!(bench.last_row()["outcome"], "cancelled");
}

#[test]
fn hooks_are_listed_and_tried_out_without_a_call() {
    let hooks = "[hooks.guard]\nevent = \"PreToolUse\"\nmatcher = \"Edit.*\"\ncommand = \"exit 2\"\n\
                 [hooks.other]\nevent = \"PreToolUse\"\nmatcher = \"Read\"\ncommand = \"true\"\n";
    let bench = Bench::new(hooks, &[]);
    bench.check(
        &["hooks", "list"],
        0,
        &["guard", "PreToolUse", "Edit.*", "exit 2", "hits", "`edit_file`", "`notebook_edit`"],
    );
    let edit = r#"{"path":"a","old_text":"x","new_text":"y"}"#;
    bench.check(
        &["hooks", "test", "PreToolUse", "edit_file", edit],
        3,
        &["it ended with code 2", "the matcher `Read` is for other tools", "together: deny (guard): it gave no reason"],
    );
    bench.check(&["hooks", "test", "PreToolUse"], 0, &["together: continue"]);
    bench.check(&["hooks", "test", "PostCompact"], 2, &["`PostCompact` never occurs here"]);
    let of_agents = "[hooks.p]\nevent = \"UserPromptSubmit\"\ncommand = \"grep -q secret && exit 2; echo it rains\"\n\
                     [hooks.c]\nevent = \"PreCompact\"\nmatcher = \"manual\"\ncommand = \"exit 2\"\n";
    let of_agents = Bench::new(of_agents, &[]);
    of_agents.check(&["hooks", "test", "UserPromptSubmit", "a secret"], 3, &["together: block"]);
    of_agents.check(&["hooks", "test", "UserPromptSubmit", "hello"], 0, &["together: continue", "context: it rains"]);
    of_agents.check(&["hooks", "test", "PreCompact"], 0, &["the matcher `manual` is for other moments"]);
    of_agents.check(&["--json", "hooks", "test", "PreCompact", "manual"], 3, &["\"together\": \"block"]);
    let json: Value =
        serde_json::from_slice(&bench.run(&["hooks", "test", "PreToolUse", "Edit", edit, "--json"]).stdout).unwrap();
    assert_eq!(json["hooks"][0]["run"]["end"], "it ended with code 2");
    let ask = says(json!({"permissionDecision": "ask", "permissionDecisionReason": "sure?"}));
    for (answer, code) in [("exit 2", 3), (ask.as_str(), 1), ("true", 0)] {
        let bench = Bench::new("", &[("h", answer)]);
        bench.check(&["hooks", "test", "PreToolUse"], code, &["together: "]);
        bench.check(&["--json", "hooks", "test", "PreToolUse"], code, &["\"together\""]);
    }
    assert_eq!(bench.last_row(), Value::Null, "nothing was called");
}

#[test]
fn hooks_of_a_project_wait_until_it_is_trusted() {
    let home = Home::new();
    let work = home.work();
    std::fs::write(work.join("toolstead.toml"), "[hooks.h]\nevent = \"PreToolUse\"\ncommand = \"exit 2\"\n").unwrap();
    let echo = ["call", "echo", r#"{"message":"hi"}"#];
    let first = home.run(&echo);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    assert_eq!(stderr(&first).matches("its hooks do not run until").count(), 1, "{}", stderr(&first));
    assert_eq!(home.run(&["config", "trust", "--yes"]).status.code(), Some(0));
    assert_eq!(home.run(&echo).status.code(), Some(3));
}

#[test]
fn a_changed_gate_file_in_a_trusted_project_blocks_all_calls() {
    let home = Home::new();
    let file = home.work().join("toolstead.toml");
    let gate = "[hooks.h]\nevent = \"PreToolUse\"\ncommand = \"exit 2\"\ngate = true\n";
    std::fs::write(&file, gate).unwrap();
    let echo = ["call", "echo", r#"{"message":"hi"}"#];
    assert_eq!(home.run(&echo).status.code(), Some(0), "nobody relies on what was merely found");
    assert_eq!(home.run(&["config", "trust", "--yes"]).status.code(), Some(0));
    assert_eq!(home.run(&echo).status.code(), Some(3));
    std::fs::write(&file, "").unwrap();
    let stopped = home.run(&echo);
    assert_eq!(stopped.status.code(), Some(2), "{}", stderr(&stopped));
    assert!(stderr(&stopped).contains("toolstead.toml: its gates do not run"), "{}", stderr(&stopped));
    assert_eq!(home.run(&["config", "trust", "--remove"]).status.code(), Some(0));
    assert_eq!(home.run(&echo).status.code(), Some(0));

    // The gate may be in a file from which hooks are imported.
    let (settings, gate) = (home.data().join("settings.json"), r#"{"type":"command","command":"exit 2","gate":true}"#);
    std::fs::write(&settings, format!(r#"{{"hooks":{{"PreToolUse":[{{"hooks":[{gate}]}}]}}}}"#)).unwrap();
    std::fs::write(&file, format!("[hooks]\nimport = [{settings:?}]\n")).unwrap();
    assert_eq!(home.run(&["config", "trust", "--yes"]).status.code(), Some(0));
    assert_eq!(home.run(&["config", "trust", "--yes", settings.to_str().unwrap()]).status.code(), Some(0));
    assert_eq!(home.run(&echo).status.code(), Some(3));
    std::fs::write(&file, format!("[hooks]\nimport = [{settings:?}]\n# changed\n")).unwrap();
    assert_eq!(home.run(&echo).status.code(), Some(2));
}

#[test]
fn a_deleted_gate_file_of_a_trusted_project_blocks_all_calls() {
    let home = Home::new();
    let file = home.work().join("toolstead.toml");
    let gate = "[hooks.h]\nevent = \"PreToolUse\"\ncommand = \"exit 2\"\ngate = true\n";
    let echo = ["call", "echo", r#"{"message":"hi"}"#];
    let trust_gate = || {
        std::fs::write(&file, gate).unwrap();
        assert_eq!(home.run(&["config", "trust", "--yes"]).status.code(), Some(0));
        assert_eq!(home.run(&echo).status.code(), Some(3));
    };
    let check_stopped = || {
        for command in [&echo[..], &["config", "check"]] {
            let stopped = home.run(command);
            assert_eq!(stopped.status.code(), Some(2), "{}", stderr(&stopped));
            let said = format!("{}{}", stdout(&stopped), stderr(&stopped));
            assert!(said.contains("toolstead.toml: held a gate when it was trusted and is gone"), "{said}");
        }
    };
    trust_gate();
    std::fs::remove_file(&file).unwrap();
    check_stopped();
    // Neither a different file name extension nor a link replaces the trusted file.
    let other = file.with_extension("yaml");
    std::fs::write(&other, "").unwrap();
    check_stopped();
    std::fs::rename(&other, other.with_file_name("other.toml")).unwrap();
    std::os::unix::fs::symlink("other.toml", &file).unwrap();
    check_stopped();
    let remove = ["config", "trust", "--remove", file.to_str().unwrap()];
    assert_eq!(home.run(&remove).status.code(), Some(0));
    assert_eq!(home.run(&echo).status.code(), Some(0));
    std::fs::remove_file(&file).unwrap();
    assert_ne!(home.run(&remove).status.code(), Some(0), "nobody trusts it any more");

    trust_gate();
    std::fs::remove_file(&file).unwrap();
    check_stopped();
    std::fs::write(&file, gate).unwrap();
    assert_eq!(home.run(&echo).status.code(), Some(3), "as it was, it is trusted");
    std::fs::remove_file(&file).unwrap();
    // What another project lost stops nothing here.
    let elsewhere = home.work().join("../elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let there = home.toolstead(&echo).current_dir(&elsewhere).output().unwrap();
    assert_eq!(there.status.code(), Some(0), "{}", stderr(&there));
    assert_eq!(home.run(&["config", "trust", "--remove", "toolstead.toml"]).status.code(), Some(0));
    assert_eq!(home.run(&echo).status.code(), Some(0));
}

#[tokio::test]
async fn a_hook_filter_checks_every_path_that_the_arguments_of_a_call_name() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let roots = WorkspaceRoots { write: vec![root.clone()], ..Default::default() };
    let workspace = Arc::new(Workspace::open(&roots, UserPathAliases::default()).unwrap());
    let tools =
        InProcessTools::new(builtin::all(), ToolEnvironment::new(workspace, Arc::new(SystemClock), "test".into()))
            .unwrap();
    let base = PatternContext { folder: Some(root), ..PatternContext::default() };
    let filter = HookFilter::parse("Edit(src/**)", RuleOrigin::Program, &base).unwrap();
    let edits = |path: &str| json!({"edits": [{"path": path, "old_text": "a", "new_text": "b"}]});
    let patch = |path: &str| json!({"patch": format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch")});
    let line = |command: &str| json!({"command": command});
    for (tool, arguments, expected) in [
        ("multi_edit", edits("src/a"), true),
        ("multi_edit", edits("a"), false),
        ("apply_patch", patch("src/a"), true),
        ("apply_patch", patch("a"), false),
        ("apply_patch", json!({"patch": "*** Begin Patch"}), true),
        ("bash", line("cd src && touch a"), true),
        ("bash", line("touch a > b"), false),
    ] {
        let definition = tools.definitions().iter().find(|known| known.name().as_str() == tool).unwrap().clone();
        let call = samples::call(1, definition, arguments.clone());
        let accesses = tools.accesses(&call).await.ok();
        assert_eq!(filter.chooses(&call, accesses.as_deref(), &roots), expected, "{tool} {arguments}");
    }
}
