//! The channel to the client while its call runs.

use crate::client_profile::LogLevel;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, time::Duration};

/// Progress of a call (MCP `notifications/progress`).
///
/// ```
/// use serde_json::json;
/// use toolstead_domain::ports::caller::Progress;
///
/// let progress = Progress { total: Some(4.0), ..Progress::at(1.0) };
/// let params = progress.into_params("token".into());
/// assert_eq!(params["progressToken"], json!("token"));
/// assert_eq!(params["total"], json!(4));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// Current value. Rises with every message.
    pub progress: f64,
    /// Value at the end of the call, if it is known.
    pub total: Option<f64>,
    /// Current step, for users.
    pub message: Option<String>,
    /// All members as an MCP server sent them, unknown ones and `_meta` included, with order and digits preserved. The
    /// fields above take precedence where they differ. Empty for progress that Toolstead reports itself.
    pub members: Map<String, Value>,
}

impl Progress {
    /// Creates a progress of this value with an unknown total.
    pub fn at(progress: f64) -> Self {
        Self { progress, ..Self::default() }
    }

    /// Parses the parameters of the MCP notification; returns `None` if they contain no progress.
    pub fn from_params(params: Map<String, Value>) -> Option<Self> {
        Some(Self {
            progress: params.get("progress")?.as_f64()?,
            total: params.get("total").and_then(Value::as_f64),
            message: params.get("message").and_then(Value::as_str).map(str::to_owned),
            members: params,
        })
    }

    /// Returns the parameters of the MCP notification for the client that requested progress with this token.
    pub fn into_params(self, token: Value) -> Map<String, Value> {
        let mut params = self.members;
        params.insert("progressToken".into(), token);
        put_number(&mut params, "progress", Some(self.progress));
        put_number(&mut params, "total", self.total);
        put_text(&mut params, "message", self.message);
        params
    }
}

/// Log message for the client (MCP `notifications/message`).
///
/// ```
/// use serde_json::json;
/// use toolstead_domain::{client_profile::LogLevel, ports::caller::LogMessage};
///
/// let message = LogMessage::new(LogLevel::Info, "indexed 12 files").by("indexer");
/// assert_eq!(message.into_params()["logger"], json!("indexer"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LogMessage {
    /// Severity.
    pub level: LogLevel,
    /// Component that logs the message.
    pub logger: Option<String>,
    /// Any JSON value.
    pub data: Value,
    /// All members as an MCP server sent them, as in [`Progress::members`], but with `null` as `data`.
    pub members: Map<String, Value>,
}

impl LogMessage {
    /// Creates a message without a logger.
    pub fn new(level: LogLevel, data: impl Into<Value>) -> Self {
        Self { level, logger: None, data: data.into(), members: Map::new() }
    }

    /// Sets the logger.
    #[must_use]
    pub fn by(self, logger: impl Into<String>) -> Self {
        Self { logger: Some(logger.into()), ..self }
    }

    /// Parses the parameters of the MCP notification; returns `None` if they are not a log message.
    pub fn from_params(mut params: Map<String, Value>) -> Option<Self> {
        Some(Self {
            level: LogLevel::parse(params.get("level")?.as_str()?)?,
            logger: params.get("logger").and_then(Value::as_str).map(str::to_owned),
            data: params.get_mut("data").map_or(Value::Null, Value::take),
            members: params,
        })
    }

    /// Returns the parameters of the MCP notification.
    pub fn into_params(self) -> Map<String, Value> {
        let mut params = self.members;
        params.insert("level".into(), self.level.as_str().into());
        put_text(&mut params, "logger", self.logger);
        params.insert("data".into(), self.data);
        params
    }
}

/// Sets the member to the number, or removes it for `None`. A member that has this value in another notation remains.
fn put_number(members: &mut Map<String, Value>, name: &str, number: Option<f64>) {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    if members.get(name).and_then(Value::as_f64) == number {
        return;
    }
    let number = number.filter(|number| number.is_finite()).map(|number| {
        // Whole numbers are written without a fraction, as most clients do.
        if number.fract() == 0.0 && number.abs() < EXACT { (number as i64).into() } else { Value::from(number) }
    });
    put(members, name, number);
}

fn put_text(members: &mut Map<String, Value>, name: &str, text: Option<String>) {
    if members.get(name).and_then(Value::as_str) != text.as_deref() {
        put(members, name, text.map(Value::from));
    }
}

fn put(members: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => members.insert(name.to_owned(), value),
        None => members.shift_remove(name),
    };
}

/// Question to the client during a call (`elicitation/create`, `sampling/createMessage`, `roots/list`).
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequest {
    /// MCP method.
    pub method: String,
    /// Parameters of the method, as received.
    pub params: Value,
}

/// Answer of the client: the result of the method, as received.
#[derive(Debug, Clone, PartialEq)]
pub struct InputResponse(pub Value);

/// Answers that arrived with a retry, by the keys of their questions (MCP 2026-07-28, `inputResponses`).
pub type InputResponses = BTreeMap<String, InputResponse>;

/// Reason why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnswered {
    /// The client cannot answer questions of this kind.
    #[error("the client cannot answer questions of this kind")]
    Unsupported,
    /// The client answered with a JSON-RPC error, in its own words.
    #[error("the client refused the question ({code}): {message}")]
    Refused {
        /// Error code.
        code: i64,
        /// Error message.
        message: String,
    },
    /// The question may not be put to a client, for this reason.
    #[error("{0}")]
    Unfit(&'static str),
    /// The call has reached its limit of questions.
    #[error("the call has asked the maximum number of questions")]
    Exhausted,
    /// The client did not answer in time.
    #[error("the client did not answer in time")]
    TimedOut,
    /// The client has disconnected.
    #[error("the client has disconnected")]
    Disconnected,
    /// The limit of calls that wait for answers of clients is reached.
    #[error("too many calls are already waiting for answers")]
    TooMany,
    /// The waiting call could not be recorded, so the client was not asked.
    #[error("the question could not be recorded")]
    NotRecorded,
}

/// Communicates with the client that made the call.
///
/// `progress` and `log` never block and never fail: they coalesce messages if the client is slow, respect its log
/// level, and do nothing once the call has ended.
#[async_trait]
pub trait Caller: Send + Sync {
    /// Returns `true` if the client requested progress. Otherwise providers need not request it from an upstream
    /// server.
    fn wants_progress(&self) -> bool {
        true
    }

    /// Returns when the client requests the partial result at once: a tool that has one then stops and returns it,
    /// before the call is cancelled. Never returns by default.
    async fn hurried(&self) {
        std::future::pending().await
    }

    /// Returns once no client is connected that could answer a question about the call; the call itself continues.
    /// Never returns by default.
    async fn disconnected(&self) {
        std::future::pending().await
    }

    /// Returns `true` if the client receives questions as the outcome of its call and answers them with a retry (MCP
    /// 2026-07-28). Such a call is suspended while it waits, and the code that runs calls asks in place of this caller.
    fn answers_by_retry(&self) -> bool {
        false
    }

    /// Returns the time that the call has waited for answers so far, the open question included. This time does not
    /// count as run time: the deadline of the call moves by it.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }

    /// Reports progress. Does nothing if the client did not request it.
    fn progress(&self, progress: Progress);

    /// Sends a log message.
    fn log(&self, message: LogMessage);

    /// Reports that the user has finished on the page to which they were sent (MCP
    /// `notifications/elicitation/complete`): the client that was asked with this id is notified. Does nothing by
    /// default.
    fn elicitation_completed(&self, elicitation_id: &str) {
        let _ = elicitation_id;
    }

    /// Asks the client. Dropping the future withdraws the question.
    ///
    /// # Errors
    /// [`NotAnswered`] if the client gave no answer. The runtime never invents one.
    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered>;

    /// Asks the client with this key, if questions have keys and the key is free. By default they have none.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    async fn ask_as(&self, key: &str, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        let _ = key;
        self.ask(request).await
    }
}

/// Caller that discards all messages and answers no questions.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[track_caller]
    fn check(params: Map<String, Value>, expected: Value) {
        assert_eq!(Value::Object(params).to_string(), expected.to_string());
    }

    #[test]
    fn forwarded_notifications_keep_member_order_and_numbers_except_the_progress_token() {
        let came = json!({"x": [1.0], "total": 3.0, "progressToken": 7, "progress": 18446744073709551615_u64,
            "message": null, "_meta": {"a": null}});
        let progress = Progress::from_params(map(came)).unwrap();
        assert_eq!(progress.total, Some(3.0));
        let expected = json!({"x": [1.0], "total": 3.0, "progressToken": "t", "progress": 18446744073709551615_u64,
            "message": null, "_meta": {"a": null}});
        check(progress.clone().into_params("t".into()), expected);
        let changed = Progress { progress: 2.0, total: None, message: Some("m".into()), ..progress };
        check(
            changed.into_params(1.into()),
            json!({"x": [1.0], "progressToken": 1, "progress": 2, "message": "m", "_meta": {"a": null}}),
        );
        let came = json!({"_meta": {}, "data": {"b": 1, "a": [null]}, "logger": 5, "level": "info", "y": "z"});
        let message = LogMessage::from_params(map(came.clone())).unwrap();
        assert_eq!((message.level, &message.logger, &message.data["b"]), (LogLevel::Info, &None, &json!(1)));
        check(message.clone().into_params(), came);
        let changed = LogMessage { level: LogLevel::Error, ..message }.by("me");
        let expected = json!({"_meta": {}, "data": {"b": 1, "a": [null]}, "logger": "me", "level": "error", "y": "z"});
        check(changed.into_params(), expected);
    }

    #[test]
    fn own_progress_and_log_notifications_have_the_members_that_mcp_defines() {
        check(Progress::at(2.5).into_params("t".into()), json!({"progressToken": "t", "progress": 2.5}));
        let whole = Progress { total: Some(4.0), message: Some("m".into()), ..Progress::at(1.0) };
        check(whole.into_params(1.into()), json!({"progressToken": 1, "progress": 1, "total": 4, "message": "m"}));
        let endless = Progress { total: Some(f64::INFINITY), ..Progress::at(0.0) };
        check(endless.into_params(1.into()), json!({"progressToken": 1, "progress": 0}));
        check(LogMessage::new(LogLevel::Info, "x").into_params(), json!({"level": "info", "data": "x"}));
        for no_progress in [json!({}), json!({"progress": "1"})] {
            assert_eq!(Progress::from_params(map(no_progress)), None);
        }
        for no_message in [json!({"data": 1}), json!({"level": "loud", "data": 1})] {
            assert_eq!(LogMessage::from_params(map(no_message)), None);
        }
    }
}
