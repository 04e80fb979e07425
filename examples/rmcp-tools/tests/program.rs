//! The program, run as its user runs it.

use std::process::Command;

#[test]
fn the_tools_of_an_rmcp_server_are_called_and_validated() {
    let output = Command::new(env!("CARGO_BIN_EXE_rmcp-tools")).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.starts_with("notes: 1\nnotes: 2\nBuy milk.\nSleep.\nrefused as it should be: "), "{stdout}");
    assert!(stdout.contains("text") && stdout.contains("mcp__notes__remove"), "{stdout}");
}
