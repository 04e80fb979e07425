//! The accessibility tree of one frame, from `Accessibility.getFullAXTree`. A page controls everything in it.

use crate::visible_text::VisibleText;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::{collections::HashMap, ops::Range, sync::Arc};

/// Maximum number of nodes of a frame that are read.
pub(crate) const MAX_NODES: usize = 100_000;
/// Maximum length of a name or value, in characters.
const MAX_TEXT: usize = 300;

/// The tree of one frame. It is a valid tree whatever the browser sends: no node is the child of two others, or of
/// itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FrameAccessibilityTree {
    /// Id of the frame's document, which changes with each navigation.
    pub(crate) document: Arc<str>,
    /// Element of the outer frame that contains this one; `None` for the page itself.
    pub(crate) owner: Option<BackendNodeId>,
    /// Nodes in the order of the browser's answer; the first is the root.
    pub(crate) nodes: Vec<AccessibleNode>,
    /// Indices of all children; those of one node are adjacent.
    children: Vec<usize>,
    /// `true` if there were more nodes.
    pub(crate) is_cut: bool,
}

/// Number of an element of a document in the browser (`backendNodeId`).
pub(crate) type BackendNodeId = i64;

/// One node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AccessibleNode {
    pub(crate) role: String,
    pub(crate) name: String,
    pub(crate) value: String,
    /// Number of invisible characters that were removed from name and value.
    pub(crate) removed: usize,
    /// Its element; `None` for generated text.
    pub(crate) element: Option<BackendNodeId>,
    pub(crate) is_ignored: bool,
    pub(crate) state: NodeState,
    /// Range of its children in the children of the tree.
    children: Range<usize>,
}

/// The state of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeState {
    pub(crate) is_focusable: bool,
    pub(crate) is_focused: bool,
    /// `true` if it takes text, or is part of an element that does.
    pub(crate) is_editable: bool,
    pub(crate) is_disabled: bool,
    pub(crate) is_required: bool,
    pub(crate) is_readonly: bool,
    pub(crate) is_invalid: bool,
    pub(crate) checked: Option<CheckState>,
    pub(crate) pressed: Option<CheckState>,
    pub(crate) expanded: Option<bool>,
    pub(crate) is_selected: bool,
    pub(crate) level: Option<u64>,
    /// Address of a link; that of the page for its root.
    pub(crate) url: Option<String>,
}

/// The state of a checkbox or toggle button that is on, at least in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckState {
    Checked,
    Mixed,
}

/// The part of an answer that is parsed.
#[derive(Deserialize)]
struct AxTree<'a> {
    #[serde(borrow)]
    nodes: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AxNode<'a> {
    node_id: &'a str,
    #[serde(borrow)]
    role: Option<AxValue<'a>>,
    name: Option<AxValue<'a>>,
    value: Option<AxValue<'a>>,
    child_ids: Option<Vec<&'a str>>,
    #[serde(rename = "backendDOMNodeId")]
    element: Option<BackendNodeId>,
    ignored: Option<bool>,
    properties: Option<Vec<AxProperty<'a>>>,
}

#[derive(Deserialize)]
struct AxProperty<'a> {
    name: &'a str,
    #[serde(borrow)]
    value: Option<AxValue<'a>>,
}

/// A value of any type.
#[derive(Deserialize)]
struct AxValue<'a> {
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

impl FrameAccessibilityTree {
    /// Parses the answer of the browser, at most `room` nodes of it. Invalid nodes are ignored.
    ///
    /// A page may have megabytes of nodes. The answer is never parsed into `Value`s, which take many times its bytes.
    pub(crate) fn read(document: Arc<str>, owner: Option<BackendNodeId>, answer: &str, room: usize) -> Self {
        let nodes = serde_json::from_str::<AxTree<'_>>(answer).map_or_else(|_| Vec::new(), |parsed| parsed.nodes);
        let room = room.min(MAX_NODES);
        let is_cut = nodes.len() > room;
        let nodes: Vec<AxNode<'_>> =
            nodes.into_iter().take(room).filter_map(|node| serde_json::from_str(node.get()).ok()).collect();
        let places: HashMap<&str, usize> =
            nodes.iter().enumerate().map(|(place, node)| (node.node_id, place)).collect();
        let mut tree = Self { document, owner, is_cut, ..Self::default() };
        tree.nodes.reserve(nodes.len());
        let mut has_parent = vec![false; nodes.len()];
        if let Some(root) = has_parent.first_mut() {
            *root = true;
        }
        for node in &nodes {
            let begin = tree.children.len();
            for id in node.child_ids.iter().flatten() {
                if let Some(child) = places.get(id)
                    && let Some(has_one) = has_parent.get_mut(*child)
                    && !std::mem::replace(has_one, true)
                {
                    tree.children.push(*child);
                }
            }
            tree.nodes.push(AccessibleNode::read(node, begin..tree.children.len()));
        }
        tree
    }

    /// Returns the indices of a node's children, in the order of the browser's answer.
    pub(crate) fn children(&self, place: usize) -> impl DoubleEndedIterator<Item = usize> {
        let children = self.nodes.get(place).and_then(|node| self.children.get(node.children.clone()));
        children.unwrap_or_default().iter().copied()
    }
}

impl AccessibleNode {
    fn read(node: &AxNode<'_>, children: Range<usize>) -> Self {
        let mut state = NodeState::default();
        for property in node.properties.iter().flatten() {
            let Some(value) = property.value.as_ref().and_then(|value| value.value).map(RawValue::get) else {
                continue;
            };
            let is_true = value == "true";
            match property.name {
                "focusable" => state.is_focusable = is_true,
                "focused" => state.is_focused = is_true,
                "editable" => state.is_editable = true,
                "disabled" => state.is_disabled = is_true,
                "required" => state.is_required = is_true,
                "readonly" => state.is_readonly = is_true,
                "invalid" => state.is_invalid = value != "\"false\"",
                "checked" => state.checked = CheckState::read(value),
                "pressed" => state.pressed = CheckState::read(value),
                "expanded" => state.expanded = value.parse().ok(),
                "selected" => state.is_selected = is_true,
                "level" => state.level = value.parse().ok(),
                "url" => state.url = Some(plain_json(value).text),
                _ => {}
            }
        }
        let text = |value: &Option<AxValue<'_>>| {
            value.as_ref().and_then(|value| value.value).map(|value| plain_json(value.get())).unwrap_or_default()
        };
        let (name, value) = (text(&node.name), text(&node.value));
        Self {
            role: text(&node.role).text,
            removed: name.removed + value.removed,
            name: name.text,
            value: value.text,
            element: node.element,
            is_ignored: node.ignored.unwrap_or_default(),
            state,
            children,
        }
    }
}

impl CheckState {
    fn read(value: &str) -> Option<Self> {
        match value.trim_matches('"') {
            "true" => Some(Self::Checked),
            "mixed" => Some(Self::Mixed),
            _ => None,
        }
    }
}

/// Returns an unparsed JSON value as [`plain`] would.
fn plain_json(value: &str) -> SanitizedText {
    match serde_json::from_str::<&str>(value) {
        Ok(text) => SanitizedText::of(text),
        // It contains escapes, or is not a text.
        Err(_) => {
            serde_json::from_str(value).map_or_else(|_| SanitizedText::default(), |value: Value| plain_value(&value))
        }
    }
}

/// Returns a value of a page as a text on one line, truncated, without invisible characters, and with `<` escaped where
/// a tag could begin. `null` is an empty text; other values are JSON.
pub(crate) fn plain(value: &Value) -> String {
    plain_value(value).text
}

/// Returns a text as [`plain`] does.
pub(crate) fn plain_text(text: &str) -> String {
    SanitizedText::of(text).text
}

/// A text of a page in the form of [`plain`].
#[derive(Debug, Default)]
struct SanitizedText {
    text: String,
    /// Number of invisible characters that were removed.
    removed: usize,
}

impl SanitizedText {
    fn of(text: &str) -> Self {
        if is_plain(text) {
            return Self { text: text.to_owned(), removed: 0 };
        }
        match VisibleText::of(text) {
            Some(seen) => Self { text: made_plain(&seen.text), removed: seen.removed },
            None => Self { text: made_plain(text), removed: 0 },
        }
    }
}

fn plain_value(value: &Value) -> SanitizedText {
    match value {
        Value::String(text) => SanitizedText::of(text),
        Value::Null => SanitizedText::default(),
        other => SanitizedText::of(&other.to_string()),
    }
}

fn made_plain(text: &str) -> String {
    let mut line = String::new();
    let mut length = 0;
    let mut is_mark = false;
    'words: for word in text.split_whitespace() {
        let space = (!line.is_empty()).then_some(' ');
        for char in space.into_iter().chain(word.chars()) {
            if length >= MAX_TEXT {
                line.push('…');
                break 'words;
            }
            if is_mark && (char.is_ascii_alphabetic() || matches!(char, '/' | '|')) {
                line.pop();
                line.push_str("&lt;");
            }
            is_mark = char == '<';
            line.push(char);
            length += 1;
        }
    }
    line
}

/// Returns `true` if the text needs no change, as most do.
fn is_plain(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_graphic() && byte != b'<';
    let bytes = text.as_bytes();
    bytes.len() <= MAX_TEXT
        && !bytes.starts_with(b" ")
        && !bytes.ends_with(b" ")
        && bytes.iter().all(|byte| *byte == b' ' || is_word(*byte))
        && !bytes.windows(2).any(|pair| pair == b"  ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_tree_is_read_with_the_states_of_its_nodes() {
        let answer = json!({"nodes": [
            {"nodeId": "1", "role": {"value": "RootWebArea"}, "name": {"value": "Shop"}, "childIds": ["2", "9"]},
            {"nodeId": "2", "role": {"value": "checkbox"}, "name": {"value": " I\n agree\u{202e} "}, "parentId": "1",
             "backendDOMNodeId": 34, "properties": [
                {"name": "checked", "value": {"type": "tristate", "value": "mixed"}},
                {"name": "invalid", "value": {"value": "false"}},
                {"name": "focusable", "value": {"value": true}},
                {"name": "unknown", "value": {}}]},
            {"role": {"value": "nobody"}},
            "no node",
        ]})
        .to_string();
        let tree = FrameAccessibilityTree::read("d1".into(), None, &answer, 9);
        assert_eq!(tree.children(0).collect::<Vec<_>>(), [1]);
        let state = NodeState { is_focusable: true, checked: Some(CheckState::Mixed), ..NodeState::default() };
        let node = &tree.nodes[1];
        assert_eq!((node.name.as_str(), node.element, &node.state), ("I agree", Some(34), &state));
        assert_eq!(node.removed, 1);
        assert_eq!(tree.children(7).count(), 0);
        for nothing in ["null", r#"{"nodes": {}}"#, "[]", "", "{"] {
            assert_eq!(FrameAccessibilityTree::read("".into(), None, nothing, 9).nodes, []);
        }
        let cut = FrameAccessibilityTree::read("d1".into(), None, &answer, 1);
        assert_eq!((cut.nodes.len(), cut.is_cut, cut.children(0).count()), (1, true, 0));
    }

    proptest! {
        #[test]
        fn every_node_has_at_most_one_parent_and_the_root_has_none(
            nodes in prop::collection::vec((0_u8..8, prop::collection::vec(0_u8..8, 0..6)), 0..12),
        ) {
            let nodes: Vec<Value> = nodes.iter().map(|(id, children)| {
                let children: Vec<String> = children.iter().map(u8::to_string).collect();
                json!({"nodeId": id.to_string(), "childIds": children})
            }).collect();
            let tree = FrameAccessibilityTree::read("d".into(), None, &json!({"nodes": nodes}).to_string(), 100);
            let mut children: Vec<usize> = (0..tree.nodes.len()).flat_map(|place| tree.children(place)).collect();
            let all = children.len();
            children.sort_unstable();
            children.dedup();
            prop_assert_eq!(children.len(), all);
            prop_assert!(!children.contains(&0), "the root is nobody's child");
        }

        #[test]
        fn sanitizing_does_not_change_a_plain_text(words in prop::collection::vec("[!-~é<\u{200b}]{0,9}", 0..9)) {
            let text = words.join(" ");
            prop_assert!(!is_plain(&text) || VisibleText::of(&text).is_none() && made_plain(&text) == text);
        }
    }

    #[test]
    fn texts_are_truncated_stripped_of_invisible_characters_and_escaped() {
        assert_eq!(plain(&json!("a\u{200b}b \t\u{1b}c\u{e0041}")), "ab c");
        assert_eq!(
            plain(&json!("👩\u{200d}👧 می\u{200c}خواهم \u{115f}\u{1160}\u{115f}")),
            "👩\u{200d}👧 می\u{200c}خواهم"
        );
        assert_eq!(plain(&json!("x".repeat(400))).chars().count(), MAX_TEXT + 1);
        assert_eq!(
            plain(&json!("<system-reminder>a</x> <|im_start|> 1 < 2")),
            "&lt;system-reminder>a&lt;/x> &lt;|im_start|> 1 < 2"
        );
        assert_eq!(plain(&json!("<\u{200b}tool_use>")), "&lt;tool_use>");
        assert_eq!(plain(&json!(["\u{202e}", "<b>"])), r#"["","&lt;b>"]"#);
        assert_eq!((plain(&json!(3)), plain(&json!(null))), ("3".into(), String::new()));
    }
}
