//! Messages of clients, parsed in one pass.
//!
//! The pass accepts only well-formed requests and notifications. [`RpcMessage::parse`] handles every other text and
//! reports its errors.

use super::{
    message::{MAX_ID_BYTES, MalformedMessage, RequestId, RpcMessage},
    meta::PARAMS_OF_ONE_HOP,
    numbers::first_inexact,
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value};
use std::{borrow::Cow, fmt};
use toolstead_domain::json_memory::has_too_many_values;

/// Maximum length of a string id that is parsed in one pass, in bytes. Escaped, it is still shorter than
/// [`MAX_ID_BYTES`].
const MAX_PLAIN_ID_BYTES: usize = MAX_ID_BYTES / 8;
/// Maximum length of [`ToolCallParams::rest`], because each member is compared with all others.
const MAX_REST: usize = 16;

/// Message of a client. The parameters of a tool call are fields.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientMessage {
    /// Request for `tools/call` that is not a retry.
    ToolCall {
        /// Id for the response.
        id: RequestId,
        /// Parameters of the request.
        params: ToolCallParams,
    },
    /// Any other message, and a `tools/call` that [`RpcMessage::parse`] has to handle.
    Other(RpcMessage),
}

/// Parameters of a `tools/call`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCallParams {
    /// Name of the tool.
    pub tool: String,
    /// Arguments; `null` if there are none.
    pub arguments: Value,
    /// Member `_meta`.
    pub meta: Option<Map<String, Value>>,
    /// Members that MCP does not define, in their order.
    pub rest: Vec<(String, Value)>,
}

impl ClientMessage {
    /// Parses one message.
    ///
    /// # Errors
    /// [`MalformedMessage`] as [`RpcMessage::parse`].
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedMessage> {
        match std::str::from_utf8(bytes).ok().and_then(|text| read(text, true)) {
            Some(message) => Ok(message),
            None => RpcMessage::parse(bytes).map(Self::Other),
        }
    }
}

/// Parses one message like [`RpcMessage::parse`], but a well-formed request or notification in one pass.
///
/// # Errors
/// [`MalformedMessage`] as [`RpcMessage::parse`].
pub fn parse_message(bytes: &[u8]) -> Result<RpcMessage, MalformedMessage> {
    match std::str::from_utf8(bytes).ok().and_then(|text| read(text, false)) {
        Some(ClientMessage::Other(message)) => Ok(message),
        Some(ClientMessage::ToolCall { .. }) | None => RpcMessage::parse(bytes),
    }
}

/// Parses a request or notification in one pass. Returns `None` for every text that needs [`RpcMessage::parse`]. Only
/// with `takes_calls_apart`, a tool call becomes a [`ClientMessage::ToolCall`].
fn read(text: &str, takes_calls_apart: bool) -> Option<ClientMessage> {
    if has_too_many_values(text.as_bytes()) {
        return None;
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let MessageMembers { id, method, params } =
        MessageMembersSeed { takes_calls_apart }.deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    // 64-bit integers are always exact. A number that a later member of the same name replaces is not checked, because
    // its value is not used.
    if params.has_double() && first_inexact(text.as_bytes()).is_some() {
        return None;
    }
    match (id, params) {
        (Some(id), Params::Call(params)) => Some(ClientMessage::ToolCall { id, params }),
        (None, Params::Call(_)) => None,
        (Some(id), Params::Object(params)) => {
            Some(ClientMessage::Other(RpcMessage::Request { id, method: method.into_owned(), params }))
        }
        (None, Params::Object(params)) => {
            Some(ClientMessage::Other(RpcMessage::Notification { method: method.into_owned(), params }))
        }
    }
}

struct MessageMembers<'a> {
    id: Option<RequestId>,
    method: Cow<'a, str>,
    params: Params,
}

enum Params {
    Call(ToolCallParams),
    Object(Map<String, Value>),
}

impl Params {
    fn has_double(&self) -> bool {
        match self {
            Self::Call(ToolCallParams { tool: _, arguments, meta, rest }) => {
                has_double(arguments)
                    || meta.as_ref().is_some_and(|meta| meta.values().any(has_double))
                    || rest.iter().any(|(_, value)| has_double(value))
            }
            Self::Object(params) => params.values().any(has_double),
        }
    }
}

/// Returns `true` if a value contains a double. The parser limits the depth of the recursion.
fn has_double(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(values) => values.iter().any(has_double),
        Value::Object(members) => members.values().any(has_double),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// Names of the members of a message.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum MemberName {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct CowStr<'a>(#[serde(borrow)] Cow<'a, str>);

struct MessageMembersSeed {
    takes_calls_apart: bool,
}

impl<'de> DeserializeSeed<'de> for MessageMembersSeed {
    type Value = MessageMembers<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MessageMembersSeed {
    type Value = MessageMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request or a notification")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut is_versioned, mut id, mut method, mut params) = (false, None, None, None);
        while let Some(member) = map.next_key()? {
            match member {
                MemberName::Jsonrpc if !is_versioned && map.next_value::<CowStr<'de>>()?.0 == "2.0" => {
                    is_versioned = true
                }
                MemberName::Id if id.is_none() => id = Some(map.next_value::<PlainId>()?.0),
                MemberName::Method if method.is_none() => method = Some(map.next_value::<CowStr<'de>>()?.0),
                MemberName::Params if params.is_none() => {
                    let is_call = self.takes_calls_apart && method.as_deref() == Some("tools/call");
                    params = Some(if is_call {
                        Params::Call(map.next_value::<FastPathToolCall>()?.0)
                    } else {
                        Params::Object(map.next_value::<Option<_>>()?.unwrap_or_default())
                    });
                }
                MemberName::Other => _ = map.next_value::<IgnoredAny>()?,
                _ => return Err(needs_closer_look()),
            }
        }
        let (Some(method), true) = (method, is_versioned) else { return Err(needs_closer_look()) };
        Ok(MessageMembers { id, method, params: params.unwrap_or_else(|| Params::Object(Map::new())) })
    }
}

fn needs_closer_look<E: Error>() -> E {
    E::custom("")
}

struct PlainId(RequestId);

impl<'de> Deserialize<'de> for PlainId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor).map(Self)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = RequestId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a 64-bit integer or a string")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<RequestId, E> {
        Ok(RequestId::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<RequestId, E> {
        i64::try_from(number).map(RequestId::Number).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RequestId, E> {
        if text.len() > MAX_PLAIN_ID_BYTES { Err(needs_closer_look()) } else { Ok(RequestId::Text(text.into())) }
    }
}

struct FastPathToolCall(ToolCallParams);

impl<'de> Deserialize<'de> for FastPathToolCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ToolCallVisitor).map(Self)
    }
}

struct ToolCallVisitor;

impl<'de> Visitor<'de> for ToolCallVisitor {
    type Value = ToolCallParams;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the parameters of a call")
    }

    /// Of members with the same name the last value counts, at the position of the first.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ToolCallParams, A::Error> {
        let (mut tool, mut arguments, mut meta, mut rest) = (None, Value::Null, None, Vec::new());
        while let Some(CowStr(name)) = map.next_key()? {
            match &*name {
                "name" => tool = Some(map.next_value()?),
                "arguments" => arguments = map.next_value()?,
                // serde_json reads `null` as an empty map.
                "_meta" => match map.next_value()? {
                    Value::Object(members) => meta = Some(members),
                    _ => return Err(needs_closer_look()),
                },
                name if PARAMS_OF_ONE_HOP.contains(&name) || rest.len() == MAX_REST => return Err(needs_closer_look()),
                known if let Some(at) = rest.iter().position(|(name, _): &(String, Value)| name == known) => {
                    rest[at].1 = map.next_value()?;
                }
                _ => rest.push((name.into_owned(), map.next_value()?)),
            }
        }
        let tool = tool.ok_or_else(needs_closer_look)?;
        Ok(ToolCallParams { tool, arguments, meta, rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn call(params: &str) -> ToolCallParams {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        match ClientMessage::parse(text.as_bytes()) {
            Ok(ClientMessage::ToolCall { id: RequestId::Number(1), params }) => params,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parses_a_tool_call_into_name_arguments_meta_and_other_parameters() {
        let params = call(
            r#"{"b":1.0,"name":"t\u0041","a":null,"arguments":{"x":[1]},"_meta":{"k":{}},"b":2,"c":{"d":[]},"name":"u"}"#,
        );
        let rest = [("b", json!(2)), ("a", Value::Null), ("c", json!({"d": []}))];
        assert_eq!(
            params,
            ToolCallParams {
                tool: "u".into(),
                arguments: json!({"x": [1]}),
                meta: Some(Map::from_iter([("k".into(), json!({}))])),
                rest: rest.map(|(name, value)| (name.to_owned(), value)).into(),
            }
        );
        let bare = ToolCallParams { tool: "t".into(), arguments: Value::Null, meta: None, rest: Vec::new() };
        assert_eq!(call(r#"{"name":"t"}"#), bare);
        assert_eq!(call(r#"{"name":"t","arguments":7}"#).arguments, 7);
    }

    #[test]
    fn unusual_tool_calls_are_parsed_as_generic_requests_with_all_parameters() {
        let many: String = (0..=MAX_REST).map(|at| format!(r#""m{at}":0,"#)).collect();
        for params in [
            "{}",
            "null",
            r#"{"name":1}"#,
            r#"{"name":"t","_meta":null}"#,
            r#"{"name":"t","_meta":[]}"#,
            r#"{"name":"t","inputResponses":{}}"#,
            r#"{"name":"t","requestState":null}"#,
            r#"{"name":"t","task":{"ttl":1}}"#,
            &format!(r#"{{{many}"name":"t"}}"#),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
            let expected: Option<Map<String, Value>> = serde_json::from_str(params).unwrap();
            match ClientMessage::parse(text.as_bytes()) {
                Ok(ClientMessage::Other(RpcMessage::Request { params, .. })) => {
                    assert_eq!(params, expected.unwrap_or_default(), "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    /// Checks that the one-pass parser agrees with [`RpcMessage::parse`] on every text that it accepts.
    #[track_caller]
    fn check_agreement(text: &str) {
        let thorough = RpcMessage::parse(text.as_bytes());
        if let Some(ClientMessage::Other(message)) = read(text, false) {
            assert_eq!(Ok(&message), thorough.as_ref(), "{text:.200}");
        }
        let parsed = match ClientMessage::parse(text.as_bytes()) {
            Ok(ClientMessage::Other(message)) => Ok(message),
            Ok(ClientMessage::ToolCall { id, params: ToolCallParams { tool, arguments, meta, rest } }) => {
                let mut params = Map::from_iter([("name".to_owned(), Value::from(tool))]);
                params.insert("arguments".into(), arguments);
                params.extend(meta.map(|meta| ("_meta".to_owned(), meta.into())));
                params.extend(rest);
                Ok(RpcMessage::Request { id, method: "tools/call".into(), params })
            }
            Err(malformed) => Err(malformed),
        };
        let thorough = thorough.map(|message| match message {
            RpcMessage::Request { id, method, mut params } if method == "tools/call" => {
                params.entry("arguments").or_insert(Value::Null);
                RpcMessage::Request { id, method, params }
            }
            other => other,
        });
        let parsed = parsed.map(|message| match message {
            RpcMessage::Request { id, method, mut params } if method == "tools/call" => {
                params.entry("arguments").or_insert(Value::Null);
                RpcMessage::Request { id, method, params }
            }
            other => other,
        });
        assert_eq!(parsed, thorough, "{text:.200}");
    }

    #[test]
    fn the_one_pass_parser_agrees_with_the_full_parser() {
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let long = "x".repeat(MAX_ID_BYTES);
        let (deep_enough, too_deep) = (deep(126), deep(127));
        let values = [
            "1",
            "-1",
            "-0",
            "1.5",
            "1e5",
            "1e400",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551615",
            "18446744073709551616",
            "18446744073709551617",
            "0.12345678901234567891",
            "null",
            "true",
            "[]",
            "{}",
            r#""""#,
            r#""2.0""#,
            r#""tools/call""#,
            r#""tools\/call""#,
            r#""\ud800""#,
            r#""\u0024serde_json::private::RawValue""#,
            r#"{"$serde_json::private::RawValue":"1"}"#,
            r#"{"name":"t"}"#,
            r#"{"name":"t","arguments":{"n":18446744073709551617}}"#,
            r#"{"name":"t","arguments":{"n":1.25},"x":1e400}"#,
            r#"{"name":"t","arguments":{"a":1,"a":2},"_meta":{"n":0.12345678901234567891}}"#,
            &format!("\"{long}\""),
            &format!("\"{}\"", &long[..MAX_PLAIN_ID_BYTES]),
            &format!("\"{}\"", "\\u0041".repeat(MAX_ID_BYTES / 6)),
            &format!(r#"{{"a":{deep_enough}}}"#),
            &format!(r#"{{"a":{too_deep}}}"#),
            &format!(r#"{{"name":"t","arguments":{deep_enough}}}"#),
            &format!(r#"{{"name":"t","arguments":{too_deep}}}"#),
            "01",
            "",
        ];
        let message = [("jsonrpc", r#""2.0""#), ("id", "1"), ("method", r#""tools/call""#), ("params", "{}")];
        let text = |members: &[(&str, &str)]| {
            let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            format!("{{{}}}", members.join(","))
        };
        for value in values {
            for at in 0..message.len() {
                let mut changed = message;
                changed[at].1 = value;
                check_agreement(&text(&changed));
                changed.reverse();
                check_agreement(&text(&changed));
                changed[1].1 = r#""m""#;
                check_agreement(&text(&changed));
            }
            for name in ["jsonrpc", "id", "method", "params", "result", "error", "other", "i\\u0064"] {
                check_agreement(&text(&[&message[..], &[(name, value)]].concat()));
                check_agreement(&text(&[&[(name, value)], &message[..3]].concat()));
                check_agreement(&text(&[(name, value)]));
            }
            check_agreement(value);
        }
        let whole = text(&message);
        for broken in [format!(" \n{whole} "), format!("{whole},"), format!("[{whole}]"), format!("\u{feff}{whole}")] {
            check_agreement(&broken);
        }
        for end in 0..whole.len() {
            check_agreement(&whole[..end]);
        }
        check_agreement(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":[{}0]}}}}"#,
            "0,".repeat(1 << 20)
        ));
    }

    #[test]
    fn typical_client_messages_are_parsed_in_one_pass() {
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{"n":0.5}}}"#,
            r#"{"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}},"jsonrpc":"2.0","id":"a"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":null}"#,
        ] {
            assert!(read(text, true).is_some(), "{text}");
        }
    }
}
