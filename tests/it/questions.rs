//! Questions of real servers to real clients through us, in front of servers of both generations, and to a person at a
//! terminal.

use crate::binaries::{Home, node_path, peer, python_program, stderr, stdout};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    process::Stdio,
};

/// A home with the fixture server in this generation.
struct Place {
    home: Home,
    config: PathBuf,
}

fn place(upstream: &str, may_ask: &str) -> Place {
    place_of("fixture_server.py", upstream, may_ask)
}

fn place_of(server: &str, upstream: &str, may_ask: &str) -> Place {
    let home = Home::new();
    let config = home.config(&format!(
        "[mcp_servers.fixture]\ncommand = {:?}\nargs = [{:?}]\nallow_tools = [\"*\"]\nprotocol = \"{upstream}\"\n\
         profile = \"open\"\n{may_ask}\n",
        python_program("python"),
        peer(server)
    ));
    Place { home, config }
}

impl Place {
    /// Returns the output of `toolstead ARGUMENTS…`.
    fn printed(&self, arguments: &[&str]) -> String {
        let mut command = self.home.toolstead(&["--config", self.config.to_str().unwrap()]);
        stdout(&command.args(arguments).output().unwrap())
    }

    /// The rows of questions, the newest first.
    fn questions(&self) -> Vec<Value> {
        let listed = self.printed(&["executions", "list", "--kind", "question", "--json"]);
        let listed: Value = serde_json::from_str(&listed).unwrap();
        listed["executions"].as_array().unwrap().clone()
    }
}

const ALL: &str = r#"may_ask = ["elicitation", "sampling", "roots"]"#;

/// Returns the results of the fixture's tools for the Python SDK's client, and the questions that the client received.
#[track_caller]
fn answers_of(place: &Place, mode: &str, tools: &[&str], environment: &[(&str, &str)]) -> (Vec<String>, Value) {
    let names: Vec<String> = tools.iter().map(|tool| format!("mcp__fixture__{tool}")).collect();
    let mut command = place.home.command(python_program("python"), &[]);
    command.arg(peer("asked_client.py")).arg(env!("CARGO_BIN_EXE_toolstead")).arg("--config").arg(&place.config);
    command.arg("mcp").stdin(Stdio::null());
    let outside = format!("file://{},file:///etc", place.home.work().display());
    command.env("PATH", node_path()).env("MODE", mode).env("TOOLS", names.join(",")).env("ROOTS", outside);
    let output = command.envs(environment.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{mode}: {}", stderr(&output));
    let answer: Value = serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap();
    let said = names.iter().map(|name| answer["said"][name].as_str().unwrap().to_owned()).collect();
    (said, answer["asked"].clone())
}

#[track_caller]
fn check_answers(upstream: &str) {
    let place = place(upstream, ALL);
    let tools = ["test_input_required_result_elicitation", "test_sampling", "test_input_required_result_list_roots"];
    for mode in ["legacy", "2026-07-28"] {
        let (said, asked) = answers_of(&place, mode, &tools, &[]);
        assert_eq!(
            said,
            ["Hello, ada!", "LLM response: Paris", "The client has its roots"],
            "{upstream} {mode}: {asked}"
        );
        assert_eq!(asked[0]["message"], "The MCP server `fixture` asks: What is your name?", "{asked}");
        assert_eq!(asked[0]["meta"]["toolstead/server"], "fixture", "{asked}");
        assert_eq!(asked[1]["sampling"], "What do you think?", "{asked}");
    }
    let rows = place.questions();
    assert_eq!(rows.len(), 6, "{rows:#?}");
    assert!(rows.iter().all(|row| row["outcome"] == "succeeded"), "{rows:#?}");
    assert!(
        !json!(rows).to_string().contains("Paris") && !json!(rows).to_string().contains("\"ada\""),
        "no answer is kept"
    );
    let parent = rows[0]["parent"].as_str().unwrap();
    let shown = place.printed(&["executions", "show", parent]);
    assert!(shown.contains("answered  fixture"), "{shown}");
}

#[test]
fn a_modern_server_requests_input_from_clients_of_both_generations() {
    check_answers("2026-07-28");
}

#[test]
fn a_legacy_server_requests_input_from_clients_of_both_generations() {
    check_answers("2025-11-25");
}

#[test]
fn a_server_receives_only_the_client_roots_inside_the_workspace() {
    let place = place_of("asking_server.py", "2025-11-25", ALL);
    for mode in ["legacy", "2026-07-28"] {
        let (said, asked) = answers_of(&place, mode, &["folders"], &[]);
        let heard: Value = serde_json::from_str(&said[0]).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        let uris: Vec<&str> =
            heard["roots"].as_array().unwrap().iter().map(|root| root["uri"].as_str().unwrap()).collect();
        assert_eq!(uris, [format!("file://{}", place.home.work().display())], "{mode}: {asked}");
    }
}

#[test]
fn a_legacy_server_receives_the_error_that_the_client_returns_for_sampling() {
    let place = place("2025-11-25", ALL);
    let (said, asked) = answers_of(&place, "legacy", &["test_sampling"], &[("REFUSE", "the user rejected it")]);
    assert!(said[0].contains("the user rejected it"), "{said:?} {asked}");
    let questions = place.questions();
    assert_eq!((&questions[0]["metadata"]["answer"], questions.len()), (&json!("declined"), 1), "{questions:#?}");
}

#[test]
fn a_server_may_send_only_the_requests_that_the_configuration_permits() {
    for upstream in ["2026-07-28", "2025-11-25"] {
        let place = place(upstream, "");
        for mode in ["legacy", "2026-07-28"] {
            let (said, asked) =
                answers_of(&place, mode, &["test_input_required_result_elicitation", "test_sampling"], &[]);
            assert_eq!(said[0], "Hello, ada!", "{upstream} {mode}");
            assert!(!said[1].contains("Paris"), "{upstream} {mode}: {said:?}");
            assert_eq!(asked.as_array().unwrap().len(), 1, "{upstream} {mode}: {asked}");
        }
    }
}

#[test]
fn a_person_at_a_terminal_fills_in_the_form_of_a_server() {
    let place = place("2026-07-28", "");
    let hands = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&hands).unwrap();
    unlockpt(&hands).unwrap();
    let name = ptsname(&hands, Vec::new()).unwrap().into_string().unwrap();
    let terminal = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(name).unwrap();
    let held = terminal.try_clone().unwrap();
    let script = "exec \"$0\" --config \"$1\" call mcp__fixture__test_elicitation_sep1034_defaults";
    let mut command = place.home.command("/usr/bin/setsid", &["--ctty", "sh", "-c", script]);
    command
        .arg(env!("CARGO_BIN_EXE_toolstead"))
        .arg(&place.config)
        .stdin(terminal)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    let mut hands = File::from(hands);
    let mut seen = Vec::new();
    // The second one does not fit; Enter takes the defaults.
    for keys in ["\n", "old\n", "31\n", "\n", "2\n", "\n"] {
        let from = seen.len();
        while !seen[from..].ends_with(b"   > ") {
            let mut byte = [0];
            hands.read_exact(&mut byte).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&seen)));
            seen.extend(byte);
        }
        hands.write_all(keys.as_bytes()).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    drop(held);
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains("The MCP server `fixture` asks:"), "{seen}");
    let said = stdout(&output);
    for part in ["action=accept", "'name': 'John Doe'", "'age': 31", "95.5", "'inactive'", "True"] {
        assert!(said.contains(part), "{part}: {said} {}", stderr(&output));
    }
}

#[test]
fn without_a_terminal_no_form_of_a_server_is_shown_and_the_call_fails() {
    let place = place("2026-07-28", "");
    let mut command = place.home.command("/usr/bin/setsid", &["--wait", env!("CARGO_BIN_EXE_toolstead"), "--config"]);
    command.arg(&place.config).args(["call", "mcp__fixture__test_elicitation"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success(), "{}", stdout(&output));
    assert_eq!(place.questions(), Vec::<Value>::new());
}
