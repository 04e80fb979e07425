//! Members of a result beside its content: `_meta`, unknown members, and such members of its blocks.

use super::{block_text, length, media, overflow_writer::OverflowStorage};
use serde_json::{Map, Value, json};
use toolstead_domain::ToolResult;

/// Maximum length in bytes at which types and media types count as content.
const SHORT: usize = 128;
/// Placeholder for the address of a resource that is too long.
const LEFT_OUT: &str = "toolstead:left-out";

/// Returns the number of characters of a result's members beside its content, and of such members of its blocks.
pub(super) fn characters(result: &ToolResult) -> usize {
    let rest = result.rest().map(|(name, value)| name.len() + length(value)).sum::<usize>();
    rest + result.content().iter().filter(|block| is_known(block)).map(extra_length).sum::<usize>()
}

/// Stores the members beside the content under one handle and removes them if they exceed the budget in characters.
/// Returns the notice about it; `None` if they fit.
pub(super) async fn bound(result: &mut ToolResult, budget: usize, keeper: &mut OverflowStorage<'_>) -> Option<String> {
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
    let kept = keeper.store_json("rest", &rest.into()).await;
    Some(format!(
        "[{characters} characters that the result has beside its content are left out here; {}]",
        kept.describe()
    ))
}

/// Returns `true` if the block has content with limits of its own. Other blocks count as text.
fn is_known(block: &Value) -> bool {
    block_text(block).is_some() || media::data(block).is_some()
}

/// Returns the number of characters of a block without its content and its type.
fn extra_length(block: &Value) -> usize {
    let content = BlockPayloadLocation::of(block);
    let of = |object: &Value, content: Option<&str>| {
        let members = object.as_object().into_iter().flatten();
        let beside = members.filter(|(name, value)| !belongs(name, value, content));
        beside.map(|(name, value)| name.len() + length(value)).sum::<usize>()
    };
    match block.get("resource") {
        Some(resource @ Value::Object(_)) => {
            let whole = "resource".len() + length(resource);
            of(block, content.top()) - whole + of(resource, content.inner())
        }
        _ => of(block, content.top()),
    }
}

/// Member of a block that is its content and has limits of its own: in the block itself, or in its embedded resource.
#[derive(Clone, Copy)]
struct BlockPayloadLocation {
    member: &'static str,
    is_inner: bool,
}

impl BlockPayloadLocation {
    /// Finds the member in the same way as [`block_text`] and [`media::data`].
    fn of(block: &Value) -> Self {
        let (top, inner) = if block_text(block).is_some() { ("text", "text") } else { ("data", "blob") };
        match block.get(top) {
            Some(_) => Self { member: top, is_inner: false },
            None => Self { member: inner, is_inner: true },
        }
    }

    fn top(self) -> Option<&'static str> {
        (!self.is_inner).then_some(self.member)
    }

    fn inner(self) -> Option<&'static str> {
        self.is_inner.then_some(self.member)
    }
}

fn belongs(name: &str, value: &Value, content: Option<&str>) -> bool {
    match name {
        "type" | "mimeType" => value.as_str().is_some_and(|text| text.len() <= SHORT),
        name => content == Some(name),
    }
}

/// Removes and returns the members beside the content. `addresses` is the number of bytes left for addresses, which
/// stay in the block; further ones are replaced by a placeholder.
fn strip(block: &mut Value, addresses: &mut usize) -> Map<String, Value> {
    let content = BlockPayloadLocation::of(block);
    let mut resource = block.get_mut("resource").filter(|resource| resource.is_object()).map(Value::take);
    let inner = resource.as_mut().map(|resource| strip_object(resource, content.inner(), addresses));
    let mut off = strip_object(block, content.top(), addresses);
    if let (Some(resource), Some(inner)) = (resource, inner) {
        off.shift_remove("resource");
        block["resource"] = resource;
        if !inner.is_empty() {
            off.insert("resource".into(), inner.into());
        }
    }
    off
}

fn strip_object(object: &mut Value, content: Option<&str>, addresses: &mut usize) -> Map<String, Value> {
    let mut off = Map::new();
    let Some(members) = object.as_object_mut() else { return off };
    for (name, value) in std::mem::take(members) {
        match (name.as_str(), &value) {
            // Clients reject a resource without an address.
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
            (known, value_of) if belongs(known, value_of, content) => {
                members.insert(name, value);
            }
            _ => {
                off.insert(name, value);
            }
        }
    }
    off
}
