#![expect(clippy::disallowed_methods, reason = "tests lay out folders and programs behind the tool's back")]

use super::{
    RunCode,
    language::{Language, LaunchInput, ToolSignature},
};
use crate::{
    builtin::{
        commands::{
            capture::Capture,
            command::{CommandHandle, ExcessPolicy},
            programs::{CommandSettings, ProgramLauncher, ProgramSpec},
        },
        tests::{Bench, definition},
        tool_kit::testing::{ToolTestHarness, test_environment},
    },
    sandbox::{
        launcher::ChildInput as StandardInput,
        workspace::{UserPathAliases, Workspace},
    },
};
use serde_json::{Value, json};
use std::sync::Arc;
use toolstead_domain::{
    Access, Availability, Category, Effect, ParseConfidence, PermissionPolicy, Tool, ToolName, ToolResult, ToolSource,
    WorkspaceRoots, error_kind::ErrorKind,
};

fn run(language: &str, code: &str) -> ToolResult {
    let arguments = json!({"language": language, "code": code, "tools": [], "stdin": "the rest ü\n"});
    Bench::new().call("run_code", arguments).unwrap_or_else(|failure| failure.into_result())
}

#[test]
fn code_prints_output_and_reads_the_given_stdin() {
    for (language, code) in [
        ("python", "import sys\nprint(sys.stdin.read(), end='')\nprint(__name__, sys.argv)"),
        (
            "javascript",
            "import fs from 'node:fs';\nconst os = require('os');\n\
             process.stdout.write(fs.readFileSync(0, 'utf8'));\nawait null; console.log('__main__', typeof os.cpus)",
        ),
        ("shell", "cat; echo __main__ \"$0\" \"$#\""),
    ] {
        let text = run(language, code).joined_text();
        assert!(text.starts_with("the rest ü\n__main__ "), "{language}: {text}");
    }
    assert_eq!(run("shell", "true").joined_text(), "The code succeeded and printed nothing.");
}

#[test]
fn failed_code_reports_its_exit_code_and_error_line() {
    for (language, code, exit_code, line, part) in [
        ("python", "x = 1\n\ndef f():\n    return 1 / 0\nf()", 1, 4, "ZeroDivisionError: division by zero"),
        ("python", "x = 1\nif x\n  y", 1, 2, "SyntaxError: expected ':'"),
        ("python", "import sys\nsys.exit(3)", 3, 0, "exit code 3"),
        ("javascript", "const x = 1;\n\nfunction f() {\n  null.x;\n}\nf();", 1, 4, "TypeError: Cannot read"),
        (
            "javascript",
            "setInterval(() => {}, 1);\nconsole.error('code.mjs:7 is no place');\nthrow new Error('x');",
            1,
            3,
            "Error: x",
        ),
        ("javascript", "const x = 1;\nlet y = ;\n", 1, 2, "SyntaxError: Unexpected token ';'"),
        ("javascript", "setTimeout(() => {}, 1);\nawait new Promise(() => {});", 13, 0, "never settles"),
        ("shell", "x=1\n\nset -e; no-such-program", 127, 3, "no-such-program: command not found"),
        ("shell", "x=1\nif x\n)", 2, 3, "syntax error"),
    ] {
        let failed = run(language, code);
        let outcome = failed.structured_content().unwrap();
        let text = failed.joined_text();
        assert_eq!((outcome["exit_code"].as_i64(), failed.is_error()), (Some(exit_code), true), "{code}: {text}");
        assert_eq!(outcome.get("error_line").and_then(Value::as_u64).unwrap_or_default(), line, "{code}: {text}");
        assert!(text.contains(part), "{code}: {text}");
        assert!(!text.contains("<tools>") && !text.contains("tools.js") && !text.contains("[eval"), "{code}: {text}");
    }
}

#[test]
fn code_is_checked_as_an_interpreter_command_or_shell_line() {
    let bench = Bench::new();
    let command = |language: &str, code: &str| {
        let accesses = bench.call_unchecked("run_code", json!({"language": language, "code": code, "tools": []}));
        accesses.unwrap().into_iter().find_map(|access| match access {
            Access::RunCommand(command) => Some(command),
            _ => None,
        })
    };
    for (language, code, words) in [
        ("python", "print('a')", ["python3", "-c", "print('a')"]),
        ("javascript", "f('a')\n", ["node", "-e", "f('a')\n"]),
    ] {
        let command = command(language, code).unwrap();
        assert_eq!(command.words.iter().map(|word| &**word).collect::<Vec<_>>(), words);
        assert!(matches!(command.clarity, ParseConfidence::Exact(_)), "{command}");
    }
    assert_eq!(&*command("shell", "rm x").unwrap().text, "rm x");
}

#[tokio::test]
async fn interpreter_rules_do_not_allow_code_and_shell_code_is_checked_per_command() {
    let print = "print(1)";
    for (effect, rule, language, code, is_run) in [
        (Effect::Allow, "Bash(python3 *)", "python", print, false),
        (Effect::Allow, "Bash(node *)", "javascript", "console.log(1)", false),
        (Effect::Allow, "Bash(bash *)", "shell", "echo 1", false),
        (Effect::Allow, "Bash(echo *)", "shell", "echo 1; rm -f x", false),
        (Effect::Allow, "Bash(echo *)", "shell", "echo 1", true),
        (Effect::Allow, "Bash", "python", print, true),
        (Effect::Deny, "Bash(python3 *)", "python", print, false),
        (Effect::Deny, "Bash(rm *)", "shell", "echo 1; rm -f x", false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let bench = ToolTestHarness::of(RunCode, &folder).with_rule(effect, rule).without_approver();
        let result = bench.call("run_code", json!({"language": language, "code": code, "tools": []})).await;
        let ran = result.map(|result| result.joined_text()).map_err(|failure| failure.kind);
        let expected = if is_run { Ok("1\n".into()) } else { Err(ErrorKind::PermissionDenied) };
        assert_eq!(ran, expected, "{rule}: {code}");
    }
}

#[tokio::test]
async fn a_missing_interpreter_makes_its_language_unavailable_and_others_are_listed() {
    let (folder, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let of_machine = || {
        let mut settings = CommandSettings::default();
        settings.environment.insert("PATH".into(), programs.path().display().to_string());
        let root = folder.path().canonicalize().unwrap();
        let roots = WorkspaceRoots { write: vec![root], ..Default::default() };
        let workspace = Workspace::open(&roots, UserPathAliases::default()).unwrap();
        let world = test_environment(workspace).with_programs(Arc::new(ProgramLauncher::new(settings)));
        let policy = PermissionPolicy { roots, ..Default::default() };
        ToolTestHarness::in_environment(vec![Box::new(RunCode)], world, policy, Arc::default())
    };
    let availability = of_machine().definition("run_code").availability.clone();
    let missing = "none of the programs `python3`, `node`, `bash` is installed";
    assert_eq!(availability, Availability::Unavailable(missing.into()));
    std::os::unix::fs::symlink("/bin/bash", programs.path().join("bash")).unwrap();
    let bench = of_machine();
    assert_eq!(bench.definition("run_code").availability, Availability::Available);
    let call = |language| bench.call("run_code", json!({"language": language, "code": "echo 1", "tools": []}));
    assert_eq!(call("shell").await.unwrap().joined_text(), "1\n");
    let failure = call("javascript").await.unwrap_err();
    let text = "`javascript` is unavailable: the program `node` is not installed. Available: `shell`.";
    assert_eq!((failure.kind, failure.text().as_str()), (ErrorKind::Unavailable, text));
    assert!(
        bench.approval_requests().iter().all(|asked| !asked.to_string().contains("node")),
        "{:?}",
        bench.approval_requests()
    );
}

/// Names that are valid identifiers in some languages only.
const NAMES: [&str; 10] =
    ["read_file", "mcp__git-hub__list", "a-b", "a_b", "x.y", "x-y", "from", "list", "1st", "grep"];

/// Returns the output of code that has tools with these names, and cannot call any.
async fn printed(language: Language, code: &str) -> String {
    let function = |name: &&str| {
        let schema = json!({"inputSchema": {"properties": {"b": {}, "a": {}}, "required": ["a"]}});
        let definition = schema.as_object().unwrap().clone();
        ToolSignature::of(&Tool::new(
            ToolName::parse(name).unwrap(),
            definition,
            Category::Utility,
            ToolSource::BuiltIn,
        ))
    };
    let LaunchInput { args, input } = language.start(code, &NAMES.iter().map(function).collect::<Vec<_>>());
    let folder = tempfile::tempdir().unwrap();
    let bench = ToolTestHarness::of(RunCode, &folder);
    let program = ProgramSpec {
        name: language.program().into(),
        args,
        working_dir: folder.path().canonicalize().unwrap(),
        input: StandardInput::Pipe,
        environment: Default::default(),
        offers_tools: false,
    };
    let run = bench.with_context("run_code", async |run| {
        let started = run
            .environment()
            .processes()
            .programs()
            .start(program, run.context(), run.environment().workspace())
            .await
            .unwrap();
        let capture = Capture::new("/tmp".into(), 1 << 20);
        let command = CommandHandle::of(started, capture, Some(run.deadline()), ExcessPolicy::Ends, Some(input), false);
        command.ended().await;
        command.capture.read(0, 1 << 20).unwrap().1
    });
    String::from_utf8(run.await).unwrap()
}

#[tokio::test]
async fn every_tool_resolves_by_its_name_and_ambiguous_names_resolve_to_none() {
    for (spelling, python, javascript) in [
        ("read_file", "read_file", "read_file"),
        ("readFile", "?", "read_file"),
        ("mcp__git_hub__list", "mcp__git-hub__list", "mcp__git-hub__list"),
        ("mcpGitHubList", "?", "mcp__git-hub__list"),
        ("a_b", "a_b", "a_b"),
        ("aB", "?", "?"),
        ("x_y", "?", "?"),
        ("from_", "from", "from"),
        ("list_", "list", "list"),
        ("_1st", "1st", "1st"),
        ("nothing", "?", "?"),
    ] {
        let code = format!("try: print(tools.{spelling}.name)\nexcept AttributeError: print('?')");
        assert_eq!(printed(Language::Python, &code).await, format!("{python}\n"), "{spelling}");
        let code = format!("try {{ console.log(tools.{spelling}.name); }} catch {{ console.log('?'); }}");
        assert_eq!(printed(Language::Javascript, &code).await, format!("{javascript}\n"), "{spelling}");
    }
    let python = "print(all(tools[name].name == name for name in tools.list()), tools['x.y'], *tools.list())";
    let expected = format!("True x.y(a, b=) {}\n", NAMES.join(" "));
    assert_eq!(printed(Language::Python, python).await, expected);
    let javascript = "const own = ['list'];\nconst names = Object.keys(tools.list());\n\
                      console.log(names.every((name) => own.includes(name) || tools[name].name === name) ? 'True' : '',\n\
                      `x.y(${tools.list()['x.y']})`, ...names);";
    let expected = format!("True x.y({{a, b?}}) {}\n", NAMES.join(" "));
    assert_eq!(printed(Language::Javascript, javascript).await, expected);
}

#[tokio::test]
async fn shell_tool_functions_do_not_shadow_programs() {
    let code = "for name in read_file mcp__git-hub__list; do type -t $name; done; type -t grep bash; read_file x";
    let said = printed(Language::Shell, code).await;
    // The message of the shell comes through another pipe, at any time.
    let (errors, types): (Vec<&str>, Vec<&str>) = said.trim().lines().partition(|line| line.contains("not found"));
    assert!(errors.len() == 1 && errors[0].contains("tool: command not found"), "{said}");
    assert_eq!(types, ["function", "function", "file", "file"], "{said}");
}

#[test]
fn code_without_a_tools_argument_receives_read_only_file_and_search_tools() {
    let bench = Bench::new();
    let offered = |tools: Value| {
        let mut arguments = json!({"language": "shell", "code": "true", "tools": tools});
        if tools.is_null() {
            arguments.as_object_mut().unwrap().shift_remove("tools");
        }
        let accesses = bench.call_unchecked("run_code", arguments).unwrap();
        let of = |access: &Access| match access {
            Access::OfferTools(name) => Some(name.to_string()),
            _ => None,
        };
        accesses.iter().filter_map(of).collect::<Vec<_>>()
    };
    let usual = offered(Value::Null);
    assert_eq!(usual, ["file_info", "glob", "grep", "list_directory", "read_file"]);
    for name in &usual {
        let tool = definition(name);
        let reads = tool.annotations().read_only_hint == Some(true) && !tool.takes_command_lines;
        assert!(reads && [Category::File, Category::Search].contains(&tool.category), "{name}");
    }
    assert_eq!(offered(json!(["mcp__git__*", "echo"])), ["echo", "mcp__git__*"]);
    assert_eq!(offered(json!([])), [""; 0]);
}

#[test]
fn code_past_its_timeout_is_stopped_and_its_output_is_returned() {
    for (language, code) in [
        ("python", "print('begun')\nwhile True: pass"),
        ("javascript", "console.log('begun');\nfor (;;);"),
        ("shell", "echo begun; while :; do :; done"),
    ] {
        let arguments = json!({"language": language, "code": code, "tools": [], "timeout_ms": 1500});
        let failure = Bench::new().call("run_code", arguments).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Timeout);
        let text = failure.into_result().joined_text();
        assert!(text.contains("begun") && text.contains("`timeout_ms`"), "{language}: {text}");
    }
}

#[test]
fn long_output_is_stored_under_a_handle() {
    let bench = Bench::new();
    let code = "for i in range(100_000): print(i)";
    let result = bench.call("run_code", json!({"language": "python", "code": code, "tools": []})).unwrap();
    let handle = result.structured_content().unwrap()["output"].as_str().unwrap().to_owned();
    assert!(result.joined_text().contains(&format!("all of it is `{handle}`")));
    assert!(bench.text("read_file", json!({"path": handle, "offset": -1})).contains("99999"));
}
