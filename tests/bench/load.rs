//! A load generator in a process of its own: keep-alive connections over which one request is sent after the other, each
//! with another argument.

use crate::{Outcome, cost::Cost};
use serde::{Deserialize, Serialize};
use std::{
    borrow::Cow,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::Command,
};

/// The request of a call; `ID`, `NAME`, `MESSAGE` and `META` are replaced.
const CALL: &str =
    r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"NAME","arguments":{"message":"MESSAGE"}META}}"#;

/// An MCP endpoint and what to send it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Target {
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
    /// The path of the endpoint.
    pub(crate) path: Cow<'static, str>,
    /// Header lines, each ended by CR LF.
    pub(crate) headers: String,
    /// The members of every call beside name and arguments, as JSON after a comma.
    pub(crate) meta: Cow<'static, str>,
}

/// One run: the load generator reads it from its standard input.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    target: Target,
    tool: String,
    connections: usize,
    time: Duration,
}

/// The measurements of a run, as the load generator prints them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Rate {
    /// Answered calls a second.
    pub(crate) per_second: f64,
    /// The median time of a call.
    pub(crate) median: Duration,
    /// The 99th percentile.
    pub(crate) slow: Duration,
    /// The cost of the calls for the server process, where it was observed.
    #[serde(skip)]
    pub(crate) cost: Option<Cost>,
}

/// One keep-alive connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// An answer's status, headers and body, the body of an event stream as it is.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Target {
    /// Returns the body of a call of the tool.
    pub(crate) fn call(&self, id: u64, tool: &str, message: &str) -> String {
        let body = CALL.replace("ID", &id.to_string()).replace("NAME", tool).replace("META", &self.meta);
        body.replace("MESSAGE", message)
    }

    /// Returns the request that posts this body.
    pub(crate) fn request(&self, body: &str) -> Vec<u8> {
        format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{}content-length: {}\r\n\r\n{body}",
            self.path,
            self.address,
            self.headers,
            body.len()
        )
        .into_bytes()
    }
}

impl Connection {
    pub(crate) async fn open(target: &Target) -> Outcome<Self> {
        let stream = TcpStream::connect(&target.address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 << 10) })
    }

    /// Sends a request and reads its whole answer.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Outcome<Answer> {
        self.stream.write_all(request).await?;
        let end = self.read_until(|bytes| find(bytes, b"\r\n\r\n").map(|at| at + 4)).await?;
        let head = String::from_utf8(self.buffer.drain(..end).collect())?;
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or("no status line")?;
        let body = if let Some(length) = header(&head, "content-length") {
            let length: usize = length.parse()?;
            self.read_until(|bytes| (bytes.len() >= length).then_some(length)).await?;
            self.buffer.drain(..length).collect()
        } else if header(&head, "transfer-encoding") == Some("chunked") {
            let end = self.read_until(|bytes| find(bytes, b"0\r\n\r\n").map(|at| at + 5)).await?;
            self.buffer.drain(..end).collect()
        } else {
            Vec::new()
        };
        Ok(Answer { status, head, body })
    }

    async fn read_until(&mut self, done: impl Fn(&[u8]) -> Option<usize>) -> Outcome<usize> {
        loop {
            if let Some(end) = done(&self.buffer) {
                return Ok(end);
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the connection was closed".into());
            }
        }
    }
}

/// The value of a header, whose name is written in any case.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| {
        line.split_once(':').filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    head.lines().find_map(value)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Calls the tool over `connections` connections for a while, from a process of its own. Every answer must be 200 and
/// hold the message of its call.
pub(crate) async fn rate(target: &Target, tool: &str, connections: usize, time: Duration) -> Outcome<Rate> {
    let run = Run { target: target.clone(), tool: tool.to_owned(), connections, time };
    let mut generator = Command::new(std::env::current_exe()?)
        .arg("--load")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = generator.stdin.take().ok_or("no stdin")?;
    input.write_all(&serde_json::to_vec(&run)?).await?;
    drop(input);
    let output = generator.wait_with_output().await?;
    if !output.status.success() {
        return Err(format!("the load generator ended with {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Runs what standard input says and prints its rate.
pub(crate) async fn generate() -> Outcome<()> {
    let mut text = Vec::new();
    tokio::io::stdin().read_to_end(&mut text).await?;
    let rate = Arc::new(serde_json::from_slice::<Run>(&text)?).measure().await?;
    println!("{}", serde_json::to_string(&rate)?);
    Ok(())
}

impl Run {
    async fn measure(self: Arc<Self>) -> Outcome<Rate> {
        let (start, numbers) = (Instant::now(), Arc::new(AtomicU64::new(10_000)));
        let tasks: Vec<_> =
            (0..self.connections).map(|_| tokio::spawn(self.clone().one_connection(start, numbers.clone()))).collect();
        let mut times = Vec::new();
        for task in tasks {
            times.extend(task.await??);
        }
        let seconds = start.elapsed().as_secs_f64();
        times.sort();
        Ok(Rate {
            per_second: times.len() as f64 / seconds,
            median: times[times.len() / 2],
            slow: times[times.len() * 99 / 100],
            cost: None,
        })
    }

    /// Returns the times of the calls. No two calls of a run have the same number.
    async fn one_connection(self: Arc<Self>, start: Instant, numbers: Arc<AtomicU64>) -> Outcome<Vec<Duration>> {
        let mut connection = Connection::open(&self.target).await?;
        let mut times = Vec::with_capacity(1 << 16);
        while start.elapsed() < self.time {
            let number = numbers.fetch_add(1, Ordering::Relaxed);
            let message = format!("call {number}");
            let request = self.target.request(&self.target.call(number, &self.tool, &message));
            let sent = Instant::now();
            let answer = connection.exchange(&request).await?;
            times.push(sent.elapsed());
            if answer.status != 200 || find(&answer.body, format!("Echo: {message}\"").as_bytes()).is_none() {
                return Err(format!("{}: {}", answer.status, String::from_utf8_lossy(&answer.body)).into());
            }
        }
        Ok(times)
    }
}
