//! Preparation of the messages of a request.

use toolstead_domain::{Block, Message, ToolArguments, ToolResultBlock, ToolUse};

/// Maximum number of images in a request; the newest are sent.
const IMAGES: usize = 10;

/// Replaces all images but the newest [`IMAGES`] by a text, or all of them if the model accepts none. The conversation
/// log keeps them.
pub(super) fn thin_images(messages: &mut [Message], takes_images: bool) {
    let (mut room, why) = match takes_images {
        true => (IMAGES, "[an image that was here is left out: it is old]"),
        false => (0, "[an image that cannot be shown to this model]"),
    };
    let mut thin = |block: &mut Block| match room.checked_sub(1) {
        Some(rest) => room = rest,
        None => *block = Block::text(why),
    };
    for block in messages.iter_mut().rev().flat_map(|message| message.blocks.iter_mut().rev()) {
        match block {
            Block::Image(_) => thin(block),
            Block::ToolResult(result) => {
                result.content.iter_mut().rev().filter(|block| matches!(block, Block::Image(_))).for_each(&mut thin);
            }
            _ => {}
        }
    }
}

/// Returns the conversation with its calls and results as text, for a request without tools: providers refuse calls and
/// results in such a request. Sealed blocks are dropped, since they refer to those calls.
pub(super) fn without_calls(messages: Vec<Message>) -> Vec<Message> {
    let is_call = |block: &Block| matches!(block, Block::ToolUse(_) | Block::ToolResult(_));
    if !messages.iter().flat_map(|message| &message.blocks).any(is_call) {
        return messages;
    }
    let to_text_block = |block: Block| match block {
        Block::ToolUse(call) => vec![Block::text(call_text(&call))],
        Block::ToolResult(result) => result_blocks(result),
        Block::Sealed(_) => Vec::new(),
        other => vec![other],
    };
    let without_calls = messages.into_iter().map(|message| Message {
        role: message.role,
        blocks: message.blocks.into_iter().flat_map(to_text_block).collect(),
    });
    without_calls.filter(|message| !message.blocks.is_empty()).collect()
}

/// Returns a call as text.
pub(super) fn call_text(call: &ToolUse) -> String {
    let arguments = match &call.arguments {
        ToolArguments::Object(object) => serde_json::to_string(object).unwrap_or_default(),
        ToolArguments::Malformed(text) => text.clone(),
    };
    format!("[called `{}` with {arguments}]", call.name)
}

fn result_blocks(result: ToolResultBlock) -> Vec<Block> {
    let verdict = if result.is_error { "failed" } else { "answered" };
    let mut blocks = vec![Block::text(format!("[`{}` {verdict}:]", result.name))];
    blocks.extend(result.content);
    blocks
}

/// Truncates texts of more than `at_most` bytes in their middle, so that one text cannot fill the context window. They
/// remain complete in the log.
pub(super) fn cut_texts(messages: &mut [Message], at_most: usize) {
    let cut = |text: &mut String| {
        if text.len() > at_most {
            *text = cut_middle(text, at_most);
        }
    };
    for block in messages.iter_mut().flat_map(|message| &mut message.blocks) {
        match block {
            Block::Text { text } => cut(text),
            Block::ToolResult(result) => result.content.iter_mut().for_each(|block| {
                if let Block::Text { text } = block {
                    cut(text);
                }
            }),
            _ => {}
        }
    }
}

/// Truncates a text in its middle to at most `at_most` bytes, and adds a note with the number of omitted bytes.
pub(super) fn cut_middle(text: &str, at_most: usize) -> String {
    if text.len() <= at_most {
        return text.to_owned();
    }
    let head = (0..=at_most * 3 / 5).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let tail = (text.len() - at_most * 2 / 5..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    format!("{}\n[... {} bytes are left out here ...]\n{}", &text[..head], tail - head, &text[tail..])
}
