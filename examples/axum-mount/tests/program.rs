//! The program, run as its user runs it.

use std::process::Command;

#[test]
fn the_example_serves_mcp_only_to_clients_with_a_valid_key() {
    let output = Command::new(env!("CARGO_BIN_EXE_axum-mount")).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("with the key `ada's-long-key`: HTTP/1.1 200 OK\n"), "{stdout}");
    assert!(stdout.contains("with the key `somebody's`: HTTP/1.1 401 Unauthorized\n"), "{stdout}");
}
