//! Messages that are truncated or invalid.

use crate::mcp::wire::message::RequestId;
use serde::{
    Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;
use std::fmt;
use toolstead_domain::json_memory::hides_values;

/// Kind of a truncated or invalid message, with its id if that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TruncatedMessage {
    /// Message with a method, except that of a notification.
    Request(Option<RequestId>),
    /// Message with a result or an error.
    Answer(Option<RequestId>),
    /// Message whose method begins with `notifications/`.
    Notification,
    /// Message in which neither a method nor a result or an error could be read.
    Unknown(Option<RequestId>),
}

impl TruncatedMessage {
    /// Reads the members of the outermost object as far as possible. Some peers write the id last.
    pub fn read(beginning: &[u8], end: &[u8]) -> Self {
        if hides_values(beginning) || hides_values(end) {
            return Self::Unknown(None);
        }
        let mut members = CutMembers::default();
        // Parsing fails at the end of the beginning; members read before are used.
        let _ = serde_json::Deserializer::from_slice(beginning).deserialize_map(&mut members);
        let CutMembers { id, method, is_answer, .. } = members;
        let id = id.or_else(|| last_id(end));
        match method {
            _ if is_answer => Self::Answer(id),
            Some(method) if method.starts_with("notifications/") => Self::Notification,
            Some(_) => Self::Request(id),
            None => Self::Unknown(id),
        }
    }
}

#[derive(Default)]
struct CutMembers {
    id: Option<RequestId>,
    method: Option<String>,
    is_answer: bool,
    /// Id whose end has not been read. A number may lack digits.
    open: Option<RequestId>,
}

impl<'de> Visitor<'de> for &mut CutMembers {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            self.id = self.open.take().or(self.id.take());
            match name.as_str() {
                "id" => self.open = RequestId::from_value(&map.next_value()?),
                "method" => self.method = map.next_value::<Value>()?.as_str().map(str::to_owned),
                name => {
                    self.is_answer |= matches!(name, "result" | "error");
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        self.id = self.open.take().or(self.id.take());
        Ok(())
    }
}

/// Returns the id among the last members of the outermost object, if only `jsonrpc` follows it. The id of an inner
/// object is followed by more than one bracket and is ignored.
fn last_id(end: &[u8]) -> Option<RequestId> {
    let name = br#""id""#;
    let at = end.windows(name.len()).rposition(|window| window == name)?;
    let tail: serde_json::Map<String, Value> = serde_json::from_slice(&[b"{", &end[at..]].concat()).ok()?;
    let is_last = tail.keys().all(|name| matches!(name.as_str(), "id" | "jsonrpc"));
    tail.get("id").filter(|_| is_last).and_then(RequestId::from_value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(beginning: &str, expected: TruncatedMessage) {
        assert_eq!(TruncatedMessage::read(beginning.as_bytes(), b"xxx\"}}"), expected, "{beginning}");
    }

    fn number(id: i64) -> Option<RequestId> {
        Some(RequestId::Number(id))
    }

    #[test]
    fn an_id_near_the_beginning_is_found() {
        use TruncatedMessage::{Answer, Request, Unknown};
        check(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":"xxx"#, Request(number(7)));
        check(r#" { "id" : "a\"b" , "params":{"id":9"#, Unknown(Some(RequestId::Text("a\"b".into()))));
        check(r#"{"x":{"id":1,"y":["}"]},"id":-2,"params":"#, Unknown(number(-2)));
        check(r#"{"jsonrpc":"2.0","id":17,"result":{"#, Answer(number(17)));
        check(r#" { "id" : 3 , "jsonrpc": "2.0", "error": ["#, Answer(number(3)));
        check(r#"{"result":{"id":5,"#, Answer(None));
        check(r#"{"params":{"id":1,"a":"xxxxx"#, Unknown(None));
        check(r#"{"jsonrpc":"2.0","method":"m","params":{"id":1,"#, Request(None));
        check(r#"{"id":12345"#, Unknown(None));
        check(r#"{"id":{"$serde_json::private::RawValue":"7"},"params":"xxx"#, Unknown(None));
        check(r#"{"id":1.5,"method":"m","params":{"#, Request(None));
        check(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"xxx"#, TruncatedMessage::Notification);
        check("xxxx", Unknown(None));
        check("", Unknown(None));
    }

    #[test]
    fn an_id_at_the_end_is_found() {
        for (end, id) in [
            (r#"xxx"},"jsonrpc":"2.0","id":7}"#, number(7)),
            (r#"xxx"}]}, "id": 17, "jsonrpc": "2.0"} "#, number(17)),
            (r#"xxx"},"id":"seven","jsonrpc":"2.0"}"#, Some(RequestId::Text("seven".into()))),
            (r#"xxx","id":7}}"#, None),
            (r#"xxx","b":{"id":7}}}"#, None),
            (r#"xxx"},"id":7,"params":{}}"#, None),
            (r#"xxx"}}"#, None),
            ("", None),
        ] {
            let read = |beginning: &[u8]| TruncatedMessage::read(beginning, end.as_bytes());
            assert_eq!(
                read(br#"{"method":"tools/call","params":{"a":"xxx"#),
                TruncatedMessage::Request(id.clone()),
                "{end}"
            );
            assert_eq!(read(br#"{"result":{"a":"xxx"#), TruncatedMessage::Answer(id), "{end}");
        }
    }

    proptest! {
        #[test]
        fn reading_a_cut_message_never_panics(text in prop::collection::vec(prop::sample::select(br#"{}[]":,\ id1x"#.to_vec()), 0..64)) {
            TruncatedMessage::read(&text, &text);
        }
    }
}
