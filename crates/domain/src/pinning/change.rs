//! Classes of changes to a definition.

use super::{
    item::{ItemKind, fingerprinted},
    schema_shape::{ShapeWidthChange, compare},
};
use serde_json::Value;
use std::collections::BTreeSet;

/// Class of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemChangeKind {
    /// Title, description, icons or texts of schemas.
    Text,
    /// The schema of the arguments accepts less.
    SchemaNarrowed,
    /// The schema of the arguments accepts or offers more.
    SchemaWidened,
    /// The schema of the structured content.
    Output,
    /// The hints describe the tool as more dangerous.
    HintsWeakened,
    /// The item is new.
    Added,
    /// The server does not offer the item any more.
    Removed,
    /// The server is started or reached in another way.
    Launch,
}

impl ItemChangeKind {
    /// Returns the class for users.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::SchemaNarrowed => "schema narrowed",
            Self::SchemaWidened => "schema widened",
            Self::Output => "output schema",
            Self::HintsWeakened => "hints weakened",
            Self::Added => "new",
            Self::Removed => "removed",
            Self::Launch => "launch",
        }
    }

    /// Returns `true` if a pinned tool with such a change requires approval at its next call.
    pub fn requires_approval(self) -> bool {
        match self {
            Self::SchemaWidened | Self::HintsWeakened | Self::Added => true,
            Self::Text | Self::SchemaNarrowed | Self::Output | Self::Removed | Self::Launch => false,
        }
    }
}

/// Returns the classes of the change from one definition of an item to another; empty if both have the same
/// fingerprint.
///
/// ```
/// use serde_json::json;
/// use toolstead_domain::pinning::{change::{ItemChangeKind, classify}, item::ItemKind};
///
/// let (old, new) = (json!({"description": "a"}), json!({"description": "b"}));
/// assert_eq!(classify(ItemKind::Tool, Some(&old), Some(&new)), [ItemChangeKind::Text].into());
/// ```
pub fn classify(kind: ItemKind, old: Option<&Value>, new: Option<&Value>) -> BTreeSet<ItemChangeKind> {
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        (None, Some(_)) => return [ItemChangeKind::Added].into(),
        (Some(_), None) => return [ItemChangeKind::Removed].into(),
        (None, None) => return BTreeSet::new(),
    };
    let (before, after) = (fingerprinted(kind, old), fingerprinted(kind, new));
    let mut classes = BTreeSet::new();
    if before == after {
        return classes;
    }
    match kind {
        ItemKind::Launch => return [ItemChangeKind::Launch].into(),
        ItemKind::Tool => {}
        ItemKind::Instructions | ItemKind::Prompt | ItemKind::Resource | ItemKind::Template => {
            return [ItemChangeKind::Text].into();
        }
    }
    let ShapeWidthChange { is_wider, is_narrower } = compare(before.get("inputSchema"), after.get("inputSchema"));
    if is_wider {
        classes.insert(ItemChangeKind::SchemaWidened);
    }
    if is_narrower {
        classes.insert(ItemChangeKind::SchemaNarrowed);
    }
    if before.get("outputSchema").is_some() != after.get("outputSchema").is_some()
        || compare(before.get("outputSchema"), after.get("outputSchema")) != ShapeWidthChange::default()
    {
        classes.insert(ItemChangeKind::Output);
    }
    if has_weaker_hints(before.get("annotations"), after.get("annotations")) {
        classes.insert(ItemChangeKind::HintsWeakened);
    }
    if classes.is_empty() || has_other_texts(&before, &after) {
        classes.insert(ItemChangeKind::Text);
    }
    classes
}

fn has_other_texts(before: &Value, after: &Value) -> bool {
    ["title", "description", "icons"].iter().any(|name| before.get(name) != after.get(name))
}

/// Returns `true` if a hint that promised safety no longer does. Absent hints have the defaults of MCP.
fn has_weaker_hints(before: Option<&Value>, after: Option<&Value>) -> bool {
    let hint = |hints: Option<&Value>, name: &str, default: bool| {
        hints.and_then(|hints| hints.get(name)).and_then(Value::as_bool).unwrap_or(default)
    };
    [
        ("readOnlyHint", false, true),
        ("destructiveHint", true, false),
        ("idempotentHint", false, true),
        ("openWorldHint", true, false),
    ]
    .into_iter()
    .any(|(name, default, safe)| hint(before, name, default) == safe && hint(after, name, default) != safe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(change: Value, expected: &[&str]) {
        let old = json!({
            "title": "T", "description": "d",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "description": "x"}}},
            "outputSchema": {"type": "object", "description": "o"},
            "annotations": {"readOnlyHint": true},
        });
        let mut new = old.clone();
        for (pointer, value) in change.as_object().unwrap() {
            *new.pointer_mut(pointer).unwrap() = value.clone();
        }
        let classes = classify(ItemKind::Tool, Some(&old), Some(&new));
        assert_eq!(classes.into_iter().map(ItemChangeKind::as_str).collect::<Vec<_>>(), expected, "{change}");
    }

    #[test]
    fn a_change_has_the_classes_of_all_its_parts() {
        check(json!({}), &[]);
        check(json!({"/description": "e"}), &["text"]);
        check(json!({"/title": "U"}), &["text"]);
        check(json!({"/inputSchema/properties/a/description": "y"}), &["text"]);
        check(json!({"/outputSchema/description": "p"}), &["text"]);
        check(json!({"/inputSchema/properties": {}}), &["schema narrowed"]);
        check(json!({"/inputSchema/properties/a/type": ["string", "null"]}), &["schema widened"]);
        check(
            json!({"/inputSchema/properties": {"b": {}}, "/title": "U"}),
            &["text", "schema narrowed", "schema widened"],
        );
        check(json!({"/outputSchema/type": "array"}), &["output schema"]);
        check(json!({"/annotations/readOnlyHint": false}), &["hints weakened"]);
        check(json!({"/annotations": {"readOnlyHint": true, "destructiveHint": false}}), &["text"]);
        assert_eq!(classify(ItemKind::Tool, None, Some(&json!({}))), [ItemChangeKind::Added].into());
        assert_eq!(classify(ItemKind::Prompt, Some(&json!({})), None), [ItemChangeKind::Removed].into());
        assert_eq!(classify(ItemKind::Launch, Some(&json!("a")), Some(&json!("b"))), [ItemChangeKind::Launch].into());
    }
}
