//! The programs, run as their users run them.

use std::{
    io::Write,
    process::{Command, Stdio},
};

/// Runs a program with this input and returns its standard output.
#[track_caller]
fn run(program: &str, input: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home.path()).current_dir(home.path());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    stdout
}

#[test]
fn the_program_calls_its_tools_and_reports_refused_calls() {
    let stdout = run(env!("CARGO_BIN_EXE_program"), "");
    assert_eq!(stdout.matches("refused as it should be: ").count(), 3, "{stdout}");
}

#[test]
fn the_agent_calls_the_tool_before_it_answers() {
    let stdout = run(env!("CARGO_BIN_EXE_agent"), "");
    assert!(stdout.starts_with("mcp__desk__forecast: "), "{stdout}");
}

#[test]
fn the_server_lists_its_tool() {
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let stdout = run(env!("CARGO_BIN_EXE_server"), &format!("{initialize}\n{initialized}\n{list}\n"));
    assert!(stdout.contains(r#""name":"forecast""#), "{stdout}");
}
