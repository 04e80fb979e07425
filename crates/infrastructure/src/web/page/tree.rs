//! A page as a tree: nodes in one list, parsed as in browsers, with limits of depth and number.
//!
//! Pages are hostile: parse them only in a helper process, and walk without recursion.

mod limited_parser;
mod sink;
pub(super) mod visible;

use crate::visible_text::VisibleText;
use crate::web::charset;
use html5ever::{Attribute, QualName, tendril::StrTendril};
use std::{fmt, iter};

/// Maximum depth of an element. Browsers have such a limit, too; without it the parser's time grows with the square of
/// the depth.
const MAX_DEPTH: usize = 512;
/// Maximum number of nodes of a tree; the rest of a larger page is missing.
const MAX_NODES: usize = 400_000;

/// Attributes whose values are shown.
const SHOWN_ATTRIBUTES: [&str; 7] = ["alt", "alttext", "aria-label", "label", "name", "title", "value"];

/// Tree of a page.
#[derive(Default)]
pub struct PageTree {
    nodes: Vec<Node>,
    is_cut: bool,
    removed: usize,
}

/// A node of one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeId(u32);

#[derive(Default)]
struct Node {
    parent: Option<NodeId>,
    previous: Option<NodeId>,
    next: Option<NodeId>,
    first: Option<NodeId>,
    last: Option<NodeId>,
    content: NodeData,
}

#[derive(Default)]
enum NodeData {
    /// The document, a comment, or the content of a template.
    #[default]
    Nothing,
    Text(StrTendril),
    Element(Box<HtmlElement>),
}

struct HtmlElement {
    name: QualName,
    attributes: Vec<Attribute>,
    template: Option<NodeId>,
    is_integration_point: bool,
}

/// Parses a page. `charset` is that of the response; a byte order mark takes precedence over it, and it over the page's
/// own declaration.
///
/// Any bytes result in a tree. Elements beyond the depth of browsers are skipped, and nodes beyond the limit are
/// missing ([`PageTree::is_cut`]). Invisible characters of its text are removed.
pub fn parse(bytes: &[u8], charset: Option<&str>) -> PageTree {
    let mut tree = parse_as_is(bytes, charset);
    tree.clean();
    tree
}

/// Parses a page as [`parse`] does, but keeps the invisible characters of its text, for callers that report their
/// number.
pub(crate) fn parse_as_is(bytes: &[u8], charset: Option<&str>) -> PageTree {
    limited_parser::parse(&charset::decode(bytes, charset).text)
}

/// Parses a decoded text, as [`parse`] does.
pub(super) fn parse_text(text: &str) -> PageTree {
    let mut tree = limited_parser::parse(text);
    tree.clean();
    tree
}

fn clean(text: &mut StrTendril, removed: &mut usize) {
    if let Some(seen) = VisibleText::of(text) {
        *removed += seen.removed;
        *text = seen.text.into();
    }
}

/// A step of a walk over a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkEvent {
    /// A node begins; its children follow, unless they are skipped.
    Enter(NodeId),
    /// A node ends, after its children.
    Leave(NodeId),
}

impl PageTree {
    /// Returns the document itself.
    pub fn root(&self) -> NodeId {
        NodeId(0)
    }

    /// Returns `true` if the page had more nodes than the limit, so that its end is missing.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the number of invisible characters that were removed from its text.
    pub(super) fn removed(&self) -> usize {
        self.removed
    }

    /// Removes invisible characters from all shown text.
    fn clean(&mut self) {
        for index in 0..self.nodes.len() {
            let parent = self.nodes[index].parent;
            let is_program = parent.is_some_and(|parent| matches!(self.tag(parent), Some("script" | "style")));
            let mut removed = 0;
            match &mut self.nodes[index].content {
                NodeData::Text(text) => clean(text, &mut removed),
                NodeData::Element(element) => {
                    let shown = |attribute: &&mut Attribute| SHOWN_ATTRIBUTES.contains(&&*attribute.name.local);
                    element.attributes.iter_mut().filter(shown).for_each(|one| clean(&mut one.value, &mut removed));
                }
                _ => {}
            }
            self.removed += if is_program { 0 } else { removed };
        }
    }

    /// Returns the name of an element of HTML in lower case; `None` for other nodes, and "" for elements of SVG and
    /// MathML other than `svg` and `math`.
    pub fn tag(&self, node: NodeId) -> Option<&str> {
        let NodeData::Element(element) = &self.node(node).content else { return None };
        let name = &*element.name.local;
        match &*element.name.ns {
            "http://www.w3.org/1999/xhtml" => Some(name),
            _ if matches!(name, "svg" | "math") => Some(name),
            _ => Some(""),
        }
    }

    /// Returns the name of an element in any namespace.
    pub(super) fn local_name(&self, node: NodeId) -> Option<&str> {
        match &self.node(node).content {
            NodeData::Element(element) => Some(&*element.name.local),
            _ => None,
        }
    }

    /// Returns an attribute of an element.
    pub fn attribute(&self, node: NodeId, name: &str) -> Option<&str> {
        let NodeData::Element(element) = &self.node(node).content else { return None };
        element.attributes.iter().find(|attribute| &*attribute.name.local == name).map(|attribute| &*attribute.value)
    }

    /// Returns the attributes of an element, in their order.
    pub(super) fn attributes(&self, node: NodeId) -> impl Iterator<Item = (&str, &str)> {
        let attributes = match &self.node(node).content {
            NodeData::Element(element) => &element.attributes[..],
            _ => &[],
        };
        attributes.iter().map(|attribute| (&*attribute.name.local, &*attribute.value))
    }

    /// Returns the text of a text node.
    pub fn text(&self, node: NodeId) -> Option<&str> {
        match &self.node(node).content {
            NodeData::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns `true` if the class attribute names a class that contains this text.
    pub fn has_class(&self, node: NodeId, word: &str) -> bool {
        self.attribute(node, "class")
            .is_some_and(|classes| classes.split_ascii_whitespace().any(|it| it.contains(word)))
    }

    /// Returns the elements with this tag, in the order of the document, one of whose classes contains `class`; ""
    /// matches all.
    pub fn select<'a>(&'a self, below: NodeId, tag: &'a str, class: &'a str) -> impl Iterator<Item = NodeId> + 'a {
        self.descendants(below).filter(move |node| {
            self.tag(*node).is_some_and(|name| tag.is_empty() || name == tag)
                && (class.is_empty() || self.has_class(*node, class))
        })
    }

    /// Returns the text below a node as a reader sees it: without scripts and hidden parts, on one line.
    pub fn text_of(&self, node: NodeId) -> String {
        let mut text = String::new();
        let mut walk = self.walk(node);
        while let Some(step) = walk.next() {
            let WalkEvent::Enter(node) = step else { continue };
            match self.text(node) {
                Some(part) => text.push_str(part),
                None if visible::is_left_out(self, node) => walk.pass_over(node),
                None if self.tag(node).is_some_and(visible::is_block) || self.tag(node) == Some("br") => {
                    text.push(' ');
                }
                None => {}
            }
        }
        super::characters::with_single_spaces(&text)
    }

    /// Returns the parent of a node.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.node(node).parent
    }

    /// Returns the children of a node.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        iter::successors(self.node(node).first, |child| self.node(*child).next)
    }

    /// Returns the node's descendants, in the order of the document.
    pub fn descendants(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.walk(node).filter_map(move |step| match step {
            WalkEvent::Enter(entered) if entered != node => Some(entered),
            _ => None,
        })
    }

    /// Walks over a node and everything below it.
    pub(super) fn walk(&self, node: NodeId) -> TreeWalk<'_> {
        TreeWalk { tree: self, end: node, next: Some(WalkEvent::Enter(node)) }
    }

    fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node.0 as usize]
    }
}

/// Iterator over a tree that needs neither recursion nor a stack.
pub(super) struct TreeWalk<'a> {
    tree: &'a PageTree,
    end: NodeId,
    next: Option<WalkEvent>,
}

impl TreeWalk<'_> {
    /// Skips the content of the node that was entered last. The next event is that the node is left.
    pub(super) fn pass_over(&mut self, entered: NodeId) {
        self.next = Some(WalkEvent::Leave(entered));
    }
}

impl Iterator for TreeWalk<'_> {
    type Item = WalkEvent;

    fn next(&mut self) -> Option<WalkEvent> {
        let step = self.next?;
        self.next = match step {
            WalkEvent::Enter(node) => Some(self.tree.node(node).first.map_or(WalkEvent::Leave(node), WalkEvent::Enter)),
            WalkEvent::Leave(node) if node == self.end => None,
            WalkEvent::Leave(node) => {
                let node = self.tree.node(node);
                node.next.map(WalkEvent::Enter).or(node.parent.map(WalkEvent::Leave))
            }
        };
        Some(step)
    }
}

impl fmt::Debug for PageTree {
    /// Omits the nodes: there may be hundreds of thousands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageTree").field("nodes", &self.nodes.len()).field("is_cut", &self.is_cut).finish()
    }
}
