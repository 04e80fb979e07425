//! Permission rules as people write, explain and test them, through the real binary.

use crate::binaries::{Home, Pipe, stderr, stdout};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};
use toolstead_infrastructure::{builtin::command_tools, shell_analysis::catalogue::LOOKED_THROUGH};

/// The user's own configuration, with this text.
fn user(home: &Home, text: &str) -> PathBuf {
    let folder = home.work().join("../config/toolstead").components().collect::<PathBuf>();
    fs::create_dir_all(&folder).unwrap();
    let path = folder.canonicalize().unwrap().join("config.toml");
    fs::write(&path, text).unwrap();
    path
}

fn project(home: &Home, text: &str) {
    fs::write(home.work().join("toolstead.toml"), text).unwrap();
}

/// A file beside the workspace, which no tool reaches.
fn beside(home: &Home, name: &str, text: &str) -> String {
    let path = home.work().parent().unwrap().canonicalize().unwrap().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Checks the exit code, and that the output on both streams contains the texts.
#[track_caller]
fn check(home: &Home, arguments: &[&str], code: i32, texts: &[&str]) {
    let output = home.run(arguments);
    let printed = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {printed}");
    for text in texts {
        assert!(printed.contains(text), "{arguments:?} does not say `{text}`: {printed}");
    }
}

#[track_caller]
fn json_of(home: &Home, arguments: &[&str]) -> Value {
    let output = home.run(arguments);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)))
}

/// The rules in force as `effect rule at line`, in their order.
#[track_caller]
fn rules(home: &Home) -> Vec<String> {
    let list = json_of(home, &["permissions", "list", "--json"]);
    let text = |rule: &Value, key: &str| rule[key].as_str().unwrap().to_owned();
    let line = |rule: &Value| text(rule, "origin").rsplit_once('/').map_or("?".to_owned(), |(_, name)| name.to_owned());
    let rules = list["rules"].as_array().unwrap().iter();
    rules.map(|rule| format!("{} {} at {}", text(rule, "effect"), text(rule, "rule"), line(rule))).collect()
}

const WRITE: &str = r#"{"path":"src/a.txt","content":"x"}"#;

#[test]
fn a_call_is_explained_with_the_rule_that_decided_on_each_part_and_nothing_runs() {
    let home = Home::new();
    user(&home, "[permissions]\nallow = [\n  \"Write(src/**)\",\n]\ndeny = [\"Write(secret/**)\"]\n");
    check(
        &home,
        &["permissions", "explain", "Write", r#"{"file_path":"src/a.txt","content":"x"}"#],
        0,
        &["allow  write ", "/work/src/a.txt", "the allow rule `Write(src/**)` in ", "toolstead/config.toml:3"],
    );
    check(
        &home,
        &["permissions", "explain", "write_file", r#"{"path":"b.txt","content":"x"}"#],
        1,
        &["ask: changes to files need approval by default", "toolstead permissions allow 'Write(/"],
    );
    check(
        &home,
        &["permissions", "explain", "write_file", r#"{"path":"secret/b","content":"x"}"#],
        3,
        &["deny: the deny rule `Write(secret/**)`", "config.toml:5"],
    );
    check(&home, &["permissions", "explain", "ecko", "{}"], 4, &["Did you mean `echo`?"]);
    check(&home, &["permissions", "explain", "write_file", "{}"], 2, &["path"]);
    let explained = json_of(&home, &["permissions", "explain", "write_file", WRITE, "--json"]);
    assert_eq!(explained["verdict"], "allow");
    assert_eq!(explained["trace"][0]["rule"], "Write(src/**)");
    assert!(!home.work().join("src").exists());
    let recorded = json_of(&home, &["executions", "list", "--json"]);
    assert_eq!(recorded["executions"], json!([]));
}

#[test]
fn the_audit_log_records_the_deciding_rule_of_a_refused_call() {
    let home = Home::new();
    user(&home, "[permissions]\ndeny = [\"Edit(src/**)\"]\n");
    check(&home, &["call", "write_file", WRITE], 3, &["the deny rule `Edit(src/**)`", "config.toml:2"]);
    let recorded = json_of(&home, &["executions", "list", "--json"]);
    let finding = &recorded["executions"][0]["decision"]["trace"][0];
    assert_eq!((&finding["verdict"], &finding["rule"]), (&json!("deny"), &json!("Edit(src/**)")), "{recorded}");
}

#[test]
fn permissions_test_checks_a_table_of_calls_and_reports_unexpected_decisions() {
    let home = Home::new();
    user(&home, "[permissions]\nallow = [\"Write(src/**)\"]\nmode = \"dont_ask\"\n");
    let table = r#"
[[calls]]
tool = "write_file"
arguments = { path = "src/a.txt", content = "x" }
expect = "allow"
rule = "Write(src/**)"

[[calls]]
tool = "Read"
arguments = { file_path = "/etc/passwd" }
expect = "deny"
"#;
    fs::write(home.work().join("table.toml"), table).unwrap();
    check(&home, &["permissions", "test", "table.toml"], 0, &["2 of 2 calls are decided as expected"]);
    let more = "\n[[calls]]\ntool = \"write_file\"\narguments = { path = \"b\", content = \"\" }\nexpect = \"ask\"\n[[calls]]\ntool = \"echo\"\narguments = { message = \"hi\" }\nexpect = \"allow\"\nrule = \"echo\"\n[[calls]]\ntool = \"ecko\"\nexpect = \"allow\"\n";
    fs::write(home.work().join("table.toml"), format!("{table}{more}")).unwrap();
    check(
        &home,
        &["permissions", "test", "table.toml"],
        1,
        &[
            "table.toml:13: `write_file`",
            "expected ask, got deny: changes to files need approval by default",
            "expected the rule `echo` to decide, got calls that touch nothing are allowed by default",
            "expected allow, but it cannot be called: Unknown tool: ecko",
            "2 of 5 calls",
        ],
    );
    let json = r#"{"calls": [{"tool": "echo", "arguments": {"message": "hi"}, "expect": "allow"}]}"#;
    fs::write(home.work().join("table.json"), json).unwrap();
    check(&home, &["permissions", "test", "table.json"], 0, &["1 of 1"]);
    for (text, message) in [
        (
            "[[calls]]\ntool = \"echo\"\nexpected = \"allow\"",
            "table.toml:3: unknown key `expected`; did you mean `expect`?",
        ),
        ("[[calls]]\ntool = \"echo\"\nexpect = \"yes\"", "`expect` must be `allow`, `ask` or `deny`"),
        ("[[calls]]\ntool = \"echo\"", "a call needs `tool` and `expect`"),
        ("", "it holds no calls"),
    ] {
        fs::write(home.work().join("table.toml"), text).unwrap();
        check(&home, &["permissions", "test", "table.toml"], 2, &[message]);
    }
}

#[test]
fn the_rule_that_a_refusal_suggests_can_be_written_and_then_allows_the_call() {
    let home = Home::new();
    let path = user(&home, "# mine\n[permissions]\nallow = [\n  \"Read\", # all\n]\n\n[limits]\nprocesses = 5\n");
    let call = ["call", "write_file", r#"{"path":"it's [a] b.txt","content":"x"}"#];
    let refused = stderr(&home.run(&call));
    let suggested = refused.split("toolstead permissions allow '").nth(1).unwrap().split("'`").next().unwrap();
    let suggested = suggested.replace(r"'\''", "'");
    check(&home, &["permissions", "allow", &suggested], 0, &["is written to", "toolstead/config.toml"]);
    check(&home, &call, 0, &[]);
    check(&home, &["permissions", "allow", &suggested], 0, &["already"]);
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.starts_with("# mine\n[permissions]\nallow = [\n  \"Read\", # all\n  "), "{written}");
    assert!(written.ends_with(",\n]\n\n[limits]\nprocesses = 5\n"), "{written}");
    for (rule, message) in [
        ("Bash(git * && rm *)", "each command of a line"),
        ("mcp__*", "name the server"),
        ("ecko", "`ecko` is not a valid rule: no tool is called `ecko`; did you mean `echo`?"),
        ("Bsh(x)", "no tool is called `Bsh`; did you mean `Bash`?"),
        ("Read(", "closing parenthesis"),
    ] {
        check(&home, &["permissions", "allow", rule], 2, &[message]);
        assert!(!stderr(&home.run(&["permissions", "allow", rule])).contains("default: "), "an argument has no place");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), written);
    let other = home.config("");
    check(&home, &["--config", other.to_str().unwrap(), "permissions", "allow", "Grep"], 0, &["test.toml"]);
    assert!(fs::read_to_string(&other).unwrap().contains("allow = [\"Grep\"]"));
}

#[test]
fn adding_a_rule_creates_a_missing_configuration_file() {
    let home = Home::new();
    check(&home, &["permissions", "allow", "Write(b.txt)"], 0, &["is written to"]);
    check(&home, &["call", "write_file", r#"{"path":"b.txt","content":"x"}"#], 0, &[]);
}

#[test]
fn examples_are_tried_when_a_rule_is_loaded() {
    let home = Home::new();
    let rule = |rule: &str| format!("[permissions]\nallow = [\n  {rule},\n]\n");
    let check_rule = |text: &str, code, message: &str| {
        user(&home, &rule(text));
        check(&home, &["config", "check"], code, &[message]);
    };
    let good = r#"{ rule = "Bash(git *)", matches = ["git", "git status"], not_matches = ["gitk", "git-x"] }"#;
    check_rule(good, 0, "can be used");
    check_rule(
        r#"{ rule = "Bash(git *)", matches = ["gitk"] }"#,
        2,
        "config.toml:3: the allow rule `Bash(git *)` does not match its example `gitk`",
    );
    check_rule(
        r#"{ rule = "Bash(git*)", not_matches = ["gitk"] }"#,
        2,
        "the allow rule `Bash(git*)` matches `gitk`, which it must not",
    );
    check_rule(r#"{ rule = "Write(src/**)", matches = ["src/a/b"], not_matches = ["a/src/b"] }"#, 0, "can be used");
    check_rule(
        r#"{ rule = "WebFetch(domain:*.x.org)", matches = ["https://a.x.org/b"], not_matches = ["x.org"] }"#,
        0,
        "can be used",
    );
    check_rule(
        r#"{ rule = "mcp__git__*", matches = ["mcp__git__log"], not_matches = ["mcp__hg__log"] }"#,
        0,
        "names the MCP server",
    );
    for rule in [
        r#"{ rule = "Agent(review*)", matches = ["reviewer"], not_matches = ["planner"] }"#,
        r#"{ rule = "Tools(mcp__git__*)", matches = ["mcp__git__log", "mcp__git__l*"], not_matches = ["grep", "*"] }"#,
    ] {
        check_rule(rule, 0, "can be used");
    }
    check_rule(
        r#"{ rule = "Read", match = ["a"] }"#,
        2,
        "unknown key `permissions.allow.match`; did you mean `matches`?",
    );
    check_rule(r#"{ matches = ["a"] }"#, 2, "a table must hold `rule`");
    check_rule(r#"{ rule = "Read(", matches = ["a"] }"#, 2, "closing parenthesis");
    user(&home, "[permissions]\ndeny = [{ rule = \"echo(message:rm *)\", matches = ['{\"message\": \"rm x\"}'] }]\n");
    check(&home, &["config", "check"], 0, &["can be used"]);
}

#[test]
fn a_rule_that_can_never_match_is_an_error_and_an_overly_broad_rule_is_reported() {
    let home = Home::new();
    user(&home, "[permissions]\nallow = [\n  \"Bash(npm ci && npm *)\",\n  \"Bash(timeout 5 make *)\",\n]\n");
    check(
        &home,
        &["config", "check"],
        2,
        &["config.toml:3:", "each command of a line", "config.toml:4:", "is skipped"],
    );
    user(&home, "[permissions]\ndeny = [\"echo(mesage:x)\", \"Grep(nonsense:x)\"]\n");
    let message =
        "the deny rule `echo(mesage:x)` would never match: `echo` has no parameter `mesage`; did you mean `message`?";
    check(&home, &["config", "check"], 2, &["config.toml:2: ", message, "`grep` has no parameter `nonsense`"]);
    check(&home, &["tools"], 2, &[message]);
    user(&home, "[permissions]\nallow = [\"Bash\", \"Bash(* --help)\", \"Bash(git *)\"]\n");
    check(
        &home,
        &["config", "check"],
        0,
        &["config.toml:2: the allow rule `Bash` lets any program run", "`Bash(* --help)` lets any program run"],
    );
}

#[test]
fn an_allow_rule_that_covers_nothing_is_reported_by_permission_commands_and_refusals() {
    let home = Home::new();
    let rules = "[permissions]\nallow = [\n  \"Bash(npx *)\",\n  \"Bash(find * -delete)\",\n  \"Bash(npm *)\",\n  \
                 \"Edit(//nowhere/at/all/**)\",\n]\n";
    user(&home, rules);
    let npx = "config.toml:3: the allow rule `Bash(npx *)` covers no command: npx starts another program";
    let find = "config.toml:4: the allow rule `Bash(find * -delete)` covers no command: ";
    let outside = "config.toml:6: the allow rule `Edit(//nowhere/at/all/**)` covers nothing here";
    check(&home, &["config", "check"], 0, &[npx, find, outside, "such as `Bash(find x -delete)`"]);
    check(&home, &["permissions", "list"], 0, &[npx, find, outside]);
    check(&home, &["permissions", "explain", "bash", r#"{"command":"ls"}"#], 1, &[npx, find]);
    let doctor = stdout(&home.run(&["doctor"]));
    assert!(doctor.contains(npx) && doctor.contains(find), "{doctor}");
    let printed = |arguments: &[&str]| stderr(&home.run(arguments)) + &stdout(&home.run(arguments));
    assert!(!printed(&["config", "check"]).contains("npm *"), "it covers `npm test`");
    for elsewhere in [&["tools"][..], &["call", "echo", r#"{"message":"x"}"#]] {
        let printed = printed(elsewhere);
        assert!(!printed.contains("covers no"), "it has nothing to do with rules: {printed}");
    }
    let covered =
        ["permissions", "explain", "bash", r#"{"command":"git checkout main"}"#, "--allow", "Bash(git * main)"];
    check(&home, &covered, 0, &["allow: "]);
    assert!(!printed(&covered).contains("`Bash(git * main)` covers no"), "it does");
    let why = "config.toml:3 does not cover it, because npx starts another program, and a wildcard never covers that";
    let explain = ["permissions", "explain", "bash", r#"{"command":"npx tsc --noEmit"}"#];
    check(&home, &explain, 1, &["the allow rule `Bash(npx *)` in ", why, "'Bash(npx tsc --noEmit)'"]);
    check(&home, &["call", "bash", r#"{"command":"npx tsc"}"#], 3, &[why]);
    let write = r#"{"path":"/nowhere/at/all/a","content":""}"#;
    check(&home, &["permissions", "explain", "write_file", write], 3, &["config.toml:6 does not allow it"]);
}

#[test]
fn resources_and_prompts_have_rules_of_their_own_and_can_be_explained() {
    let home = Home::new();
    let rules = "[permissions]\nallow = [\n  \"mcp__up__read_resource\",\n  \"get_prompt\",\n  \"mcp__up__*\",\n]\n\
                 deny = [{ rule = \"Resource(built-in:config://*)\", matches = [\"built-in:config://server\"], \
                 not_matches = [\"built-in:status://health\", \"up:config://server\"] }, \"Prompt(*:debug_*)\"]\n";
    user(&home, rules);
    let resource = "config.toml:3: the allow rule `mcp__up__read_resource` covers a tool of that name and no resources: \
                    to allow resources, write `Resource(up:*)`";
    let prompt = "config.toml:4: the allow rule `get_prompt` covers a tool of that name and no prompts: to allow prompts, \
                  write `Prompt(SERVER:*)`";
    check(&home, &["call", "echo", r#"{"message":"x"}"#], 0, &[resource, prompt]);
    check(&home, &["config", "check"], 0, &[resource, prompt]);
    let explain = ["permissions", "explain", "read_resource", r#"{"uri":"config://server"}"#];
    let denied = "deny: the deny rule `Resource(built-in:config://*)`";
    check(&home, &explain, 3, &["deny   read the resource config://server of built-in", denied]);
    check(&home, &["resources", "read", "config://server"], 3, &["the deny rule `Resource(built-in:config://*)`"]);
    check(&home, &["permissions", "explain", "read_resource", r#"{"uri":"status://health"}"#], 0, &["allow: "]);
    check(&home, &["permissions", "explain", "read_resource", "{}"], 2, &["`uri` must be the URI of a resource"]);
    check(&home, &["permissions", "explain", "get_prompt", r#"{"name":"debug_help"}"#], 3, &["Prompt(*:debug_*)"]);
    check(&home, &["permissions", "explain", "get_prompt", r#"{"name":"code_review"}"#], 0, &["allow: "]);
    let listed = stdout(&home.run(&["resources"])) + &stdout(&home.run(&["prompts"]));
    assert!(listed.contains("status://health") && listed.contains("code_review"), "{listed}");
    assert!(!listed.contains("config://server") && !listed.contains("debug_help"), "{listed}");
    for (rule, message) in [
        ("Resource(nowhere:*)", "`Resource(nowhere:*)` names the MCP server `nowhere`, which is not configured"),
        ("Resource", "an allow rule must name the server"),
        ("Prompt(*:p)", "an allow rule must name the server without `*`"),
    ] {
        user(&home, &format!("[permissions]\nallow = [{rule:?}]\n"));
        check(&home, &["config", "check"], if rule.contains("nowhere") { 0 } else { 2 }, &[message]);
    }
    let imported = r#"{"permissions": {"deny": ["ReadMcpResourceTool"], "allow": ["mcp__up__get_prompt"]}}"#;
    let file = beside(&home, "settings.json", imported);
    user(&home, &format!("[permissions]\nimport = [{file:?}]\n"));
    check(&home, &["permissions", "list"], 0, &["deny   Resource ", "settings.json:1", "write `Prompt(up:*)`"]);
    check(&home, &["resources", "read", "status://health"], 3, &["the deny rule `Resource`"]);
}

#[test]
fn explanations_name_built_in_rules_and_configured_rules_take_precedence() {
    let home = Home::new();
    let line = r#"{"command":"ls | head -5; echo \"exit $?\"; true"}"#;
    let explain = ["permissions", "explain", "bash", line, "--allow", "Bash(ls *)"];
    let rules = ["the built-in rule `pipe filter`", "the built-in rule `print`", "the built-in rule `status`"];
    check(&home, &explain, 0, &rules);
    for (setting, code, text) in [
        ("mode = \"dont_ask\"", 0, "the built-in rule `pipe filter`"),
        ("ask = [\"Bash(head *)\"]", 1, "the ask rule `Bash(head *)`"),
        ("deny = [\"Bash(echo *)\"]", 3, "the deny rule `Bash(echo *)`"),
        ("mode = \"plan\"", 3, "the mode `plan` allows reading only"),
    ] {
        user(&home, &format!("[permissions]\n{setting}\n"));
        check(&home, &explain, code, &[text]);
    }
}

#[test]
fn a_refusal_gives_the_model_a_next_step_and_the_user_a_suggestion() {
    let home = Home::new();
    project(&home, "[permissions]\nallow = [\"Bash(ls *)\"]\n");
    let mut client = Pipe::start(home.toolstead(&["mcp", "--tools=-echo"]));
    client.initialize();
    for (id, (name, arguments, next, suggestion)) in [
        ("write_file", json!({"path": "a", "content": ""}), "Ask your user whether to allow it.", "--allow 'Write("),
        ("bash", json!({"command": "ls -l"}), "Ask your user whether to allow it.", "config trust '"),
        ("bash", json!({"command": "rm a"}), "Ask your user whether to allow it.", "--allow 'Bash(rm a)'"),
        ("read_file", json!({"path": "/etc/passwd"}), "Ask your user whether to open the folder.", "--root DIR"),
        ("echo", json!({"message": "x"}), "Ask your user whether to offer it.", "`--tools`"),
        ("xyzzy", json!({}), "Call one of the tools that are listed.", "`tools/list`"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = id + 1;
        let params = json!({"name": name, "arguments": arguments});
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string());
        let answer = client.answer(id);
        let (text, meta) = match answer.get("error") {
            Some(error) => (format!("{}. {}", error["message"], error["data"]["next"]), &error["data"]["_meta"]),
            None => (answer["result"]["content"].to_string(), &answer["result"]["_meta"]),
        };
        assert!(text.contains(next), "{name}: {answer}");
        for command in ["--", "toolstead ", "config trust", "tools/list"] {
            assert!(!text.contains(command), "{name}: `{command}` in {text}");
        }
        let suggested = meta["toolstead/suggestion"].as_str().unwrap_or_else(|| panic!("{name}: {answer}"));
        assert!(suggested.contains(suggestion), "{name}: {answer}");
    }
}

#[test]
fn untrusted_project_settings_are_reported_with_the_command_that_trusts_the_file() {
    let home = Home::new();
    project(&home, "[permissions]\nallow = [\"Bash(ls *)\", \"Write\"]\nmode = \"bypass\"\n");
    let file = home.work().canonicalize().unwrap().join("toolstead.toml");
    let file = file.to_str().unwrap();
    let trust = format!("`toolstead config trust '{file}'`");
    let message = format!("2 allow rules and 1 other setting of {file} wait for trust: {trust}");
    let explain = ["permissions", "explain", "bash", r#"{"command":"ls -l"}"#];
    let missed = format!("the allow rule `Bash(ls *)` in {file}:2 would cover it, but its file is not trusted");
    check(&home, &explain, 1, &[&message, &missed, &trust]);
    check(&home, &["call", "bash", r#"{"command":"ls -l"}"#], 3, &[&missed, &trust]);
    check(&home, &["permissions", "list"], 0, &[&message]);
    check(&home, &["config", "check"], 0, &[&message]);
    let doctor = stdout(&home.run(&["doctor"]));
    assert!(doctor.contains(&message), "{doctor}");
    check(&home, &["config", "trust", "--yes", file], 0, &[]);
    check(&home, &explain, 0, &[]);
    let list = stdout(&home.run(&["permissions", "list"]));
    assert!(!list.contains("for trust"), "{list}");
}

#[test]
fn the_git_tool_may_read_in_every_mode_unless_a_rule_denies_it() {
    let home = Home::new();
    let git = ["permissions", "explain", "git", r#"{"operation":"log"}"#];
    for mode in ["plan", "dont_ask", "default"] {
        user(&home, &format!("[permissions]\nmode = {mode:?}\n"));
        check(&home, &git, 0, &["programs that only read are allowed by default"]);
        user(&home, &format!("[permissions]\nmode = {mode:?}\ndeny = [\"Bash(git log *)\"]\n"));
        check(&home, &git, 3, &["the deny rule `Bash(git log *)`"]);
    }
    user(&home, "[permissions]\nmode = \"plan\"\nallow = [\"Bash\"]\n");
    let bash = ["permissions", "explain", "bash", r#"{"command":"git log"}"#];
    check(&home, &bash, 3, &["the mode `plan` allows reading only"]);
    user(&home, "[permissions]\nmode = \"dont_ask\"\n");
    check(&home, &bash, 3, &["commands need approval by default", "; the mode `dont_ask` denies what would need"]);
}

#[test]
fn an_imported_deny_or_ask_rule_with_a_misspelled_tool_name_is_an_error() {
    let home = Home::new();
    let settings = |text: &str| {
        let file = beside(&home, "settings.json", text);
        user(&home, &format!("[permissions]\nimport = [{file:?}]\n"));
    };
    for (key, effect) in [("deny", "deny"), ("ask", "ask")] {
        settings(&format!(r#"{{"permissions": {{"{key}": ["Bsh(ls)"]}}}}"#));
        let expected = format!(
            "settings.json:1: the {effect} rule `Bsh(ls)` cannot be used: no tool is called `Bsh`; did you mean `Bash`?"
        );
        check(&home, &["-q", "permissions", "list"], 2, &[&expected]);
    }
    settings(r#"{"permissions": {"allow": ["Bsh(ls)"], "deny": ["EnterWorktree", "LSP", "Frobnicate9(x)"]}}"#);
    check(
        &home,
        &["permissions", "list"],
        0,
        &[
            "the allow rule `Bsh(ls)` is left out: no tool is called `Bsh`; did you mean `Bash`?",
            "the deny rule `EnterWorktree` is left out: no tool is called `EnterWorktree` here",
            "the deny rule `LSP` is left out",
            "the deny rule `Frobnicate9(x)` is left out",
        ],
    );
}

#[test]
fn imported_agent_rules_apply_under_either_tool_name() {
    let home = Home::new();
    let settings = r#"{"permissions": {"deny": ["Task(reviewer)", "Agent(my-plugin:*)"], "ask": ["Agent"]}}"#;
    let file = beside(&home, "settings.json", settings);
    user(&home, &format!("[permissions]\nimport = [{file:?}]\n"));
    let all = ["deny Task(reviewer) at", "deny Agent(my-plugin:*) at", "ask Agent at"];
    assert_eq!(rules(&home), all.map(|rule| format!("{rule} settings.json:1")));
    let broken = beside(&home, "settings.json", r#"{"permissions": {"deny": ["Task(re viewer)"]}}"#);
    user(&home, &format!("[permissions]\nimport = [{broken:?}]\n"));
    check(
        &home,
        &["-q", "permissions", "list"],
        2,
        &["the deny rule `Task(re viewer)` cannot be used: `re viewer` is not a name"],
    );
}

#[test]
fn imported_claude_code_settings_become_rules_with_their_line_numbers() {
    let home = Home::new();
    let settings = beside(
        &home,
        "home/proj/.claude/settings.json",
        r#"{
  "model": "x",
  "permissions": {
    "allow": [
      "Bash(git commit:*)",
      "Read(/docs/**)",
      "Bash(npm run build 2>&1)",
      "WebSearch",
      "Bash(cd x && make *)"
    ],
    "ask": ["Bash(git push:*)"],
    "deny": ["Read(./.env)", "mcp__git__delete"],
    "defaultMode": "acceptEdits",
    "additionalDirectories": ["../docs"],
    "disableBypassPermissionsMode": "disable"
  }
}
"#,
    );
    // Relative folders begin at the project, not at `.claude`.
    let docs = beside(&home, "home/docs/a", "");
    let docs = docs.trim_end_matches("/a");
    user(&home, &format!("[permissions]\nimport = [{settings:?}]\n"));
    let project = settings.trim_end_matches("/.claude/settings.json");
    let mut expected = vec![
        "deny Read(./.env) at settings.json:12".to_owned(),
        "deny mcp__git__delete at settings.json:12".into(),
        "ask Bash(git push:*) at settings.json:11".into(),
        "allow Bash(git commit:*) at settings.json:5".into(),
        format!("allow Read(/{project}/docs/**) at settings.json:6"),
        "allow Bash(npm run build 2>&1) at settings.json:7".into(),
        "allow WebSearch at settings.json:8".into(),
    ];
    assert_eq!(rules(&home), expected);
    check(
        &home,
        &["permissions", "list"],
        0,
        &[
            "mode   accept_edits",
            "settings.json:9: the allow rule `Bash(cd x && make *)` is left out",
            "keys without a meaning for permissions are not read: `model`",
        ],
    );
    let read = |path: &str| json!({"path": path}).to_string();
    check(&home, &["permissions", "explain", "read_file", &read(&format!("{docs}/a"))], 0, &[]);
    check(&home, &["permissions", "explain", "read_file", &read(".env")], 3, &["settings.json:12"]);
    check(&home, &["permissions", "explain", "read_file", &read(&settings)], 3, &["no tool may touch"]);
    check(&home, &["permissions", "explain", "write_file", WRITE], 0, &["accept_edits"]);

    // The options of the SDK, and a rule that should stop something and cannot.
    let options = beside(
        &home,
        "options.json",
        r#"{"allowedTools": ["Read", "Write(src/*)"], "disallowedTools": ["Bash(rm *)"]}"#,
    );
    user(&home, &format!("[permissions]\nimport = [{options:?}]\n"));
    expected = vec![
        "deny Bash(rm *) at options.json:1".into(),
        "allow Read at options.json:1".into(),
        "allow Write(src/*) at options.json:1".into(),
    ];
    assert_eq!(rules(&home), expected);
    beside(&home, "options.json", r#"{"disallowedTools": ["Bash(rm *"]}"#);
    check(&home, &["tools"], 2, &["options.json:1: the deny rule `Bash(rm *` cannot be used: the closing parenthesis"]);
    user(&home, "[permissions]\nimport = [\"missing.json\"]\n");
    check(&home, &["tools"], 0, &["config.toml:2:", "missing.json` is not imported: there is no such file"]);
}

#[test]
fn a_rule_with_any_name_of_a_command_tool_applies_to_commands() {
    let home = Home::new();
    let names = command_tools();
    assert!(names.contains(&"bash") && names.contains(&"async_cmd"), "{names:?}");
    for name in names {
        let explain = |line: &str, code, texts: &[&str]| {
            let (tool, arguments) = match *name {
                "run_code" => (*name, json!({"language": "shell", "code": line, "tools": []})),
                _ => ("bash", json!({"command": line})),
            };
            check(&home, &["-q", "permissions", "explain", tool, &arguments.to_string()], code, texts);
        };
        let deny = format!("{name}(rm *)");
        user(&home, &format!("[permissions]\nallow = [\"Bash\"]\ndeny = [\"{deny}\"]\n"));
        explain("ls; timeout 5 rm x", 3, &[&format!("the deny rule `{deny}`")]);
        explain("ls x", 0, &[]);
        let allow = format!("{name}(ls *)");
        user(&home, &format!("[permissions]\nallow = [{{ rule = \"{allow}\", matches = [\"ls -l\"] }}]\n"));
        explain("ls x", 0, &[&format!("the allow rule `{allow}`")]);
        explain("rm x", 1, &[]);
        user(&home, &format!("[permissions]\nallow = [\"{name}\", \"{name}(npx *)\"]\n"));
        let notes = [&format!("`{name}` lets any program run")[..], "covers no command: npx starts another program"];
        check(&home, &["config", "check"], 0, &notes);
    }
    user(&home, "[permissions]\nallow = [\"Bash\"]\ndeny = [\"async*(rm *)\"]\n");
    check(&home, &["permissions", "explain", "bash", r#"{"command":"rm x"}"#], 3, &["async*(rm *)"]);
}

#[test]
fn an_allow_rule_on_a_transparent_wrapper_is_rejected_and_a_deny_rule_is_accepted() {
    let home = Home::new();
    for program in LOOKED_THROUGH {
        user(&home, &format!("[permissions]\nallow = [\"Bash({program} *)\"]\n"));
        check(&home, &["config", "check"], 2, &["config.toml:2", "is skipped"]);
        user(&home, &format!("[permissions]\ndeny = [\"Bash({program} *)\"]\n"));
        check(&home, &["config", "check"], 0, &[]);
    }
}

#[test]
fn a_rule_whose_words_can_never_match_is_rejected_with_a_correction() {
    let home = Home::new();
    let settings = |deny: &str| {
        let text = json!({"permissions": {"deny": [deny]}}).to_string();
        let file = beside(&home, "settings.json", &text);
        user(&home, &format!("[permissions]\nimport = [{file:?}]\n"));
    };
    for (pattern, instead) in [("psql -c \"drop *", "`psql -c \"drop \"*`"), (r"make a\ *", "`make a' '*`")] {
        for head in ["Bash", "bash", "async_cmd", "*"] {
            let rule = format!("{head}({pattern})");
            user(&home, &format!("[permissions]\ndeny = ['{}']\n", rule.replace('\'', "\\'")));
            // What holds `*` in its name is about every tool, and checked where the definitions are.
            check(&home, &["config", "check"], 2, &["config.toml:2", instead]);
            if head != "*" {
                settings(&rule);
                check(&home, &["permissions", "list"], 2, &["settings.json:1: the deny rule", instead]);
            }
        }
    }
    let clai = beside(&home, "clai.json", r#"{"cmd-ban": ["psql -c \"drop", "git push"]}"#);
    user(&home, &format!("[permissions]\nimport = [{clai:?}]\n"));
    check(&home, &["tools"], 2, &["clai.json:1: the deny rule `Bash(psql -c \"drop *)` cannot be used"]);
}

#[test]
fn restrictions_of_an_imported_file_are_applied_or_the_file_is_rejected() {
    let home = Home::new();
    let import = |name: &str, text: &str| {
        let file = beside(&home, name, text);
        user(&home, &format!("[permissions]\nimport = [{file:?}]\n"));
    };
    import(
        "seed.yaml",
        "tools:\n  execute_command:\n    enabled: false\n    allowed_commands: [ls]\n    timeout: 30\n",
    );
    check(&home, &["call", "bash", r#"{"command":"ls"}"#], 3, &["the deny rule `execute_command`", "seed.yaml:3"]);
    assert!(!stdout(&home.run(&["tools"])).lines().any(|line| line.starts_with("bash ")));
    import("seed.yaml", "tools:\n  mcp__git__push:\n    enabled: false\n  write_file:\n    enabled: true\n");
    assert_eq!(rules(&home), ["deny mcp__git__push at seed.yaml:3"]);
    import("settings.json", r#"{"disabledMcpjsonServers": ["git"]}"#);
    assert_eq!(rules(&home), ["deny mcp__git at settings.json:1"]);
    import("clai.json", r#"{"tools": ["echo"], "use_tools": false}"#);
    check(&home, &["call", "echo", r#"{"message":"hi"}"#], 3, &["not among the selected ones"]);
    import("kodelet.yaml", "allowed_tools: ['-gr*', 'echo']\n");
    check(&home, &["call", "glob", r#"{"pattern":"*"}"#], 3, &["not among the selected ones"]);
    for (text, key) in [
        (r#"{"permissions": {"disableBypassPermissionsMode": "enable"}}"#, "permissions.disableBypassPermissionsMode"),
        (r#"{"permissions": {"lockedDown": true}}"#, "permissions.lockedDown"),
        (r#"{"permissions": {"defaultMode": "paranoid"}}"#, "\"paranoid\""),
        (r#"{"deniedMcpServers": [{"serverName": "git"}]}"#, "deniedMcpServers"),
        (r#"{"allowedMcpServers": []}"#, ""),
        (r#"{"sandbox": {"filesystem": {"denyRead": ["~/.ssh"]}}}"#, "denyRead"),
        (r#"{"tools": {"bash": {"read_only": true}}}"#, "tools.bash.read_only"),
        (r#"{"tools": {"excute_command": {"denied_commands": ["rm"]}}}"#, "did you mean `execute_command`?"),
        (r#"{"env": {"BLOCK": "1"}, "deniedMcpServers": [], "sandbox": {"blocked": false}, "model": "x"}"#, ""),
    ] {
        import("settings.json", text);
        let (code, texts) = if key.is_empty() { (0, vec![]) } else { (2, vec!["settings.json:1", key]) };
        check(&home, &["permissions", "list"], code, &texts);
    }
}

#[test]
fn bypass_mode_is_rejected_if_the_configuration_or_an_import_forbids_it() {
    let home = Home::new();
    let file = beside(&home, "settings.json", r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#);
    for import in [format!("import = [{file:?}]"), "disable_bypass = true".into()] {
        user(&home, &format!("[permissions]\n{import}\n"));
        check(&home, &["permissions", "list"], 0, &["mode   default"]);
        user(&home, &format!("[permissions]\nmode = \"bypass\"\n{import}\n"));
        let place = if import.starts_with("import") { "settings.json:1" } else { "config.toml:3" };
        check(
            &home,
            &["call", "echo", r#"{"message":"hi"}"#],
            2,
            &["config.toml:2: the mode `bypass` is forbidden", place],
        );
    }
}

#[test]
fn accept_edits_mode_allows_commands_that_only_write_workspace_and_temporary_files() {
    let home = Home::new();
    user(&home, "[permissions]\nmode = \"accept_edits\"\n");
    for (line, code) in [
        ("touch a > /tmp/x", 0),
        ("touch a /tmp/b 2> /dev/null", 0),
        ("touch a > b", 0),
        ("touch /etc/a > /tmp/x", 1),
        ("make > /tmp/x", 1),
        ("touch a > ../x", 3),
    ] {
        let arguments = json!({"command": line}).to_string();
        check(&home, &["permissions", "explain", "bash", &arguments], code, &[]);
    }
}

#[test]
fn a_git_rule_matches_commands_with_safe_general_options_before_the_subcommand() {
    let home = Home::new();
    fs::create_dir(home.work().join("d")).unwrap();
    let explain = |line: &str, code, texts: &[&str]| {
        let arguments = json!({"command": line}).to_string();
        check(&home, &["-q", "permissions", "explain", "bash", &arguments], code, texts);
    };
    user(&home, "[permissions]\nallow = [\"Bash(git *)\"]\n");
    for line in ["git -C d status", "git --no-pager -C d log", "git submodule update --init", "git lfs pull"] {
        explain(line, 0, &["the allow rule `Bash(git *)`"]);
    }
    for (line, reason) in [
        ("git -c core.pager=x log", "options before git's subcommand change what it does"),
        ("git submodule foreach rm x", "runs programs that it is given"),
        ("git config core.pager x", "git config can name programs"),
        ("git frobnicate", "`frobnicate` is not a known subcommand of git, and may be an alias"),
    ] {
        explain(line, 1, &["does not cover it, because", reason]);
    }
    user(
        &home,
        "[permissions]\nallow = [\"Bash(git *)\"]\ndeny = [\"Bash(git push *)\", \"Bash(git lfs push *)\", \"Read(d/**)\"]\n",
    );
    for line in
        ["git -C . push", "git -C . -C . --no-pager push origin", "timeout 5 git -C . lfs push", "git -C d status"]
    {
        explain(line, 3, &["the deny rule"]);
    }
}

#[test]
fn glob_characters_in_a_project_path_are_literal_in_imported_rules() {
    let home = Home::new();
    let settings = beside(
        &home,
        "home/p[ro]j*/.claude/settings.json",
        r#"{"permissions": {"deny": ["Read(/docs/**)", "Edit( /notes )", "LS(/lists)"], "additionalDirectories": [".."]}}"#,
    );
    let docs = beside(&home, "home/p[ro]j*/docs/a", "");
    user(&home, &format!("[permissions]\nimport = [{settings:?}]\n"));
    let explain = |tool: &str, arguments: Value| {
        check(
            &home,
            &["permissions", "explain", tool, &arguments.to_string()],
            3,
            &["the deny rule", "settings.json:1"],
        );
    };
    explain("read_file", json!({"path": docs}));
    explain("write_file", json!({"path": docs.replace("docs/a", "notes/b"), "content": ""}));
    explain("list_directory", json!({"path": docs.replace("docs/a", "lists")}));
}

#[test]
fn kodelet_clai_and_seed_files_are_imported_as_permission_rules() {
    let home = Home::new();
    beside(&home, "domains.txt", "# ours\n*.example.com\nhttps://docs.example.org/x\n\nexampl?.net\n");
    let kodelet = beside(
        &home,
        "kodelet.yaml",
        "provider: x\nallowed_commands:\n  - ls\n  - git log *\n  - 'ls {a,b}'\nallowed_domains_file: domains.txt\n",
    );
    user(&home, &format!("[permissions]\nimport = [{kodelet:?}]\n"));
    let listed = rules(&home);
    let banned = ["vim", "view", "less", "more", "cd"].map(|word| format!("deny Bash({word} *) at kodelet.yaml:3"));
    assert_eq!(listed[..5], banned);
    assert_eq!(
        listed[5..],
        [
            "allow Bash(ls) at kodelet.yaml:3",
            "allow Bash(git log *) at kodelet.yaml:4",
            "allow WebFetch(domain:*.example.com) at domains.txt:2",
            "allow WebFetch(domain:docs.example.org) at domains.txt:3",
        ]
    );
    check(
        &home,
        &["permissions", "list"],
        0,
        &["kodelet.yaml:5: the command \"ls {a,b}\" is left out", "domains.txt:5: `exampl?.net` is left out"],
    );
    let offered = |list: &str| {
        beside(&home, "kodelet.yaml", &format!("allowed_tools: {list}\n"));
        let tools = json_of(&home, &["tools", "--json"]);
        let names = tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(offered("[bash, file_read, subagent]"), ["bash", "read_file"]);
    for none in ["[none]", "[]", "none"] {
        assert_eq!(offered(none), [""; 0], "{none}");
    }
    beside(&home, "kodelet.yaml", "allowed_domains_file: gone.txt\n");
    check(&home, &["tools"], 2, &["kodelet.yaml:1: `allowed_domains_file`", "gone.txt cannot be read"]);

    let clai = beside(
        &home,
        "clai.json",
        r#"{"cmd-ban": ["rm -rf", "git push"], "use_tools": true, "tools": ["cat", "ec*", "nonsense"]}"#,
    );
    user(&home, &format!("[permissions]\nimport = [{clai:?}]\n"));
    assert_eq!(
        rules(&home),
        [
            "deny Bash(rm -rf *) at clai.json:1",
            "deny Bash(* rm -rf *) at clai.json:1",
            "deny Bash(git push *) at clai.json:1",
            "deny Bash(* git push *) at clai.json:1",
        ]
    );
    check(&home, &["permissions", "explain", "echo", r#"{"message":"hi"}"#], 0, &["no tool is called `nonsense` here"]);
    check(&home, &["permissions", "explain", "glob", r#"{"pattern":"*"}"#], 3, &["not among the selected ones"]);
    beside(&home, "clai.json", r#"{"use_tools": true, "tools": []}"#);
    check(&home, &["permissions", "explain", "echo", r#"{"message":"hi"}"#], 3, &["not among the selected ones"]);

    let seed = "tools:\n  execute_command:\n    allowed_commands: [ls]\n    denied_commands: [rm]\n    timeout: 30\n  write_file:\n    denied_paths: [/etc]\n  launch_rocket:\n    timeout: 5\n";
    let seed = beside(&home, "seed.yaml", seed);
    user(&home, &format!("[permissions]\nimport = [{seed:?}]\n"));
    assert_eq!(
        rules(&home),
        [
            "deny Bash(rm) at seed.yaml:4",
            "deny Bash(rm *) at seed.yaml:4",
            "deny Write(//etc) at seed.yaml:7",
            "allow Bash(ls) at seed.yaml:3",
            "allow Bash(ls *) at seed.yaml:3",
        ]
    );
    check(&home, &["permissions", "list"], 0, &["seed.yaml:8: `tools.launch_rocket` is left out"]);
    // The rule is not in the file, the entry is.
    let entry = "seed.yaml:4 (the entry `rm` of `tools.execute_command.denied_commands`)";
    check(&home, &["call", "bash", r#"{"command":"rm x"}"#], 3, &["the deny rule `Bash(rm *)` in ", entry]);
    let explained = json_of(&home, &["permissions", "list", "--json"]);
    let entries: Vec<&Value> = explained["rules"].as_array().unwrap().iter().map(|rule| &rule["entry"]).collect();
    assert_eq!(entries[0], "`rm` of `tools.execute_command.denied_commands`", "{explained}");
}

#[test]
fn a_list_of_allowed_hosts_is_protected_and_trusted_like_the_file_that_names_it() {
    let home = Home::new();
    let work = home.work().canonicalize().unwrap();
    fs::write(work.join("hosts.txt"), "example.com\n").unwrap();
    fs::write(work.join("kodelet.yaml"), "allowed_domains_file: hosts.txt\n").unwrap();
    let host = ["allow WebFetch(domain:example.com) at hosts.txt:1"];
    user(&home, &format!("[permissions]\nimport = [\"{}\"]\n", work.join("kodelet.yaml").display()));
    assert_eq!(rules(&home), host);
    let write = json!({"path": "hosts.txt", "content": "evil.example"}).to_string();
    check(&home, &["permissions", "explain", "write_file", &write], 3, &["no tool may touch"]);
    // In a project each of the three is trusted for itself, and a change takes the trust back.
    user(&home, "");
    for importer in ["toolstead.toml", "toolstead.local.toml"] {
        fs::write(work.join(importer), "[permissions]\nimport = [\"kodelet.yaml\"]\n").unwrap();
        for file in [importer, "kodelet.yaml", "hosts.txt"] {
            assert_eq!(rules(&home), [""; 0], "{importer} before {file}");
            check(&home, &["config", "trust", "--yes", file], 0, &[]);
        }
        assert_eq!(rules(&home), host, "{importer}");
        fs::write(work.join("hosts.txt"), "evil.example\n").unwrap();
        assert_eq!(rules(&home), [""; 0], "{importer}");
        fs::write(work.join("hosts.txt"), "example.com\n").unwrap();
        for file in ["hosts.txt", "kodelet.yaml", importer] {
            check(&home, &["config", "trust", "--remove", file], 0, &[]);
        }
        fs::remove_file(work.join(importer)).unwrap();
    }
}

#[test]
fn an_untrusted_project_can_only_restrict_permissions() {
    let home = Home::new();
    let work = home.work().canonicalize().unwrap();
    fs::write(
        work.join("claude.json"),
        r#"{"permissions": {"allow": ["Write"], "deny": ["Read(secret)"], "defaultMode": "bypassPermissions"}}"#,
    )
    .unwrap();
    let text = "[permissions]\nmode = \"bypass\"\nallow = [\"Write\"]\ndeny = [\"Read(.env)\"]\nimport = [\"claude.json\"]\nread_only_commands = true\n";
    project(&home, text);
    let write = ["permissions", "explain", "write_file", WRITE];
    check(&home, &write, 1, &["by default"]);
    assert_eq!(rules(&home), ["deny Read(.env) at toolstead.toml:4"]);
    check(
        &home,
        &["permissions", "list"],
        0,
        &[
            "mode   default",
            "# waits for trust: permissions.allow = \"Write\"",
            "# waits for trust: permissions.mode = \"bypass\"",
            "# waits for trust: permissions.import = ",
            "# waits for trust: permissions.read_only_commands = true",
        ],
    );
    // Trusting the project's file leaves the file that it imports a stranger: its rules may only tighten.
    project(&home, "[permissions]\nimport = [\"claude.json\"]\n");
    check(&home, &["config", "trust", "--yes"], 0, &["permissions.import"]);
    assert_eq!(rules(&home), ["deny Read(secret) at claude.json:1"]);
    check(&home, &write, 1, &[]);
    check(&home, &["config", "trust", "--yes", "claude.json"], 0, &["permissions.allow", "is trusted as it is now"]);
    check(&home, &write, 0, &[]);
    check(
        &home,
        &["permissions", "explain", "write_file", r#"{"path":"claude.json","content":"{}"}"#],
        3,
        &["no tool may touch"],
    );
    fs::write(work.join("claude.json"), r#"{"permissions": {"allow": ["Write", "Read"]}}"#).unwrap();
    check(&home, &write, 1, &[]);
}

#[test]
fn read_only_command_rules_are_off_by_default_and_the_strictest_setting_applies() {
    let home = Home::new();
    assert_eq!(rules(&home), [""; 0]);
    user(&home, "[permissions]\nread_only_commands = true\n");
    let free = rules(&home);
    assert!(free.contains(&"allow Bash(git status *) at config.toml:2".to_owned()), "{free:?}");
    assert!(free.iter().all(|rule| rule.starts_with("allow Bash(")), "{free:?}");
    project(&home, "[permissions]\nread_only_commands = false\n");
    check(&home, &["config", "trust", "--yes"], 0, &[]);
    assert_eq!(rules(&home), [""; 0]);
}
