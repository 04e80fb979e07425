//! Windows of a large text file, against the tools of the shell.

use crate::Outcome;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, BufWriter, Read, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

/// 1 GB of lines of 100 bytes.
const LINES: u64 = 10_000_000;
const FAR: u64 = 9_000_000;
const ROUNDS: usize = 5;

/// A window at the end and one far inside, for the first time and again, with the most memory that was ever resident.
pub(crate) fn windows(start: impl Fn(&Path) -> Command) -> Outcome<()> {
    let home = tempfile::tempdir()?;
    // The home folder itself is no place to work in.
    let work = home.path().join("work");
    std::fs::create_dir(&work)?;
    let file = work.join("big.log");
    generate(&file)?;
    let shown = file.display().to_string();
    let tail = median(|| shell("tail", &["-n", "100", &shown]))?;
    let sed = median(|| shell("sed", &["-n", &format!("{FAR},{}p;{}q", FAR + 99, FAR + 99), &shown]))?;
    let mut command = start(home.path());
    command.current_dir(&work);
    let mut server = Server::start(command)?;
    let before = server.peak_kib()?;
    let end = json!({"path": "big.log", "offset": -100});
    let far = json!({"path": "big.log", "offset": FAR, "limit": 100});
    let at_end = median(|| server.timed(&end, &format!("line {LINES:>9}")))?;
    let cold = server.timed(&far, &format!("line {FAR:>9}"))?;
    let warm = median(|| server.timed(&far, &format!("line {FAR:>9}")))?;
    let grown = server.peak_kib()?.saturating_sub(before);
    print("read-window, last 100 of 1 GB", at_end, tail, "tail -n 100");
    print("read-window, line 9,000,000, cold", cold, sed, "sed -n, which ends there");
    print("read-window, line 9,000,000, warm", warm, sed, "the same");
    println!(
        "{:<34} {:>9.1}MiB {:>12} {:>8} {:>8}  peak resident, above that before the reads",
        "read-window, memory",
        grown as f64 / 1024.0,
        "",
        "",
        "8 MiB"
    );
    Ok(())
}

fn print(row: &str, subject: Duration, reference: Duration, note: &str) {
    let (ours, theirs) = (subject.as_secs_f64() * 1e3, reference.as_secs_f64() * 1e3);
    println!("{row:<34} {ours:>10.1}ms {theirs:>10.1}ms {:>8.2} {:>8}  {note}", ours / theirs, "");
}

fn generate(file: &Path) -> Outcome<()> {
    let mut output = BufWriter::with_capacity(1 << 20, std::fs::File::create(file)?);
    let rest = "x".repeat(84);
    for line in 1..=LINES {
        writeln!(output, "line {line:>9} {rest}")?;
    }
    output.flush()?;
    Ok(())
}

fn median(mut measure: impl FnMut() -> Outcome<Duration>) -> Outcome<Duration> {
    let mut times = (0..ROUNDS).map(|_| measure()).collect::<Outcome<Vec<_>>>()?;
    times.sort();
    Ok(times[times.len() / 2])
}

fn shell(program: &str, arguments: &[&str]) -> Outcome<Duration> {
    let begun = Instant::now();
    let output = Command::new(program).args(arguments).output()?;
    let time = begun.elapsed();
    match output.status.success() && output.stdout.iter().filter(|byte| **byte == b'\n').count() == 100 {
        true => Ok(time),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// `toolstead mcp`, spoken to over stdio.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Server {
    fn start(mut command: Command) -> Outcome<Self> {
        let mut child = command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut server = Self { child, input, output, asked: 0 };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        server.ask("initialize", &hello)?;
        writeln!(server.input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        server.ask("tools/list", &json!({}))?;
        Ok(server)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Outcome<Value> {
        self.asked += 1;
        writeln!(self.input, "{}", json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the program ended early".into());
            }
            let message: Value = serde_json::from_str(&line)?;
            if message.get("id").is_some() {
                return Ok(message);
            }
        }
    }

    fn timed(&mut self, arguments: &Value, wanted: &str) -> Outcome<Duration> {
        let begun = Instant::now();
        let answer = self.ask("tools/call", &json!({"name": "read_file", "arguments": arguments}))?;
        let time = begun.elapsed();
        let content = answer["result"]["structuredContent"]["content"].as_str().unwrap_or_default();
        if content.contains(wanted) { Ok(time) } else { Err(format!("`{wanted}` was not read: {answer}").into()) }
    }

    fn peak_kib(&self) -> Outcome<u64> {
        let mut status = String::new();
        std::fs::File::open(format!("/proc/{}/status", self.child.id()))?.read_to_string(&mut status)?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It holds nothing that a kill could hurt.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
