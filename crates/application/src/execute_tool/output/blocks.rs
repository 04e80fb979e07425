//! Limit of the number of blocks of a result.

use super::overflow_writer::OverflowStorage;
use serde_json::Value;
use toolstead_domain::tool_result::text_block;

/// Maximum number of blocks of a result.
pub(super) const MAX_BLOCKS: usize = 256;

/// Joins adjacent plain texts if there are too many blocks. The blocks that still exceed the limit are stored under a
/// handle.
pub(super) async fn bound(blocks: &mut Vec<Value>, keeper: &mut OverflowStorage<'_>) {
    if blocks.len() <= MAX_BLOCKS {
        return;
    }
    let mut fewer: Vec<Value> = Vec::new();
    // Text of the adjacent plain texts so far.
    let mut joined: Option<String> = None;
    for block in std::mem::take(blocks) {
        match (plain_text(&block), &mut joined) {
            (Some(text), Some(joined)) => {
                joined.push('\n');
                joined.push_str(text);
            }
            (Some(text), None) => joined = Some(text.to_owned()),
            (None, _) => {
                fewer.extend(joined.take().map(text_block));
                fewer.push(block);
            }
        }
    }
    fewer.extend(joined.map(text_block));
    if fewer.len() > MAX_BLOCKS {
        let over = fewer.split_off(MAX_BLOCKS - 1);
        let count = over.len();
        let kept = keeper.store_json("blocks", &over.into()).await;
        fewer.push(text_block(format!(
            "[{count} more blocks are left out here, as one JSON array; {}]",
            kept.describe()
        )));
    }
    *blocks = fewer;
}

/// Returns the text of a block without other members.
pub(super) fn plain_text(block: &Value) -> Option<&str> {
    let members = block.as_object()?;
    let is_plain = members.keys().all(|name| matches!(name.as_str(), "type" | "text"));
    let text = members.get("text")?.as_str()?;
    (is_plain && members.get("type")? == "text").then_some(text)
}
