//! The runtime's side of the socket of a run.
//!
//! ```text
//! {"list": true}                     -> {"tools": [{"name", "description", "inputSchema"}]}
//! {"list": NAME}                     -> the same with this tool alone
//! {"call": NAME, "arguments": {..}}  -> {"result": CallToolResult} or {"error": {"kind", "message", "exit", "data"?}}
//! ```
//!
//! Each message is one line of JSON, and each connection handles one request at a time. A program that disconnects
//! cancels its call. All input comes from a program and is limited: a program can delay itself, but no other.

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
use toolstead_domain::{NestedCall, Tool, ToolFailure, error_kind::ErrorKind, json_memory::has_too_many_values};

/// Maximum number of connections at once. Others wait.
pub(super) const CONNECTIONS: usize = 64;
/// Maximum number of calls of a run at once, each until its answer is being sent.
const CALLS_AT_ONCE: usize = 8;
/// Maximum number of lists of a run at once, each until it is being sent: servers determine their size.
pub(super) const LISTS_AT_ONCE: usize = 2;
/// Maximum number of unanswered approval requests for calls of a run; then its calls fail. The timeout of a program is
/// suspended during each request, so a program that continued to request would never end.
pub(super) const MOST_UNANSWERED: usize = 8;
/// Size in bytes that most requests do not exceed.
const SMALL_REQUEST: usize = 64 << 10;
/// Maximum number of requests at once that are larger than [`SMALL_REQUEST`].
const LARGE_AT_ONCE: usize = 4;
/// Maximum number of bytes of a request, and of an answer.
pub(super) const MAX_REQUEST_BYTES: usize = 16 << 20;
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Pause after the system refused a connection for want of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Answers the requests of the program of a run.
pub(super) struct OfferedToolServer<'a> {
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
enum OfferedToolRequest {
    Call {
        call: String,
        #[serde(default)]
        arguments: Value,
    },
    List {
        list: ListSelection,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ListSelection {
    All(bool),
    One(String),
}

impl<'a> OfferedToolServer<'a> {
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

    /// Serves connections. Dropping the future closes them and cancels their calls.
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
        // The semaphore is never closed.
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
                    // The rest of the line is not read.
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
                () = wait_until_closed(&mut lines) => return,
            }
        }
    }

    /// Reads a line into `line`, and returns the permit of a long one, since their number at once is limited;
    /// `Ok(None)` if it is too long.
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

    /// Returns the answer as a line, with its permit among the calls or lists at once.
    pub(super) async fn answer(&self, line: Vec<u8>) -> (Vec<u8>, Option<SemaphorePermit<'_>>) {
        let request = match request(&line) {
            Ok(request) => request,
            Err(failure) => return (refused(&failure), None),
        };
        drop(line);
        match request {
            OfferedToolRequest::List { list } => {
                let place = self.lists.acquire().await.ok();
                (self.list_tools(&list), place)
            }
            OfferedToolRequest::Call { call, arguments } => {
                let place = self.calls.acquire().await.ok();
                if self.unanswered.load(Ordering::Relaxed) >= MOST_UNANSWERED {
                    return (refused(&unanswered_failure()), place);
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

    fn list_tools(&self, which: &ListSelection) -> Vec<u8> {
        let is_meant = |tool: &Tool| match which {
            ListSelection::All(all) => *all,
            ListSelection::One(name) => is_called(tool, name),
        };
        let tools: Vec<ToolListEntry<'_>> =
            self.offered.tools().iter().filter(|tool| is_meant(tool)).map(|tool| ToolListEntry::of(tool)).collect();
        match which {
            ListSelection::One(name) if tools.is_empty() => {
                let name: String = name.chars().take(128).collect();
                let message = format!("the tool `{}` is not offered to this program", name.escape_debug());
                refused(&ToolFailure::new(ErrorKind::NotFound, message).next("`tool --list` lists the offered tools."))
            }
            _ => line_of(&BTreeMap::from([("tools", tools)])),
        }
    }
}

fn is_called(tool: &Tool, name: &str) -> bool {
    tool.name().as_str() == name
        || tool.aliases.iter().any(|alias| alias.name == name)
        || tool.upstream_aliases().is_some_and(|spellings| spellings.iter().any(|one| one == name))
}

/// A tool in a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolListEntry<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

impl<'a> ToolListEntry<'a> {
    fn of(tool: &'a Tool) -> Self {
        Self { name: tool.name().as_str(), description: tool.description(), input_schema: tool.input_schema() }
    }
}

fn unanswered_failure() -> ToolFailure {
    let message = format!("{MOST_UNANSWERED} approval requests of this run were not answered");
    let failure = ToolFailure::new(ErrorKind::ApprovalTimeout, format!("{message}: the run can make no more calls"));
    failure.next("Run it again when an approver is available, or have its calls allowed by a rule.")
}

fn request(line: &[u8]) -> Result<OfferedToolRequest, ToolFailure> {
    let wrong = |message: String| ToolFailure::new(ErrorKind::InvalidInput, message);
    if has_too_many_values(line) {
        return Err(wrong("the request has too many values: send fewer at once".into()));
    }
    serde_json::from_slice(line).map_err(|error| {
        let forms = "`{\"list\": true}` or `{\"call\": NAME, \"arguments\": {}}`";
        wrong(format!("the request is invalid, it must be one line with {forms}: {error}"))
    })
}

/// Returns a failure in the format for programs.
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
    let mut line = AnswerBuffer(Vec::new());
    if serde_json::to_writer(&mut line, answer).is_err() {
        let message = format!("the result has more than {MAX_ANSWER_BYTES} bytes: request less at once");
        return refused(&ToolFailure::new(ErrorKind::TooLarge, message));
    }
    line.0.push(b'\n');
    line.0
}

/// A buffer for an answer, with a size limit.
struct AnswerBuffer(Vec<u8>);

impl io::Write for AnswerBuffer {
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

/// Returns once the program has closed its end. Input before the answer is read later.
async fn wait_until_closed(lines: &mut (impl AsyncBufRead + Unpin)) {
    match lines.fill_buf().await {
        Ok([]) | Err(_) => {}
        Ok(_) => std::future::pending().await,
    }
}
