//! The way back to the caller while its call runs.

use crate::client_profile::LogLevel;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, time::Duration};

/// The progress of a call (MCP `notifications/progress`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// Rises with every message.
    pub progress: f64,
    /// The value at its end, if that is known.
    pub total: Option<f64>,
    /// The step at work, for people.
    pub message: Option<String>,
    /// All members as an MCP server sent them: `_meta`, those that nobody here knows, the order and the digits. The fields
    /// above count where they say something else. Empty for what is reported here.
    pub members: Map<String, Value>,
}

impl Progress {
    /// So far, of nobody knows how much.
    pub fn at(progress: f64) -> Self {
        Self { progress, ..Self::default() }
    }

    /// Reads the parameters of MCP's notification; `None` where they tell no progress.
    pub fn from_params(params: Map<String, Value>) -> Option<Self> {
        Some(Self {
            progress: params.get("progress")?.as_f64()?,
            total: params.get("total").and_then(Value::as_f64),
            message: params.get("message").and_then(Value::as_str).map(str::to_owned),
            members: params,
        })
    }

    /// The parameters of MCP's notification to the one who asked for it under this token.
    pub fn into_params(self, token: Value) -> Map<String, Value> {
        let mut params = self.members;
        params.insert("progressToken".into(), token);
        put_number(&mut params, "progress", Some(self.progress));
        put_number(&mut params, "total", self.total);
        put_text(&mut params, "message", self.message);
        params
    }
}

/// A log message for the client (MCP `notifications/message`).
#[derive(Debug, Clone, PartialEq)]
pub struct LogMessage {
    /// Its severity.
    pub level: LogLevel,
    /// The part of the program that says it.
    pub logger: Option<String>,
    /// Any JSON value.
    pub data: Value,
    /// As [`Progress::members`]; the data's place is empty in it.
    pub members: Map<String, Value>,
}

impl LogMessage {
    /// A message of nobody in particular.
    pub fn new(level: LogLevel, data: impl Into<Value>) -> Self {
        Self { level, logger: None, data: data.into(), members: Map::new() }
    }

    /// The same, said by this one.
    #[must_use]
    pub fn by(self, logger: impl Into<String>) -> Self {
        Self { logger: Some(logger.into()), ..self }
    }

    /// Reads the parameters of MCP's notification; `None` where they are no log message.
    pub fn from_params(mut params: Map<String, Value>) -> Option<Self> {
        Some(Self {
            level: LogLevel::parse(params.get("level")?.as_str()?)?,
            logger: params.get("logger").and_then(Value::as_str).map(str::to_owned),
            data: params.get_mut("data").map_or(Value::Null, Value::take),
            members: params,
        })
    }

    /// The parameters of MCP's notification.
    pub fn into_params(self) -> Map<String, Value> {
        let mut params = self.members;
        params.insert("level".into(), self.level.as_str().into());
        put_text(&mut params, "logger", self.logger);
        params.insert("data".into(), self.data);
        params
    }
}

/// Says the number at its place, unless that says it already, in whatever form.
fn put_number(members: &mut Map<String, Value>, name: &str, number: Option<f64>) {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    if members.get(name).and_then(Value::as_f64) == number {
        return;
    }
    let number = number.filter(|number| number.is_finite()).map(|number| {
        // Whole numbers without a fraction, as most clients count.
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

/// The reason why a question has no answer.
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
    /// Tells whether the client asked for progress, so that whoever could report it need not ask an upstream for it in
    /// vain.
    fn wants_progress(&self) -> bool {
        true
    }

    /// Returns when the client wants what there is by now, and nothing more: a tool that can ends its work and answers
    /// with it at once, before the call is taken back. Never, by default.
    async fn hurried(&self) {
        std::future::pending().await
    }

    /// Returns once nobody is there any more who could be asked about the call, which goes on all the same. Never, by default.
    async fn disconnected(&self) {
        std::future::pending().await
    }

    /// Tells whether the client hears questions with the outcome of its call, and answers them with a retry (MCP
    /// 2026-07-28). The path of the call holds such a call while it waits, and asks in this caller's stead.
    fn answers_by_retry(&self) -> bool {
        false
    }

    /// The time that the call has waited for answers so far, with the question that is open now. It is no time of the
    /// call: its deadline is later by so much.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }

    /// Reports progress. Does nothing if the client did not ask for it.
    fn progress(&self, progress: Progress);

    /// Sends a log message.
    fn log(&self, message: LogMessage);

    /// Tells that a person is done with the page they were sent to (MCP `notifications/elicitation/complete`): a client
    /// that was asked under this id is told. Does nothing by default.
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
    fn what_came_goes_on_in_its_order_and_digits_under_another_token() {
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
    fn what_is_said_here_has_the_members_of_mcp() {
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
