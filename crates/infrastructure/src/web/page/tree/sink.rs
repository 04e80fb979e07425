//! The part of the tree that the parser writes to.

use super::{HtmlElement, Node, NodeData, NodeId, PageTree};
use html5ever::{
    Attribute, LocalName, Namespace, QualName,
    interface::{ElemName, ElementFlags, NodeOrText, QuirksMode, TreeSink},
    tendril::StrTendril,
};
use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
};

/// A tree that is being built.
pub(super) struct Sink {
    nodes: RefCell<Vec<Node>>,
    elements: Cell<usize>,
}

/// A copy of a name, because the nodes are behind a `RefCell`.
#[derive(Debug)]
pub(super) struct ElementName(QualName);

impl ElemName for ElementName {
    fn ns(&self) -> &Namespace {
        &self.0.ns
    }

    fn local_name(&self) -> &LocalName {
        &self.0.local
    }
}

impl Sink {
    pub(super) fn new() -> Self {
        Self { nodes: RefCell::new(vec![Node::default()]), elements: Cell::new(0) }
    }

    /// Returns the number of nodes so far.
    pub(super) fn len(&self) -> usize {
        self.nodes.borrow().len()
    }

    /// Returns the number of elements created so far.
    pub(super) fn elements(&self) -> usize {
        self.elements.get()
    }

    fn add(&self, content: NodeData) -> NodeId {
        let mut nodes = self.nodes.borrow_mut();
        let id = NodeId(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
        nodes.push(Node { content, ..Node::default() });
        id
    }

    fn with<T>(&self, node: NodeId, change: impl FnOnce(&mut Node) -> T) -> T {
        change(&mut self.nodes.borrow_mut()[node.0 as usize])
    }

    /// Appends to a text node; returns `false` if the node is not one.
    fn adds_text(&self, node: Option<NodeId>, more: &StrTendril) -> bool {
        node.is_some_and(|node| {
            self.with(node, |node| match &mut node.content {
                NodeData::Text(text) => {
                    text.push_tendril(more);
                    true
                }
                _ => false,
            })
        })
    }

    fn detach(&self, id: NodeId) {
        let (parent, previous, next) =
            self.with(id, |node| (node.parent.take(), node.previous.take(), node.next.take()));
        match previous {
            Some(previous) => self.with(previous, |node| node.next = next),
            None => parent.into_iter().for_each(|parent| self.with(parent, |node| node.first = next)),
        }
        match next {
            Some(next) => self.with(next, |node| node.previous = previous),
            None => parent.into_iter().for_each(|parent| self.with(parent, |node| node.last = previous)),
        }
    }

    fn append_node(&self, parent: NodeId, child: NodeId) {
        self.detach(child);
        let last = self.with(parent, |node| {
            let last = node.last.replace(child);
            node.first.get_or_insert(child);
            last
        });
        if let Some(last) = last {
            self.with(last, |node| node.next = Some(child));
        }
        self.with(child, |node| (node.parent, node.previous) = (Some(parent), last));
    }

    fn insert_before(&self, sibling: NodeId, child: NodeId) {
        self.detach(child);
        let (parent, previous) = self.with(sibling, |node| (node.parent, node.previous.replace(child)));
        match previous {
            Some(previous) => self.with(previous, |node| node.next = Some(child)),
            None => parent.into_iter().for_each(|parent| self.with(parent, |node| node.first = Some(child))),
        }
        self.with(child, |node| (node.parent, node.previous, node.next) = (parent, previous, Some(sibling)));
    }
}

impl TreeSink for Sink {
    type Handle = NodeId;
    type Output = PageTree;
    type ElemName<'a> = ElementName;

    fn finish(self) -> PageTree {
        PageTree { nodes: self.nodes.into_inner(), ..PageTree::default() }
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> NodeId {
        NodeId(0)
    }

    fn elem_name<'a>(&'a self, target: &'a NodeId) -> ElementName {
        self.with(*target, |node| match &node.content {
            NodeData::Element(element) => ElementName(element.name.clone()),
            _ => ElementName(QualName::new(None, Namespace::default(), LocalName::default())),
        })
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, flags: ElementFlags) -> NodeId {
        self.elements.set(self.elements.get() + 1);
        let template = flags.template.then(|| self.add(NodeData::Nothing));
        let is_integration_point = flags.mathml_annotation_xml_integration_point;
        self.add(NodeData::Element(Box::new(HtmlElement { name, attributes, template, is_integration_point })))
    }

    fn create_comment(&self, _: StrTendril) -> NodeId {
        self.add(NodeData::Nothing)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> NodeId {
        self.add(NodeData::Nothing)
    }

    fn append(&self, parent: &NodeId, child: NodeOrText<NodeId>) {
        match child {
            NodeOrText::AppendNode(child) => self.append_node(*parent, child),
            NodeOrText::AppendText(text) => {
                if !self.adds_text(self.with(*parent, |node| node.last), &text) {
                    let child = self.add(NodeData::Text(text));
                    self.append_node(*parent, child);
                }
            }
        }
    }

    fn append_based_on_parent_node(&self, element: &NodeId, previous: &NodeId, child: NodeOrText<NodeId>) {
        if self.with(*element, |node| node.parent).is_some() {
            self.append_before_sibling(element, child);
        } else {
            self.append(previous, child);
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, target: &NodeId) -> NodeId {
        let template = self.with(*target, |node| match &node.content {
            NodeData::Element(element) => element.template,
            _ => None,
        });
        template.unwrap_or(*target)
    }

    fn same_node(&self, one: &NodeId, other: &NodeId) -> bool {
        one == other
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &NodeId, child: NodeOrText<NodeId>) {
        match child {
            NodeOrText::AppendNode(child) => self.insert_before(*sibling, child),
            NodeOrText::AppendText(text) => {
                if !self.adds_text(self.with(*sibling, |node| node.previous), &text) {
                    let child = self.add(NodeData::Text(text));
                    self.insert_before(*sibling, child);
                }
            }
        }
    }

    fn add_attrs_if_missing(&self, target: &NodeId, attributes: Vec<Attribute>) {
        self.with(*target, |node| {
            if let NodeData::Element(element) = &mut node.content {
                for attribute in attributes {
                    if !element.attributes.iter().any(|known| known.name == attribute.name) {
                        element.attributes.push(attribute);
                    }
                }
            }
        });
    }

    fn remove_from_parent(&self, target: &NodeId) {
        self.detach(*target);
    }

    fn reparent_children(&self, node: &NodeId, new_parent: &NodeId) {
        while let Some(child) = self.with(*node, |node| node.first) {
            self.append_node(*new_parent, child);
        }
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &NodeId) -> bool {
        self.with(*handle, |node| match &node.content {
            NodeData::Element(element) => element.is_integration_point,
            _ => false,
        })
    }
}
