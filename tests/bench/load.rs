//! A load generator: keep-alive connections over which one request is sent after the other.

use crate::{Outcome, cost::Cost};
use std::time::{Duration, Instant};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// An MCP endpoint and what to send it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
    /// The path of the endpoint.
    pub(crate) path: &'static str,
    /// Header lines, each ended by CR LF.
    pub(crate) headers: String,
    /// What every call holds beside name and arguments, as JSON members.
    pub(crate) meta: &'static str,
}

/// What a run measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Answered calls a second.
    pub(crate) per_second: f64,
    /// The median of one call.
    pub(crate) median: Duration,
    /// Of a hundred calls one takes longer.
    pub(crate) slow: Duration,
    /// What the calls cost the process that was asked, where it was watched.
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
    /// The request that posts this body.
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

/// Sends `body` over `connections` connections for a while. Every answer must be 200 and hold `expected`.
pub(crate) async fn rate(
    target: &Target,
    body: &str,
    expected: &'static str,
    connections: usize,
    time: Duration,
) -> Outcome<Rate> {
    let start = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..connections {
        let (target, request) = (target.clone(), target.request(body));
        tasks.push(tokio::spawn(async move {
            let mut connection = Connection::open(&target).await?;
            let mut times = Vec::with_capacity(1 << 16);
            while start.elapsed() < time {
                let sent = Instant::now();
                let answer = connection.exchange(&request).await?;
                times.push(sent.elapsed());
                if answer.status != 200 || find(&answer.body, expected.as_bytes()).is_none() {
                    return Err(format!("{}: {}", answer.status, String::from_utf8_lossy(&answer.body)).into());
                }
            }
            Outcome::Ok(times)
        }));
    }
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
