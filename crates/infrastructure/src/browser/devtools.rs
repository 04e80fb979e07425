//! The Chrome DevTools Protocol over a pair of pipes (`--remote-debugging-pipe`): JSON objects, each terminated by a
//! NUL.
//!
//! Messages of the browser are untrusted: a page controls much of their content. Answers go to the callers that wait
//! for them; events go to one listener, in their order, which must not wait. Unknown messages are ignored.

use crate::browser::{
    accessibility::plain_text,
    process::{BrowserExit, BrowserProcess},
};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::{
    borrow::Cow,
    collections::HashMap,
    fmt, io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{mpsc, oneshot},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// Maximum size of a message, in bytes; a longer one ends the connection. A screenshot of a long page takes some ten
/// megabytes.
const MAX_MESSAGE_BYTES: usize = 128 << 20;
/// Maximum size of the parameters of an event that are parsed, in bytes. An address has at most two megabytes.
const MAX_EVENT_BYTES: usize = 4 << 20;
/// Maximum number of values of a large answer that is parsed: in memory, each takes many times its bytes.
const MAX_VALUES: usize = 10_000_000;
/// Maximum length of the name of a method or session, in bytes. An event with a longer one is ignored.
const MAX_NAME_BYTES: usize = 200;
/// Maximum number of commands that wait to be written; further ones wait.
const MAX_UNWRITTEN: usize = 1_024;

/// A connection to a browser. Dropping it ends the connection.
pub(crate) struct DevTools {
    commands: mpsc::Sender<Vec<u8>>,
    shared: Arc<ConnectionState>,
    /// `None` in tests without a process.
    process: Option<Arc<BrowserProcess>>,
    _reading: AbortOnDropHandle<()>,
    _writing: AbortOnDropHandle<()>,
}

/// A part of the browser that receives commands: the browser itself, or one tab by its session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CommandTarget(pub(crate) Option<Arc<str>>);

/// An event of the browser.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DevToolsEvent {
    pub(crate) target: CommandTarget,
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
}

/// The unparsed answer to a command: some have megabytes, and the caller parses only the part that it needs.
#[derive(Debug)]
pub(crate) struct RawDevToolsAnswer(Vec<u8>);

/// The reason why a command has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DevToolsError {
    /// The browser has ended, or violated the protocol.
    #[error("the browser ended{0}")]
    Ended(BrowserExit),
    /// Toolstead closed the browser.
    #[error("the browser was closed")]
    Closed,
    /// The browser refused the command.
    #[error("the browser refused `{method}`: {message}")]
    Refused {
        /// Method of the command.
        method: String,
        /// Message of the browser.
        message: String,
    },
}

/// State that the reader shares with waiting callers.
#[derive(Default)]
struct ConnectionState {
    next: AtomicU64,
    waiting: Mutex<WaitingCallers>,
    ended: CancellationToken,
    /// Set before `ended` if Toolstead ends the connection.
    is_closed: AtomicBool,
}

/// A handle that ends a connection without owning it.
#[derive(Clone)]
pub(crate) struct CloseHandle {
    shared: Arc<ConnectionState>,
}

/// Callers that wait for an answer, by the number of their command; `None` once the connection has ended.
struct WaitingCallers(Option<HashMap<u64, oneshot::Sender<Result<RawDevToolsAnswer, String>>>>);

impl Default for WaitingCallers {
    fn default() -> Self {
        Self(Some(HashMap::new()))
    }
}

impl ConnectionState {
    fn waiting(&self) -> MutexGuard<'_, WaitingCallers> {
        // Nothing panics while the lock is held.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.ended.cancel();
        self.waiting().0 = None;
    }
}

impl CloseHandle {
    /// Ends the connection; waiting callers receive an error at once. Returns `false` if it has ended already.
    pub(crate) fn close(&self) -> bool {
        let is_first = !self.shared.ended.is_cancelled();
        if is_first {
            self.shared.is_closed.store(true, Ordering::Release);
        }
        self.shared.end();
        is_first
    }

    /// Waits until the connection has ended.
    pub(crate) async fn closed(&self) {
        self.shared.ended.cancelled().await;
    }
}

impl DevTools {
    /// Connects over the pipes of a process. Passes events to `on_event`, which runs in the reading task: it may send
    /// commands by [`post`](ReceivedEvent::post) and must not wait.
    pub(crate) fn over(
        output: impl AsyncRead + Unpin + Send + 'static,
        input: impl AsyncWrite + Unpin + Send + 'static,
        process: Option<Arc<BrowserProcess>>,
        on_event: impl FnMut(ReceivedEvent<'_>) + Send + 'static,
    ) -> Self {
        let (commands, unwritten) = mpsc::channel(MAX_UNWRITTEN);
        let shared = Arc::<ConnectionState>::default();
        let writing = tokio::spawn(write(input, unwritten, shared.ended.clone()));
        let reading = tokio::spawn(read(output, shared.clone(), commands.clone(), on_event));
        let (reading, writing) = (AbortOnDropHandle::new(reading), AbortOnDropHandle::new(writing));
        Self { commands, shared, process, _reading: reading, _writing: writing }
    }

    /// Sends a command and waits for its answer.
    ///
    /// # Errors
    /// [`DevToolsError`].
    pub(crate) async fn call(
        &self,
        target: &CommandTarget,
        method: &str,
        params: Value,
    ) -> Result<Value, DevToolsError> {
        let answer = self.ask(target, method, params).await?;
        answer.value().map_err(|message| DevToolsError::Refused { method: method.to_owned(), message })
    }

    /// Sends a command and waits for its unparsed answer.
    ///
    /// # Errors
    /// [`DevToolsError`].
    pub(crate) async fn ask(
        &self,
        target: &CommandTarget,
        method: &str,
        params: Value,
    ) -> Result<RawDevToolsAnswer, DevToolsError> {
        match self.answer(target, method, params).await {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(message)) => Err(DevToolsError::Refused { method: method.to_owned(), message }),
            None => Err(self.ended().await),
        }
    }

    /// Sends a command, and waits for its answer or for the reason why the browser refused it. `None` if the connection
    /// ends.
    async fn answer(
        &self,
        target: &CommandTarget,
        method: &str,
        params: Value,
    ) -> Option<Result<RawDevToolsAnswer, String>> {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let (answer, mut answered) = oneshot::channel();
        self.shared.waiting().0.as_mut()?.insert(number, answer);
        let _forget = PendingCommandGuard { shared: &self.shared, number };
        tokio::select! {
            sent = self.commands.send(message(number, target, method, params)) => sent.ok()?,
            // A browser that reads nothing may end before the command is sent.
            _ = &mut answered => return None,
        }
        answered.await.ok()
    }

    /// Returns why the connection ended. Waits a moment for the exit status of the browser.
    pub(crate) async fn ended(&self) -> DevToolsError {
        match &self.process {
            _ if self.shared.is_closed.load(Ordering::Acquire) => DevToolsError::Closed,
            None => DevToolsError::Ended(BrowserExit::default()),
            Some(process) => DevToolsError::Ended(process.ending().await),
        }
    }

    /// Returns `true` if the connection has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.shared.ended.is_cancelled()
    }

    /// Returns a handle that ends this connection.
    pub(crate) fn close_handle(&self) -> CloseHandle {
        CloseHandle { shared: self.shared.clone() }
    }
}

impl Drop for DevTools {
    fn drop(&mut self) {
        self.shared.end();
    }
}

/// Removes a caller that stops waiting, on drop.
struct PendingCommandGuard<'a> {
    shared: &'a ConnectionState,
    number: u64,
}

impl Drop for PendingCommandGuard<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = &mut self.shared.waiting().0 {
            waiting.remove(&self.number);
        }
    }
}

/// An event, with the means to send commands at once.
pub(crate) struct ReceivedEvent<'a> {
    pub(crate) event: DevToolsEvent,
    shared: &'a ConnectionState,
    commands: &'a mpsc::Sender<Vec<u8>>,
}

impl ReceivedEvent<'_> {
    /// Sends a command without waiting for its answer. Returns `false` if too many commands wait to be written; the
    /// command is dropped then.
    pub(crate) fn post(&self, target: &CommandTarget, method: &str, params: Value) -> bool {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        self.commands.try_send(message(number, target, method, params)).is_ok()
    }
}

fn message(number: u64, target: &CommandTarget, method: &str, params: Value) -> Vec<u8> {
    let mut message = json!({"id": number, "method": method, "params": params});
    if let (Some(session), Value::Object(members)) = (&target.0, &mut message) {
        members.insert("sessionId".into(), (&**session).into());
    }
    let mut bytes = message.to_string().into_bytes();
    bytes.push(0);
    bytes
}

async fn write(mut input: impl AsyncWrite + Unpin, mut unwritten: mpsc::Receiver<Vec<u8>>, ended: CancellationToken) {
    let writing = async {
        while let Some(message) = unwritten.recv().await {
            if input.write_all(&message).await.is_err() {
                return;
            }
        }
    };
    ended.run_until_cancelled(writing).await;
}

async fn read(
    output: impl AsyncRead + Unpin,
    shared: Arc<ConnectionState>,
    commands: mpsc::Sender<Vec<u8>>,
    mut heard: impl FnMut(ReceivedEvent<'_>),
) {
    let mut messages = MessageReader { output, unread: Vec::new(), searched: 0 };
    // Also ends the connection if a bug of Toolstead ends the reading.
    let _ends = ConnectionGuard(&shared);
    let reading = async {
        // The end of the stream and a protocol violation are treated alike: no further answer is possible.
        while let Ok(Some(bytes)) = messages.next().await {
            let Ok(message) = serde_json::from_slice::<Message<'_>>(&bytes) else { break };
            match message.id {
                Some(number) => {
                    let waiting = shared.waiting().0.as_mut().and_then(|waiting| waiting.remove(&number));
                    // Unrequested answers are ignored.
                    if let Some(waiting) = waiting {
                        // The caller may have stopped waiting.
                        let refused = message.refused();
                        let _ = waiting.send(refused.map_or(Ok(RawDevToolsAnswer(bytes)), Err));
                    }
                }
                None => {
                    if let Some(event) = message.event() {
                        heard(ReceivedEvent { event, shared: &shared, commands: &commands });
                    }
                }
            }
        }
    };
    shared.ended.run_until_cancelled(reading).await;
}

/// Ends the connection when it is dropped.
struct ConnectionGuard<'a>(&'a ConnectionState);

impl Drop for ConnectionGuard<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A message of the browser, whose parts are parsed on demand: an answer has a number, an event has a method.
#[derive(Deserialize)]
struct Message<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "sessionId")]
    session: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl RawDevToolsAnswer {
    /// Returns the result, as JSON.
    pub(crate) fn result(&self) -> &str {
        let message = serde_json::from_slice::<Message<'_>>(&self.0).ok();
        message.and_then(|message| message.result).map_or("null", RawValue::get)
    }

    /// Returns the parsed result.
    fn value(&self) -> Result<Value, String> {
        let raw = self.result();
        if raw.len() > MAX_EVENT_BYTES
            && raw.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() > MAX_VALUES
        {
            return Err("its answer is too long".into());
        }
        serde_json::from_str(raw).map_err(|error| format!("its answer cannot be read: {error}"))
    }
}

impl Message<'_> {
    /// Returns the reason why the command was refused, if it was.
    fn refused(&self) -> Option<String> {
        let error: Value = serde_json::from_str(self.error?.get()).unwrap_or_default();
        let said = error.get("message").and_then(Value::as_str).unwrap_or("no reason was given");
        Some(plain_text(said))
    }

    /// Returns the event; `None` if it has no method, or too long a name. If its parameters cannot be parsed, they are
    /// empty: some events must be answered in any case.
    fn event(&self) -> Option<DevToolsEvent> {
        let params = self.params.map(RawValue::get).filter(|params| params.len() <= MAX_EVENT_BYTES);
        let params = params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
        let is_name = |name: &&Cow<'_, str>| name.len() <= MAX_NAME_BYTES;
        let method = self.method.as_ref().filter(is_name)?.clone().into_owned();
        let session = match &self.session {
            None => None,
            Some(session) => Some(Arc::from(&**Some(session).filter(is_name)?)),
        };
        Some(DevToolsEvent { target: CommandTarget(session), method, params })
    }
}

/// Splits a stream of bytes into messages.
struct MessageReader<R> {
    output: R,
    unread: Vec<u8>,
    /// Number of unread bytes that contain no end of a message.
    searched: usize,
}

impl<R: AsyncRead + Unpin> MessageReader<R> {
    /// Returns the next message; `None` at the end.
    async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(at) = self.unread[self.searched..].iter().position(|byte| *byte == 0) {
                let rest = self.unread.split_off(self.searched + at + 1);
                let mut message = std::mem::replace(&mut self.unread, rest);
                message.pop();
                self.searched = 0;
                return Ok(Some(message));
            }
            self.searched = self.unread.len();
            if self.searched > MAX_MESSAGE_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.unread.reserve(64 << 10);
            if self.output.read_buf(&mut self.unread).await? == 0 {
                return Ok(None);
            }
        }
    }
}

impl fmt::Debug for CloseHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloseHandle").field("came", &self.shared.ended.is_cancelled()).finish()
    }
}

impl fmt::Debug for DevTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevTools").field("has_ended", &self.has_ended()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{DuplexStream, duplex};

    /// A browser whose messages a test scripts.
    struct Played {
        output: DuplexStream,
        input: MessageReader<DuplexStream>,
    }

    impl Played {
        async fn heard(&mut self) -> Value {
            serde_json::from_slice(&self.input.next().await.unwrap().unwrap()).unwrap()
        }

        async fn says(&mut self, message: Value) {
            self.output.write_all(format!("{message}\0").as_bytes()).await.unwrap();
        }
    }

    fn connection(heard: impl FnMut(ReceivedEvent<'_>) + Send + 'static) -> (DevTools, Played) {
        let (ours, output) = duplex(16);
        let (theirs, input) = duplex(16);
        let played = Played { output, input: MessageReader { output: input, unread: Vec::new(), searched: 0 } };
        (DevTools::over(ours, theirs, None, heard), played)
    }

    #[tokio::test]
    async fn answers_reach_their_calls_in_any_order() {
        let (devtools, mut browser) = connection(|_| {});
        let tab = CommandTarget(Some("s1".into()));
        let asking = async {
            tokio::join!(
                devtools.call(&CommandTarget(None), "A.a", json!({"x": 1})),
                devtools.call(&tab, "B.b", json!({})),
                devtools.call(&tab, "C.c", json!({})),
            )
        };
        let playing = async {
            let asked = [browser.heard().await, browser.heard().await, browser.heard().await];
            assert_eq!((&asked[0]["params"], &asked[0]["sessionId"]), (&json!({"x": 1}), &Value::Null));
            assert_eq!((&asked[1]["method"], &asked[1]["sessionId"]), (&json!("B.b"), &json!("s1")));
            browser.says(json!({"id": 99, "result": {}})).await;
            browser
                .says(json!({"id": asked[2]["id"], "error": {"code": -32000, "message": "\u{1b}]0;x\u{7}n\u{202e}o"}}))
                .await;
            browser.says(json!({"id": asked[1]["id"], "result": {"b": 2}})).await;
            browser.says(json!({"id": asked[0]["id"]})).await;
        };
        let ((a, b, c), ()) = tokio::join!(asking, playing);
        assert_eq!((a, b), (Ok(Value::Null), Ok(json!({"b": 2}))));
        assert_eq!(c, Err(DevToolsError::Refused { method: "C.c".into(), message: "]0;xno".into() }));
    }

    #[tokio::test]
    async fn an_event_handler_receives_events_in_order_and_can_send_commands() {
        let (outcome, mut telling) = mpsc::unbounded_channel();
        let (_devtools, mut browser) = connection(move |heard| {
            assert!(heard.post(&heard.event.target, "Answer.it", json!({"to": heard.event.method})));
            outcome.send(heard.event).unwrap();
        });
        for (method, session) in [("Page.loaded", Some("s1")), ("Nobody.knowsIt", None)] {
            browser.says(json!({"method": method, "params": {"a": [1]}, "sessionId": session})).await;
            let answer = browser.heard().await;
            assert_eq!((&answer["method"], &answer["params"]["to"]), (&json!("Answer.it"), &json!(method)));
            let event = telling.recv().await.unwrap();
            assert_eq!((event.method.as_str(), event.target.0.as_deref()), (method, session));
            assert_eq!(event.params["a"], json!([1]));
        }
    }

    async fn ends(last: &[u8]) {
        let (devtools, mut browser) = connection(|_| {});
        let asked = tokio::spawn({
            let last = last.to_vec();
            async move {
                browser.heard().await;
                browser.output.write_all(&last).await.unwrap();
                browser
            }
        });
        let target = CommandTarget(None);
        let asking = devtools.call(&target, "A.a", json!({}));
        let browser = async {
            let browser = asked.await.unwrap();
            if last.is_empty() {
                drop(browser);
                return None;
            }
            Some(browser)
        };
        let (answer, _browser) = tokio::join!(asking, browser);
        let ended = DevToolsError::Ended(BrowserExit::default());
        assert_eq!(answer, Err(ended.clone()), "{last:?}");
        assert!(devtools.has_ended());
        assert_eq!(devtools.call(&target, "A.a", json!({})).await, Err(ended));
    }

    #[tokio::test]
    async fn a_pending_call_fails_as_closed_when_the_browser_is_closed_locally() {
        let (devtools, mut browser) = connection(|_| {});
        let (end, target) = (devtools.close_handle(), CommandTarget(None));
        let closing = async {
            browser.heard().await;
            assert!(end.close() && !end.close());
        };
        let (answer, ()) = tokio::join!(devtools.call(&target, "A.a", json!({})), closing);
        assert_eq!(answer, Err(DevToolsError::Closed));
    }

    #[tokio::test]
    async fn an_ended_connection_or_protocol_violation_fails_pending_calls() {
        ends(b"").await;
        ends(b"{\0").await;
        ends(b"[]\0").await;
        ends(b"\0").await;
    }
}
