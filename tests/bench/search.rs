//! `grep` and `glob` on the tree of the agreement tests, against ripgrep and fd.
//!
//! Ours is the time of one call of a running `toolstead mcp`, as an agent sees it. Theirs is the time of one process,
//! as an agent sees that; the note says what the ratio is when the start of a process is subtracted from theirs.

#[path = "../it/search/tree.rs"]
#[allow(clippy::unwrap_used, reason = "a tree that cannot be laid out ends the measurement")]
mod tree;

use crate::Outcome;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

const FILES: usize = 20_000;
const ROUNDS: usize = 15;
const RIPGREP: &str = "--no-config --color never --hidden --no-require-git --no-ignore-global -g !.git";

/// The rows that `wanted` names; `start` makes a binary of Toolstead with a home.
pub(crate) fn rows(start: impl Fn(&Path) -> Command, wanted: impl Fn(&str) -> bool) -> Outcome<()> {
    if !wanted("grep") && !wanted("glob") {
        return Ok(());
    }
    let home = tempfile::tempdir()?;
    let tree = home.path().join("tree");
    std::fs::create_dir(&tree)?;
    tree::grow(&tree, FILES);
    let mut command = start(home.path());
    command.arg("--root").arg(&tree).arg("mcp");
    let mut server = Server::start(command)?;
    let before = server.peak_kib()?;
    if wanted("grep") {
        let spawn = median(|| timed(&tree, "rg", "--version"))?;
        for (row, arguments, theirs) in [
            ("grep, files", json!({"pattern": "needle", "output_mode": "files_with_matches"}), "-l needle ./"),
            ("grep, counts", json!({"pattern": "fox|TODO", "output_mode": "count"}), "-c fox|TODO ./"),
            ("grep, nothing found", json!({"pattern": "[A-Z]{9}\\d", "no_ignore": true}), "--no-ignore [A-Z]{9}\\d ./"),
            (
                "grep, one type",
                json!({"pattern": "needle", "file_type": "rust", "output_mode": "count"}),
                "-c -t rust needle ./",
            ),
        ] {
            side_by_side(row, &mut server, ("grep", arguments), &tree, ("rg", format!("{RIPGREP} {theirs}")), spawn)?;
        }
        memory("grep, memory", &server, before, &tree, "rg", &format!("{RIPGREP} -l needle ./"))?;
    }
    if wanted("glob") {
        let spawn = median(|| timed(&tree, "fdfind", "--version"))?;
        for (row, arguments, theirs) in [
            ("glob, one extension", json!({"pattern": "**/*.rs"}), "-H -I -s -E .git -t f -t l --glob *.rs"),
            (
                "glob, with ignore files",
                json!({"pattern": "**/*.rs", "respect_gitignore": true}),
                "-H -s -E .git -t f -t l --glob *.rs",
            ),
            ("glob, every file", json!({"pattern": "**"}), "-H -I -s -E .git -t f -t l ."),
        ] {
            side_by_side(row, &mut server, ("glob", arguments), &tree, ("fdfind", theirs.to_owned()), spawn)?;
        }
        memory("glob, memory", &server, before, &tree, "fdfind", "-H -I -E .git .")?;
    }
    Ok(())
}

fn side_by_side(
    row: &str,
    server: &mut Server,
    (tool, arguments): (&str, Value),
    tree: &Path,
    (program, theirs): (&str, String),
    spawn: Duration,
) -> Outcome<()> {
    let (mut ours, mut reference) = (Vec::new(), Vec::new());
    // The first of each only warms.
    for round in 0..=ROUNDS {
        let (our, their) = (server.timed(tool, &arguments)?, timed(tree, program, &theirs)?);
        if round > 0 {
            ours.push(our.as_secs_f64() * 1e3);
            reference.push(their.as_secs_f64() * 1e3);
        }
    }
    ours.sort_by(f64::total_cmp);
    reference.sort_by(f64::total_cmp);
    let (ours, theirs) = (ours[ROUNDS / 2], reference[ROUNDS / 2]);
    let working = (theirs - spawn.as_secs_f64() * 1e3).max(0.1);
    println!(
        "{row:<34} {ours:>10.1}ms {theirs:>10.1}ms {:>8.2} {:>8}  a call, against a process of {program}; {:.2} without its start",
        ours / theirs,
        "1.15",
        ours / working
    );
    Ok(())
}

fn memory(row: &str, server: &Server, before: u64, tree: &Path, program: &str, arguments: &str) -> Outcome<()> {
    let (ours, theirs) = (server.peak_kib()? as f64 / 1024.0, peak_of(tree, program, arguments)? as f64 / 1024.0);
    println!(
        "{row:<34} {ours:>9.1}MiB {theirs:>9.1}MiB {:>8.2} {:>8}  peak of each process; the server's was {:.1} MiB before",
        ours / theirs,
        "",
        before as f64 / 1024.0
    );
    Ok(())
}

fn median(mut one: impl FnMut() -> Outcome<Duration>) -> Outcome<Duration> {
    let mut times = (0..ROUNDS).map(|_| one()).collect::<Outcome<Vec<_>>>()?;
    times.sort();
    Ok(times[ROUNDS / 2])
}

fn command(tree: &Path, program: &str, arguments: &str) -> Command {
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace()).current_dir(tree).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// One process, from its start to its end, with all that it writes.
fn timed(tree: &Path, program: &str, arguments: &str) -> Outcome<Duration> {
    let begun = Instant::now();
    let output = command(tree, program, arguments).output();
    let output = output.map_err(|error| format!("`{program}` cannot be run ({error}): run `make peers` first"))?;
    match output.status.code() {
        Some(0 | 1) => Ok(begun.elapsed()),
        _ => Err(format!("{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// The most memory of a process that was seen while it ran.
fn peak_of(tree: &Path, program: &str, arguments: &str) -> Outcome<u64> {
    let mut most = 0;
    for _ in 0..ROUNDS {
        let mut child = command(tree, program, arguments).spawn()?;
        let mut output = child.stdout.take().ok_or("no stdout")?;
        let reading = std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        while child.try_wait()?.is_none() {
            // It may end in between.
            most = most.max(peak_kib(child.id()).unwrap_or(0));
        }
        reading.join().map_err(|_| "the reading thread panicked")??;
    }
    Ok(most)
}

fn peak_kib(process: u32) -> Outcome<u64> {
    let mut status = String::new();
    std::fs::File::open(format!("/proc/{process}/status"))?.read_to_string(&mut status)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// `toolstead mcp`.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
}

impl Server {
    fn start(mut command: Command) -> Outcome<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = BufReader::with_capacity(1 << 20, child.stdout.take().ok_or("no stdout")?);
        let mut server = Self { child, input, output, line: String::new() };
        let client = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        server.exchange(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}))?;
        writeln!(server.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)?;
        Ok(server)
    }

    fn exchange(&mut self, request: &Value) -> Outcome<&str> {
        writeln!(self.input, "{request}")?;
        self.line.clear();
        while !self.line.contains("\"result\"") && !self.line.contains("\"error\"") {
            self.line.clear();
            if self.output.read_line(&mut self.line)? == 0 {
                return Err("the program ended early".into());
            }
        }
        Ok(&self.line)
    }

    fn timed(&mut self, tool: &str, arguments: &Value) -> Outcome<Duration> {
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        let begun = Instant::now();
        let answer = self.exchange(&call)?;
        let time = begun.elapsed();
        if answer.contains("\"isError\":true") || answer.contains("the time ran out") {
            return Err(format!("{call}: {answer}").into());
        }
        Ok(time)
    }

    fn peak_kib(&self) -> Outcome<u64> {
        peak_kib(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The measurement is over; its data folder goes as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
