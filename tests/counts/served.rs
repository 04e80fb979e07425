//! A server in a process of its own, and one connection to it.

use crate::{
    Outcome, counting,
    subject::{Subject, Upstream},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

const TOKEN: &str = "count-token-count-token-count-token";
/// Time for an upstream tool to appear.
const TIME_FOR_TOOL: Duration = Duration::from_secs(120);
/// How long strace has to write its summary, once the server has ended.
const TIME_FOR_SUMMARY: Duration = Duration::from_secs(20);

/// Which server.
pub(crate) enum Program {
    Plain,
    Counted,
}

pub(crate) struct Served {
    child: Child,
    input: RefCell<ChildStdin>,
    output: RefCell<BufReader<ChildStdout>>,
    connection: RefCell<BufReader<TcpStream>>,
    /// What stands in every request.
    headers: String,
    home: tempfile::TempDir,
    _upstream: Upstream,
}

impl Served {
    /// Starts the server that the subject is called on, and waits until it offers the tool.
    pub(crate) fn start(program: Program, subject: &Subject) -> Outcome<Self> {
        let command = match program {
            Program::Plain => Command::new(env!("CARGO_BIN_EXE_toolstead-server")),
            Program::Counted => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg0(counting::NAME);
                command
            }
        };
        Self::of(command, tempfile::tempdir()?, subject)
    }

    /// The same under strace, which counts; `None` where there is none.
    pub(crate) fn traced(subject: &Subject) -> Outcome<Option<Self>> {
        if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
            return Ok(None);
        }
        let home = tempfile::tempdir()?;
        let mut command = Command::new("strace");
        // With `-D` the child is the server, and not strace.
        command.args(["-D", "-f", "-c", "-o"]).arg(summary_in(&home)).arg(env!("CARGO_BIN_EXE_toolstead-server"));
        Self::of(command, home, subject).map(Some)
    }

    fn of(mut command: Command, home: tempfile::TempDir, subject: &Subject) -> Outcome<Self> {
        let upstream = Upstream::start(subject)?;
        let file = home.path().join("count.toml");
        let settings = format!(
            "[workspace]\nroots = [{:?}]\n[permissions]\nallow = [\"Bash(*)\"]\n{}",
            home.path(),
            upstream.config
        );
        fs::write(&file, settings)?;
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home.path());
        command.env("TOOLSTEAD_SERVER_TOKEN", TOKEN).current_dir(home.path());
        for (name, folder) in [("XDG_DATA_HOME", "data"), ("XDG_CONFIG_HOME", "config")] {
            command.env(name, home.path().join(folder));
        }
        command.arg("-q").arg("--config").arg(&file).args(["--listen", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let input = RefCell::new(child.stdin.take().ok_or("no stdin")?);
        let mut output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut line = String::new();
        let address = loop {
            line.clear();
            if output.read_line(&mut line)? == 0 {
                return Err("the server ended early".into());
            }
            if let Some((_, rest)) = line.split_once("http://") {
                break rest.split(['/', ' ', '\n', '"']).next().unwrap_or_default().to_owned();
            }
        };
        let stream = TcpStream::connect(&address)?;
        stream.set_nodelay(true)?;
        let headers = format!(
            "host: {address}\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n"
        );
        let (output, connection) = (RefCell::new(output), RefCell::new(BufReader::new(stream)));
        let mut served = Self { child, input, output, connection, headers, home, _upstream: upstream };
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"count","version":"1"}}}"#;
        let (head, _) = served.exchange(initialize)?;
        let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).ok_or("no session")?;
        served.headers += &format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
        served.exchange(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        let deadline = Instant::now() + TIME_FOR_TOOL;
        while let Err(error) = served.call(subject, 1) {
            if Instant::now() > deadline {
                return Err(error);
            }
            sleep(Duration::from_millis(10));
        }
        Ok(served)
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Makes this number of calls, one after the other. Each must succeed.
    pub(crate) fn call(&self, subject: &Subject, times: u32) -> Outcome<()> {
        let Subject { tool, arguments, .. } = subject;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        for _ in 0..times {
            let (_, answer) = self.exchange(&body)?;
            if !answer.contains("\"result\"") || answer.contains("\"isError\":true") {
                return Err(answer.into());
            }
        }
        Ok(())
    }

    fn exchange(&self, body: &str) -> Outcome<(String, String)> {
        let mut connection = self.connection.borrow_mut();
        let request = format!("POST /mcp HTTP/1.1\r\n{}content-length: {}\r\n\r\n{body}", self.headers, body.len());
        connection.get_mut().write_all(request.as_bytes())?;
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let from = head.len();
            if connection.read_line(&mut head)? == 0 {
                return Err("the connection was closed".into());
            }
            match head[from..].trim_end() {
                "" => break,
                line => length = line.strip_prefix("content-length: ").map_or(Ok(length), str::parse)?,
            }
        }
        let mut body = vec![0; length];
        connection.read_exact(&mut body)?;
        Ok((head.replace('\r', ""), String::from_utf8(body)?))
    }

    /// Returns the number of allocations of the server so far, and their bytes.
    pub(crate) fn counted(&self) -> Outcome<[u64; 2]> {
        self.input.borrow_mut().write_all(b"\n")?;
        let (mut output, mut line) = (self.output.borrow_mut(), String::new());
        while !line.starts_with(counting::COUNTED) {
            line.clear();
            if output.read_line(&mut line)? == 0 {
                return Err("the server ended early".into());
            }
        }
        let mut numbers = line.split_whitespace().skip(1).map(str::parse::<u64>);
        let mut next = || numbers.next().ok_or("too few numbers");
        Ok([next()??, next()??])
    }

    /// Ends it, and returns how often it and its children made each system call.
    pub(crate) fn system_calls(mut self) -> Outcome<BTreeMap<String, f64>> {
        self.end()?;
        let interval = Duration::from_millis(10);
        let mut left = TIME_FOR_SUMMARY;
        loop {
            let text = fs::read_to_string(summary_in(&self.home)).unwrap_or_default();
            if text.lines().any(|line| line.ends_with(" total")) {
                let row = |line: &str| {
                    let fields: Vec<_> = line.split_whitespace().collect();
                    let name = fields.last().filter(|name| **name != "total")?;
                    Some(((*name).to_owned(), fields.get(3)?.parse().ok()?))
                };
                return Ok(text.lines().filter_map(row).collect());
            }
            left = left.checked_sub(interval).ok_or("strace wrote no summary")?;
            sleep(interval);
        }
    }

    fn end(&mut self) -> Outcome<()> {
        if let Some(process) = Pid::from_raw(self.child.id().cast_signed()) {
            kill_process(process, Signal::TERM)?;
        }
        // Without a reader the server could block on its last lines.
        std::io::copy(self.output.get_mut(), &mut std::io::sink())?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Does nothing where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn summary_in(home: &tempfile::TempDir) -> PathBuf {
    home.path().join("system-calls")
}
