//! A provider of models over real HTTP, on a port of its own: it gives the answers that a test prepared, in the shapes
//! recorded from real providers, and keeps the requests that it received. The path of a request determines its
//! protocol.

mod shapes;

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};
use serde_json::Value;
use shapes::Shape;
use std::{
    collections::VecDeque,
    future::{IntoFuture, pending},
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{net::TcpListener, sync::watch, task::yield_now};

/// A fake provider. It ends with the test's runtime.
#[derive(Debug)]
pub(crate) struct ModelServer {
    url: String,
    state: Arc<State>,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Path and query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// The body's text, byte for byte.
    pub(crate) text: String,
    /// The body; null if it is not JSON.
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Reply to one request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// An answer of the model, streamed in the protocol of the request.
    Says(Says),
    /// This very response.
    Raw { status: u16, headers: Vec<(&'static str, String)>, body: Vec<u8> },
    /// These bytes of a stream; then the connection breaks.
    BreaksOff(Vec<u8>),
    /// These bytes of a stream; then nothing, until the client goes away.
    Hangs(Vec<u8>),
}

impl Reply {
    /// A refusal in words.
    pub(crate) fn refusal(status: u16, body: impl Into<String>) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self::Raw { status, headers, body: body.into().into_bytes() }
    }
}

impl From<Says> for Reply {
    fn from(says: Says) -> Self {
        Self::Says(says)
    }
}

/// Content of one answer of a model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Says {
    pieces: Vec<Piece>,
    stop: Stop,
    tokens: Tokens,
}

#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    /// With what makes it genuine.
    Thinking(String, String),
    Call {
        id: String,
        name: String,
        /// As the model writes them; they may be no JSON.
        arguments: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stop {
    /// The end of a turn, or calls where there are some.
    #[default]
    Usual,
    /// The answer was cut off.
    MaxTokens,
    /// The model must not answer.
    Refused,
}

#[derive(Debug, Clone, Copy)]
struct Tokens {
    /// For the full price.
    input: u64,
    cache_read: u64,
    output: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Self { input: 100, cache_read: 0, output: 10 }
    }
}

impl Says {
    pub(crate) fn text(text: &str) -> Self {
        Self::default().and_text(text)
    }

    pub(crate) fn call(name: &str, arguments: Value) -> Self {
        Self::default().and_call(name, arguments)
    }

    pub(crate) fn thinking(text: &str, signature: &str) -> Self {
        let mut says = Self::default();
        says.pieces.push(Piece::Thinking(text.into(), signature.into()));
        says
    }

    #[must_use]
    pub(crate) fn and_text(mut self, text: &str) -> Self {
        self.pieces.push(Piece::Text(text.into()));
        self
    }

    /// A call. Its id is unique in the process, as those of real providers are.
    #[must_use]
    pub(crate) fn and_call(self, name: &str, arguments: Value) -> Self {
        self.and_written_call(name, &arguments.to_string())
    }

    /// A call whose arguments are written like this.
    #[must_use]
    pub(crate) fn and_written_call(mut self, name: &str, arguments: &str) -> Self {
        static CALLS: AtomicUsize = AtomicUsize::new(1);
        let id = format!("call_{:04}", CALLS.fetch_add(1, Ordering::Relaxed));
        self.pieces.push(Piece::Call { id, name: name.into(), arguments: arguments.into() });
        self
    }

    /// Cut off by the longest answer that was allowed.
    #[must_use]
    pub(crate) fn cut_off(self) -> Self {
        Self { stop: Stop::MaxTokens, ..self }
    }

    /// The model must not answer.
    #[must_use]
    pub(crate) fn refused(self) -> Self {
        Self { stop: Stop::Refused, ..self }
    }

    /// Sets the number of tokens that the answer used.
    #[must_use]
    pub(crate) fn for_tokens(self, input: u64, cache_read: u64, output: u64) -> Self {
        Self { tokens: Tokens { input, cache_read, output }, ..self }
    }

    /// The stream as a provider of the protocol sends it, for tests of streams as such.
    pub(crate) fn anthropic(&self) -> String {
        Shape::Anthropic.stream(self)
    }

    fn has_calls(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Call { .. }))
    }
}

type Answering = dyn FnMut(&Seen) -> Reply + Send;

struct State {
    answering: Mutex<Box<Answering>>,
    seen: watch::Sender<Vec<Seen>>,
    /// Answers that hung when their client went away.
    given_up: watch::Sender<usize>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl ModelServer {
    /// Starts a provider with these replies, in order. Any further request is answered with an error.
    pub(crate) async fn with(replies: impl IntoIterator<Item = impl Into<Reply>>) -> Self {
        let mut replies: VecDeque<Reply> = replies.into_iter().map(Into::into).collect();
        Self::answering(move |_| {
            replies.pop_front().unwrap_or_else(|| Reply::refusal(400, r#"{"error":{"message":"the script is over"}}"#))
        })
        .await
    }

    /// A provider that answers like this.
    pub(crate) async fn answering(answering: impl FnMut(&Seen) -> Reply + Send + 'static) -> Self {
        let state = Arc::new(State {
            answering: Mutex::new(Box::new(answering)),
            seen: watch::Sender::new(Vec::new()),
            given_up: watch::Sender::new(0),
        });
        let serving = state.clone();
        let answer = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let answered = if method == Method::POST {
                serving.answered(&uri, headers, &body)
            } else {
                StatusCode::METHOD_NOT_ALLOWED.into_response()
            };
            async move { answered }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
        Self { url, state }
    }

    /// Its address, without a path.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The requests that it got, in their order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.borrow().clone()
    }

    /// The only request that it got.
    #[track_caller]
    pub(crate) fn only_seen(&self) -> Seen {
        let [seen] = self.seen().try_into().expect("one request");
        seen
    }

    /// Waits until it has received this number of requests.
    pub(crate) async fn has_seen(&self, count: usize) {
        self.state.seen.subscribe().wait_for(|seen| seen.len() >= count).await.unwrap();
    }

    /// Waits until this number of hanging answers have lost their client.
    pub(crate) async fn was_given_up(&self, count: usize) {
        self.state.given_up.subscribe().wait_for(|given_up| *given_up >= count).await.unwrap();
    }
}

/// Reports when a hanging answer is dropped.
struct GivenUp(Arc<State>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.given_up.send_modify(|count| *count += 1);
    }
}

impl State {
    fn answered(self: &Arc<Self>, uri: &Uri, headers: HeaderMap, body: &[u8]) -> Response {
        let path = uri.path_and_query().map_or_else(|| uri.to_string(), ToString::to_string);
        let text = String::from_utf8_lossy(body).into_owned();
        let seen = Seen { path, headers, body: serde_json::from_str(&text).unwrap_or_default(), text };
        // Noted before it is answered, and answered in the order of the notes.
        let mut answering = self.answering.lock().unwrap();
        let reply = answering(&seen);
        let shape = Shape::of(&seen);
        self.seen.send_modify(|all| all.push(seen));
        drop(answering);
        let event_stream = [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")];
        match reply {
            Reply::Says(says) => match shape {
                Some(shape) => (event_stream, shape.stream(&says)).into_response(),
                None => (StatusCode::NOT_FOUND, r#"{"error":{"message":"no such path"}}"#).into_response(),
            },
            Reply::Raw { status, headers, body } => {
                let mut response = Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                response.body(Body::from(body)).unwrap()
            }
            Reply::BreaksOff(body) => {
                let cut = stream::once(async {
                    // What is written so far is sent meanwhile.
                    yield_now().await;
                    Err(io::Error::other("cut"))
                });
                let pieces = stream::iter([Ok(Bytes::from(body))]).chain(cut);
                (event_stream, Body::from_stream(pieces)).into_response()
            }
            Reply::Hangs(body) => {
                let guard = GivenUp(self.clone());
                let hanging = stream::once(async move {
                    let _guard = guard;
                    pending::<Result<Bytes, io::Error>>().await
                });
                let pieces = stream::iter([Ok(Bytes::from(body))]).chain(hanging);
                (event_stream, Body::from_stream(pieces)).into_response()
            }
        }
    }
}
