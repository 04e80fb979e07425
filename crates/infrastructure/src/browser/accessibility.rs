//! The accessibility tree of one frame, as `Accessibility.getFullAXTree` tells it. A page decides about all that is in it.

use serde_json::{Map, Value};
use std::collections::HashMap;
use toolstead_domain::unseen::seen;

/// More nodes of a frame are not looked at.
pub(crate) const MAX_NODES: usize = 100_000;
/// Characters of a name or value.
const MAX_TEXT: usize = 300;

/// One frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FrameTree {
    /// The document in it: another one after each navigation.
    pub(crate) document: String,
    /// The element of the frame around it that holds it; `None` for the page itself.
    pub(crate) owner: Option<NodeId>,
    /// In the order in which the browser tells them; the first is the root.
    pub(crate) nodes: Vec<AccessibleNode>,
    /// The place of each by its name in the tree.
    places: HashMap<String, usize>,
    /// There were more.
    pub(crate) is_cut: bool,
}

/// An element of a document, as the browser numbers them (`backendNodeId`).
pub(crate) type NodeId = i64;

/// One node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AccessibleNode {
    pub(crate) role: String,
    pub(crate) name: String,
    pub(crate) value: String,
    /// The element; text that is made up has none.
    pub(crate) element: Option<NodeId>,
    pub(crate) is_ignored: bool,
    pub(crate) state: State,
    children: Vec<String>,
}

/// The state of a node at the moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) is_focusable: bool,
    pub(crate) is_focused: bool,
    pub(crate) is_disabled: bool,
    pub(crate) is_required: bool,
    pub(crate) is_readonly: bool,
    pub(crate) is_invalid: bool,
    /// `true`, `false` or `mixed`.
    pub(crate) checked: Option<String>,
    pub(crate) pressed: Option<String>,
    pub(crate) expanded: Option<bool>,
    pub(crate) is_selected: bool,
    pub(crate) level: Option<u64>,
    /// The address that a link leads to.
    pub(crate) url: Option<String>,
}

impl FrameTree {
    /// Reads the answer of the browser.
    pub(crate) fn read(document: String, owner: Option<NodeId>, answer: &Value) -> Self {
        let told = answer.get("nodes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut tree = Self { document, owner, is_cut: told.len() > MAX_NODES, ..Self::default() };
        for node in told.iter().take(MAX_NODES).filter_map(Value::as_object) {
            let Some(id) = node.get("nodeId").and_then(Value::as_str) else { continue };
            tree.places.insert(id.to_owned(), tree.nodes.len());
            tree.nodes.push(AccessibleNode::read(node));
        }
        tree
    }

    /// The places of a node's children, those that the browser tells.
    pub(crate) fn children(&self, place: usize) -> impl DoubleEndedIterator<Item = usize> {
        let children = self.nodes.get(place).map_or(&[][..], |node| node.children.as_slice());
        children.iter().filter_map(|id| self.places.get(id).copied())
    }
}

impl AccessibleNode {
    fn read(node: &Map<String, Value>) -> Self {
        let value = |name: &str| node.get(name).and_then(|value| value.get("value"));
        let text = |name: &str| value(name).map(plain).unwrap_or_default();
        let children = node.get("childIds").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let properties = node.get("properties").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut state = State::default();
        for property in properties {
            let name = property.get("name").and_then(Value::as_str).unwrap_or_default();
            let Some(value) = property.get("value").and_then(|value| value.get("value")) else { continue };
            let is_true = value == &Value::Bool(true);
            match name {
                "focusable" => state.is_focusable = is_true,
                "focused" => state.is_focused = is_true,
                "disabled" => state.is_disabled = is_true,
                "required" => state.is_required = is_true,
                "readonly" => state.is_readonly = is_true,
                "invalid" => state.is_invalid = value != "false",
                "checked" => state.checked = Some(plain(value)),
                "pressed" => state.pressed = Some(plain(value)),
                "expanded" => state.expanded = value.as_bool(),
                "selected" => state.is_selected = is_true,
                "level" => state.level = value.as_u64(),
                "url" => state.url = Some(plain(value)),
                _ => {}
            }
        }
        Self {
            role: text("role"),
            name: text("name"),
            value: text("value"),
            element: node.get("backendDOMNodeId").and_then(Value::as_i64),
            is_ignored: node.get("ignored") == Some(&Value::Bool(true)),
            state,
            children: children.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }
}

/// A text of a page on one line, no longer than it helps, without characters that nobody sees, and without marks that look
/// like those of calls.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => plain_text(text),
        Value::Null => String::new(),
        other => plain_text(&other.to_string()),
    }
}

/// The same of a text.
pub(crate) fn plain_text(text: &str) -> String {
    let mut line = String::new();
    let mut length = 0;
    let mut is_mark = false;
    let clean = seen(text).map(|(clean, _)| clean);
    'words: for word in clean.as_deref().unwrap_or(text).split_whitespace() {
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

#[cfg(test)]
mod tests {
    use super::*;
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
        ]});
        let tree = FrameTree::read("d1".into(), None, &answer);
        assert_eq!(tree.children(0).collect::<Vec<_>>(), [1]);
        let state = State { is_focusable: true, checked: Some("mixed".into()), ..State::default() };
        let node = &tree.nodes[1];
        assert_eq!((node.name.as_str(), node.element, &node.state), ("I agree", Some(34), &state));
        assert_eq!(tree.children(7).count(), 0);
        for nothing in [json!(null), json!({"nodes": {}}), json!([])] {
            assert_eq!(FrameTree::read(String::new(), None, &nothing).nodes, []);
        }
    }

    #[test]
    fn long_texts_end_and_what_nobody_sees_is_left_out() {
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
