//! The way back to the caller while its call runs.

use crate::client_profile::LogLevel;
use async_trait::async_trait;
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};

/// How far a call is (MCP `notifications/progress`).
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Rises with every message.
    pub progress: f64,
    /// Where it ends, if that is known.
    pub total: Option<f64>,
    /// What happens, for people.
    pub message: Option<String>,
}

/// A log message for the client (MCP `notifications/message`).
#[derive(Debug, Clone, PartialEq)]
pub struct LogMessage {
    /// How severe it is.
    pub level: LogLevel,
    /// Who says it.
    pub logger: Option<String>,
    /// Any JSON value.
    pub data: Value,
}

/// A question to the client in mid-call (`elicitation/create`, `sampling/createMessage`, `roots/list`).
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequest {
    /// MCP's method.
    pub method: String,
    /// Its parameters, as they came.
    pub params: Value,
}

/// The client's answer: the method's result, as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct InputResponse(pub Value);

/// Answers that came with a retry, by the key of their question (MCP 2026-07-28, `inputResponses`).
pub type InputResponses = BTreeMap<String, InputResponse>;

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnswered {
    /// The client cannot answer questions of this kind.
    #[error("the client cannot answer questions of this kind")]
    Unsupported,
    /// The client answered with an error (JSON-RPC): its own word.
    #[error("the client refused the question ({code}): {message}")]
    Refused {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
    },
    /// The question is none that may be put to a client; the text says why.
    #[error("{0}")]
    Unfit(&'static str),
    /// The call has asked as much as one call may.
    #[error("the call has asked as much as one call may")]
    Exhausted,
    /// The client did not answer in time.
    #[error("the client did not answer in time")]
    TimedOut,
    /// The client is gone.
    #[error("the client is gone")]
    Gone,
    /// As many calls as may wait for answers of clients.
    #[error("too many calls wait for answers already")]
    TooMany,
    /// It cannot be recorded that the call waits, so the client was not asked.
    #[error("the question could not be recorded")]
    NotRecorded,
}

/// Talks to the one who made the call.
///
/// `progress` and `log` never block and never fail: they coalesce where the client is slow, honour its log level, and
/// do nothing once the call has ended.
#[async_trait]
pub trait Caller: Send + Sync {
    /// Whether the client asked for progress, so that whoever could report it need not ask an upstream for it in vain.
    fn wants_progress(&self) -> bool {
        true
    }

    /// Returns when the client wants what there is by now, and nothing more: a tool that can ends its work and answers
    /// with it at once, before the call is taken back. Never, by default.
    async fn hurried(&self) {
        std::future::pending().await
    }

    /// Whether the client hears questions with the outcome of its call, and answers them with a retry (MCP 2026-07-28). The
    /// path of the call holds such a call while it waits, and asks in this caller's stead.
    fn answers_by_retry(&self) -> bool {
        false
    }

    /// How long the call has waited for answers so far, with the question that is open now. That is no time of the call: its
    /// deadline is later by so much.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }

    /// Reports progress. Does nothing if the client did not ask for it.
    fn progress(&self, progress: Progress);

    /// Sends a log message.
    fn log(&self, message: LogMessage);

    /// What a person was sent to a page for is done (MCP `notifications/elicitation/complete`): a client that was asked
    /// under this id is told. Does nothing by default.
    fn elicitation_completed(&self, elicitation_id: &str) {
        let _ = elicitation_id;
    }

    /// Asks the client. Dropping the future takes the question back.
    ///
    /// # Errors
    /// [`NotAnswered`]; the runtime never makes an answer up.
    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered>;

    /// Asks the client, under this key where questions have keys and it is free. By default they have none.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    async fn ask_as(&self, key: &str, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        let _ = key;
        self.ask(request).await
    }
}

/// A caller that listens to nothing and answers nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentCaller;

#[async_trait]
impl Caller for SilentCaller {
    fn wants_progress(&self) -> bool {
        false
    }
    fn progress(&self, _: Progress) {}
    fn log(&self, _: LogMessage) {}
    async fn ask(&self, _: InputRequest) -> Result<InputResponse, NotAnswered> {
        Err(NotAnswered::Unsupported)
    }
}
