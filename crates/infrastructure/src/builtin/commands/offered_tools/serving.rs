//! The socket of a run, from the side of the runtime.
//!
//! ```text
//! {"list": true}                     -> {"tools": [{"name", "description", "inputSchema"}]}
//! {"list": NAME}                     -> the same with this tool alone
//! {"call": NAME, "arguments": {..}}  -> {"result": CallToolResult} or {"error": {"kind", "message", "exit", "data"?}}
//! ```
//!
//! Each is one line of JSON, and each connection has one request at a time. A program that goes away takes its call back.
//! All that comes in is a program's, and bounded: it can keep itself waiting, and nobody else.

use super::OfferedTools;
use futures::stream::{FuturesUnordered, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    os::unix::net::UnixListener as StdListener,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::{Semaphore, SemaphorePermit},
    time::sleep,
};
use toolstead_domain::{
    error_kind::ErrorKind, json_memory::has_too_many_values, ports::calls::NestedCall, tool::Tool,
    tool_failure::ToolFailure,
};

/// Connections at once. Others wait.
pub(super) const CONNECTIONS: usize = 64;
/// Calls of a run at once, each until its answer is on its way.
const CALLS_AT_ONCE: usize = 8;
/// Lists of a run at once, each until it is on its way: servers say how long they are.
pub(super) const LISTS_AT_ONCE: usize = 2;
/// So many questions about calls of a run may stay without an answer. Then nobody is there who could be asked, and a program
/// that asks on would never end: as long as somebody is asked, its time stands still.
pub(super) const MOST_UNANSWERED: usize = 8;
/// A request is mostly smaller.
const SMALL_REQUEST: usize = 64 << 10;
/// Requests at once that are larger.
const LARGE_AT_ONCE: usize = 4;
/// The bytes of a request, and of an answer.
pub(super) const MAX_REQUEST_BYTES: usize = 16 << 20;
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// After a connection that the system did not give, for want of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Answers what comes from the program of a run.
pub(super) struct Serving<'a> {
    listener: UnixListener,
    offered: &'a OfferedTools<'a>,
    connections: Semaphore,
    calls: Semaphore,
    lists: Semaphore,
    large: Semaphore,
    unanswered: AtomicUsize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, untagged)]
enum Request {
    Call {
        call: String,
        #[serde(default)]
        arguments: Value,
    },
    List {
        list: Listed,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Listed {
    All(bool),
    One(String),
}

impl<'a> Serving<'a> {
    pub(super) fn on(listener: StdListener, offered: &'a OfferedTools<'a>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener: UnixListener::from_std(listener)?,
            offered,
            connections: Semaphore::new(CONNECTIONS),
            calls: Semaphore::new(CALLS_AT_ONCE),
            lists: Semaphore::new(LISTS_AT_ONCE),
            large: Semaphore::new(LARGE_AT_ONCE),
            unanswered: AtomicUsize::new(0),
        })
    }

    /// Ends when it is dropped, and everything with it.
    pub(super) async fn run(&self) -> Infallible {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                (stream, place) = self.accepted() => open.push(self.serve(stream, place)),
                Some(()) = open.next(), if !open.is_empty() => {}
            }
        }
    }

    async fn accepted(&self) -> (UnixStream, SemaphorePermit<'_>) {
        // Nobody closes it.
        let Ok(place) = self.connections.acquire().await else { return std::future::pending().await };
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => return (stream, place),
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Serves one connection to its end.
    async fn serve(&self, mut stream: UnixStream, _place: SemaphorePermit<'_>) {
        let (read, mut write) = stream.split();
        let mut lines = BufReader::new(read);
        loop {
            let mut line = Vec::new();
            let large = match self.read(&mut lines, &mut line).await {
                Ok(Some(large)) => large,
                Ok(None) => {
                    let message = format!("a request has more than {MAX_REQUEST_BYTES} bytes");
                    let refusal = refused(&ToolFailure::new(ErrorKind::TooLarge, message));
                    // The rest of the line is nobody's.
                    return drop(write.write_all(&refusal).await);
                }
                Err(_) => return,
            };
            let answered = async {
                let (answer, _place) = self.answer(line).await;
                drop(large);
                write.write_all(&answer).await
            };
            tokio::select! {
                biased;
                written = answered => if written.is_err() { return },
                () = gone(&mut lines) => return,
            }
        }
    }

    /// Reads a line. `Ok(None)`: it is too long. Of the long ones some are read at a time.
    async fn read(
        &self,
        from: &mut (impl AsyncBufRead + Unpin),
        line: &mut Vec<u8>,
    ) -> io::Result<Option<Option<SemaphorePermit<'_>>>> {
        let mut large = None;
        loop {
            let bytes = from.fill_buf().await?;
            if bytes.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(bytes.len());
            if line.len() + taken > MAX_REQUEST_BYTES {
                return Ok(None);
            }
            line.extend_from_slice(&bytes[..taken]);
            from.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(Some(large));
            }
            if line.len() > SMALL_REQUEST && large.is_none() {
                large = self.large.acquire().await.ok();
            }
        }
    }

    /// The answer as a line, and its place among the calls or lists at once.
    pub(super) async fn answer(&self, line: Vec<u8>) -> (Vec<u8>, Option<SemaphorePermit<'_>>) {
        let request = match request(&line) {
            Ok(request) => request,
            Err(failure) => return (refused(&failure), None),
        };
        drop(line);
        match request {
            Request::List { list } => {
                let place = self.lists.acquire().await.ok();
                (self.listed(&list), place)
            }
            Request::Call { call, arguments } => {
                let place = self.calls.acquire().await.ok();
                if self.unanswered.load(Ordering::Relaxed) >= MOST_UNANSWERED {
                    return (refused(&nobody_answers()), place);
                }
                let made = self.offered.calls.call(NestedCall::new(call, arguments).answering_whole()).await;
                let answer = match made {
                    Ok(result) => line_of(&BTreeMap::from([("result", result.as_object())])),
                    Err(failure) => {
                        if failure.kind == ErrorKind::ApprovalTimeout {
                            self.unanswered.fetch_add(1, Ordering::Relaxed);
                        }
                        refused(&failure)
                    }
                };
                (answer, place)
            }
        }
    }

    fn listed(&self, which: &Listed) -> Vec<u8> {
        let is_meant = |tool: &Tool| match which {
            Listed::All(all) => *all,
            Listed::One(name) => is_called(tool, name),
        };
        let tools: Vec<Shown<'_>> =
            self.offered.tools().iter().filter(|tool| is_meant(tool)).map(|tool| Shown::of(tool)).collect();
        match which {
            Listed::One(name) if tools.is_empty() => {
                let name: String = name.chars().take(128).collect();
                let message = format!("the tool `{}` is not offered to this program", name.escape_debug());
                refused(&ToolFailure::new(ErrorKind::NotFound, message).next("`tool --list` says which are."))
            }
            _ => line_of(&BTreeMap::from([("tools", tools)])),
        }
    }
}

fn is_called(tool: &Tool, name: &str) -> bool {
    tool.name().as_str() == name
        || tool.aliases.iter().any(|alias| alias.name == name)
        || tool.upstream_spellings().is_some_and(|spellings| spellings.iter().any(|one| one == name))
}

/// A tool in a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

impl<'a> Shown<'a> {
    fn of(tool: &'a Tool) -> Self {
        Self { name: tool.name().as_str(), description: tool.description(), input_schema: tool.input_schema() }
    }
}

fn nobody_answers() -> ToolFailure {
    let message = format!("{MOST_UNANSWERED} questions about calls of this run stayed without an answer");
    let failure = ToolFailure::new(ErrorKind::ApprovalTimeout, format!("{message}: it makes no more calls"));
    failure.next("Run it again when somebody can be asked, or have its calls allowed.")
}

fn request(line: &[u8]) -> Result<Request, ToolFailure> {
    let wrong = |message: String| ToolFailure::new(ErrorKind::InvalidInput, message);
    if has_too_many_values(line) {
        return Err(wrong("the request holds too many values: give fewer of them at once".into()));
    }
    serde_json::from_slice(line).map_err(|error| {
        let forms = "`{\"list\": true}` or `{\"call\": NAME, \"arguments\": {}}`";
        wrong(format!("this is no request, which is one line with {forms}: {error}"))
    })
}

/// A failure, as programs hear of it.
fn refused(failure: &ToolFailure) -> Vec<u8> {
    let mut error = Map::new();
    error.insert("kind".into(), failure.kind.as_str().into());
    error.insert("message".into(), failure.text().into());
    error.insert("exit".into(), failure.kind.exit_code().into());
    if !failure.data.is_null() {
        error.insert("data".into(), failure.data.clone());
    }
    if let Some(partial) = &failure.partial {
        error.insert("partial".into(), Value::Object(partial.as_object().clone()));
    }
    line_of(&json!({"error": error}))
}

fn line_of(answer: &impl Serialize) -> Vec<u8> {
    let mut line = Line(Vec::new());
    if serde_json::to_writer(&mut line, answer).is_err() {
        let message = format!("the result has more than {MAX_ANSWER_BYTES} bytes: ask for less of it at once");
        return refused(&ToolFailure::new(ErrorKind::TooLarge, message));
    }
    line.0.push(b'\n');
    line.0
}

/// An answer that is being written, which takes no more than it may.
struct Line(Vec<u8>);

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_ANSWER_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns when the program has closed its end. What it sends before it has its answer is looked at afterwards.
async fn gone(lines: &mut (impl AsyncBufRead + Unpin)) {
    match lines.fill_buf().await {
        Ok([]) | Err(_) => {}
        Ok(_) => std::future::pending().await,
    }
}
