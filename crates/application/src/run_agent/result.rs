//! The result of a call in the form that the model receives.

use crate::execute_tool::ExecuteToolError;
use serde_json::Value;
use toolstead_domain::{
    Block, CallOutcome, Image, SuggestionFormatter, Timestamp, ToolFailure, ToolResult, ToolResultBlock, ToolUse,
    conversation::record, error_kind::ErrorKind, json_depth::is_deeper_than, suggestion::SUGGESTION,
    tool_result::NO_OUTPUT,
};

/// Maximum number of images of one result that the model receives.
const IMAGES: usize = 20;
/// Maximum size of one image that the model receives, as base64, in bytes.
const IMAGE_BYTES: usize = 5 << 20;
/// Maximum size of all images of one result, in bytes: they are stored in one event of the conversation.
const ALL_IMAGES_BYTES: usize = 8 << 20;
/// Maximum size of the text of one result that the model receives, in bytes. The call path limits most results to much
/// less.
const TEXT_BYTES: usize = 1 << 20;
/// Maximum number of blocks of one result that the model receives.
const BLOCKS: usize = 200;
/// Maximum size of a result in its record, as JSON, in bytes.
const RECORD_BYTES: usize = 2 << 20;
/// Maximum nesting depth of a result in its record. An event with a deeper value could not be parsed again.
const RECORD_LEVELS: usize = 100;
/// Media types that every model with image input accepts.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Returns the result of a call, or its error as an MCP result.
pub(super) fn of_outcome(
    outcome: Result<CallOutcome, ExecuteToolError>,
    suggestions: &dyn SuggestionFormatter,
) -> ToolResult {
    let error = match outcome {
        Ok(CallOutcome::Done(result)) => return result,
        Ok(CallOutcome::InputRequired(_)) => {
            let message = "The tool asks for something that cannot be answered here.";
            return ToolResult::error(ErrorKind::MissingCapability, message);
        }
        Err(error) => error,
    };
    let kind = error.kind();
    match error {
        ExecuteToolError::NotCallable(failure)
        | ExecuteToolError::Refused(failure)
        | ExecuteToolError::Failed(failure) => failure.into_result_for_users(suggestions),
        error @ (ExecuteToolError::Cancelled(_) | ExecuteToolError::Closed | ExecuteToolError::AuditFailure { .. }) => {
            ToolFailure::new(kind, error.to_string()).into_result()
        }
    }
}

/// Returns the suggestion for the user in a result of Toolstead. The model does not receive it.
pub(super) fn suggestion_in(result: &ToolResult) -> Option<String> {
    result.as_object().get("_meta")?.get(SUGGESTION)?.as_str().map(str::to_owned)
}

/// Returns the result of a call without consuming its outcome.
pub(super) fn native_result(
    outcome: &Result<CallOutcome, ExecuteToolError>,
    suggestions: &dyn SuggestionFormatter,
) -> ToolResult {
    match outcome {
        Ok(CallOutcome::Done(result)) => result.clone(),
        Ok(CallOutcome::InputRequired(questions)) => {
            of_outcome(Ok(CallOutcome::InputRequired(questions.clone())), suggestions)
        }
        Err(
            ExecuteToolError::NotCallable(failure)
            | ExecuteToolError::Refused(failure)
            | ExecuteToolError::Failed(failure),
        ) => {
            let error = ToolResult::error(failure.kind, failure.text());
            let mut result = match &failure.partial {
                Some(partial) => (**partial).clone().followed_by(error),
                None => error,
            };
            if let Some(suggestion) = failure.formatted_suggestion(suggestions) {
                result.insert_meta(SUGGESTION, suggestion.into());
            }
            result
        }
        Err(error) => ToolFailure::new(error.kind(), error.to_string()).into_result(),
    }
}

/// Returns the part of a result that the model receives.
pub(super) fn for_model(call: &ToolUse, result: &ToolResult) -> ToolResultBlock {
    let mut room = RemainingSize { text: TEXT_BYTES, images: IMAGES, image_bytes: ALL_IMAGES_BYTES };
    let blocks = result.content();
    let mut content: Vec<Block> = blocks.iter().take(BLOCKS).filter_map(|block| room.block(block)).collect();
    if let Some(more) = blocks.len().checked_sub(BLOCKS).filter(|more| *more > 0) {
        content.push(Block::text(format!("[{more} more blocks are left out]")));
    }
    if content.is_empty() {
        let structured = result.structured_content().map(Value::to_string);
        content.extend(room.text(structured.as_deref().unwrap_or(NO_OUTPUT)));
    }
    ToolResultBlock { id: call.id.clone(), name: call.name.clone(), content, is_error: result.is_error() }
}

/// Returns the record of a result for programs. If it is too large or too deeply nested to be stored, its structured
/// content is omitted.
pub(super) fn for_programs(tool: &str, result: &ToolResult, at: Timestamp) -> Value {
    let mut record = record::of_result(tool, result, at);
    let fits = |value: &Value| {
        !is_deeper_than(value, RECORD_LEVELS)
            && serde_json::to_string(value).is_ok_and(|json| json.len() <= RECORD_BYTES)
    };
    if !fits(&record)
        && let Value::Object(members) = &mut record
    {
        members.shift_remove("metadata");
        members.insert("metadataLeftOut".into(), true.into());
        if members.get("error").is_some_and(|error| !fits(error)) {
            members.insert("error".into(), "[too large to be stored]".into());
        }
    }
    record
}

/// Returns the texts of a block for people.
pub(super) fn text_of(result: &ToolResultBlock) -> String {
    let texts: Vec<&str> = result
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

/// Remaining limits for one result.
struct RemainingSize {
    text: usize,
    images: usize,
    image_bytes: usize,
}

impl RemainingSize {
    fn block(&mut self, block: &Value) -> Option<Block> {
        let member = |name: &str| block.get(name).and_then(Value::as_str);
        match member("type") {
            Some("text") => self.text(member("text")?),
            Some("image") => self.image(member("mimeType").unwrap_or(""), member("data").unwrap_or("")),
            Some("resource_link") => {
                let name = member("title").or(member("name")).unwrap_or("a resource");
                let description = member("description").map(|text| format!(": {text}")).unwrap_or_default();
                self.text(&format!("[link to {name} <{}>{description}]", member("uri").unwrap_or("")))
            }
            Some("resource") => {
                let resource = block.get("resource");
                let part = |name: &str| resource.and_then(|resource| resource.get(name)).and_then(Value::as_str);
                let (uri, kind) = (part("uri").unwrap_or(""), part("mimeType").unwrap_or("an unknown type"));
                match (part("text"), part("blob")) {
                    (Some(text), _) => self.text(&format!("[resource <{uri}>]\n{text}")),
                    (None, Some(blob)) if IMAGE_TYPES.contains(&kind) => self.image(kind, blob),
                    (None, blob) => self.text(&format!(
                        "[resource <{uri}> of {kind}, {} bytes, which cannot be shown]",
                        blob.map_or(0, |blob| blob.len() / 4 * 3)
                    )),
                }
            }
            Some("audio") => {
                let kind = member("mimeType").unwrap_or("audio");
                self.text(&format!("[sound of {kind}, which cannot be played here]"))
            }
            kind => self.text(&format!("[content of the kind `{}`, which cannot be shown]", kind.unwrap_or("?"))),
        }
    }

    /// Takes the text from the limit, and returns as much of it as the limit allows; `None` if nothing is left.
    fn text(&mut self, text: &str) -> Option<Block> {
        if text.len() <= self.text {
            self.text -= text.len();
            return Some(Block::text(text));
        }
        if self.text == 0 {
            return None;
        }
        let end = (0..=self.text).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        self.text = 0;
        Some(Block::text(format!("{}\n[{} bytes more are left out]", &text[..end], text.len() - end)))
    }

    fn image(&mut self, media_type: &str, data: &str) -> Option<Block> {
        let is_base64 = |sign: u8| sign.is_ascii_alphanumeric() || matches!(sign, b'+' | b'/' | b'=');
        let problem = if !IMAGE_TYPES.contains(&media_type) {
            "of a kind that cannot be shown"
        } else if !data.bytes().all(is_base64) {
            // Escaped as JSON it could be six times as long, which exceeds the limit of an event.
            "which is not in base64"
        } else if data.len() > IMAGE_BYTES {
            "too large to be shown"
        } else if self.images == 0 || data.len() > self.image_bytes {
            "one too many to be shown"
        } else {
            self.images -= 1;
            self.image_bytes -= data.len();
            return Some(Block::Image(Image { media_type: media_type.to_owned(), data: data.into() }));
        };
        let kind: String = media_type.chars().take(64).collect();
        self.text(&format!("[image of {kind}, {problem}]"))
    }
}
