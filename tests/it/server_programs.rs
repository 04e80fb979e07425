//! Servers run only programs that the user trusted: through the real binary, with real small servers.

use crate::binaries::{Home, Pipe, stderr, stdout};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

/// A server with the tools `tell`, which says what it is and where, and `end`, after which there is none.
const SERVER: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "server/discover":
        answer["error"] = {"code": -32601, "message": "no"}
    elif message["method"] == "initialize":
        server = {"name": "srv", "version": "1"}
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server}
    elif message["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("tell", "end")]}
    elif message["params"]["name"] == "end":
        sys.exit(0)
    else:
        answer["result"] = {"content": [{"type": "text", "text": "MARK in " + os.getcwd()}]}
    print(json.dumps(answer), flush=True)
"#;
const PYTHON: &str = "/usr/bin/python3";
const PATIENCE: Duration = Duration::from_secs(120);

fn server(mark: &str) -> String {
    SERVER.replace("MARK", mark)
}

/// A workspace with a server's script in it.
struct Bench {
    home: Home,
    config: PathBuf,
    script: PathBuf,
}

impl Bench {
    fn new(profile: &str) -> Self {
        let home = Home::new();
        let script = home.work().canonicalize().unwrap().join("srv.py");
        fs::write(&script, server("first")).unwrap();
        let config = home.config(&format!(
            "[permissions]\nallow = ['Bash', 'Write']\n[mcp_servers.srv]\ncommand = '{PYTHON}'\nargs = [{script:?}]\n\
             allow_tools = ['*']\nprofile = '{profile}'\n"
        ));
        Self { home, config, script }
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.home.run(&[&["--config", self.config.to_str().unwrap()], arguments].concat());
        (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
    }

    #[track_caller]
    fn check(&self, arguments: &[&str], code: i32, texts: &[&str]) -> String {
        let (ended, printed) = self.run(arguments);
        assert_eq!(ended, Some(code), "{arguments:?}: {printed}");
        for text in texts {
            assert!(printed.contains(text), "{arguments:?} does not say `{text}`: {printed}");
        }
        printed
    }

    fn changed(&self) -> String {
        format!("`{}`, which it runs, has changed since it was trusted", self.script.display())
    }
}

const TELL: [&str; 3] = ["call", "mcp__srv__tell", "{}"];

#[test]
fn tools_cannot_change_the_script_of_a_server_with_network_access() {
    for profile in ["open", "guarded"] {
        let bench = Bench::new(profile);
        bench.check(&TELL, 0, &["first in "]);
        let write = json!({"path": "srv.py", "content": server("second")}).to_string();
        bench.check(&["call", "write_file", &write], 3, &["the deny rule `Write("]);
        for line in ["echo > srv.py", "rm -f srv.py", "mv srv.py old.py", "python3 -c 'open(\"srv.py\", \"w\")'"] {
            bench.run(&["call", "bash", &json!({"command": line}).to_string()]);
            assert_eq!(fs::read_to_string(&bench.script).unwrap(), server("first"), "{profile}: {line}");
        }
        bench.check(&TELL, 0, &["first in "]);
    }
}

#[test]
fn a_changed_server_script_does_not_start_until_it_is_trusted() {
    for profile in ["open", "guarded"] {
        let bench = Bench::new(profile);
        bench.check(&TELL, 0, &["first in "]);
        fs::write(&bench.script, server("second")).unwrap();
        let (_, printed) = bench.run(&TELL);
        assert!(!printed.contains("second in"), "{printed}");
        let trust = format!("config trust '{}'`", bench.script.display());
        bench.check(&["servers"], 4, &[&bench.changed(), &trust]);
        bench.check(&["config", "trust", "--yes", bench.script.to_str().unwrap()], 0, &["is trusted as it is now"]);
        bench.check(&TELL, 0, &["second in "]);
        // What is gone does not come back as something else.
        fs::remove_file(&bench.script).unwrap();
        bench.run(&["servers"]);
        fs::write(&bench.script, server("third")).unwrap();
        bench.check(&["servers"], 4, &[&bench.changed()]);
        bench.check(&["config", "trust", "--yes", bench.config.to_str().unwrap()], 0, &["a server of this file runs"]);
        bench.check(&TELL, 0, &["third in "]);
    }
}

#[test]
fn a_server_that_dies_is_not_started_again_with_another_script_in_the_same_session() {
    let bench = Bench::new("open");
    let mut command = bench.home.toolstead(&["mcp", "--config"]);
    command.arg(&bench.config).stderr(Stdio::piped());
    let mut pipe = Pipe::start(command);
    pipe.initialize();
    let mut id = 0;
    let mut call = |tool: &str| -> Value {
        id += 1;
        let params = json!({"name": tool, "arguments": {}});
        pipe.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string());
        pipe.answer(id)
    };
    let end = Instant::now() + PATIENCE;
    let first = loop {
        let answer = call("mcp__srv__tell");
        if answer["result"]["isError"] != true && answer["result"].is_object() {
            break answer;
        }
        assert!(Instant::now() < end, "{answer}");
    };
    assert!(first.to_string().contains("first in"), "{first}");
    fs::write(&bench.script, server("second")).unwrap();
    call("mcp__srv__end");
    // It is tried again soon, and stays down.
    let reason = loop {
        let answer = call("mcp__srv__tell").to_string();
        assert!(!answer.contains("second in"), "{answer}");
        if answer.contains("has changed since it was trusted") {
            break answer;
        }
        assert!(Instant::now() < end, "{answer}");
    };
    assert!(reason.contains("config trust"), "{reason}");
    bench.check(&["config", "trust", "--yes", bench.script.to_str().unwrap()], 0, &["is trusted as it is now"]);
    while !call("mcp__srv__tell").to_string().contains("second in") {
        assert!(Instant::now() < end, "a yes lets it start in the same session");
    }
}

#[test]
fn a_project_server_starts_in_the_project_folder_and_runs_the_script_that_was_trusted() {
    let home = Home::new();
    let top = home.work().canonicalize().unwrap();
    for folder in [".git", "sub"] {
        fs::create_dir(top.join(folder)).unwrap();
    }
    fs::write(top.join("srv.py"), server("of the project")).unwrap();
    fs::write(top.join("sub/srv.py"), server("of the call")).unwrap();
    let of = |profile: &str| {
        format!(
            "[mcp_servers.srv]\ncommand = '{PYTHON}'\nargs = ['srv.py']\nallow_tools = ['*']\nprofile = '{profile}'\n"
        )
    };
    let run = |arguments: &[&str]| {
        let output = home.toolstead(arguments).current_dir(top.join("sub")).stdin(Stdio::null()).output().unwrap();
        format!("{}{}", stdout(&output), stderr(&output))
    };
    for profile in ["open", "guarded"] {
        fs::write(top.join("toolstead.toml"), of(profile)).unwrap();
        let message = run(&["config", "trust", "--yes"]);
        assert!(message.contains("is trusted as it is now"), "{message}");
        let printed = run(&TELL);
        assert!(printed.contains(&format!("of the project in {}", top.display())), "{profile}: {printed}");
    }
    // With the project as a root, what lies there is what tools write to.
    let at_top = |arguments: &[&str]| {
        let output = home.run(arguments);
        format!("{}{}", stdout(&output), stderr(&output))
    };
    let message = at_top(&["config", "trust", "--yes"]);
    assert!(message.contains(&format!("a server of this file runs {}", top.join("srv.py").display())), "{message}");
    assert!(at_top(&TELL).contains("of the project in"), "trusted with its file");
    fs::write(top.join("srv.py"), server("changed")).unwrap();
    assert!(at_top(&["servers"]).contains("has changed since it was trusted"));
}

#[test]
fn a_relative_script_in_the_user_configuration_must_be_trusted_before_it_runs() {
    let home = Home::new();
    let config = home.work().join("../config/toolstead/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(home.work().join("srv.py"), server("of a stranger")).unwrap();
    fs::write(home.work().join("helper.py"), server("of a module")).unwrap();
    for args in ["['srv.py']", "['-m', 'helper']"] {
        let text =
            format!("[mcp_servers.srv]\ncommand = '{PYTHON}'\nargs = {args}\nallow_tools = ['*']\nprofile = 'open'\n");
        fs::write(&config, text).unwrap();
        let output = home.run(&TELL);
        assert!(!stdout(&output).contains("of a "), "{args}: {}", stdout(&output));
        let message = stdout(&home.run(&["servers"]));
        assert!(message.contains("is where tools write, and is not trusted"), "{args}: {message}");
        let trusted = home.run(&["config", "trust", "--yes", config.to_str().unwrap()]);
        assert_eq!(trusted.status.code(), Some(0), "{}", stderr(&trusted));
        assert!(stdout(&home.run(&TELL)).contains("of a "), "{args}");
    }
}

#[test]
fn a_guarded_server_cannot_change_the_scripts_of_itself_or_another_server() {
    let home = Home::new();
    let top = home.work().canonicalize().unwrap();
    let writes = server("first").replace("import json, os, sys\n", "import json, os, sys\nfor name in ('srv.py', 'other.py'):\n    try:\n        open(name, 'a').write('#')\n    except OSError:\n        pass\nopen('wrote', 'w')\n");
    fs::write(top.join("srv.py"), &writes).unwrap();
    fs::write(top.join("other.py"), server("other")).unwrap();
    let other = Path::new(&top).join("other.py");
    let config = home.config(&format!(
        "[mcp_servers.srv]\ncommand = '{PYTHON}'\nargs = ['srv.py']\ncwd = {top:?}\nallow_tools = ['*']\n\
         [mcp_servers.other]\ncommand = '{PYTHON}'\nargs = [{other:?}]\nprofile = 'open'\n"
    ));
    let output = home.run(&[&["--config", config.to_str().unwrap()], &TELL[..]].concat());
    assert!(stdout(&output).contains("first in"), "{}{}", stdout(&output), stderr(&output));
    assert!(top.join("wrote").exists(), "its folder is open to it");
    assert_eq!(fs::read_to_string(top.join("srv.py")).unwrap(), writes);
    assert_eq!(fs::read_to_string(other).unwrap(), server("other"));
}

#[test]
fn changes_by_a_guarded_server_to_programs_of_other_servers_are_blocked_or_detected() {
    let home = Home::new();
    let top = home.work().canonicalize().unwrap();
    let tools = top.with_file_name("tools");
    fs::create_dir(&tools).unwrap();
    let writes = "import json, os, sys\nfor name in ('other.py', 'helper.py'):\n    try:\n        \
                  open(os.environ['TOOLS'] + '/' + name, 'a').write('#')\n    except OSError:\n        pass\n";
    fs::write(top.join("srv.py"), server("first").replace("import json, os, sys\n", writes)).unwrap();
    for name in ["other.py", "helper.py"] {
        fs::write(tools.join(name), server(name)).unwrap();
    }
    let script = tools.join("other.py");
    let config = home.config(&format!(
        "[mcp_servers.srv]\ncommand = '{PYTHON}'\nargs = ['srv.py']\nenv = {{ TOOLS = {tools:?} }}\nallow_tools = ['*']\n\
         [mcp_servers.other]\ncommand = '{PYTHON}'\nargs = [{script:?}]\nprofile = 'open'\n\
         [mcp_servers.module]\ncommand = '{PYTHON}'\nargs = ['-m', 'helper']\ncwd = {tools:?}\nallow_tools = ['*']\n\
         profile = 'open'\n"
    ));
    let run = |arguments: &[&str]| {
        let output = home.run(&[&["--config", config.to_str().unwrap()], arguments].concat());
        format!("{}{}", stdout(&output), stderr(&output))
    };
    let module = ["call", "mcp__module__tell", "{}"];
    let printed = run(&module);
    assert!(printed.contains("helper.py in"), "{printed}");
    let printed = run(&TELL);
    assert!(printed.contains("first in"), "{printed}");
    // What it runs is closed; what a runner reads is open, as it is in a root, and missed.
    assert_eq!(fs::read_to_string(&script).unwrap(), server("other.py"));
    assert_ne!(fs::read_to_string(tools.join("helper.py")).unwrap(), server("helper.py"));
    let printed = run(&["servers"]);
    assert!(printed.contains("helper.py`, which it runs, has changed since it was trusted"), "{printed}");
    assert!(!run(&module).contains("helper.py in"));
}

#[test]
fn a_server_configured_in_the_home_folder_cannot_write_to_the_home_folder() {
    let home = Home::new();
    let top = home.work().parent().unwrap().canonicalize().unwrap();
    let script = top.join("programs/srv.py");
    for folder in [script.parent().unwrap(), &top.join(".cursor")] {
        fs::create_dir_all(folder).unwrap();
    }
    let tries = "import json, os, sys\ntry:\n    open(sys.argv[1][1:] + '/left', 'w')\nexcept OSError:\n    pass\n";
    fs::write(&script, server("first").replace("import json, os, sys\n", tries)).unwrap();
    let file = top.join(".cursor/mcp.json");
    // The argument names no path to others.
    let arguments = json!([script, format!("@{}", top.display())]);
    fs::write(&file, json!({"mcpServers": {"srv": {"command": PYTHON, "args": arguments}}}).to_string()).unwrap();
    let run = |arguments: &[&str]| {
        let output = home.toolstead(arguments).env("HOME", &top).stdin(Stdio::null()).output().unwrap();
        format!("{}{}", stdout(&output), stderr(&output))
    };
    let message = run(&["config", "trust", "--yes", file.to_str().unwrap()]);
    assert!(message.contains("is trusted as it is now"), "{message}");
    let printed = run(&[&["--allow", "mcp__srv"], &TELL[..]].concat());
    assert!(printed.contains("first in /tmp"), "{printed}");
    assert!(!top.join("left").exists());
}

#[test]
fn a_server_program_changed_before_its_first_start_does_not_run_until_it_is_trusted() {
    for (args, changed) in [("[SCRIPT]", "srv.py"), ("['-m', 'helper']", "helper.py")] {
        for is_there in [true, false] {
            let home = Home::new();
            let top = home.work().canonicalize().unwrap();
            if is_there {
                fs::write(top.join(changed), server("first")).unwrap();
            }
            let script = top.join("srv.py");
            let config = home.config(&format!(
                "[mcp_servers.srv]\ncommand = '{PYTHON}'\nargs = {}\nallow_tools = ['*']\nprofile = 'open'\n",
                args.replace("SCRIPT", &format!("{script:?}"))
            ));
            let run = |arguments: &[&str]| {
                let output = home.run(&[&["--config", config.to_str().unwrap()], arguments].concat());
                format!("{}{}", stdout(&output), stderr(&output))
            };
            // Needs no server, so that none is started.
            run(&["call", "echo", r#"{"message":"hi"}"#]);
            fs::write(top.join(changed), server("second")).unwrap();
            let printed = run(&TELL);
            assert!(!printed.contains("second in"), "{args} {is_there}: {printed}");
            let message = run(&["servers"]);
            assert!(
                message.contains(&format!("{changed}`, which it runs, has changed")),
                "{args} {is_there}: {message}"
            );
            run(&["config", "trust", "--yes", config.to_str().unwrap()]);
            assert!(run(&TELL).contains("second in"), "{args} {is_there}");
        }
    }
}

#[test]
fn a_list_of_tools_in_another_clients_file_hides_the_others() {
    let home = Home::new();
    let script = home.work().canonicalize().unwrap().join("srv.py");
    fs::write(&script, server("here")).unwrap();
    let servers = json!({"mcpServers": {"srv": {"command": PYTHON, "args": [script], "tool_white_list": ["tell"]}}});
    fs::write(home.work().join(".mcp.json"), servers.to_string()).unwrap();
    let check = |arguments: &[&str], code: i32| -> String {
        let output = home.run(arguments);
        let printed = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {printed}");
        printed
    };
    check(&["config", "trust", "--yes", ".mcp.json"], 0);
    let listed = check(&["tools", "--all"], 0);
    assert!(listed.contains("mcp__srv__tell") && !listed.contains("mcp__srv__end"), "{listed}");
    let allowed = |tool: &'static str| ["--allow", "mcp__srv", "call", tool, "{}"];
    assert!(check(&allowed("mcp__srv__tell"), 0).contains("here in "));
    check(&allowed("mcp__srv__end"), 4);
}
