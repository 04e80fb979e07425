//! Answers of a model that are too long for one event of a conversation: they were paid for, so they are stored as outputs.

use std::cmp::Reverse;
use toolstead_domain::{Block, CallId, OutputHandle, OutputStore, Principal, ToolArguments};
use uuid::Uuid;

/// Maximum size of the blocks of one answer in its conversation, as JSON, in bytes. A store takes at least 16 MiB with
/// what surrounds them.
const MAX_BYTES: usize = 12 << 20;
/// Length of the beginning that remains of a text, in bytes.
const BEGINNING: usize = 64 << 10;

/// Replaces the longest parts of an answer by their beginnings and the handles of their stored texts, until it fits
/// into an event. Sealed blocks that are too long are dropped. An answer that fits is unchanged.
pub(super) async fn fitted(mut blocks: Vec<Block>, outputs: &dyn OutputStore, principal: &Principal) -> Vec<Block> {
    if blocks.iter().map(bytes_as_json).sum::<usize>() <= MAX_BYTES {
        return blocks;
    }
    // Sealed blocks cannot be cut. One that alone is too long is dropped, as providers do without it.
    blocks.retain(|block| !matches!(block, Block::Sealed(_)) || bytes_as_json(block) <= MAX_BYTES / 2);
    // Each block is measured and shortened once: an answer may have thousands.
    let mut by_size: Vec<(usize, usize)> =
        blocks.iter().enumerate().map(|(at, block)| (bytes_as_json(block), at)).collect();
    let mut left: usize = by_size.iter().map(|(size, _)| size).sum();
    by_size.sort_unstable_by_key(|(size, _)| Reverse(*size));
    for (size, at) in by_size {
        if left <= MAX_BYTES {
            break;
        }
        if is_divisible(&blocks[at]) {
            shorten(&mut blocks[at], outputs, principal).await;
            left = (left - size) + bytes_as_json(&blocks[at]);
        }
    }
    blocks
}

/// Returns `true` for a block that becomes shorter when its beginning alone remains.
fn is_divisible(block: &Block) -> bool {
    match block {
        Block::Text { text } => text.len() > 2 * BEGINNING,
        Block::ToolUse(call) => bytes_of(&call.arguments) > 2 * BEGINNING,
        _ => false,
    }
}

async fn shorten(block: &mut Block, outputs: &dyn OutputStore, principal: &Principal) {
    match block {
        Block::Text { text } => *text = shortened("the answer", text, "text/plain", outputs, principal).await,
        Block::ToolUse(call) => {
            let (text, media_type) = match &call.arguments {
                ToolArguments::Object(object) => {
                    (serde_json::to_string(object).unwrap_or_default(), "application/json")
                }
                ToolArguments::Malformed(text) => (text.clone(), "text/plain"),
            };
            let text = shortened("the text of the arguments", &text, media_type, outputs, principal).await;
            call.arguments = ToolArguments::Malformed(text);
        }
        _ => {}
    }
}

async fn shortened(
    what: &str,
    text: &str,
    media_type: &str,
    outputs: &dyn OutputStore,
    principal: &Principal,
) -> String {
    let beginning = &text[..text.floor_char_boundary(BEGINNING)];
    let stored = outputs.store(principal, CallId(Uuid::now_v7()), media_type, text.as_bytes()).await;
    let place = match stored.map(|stored| stored.handle) {
        Ok(handle) => reference(handle),
        Err(error) => {
            let error: &(dyn std::error::Error + 'static) = &error;
            tracing::warn!(error, "a long answer of a model could not be stored");
            "the rest could not be stored".to_owned()
        }
    };
    format!("{beginning}\n[{what} has {} bytes, too many for a conversation: {place}]", text.len())
}

fn reference(handle: OutputHandle) -> String {
    format!("all of it is the stored output `{handle}`")
}

fn bytes_as_json(block: &Block) -> usize {
    match block {
        Block::Text { text } => escaped(text),
        Block::ToolUse(call) => {
            bytes_of(&call.arguments) + call.sealed.as_ref().map_or(0, |sealed| escaped(&sealed.raw))
        }
        Block::Sealed(sealed) => escaped(&sealed.raw) + sealed.shown.as_deref().map_or(0, escaped),
        Block::Image(image) => image.data.len(),
        _ => 0,
    }
}

fn bytes_of(arguments: &ToolArguments) -> usize {
    match arguments {
        ToolArguments::Object(object) => serde_json::to_string(object).map_or(0, |text| text.len()),
        ToolArguments::Malformed(text) => escaped(text),
    }
}

/// Returns the length of a text as a JSON string.
fn escaped(text: &str) -> usize {
    let more = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
        0..=0x1f => 5,
        _ => 0,
    };
    2 + text.len() + text.bytes().map(more).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Read;
    use toolstead_domain::{SealedBlock, ToolUse, testing::in_memory_output_store::InMemoryOutputStore};

    fn call(arguments: ToolArguments) -> Block {
        Block::ToolUse(ToolUse { id: "c".into(), name: "write_file".into(), arguments, sealed: None })
    }

    async fn stored(outputs: &InMemoryOutputStore, number: u64) -> String {
        let handle = format!("o{number}").parse().unwrap();
        let mut content = outputs.open(&Principal::local(), handle).await.unwrap().unwrap();
        let mut text = String::new();
        content.read_to_string(&mut text).unwrap();
        text
    }

    #[tokio::test]
    async fn an_answer_that_fits_is_unchanged() {
        let blocks = vec![Block::text("x".repeat(MAX_BYTES - 100)), call(ToolArguments::Malformed("{".into()))];
        let outputs = InMemoryOutputStore::new();
        assert_eq!(fitted(blocks.clone(), &outputs, &Principal::local()).await, blocks);
    }

    #[tokio::test]
    async fn the_whole_of_an_answer_that_is_too_long_is_stored_under_a_handle() {
        let long = "\u{1}ä".repeat(3 << 20);
        let written = json!({"path": "a", "content": "y".repeat(14 << 20)});
        let arguments = ToolArguments::Object(written.as_object().unwrap().clone());
        let raw = "z".repeat(7 << 20);
        let sealed = Block::Sealed(SealedBlock { provider: "anthropic".into(), raw, shown: None });
        let outputs = InMemoryOutputStore::new();
        let blocks = vec![sealed, Block::text("before"), Block::text(long.clone()), call(arguments)];
        let fitted = fitted(blocks, &outputs, &Principal::local()).await;
        assert!(fitted.iter().map(bytes_as_json).sum::<usize>() < MAX_BYTES);
        let [Block::Text { text: before }, Block::Text { text }, Block::ToolUse(call)] = &fitted[..] else {
            panic!("{} blocks", fitted.len())
        };
        assert_eq!(before, "before");
        assert!(text.starts_with("\u{1}ä") && text.ends_with("all of it is the stored output `o1`]"));
        let ToolArguments::Malformed(arguments) = &call.arguments else { panic!("no call is made of a part") };
        assert!(arguments.ends_with("too many for a conversation: all of it is the stored output `o2`]"));
        let written = written.to_string();
        assert!(stored(&outputs, 1).await == long && stored(&outputs, 2).await == written);
    }

    #[tokio::test]
    async fn a_sealed_block_of_an_answer_that_fits_remains() {
        let sealed = Block::Sealed(SealedBlock { provider: "p".into(), raw: "z".repeat(7 << 20), shown: None });
        let blocks = vec![sealed, Block::text("after")];
        assert_eq!(fitted(blocks.clone(), &InMemoryOutputStore::new(), &Principal::local()).await, blocks);
    }

    #[tokio::test]
    async fn each_part_is_stored_once_even_if_the_beginnings_together_are_too_long() {
        let arguments = |number: usize| format!("{number}{}", "\u{1}".repeat(2 * BEGINNING));
        let blocks = (0..40).map(|number| call(ToolArguments::Malformed(arguments(number)))).collect();
        let outputs = InMemoryOutputStore::new();
        let fitted = fitted(blocks, &outputs, &Principal::local()).await;
        assert_eq!(fitted.len(), 40);
        assert!(stored(&outputs, 40).await.len() > 2 * BEGINNING);
        assert!(outputs.open(&Principal::local(), "o41".parse().unwrap()).await.unwrap().is_none());
    }
}
