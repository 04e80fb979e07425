//! Attributes of an element that its accessibility tree lacks: type of field, placeholder, address of an image.

use crate::browser::{accessibility::plain_text, references::ElementReference, session::BrowserSession};
use serde_json::{Value, json};

/// The tag and the attributes of an element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// Name of the tag, in lower case.
    pub(crate) tag: String,
    all: Vec<(String, String)>,
}

impl Attributes {
    fn read(node: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(plain_text).unwrap_or_default();
        let pairs = node.get("attributes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        Self {
            tag: node.get("localName").map(text).unwrap_or_default(),
            all: pairs.as_chunks::<2>().0.iter().take(100).map(|[name, value]| (text(name), text(value))).collect(),
        }
    }

    /// Returns the value of an attribute, if it is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.all.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns `true` for a password field, whose value must not be shown.
    pub(crate) fn is_password(&self) -> bool {
        self.get("type").is_some_and(|kind| kind.eq_ignore_ascii_case("password"))
    }
}

impl BrowserSession {
    /// Returns the tag and attributes of an element; empty ones if it no longer exists.
    pub(crate) async fn attributes(&self, reference: ElementReference) -> Attributes {
        let Ok((target, element)) = self.element(reference) else { return Attributes::default() };
        let asked = json!({"backendNodeId": element.node, "depth": 0});
        let description = self.command(&target, "DOM.describeNode", asked).await.ok();
        description.and_then(|description| description.get("node").map(Attributes::read)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_in_pairs() {
        let node = json!({"localName": "input", "attributes": ["type", "password", "name", "<b>\u{202e}", "odd"]});
        let attributes = Attributes::read(&node);
        assert_eq!((attributes.tag.as_str(), attributes.get("type")), ("input", Some("password")));
        assert!(attributes.is_password());
        assert_eq!((attributes.get("name"), attributes.get("odd")), (Some("&lt;b>"), None));
        for strange in [json!(null), json!({"attributes": {}}), json!({"attributes": [1, 2], "localName": 3})] {
            assert_eq!(Attributes::read(&strange).get("type"), None);
        }
    }
}
