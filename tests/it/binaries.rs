//! The real binaries, each with a home of its own, and the real peers.

use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio},
};

/// The token of every server that a test starts.
pub(crate) const TOKEN: &str = "test-token-test-token-test-token-00";

/// A home folder and a workspace of their own; gone with the value.
#[derive(Debug)]
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "config", "data", "work"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    /// The workspace: the start folder of every command.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Returns the folder of the database and the token.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Writes a configuration that is passed with `--config`, and returns its path.
    pub(crate) fn config(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("test.toml");
        std::fs::write(&path, format!("[workspace]\nroots = [{:?}]\n{text}", self.work())).unwrap();
        path
    }

    /// `toolstead ARGUMENTS…`
    pub(crate) fn toolstead(&self, arguments: &[&str]) -> Command {
        self.command(env!("CARGO_BIN_EXE_toolstead"), arguments)
    }

    /// A program that finds nothing of ours in its environment.
    pub(crate) fn command(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program.as_ref());
        command.args(arguments).env_clear().current_dir(self.work());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.folder.path().join("home"));
        command.env("XDG_CONFIG_HOME", self.folder.path().join("config")).env("XDG_DATA_HOME", self.data());
        command
    }

    /// Runs `toolstead ARGUMENTS…` to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.toolstead(arguments).stdin(Stdio::null()).output().unwrap()
    }
}

/// Returns the standard output of a program.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns the standard error of a program.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `toolstead-server` on a free port.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) child: Child,
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
}

impl Server {
    /// Starts a server with this configuration and returns when it has printed its address.
    pub(crate) fn start(home: &Home, config: &str) -> Self {
        let config = home.config(config);
        let mut command =
            home.command(env!("CARGO_BIN_EXE_toolstead-server"), &["--listen", "127.0.0.1:0", "--config"]);
        command.arg(config).env("TOOLSTEAD_SERVER_TOKEN", TOKEN).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let address = address_in(&mut output);
        // Whatever it prints later must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Self { child, address }
    }

    /// The MCP endpoint.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Ends it with the signal and waits for its end.
    pub(crate) fn end(mut self, signal: rustix::process::Signal) -> std::process::ExitStatus {
        kill(self.child.id(), signal);
        self.child.wait().unwrap()
    }
}

/// Sends a signal to a process.
pub(crate) fn kill(process: u32, signal: rustix::process::Signal) {
    let process = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    rustix::process::kill_process(process, signal).unwrap();
}

fn address_in(output: &mut impl BufRead) -> String {
    let mut printed = String::new();
    loop {
        let from = printed.len();
        assert!(output.read_line(&mut printed).unwrap() > 0, "the server ended early: {printed}");
        if let Some((_, rest)) = printed[from..].split_once("http://") {
            return rest.split(['/', ' ', '\n', '"']).next().unwrap().to_owned();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test that failed half way leaves nothing behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that speaks JSON-RPC on its stdin and stdout.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    pub(crate) output: BufReader<ChildStdout>,
}

impl Pipe {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    /// Sends one line.
    pub(crate) fn send(&mut self, line: impl AsRef<[u8]>) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_ref()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    /// The next message.
    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the program closed its output");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The answer to the request of that id; notifications before it are passed over.
    pub(crate) fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        loop {
            let message = self.receive();
            if message.get("id") == Some(&id) {
                return message;
            }
            assert!(message.get("method").is_some(), "an answer to nothing: {message}");
        }
    }

    /// The handshake of 2025-11-25; returns the server's part of it.
    pub(crate) fn initialize(&mut self) -> Value {
        self.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#);
        let answer = self.answer(0);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// Closes its input and returns all that it still writes.
    pub(crate) fn finish(mut self) -> (String, std::process::ExitStatus) {
        self.input = None;
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file of `tests/peers`.
pub(crate) fn peer(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers").join(name);
    let path = path.canonicalize().unwrap_or(path);
    assert!(path.exists(), "{} is missing: run `make peers` first", path.display());
    path
}

/// A program that `make peers` installed from npm.
pub(crate) fn node_program(name: &str) -> PathBuf {
    peer(&format!("node_modules/.bin/{name}"))
}

/// A program of the Python environment that `make peers` made.
pub(crate) fn python_program(name: &str) -> PathBuf {
    peer("../../target/peers/venv/bin").join(name)
}

/// The `PATH` on which the installed Node comes first.
pub(crate) fn node_path() -> String {
    format!("{}:{}", peer("node_modules/.bin").display(), std::env::var("PATH").unwrap_or_default())
}
