//! HTTP headers of MCP, and the parts of a request that they repeat (MCP 2026-07-28, basic/transports/streamable-http,
//! "Request Metadata").

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName};
use serde_json::{Map, Value};
use std::{borrow::Cow, collections::BTreeSet};

/// Session id of a client up to 2025-11-25.
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Protocol version of the message.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Id of the event after which to resume a broken stream, up to 2025-11-25.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Copy of `method`, since 2026-07-28.
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// Copy of the tool's or prompt's name, the resource's URI or the task's id, encoded, since 2026-07-28.
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Prefix of headers that repeat parameters of a tool, since 2026-07-28.
pub const PARAM_PREFIX: &str = "mcp-param-";
const ANNOTATION: &str = "x-mcp-header";
const SENTINEL_START: &str = "=?base64?";
const SENTINEL_END: &str = "?=";

/// Returns the unencoded text for the header `Mcp-Name`; `None` for methods without this header, and if the parameter
/// that it repeats is absent or not a string.
pub fn mirrored_name<'a>(method: &str, params: &'a Map<String, Value>) -> Option<&'a str> {
    let member = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    params.get(member)?.as_str()
}

/// Encodes a text as the value of a header: unchanged if that is safe, otherwise as base64 between two marks.
pub fn encode_value(text: &str) -> Cow<'_, str> {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && !text.starts_with(' ') && !text.ends_with(' ');
    if plain && !(text.starts_with(SENTINEL_START) && text.ends_with(SENTINEL_END)) {
        return text.into();
    }
    format!("{SENTINEL_START}{}{SENTINEL_END}", BASE64_STANDARD.encode(text)).into()
}

/// Decodes the value of a header.
///
/// # Errors
/// Returns [`InvalidHeader`] if the value is marked as base64 and is not valid base64 of UTF-8.
pub fn decode_value(value: &str) -> Result<Cow<'_, str>, InvalidHeader> {
    let encoded = value.strip_prefix(SENTINEL_START).and_then(|rest| rest.strip_suffix(SENTINEL_END));
    let Some(encoded) = encoded else { return Ok(value.into()) };
    let bytes = BASE64_STANDARD.decode(encoded).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(Cow::Owned).ok_or_else(|| InvalidHeader(format!("`{value}` is not base64 of UTF-8 text")))
}

/// Returns the decoded value of a header that may occur at most once; `None` if it is absent.
///
/// # Errors
/// Returns [`InvalidHeader`] if the header occurs twice, has bytes outside of visible ASCII, or cannot be decoded.
pub fn text_of<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<Cow<'a, str>>, InvalidHeader> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(InvalidHeader(format!("the header `{name}` occurs twice")));
    }
    let text = value.to_str().map_err(|_| InvalidHeader(format!("the header `{name}` is not visible ASCII")))?;
    decode_value(text).map(Some)
}

/// Error for a header that cannot be read or contradicts the body, with the reason. Its JSON-RPC error code is -32020.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidHeader(pub String);

/// Parameters of one tool that are repeated in headers (`x-mcp-header` in the tool's input schema).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParamHeaders(Vec<ParamHeader>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ParamHeader {
    /// `mcp-param-…`.
    name: HeaderName,
    /// Names of the members from the arguments to the value.
    path: Vec<String>,
}

/// Error for a schema with invalid `x-mcp-header` annotations. Its tool is not offered over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its `x-mcp-header` {0}")]
pub struct InvalidHeaderAnnotation(String);

impl ParamHeaders {
    /// Reads the annotations of an input schema.
    ///
    /// # Errors
    /// Returns [`InvalidHeaderAnnotation`] for a name that is not a valid header token or occurs twice (ignoring case), for a
    /// parameter that is not a string, integer or boolean, and for an annotation outside a chain of `properties`.
    pub fn of_schema(schema: &Value) -> Result<Self, InvalidHeaderAnnotation> {
        let mut headers = Vec::new();
        if let Value::Object(schema) = schema {
            collect(schema, Some(&mut Vec::new()), &mut headers)?;
        }
        let mut names = BTreeSet::new();
        match headers.iter().find(|header| !names.insert(header.name.as_str())) {
            Some(twice) => Err(InvalidHeaderAnnotation(format!("`{}` occurs twice", twice.token()))),
            None => Ok(Self(headers)),
        }
    }

    /// Returns `true` if no parameter is repeated in a header.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns each header's name with the unencoded text of its argument. `None` if the header must be absent, because
    /// the argument is absent, null, an array or an object.
    pub fn texts<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
    ) -> impl Iterator<Item = (&'a HeaderName, Option<Cow<'a, str>>)> {
        self.0.iter().map(|header| (&header.name, header.value(arguments).and_then(text_of_value)))
    }

    /// Checks that a request's headers match its arguments.
    ///
    /// # Errors
    /// Returns [`InvalidHeader`] for the first header that does not match.
    pub fn check(&self, headers: &HeaderMap, arguments: &Map<String, Value>) -> Result<(), InvalidHeader> {
        for header in &self.0 {
            let said = text_of(headers, &header.name)?;
            let value = header.value(arguments);
            let matches = match (&said, value.and_then(text_of_value)) {
                (None, None) => true,
                // Numbers are compared by value: `42.0` equals 42.
                (Some(said), Some(text)) => {
                    *said == text || (value.is_some_and(Value::is_number) && same_number(said, &text))
                }
                (Some(_), None) | (None, Some(_)) => false,
            };
            if !matches {
                let path = header.path.join(".");
                return Err(InvalidHeader(format!("the header `{}` does not match `arguments.{path}`", header.name)));
            }
        }
        Ok(())
    }
}

impl ParamHeader {
    fn value<'a>(&self, arguments: &'a Map<String, Value>) -> Option<&'a Value> {
        let (first, rest) = self.path.split_first()?;
        rest.iter().try_fold(arguments.get(first)?, |value, member| value.get(member))
    }

    fn token(&self) -> &str {
        self.name.as_str().trim_start_matches(PARAM_PREFIX)
    }
}

/// Collects the annotations of a schema. `path` is the path to it, or `None` if it leads through anything but
/// `properties`. The JSON parser limits the depth.
fn collect(
    schema: &Map<String, Value>,
    mut path: Option<&mut Vec<String>>,
    headers: &mut Vec<ParamHeader>,
) -> Result<(), InvalidHeaderAnnotation> {
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            (ANNOTATION, _) => {
                let Some(path) = path.as_deref().filter(|path| !path.is_empty()) else {
                    return Err(InvalidHeaderAnnotation("is outside the chain of `properties` from the root".into()));
                };
                headers.push(read_annotation(schema, value, path)?);
            }
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    let Value::Object(property) = property else { continue };
                    if let Some(path) = path.as_deref_mut() {
                        path.push(name.clone());
                    }
                    collect(property, path.as_deref_mut(), headers)?;
                    if let Some(path) = path.as_deref_mut() {
                        path.pop();
                    }
                }
            }
            // Maps from names to schemas.
            ("$defs" | "definitions" | "dependentSchemas" | "patternProperties", Value::Object(schemas)) => {
                for schema in schemas.values() {
                    collect_off_the_chain(schema, headers)?;
                }
            }
            // These keywords contain values, not schemas.
            ("default" | "const" | "enum" | "examples", _) => {}
            _ => collect_off_the_chain(value, headers)?,
        }
    }
    Ok(())
}

fn collect_off_the_chain(value: &Value, headers: &mut Vec<ParamHeader>) -> Result<(), InvalidHeaderAnnotation> {
    match value {
        Value::Object(schema) => collect(schema, None, headers),
        Value::Array(schemas) => schemas.iter().try_for_each(|schema| collect_off_the_chain(schema, headers)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn read_annotation(
    schema: &Map<String, Value>,
    value: &Value,
    path: &[String],
) -> Result<ParamHeader, InvalidHeaderAnnotation> {
    let at = path.join(".");
    let Some(token) = value.as_str().filter(|token| !token.is_empty()) else {
        return Err(InvalidHeaderAnnotation(format!("of `{at}` is not a string, or is empty")));
    };
    let name = HeaderName::from_bytes(format!("{PARAM_PREFIX}{token}").as_bytes());
    let Ok(name) = name else {
        return Err(InvalidHeaderAnnotation(format!("of `{at}` is not a token: {token:?}")));
    };
    if !is_mirrored_type(schema.get("type")) {
        return Err(InvalidHeaderAnnotation(format!(
            "of `{at}` is on a parameter that is not of type string, integer or boolean"
        )));
    }
    Ok(ParamHeader { name, path: path.to_vec() })
}

fn is_mirrored_type(kind: Option<&Value>) -> bool {
    let single = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    match kind {
        // A parameter may also be null; its header is then left out.
        Some(Value::Array(kinds)) => {
            kinds.iter().any(single) && kinds.iter().all(|kind| single(kind) || kind == "null")
        }
        Some(kind) => single(kind),
        None => false,
    }
}

fn text_of_value(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Bool(truth) => Some(truth.to_string().into()),
        Value::Number(number) => Some(match number.as_f64() {
            // `42.0` is an integer in JSON Schema and is written as one.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 => {
                format!("{float:.0}").into()
            }
            _ => number.to_string().into(),
        }),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn same_number(one: &str, other: &str) -> bool {
    matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(one), Ok(other)) if one == other)
        && one.parse::<i128>().ok().zip(other.parse().ok()).is_none_or(|(one, other)| one == other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn mirrored(schema: Value, arguments: Value) -> Vec<(String, Option<String>)> {
        let headers = ParamHeaders::of_schema(&schema).unwrap();
        let arguments = map(arguments);
        headers.texts(&arguments).map(|(name, text)| (name.to_string(), text.map(Cow::into_owned))).collect()
    }

    #[test]
    fn values_that_a_header_cannot_carry_are_encoded_in_base64() {
        for plain in ["us-west1", "a b c", "", "=?base64?", "~!\"'"] {
            assert_eq!(encode_value(plain), plain);
        }
        for (text, value) in [
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!((encode_value(text).as_ref(), decode_value(value).unwrap().as_ref()), (value, text));
        }
        for bad in ["=?base64?%?=", "=?base64?/w==?="] {
            assert!(decode_value(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn annotated_scalar_properties_are_mirrored_in_headers() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "flag": {"type": ["boolean", "null"], "x-mcp-header": "Flag"},
            "x-mcp-header": {"type": "number", "default": {"x-mcp-header": "no annotation"}},
        }});
        let texts = mirrored(schema.clone(), json!({"region": " a", "deep": {"n": 42.0}, "flag": true}));
        let some = |name: &str, text: &str| (name.to_owned(), Some(text.to_owned()));
        assert_eq!(texts, [some("mcp-param-region", " a"), some("mcp-param-n", "42"), some("mcp-param-flag", "true")]);
        let texts = mirrored(schema, json!({"region": {}, "deep": 1, "flag": null}));
        assert!(texts.iter().all(|(_, text)| text.is_none()), "{texts:?}");
    }

    #[test]
    fn a_bad_annotation_is_an_error() {
        let on =
            |annotation: Value, kind: Value| json!({"properties": {"a": {"type": kind, "x-mcp-header": annotation}}});
        let mut bad = vec![
            json!({"x-mcp-header": "Root"}),
            json!({"properties": {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}}),
            json!({"anyOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]}),
            json!({"$defs": {"d": {"type": "string", "x-mcp-header": "A"}}}),
            json!({"properties": {
                "a": {"type": "string", "x-mcp-header": "F"},
                "b": {"type": "string", "x-mcp-header": "f"},
            }}),
        ];
        bad.extend(["", " ", "a b", "a:b", "ä", "a\t1", "a\r\nb"].map(|token| on(token.into(), "string".into())));
        bad.extend(["object", "array", "null", "number"].map(|kind| on("A".into(), kind.into())));
        bad.push(on(7.into(), "string".into()));
        bad.push(on("A".into(), json!(["string", "number"])));
        for schema in bad {
            assert!(ParamHeaders::of_schema(&schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn rejects_parameter_headers_that_differ_from_the_arguments() {
        let schema = json!({"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}});
        let params = ParamHeaders::of_schema(&schema).unwrap();
        let check = |values: &[&str], arguments: Value| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("mcp-param-n", HeaderValue::from_str(value).unwrap());
            }
            params.check(&headers, &map(arguments)).is_ok()
        };
        assert!(
            check(&["42"], json!({"n": 42})) && check(&["42.0"], json!({"n": 42})) && check(&[], json!({"n": null}))
        );
        assert!(check(&["9007199254740993"], json!({"n": 9_007_199_254_740_993_i64})));
        assert!(!check(&["9007199254740992"], json!({"n": 9_007_199_254_740_993_i64})));
        assert!(!check(&["41"], json!({"n": 42})) && !check(&[], json!({"n": 42})) && !check(&["42"], json!({})));
        assert!(!check(&["42", "42"], json!({"n": 42})));
    }

    proptest! {
        #[test]
        fn every_text_survives_encoding_and_decoding_as_a_header_value(text in ".*") {
            let encoded = encode_value(&text);
            prop_assert!(HeaderValue::from_str(&encoded).is_ok());
            prop_assert_eq!(decode_value(&encoded).unwrap(), text.as_str());
        }
    }
}
