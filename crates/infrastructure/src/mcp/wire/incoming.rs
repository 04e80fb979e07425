//! Incoming messages. The content of a long response stays unparsed text.

use crate::mcp::wire::message::{Envelope, MalformedMessage, RequestId, RpcError, RpcMessage, parse_visible};
use serde_json::Value;
use std::ops::Range;
use toolstead_domain::json_memory::{has_too_much_memory, hides_values};

/// Maximum size of a message whose result is parsed at once, in bytes. A longer one is parsed by the task that waits
/// for it.
const MAX_PLAIN_BYTES: usize = 64 << 10;

/// Incoming message. Of a long response only the id is parsed, so that the reading task forwards it cheaply and an
/// invalid part does not spoil the rest.
#[derive(Debug, Clone, PartialEq)]
pub enum IncomingMessage {
    /// Response to a request.
    Answer(RawResponse),
    /// Request or notification.
    Other(RpcMessage),
}

/// Response as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawResponse {
    id: RequestId,
    text: String,
    /// Range of the result or error in the text.
    content: Range<usize>,
    is_error: bool,
    /// Result, if it was parsed with the message.
    result: Option<Value>,
}

/// Bytes that are not a valid message.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", malformed.error)]
pub struct UnreadableMessage {
    /// Reason, and the id if it could be read.
    pub malformed: MalformedMessage,
    /// Bytes as received.
    pub bytes: Vec<u8>,
}

/// Error for a response whose content is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the answer is invalid: {0}")]
pub struct ResponseContentError(String);

impl IncomingMessage {
    /// Reads one message.
    ///
    /// # Errors
    /// Returns [`UnreadableMessage`] in the cases in which [`RpcMessage::parse`] fails.
    pub fn read(bytes: Vec<u8>) -> Result<Self, Box<UnreadableMessage>> {
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let malformed = MalformedMessage::no_utf8(error.as_bytes(), error.utf8_error());
                return Err(Box::new(UnreadableMessage { malformed, bytes: error.into_bytes() }));
            }
        };
        if let Some((id, content, result)) = plain_answer(&text) {
            return Ok(Self::Answer(RawResponse { id, text, content, is_error: false, result: Some(result) }));
        }
        let envelope = match Envelope::parse(&text) {
            Ok(envelope) => envelope,
            Err(malformed) => return Err(Box::new(UnreadableMessage { malformed, bytes: text.into_bytes() })),
        };
        let content = match (&envelope.method, &envelope.jsonrpc, envelope.result, envelope.error) {
            (None, Some(version), Some(result), None) if version == "2.0" => Some((result.get(), false)),
            (None, Some(version), None, Some(error)) if version == "2.0" => Some((error.get(), true)),
            _ => None,
        };
        if let (Some((content, is_error)), Ok(Some(id))) = (content, envelope.read_id()) {
            let start = content.as_ptr().addr() - text.as_ptr().addr();
            let content = start..start + content.len();
            return Ok(Self::Answer(RawResponse { id, content, is_error, text, result: None }));
        }
        match envelope.into_message() {
            Ok(message) => Ok(Self::Other(message)),
            Err(malformed) => Err(Box::new(UnreadableMessage { malformed, bytes: text.into_bytes() })),
        }
    }
}

/// Parses a response of usual size in one of the two usual forms: with `jsonrpc` and `id` before the result, or after
/// it. Returns `None` for every other message, and for one with other members or an invalid result.
fn plain_answer(text: &str) -> Option<(RequestId, Range<usize>, Value)> {
    const MEMBERS: &str = r#""jsonrpc":"2.0","id":"#;
    const RESULT: &str = r#""result":"#;
    let inner = text.strip_prefix('{')?.strip_suffix('}').filter(|_| text.len() <= MAX_PLAIN_BYTES)?;
    let (id, content) = match inner.strip_prefix(MEMBERS) {
        Some(rest) => {
            let (id, rest) = rest.split_once(',')?;
            (id, rest.strip_prefix(RESULT)?)
        }
        None => {
            let (rest, id) = inner.strip_prefix(RESULT)?.rsplit_once(':')?;
            (id, rest.strip_suffix(&MEMBERS[..MEMBERS.len() - 1])?.strip_suffix(',')?)
        }
    };
    let is_number = id.bytes().all(|byte| byte.is_ascii_digit()) && (id == "0" || !id.starts_with('0'));
    let id = id.parse().ok().filter(|_| is_number).map(RequestId::Number)?;
    if hides_values(text.as_bytes()) {
        return None;
    }
    let start = content.as_ptr().addr() - text.as_ptr().addr();
    Some((id, start..start + content.len(), parse_visible(content).ok()?))
}

impl RawResponse {
    /// Returns the id of the request.
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// Returns the JSON text of `result`, or the error.
    ///
    /// # Errors
    /// Returns the error of the response, or [`ResponseContentError`] if that error is invalid.
    pub fn result_text(&self) -> Result<Result<&str, RpcError>, ResponseContentError> {
        let content = &self.text[self.content.clone()];
        if self.is_error { RpcError::parse(content).map(Err).map_err(ResponseContentError) } else { Ok(Ok(content)) }
    }

    /// Returns the result as text if its parsed values would need too much memory. See
    /// [`into_outcome`](Self::into_outcome).
    pub fn heavy_result(&self) -> Option<&str> {
        if self.result.is_some() {
            return None;
        }
        let content = &self.text[self.content.clone()];
        // Messages with hidden values were rejected before.
        (!self.is_error && has_too_much_memory(content.as_bytes())).then_some(content)
    }

    /// Returns the result or the error.
    ///
    /// # Errors
    /// Returns [`ResponseContentError`] if the result has too many values, has a number that cannot be represented
    /// exactly or is nested too deeply, or if the error is not a valid JSON-RPC error.
    pub fn into_outcome(mut self) -> Result<Result<Value, RpcError>, ResponseContentError> {
        if let Some(result) = self.result.take() {
            return Ok(Ok(result));
        }
        match self.result_text()? {
            Ok(text) => parse_visible(text).map(Ok).map_err(|reason| ResponseContentError(reason.to_string())),
            Err(error) => Ok(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn answer(text: &str) -> RawResponse {
        match IncomingMessage::read(text.into()).unwrap() {
            IncomingMessage::Answer(answer) => answer,
            IncomingMessage::Other(other) => panic!("{other:?}"),
        }
    }

    fn read(text: &str) -> Result<IncomingMessage, MalformedMessage> {
        IncomingMessage::read(text.into()).map_err(|unreadable| unreadable.malformed)
    }

    #[test]
    fn a_response_provides_its_raw_result_and_its_parsed_outcome() {
        let good = answer(r#" { "result" : {"a": [1]} , "id":"x", "jsonrpc":"2.0"}"#);
        assert_eq!((good.id(), good.result_text()), (&RequestId::Text("x".into()), Ok(Ok(r#"{"a": [1]}"#))));
        assert_eq!(good.into_outcome(), Ok(Ok(json!({"a": [1]}))));
        let error = RpcError::new(-32602, "no").with_data(json!(1));
        let failed = answer(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no","data":1}}"#);
        assert_eq!((failed.result_text(), failed.clone().into_outcome()), (Ok(Err(error.clone())), Ok(Err(error))));
    }

    #[test]
    fn member_order_and_spacing_do_not_change_the_result_of_a_response() {
        let result = r#"{"a": ["}", 1.50, {"id":9}], "jsonrpc":"2.0"}"#;
        let padding = "x".repeat(MAX_PLAIN_BYTES);
        for (text, is_parsed) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#), true),
            (format!(r#"{{"result":{result},"jsonrpc":"2.0","id":7}}"#), true),
            (format!(r#"{{"id":7,"jsonrpc":"2.0","result":{result}}}"#), false),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result} }}"#), true),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}} "#), false),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result},"x":"{padding}"}}"#), false),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result},"x":1}}"#), false),
            (format!(r#"{{"result":{result},"x":1,"jsonrpc":"2.0","id":7}}"#), false),
            (format!(r#"{{"result":{result},"jsonrpc":"2.0","id":7,"x":1}}"#), false),
        ] {
            let answer = answer(&text);
            assert_eq!((answer.id(), answer.result.is_some()), (&RequestId::Number(7), is_parsed), "{text:.90}");
            let read = answer.result_text().map(|result| result.map(str::trim_end));
            assert_eq!((read, answer.heavy_result()), (Ok(Ok(result)), None), "{text:.90}");
            assert_eq!(answer.into_outcome(), Ok(Ok(serde_json::from_str(result).unwrap())), "{text:.90}");
        }
        for text in [
            r#"{"jsonrpc":"2.0","id":07,"result":1}"#,
            r#"{"jsonrpc":"2.0","id":+7,"result":1}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":1}}"#,
            r#"{"result":{"a":1,"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":1,"id":8}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":1,"result":2}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"$serde_json::private::RawValue":"[0]"}}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_response_with_an_unreadable_result_keeps_its_id_and_returns_an_error() {
        let deep = format!(r#"{}1{}"#, "[".repeat(10_000), "]".repeat(10_000));
        for content in [
            r#""result":1e400"#,
            r#""error":7"#,
            r#""error":null"#,
            r#""result":"\ud800""#,
            &format!("\"result\":{deep}"),
        ] {
            let answer = answer(&format!(r#"{{"jsonrpc":"2.0","id":1,{content}}}"#));
            assert_eq!(answer.id(), &RequestId::Number(1));
            assert!(answer.into_outcome().is_err(), "{content:.40}");
        }
    }

    #[test]
    fn texts_that_are_not_responses_are_read_by_the_generic_parser() {
        let notification = r#"{"jsonrpc":"2.0","method":"m"}"#;
        assert_eq!(read(notification), RpcMessage::parse(notification.as_bytes()).map(IncomingMessage::Other));
        for bad in [
            "{",
            "[]",
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
            r#"{"id":1,"result":1}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":1}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"error":{"code":1,"message":"m"}}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"x\":\"\u{0}\"}",
        ] {
            assert_eq!(read(bad), RpcMessage::parse(bad.as_bytes()).map(IncomingMessage::Other), "{bad}");
            assert_eq!(IncomingMessage::read(bad.into()).unwrap_err().bytes, bad.as_bytes());
        }
        let no_utf8 = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}".to_vec();
        let unreadable = IncomingMessage::read(no_utf8.clone()).unwrap_err();
        assert_eq!((unreadable.malformed.id, unreadable.bytes), (Some(RequestId::Number(1)), no_utf8));
    }
}
