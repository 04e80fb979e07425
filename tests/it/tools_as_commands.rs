//! A command calls tools by the program `tool`: pipes and loops through `toolstead call bash`, with the rules, the questions
//! and the records of each call.

use crate::{
    approvals::typed_at_terminal,
    binaries::{Home, kill, stderr, stdout},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    process::{Output, Stdio},
    time::{Duration, Instant},
};

const ALLOWED: &str = "[permissions]\nallow = [\"Read\", \"Bash\", \"Tools(*)\"]\n";

fn bash(home: &Home, config: &str, tools: &[&str], command: &str) -> Output {
    let arguments = json!({"command": command, "tools": tools}).to_string();
    let config = home.config(config);
    home.run(&["call", "bash", &arguments, "--config", config.to_str().unwrap()])
}

/// Returns the records of the audit log, newest first.
fn rows(home: &Home) -> Vec<Value> {
    let listed = home.run(&["executions", "list", "--limit", "100", "--json"]);
    let listed: Value = serde_json::from_str(&stdout(&listed)).unwrap();
    listed["executions"].as_array().unwrap().clone()
}

#[test]
fn forty_calls_in_a_shell_loop_are_recorded_as_nested_calls_of_one_command() {
    let home = Home::new();
    for number in 0..40 {
        std::fs::write(home.work().join(format!("f{number}.txt")), format!("needle {number}\n{}", "x\n".repeat(4000)))
            .unwrap();
    }
    // 8 KB of each file go through the pipe, and none of it through the answer.
    let command = "for i in $(seq 0 39); do tool read_file --path f$i.txt --limit 5000; done | grep -o 'needle [0-9]*' | \
                   sort -u | wc -l";
    let output = bash(&home, ALLOWED, &["read_file"], command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("40\n") && stdout(&output).len() < 200, "{}", stdout(&output));
    let rows = rows(&home);
    let parent = rows.iter().find(|row| row["tool"] == "bash").unwrap();
    let below = rows.iter().filter(|row| row["parent"] == parent["id"] && row["outcome"] == "succeeded");
    assert_eq!((below.count(), rows.len()), (40, 41));
    let shown = stdout(&home.run(&["executions", "show", parent["id"].as_str().unwrap()]));
    assert_eq!(shown.matches("  read_file  succeeded").count(), 40, "{shown}");
}

#[test]
fn a_command_receives_a_longer_tool_result_than_a_model() {
    let home = Home::new();
    std::fs::write(home.work().join("long.txt"), "0123456789 abcdef\n".repeat(20_000)).unwrap();
    let command = "tool read_file --path long.txt --limit 10000 | grep -o abcdef | wc -l";
    let output = bash(&home, ALLOWED, &["read_file"], command);
    let lines: usize = stdout(&output).trim().parse().unwrap_or_else(|_| panic!("{}", stdout(&output)));
    // A page of the tool, three times what a model gets of it.
    assert!(lines > 5_000, "{lines}");
}

#[test]
fn rules_apply_to_tool_calls_of_a_command_and_to_the_tools_that_it_requests() {
    let home = Home::new();
    std::fs::write(home.work().join("secret.txt"), "secret\n").unwrap();
    let denied = format!("{ALLOWED}deny = [\"Read(secret.txt)\", \"Tools(write_file)\"]\n");
    let output = bash(&home, &denied, &["read_file"], "tool read_file --path secret.txt; echo code $?");
    let said = stdout(&output);
    assert!(said.contains("is not permitted") && said.contains("code 3") && !said.contains("secret\n"), "{said}");
    for tools in ["write_file", "write*", "w*_file"] {
        let output = bash(&home, &denied, &[tools], "touch begun");
        assert_eq!(output.status.code(), Some(3), "{tools}: {}", stderr(&output));
    }
    // No approver is available.
    let unasked = "[permissions]\nallow = [\"Read\", \"Bash\"]\n";
    let output = bash(&home, unasked, &["grep"], "touch begun");
    assert!(output.status.code() == Some(3) && stderr(&output).contains("Tools(grep)"), "{}", stderr(&output));
    let output = bash(&home, ALLOWED, &["gerp"], "touch begun");
    assert!(output.status.code() == Some(2) && stderr(&output).contains("`grep`"), "{}", stderr(&output));
    assert!(!home.work().join("begun").exists());
    // A window holds no more than was named.
    let output = bash(
        &home,
        ALLOWED,
        &["grep"],
        "tool read_file --path secret.txt 2>&1; tool read_file '{\"path\": \"secret.txt\"}'; echo $?",
    );
    assert!(stdout(&output).contains("3\n") && !stdout(&output).contains("secret\n"), "{}", stdout(&output));
}

#[test]
fn an_approval_for_the_run_is_requested_once_and_expires_with_the_run() {
    let home = Home::new();
    let config = home.config(ALLOWED);
    std::fs::write(home.work().join("log.txt"), "").unwrap();
    let command = "for i in 1 2 3; do tool append_file --path log.txt --content $i > /dev/null || exit; done";
    let arguments = json!({"command": command, "tools": ["append_file"]});
    std::fs::write(home.work().join("arguments.json"), arguments.to_string()).unwrap();
    let script = format!("exec \"$0\" call bash - --config {} <arguments.json", config.display());
    let (code, seen) = typed_at_terminal(&home, &script, b"r");
    assert_eq!(code, Some(0), "{seen}");
    assert_eq!(seen.matches("`append_file` run, called by the tool `bash`").count(), 1, "{seen}");
    assert_eq!(std::fs::read_to_string(home.work().join("log.txt")).unwrap().replace('\n', ""), "123", "{seen}");
    // The yes has ended with its run.
    let output = bash(&home, ALLOWED, &["append_file"], "tool append_file --path log.txt --content 4; echo code $?");
    assert!(stdout(&output).contains("code 3"), "{}", stdout(&output));
}

#[test]
fn cancelling_a_command_cancels_the_tool_calls_that_it_makes() {
    let home = Home::new();
    let config = home.config(ALLOWED);
    let arguments = json!({"command": "tool bash --command 'sleep 600'", "tools": ["bash"]}).to_string();
    let mut command = home.toolstead(&["call", "bash", &arguments, "--config"]);
    let mut child =
        command.arg(config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    let runs = |row: &&Value| row["tool"] == "bash" && row["outcome"] == "running";
    while rows(&home).iter().filter(runs).count() < 2 {
        assert!(Instant::now() < deadline, "both are on record: {:?}", rows(&home));
    }
    kill(child.id(), Signal::INT);
    assert_ne!(child.wait().unwrap().code(), Some(0));
    let rows = rows(&home);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row["outcome"] != "running" && row["outcome"] != "interrupted"), "{rows:?}");
}
