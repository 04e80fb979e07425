//! Results of tools: text for the model, and the same as structured content.

use serde::Serialize;
use toolstead_domain::{ToolFailure, ToolResult, error_kind::ErrorKind};

/// Returns a success with a text and structured content.
pub(in crate::builtin) fn answer(
    text: impl Into<String>,
    structured: &impl Serialize,
) -> Result<ToolResult, ToolFailure> {
    let structured = serde_json::to_value(structured).map_err(|error| {
        ToolFailure::new(ErrorKind::Internal, "the result could not be written as JSON").caused_by(error)
    })?;
    Ok(ToolResult::text(text).with_structured_content(structured))
}
