//! What a result says beside its content: `_meta`, members that nobody here knows, and such members of its blocks.

use super::{block_text, keeper::Keeper, length, media};
use serde_json::{Map, Value, json};
use toolstead_domain::tool_result::ToolResult;

/// Names of types and media types up to this length are part of the content.
const SHORT: usize = 128;
/// Stands in place of the address of a resource that is too long.
const LEFT_OUT: &str = "toolstead:left-out";

/// How many characters that are.
pub(super) fn characters(result: &ToolResult) -> usize {
    let rest = result.rest().map(|(name, value)| name.len() + length(value)).sum::<usize>();
    rest + result.content().iter().filter(|block| is_known(block)).map(beside).sum::<usize>()
}

/// Keeps all of it under one handle and takes it off, if it is over the budget. Returns what is to be said of it.
pub(super) async fn bound(result: &mut ToolResult, budget: usize, keeper: &mut Keeper<'_>) -> Option<String> {
    let characters = characters(result);
    if characters <= budget {
        return None;
    }
    let mut rest = result.take_rest();
    let mut stripped = Vec::new();
    let mut addresses = budget;
    for (at, block) in result.content_mut().into_iter().flatten().enumerate().filter(|(_, block)| is_known(block)) {
        let off = strip(block, &mut addresses);
        if !off.is_empty() {
            stripped.push(json!({"block": at, "beside": off}));
        }
    }
    if !stripped.is_empty() {
        rest.insert("content".into(), stripped.into());
    }
    let kept = keeper.keep_json("rest", &rest.into()).await;
    Some(format!(
        "[{characters} characters that the result says beside its content are left out here; {}]",
        kept.told()
    ))
}

/// Whether a block has a content that is bounded by itself. Others are texts where they are long.
fn is_known(block: &Value) -> bool {
    block_text(block).is_some() || media::data(block).is_some()
}

/// Characters of a block beside its content and what says which content it is.
fn beside(block: &Value) -> usize {
    let members = block.as_object().into_iter().flatten();
    members
        .map(|(name, value)| match (name.as_str(), value) {
            ("resource", Value::Object(_)) => beside(value),
            (name, value) if belongs(name, value) => 0,
            (name, value) => name.len() + length(value),
        })
        .sum()
}

fn belongs(name: &str, value: &Value) -> bool {
    let is_short = |most: usize| value.as_str().is_some_and(|text| text.len() <= most);
    match name {
        "text" | "data" | "blob" => value.is_string(),
        "type" | "mimeType" => is_short(SHORT),
        _ => false,
    }
}

/// Takes off what stands beside the content, and returns it. Addresses stay as long as there is room for them.
fn strip(block: &mut Value, addresses: &mut usize) -> Map<String, Value> {
    let mut off = Map::new();
    let Some(members) = block.as_object_mut() else { return off };
    for (name, mut value) in std::mem::take(members) {
        match (name.as_str(), &mut value) {
            ("resource", Value::Object(_)) => {
                let inner = strip(&mut value, addresses);
                if !inner.is_empty() {
                    off.insert(name.clone(), inner.into());
                }
                members.insert(name, value);
            }
            // Clients refuse a resource without an address.
            ("uri", Value::String(address)) => match addresses.checked_sub(address.len()) {
                Some(left) => {
                    *addresses = left;
                    members.insert(name, value);
                }
                None => {
                    members.insert(name.clone(), LEFT_OUT.into());
                    off.insert(name, value);
                }
            },
            (known, known_value) if belongs(known, known_value) => {
                members.insert(name, value);
            }
            _ => {
                off.insert(name, value);
            }
        }
    }
    off
}
