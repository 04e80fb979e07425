//! The same tasks for us and for the reference filesystem server, both over stdio, in turn: time, memory, and whether
//! the files are afterwards as they should be.

use crate::{Outcome, rows::toolstead};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

const ROUNDS: usize = 15;
const TREE_FOLDERS: usize = 100;
const TREE_FILES: usize = 20;
const LARGE_LINES: usize = 1_000_000;

/// A task: what it is, the call of each, and what is right afterwards.
struct Task {
    name: &'static str,
    ours: (&'static str, Value),
    theirs: (&'static str, Value),
    /// Whether the answer's text, and the files, are right.
    right: fn(&Path, &str) -> bool,
}

/// Runs every task and prints a line each.
pub(crate) fn run() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().canonicalize()?;
    let home = tempfile::tempdir()?;
    lay_out(&root)?;
    let mut ours = Peer::start(ours(home.path(), &root)?)?;
    let mut theirs = Peer::start(theirs(&root)?)?;
    for Task { name, ours: our_call, theirs: their_call, right } in tasks(&root) {
        let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
        let (mut we_are_right, mut they_are_right) = (true, true);
        for _ in 0..ROUNDS {
            for (peer, (tool, arguments), times, is_right) in [
                (&mut ours, &our_call, &mut our_times, &mut we_are_right),
                (&mut theirs, &their_call, &mut their_times, &mut they_are_right),
            ] {
                put_back(&root)?;
                let (text, time) = peer.call(tool, arguments)?;
                times.push(time);
                *is_right &= right(&root, &text);
            }
        }
        let (our_time, their_time) = (median(our_times), median(their_times));
        let verdict = |is_right| if is_right { "right" } else { "WRONG" };
        println!(
            "{:<34} {:>10.2}ms {:>10.2}ms {:>8.2} {:>8}  ours {}, theirs {}",
            format!("files: {name}"),
            our_time * 1e3,
            their_time * 1e3,
            our_time / their_time,
            "",
            verdict(we_are_right),
            verdict(they_are_right)
        );
    }
    let (our_peak, their_peak) = (ours.peak_mib()?, theirs.peak_mib()?);
    println!(
        "{:<34} {our_peak:>9.1}MiB {their_peak:>9.1}MiB {:>8.2} {:>8}  at the peak, all tasks",
        "files: memory",
        our_peak / their_peak,
        ""
    );
    Ok(())
}

fn tasks(root: &Path) -> Vec<Task> {
    let at = |name: &str| root.join(name).to_string_lossy().into_owned();
    let edit = |name: &str, old: &str, new: &str| {
        (
            ("edit_file", json!({"path": at(name), "old_text": old, "new_text": new})),
            ("edit_file", json!({"path": at(name), "edits": [{"oldText": old, "newText": new}]})),
        )
    };
    let (crlf_ours, crlf_theirs) = edit("crlf.txt", "two\nthree", "zwei\ndrei");
    let (utf16_ours, utf16_theirs) = edit("utf16.txt", "two", "zwei");
    let content = "x".repeat(99) + "\n";
    let content = content.repeat(10_000);
    vec![
        Task {
            name: "read 200 lines",
            ours: ("read_file", json!({"path": at("plain.txt")})),
            theirs: ("read_text_file", json!({"path": at("plain.txt")})),
            right: |_, text| text.contains("line 199 of the plain file"),
        },
        Task {
            name: "last 100 lines of 1,000,000",
            ours: ("read_file", json!({"path": at("large.txt"), "offset": -100})),
            theirs: ("read_text_file", json!({"path": at("large.txt"), "tail": 100})),
            right: |_, text| text.contains("line 999999 of the large file"),
        },
        Task {
            name: "read UTF-16",
            ours: ("read_file", json!({"path": at("utf16.txt")})),
            theirs: ("read_text_file", json!({"path": at("utf16.txt")})),
            right: |_, text| text.contains("two"),
        },
        Task {
            name: "edit a CRLF file",
            ours: crlf_ours,
            theirs: crlf_theirs,
            right: |root, _| fs::read(root.join("crlf.txt")).is_ok_and(|now| now == b"one\r\nzwei\r\ndrei\r\nfour\n"),
        },
        Task {
            name: "edit a UTF-16 file",
            ours: utf16_ours,
            theirs: utf16_theirs,
            right: |root, _| fs::read(root.join("utf16.txt")).is_ok_and(|now| now == utf16("one\nzwei\nthree\nfour\n")),
        },
        Task {
            name: "write 1 MB",
            ours: ("write_file", json!({"path": at("written.txt"), "content": content})),
            theirs: ("write_file", json!({"path": at("written.txt"), "content": content})),
            right: |root, _| fs::metadata(root.join("written.txt")).is_ok_and(|facts| facts.len() == 1_000_000),
        },
        Task {
            name: "list a folder",
            ours: ("list_directory", json!({"path": at("tree")})),
            theirs: ("list_directory", json!({"path": at("tree")})),
            right: |_, text| text.contains("folder-99"),
        },
        Task {
            name: "find among 2,000 files",
            ours: ("glob", json!({"path": at("tree"), "pattern": "**/file-7.rs"})),
            theirs: ("search_files", json!({"path": at("tree"), "pattern": "**/file-7.rs"})),
            right: |_, text| text.matches("file-7.rs").count() >= TREE_FOLDERS,
        },
    ]
}

fn lay_out(root: &Path) -> Outcome<()> {
    let lines =
        |count: usize, of: &str| -> String { (0..count).map(|n| format!("line {n} of the {of} file\n")).collect() };
    fs::write(root.join("plain.txt"), lines(200, "plain"))?;
    fs::write(root.join("large.txt"), lines(LARGE_LINES, "large"))?;
    for folder in 0..TREE_FOLDERS {
        let folder = root.join("tree").join(format!("folder-{folder}"));
        fs::create_dir_all(&folder)?;
        for file in 0..TREE_FILES {
            fs::write(folder.join(format!("file-{file}.rs")), "fn main() {}\n")?;
        }
    }
    Ok(())
}

/// The files that tasks change, as they were.
fn put_back(root: &Path) -> Outcome<()> {
    fs::write(root.join("crlf.txt"), "one\r\ntwo\r\nthree\r\nfour\n")?;
    fs::write(root.join("utf16.txt"), utf16("one\ntwo\nthree\nfour\n"))?;
    Ok(())
}

fn utf16(text: &str) -> Vec<u8> {
    std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

fn ours(home: &Path, root: &Path) -> Outcome<Command> {
    let config = home.join("bench.toml");
    fs::write(&config, format!("[workspace]\nroots = [{root:?}]\n[permissions]\nallow = [\"Read\", \"Write\"]\n"))?;
    let mut command = toolstead(env!("CARGO_BIN_EXE_toolstead"), home);
    command.arg("mcp").arg("--config").arg(config);
    Ok(command)
}

fn theirs(root: &Path) -> Outcome<Command> {
    let programs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/node_modules/.bin");
    let program = programs.join("mcp-server-filesystem");
    if !program.exists() {
        return Err(format!("{} is missing: run `make peers` first", program.display()).into());
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command.arg(root).env("PATH", format!("{}:{path}", programs.display())).stderr(Stdio::null());
    Ok(command)
}

/// An MCP server on pipes.
struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Peer {
    fn start(mut command: Command) -> Outcome<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut peer = Self { child, input, output, next: 0 };
        let client = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        peer.request("initialize", &client)?;
        writeln!(peer.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)?;
        Ok(peer)
    }

    /// The text of the result, an error's as well, and the time from the request to its answer.
    fn call(&mut self, tool: &str, arguments: &Value) -> Outcome<(String, Duration)> {
        let sent = Instant::now();
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        let time = sent.elapsed();
        Ok((answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned(), time))
    }

    fn request(&mut self, method: &str, params: &Value) -> Outcome<Value> {
        self.next += 1;
        writeln!(self.input, "{}", json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}))?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the server ended early".into());
            }
            let message: Value = serde_json::from_str(&line)?;
            // The reference server asks its client for roots; we never said that we have any.
            if message["id"] == self.next && message.get("method").is_none() {
                return Ok(message);
            }
        }
    }

    fn peak_mib(&self) -> Outcome<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The measurement is over.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}
