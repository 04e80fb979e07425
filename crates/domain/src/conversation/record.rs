//! The result of a call for programs.

use crate::{ports::clock::Timestamp, tool_result::ToolResult};
use serde_json::{Map, Value};

/// Returns the record of a result: kodelet's `StructuredToolResult`, an object of `toolName`, `success`, `error` if it
/// failed, `metadataType` and `metadata` if the result has structured content, and `timestamp`. It also has `outputs`
/// if more of the result is stored, from the `_meta` of the result.
///
/// `tool` is the name of the tool, or the name that was called if there is no such tool. It is also the `metadataType`,
/// because the output schema of that tool describes the structured content. Readers of a record must preserve unknown
/// members.
pub fn of_result(tool: &str, result: &ToolResult, at: Timestamp) -> Value {
    let mut record = Map::new();
    record.insert("toolName".into(), tool.into());
    record.insert("success".into(), (!result.is_error()).into());
    if result.is_error() {
        record.insert("error".into(), result.joined_text().into());
    }
    if let Some(structured) = result.structured_content() {
        record.insert("metadataType".into(), tool.into());
        record.insert("metadata".into(), structured.clone());
    }
    record.insert("timestamp".into(), at.to_string().into());
    if let Some(outputs) = result.as_object().get("_meta").and_then(|meta| meta.get("toolstead/outputs")) {
        record.insert("outputs".into(), outputs.clone());
    }
    record.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{error_kind::ErrorKind, testing::samples::START};
    use serde_json::json;

    #[test]
    fn a_record_says_how_a_call_ended_and_keeps_its_structured_content() {
        let at = "2025-09-01T00:00:00.000Z";
        let structured = json!({"path": "a", "unknown": [1.5, null]});
        for (result, expected) in [
            (ToolResult::text("x"), json!({"toolName": "look", "success": true, "timestamp": at})),
            (
                ToolResult::json(structured.clone()),
                json!({"toolName": "look", "success": true, "metadataType": "look", "metadata": structured, "timestamp": at}),
            ),
            (
                ToolResult::error(ErrorKind::NotFound, "gone").with_structured_content(structured.clone()),
                json!({
                    "toolName": "look", "success": false, "error": "gone", "metadataType": "look", "metadata": structured,
                    "timestamp": at,
                }),
            ),
        ] {
            assert_eq!(of_result("look", &result, START).to_string(), expected.to_string());
        }
        let mut cut = ToolResult::text("x");
        cut.insert_meta("toolstead/outputs", json!([{"of": "text", "handle": "o17"}]));
        assert_eq!(of_result("look", &cut, START)["outputs"][0]["handle"], "o17");
    }
}
