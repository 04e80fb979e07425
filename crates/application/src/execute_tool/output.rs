//! What a model gets of a result: at most a budget of characters, and never in silence less than there was.

use super::{CallSettings, ExecuteToolCommand, ExecuteToolPorts};
use crate::tool_registry::Registered;
use serde_json::Value;
use toolstead_domain::{
    ports::{output_store::StoredOutput, tool_provider::CallOutcome},
    tool_call::ToolCall,
    tool_result::ToolResult,
};

/// Cuts text that is over the budget in its middle, says how much is missing, and keeps the whole under a handle where
/// outputs are kept.
pub(super) async fn bound(
    outcome: CallOutcome,
    registered: &Registered,
    call: &ToolCall,
    command: &ExecuteToolCommand,
    ports: &ExecuteToolPorts,
    settings: &CallSettings,
) -> CallOutcome {
    let mut result = match outcome {
        CallOutcome::Done(result) => result,
        waiting @ CallOutcome::InputRequired(_) => return waiting,
    };
    check_structured_content(registered, &result);
    let budget = settings.output_characters;
    // Bytes are never fewer than characters, so the usual result needs no counting.
    let text_bytes: usize = result.content().iter().filter_map(block_text).map(str::len).sum();
    if text_bytes > budget {
        let characters: usize = result.content().iter().filter_map(block_text).map(|text| text.chars().count()).sum();
        if characters > budget {
            let text = result.joined_text();
            let stored = ports.outputs.store(&command.principal, call.id, "text/plain", text.as_bytes()).await.ok();
            cut(&mut result, budget, characters, stored.as_ref());
        }
    }
    CallOutcome::Done(result)
}

/// The text of a block, also that of an embedded resource.
fn block_text(block: &Value) -> Option<&str> {
    block.get("text").or_else(|| block.get("resource")?.get("text"))?.as_str()
}

fn block_text_mut(block: &mut Value) -> Option<&mut String> {
    let holder = if block.get("resource").is_some() { block.get_mut("resource")? } else { block };
    match holder.get_mut("text")? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Keeps text until the budget is used up. The block that crosses it keeps three fifths of what is left from its
/// beginning and two from its end; text blocks after it go, and the notice stands once.
fn cut(result: &mut ToolResult, budget: usize, characters: usize, stored: Option<&StoredOutput>) {
    let kept = match stored {
        Some(output) => format!("the whole is kept as `{}` ({} bytes)", output.handle, output.bytes),
        None => "the rest is not kept: ask for less at a time".to_owned(),
    };
    let notice = format!("[… {} of {characters} characters are left out here; {kept} …]", characters - budget);
    let Some(blocks) = result.content_mut() else { return };
    let mut left = budget;
    let mut told = false;
    blocks.retain_mut(|block| {
        let Some(text) = block_text_mut(block) else { return true };
        let length = text.chars().count();
        if length <= left {
            left -= length;
            return !told;
        }
        if std::mem::replace(&mut told, true) {
            return false;
        }
        let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
        let (head, tail) = (at(left * 3 / 5), at(length - left * 2 / 5));
        *text = format!("{}\n\n{notice}\n\n{}", &text[..head], &text[tail..]);
        left = 0;
        true
    });
}

/// A tool that breaks its own promise is reported to the operator; the result goes on as it came (MCP 2025-11-25,
/// server/tools, "Output Schema": clients should validate).
fn check_structured_content(registered: &Registered, result: &ToolResult) {
    if result.is_error() {
        return;
    }
    let Some(schema) = registered.output_schema() else { return };
    let fault = match result.structured_content() {
        Some(content) => schema.validate(content).err().map(|error| error.to_string()),
        None => Some("there is no structured content".to_owned()),
    };
    if let Some(fault) = fault {
        tracing::warn!(tool = %registered.tool.name(), fault, "the result does not fit the tool's own output schema");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_falls_on_characters_and_says_what_is_missing() {
        let mut result = ToolResult::text("ä".repeat(1000));
        cut(&mut result, 100, 1000, None);
        let text = result.joined_text();
        assert!(text.starts_with(&"ä".repeat(60)) && text.ends_with(&"ä".repeat(40)), "{text}");
        assert!(text.contains("[… 900 of 1000 characters are left out here;"), "{text}");
    }

    #[test]
    fn many_small_blocks_and_resources_are_bounded_too() {
        let mut blocks = vec![serde_json::json!({"type": "text", "text": "x"}); 31_000];
        blocks.push(serde_json::json!({"type": "resource", "resource": {"uri": "a:b", "text": "y".repeat(5000)}}));
        let mut result = ToolResult::of_blocks(blocks);
        cut(&mut result, 30_000, 36_000, None);
        let written = Value::Object(result.as_object().clone()).to_string();
        assert_eq!(result.content().len(), 30_001);
        assert_eq!(written.matches("6000 of 36000 characters").count(), 1);
    }
}
