//! A page as lines for a model: a role, a name, a reference, a state. Made of the accessibility trees of its frames.

mod finding;

use crate::browser::{
    accessibility::{AccessibleNode, FrameTree, NodeId},
    references::{Element, Reference, References},
};
use similar::{Algorithm, DiffTag, capture_diff_slices};
use std::{collections::HashMap, fmt::Write};

/// Lines of one snapshot.
const MAX_LINES: usize = 20_000;
/// Nodes that are walked through, over all frames.
const MAX_WALKED: usize = 400_000;
/// Levels that are told apart.
const MAX_DEPTH: usize = 12;
/// Beyond this share of changed lines all of the page is told.
const MOSTLY_CHANGED: f64 = 0.7;
/// More lines are not compared: the time that takes grows with both sides.
const MAX_COMPARED: usize = 8_000;

/// Roles that a person does something with.
const INTERACTIVE: [&str; 22] = [
    "button",
    "checkbox",
    "combobox",
    "DisclosureTriangle",
    "link",
    "listbox",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "option",
    "radio",
    "searchbox",
    "slider",
    "spinbutton",
    "switch",
    "tab",
    "textbox",
    "treeitem",
    "ColorWell",
    "Date",
    "DateTime",
    "InputTime",
];

/// Roles that say where something stands.
const STRUCTURE: [&str; 34] = [
    "alert",
    "alertdialog",
    "article",
    "banner",
    "blockquote",
    "cell",
    "code",
    "columnheader",
    "complementary",
    "contentinfo",
    "dialog",
    "figure",
    "form",
    "gridcell",
    "group",
    "heading",
    "Iframe",
    "image",
    "list",
    "listitem",
    "log",
    "main",
    "menu",
    "menubar",
    "navigation",
    "progressbar",
    "region",
    "row",
    "rowheader",
    "search",
    "status",
    "table",
    "tablist",
    "tree",
];

/// Those that say it also without a name.
const HOLDERS: [&str; 9] = ["dialog", "form", "Iframe", "list", "listitem", "main", "navigation", "row", "table"];

/// Roles that hold nothing which is told beside them.
const LEAVES: [&str; 7] = ["image", "InlineTextBox", "ListMarker", "searchbox", "spinbutton", "StaticText", "textbox"];

/// Roles whose name is made of what they hold.
const NAMED_BY_CONTENT: [&str; 15] = [
    "button",
    "cell",
    "checkbox",
    "columnheader",
    "gridcell",
    "heading",
    "link",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "option",
    "radio",
    "rowheader",
    "tab",
    "treeitem",
];

/// A page at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Snapshot {
    pub(crate) lines: Vec<Line>,
    /// There was more than is told.
    pub(crate) is_cut: bool,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Line {
    pub(crate) depth: usize,
    pub(crate) reference: Option<Reference>,
    pub(crate) is_interactive: bool,
    is_heading: bool,
    /// Without indentation.
    pub(crate) text: String,
}

/// Two snapshots of one page, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// The same.
    Nothing,
    /// What is new and what is gone, in the order of the page.
    Lines(String),
    /// So much that the page has to be told anew.
    Mostly,
}

/// A line that waits for its turn.
struct Step<'a> {
    frame: &'a FrameTree,
    place: usize,
    depth: usize,
    /// The name of the line above, which the texts below it repeat.
    above: &'a str,
}

impl Snapshot {
    /// The lines of a page. The first frame is the page itself; elements get references on the way.
    pub(crate) fn of(frames: &[FrameTree], references: &mut References) -> Self {
        let Some(page) = frames.first() else { return Self::default() };
        let by_owner: HashMap<NodeId, &FrameTree> =
            frames.iter().skip(1).filter_map(|frame| Some((frame.owner?, frame))).collect();
        let mut snapshot = Self { lines: Vec::new(), is_cut: frames.iter().any(|frame| frame.is_cut) };
        let mut steps = vec![Step { frame: page, place: 0, depth: 0, above: "" }];
        let mut walked = 0;
        // A stack of our own: pages nest as deep as they like.
        while let Some(step) = steps.pop() {
            walked += 1;
            let Some(node) = step.frame.nodes.get(step.place) else { continue };
            if walked > MAX_WALKED || snapshot.lines.len() >= MAX_LINES {
                snapshot.is_cut = true;
                break;
            }
            let told = snapshot.tell(node, &step, references);
            let (depth, above) = match told {
                true if NAMED_BY_CONTENT.contains(&node.role.as_str()) => (step.depth + 1, node.name.as_str()),
                true => (step.depth + 1, ""),
                false => (step.depth, step.above),
            };
            if node.role == "Iframe"
                && let Some(inner) = node.element.and_then(|element| by_owner.get(&element))
            {
                steps.push(Step { frame: inner, place: 0, depth, above: "" });
                continue;
            }
            if LEAVES.contains(&node.role.as_str()) {
                continue;
            }
            let children = step.frame.children(step.place).rev();
            steps.extend(children.map(|place| Step { frame: step.frame, place, depth, above }));
        }
        snapshot
    }

    /// Adds the node's line, if it has one of its own.
    fn tell(&mut self, node: &AccessibleNode, step: &Step<'_>, references: &mut References) -> bool {
        if node.is_ignored {
            return false;
        }
        let depth = step.depth.min(MAX_DEPTH);
        if node.role == "StaticText" {
            if node.name.is_empty() || step.above.contains(&node.name) {
                return false;
            }
            // Pieces of one line of text stand in a row.
            if let Some(last) = self.lines.last_mut()
                && last.depth == depth
                && last.reference.is_none()
                && last.text.starts_with("text: ")
                && last.text.len() < 400
            {
                last.text.push(' ');
                last.text.push_str(&node.name);
                return false;
            }
            self.lines.push(Line {
                depth,
                reference: None,
                is_interactive: false,
                is_heading: false,
                text: format!("text: {}", node.name),
            });
            return false;
        }
        let is_interactive = INTERACTIVE.contains(&node.role.as_str())
            || (node.state.is_focusable && !matches!(node.role.as_str(), "RootWebArea" | "generic" | "none"));
        let is_structure = STRUCTURE.contains(&node.role.as_str());
        if !is_interactive && !(is_structure && (!node.name.is_empty() || HOLDERS.contains(&node.role.as_str()))) {
            return false;
        }
        let element = || Some(Element { document: step.frame.document.clone(), node: node.element? });
        let reference = match is_interactive || matches!(node.role.as_str(), "image" | "Iframe") {
            true => element().and_then(|element| references.of(element)),
            false => None,
        };
        self.lines.push(Line {
            depth,
            reference,
            is_interactive,
            is_heading: node.role == "heading",
            text: line(node, reference),
        });
        true
    }

    /// All lines, or, of a longer page, as many as `characters` hold: what can be used first, then headings, then the rest
    /// from the top. Says how many are left out.
    pub(crate) fn text(&self, characters: usize) -> (String, usize) {
        let shown = self.first_used(characters);
        (self.written(&shown), shown.iter().filter(|shown| !**shown).count())
    }

    /// The lines that [`text`](Self::text) shows.
    pub(crate) fn first_used(&self, characters: usize) -> Vec<bool> {
        self.chosen(characters, &[&|_, line| line.is_interactive, &|_, line| line.is_heading, &|_, _| true])
    }

    /// As many lines as there is room for: those of the first rank from the top, then those of the next one.
    fn chosen(&self, characters: usize, ranks: &[&dyn Fn(usize, &Line) -> bool]) -> Vec<bool> {
        let lengths: Vec<usize> = self.lines.iter().map(|line| line.shown_length()).collect();
        let mut left = characters;
        let mut is_shown = vec![false; self.lines.len()];
        for rank in ranks {
            for (place, line) in self.lines.iter().enumerate() {
                if is_shown[place] || !rank(place, line) {
                    continue;
                }
                if lengths[place] > left {
                    return is_shown;
                }
                left -= lengths[place];
                is_shown[place] = true;
            }
        }
        is_shown
    }

    fn written(&self, is_shown: &[bool]) -> String {
        let mut text = String::new();
        for (line, _) in self.lines.iter().zip(is_shown).filter(|(_, shown)| **shown) {
            line.write(&mut text, "");
        }
        text
    }

    /// The difference to a later snapshot of the same page.
    pub(crate) fn until(&self, later: &Self) -> Change {
        if self.lines == later.lines {
            return Change::Nothing;
        }
        if self.lines.len().max(later.lines.len()) > MAX_COMPARED {
            return Change::Mostly;
        }
        let mut text = String::new();
        let mut new = 0;
        for step in capture_diff_slices(Algorithm::Myers, &self.lines, &later.lines) {
            if step.tag() == DiffTag::Equal {
                continue;
            }
            for line in &self.lines[step.old_range()] {
                // What changed its state shows as new under the same reference.
                if !later.lines.iter().any(|other| other.reference.is_some() && other.reference == line.reference) {
                    line.write(&mut text, "gone: ");
                }
            }
            for line in &later.lines[step.new_range()] {
                new += 1;
                line.write(&mut text, "now: ");
            }
        }
        match new as f64 > later.lines.len() as f64 * MOSTLY_CHANGED {
            true => Change::Mostly,
            false => Change::Lines(text),
        }
    }

    /// The references in the order of the page, from the first element: the numbers of systems that count.
    pub(crate) fn references(&self) -> impl Iterator<Item = Reference> {
        self.lines.iter().filter_map(|line| line.reference)
    }
}

/// A node's line.
fn line(node: &AccessibleNode, reference: Option<Reference>) -> String {
    let mut text = node.role.clone();
    if !node.name.is_empty() {
        let _ = write!(text, " \"{}\"", node.name.replace('"', "'"));
    }
    if let Some(reference) = reference {
        let _ = write!(text, " [{reference}]");
    }
    let state = &node.state;
    for (holds, word) in [
        (state.is_focused, "focused"),
        (state.is_disabled, "disabled"),
        (state.is_required, "required"),
        (state.is_readonly && node.role == "textbox", "readonly"),
        (state.is_invalid, "invalid"),
        (state.is_selected, "selected"),
        (state.checked.as_deref() == Some("true"), "checked"),
        (state.checked.as_deref() == Some("mixed"), "partly checked"),
        (state.pressed.as_deref() == Some("true"), "pressed"),
        (state.expanded == Some(true), "expanded"),
        (state.expanded == Some(false), "collapsed"),
    ] {
        if holds {
            let _ = write!(text, " [{word}]");
        }
    }
    if let (Some(level), "heading") = (state.level, node.role.as_str()) {
        let _ = write!(text, " [level {level}]");
    }
    if !node.value.is_empty() && node.value != node.name {
        let _ = write!(text, " = \"{}\"", node.value.replace('"', "'"));
    }
    if let (Some(url), "link") = (&state.url, node.role.as_str()) {
        let _ = write!(text, " -> {url}");
    }
    text
}

impl Line {
    fn shown_length(&self) -> usize {
        self.depth * 2 + 3 + self.text.chars().count()
    }

    fn write(&self, text: &mut String, before: &str) {
        let _ = writeln!(text, "{:width$}- {before}{}", "", self.text, width = self.depth * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// `(id, children, role, name, element, more)`.
    type Told<'a> = (&'a str, &'a [&'a str], &'a str, &'a str, i64, Value);

    /// A frame of these nodes.
    fn frame(document: &str, owner: Option<NodeId>, nodes: &[Told<'_>]) -> FrameTree {
        let nodes: Vec<Value> = nodes
            .iter()
            .map(|(id, children, role, name, element, more)| {
                let properties: Vec<Value> = more["is"]
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, value)| json!({"name": name, "value": {"value": value}}))
                    .collect();
                json!({"nodeId": id, "childIds": children, "role": {"value": role}, "name": {"value": name},
                    "backendDOMNodeId": element, "value": {"value": more["value"]}, "properties": properties,
                    "ignored": more["ignored"]})
            })
            .collect();
        FrameTree::read(document.into(), owner, &json!({"nodes": nodes}))
    }

    fn shop(checked: &str, late: bool) -> Vec<FrameTree> {
        let more = |value: Value| value;
        let mut main = vec!["h", "p", "f", "i"];
        if late {
            main.push("l");
        }
        let page = frame(
            "d1",
            None,
            &[
                ("1", &["g"], "RootWebArea", "Shop", 1, more(json!({"is": {"focusable": true}}))),
                ("g", &["m"], "none", "", 2, json!({"ignored": true})),
                ("m", &main, "main", "", 3, json!({})),
                ("h", &["ht"], "heading", "Our shop", 4, json!({"is": {"level": 1}})),
                ("ht", &[], "StaticText", "Our shop", 5, json!({})),
                ("p", &["p1", "p2"], "paragraph", "", 6, json!({})),
                ("p1", &[], "StaticText", "Hello", 7, json!({})),
                ("p2", &[], "StaticText", "you", 8, json!({})),
                ("f", &["n", "c", "b", "a"], "form", "", 9, json!({})),
                ("n", &["nt"], "textbox", "Name", 10, json!({"value": "Ann", "is": {"required": true}})),
                ("nt", &[], "StaticText", "Ann", 11, json!({})),
                ("c", &[], "checkbox", "Agree", 12, json!({"is": {"checked": checked}})),
                ("b", &["bt"], "button", "Buy", 13, json!({"is": {"disabled": true}})),
                ("bt", &[], "StaticText", "Buy", 14, json!({})),
                ("a", &[], "link", "Terms", 15, json!({"is": {"url": "https://shop.example/terms"}})),
                ("i", &[], "Iframe", "Pay", 16, json!({})),
                ("l", &[], "status", "Saved", 17, json!({})),
            ],
        );
        let inner = frame(
            "d2",
            Some(16),
            &[("1", &["2"], "RootWebArea", "", 1, json!({})), ("2", &[], "button", "Pay now", 2, json!({}))],
        );
        vec![page, inner]
    }

    const SHOP: &str = r#"- main
  - heading "Our shop" [level 1]
  - text: Hello you
  - form
    - textbox "Name" [e1] [required] = "Ann"
    - checkbox "Agree" [e2]
    - button "Buy" [e3] [disabled]
    - link "Terms" [e4] -> https://shop.example/terms
  - Iframe "Pay" [e5]
    - button "Pay now" [e6]
"#;

    #[test]
    fn a_page_is_told_with_its_frames_and_a_reference_for_what_can_be_used() {
        let mut references = References::default();
        let snapshot = Snapshot::of(&shop("false", false), &mut references);
        assert_eq!(snapshot.text(10_000), (SHOP.to_owned(), 0));
        let button = snapshot.references().last().unwrap();
        assert_eq!(references.element(button), Some(&Element { document: "d2".into(), node: 2 }));
        assert_eq!(Snapshot::of(&shop("false", false), &mut references), snapshot, "references stay");
    }

    #[test]
    fn a_small_room_holds_what_can_be_used_first() {
        let snapshot = Snapshot::of(&shop("false", false), &mut References::default());
        let (text, left_out) = snapshot.text(230);
        assert!(text.contains("Pay now") && !text.contains("Hello"), "{text}");
        assert_eq!(text.lines().count() + left_out, SHOP.lines().count());
        assert_eq!(snapshot.text(0), (String::new(), SHOP.lines().count()));
    }

    #[test]
    fn after_a_change_only_what_changed_is_told() {
        let mut references = References::default();
        let mut at = |checked, late| Snapshot::of(&shop(checked, late), &mut references);
        let (before, after) = (at("false", false), at("true", true));
        assert_eq!(before.until(&before), Change::Nothing);
        let told = "    - now: checkbox \"Agree\" [e2] [checked]\n  - now: status \"Saved\"\n";
        assert_eq!(before.until(&after), Change::Lines(told.into()));
        assert_eq!(
            after.until(&before),
            Change::Lines("    - now: checkbox \"Agree\" [e2]\n  - gone: status \"Saved\"\n".into())
        );
        let other = Snapshot::of(&[frame("d3", None, &[("1", &[], "link", "Other", 1, json!({}))])], &mut references);
        assert_eq!(before.until(&other), Change::Mostly);
    }

    #[test]
    fn a_circle_or_a_chain_of_nodes_comes_to_an_end() {
        let circle = frame(
            "d",
            None,
            &[("1", &["1", "2"], "list", "", 1, json!({})), ("2", &["1"], "listitem", "x", 2, json!({}))],
        );
        let snapshot = Snapshot::of(&[circle], &mut References::default());
        assert!(snapshot.is_cut && snapshot.lines.len() <= MAX_LINES);
        let names: Vec<String> = (0..50_000).map(|number: u32| number.to_string()).collect();
        let nodes: Vec<Value> = names.windows(2).map(|pair| {
            json!({"nodeId": pair[0], "childIds": [pair[1]], "role": {"value": "list"}, "backendDOMNodeId": 1})
        }).collect();
        let chain = FrameTree::read("d".into(), None, &json!({"nodes": nodes}));
        assert!(Snapshot::of(&[chain], &mut References::default()).is_cut);
    }

    proptest! {
        #[test]
        fn any_answer_of_a_browser_is_told_within_its_room(
            nodes in prop::collection::vec((0_u8..6, prop::collection::vec(0_u8..6, 0..4), 0_usize..8, ".{0,12}"), 0..12),
            room in 0_usize..400,
        ) {
            let roles = ["button", "StaticText", "Iframe", "main", "none", "heading", "", "textbox"];
            let nodes: Vec<Value> = nodes.into_iter().map(|(id, children, role, name)| {
                let children: Vec<String> = children.iter().map(u8::to_string).collect();
                json!({"nodeId": id.to_string(), "childIds": children, "role": {"value": roles[role]},
                    "name": {"value": name}, "backendDOMNodeId": id})
            }).collect();
            let frame = FrameTree::read("d".into(), Some(1), &json!({"nodes": nodes}));
            let snapshot = Snapshot::of(&[frame.clone(), frame], &mut References::default());
            let (text, left_out) = snapshot.text(room);
            prop_assert!(text.chars().count() <= room);
            prop_assert_eq!(text.lines().count() + left_out, snapshot.lines.len());
        }
    }
}
