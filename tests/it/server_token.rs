//! The token of the server: where it is shown, and its replacement.

use crate::binaries::{Home, kill, stderr, stdout};
use rustix::{
    process::Signal,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use serde_json::Value;
use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Read},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::PathBuf,
    process::{Command, Stdio},
};

fn token_file(home: &Home) -> PathBuf {
    home.data().join("toolstead/server-token")
}

/// Runs a server without a token of its own until it has printed its last line, and returns what it printed.
fn printed_at_start(home: &Home, output: Stdio, reader: Option<File>, arguments: &[&str]) -> String {
    let mut command = home.command(env!("CARGO_BIN_EXE_toolstead-server"), &["--listen", "127.0.0.1:0"]);
    let mut child = command.args(arguments).stdout(output).spawn().unwrap();
    drop(command);
    let mut reader: Box<dyn BufRead> = match reader {
        Some(reader) => Box::new(BufReader::new(reader)),
        None => Box::new(BufReader::new(child.stdout.take().unwrap())),
    };
    let last = if arguments.contains(&"--json") { "}" } else { "Ctrl-C" };
    let mut printed = String::new();
    while !printed.lines().last().is_some_and(|line| line.starts_with(last)) {
        assert!(reader.read_line(&mut printed).unwrap() > 0, "{printed}");
    }
    kill(child.id(), Signal::INT);
    assert!(child.wait().unwrap().success());
    printed
}

/// Both ends of a new terminal.
fn terminal() -> (File, File) {
    let hands = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&hands).unwrap();
    unlockpt(&hands).unwrap();
    let name = ptsname(&hands, Vec::new()).unwrap().into_string().unwrap();
    let screen = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(name).unwrap();
    (File::from(hands), screen)
}

#[test]
fn a_new_token_is_shown_on_a_terminal_and_only_its_file_name_is_shown_elsewhere() {
    for (arguments, is_json) in [(&[][..], false), (&["--json"], true)] {
        let home = Home::new();
        let printed = printed_at_start(&home, Stdio::piped(), None, arguments);
        let token = fs::read_to_string(token_file(&home)).unwrap();
        assert!(token.len() >= 40 && !printed.contains(&token), "{printed}");
        let file = token_file(&home).display().to_string();
        assert!(printed.contains(&file), "{printed}");
        if is_json {
            let printed: Value = serde_json::from_str(&printed).unwrap();
            assert_eq!((&printed["token_file"], printed.get("new_token")), (&Value::from(file), None), "{printed}");
        }
    }
    let home = Home::new();
    let (hands, screen) = terminal();
    let printed = printed_at_start(&home, screen.into(), Some(hands), &[]);
    let token = fs::read_to_string(token_file(&home)).unwrap();
    assert!(printed.contains(&format!("): {token}")) && printed.contains(&format!("Bearer {token}")), "{printed}");
    let (hands, screen) = terminal();
    let again = printed_at_start(&home, screen.into(), Some(hands), &[]);
    assert!(!again.contains(&token), "it is shown once: {again}");
}

#[test]
fn rotating_replaces_the_token_in_its_file() {
    let home = Home::new();
    let mut before = String::new();
    for arguments in [&["tokens", "rotate"][..], &["tokens", "rotate", "--json"]] {
        let output = home.run(arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        let token = fs::read_to_string(token_file(&home)).unwrap();
        assert!(token.len() >= 40 && token != before, "{token}");
        assert_eq!(fs::metadata(token_file(&home)).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(stdout(&output).contains(&token_file(&home).display().to_string()), "{}", stdout(&output));
        assert!(!stdout(&output).contains(&token) && !stderr(&output).contains(&token), "{}", stdout(&output));
        assert!(stderr(&output).contains("until it is restarted"), "{}", stderr(&output));
        before = token;
    }
    let (mut hands, screen) = terminal();
    let mut command = home.toolstead(&["tokens", "rotate"]);
    assert!(command.stdin(Stdio::null()).stdout(screen).status().unwrap().success());
    drop(command);
    let mut seen = Vec::new();
    // A terminal that is closed at its other end cannot be read any more.
    let _ = hands.read_to_end(&mut seen);
    let token = fs::read_to_string(token_file(&home)).unwrap();
    assert!(String::from_utf8_lossy(&seen).contains(&token), "{}", String::from_utf8_lossy(&seen));
}

#[test]
fn rotating_writes_the_configured_file_through_its_link() {
    let home = Home::new();
    let (file, link) = (home.data().join("real-token"), home.data().join("linked-token"));
    fs::write(&file, "the-token-before-it-was-rotated").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let config = home.config(&format!("[server]\ntoken_file = {link:?}\n"));
    let output = home.run(&["tokens", "rotate", "--config", config.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the link stays");
    let token = fs::read_to_string(&file).unwrap();
    assert!(token.len() >= 40 && token != "the-token-before-it-was-rotated");
    assert!(!token_file(&home).exists());
}

#[test]
fn a_token_in_a_variable_is_not_rotated() {
    let home = Home::new();
    let mut command: Command = home.toolstead(&["tokens", "rotate"]);
    let output = command.env("TOOLSTEAD_SERVER_TOKEN", "a-token-of-the-environment").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("TOOLSTEAD_SERVER_TOKEN") && !token_file(&home).exists(), "{}", stderr(&output));
}

#[test]
fn rotating_replaces_no_file_that_holds_something_else() {
    let home = Home::new();
    let file = home.data().join("notes");
    let notes = "-----BEGIN KEY-----\nAAAA\n";
    fs::write(&file, notes).unwrap();
    let config = home.config(&format!("[server]\ntoken_file = {file:?}\n"));
    let output = home.run(&["tokens", "rotate", "--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("something other than a token"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&file).unwrap(), notes);
}
