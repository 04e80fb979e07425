//! The parser with limits: elements that are too deep or too many do not reach the builder of the tree.

use super::{MAX_DEPTH, MAX_NODES, NodeId, PageTree, sink::Sink};
use html5ever::{
    LocalName,
    buffer_queue::BufferQueue,
    interface::{Tracer, TreeSink},
    tendril::StrTendril,
    tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts},
    tree_builder::{TreeBuilder, TreeBuilderOpts},
};
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
};

/// Elements without content, or with nothing but text: they do not nest, and the tokenizer must see them.
const FLAT: [&str; 26] = [
    "area",
    "base",
    "br",
    "col",
    "embed",
    "hr",
    "iframe",
    "img",
    "input",
    "link",
    "meta",
    "noembed",
    "noframes",
    "param",
    "plaintext",
    "script",
    "source",
    "style",
    "textarea",
    "title",
    "track",
    "wbr",
    "xmp",
    "frame",
    "keygen",
    "bgsound",
];

/// Parses a text into a tree.
pub(super) fn parse(text: &str) -> PageTree {
    let builder = TreeBuilder::new(
        Sink::new(),
        TreeBuilderOpts { scripting_enabled: false, drop_doctype: true, ..TreeBuilderOpts::default() },
    );
    let bounded =
        TokenFilter { builder, counted: Cell::new((0, 0)), left_out: RefCell::default(), is_cut: Cell::new(false) };
    let tokenizer = Tokenizer::new(bounded, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(text));
    // The tokenizer stops at the end of each script, for browsers that run scripts.
    while !input.is_empty() {
        let _ = tokenizer.feed(&input);
    }
    tokenizer.end();
    let TokenFilter { builder, is_cut, .. } = tokenizer.sink;
    let mut tree = builder.sink.finish();
    tree.is_cut = is_cut.get();
    tree
}

/// Filters the tokens between the tokenizer and the builder.
struct TokenFilter {
    builder: TreeBuilder<NodeId, Sink>,
    /// Number of open elements at the last count, and number of elements created by then.
    counted: Cell<(usize, usize)>,
    /// Number of skipped start tags by name whose end tags are still to come.
    left_out: RefCell<HashMap<LocalName, usize>>,
    is_cut: Cell<bool>,
}

impl TokenSink for TokenFilter {
    type Handle = NodeId;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<NodeId> {
        let is_left_out = match &token {
            Token::EOFToken => false,
            _ if self.builder.sink.len() > MAX_NODES => {
                self.is_cut.set(true);
                true
            }
            Token::TagToken(tag) => match tag.kind {
                TagKind::StartTag => self.leaves_out(tag),
                TagKind::EndTag => self.is_end_of_left_out(&tag.name),
            },
            _ => false,
        };
        if is_left_out { TokenSinkResult::Continue } else { self.builder.process_token(token, line) }
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

impl TokenFilter {
    /// Returns `true` if the start tag of an element is skipped, because it is too deep, and records the tag so that
    /// its end tag is skipped as well.
    fn leaves_out(&self, tag: &Tag) -> bool {
        let is_flat = FLAT.contains(&&*tag.name);
        // In SVG even these nest.
        let most = if is_flat { 2 * MAX_DEPTH } else { MAX_DEPTH };
        let is_too_deep = self.depth_at_most() >= most && self.depth() >= most;
        if is_too_deep && !is_flat && !tag.self_closing {
            *self.left_out.borrow_mut().entry(tag.name.clone()).or_default() += 1;
        }
        is_too_deep
    }

    fn is_end_of_left_out(&self, name: &LocalName) -> bool {
        match self.left_out.borrow_mut().get_mut(name) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }

    /// Returns a cheap upper bound: each element created since the last count may be open.
    fn depth_at_most(&self) -> usize {
        let (depth, made) = self.counted.get();
        depth + self.builder.sink.elements() - made
    }

    /// Counts what the builder holds: open elements, and formatting elements that it would reopen.
    fn depth(&self) -> usize {
        let count = OpenElementCounter::default();
        self.builder.trace_handles(&count);
        self.counted.set((count.0.get(), self.builder.sink.elements()));
        count.0.get()
    }
}

#[derive(Default)]
struct OpenElementCounter(Cell<usize>);

impl Tracer for OpenElementCounter {
    type Handle = NodeId;

    fn trace_handle(&self, _: &NodeId) {
        self.0.set(self.0.get() + 1);
    }
}
