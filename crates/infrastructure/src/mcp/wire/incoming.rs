//! A message as it came in, an answer's content still as text.

use crate::mcp::wire::message::{Envelope, Id, Malformed, Message, RpcError, parse_exact};
use serde_json::Value;
use std::ops::Range;
use toolstead_domain::json_memory::has_too_many_values;

/// One message. Answers are not parsed beyond their id, so that whoever takes them off the wire can hand them to the
/// one who waits for them at little cost, and so that one bad part of an answer does not spoil the rest of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// Answers a request.
    Answer(Answer),
    /// A request or a notification.
    Other(Message),
}

/// An answer as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    id: Id,
    text: String,
    /// Where the content stands in the text.
    content: Range<usize>,
    is_error: bool,
}

/// Bytes that are no message, and why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", malformed.error)]
pub struct Unreadable {
    /// What is wrong with them.
    pub malformed: Malformed,
    /// The bytes as they came.
    pub bytes: Vec<u8>,
}

/// An answer whose content cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the answer cannot be taken: {0}")]
pub struct MalformedAnswer(String);

impl Incoming {
    /// Reads one message.
    ///
    /// # Errors
    /// [`Unreadable`] with what [`Message::parse`] says of it.
    pub fn read(bytes: Vec<u8>) -> Result<Self, Box<Unreadable>> {
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let malformed = Malformed::no_utf8(error.as_bytes(), error.utf8_error());
                return Err(Box::new(Unreadable { malformed, bytes: error.into_bytes() }));
            }
        };
        let envelope = match Envelope::parse(&text) {
            Ok(envelope) => envelope,
            Err(malformed) => return Err(Box::new(Unreadable { malformed, bytes: text.into_bytes() })),
        };
        let content = match (&envelope.method, &envelope.jsonrpc, envelope.result, envelope.error) {
            (None, Some(version), Some(result), None) if version == "2.0" => Some((result.get(), false)),
            (None, Some(version), None, Some(error)) if version == "2.0" => Some((error.get(), true)),
            _ => None,
        };
        if let (Some((content, is_error)), Ok(Some(id))) = (content, envelope.read_id()) {
            let start = content.as_ptr().addr() - text.as_ptr().addr();
            let content = start..start + content.len();
            return Ok(Self::Answer(Answer { id, content, is_error, text }));
        }
        match envelope.into_message() {
            Ok(message) => Ok(Self::Other(message)),
            Err(malformed) => Err(Box::new(Unreadable { malformed, bytes: text.into_bytes() })),
        }
    }
}

impl Answer {
    /// The id of the request that it answers.
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// The JSON text under `result`, or the error.
    ///
    /// # Errors
    /// The error that the answer is, or [`MalformedAnswer`] in its place.
    pub fn result_text(&self) -> Result<Result<&str, RpcError>, MalformedAnswer> {
        let content = &self.text[self.content.clone()];
        if self.is_error { RpcError::parse(content).map(Err).map_err(MalformedAnswer) } else { Ok(Ok(content)) }
    }

    /// The result as text, if its values would take much more memory than they are worth: see
    /// [`into_outcome`](Self::into_outcome).
    pub fn heavy_result(&self) -> Option<&str> {
        let content = &self.text[self.content.clone()];
        (!self.is_error && has_too_many_values(content.as_bytes())).then_some(content)
    }

    /// The result or the error.
    ///
    /// # Errors
    /// [`MalformedAnswer`] when it holds too many values, a number that cannot be carried exactly, is nested too deep, or the error is
    /// no JSON-RPC error.
    pub fn into_outcome(self) -> Result<Result<Value, RpcError>, MalformedAnswer> {
        match self.result_text()? {
            Ok(text) => parse_exact(text).map(Ok).map_err(|reason| MalformedAnswer(reason.to_string())),
            Err(error) => Ok(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn answer(text: &str) -> Answer {
        match Incoming::read(text.into()).unwrap() {
            Incoming::Answer(answer) => answer,
            Incoming::Other(other) => panic!("{other:?}"),
        }
    }

    fn read(text: &str) -> Result<Incoming, Malformed> {
        Incoming::read(text.into()).map_err(|unreadable| unreadable.malformed)
    }

    #[test]
    fn an_answer_is_parsed_when_it_is_wanted() {
        let good = answer(r#" { "result" : {"a": [1]} , "id":"x", "jsonrpc":"2.0"}"#);
        assert_eq!((good.id(), good.result_text()), (&Id::Text("x".into()), Ok(Ok(r#"{"a": [1]}"#))));
        assert_eq!(good.into_outcome(), Ok(Ok(json!({"a": [1]}))));
        let error = RpcError::new(-32602, "no").with_data(json!(1));
        let failed = answer(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no","data":1}}"#);
        assert_eq!((failed.result_text(), failed.clone().into_outcome()), (Ok(Err(error.clone())), Ok(Err(error))));
    }

    #[test]
    fn an_answer_that_cannot_be_taken_is_an_error_of_its_own() {
        let deep = format!(r#"{}1{}"#, "[".repeat(10_000), "]".repeat(10_000));
        for content in [
            r#""result":1e400"#,
            r#""error":7"#,
            r#""error":null"#,
            r#""result":"\ud800""#,
            &format!("\"result\":{deep}"),
        ] {
            let answer = answer(&format!(r#"{{"jsonrpc":"2.0","id":1,{content}}}"#));
            assert_eq!(answer.id(), &Id::Number(1));
            assert!(answer.into_outcome().is_err(), "{content:.40}");
        }
    }

    #[test]
    fn everything_else_is_read_as_a_message() {
        let notification = r#"{"jsonrpc":"2.0","method":"m"}"#;
        assert_eq!(read(notification), Message::parse(notification.as_bytes()).map(Incoming::Other));
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
            assert_eq!(read(bad), Message::parse(bad.as_bytes()).map(Incoming::Other), "{bad}");
            assert_eq!(Incoming::read(bad.into()).unwrap_err().bytes, bad.as_bytes());
        }
        let no_utf8 = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}".to_vec();
        let unreadable = Incoming::read(no_utf8.clone()).unwrap_err();
        assert_eq!((unreadable.malformed.id, unreadable.bytes), (Some(Id::Number(1)), no_utf8));
    }
}
