//! Limits for the blocks of a result without text: images, audio, binary resources, links and unknown blocks.

use super::{block_text, is_longer, length, overflow_writer::OverflowStorage};
use crate::execute_tool::output_budget::ResultSizeLimits;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use toolstead_domain::tool_result::text_block;

/// Maximum number of blocks that are stored one by one. More are stored together.
const MAX_KEPT_BLOCKS: usize = 16;

/// Stores binary blocks over the budget under handles, and replaces each by a text that names the handle. Other blocks
/// without text become texts if they are long, and are cut as such.
pub(super) async fn bound(blocks: &mut Vec<Value>, budget: ResultSizeLimits, keeper: &mut OverflowStorage<'_>) {
    let mut left = budget.media_bytes;
    let mut large = Vec::new();
    // A model receives the links in addition to the texts.
    let texts: usize = blocks.iter().filter_map(block_text).map(|text| text.chars().count()).sum();
    let mut links = budget.characters.saturating_sub(texts);
    for (at, block) in blocks.iter_mut().enumerate() {
        if block_text(block).is_some() {
            continue;
        }
        if let Some(data) = data(block) {
            match left.checked_sub(data.len()) {
                Some(rest) => left = rest,
                None => large.push(at),
            }
        } else if is_longer(block, links) {
            *block = text_block(block.to_string());
            links = 0;
        } else {
            links = links.saturating_sub(length(block));
        }
    }
    if large.len() > MAX_KEPT_BLOCKS {
        let all: Vec<Value> = large.iter().map(|at| blocks[*at].take()).collect();
        let kept = keeper.store_json("blocks", &Value::Array(all)).await;
        let notice = format!(
            "[{} blocks of binary data are left out here, as one JSON array; {}]",
            large.len(),
            kept.describe()
        );
        blocks[large[0]] = text_block(notice);
        blocks.retain(|block| !block.is_null());
        return;
    }
    for at in large {
        let (kind, media_type) = kind(&blocks[at]);
        let Some(data) = data(&blocks[at]) else { continue };
        let (media_type, content) = match STANDARD.decode(data) {
            Ok(content) => (media_type, content),
            // The data is not valid base64, so it is stored as received.
            Err(_) => ("text/plain".to_owned(), data.as_bytes().to_vec()),
        };
        let kept = keeper.store(&kind, &media_type, &content).await;
        let notice =
            format!("[the {kind} ({media_type}, {} bytes) is left out here: {}]", content.len(), kept.describe());
        blocks[at] = text_block(notice);
    }
}

/// Returns the base64 data of an image, audio or binary resource.
pub(super) fn data(block: &Value) -> Option<&str> {
    block.get("data").or_else(|| block.get("resource")?.get("blob"))?.as_str()
}

/// Returns the type and the media type of a block as declared, shortened and limited to printable ASCII.
fn kind(block: &Value) -> (String, String) {
    let short = |value: Option<&Value>, default: &str| {
        let text: String = value.and_then(Value::as_str).unwrap_or(default).chars().take(100).collect();
        text.chars().filter(|character| character.is_ascii_graphic()).collect::<String>()
    };
    let holder = block.get("resource").unwrap_or(block);
    (short(block.get("type"), "block"), short(holder.get("mimeType"), "application/octet-stream"))
}
