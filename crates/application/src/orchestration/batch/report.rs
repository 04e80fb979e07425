//! The result of a batch: one block of text and one structured entry for each call, in the order of the calls.

use serde_json::{Map, Value, json};
use toolstead_domain::{ToolFailure, ToolResult, error_kind::ErrorKind, tool_result::text_block};

/// One call and its result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BatchItem {
    index: usize,
    tool_name: String,
    result: ToolResult,
}

impl BatchItem {
    pub(super) fn new(index: usize, tool_name: &str, outcome: Result<ToolResult, ToolFailure>) -> Self {
        let tool_name = tool_name.chars().take(128).collect();
        Self { index, tool_name, result: outcome.unwrap_or_else(ToolFailure::into_result) }
    }

    pub(super) fn is_error(&self) -> bool {
        self.result.is_error()
    }

    fn error_kind(&self) -> Option<&'static str> {
        self.is_error().then(|| self.result.error_kind().unwrap_or(ErrorKind::ExecutionFailed).as_str())
    }

    /// Returns the text of the result below a heading, followed by the blocks of the result without text.
    fn blocks(&self) -> Vec<Value> {
        let failed = self.error_kind().map_or_else(String::new, |kind| format!(" failed ({kind})"));
        let text = format!("[{}] {}{failed}\n{}", self.index, self.tool_name, self.result.joined_text());
        let others = self.result.content().iter().filter(|block| block.get("text").is_none());
        std::iter::once(text_block(text)).chain(others.cloned()).collect()
    }

    fn row(&self) -> Map<String, Value> {
        let mut row = Map::new();
        row.insert("index".into(), self.index.into());
        row.insert("tool_name".into(), self.tool_name.as_str().into());
        row.insert("is_error".into(), self.is_error().into());
        if let Some(kind) = self.error_kind() {
            row.insert("error_kind".into(), kind.into());
        }
        row.insert("text".into(), self.result.joined_text().into());
        row
    }
}

/// Builds the result of the batch, which is an error if any call failed. The structured results of calls are included
/// as far as the limit of characters allows; their texts have the same content.
pub(super) fn report(items: &[BatchItem], characters: usize) -> ToolResult {
    let failures = items.iter().filter(|item| item.is_error()).count();
    let blocks = items.iter().flat_map(BatchItem::blocks).collect();
    let mut rows: Vec<Map<String, Value>> = items.iter().map(BatchItem::row).collect();
    let used = rows.iter().map(length).fold(100, usize::saturating_add);
    let mut left = characters.saturating_sub(used);
    for (row, item) in rows.iter_mut().zip(items) {
        let Some(structured) = item.result.structured_content() else { continue };
        let needed = length(structured).saturating_add("\"structured\":,".len());
        if let Some(rest) = left.checked_sub(needed) {
            left = rest;
            row.insert("structured".into(), structured.clone());
        }
    }
    let count = items.len();
    let content = json!({"results": rows, "success_count": count - failures, "failure_count": failures});
    let result = ToolResult::of_blocks(blocks).with_structured_content(content);
    match failures {
        0 => result,
        _ => result.followed_by(ToolResult::error(
            ErrorKind::ExecutionFailed,
            format!("{failures} of {count} calls failed or were not run."),
        )),
    }
}

/// Returns an upper bound of the number of characters as compact JSON.
fn length(value: &impl serde::Serialize) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |text| text.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_lists_each_call_as_text_and_data_and_is_an_error_if_any_call_failed() {
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let items = [
            BatchItem::new(0, "one", Ok(ToolResult::json(json!({"n": 1})).with_block(image.clone()))),
            BatchItem::new(1, "two", Err(ToolFailure::new(ErrorKind::Io, "the disk is gone"))),
        ];
        let result = report(&items, 30_000);
        let texts = result.content().iter().filter_map(|block| block.get("text")?.as_str()).collect::<Vec<_>>();
        assert_eq!(
            texts,
            [
                "[0] one\n{\n  \"n\": 1\n}",
                "[1] two failed (io)\nthe disk is gone",
                "1 of 2 calls failed or were not run."
            ]
        );
        assert_eq!((&result.content()[1], result.is_error()), (&image, true));
        let rows = json!({
            "results": [
                {"index": 0, "tool_name": "one", "is_error": false, "text": "{\n  \"n\": 1\n}", "structured": {"n": 1}},
                {"index": 1, "tool_name": "two", "is_error": true, "error_kind": "io", "text": "the disk is gone"},
            ],
            "success_count": 1, "failure_count": 1,
        });
        assert_eq!(result.structured_content(), Some(&rows));
        // Without space for both forms, only the text has the content.
        let small = report(&items, 250);
        assert_eq!(small.structured_content().unwrap()["results"][0].get("structured"), None);
        assert!(!report(&[BatchItem::new(0, "one", Ok(ToolResult::text("x")))], 100).is_error());
    }
}
