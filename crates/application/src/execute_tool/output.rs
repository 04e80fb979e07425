//! The size limits of results. The caller receives at most a budget, and every cut is marked.
//!
//! A client shows a model either the content blocks or the structured content, so each of the two views has the whole
//! budget of characters. The other members, which are for programs, have the same budget. Binary content has a budget
//! of bytes, and the number of blocks is limited.

mod blocks;
mod cut;
mod extra_members;
mod media;
pub(super) mod overflow_writer;
mod structured;

use super::{error::ExecuteToolError, output_budget::ResultSizeLimits};
use crate::tool_registry::{SharedRegisteredTool, output_readers::OutputReaders};
use cut::JoinedText;
use overflow_writer::{OverflowStorage, StorageOutcome};
use serde_json::Value;
use toolstead_domain::{
    ArgumentValidationError, CallOutcome, SchemaValidator, ToolFailure, ToolInputSchema, ToolResult, UpstreamError,
    error_kind::ErrorKind, json_memory::has_too_many_values, tool_result::text_block,
};

/// Key in a result's `_meta` that lists the stored outputs: `[{"of": "text", "handle": "o17", …}]`.
const OUTPUTS: &str = "toolstead/outputs";

/// Returns `true` if the outcome is known to pass unchanged: a short result of plain texts of a tool without an output
/// schema, or an error without partial output.
pub(super) fn fits(
    registered: &SharedRegisteredTool,
    outcome: &Result<CallOutcome, ExecuteToolError>,
    budget: ResultSizeLimits,
) -> bool {
    match outcome {
        Ok(CallOutcome::Done(result)) => {
            (result.is_error() || registered.output_schema().is_none())
                && (budget == ResultSizeLimits::WHOLE || has_short_texts_alone(result, budget.characters))
        }
        Ok(CallOutcome::InputRequired(_)) => true,
        Err(ExecuteToolError::Failed(failure)) => failure.partial.is_none(),
        Err(_) => true,
    }
}

/// Returns `true` if the result has only plain texts and structured content, each within this number of characters.
fn has_short_texts_alone(result: &ToolResult, characters: usize) -> bool {
    // A text has at least as many bytes as characters.
    if let Some(text) = result.only_text() {
        return text.len() <= characters;
    }
    let blocks = result.content();
    let mut left = characters.saturating_add(1);
    result.rest().next().is_none()
        && result.structured_content().is_none_or(|content| !is_longer(content, characters))
        && blocks.len() <= blocks::MAX_BLOCKS
        && blocks.iter().all(|block| match blocks::plain_text(block).map(|text| left.checked_sub(text.len() + 1)) {
            Some(Some(rest)) => {
                left = rest;
                true
            }
            Some(None) | None => false,
        })
}

/// Bounds the outcome of a call, after a check of structured content against the tool's output schema. Content over the
/// budget is stored under a handle, which the notice at the cut names.
pub(super) async fn bound(
    outcome: Result<CallOutcome, ExecuteToolError>,
    registered: &SharedRegisteredTool,
    budget: ResultSizeLimits,
    mut keeper: OverflowStorage<'_>,
    schemas: &dyn SchemaValidator,
) -> Result<CallOutcome, ExecuteToolError> {
    match outcome {
        Ok(CallOutcome::Done(result)) => {
            let result = check_structured_content(registered, result)?;
            if budget == ResultSizeLimits::WHOLE {
                return Ok(CallOutcome::Done(result));
            }
            let schema = if result.is_error() { None } else { registered.output_schema() };
            let promised = schema.map(|schema| OutputSchema { schema, schemas });
            Ok(CallOutcome::Done(bounded(result, promised, budget, &mut keeper).await))
        }
        Err(ExecuteToolError::Failed(mut failure)) => {
            if let Some(partial) = failure.partial.take() {
                let left = budget.less(&failure.text());
                failure.partial = Some(Box::new(bounded(*partial, None, left, &mut keeper).await));
            }
            Err(ExecuteToolError::Failed(failure))
        }
        other => other,
    }
}

/// Output schema of a tool, and the validator for content that is too costly to validate in this process.
#[derive(Clone, Copy)]
struct OutputSchema<'a> {
    schema: &'a ToolInputSchema,
    schemas: &'a dyn SchemaValidator,
}

/// Truncates the message of a failure to the budget, and removes its data and bounds its upstream error if they are
/// larger. What is cut off is not stored, because it is not the output of a tool.
pub(super) fn bound_message(error: ExecuteToolError, budget: usize) -> ExecuteToolError {
    let cut = |mut failure: ToolFailure| {
        cut_message(&mut failure.message, budget);
        if is_longer(&failure.data, budget) {
            failure.data = Value::Null;
        }
        if let Some(error) = &mut failure.upstream {
            bound_upstream(error, budget);
        }
        failure
    };
    match error {
        ExecuteToolError::NotCallable(failure) => ExecuteToolError::NotCallable(cut(failure)),
        ExecuteToolError::Refused(failure) => ExecuteToolError::Refused(cut(failure)),
        ExecuteToolError::Failed(failure) => ExecuteToolError::Failed(cut(failure)),
        other => other,
    }
}

fn cut_message(message: &mut String, budget: usize) {
    if let Some((at, _)) = message.char_indices().nth(budget) {
        let missing = message[at..].chars().count();
        message.truncate(at);
        message.push_str(&format!("\n[… {missing} more characters are left out and not stored …]\n"));
    }
}

/// Bounds the error of an upstream server. Its data are retained whole or omitted, because a part would have another
/// meaning.
fn bound_upstream(error: &mut UpstreamError, budget: usize) {
    cut_message(&mut error.message, budget);
    if error.data.as_ref().is_some_and(|data| is_longer(data, budget)) {
        error.data = None;
        error.message.push_str(" [the error's data are too long and left out]");
    }
}

async fn bounded(
    mut result: ToolResult,
    promised: Option<OutputSchema<'_>>,
    budget: ResultSizeLimits,
    keeper: &mut OverflowStorage<'_>,
) -> ToolResult {
    let notice = extra_members::bound(&mut result, budget.characters, keeper).await;
    let left = notice.as_ref().map_or(budget, |notice| budget.less(notice));
    if let Some(blocks) = result.content_mut() {
        media::bound(blocks, left, keeper).await;
        blocks::bound(blocks, keeper).await;
        result.update_output_blocks();
    }
    let mut result = within_views(result, promised, left.characters, keeper).await;
    if let Some(notice) = notice {
        result = result.with_block(text_block(notice));
    }
    let kept = keeper.take_list();
    if !kept.is_empty() {
        result.insert_meta(OUTPUTS, kept.into());
    }
    result
}

/// Bounds the texts of the blocks and the structured content to the budget each: a model may receive either of them.
async fn within_views(
    mut result: ToolResult,
    promised: Option<OutputSchema<'_>>,
    budget: usize,
    keeper: &mut OverflowStorage<'_>,
) -> ToolResult {
    let has_large_structure = result.structured_content().is_some_and(|content| is_longer(content, budget));
    // A text has at least as many bytes as characters, so a usual result needs no counting.
    let bytes: usize = result.content().iter().filter_map(block_text).map(|text| text.len() + 1).sum();
    if !has_large_structure && bytes <= budget + 1 {
        return result;
    }
    let readers = keeper.readers();
    let whole = JoinedText::of(result.content());
    let is_long = whole.characters() > budget;
    let mut kept_text = if is_long { Some(keeper.store_text(whole.text()).await) } else { None };
    let structured = if has_large_structure { result.take_structured_content() } else { None };
    let Some(content) = structured else {
        cut(&mut result, &whole, budget, kept_text, readers);
        return result;
    };
    // Data that are present both as text and as structured content are stored once.
    let kept = match &kept_text {
        Some(kept) if is_json_of(whole.text(), &content) => kept.clone(),
        _ => keeper.store_json("structuredContent", &content).await,
    };
    let short = match promised {
        Some(promised) => Some(structured::shortened(&content, promised, budget).await),
        None => None,
    };
    let notice = match &short {
        None => structured::left_out(&kept, readers),
        Some(Some(_)) => structured::shortened_notice(&kept, readers),
        Some(None) => structured::unfit(&kept, readers),
    };
    let left = budget.saturating_sub(notice.chars().count() + 1);
    if kept_text.is_none() && whole.characters() > left {
        kept_text = Some(keeper.store_text(whole.text()).await);
    }
    cut(&mut result, &whole, left, kept_text, readers);
    match short {
        // Unless the result is an error, a validating client would reject it without valid structured content.
        Some(None) => result.followed_by(ToolResult::error(ErrorKind::TooLarge, notice)),
        Some(Some(short)) => result.with_structured_content(short).with_block(text_block(notice)),
        None => result.with_block(text_block(notice)),
    }
}

/// Returns `true` if the text is JSON of this value.
fn is_json_of(text: &str, value: &Value) -> bool {
    !has_too_many_values(text.as_bytes()) && serde_json::from_str(text).is_ok_and(|said: Value| said == *value)
}

/// Returns `true` if the result is within the budget.
pub(super) fn is_within(result: &ToolResult, budget: ResultSizeLimits) -> bool {
    let shown = result.content().iter().map(|block| match (block_text(block), media::data(block)) {
        (Some(text), _) => text.chars().count(),
        (None, Some(_)) => 0,
        (None, None) => length(block),
    });
    let media = result.content().iter().filter_map(media::data).map(str::len);
    shown.sum::<usize>() <= budget.characters
        && media.sum::<usize>() <= budget.media_bytes
        && result.content().len() <= blocks::MAX_BLOCKS
        && extra_members::characters(result) <= budget.characters
        && result.structured_content().is_none_or(|content| !is_longer(content, budget.characters))
}

/// Cuts the text of the blocks to the budget. Does nothing if the text was not stored, because it fits then.
fn cut(
    result: &mut ToolResult,
    whole: &JoinedText,
    budget: usize,
    kept: Option<StorageOutcome>,
    readers: &OutputReaders,
) {
    if let (Some(kept), Some(blocks)) = (kept, result.content_mut()) {
        whole.cut(blocks, budget, &kept, readers);
        result.update_output_blocks();
    }
}

/// Returns the text of a block or of its embedded resource.
fn block_text(block: &Value) -> Option<&str> {
    block.get("text").or_else(|| block.get("resource")?.get("text"))?.as_str()
}

fn block_text_mut(block: &mut Value) -> Option<&mut String> {
    let holder = if block.get("text").is_some() { block } else { block.get_mut("resource")? };
    match holder.get_mut("text")? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Returns `true` if the value has more than this number of characters as compact JSON.
fn is_longer(value: &Value, characters: usize) -> bool {
    struct CharacterLimitWriter(usize);
    impl std::io::Write for CharacterLimitWriter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            // Counts the bytes of UTF-8 that begin a character.
            let characters = bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
            self.0 = self.0.checked_sub(characters).ok_or(std::io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(CharacterLimitWriter(characters), value).is_err()
}

/// Returns the number of characters of the value as compact JSON.
fn length(value: &Value) -> usize {
    struct CharacterCounter(usize);
    impl std::io::Write for CharacterCounter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = CharacterCounter(0);
    // Serializing JSON values never fails, and the writer accepts every byte.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// Checks structured content against the tool's output schema. If the provider owns its schemas, a mismatch is a fault
/// of the tool, and the result is withheld. A mismatch of an MCP server is logged for the operator, and the result is
/// returned as received (MCP 2025-11-25, server/tools, "Output Schema": clients should validate).
fn check_structured_content(
    registered: &SharedRegisteredTool,
    result: ToolResult,
) -> Result<ToolResult, ExecuteToolError> {
    let Some(fault) = schema_mismatch(registered, &result) else { return Ok(result) };
    let name = registered.tool.name();
    tracing::warn!(tool = %name, fault, "the result does not fit the tool's own output schema");
    if !registered.provider.owns_schemas() {
        return Ok(result);
    }
    let message = format!("The tool `{name}` ran, and its result does not fit its own output schema:\n{fault}\n");
    let failure = ToolFailure::new(ErrorKind::Internal, message)
        .next("This is a fault of the tool: tell the user, and do not rely on what it answered.");
    Err(ExecuteToolError::Failed(failure))
}

fn schema_mismatch(registered: &SharedRegisteredTool, result: &ToolResult) -> Option<String> {
    if result.is_error() {
        return None;
    }
    let schema = registered.output_schema()?;
    match result.structured_content() {
        Some(content) => match schema.validate(content) {
            // A log line does not justify a costly validation.
            Ok(()) | Err(ArgumentValidationError::Unbounded(_)) => None,
            Err(ArgumentValidationError::Invalid(invalid)) => Some(invalid.to_string()),
        },
        None => Some("there is no structured content".to_owned()),
    }
}

#[cfg(test)]
mod tests;
