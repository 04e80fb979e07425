//! A page as lines for a model: role, name, reference and state. Built from the accessibility trees of its frames.

mod finding;

use crate::browser::{
    accessibility::{AccessibleNode, BackendNodeId, CheckState, FrameAccessibilityTree},
    references::{ElementNodeId, ElementReference, References},
};
use similar::{Algorithm, DiffTag, capture_diff_slices};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt::Write,
};

/// Maximum number of lines of one snapshot.
const MAX_LINES: usize = 20_000;
/// Maximum level of indentation.
const MAX_DEPTH: usize = 12;
/// Maximum length of a link's address, in characters. The name usually says enough.
const MAX_ADDRESS: usize = 120;
/// Share of changed lines above which the whole page is shown again.
const MOSTLY_CHANGED: f64 = 0.7;
/// Maximum number of common lines of one side, without the unchanged beginning and end, whose order is compared. The
/// time of the comparison grows with both sides.
const MAX_COMPARED: usize = 4_000;

/// Roles of elements that users interact with.
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

/// Roles that show the structure of a page.
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

/// Roles that show structure even without a name.
const HOLDERS: [&str; 9] = ["dialog", "form", "Iframe", "list", "listitem", "main", "navigation", "row", "table"];

/// Roles whose contents are omitted: the browser generates them, or they repeat the name.
const LEAVES: [&str; 9] =
    ["ColorWell", "Date", "DateTime", "image", "InlineTextBox", "InputTime", "LineBreak", "ListMarker", "StaticText"];

/// Roles whose texts are their value.
const FIELDS: [&str; 3] = ["searchbox", "spinbutton", "textbox"];

/// Roles of table cells, which repeat their contents.
const CELLS: [&str; 4] = ["cell", "columnheader", "gridcell", "rowheader"];

/// Roles whose name is computed from their contents.
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

/// A page at one point in time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Snapshot {
    pub(crate) lines: Vec<SnapshotLine>,
    /// `true` if the page has more than these lines.
    pub(crate) is_cut: bool,
    /// Number of invisible characters that were removed from its lines.
    pub(crate) removed: usize,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SnapshotLine {
    pub(crate) depth: usize,
    pub(crate) reference: Option<ElementReference>,
    pub(crate) is_interactive: bool,
    is_heading: bool,
    /// The text without indentation.
    pub(crate) text: String,
}

/// The difference between two successive snapshots of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SnapshotDiff {
    /// No difference.
    Nothing,
    /// New and removed lines, in the order of the page.
    Lines(String),
    /// The page has changed so strongly that it must be shown again as a whole.
    Mostly,
}

/// A node to be visited.
#[derive(Clone, Copy)]
struct NodeVisit<'a> {
    frame: &'a AnnotatedAccessibilityTree<'a>,
    place: usize,
    depth: usize,
    /// Name of the line above; texts below it that the name contains are omitted.
    above: &'a str,
    /// `true` within a field, whose texts are its value.
    is_in_field: bool,
    /// `true` within a closed list. Its options only appear once it is open.
    is_in_closed_list: bool,
}

/// A frame, with data on the descendants of its nodes.
struct AnnotatedAccessibilityTree<'a> {
    tree: &'a FrameAccessibilityTree,
    /// For each node: `true` if a descendant of it can be used.
    holds_use: Vec<bool>,
}

impl<'a> AnnotatedAccessibilityTree<'a> {
    fn of(tree: &'a FrameAccessibilityTree) -> Self {
        let mut order = Vec::with_capacity(tree.nodes.len());
        let mut waiting: Vec<usize> = (!tree.nodes.is_empty()).then_some(0).into_iter().collect();
        while let Some(place) = waiting.pop() {
            order.push(place);
            waiting.extend(tree.children(place));
        }
        let mut holds_use = vec![false; tree.nodes.len()];
        // Children come after their parents.
        for place in order.into_iter().rev() {
            let is_use =
                |child: usize| holds_use[child] || is_used(&tree.nodes[child]) || tree.nodes[child].role == "Iframe";
            holds_use[place] = tree.children(place).any(is_use);
        }
        Self { tree, holds_use }
    }
}

/// Returns `true` if users interact with the node.
fn is_used(node: &AccessibleNode) -> bool {
    if node.is_ignored {
        return false;
    }
    match node.role.as_str() {
        "RootWebArea" | "StaticText" | "generic" | "none" => false,
        role => node.state.is_focusable || INTERACTIVE.contains(&role),
    }
}

impl Snapshot {
    /// Returns the lines of a page, and assigns references to elements. The first frame is the page itself.
    pub(crate) fn of(frames: &[FrameAccessibilityTree], references: &mut References) -> Self {
        let mut snapshot = Self { is_cut: frames.iter().any(|frame| frame.is_cut), ..Self::default() };
        let frames: Vec<AnnotatedAccessibilityTree<'_>> = frames.iter().map(AnnotatedAccessibilityTree::of).collect();
        let Some(page) = frames.first() else { return snapshot };
        let address = page.tree.nodes.first().and_then(|root| root.state.url.as_deref());
        let origin = address.and_then(origin).unwrap_or_default();
        let mut by_owner: HashMap<BackendNodeId, &AnnotatedAccessibilityTree<'_>> =
            frames.iter().skip(1).filter_map(|frame| Some((frame.tree.owner?, frame))).collect();
        let first =
            NodeVisit { frame: page, place: 0, depth: 0, above: "", is_in_field: false, is_in_closed_list: false };
        let mut steps = vec![first];
        // An explicit stack, since the nesting depth of pages is unlimited.
        while let Some(step) = steps.pop() {
            let tree = step.frame.tree;
            let Some(node) = tree.nodes.get(step.place) else { continue };
            if snapshot.lines.len() >= MAX_LINES {
                snapshot.is_cut = true;
                break;
            }
            let role = node.role.as_str();
            let mut below = step;
            if snapshot.push_node(node, &step, origin, references) {
                below.depth += 1;
                below.above = if NAMED_BY_CONTENT.contains(&role) { &node.name } else { "" };
            }
            // Each frame appears only once, even if the browser reports it twice.
            if role == "Iframe"
                && let Some(inner) = node.element.and_then(|element| by_owner.remove(&element))
            {
                steps.push(NodeVisit { frame: inner, place: 0, above: "", ..below });
                continue;
            }
            if LEAVES.contains(&role) {
                continue;
            }
            below.is_in_field |= is_field(node);
            below.is_in_closed_list |= role == "MenuListPopup";
            steps.extend(tree.children(step.place).rev().map(|place| NodeVisit { place, ..below }));
        }
        snapshot.prune();
        snapshot
    }

    /// Adds the line of the node, if it has one. Returns `true` if a line was added.
    fn push_node(
        &mut self,
        node: &AccessibleNode,
        step: &NodeVisit<'_>,
        origin: &str,
        references: &mut References,
    ) -> bool {
        if node.is_ignored {
            return false;
        }
        let role = node.role.as_str();
        if role == "StaticText" {
            if !step.is_in_field {
                self.push_text(node, step);
            }
            return false;
        }
        let holds_use = step.frame.holds_use.get(step.place).is_some_and(|holds| *holds);
        // Elements without a role that take text or the keyboard focus are buttons and fields made by scripts.
        let is_nameless_use = role == "generic" && node.state.is_focusable && (is_field(node) || !holds_use);
        let is_used = is_used(node) || is_nameless_use;
        let is_told = match role {
            _ if is_used => true,
            // The contents are shown instead.
            role if CELLS.contains(&role) && holds_use => false,
            role => HOLDERS.contains(&role) || (STRUCTURE.contains(&role) && !node.name.is_empty()),
        };
        if !is_told {
            return false;
        }
        // A label repeats the name of its element.
        if is_used && self.lines.last().is_some_and(|last| is_text(last, &node.name)) {
            self.lines.pop();
        }
        let element = || Some(ElementNodeId { document: step.frame.tree.document.clone(), node: node.element? });
        let reference = match is_used || matches!(role, "image" | "Iframe") {
            true => element().and_then(|element| references.of(element)),
            false => None,
        };
        self.removed += node.removed;
        self.lines.push(SnapshotLine {
            depth: step.depth,
            reference,
            // An option that only appears once its list is open is less important.
            is_interactive: is_used && !(role == "option" && step.is_in_closed_list),
            is_heading: role == "heading",
            text: line(node, reference, origin),
        });
        true
    }

    /// Adds a text, unless a line next to or above it has the same text. Adjacent texts become one line.
    fn push_text(&mut self, node: &AccessibleNode, step: &NodeVisit<'_>) {
        let text = node.name.as_str();
        if text.is_empty() {
            // The node had no other characters.
            self.removed += node.removed;
            return;
        }
        if step.above.contains(text) {
            return;
        }
        match self.lines.last_mut() {
            Some(last) if last.is_interactive && is_called(last, text) => return,
            // Fragments of one line of text are adjacent.
            Some(last) if last.depth == step.depth && last.text.starts_with(TEXT) && last.text.len() < 400 => {
                last.text.push(' ');
                last.text.push_str(text);
            }
            _ => {
                self.lines.push(SnapshotLine {
                    depth: step.depth,
                    reference: None,
                    is_interactive: false,
                    is_heading: false,
                    text: format!("{TEXT}{text}"),
                });
            }
        }
        self.removed += node.removed;
    }

    /// Removes lines that only show an empty container, or one with a single line.
    fn prune(&mut self) {
        let mut open: Vec<usize> = Vec::new();
        let mut parents = Vec::with_capacity(self.lines.len());
        for (place, line) in self.lines.iter().enumerate() {
            while open.last().is_some_and(|last| self.lines[*last].depth >= line.depth) {
                open.pop();
            }
            parents.push(open.last().copied());
            open.push(place);
        }
        let mut held = vec![0_usize; self.lines.len()];
        let mut is_kept = vec![true; self.lines.len()];
        for place in (0..self.lines.len()).rev() {
            is_kept[place] = held[place] > 1 || !HOLDERS.contains(&self.lines[place].text.as_str());
            if let Some(parent) = parents[place] {
                held[parent] += if is_kept[place] { 1 } else { held[place] };
            }
        }
        let mut depths: Vec<usize> = Vec::with_capacity(self.lines.len());
        for (place, parent) in parents.into_iter().enumerate() {
            depths.push(parent.map_or(0, |parent| depths[parent] + usize::from(is_kept[parent])));
            self.lines[place].depth = depths[place].min(MAX_DEPTH);
        }
        let mut kept = is_kept.into_iter();
        self.lines.retain(|_| kept.next().unwrap_or(true));
    }

    /// Returns all lines; of a longer page, those that fit into `characters` bytes: first the lines that can be used,
    /// then headings, then the others from the top. Also returns the number of omitted lines.
    pub(crate) fn text(&self, characters: usize) -> (String, usize) {
        let shown = self.first_used(characters);
        (self.written(&shown), shown.iter().filter(|shown| !**shown).count())
    }

    /// Returns, for each line, `true` if [`text`](Self::text) shows it.
    pub(crate) fn first_used(&self, characters: usize) -> Vec<bool> {
        self.chosen(characters, |_, line| match (line.is_interactive, line.is_heading) {
            (true, _) => Some(0),
            (false, true) => Some(1),
            (false, false) => Some(2),
        })
    }

    /// Selects as many lines as fit into `characters` bytes: those of the lowest rank from the top, then those of the
    /// next rank. A line without a rank is not selected. Returns `true` for each selected line.
    fn chosen(&self, characters: usize, rank: impl Fn(usize, &SnapshotLine) -> Option<u8>) -> Vec<bool> {
        let mut ranked: Vec<(u8, usize)> = Vec::with_capacity(self.lines.len());
        ranked.extend(self.lines.iter().enumerate().filter_map(|(place, line)| Some((rank(place, line)?, place))));
        ranked.sort_unstable();
        let mut left = characters;
        let mut is_shown = vec![false; self.lines.len()];
        for (_, place) in ranked {
            let length = self.lines[place].shown_length();
            if length > left {
                break;
            }
            left -= length;
            is_shown[place] = true;
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

    /// Returns the difference to a later snapshot of the same page.
    pub(crate) fn until(&self, later: &Self) -> SnapshotDiff {
        if self.lines == later.lines {
            return SnapshotDiff::Nothing;
        }
        let Some((is_gone, is_new)) = differing(&self.lines, &later.lines) else { return SnapshotDiff::Mostly };
        let new = is_new.iter().filter(|is_new| **is_new).count();
        if new as f64 > later.lines.len() as f64 * MOSTLY_CHANGED {
            return SnapshotDiff::Mostly;
        }
        let there: HashSet<ElementReference> = later.references().collect();
        let mut text = String::new();
        let (mut old, mut new) = (self.lines.iter().zip(is_gone), later.lines.iter().zip(is_new).peekable());
        loop {
            let kept = old.by_ref().find(|(line, is_gone)| {
                // An element with a changed state appears as new under the same reference.
                if *is_gone && line.reference.is_none_or(|reference| !there.contains(&reference)) {
                    line.write(&mut text, "gone: ");
                }
                !is_gone
            });
            while let Some((line, _)) = new.next_if(|(_, is_new)| *is_new) {
                line.write(&mut text, "now: ");
            }
            // The same line is on both sides.
            new.next();
            if kept.is_none() {
                return SnapshotDiff::Lines(text);
            }
        }
    }

    /// Returns the references in the order of the page. Tool systems that number elements use their positions.
    pub(crate) fn references(&self) -> impl Iterator<Item = ElementReference> {
        self.lines.iter().filter_map(|line| line.reference)
    }
}

/// Prefix of lines of text.
const TEXT: &str = "text: ";

/// Returns `true` if the line consists of exactly this text.
fn is_text(line: &SnapshotLine, text: &str) -> bool {
    line.text.strip_prefix(TEXT) == Some(text)
}

/// Returns `true` if the line is that of an element with this name.
fn is_called(line: &SnapshotLine, name: &str) -> bool {
    let shown = line.text.split_once('"').map(|(_, shown)| shown);
    shown.and_then(|shown| shown.strip_prefix(&*quoted(name))).is_some_and(|rest| rest.starts_with('"'))
}

/// Returns a text in the form that it has between quotes.
fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains('"') { text.replace('"', "'").into() } else { text.into() }
}

/// Returns `true` if the node is a field, whatever its role is.
fn is_field(node: &AccessibleNode) -> bool {
    FIELDS.contains(&node.role.as_str())
        || (node.state.is_editable && node.state.is_focusable && node.role == "generic")
}

/// Returns the part of an address before its path.
fn origin(address: &str) -> Option<&str> {
    let host = address.find("://")? + 3;
    let path = address.get(host..)?.find('/')?;
    address.get(..host + path)
}

/// Returns, for the lines of both sides, `true` if the other side does not have them at their position; `None` if too
/// many lines moved.
fn differing(old: &[SnapshotLine], new: &[SnapshotLine]) -> Option<(Vec<bool>, Vec<bool>)> {
    let mut numbers: HashMap<&SnapshotLine, usize> = HashMap::with_capacity(old.len());
    for line in old {
        let next = numbers.len();
        numbers.entry(line).or_insert(next);
    }
    let mut is_common = vec![false; numbers.len()];
    // A line that only one side has is a change in any case; only the order of the others is compared.
    let mut common_new = Vec::with_capacity(new.len());
    for (place, number) in new.iter().map(|line| numbers.get(line)).enumerate() {
        if let Some(number) = number {
            is_common[*number] = true;
            common_new.push((*number, place));
        }
    }
    let number_of = |line: &SnapshotLine| numbers.get(line).copied().filter(|number| is_common[*number]);
    let common_old: Vec<(usize, usize)> =
        old.iter().enumerate().filter_map(|(place, line)| Some((number_of(line)?, place))).collect();
    let (mut is_gone, mut is_new) = (vec![true; old.len()], vec![true; new.len()]);
    let mut keep = |old: &[(usize, usize)], new: &[(usize, usize)]| {
        for ((_, old), (_, new)) in old.iter().zip(new) {
            (is_gone[*old], is_new[*new]) = (false, false);
        }
    };
    let same = |(old, new): &(&(usize, usize), &(usize, usize))| old.0 == new.0;
    let head = common_old.iter().zip(&common_new).take_while(same).count();
    let (old_head, common_old) = common_old.split_at(head);
    let (new_head, common_new) = common_new.split_at(head);
    keep(old_head, new_head);
    let tail = common_old.iter().rev().zip(common_new.iter().rev()).take_while(same).count();
    let (common_old, old_tail) = common_old.split_at(common_old.len() - tail);
    let (common_new, new_tail) = common_new.split_at(common_new.len() - tail);
    keep(old_tail, new_tail);
    if common_old.len().max(common_new.len()) > MAX_COMPARED {
        return None;
    }
    let only = |side: &[(usize, usize)]| side.iter().map(|(number, _)| *number).collect::<Vec<_>>();
    for step in capture_diff_slices(Algorithm::Myers, &only(common_old), &only(common_new)) {
        if step.tag() == DiffTag::Equal {
            keep(&common_old[step.old_range()], &common_new[step.new_range()]);
        }
    }
    Some((is_gone, is_new))
}

/// Returns the line of a node.
fn line(node: &AccessibleNode, reference: Option<ElementReference>, origin: &str) -> String {
    let mut text = if is_field(node) && node.role == "generic" { "textbox".to_owned() } else { node.role.clone() };
    if !node.name.is_empty() {
        let _ = write!(text, " \"{}\"", quoted(&node.name));
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
        (state.checked == Some(CheckState::Checked), "checked"),
        (state.checked == Some(CheckState::Mixed), "partly checked"),
        (state.pressed == Some(CheckState::Checked), "pressed"),
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
        let _ = write!(text, " = \"{}\"", quoted(&node.value));
    }
    if let (Some(url), "link") = (&state.url, node.role.as_str()) {
        // The page's own address is shown above.
        let path = url.strip_prefix(origin).filter(|path| !origin.is_empty() && path.starts_with('/'));
        let address = path.unwrap_or(url);
        let _ = match address.char_indices().nth(MAX_ADDRESS) {
            Some((end, _)) => write!(text, " -> {}…", &address[..end]),
            None => write!(text, " -> {address}"),
        };
    }
    text
}

impl SnapshotLine {
    /// Returns the length in bytes, since characters of several bytes take more tokens, too.
    fn shown_length(&self) -> usize {
        self.depth * 2 + 3 + self.text.len()
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

    /// Creates a frame of these nodes.
    fn frame(document: &str, owner: Option<BackendNodeId>, nodes: &[Told<'_>]) -> FrameAccessibilityTree {
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
        FrameAccessibilityTree::read(document.into(), owner, &json!({"nodes": nodes}).to_string(), 100)
    }

    fn shop(checked: &str, late: bool) -> Vec<FrameAccessibilityTree> {
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
    fn a_snapshot_lists_frames_and_references_of_usable_elements() {
        let mut references = References::default();
        let snapshot = Snapshot::of(&shop("false", false), &mut references);
        assert_eq!(snapshot.text(10_000), (SHOP.to_owned(), 0));
        let button = snapshot.references().last().unwrap();
        assert_eq!(references.element(button), Some(&ElementNodeId { document: "d2".into(), node: 2 }));
        assert_eq!(Snapshot::of(&shop("false", false), &mut references), snapshot, "references stay");
    }

    #[test]
    fn a_short_text_lists_interactive_elements_first() {
        let snapshot = Snapshot::of(&shop("false", false), &mut References::default());
        let (text, left_out) = snapshot.text(230);
        assert!(text.contains("Pay now") && !text.contains("Hello"), "{text}");
        assert_eq!(text.lines().count() + left_out, SHOP.lines().count());
        assert_eq!(snapshot.text(0), (String::new(), SHOP.lines().count()));
    }

    #[test]
    fn a_snapshot_diff_lists_only_changed_lines() {
        let mut references = References::default();
        let mut at = |checked, late| Snapshot::of(&shop(checked, late), &mut references);
        let (before, after) = (at("false", false), at("true", true));
        assert_eq!(before.until(&before), SnapshotDiff::Nothing);
        let message = "    - now: checkbox \"Agree\" [e2] [checked]\n  - now: status \"Saved\"\n";
        assert_eq!(before.until(&after), SnapshotDiff::Lines(message.into()));
        assert_eq!(
            after.until(&before),
            SnapshotDiff::Lines("    - now: checkbox \"Agree\" [e2]\n  - gone: status \"Saved\"\n".into())
        );
        let other = Snapshot::of(&[frame("d3", None, &[("1", &[], "link", "Other", 1, json!({}))])], &mut references);
        assert_eq!(before.until(&other), SnapshotDiff::Mostly);
    }

    #[test]
    fn cyclic_and_very_deep_trees_produce_a_bounded_snapshot() {
        let circle = frame(
            "d",
            None,
            &[("1", &["1", "2"], "list", "", 1, json!({})), ("2", &["1"], "listitem", "x", 2, json!({}))],
        );
        assert_eq!(Snapshot::of(&[circle], &mut References::default()).text(100), ("- listitem \"x\"\n".into(), 0));
        let inner = frame("d2", Some(1), &[("1", &[], "Iframe", "", 1, json!({}))]);
        assert_eq!(
            Snapshot::of(&[inner.clone(), inner], &mut References::default()).lines.len(),
            2,
            "a frame in itself"
        );
        let names: Vec<String> = (0..50_000).map(|number: u32| number.to_string()).collect();
        let nodes: Vec<Value> = names.windows(2).map(|pair| {
            json!({"nodeId": pair[0], "childIds": [pair[1]], "role": {"value": "region"}, "name": {"value": "x"}})
        }).collect();
        let chain = FrameAccessibilityTree::read("d".into(), None, &json!({"nodes": nodes}).to_string(), 50_000);
        let snapshot = Snapshot::of(&[chain], &mut References::default());
        assert_eq!((snapshot.lines.len(), snapshot.is_cut), (MAX_LINES, true));
    }

    /// Returns the lines of a page with these nodes below its root.
    fn render(nodes: &[Told<'_>]) -> String {
        let below: Vec<&str> = nodes.iter().map(|node| node.0).filter(|id| !id.contains('.')).collect();
        let mut all = vec![("0", &*below, "RootWebArea", "", 1, json!({"is": {"url": "https://shop.example/list"}}))];
        all.extend(nodes.iter().cloned());
        Snapshot::of(&[frame("d", None, &all)], &mut References::default()).text(10_000).0
    }

    #[track_caller]
    fn check(nodes: &[Told<'_>], expected: &str) {
        assert_eq!(render(nodes), expected);
    }

    #[test]
    fn a_snapshot_omits_duplicate_texts_and_redundant_containers() {
        let none = json!({});
        check(
            &[
                ("1", &["1.1"], "list", "", 2, none.clone()),
                ("1.1", &["1.1.1"], "listitem", "", 3, none.clone()),
                ("1.1.1", &[], "link", "Home", 4, json!({"is": {"url": "https://shop.example/home"}})),
                ("2", &[], "list", "", 5, none.clone()),
            ],
            "- link \"Home\" [e1] -> /home\n",
        );
        check(
            &[
                ("1", &["1.1", "1.2", "1.3"], "row", "", 2, none.clone()),
                ("1.1", &["1.1.1", "1.1.2"], "cell", "#7 of May", 3, none.clone()),
                ("1.1.1", &["1.1.3"], "link", "#7", 4, json!({"is": {"url": "https://shop.example.org/7"}})),
                ("1.1.3", &[], "StaticText", "#7", 5, none.clone()),
                ("1.1.2", &[], "StaticText", "of May", 6, none.clone()),
                ("1.2", &["1.2.1"], "cell", "paid", 7, none.clone()),
                ("1.2.1", &[], "StaticText", "paid", 8, none.clone()),
                ("1.3", &[], "cell", "", 9, none.clone()),
            ],
            "- row\n  - link \"#7\" [e1] -> https://shop.example.org/7\n  - text: of May\n  - cell \"paid\"\n",
        );
        check(
            &[
                ("1", &[], "StaticText", "Name", 2, none.clone()),
                ("2", &["2.1"], "textbox", "Name", 3, json!({"value": "Ann"})),
                ("2.1", &[], "StaticText", "Ann", 4, none.clone()),
                ("3", &[], "checkbox", "The \"best\"", 5, none.clone()),
                ("4", &[], "StaticText", "The \"best\"", 6, none.clone()),
            ],
            "- textbox \"Name\" [e1] = \"Ann\"\n- checkbox \"The 'best'\" [e2]\n",
        );
    }

    #[test]
    fn focusable_generic_elements_are_listed_unless_they_only_wrap_a_control() {
        let focusable = json!({"is": {"focusable": true}});
        check(
            &[
                (
                    "1",
                    &["1.1"],
                    "generic",
                    "",
                    2,
                    json!({"value": "a b", "is": {"focusable": true, "editable": "richtext"}}),
                ),
                ("1.1", &["1.2"], "StaticText", "a", 3, json!({})),
                ("1.2", &[], "StaticText", "lost", 4, json!({})),
                ("2", &["2.1"], "generic", "", 5, focusable.clone()),
                ("2.1", &[], "StaticText", "Open", 6, json!({})),
                ("3", &["3.1"], "generic", "", 7, focusable.clone()),
                ("3.1", &[], "button", "In a box that scrolls", 8, json!({})),
            ],
            "- textbox [e1] = \"a b\"\n- generic [e2]\n  - text: Open\n- button \"In a box that scrolls\" [e3]\n",
        );
    }

    #[test]
    fn options_of_a_closed_list_are_listed_below_their_combobox() {
        let options: Vec<Told<'_>> =
            vec![("1.1", &["1.2"], "MenuListPopup", "", 3, json!({})), ("1.2", &[], "option", "Peru", 4, json!({}))];
        let mut nodes = vec![("1", &["1.1"] as &[&str], "combobox", "Country", 2, json!({"value": "Chile"}))];
        nodes.extend(options);
        nodes.push(("2", &[], "button", "Buy", 5, json!({})));
        let all = render(&nodes);
        assert_eq!(all, "- combobox \"Country\" [e1] = \"Chile\"\n  - option \"Peru\" [e2]\n- button \"Buy\" [e3]\n");
    }

    #[test]
    fn a_snapshot_diff_lists_moved_lines() {
        let mut references = References::default();
        let page = |order: [i64; 5], references: &mut References| {
            let nodes: Vec<(String, String)> = order.iter().map(|at| (at.to_string(), format!("Row {at}"))).collect();
            let ids: Vec<&str> = nodes.iter().map(|(id, _)| id.as_str()).collect();
            let mut all: Vec<Told<'_>> = vec![("0", &ids, "RootWebArea", "", 9, json!({}))];
            all.extend(
                nodes
                    .iter()
                    .zip(order)
                    .map(|((id, name), at)| (&**id, &[] as &[&str], "button", &**name, at, json!({}))),
            );
            Snapshot::of(&[frame("d", None, &all)], references)
        };
        let before = page([1, 2, 3, 4, 5], &mut references);
        let after = page([1, 4, 2, 3, 5], &mut references);
        assert_eq!(before.until(&after), SnapshotDiff::Lines("- now: button \"Row 4\" [e4]\n".into()));
    }

    proptest! {
        #[test]
        fn the_text_of_any_browser_answer_fits_its_size_limit(
            nodes in prop::collection::vec((0_u8..6, prop::collection::vec(0_u8..6, 0..4), 0_usize..8, ".{0,12}"), 0..12),
            room in 0_usize..400,
        ) {
            let roles = ["button", "StaticText", "Iframe", "main", "none", "heading", "", "textbox"];
            let nodes: Vec<Value> = nodes.into_iter().map(|(id, children, role, name)| {
                let children: Vec<String> = children.iter().map(u8::to_string).collect();
                json!({"nodeId": id.to_string(), "childIds": children, "role": {"value": roles[role]},
                    "name": {"value": name}, "backendDOMNodeId": id})
            }).collect();
            let answer = json!({"nodes": nodes}).to_string();
            let frame = FrameAccessibilityTree::read("d".into(), Some(1), &answer, 100);
            let snapshot = Snapshot::of(&[frame.clone(), frame], &mut References::default());
            let (text, left_out) = snapshot.text(room);
            prop_assert!(text.len() <= room);
            prop_assert_eq!(text.lines().count() + left_out, snapshot.lines.len());
        }

        #[test]
        fn every_named_interactive_element_has_exactly_one_line_and_reference(
            nodes in prop::collection::vec((0_usize..64, 0_usize..9, prop::bool::ANY), 1..64),
        ) {
            let roles = ["button", "link", "generic", "none", "cell", "row", "listitem", "textbox", "heading"];
            let mut children = vec![Vec::new(); nodes.len() + 1];
            for (place, (parent, ..)) in nodes.iter().enumerate() {
                children[parent % (place + 1)].push((place + 1).to_string());
            }
            let mut answer = vec![json!({"nodeId": "0", "childIds": children[0], "role": {"value": "RootWebArea"}})];
            answer.extend(nodes.iter().enumerate().map(|(place, (_, role, is_named))| {
                let name = if *is_named { format!("N{place}.") } else { String::new() };
                json!({"nodeId": (place + 1).to_string(), "childIds": children[place + 1], "role": {"value": roles[*role]},
                    "name": {"value": name}, "backendDOMNodeId": place, "ignored": roles[*role] == "none"})
            }));
            let frame = FrameAccessibilityTree::read("d".into(), None, &json!({"nodes": answer}).to_string(), 100);
            let snapshot = Snapshot::of(&[frame], &mut References::default());
            let (text, left_out) = snapshot.text(usize::MAX);
            prop_assert_eq!(left_out, 0);
            for (place, (_, role, is_named)) in nodes.iter().enumerate() {
                if *is_named && matches!(roles[*role], "button" | "link" | "textbox") {
                    let begin = format!("{} \"N{place}.\" [e", roles[*role]);
                    prop_assert_eq!(text.matches(&begin).count(), 1, "{}: {}", begin, text);
                }
            }
            let mut references: Vec<_> = snapshot.references().collect();
            references.sort_unstable();
            references.dedup();
            prop_assert_eq!(references.len(), snapshot.references().count());
            for line in &snapshot.lines {
                prop_assert!(!matches!(line.text.as_str(), "generic" | "none"), "{}", text);
            }
        }

        #[test]
        fn the_changed_lines_of_two_snapshots_form_a_minimal_diff(
            old in prop::collection::vec(0_u8..12, 0..24),
            new in prop::collection::vec(0_u8..12, 0..24),
        ) {
            let lines = |texts: &[u8]| -> Vec<SnapshotLine> {
                let line = |text: &u8| SnapshotLine {
                    depth: 0,
                    reference: None,
                    is_interactive: false,
                    is_heading: false,
                    text: text.to_string(),
                };
                texts.iter().map(line).collect()
            };
            let (old, new) = (lines(&old), lines(&new));
            let (is_gone, is_new) = differing(&old, &new).unwrap();
            let kept = |lines: &[SnapshotLine], changed: &[bool]| -> Vec<SnapshotLine> {
                lines.iter().zip(changed).filter(|(_, changed)| !**changed).map(|(line, _)| line.clone()).collect()
            };
            let (old_kept, new_kept) = (kept(&old, &is_gone), kept(&new, &is_new));
            prop_assert_eq!(&old_kept, &new_kept);
            let least: usize = capture_diff_slices(Algorithm::Myers, &old, &new)
                .iter().filter(|step| step.tag() == DiffTag::Equal).map(|step| step.old_range().len()).sum();
            prop_assert_eq!(old_kept.len(), least, "no more is told than has to be");
        }
    }
}
