//! The program, run as its user runs it.

use std::process::Command;

#[test]
fn the_program_calls_its_tools_and_serves_mcp() {
    let output = Command::new(env!("CARGO_BIN_EXE_weather")).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("an MCP server listens at http://127.0.0.1:"), "{stdout}");
}
