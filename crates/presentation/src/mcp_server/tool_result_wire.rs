//! Result of a call in the form of each protocol generation.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};
use toolstead_domain::{ProtocolGeneration, TextBlockRef, ToolResult, error_kind::ErrorKind, tool_result::text_block};
use toolstead_infrastructure::mcp::wire::message::RESULT_BYTES;

/// The key in `_meta` under which a result with `isError` names the kind of its error
/// ([`ErrorKind::as_str`]). Without it the kind is [`ErrorKind::ExecutionFailed`].
pub(super) const ERROR_KIND: &str = "toolstead/errorKind";

/// Serializes a `CallToolResult` for a generation: newer clients receive `resultType`; older ones do not, and receive
/// `structuredContent` other than an object as text only.
#[derive(Debug)]
pub(super) struct ToolResultWire<'a> {
    members: ResultTextOrObject<'a>,
    generation: ProtocolGeneration,
}

#[derive(Debug)]
enum ResultTextOrObject<'a> {
    OnlyText(&'a str),
    Object(&'a Map<String, Value>),
}

impl<'a> ToolResultWire<'a> {
    pub(super) fn new(result: &'a ToolResult, generation: ProtocolGeneration) -> Self {
        match result.only_text() {
            Some(text) => Self { members: ResultTextOrObject::OnlyText(text), generation },
            None => Self::of_object(result.as_object(), generation),
        }
    }

    pub(super) fn of_object(object: &'a Map<String, Value>, generation: ProtocolGeneration) -> Self {
        Self { members: ResultTextOrObject::Object(object), generation }
    }

    /// Returns the length of its texts in bytes, and some more for the rest.
    pub(super) fn estimated_bytes(&self) -> usize {
        let object = match self.members {
            ResultTextOrObject::OnlyText(text) => return RESULT_BYTES + text.len(),
            ResultTextOrObject::Object(object) => object,
        };
        let blocks = object.get("content").and_then(Value::as_array).into_iter().flatten();
        let texts = blocks.filter_map(|block| block.get("text")?.as_str());
        RESULT_BYTES + texts.map(str::len).sum::<usize>()
    }
}

impl Serialize for ToolResultWire<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.generation == ProtocolGeneration::Modern {
            map.serialize_entry("resultType", "complete")?;
        }
        let object = match self.members {
            ResultTextOrObject::Object(object) => object,
            ResultTextOrObject::OnlyText(text) => {
                map.serialize_entry("content", &[TextBlockRef::new(text)])?;
                return map.end();
            }
        };
        let in_text = self.only_in_text(object);
        for (name, value) in object {
            let passes = match (name.as_str(), self.generation) {
                ("resultType", _) => false,
                // Revisions before 2026-07-28 allow only objects, and their clients would reject the whole result
                // otherwise. A text block has the same content.
                ("structuredContent", ProtocolGeneration::Legacy) => value.is_object(),
                ("content", ProtocolGeneration::Legacy) => in_text.is_none(),
                _ => true,
            };
            if passes {
                map.serialize_entry(name, value)?;
            }
        }
        if let Some(structured) = in_text {
            map.serialize_entry("content", &[text_block(structured.to_string())])?;
        }
        map.end()
    }
}

impl ToolResultWire<'_> {
    /// Returns the structured content that this client does not accept, if no content block repeats it.
    fn only_in_text<'o>(&self, object: &'o Map<String, Value>) -> Option<&'o Value> {
        let structured = object.get("structuredContent").filter(|content| !content.is_object())?;
        let says_nothing = object.get("content").and_then(Value::as_array).is_none_or(Vec::is_empty);
        (self.generation == ProtocolGeneration::Legacy && says_nothing).then_some(structured)
    }
}

/// The key in `_meta` with the number of the error in the client's dialect.
const ERROR_NUMBER: &str = "toolstead/errorNumber";

/// Adds the kind of the error to the result's `_meta`, and its number if it has one.
pub(super) fn with_error_kind(result: ToolResult, kind: ErrorKind, number: Option<i64>) -> Map<String, Value> {
    let mut object = result.into_object();
    let mut named = Map::new();
    named.insert(ERROR_KIND.into(), kind.as_str().into());
    named.extend(number.map(|number| (ERROR_NUMBER.to_owned(), number.into())));
    match object.get_mut("_meta") {
        Some(Value::Object(meta)) => meta.extend(named),
        _ => drop(object.insert("_meta".into(), named.into())),
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(result: Value, legacy: Value, modern: Value) {
        let result = ToolResult::from_upstream(result).unwrap();
        for (generation, expected) in [(ProtocolGeneration::Legacy, legacy), (ProtocolGeneration::Modern, modern)] {
            let wire = serde_json::to_string(&ToolResultWire::new(&result, generation)).unwrap();
            assert_eq!(wire, expected.to_string());
        }
    }

    #[test]
    fn tool_results_are_unchanged_except_for_generation_specific_members() {
        check(
            json!({"x": {"y": 1.0}, "content": [{"type": "video"}], "structuredContent": {"a": 1}, "_meta": {"k": null}}),
            json!({"x": {"y": 1.0}, "content": [{"type": "video"}], "structuredContent": {"a": 1}, "_meta": {"k": null}}),
            json!({"resultType": "complete", "x": {"y": 1.0}, "content": [{"type": "video"}],
                "structuredContent": {"a": 1}, "_meta": {"k": null}}),
        );
        check(
            json!({"content": [{"type": "text", "text": "[1]"}], "structuredContent": [1], "resultType": "complete"}),
            json!({"content": [{"type": "text", "text": "[1]"}]}),
            json!({"resultType": "complete", "content": [{"type": "text", "text": "[1]"}], "structuredContent": [1]}),
        );
        check(
            json!({"content": [], "structuredContent": [1], "x": 2}),
            json!({"x": 2, "content": [{"type": "text", "text": "[1]"}]}),
            json!({"resultType": "complete", "content": [], "structuredContent": [1], "x": 2}),
        );
        check(
            json!({"x": 1, "content": []}),
            json!({"x": 1, "content": []}),
            json!({"resultType": "complete", "x": 1, "content": []}),
        );
    }
}
