//! A page as text without markup.

use super::{
    LITTLE_TEXT, Link, MAX_LINKS, MAX_NAME, Page,
    addresses::LinkResolver,
    characters, has_text,
    numbers::ListCounter,
    tree::{
        NodeId, PageTree, WalkEvent,
        visible::{is_block, is_left_out},
    },
};
use std::collections::HashSet;
use url::Url;

/// Maximum number of indented levels of lists.
const MAX_INDENT: usize = 12;

/// Format of a link's address after its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkStyle {
    /// `text (url)`.
    #[default]
    Parentheses,
    /// `text url`: terminals would include a closing parenthesis in the address.
    Space,
}

/// Returns the text below a node: paragraphs on lines of their own, items after dashes or numbers, cells separated by
/// tabs, links with their absolute addresses. For parsers in a helper process.
pub fn text_below(tree: &PageTree, node: NodeId, page: &Url, links: LinkStyle) -> String {
    render_page(tree, node, &LinkResolver::at(page), RenderOptions { links, most: usize::MAX, shows_noscript: false })
        .text
}

/// Returns the whole page as text of at most `most` bytes. If that has little text, the contents of `noscript` are
/// included.
pub(super) fn page(tree: &PageTree, addresses: &LinkResolver, most: usize) -> Page {
    let options = RenderOptions { links: LinkStyle::Parentheses, most, shows_noscript: false };
    let page = render_page(tree, tree.root(), addresses, options);
    if has_text(&page.text, LITTLE_TEXT) {
        return page;
    }
    render_page(tree, tree.root(), addresses, RenderOptions { shows_noscript: true, ..options })
}

#[derive(Clone, Copy)]
struct RenderOptions {
    links: LinkStyle,
    most: usize,
    shows_noscript: bool,
}

fn render_page(tree: &PageTree, node: NodeId, addresses: &LinkResolver, options: RenderOptions) -> Page {
    let mut writer = PlainTextWriter::new(tree, addresses, options);
    let mut walk = tree.walk(node);
    while let Some(step) = walk.next() {
        if writer.text.len() > options.most {
            break;
        }
        match step {
            WalkEvent::Enter(node) => {
                if !writer.enter(node) {
                    walk.pass_over(node);
                    walk.next();
                }
            }
            WalkEvent::Leave(node) => writer.leave(node),
        }
    }
    writer.finish()
}

struct PlainTextWriter<'a> {
    tree: &'a PageTree,
    addresses: &'a LinkResolver,
    options: RenderOptions,
    text: String,
    /// Number of line breaks before the next text.
    breaks: usize,
    has_space: bool,
    /// Start of the text of the row's last cell.
    cell: Option<usize>,
    /// Number of open `pre` elements.
    verbatim: usize,
    /// Numbers of each open list; `None` for dashes.
    lists: Vec<Option<ListCounter>>,
    /// End of the marker of the last item.
    marker: Option<usize>,
    /// Start of the text of each open link.
    open_links: Vec<usize>,
    links: Vec<Link>,
    known: HashSet<String>,
}

impl<'a> PlainTextWriter<'a> {
    fn new(tree: &'a PageTree, addresses: &'a LinkResolver, options: RenderOptions) -> Self {
        Self {
            tree,
            addresses,
            options,
            text: String::new(),
            breaks: 0,
            has_space: false,
            cell: None,
            verbatim: 0,
            lists: Vec::new(),
            marker: None,
            open_links: Vec::new(),
            links: Vec::new(),
            known: HashSet::new(),
        }
    }

    /// Begins a node; returns `false` if the content is skipped.
    fn enter(&mut self, node: NodeId) -> bool {
        if let Some(text) = self.tree.text(node) {
            self.add(text);
            return true;
        }
        let Some(tag) = self.tree.tag(node) else { return true };
        if is_left_out(self.tree, node) || tag == "noscript" && !self.options.shows_noscript {
            return false;
        }
        match tag {
            "svg" | "select" | "object" | "iframe" | "audio" | "video" => return false,
            "br" => self.breaks = (self.breaks + 1).min(2),
            "img" => self.add(&characters::on_one_line(self.tree.attribute(node, "alt").unwrap_or_default())),
            "a" => {
                self.settle();
                self.open_links.push(self.text.len());
            }
            "pre" => {
                self.line(tag);
                self.verbatim += 1;
            }
            "ul" | "ol" | "menu" | "dir" => {
                self.line(if self.lists.is_empty() { "p" } else { tag });
                self.lists.push((tag == "ol").then(|| ListCounter::of(self.tree, node)));
            }
            "li" => {
                self.line(tag);
                let indent = "  ".repeat(self.lists.len().clamp(1, MAX_INDENT) - 1);
                let marker = match self.lists.last_mut() {
                    Some(Some(numbers)) => format!("{indent}{}. ", numbers.next(self.tree, node)),
                    _ => format!("{indent}- "),
                };
                self.settle();
                self.text.push_str(&marker);
                self.marker = Some(self.text.len());
            }
            "tr" => {
                self.cell = None;
                self.line(tag);
            }
            "td" | "th" => self.begin_cell(),
            tag if is_block(tag) => self.line(tag),
            _ => {}
        }
        true
    }

    fn leave(&mut self, node: NodeId) {
        let Some(tag) = self.tree.tag(node) else { return };
        match tag {
            "a" => self.end_link(node),
            "pre" => {
                self.verbatim = self.verbatim.saturating_sub(1);
                self.line(tag);
            }
            "ul" | "ol" | "menu" | "dir" => {
                self.lists.pop();
                self.line(if self.lists.is_empty() { "p" } else { tag });
            }
            "td" | "th" => {}
            "table" => {
                self.cell = None;
                self.line(tag);
            }
            tag if is_block(tag) => self.line(tag),
            _ => {}
        }
    }

    /// Begins a cell, after a tab if it is not the first.
    fn begin_cell(&mut self) {
        if let Some(start) = self.cell {
            if self.text.len() == start {
                // An empty cell still occupies its column.
                self.settle();
            }
            (self.breaks, self.has_space) = (0, false);
            self.text.truncate(self.text.trim_end_matches(' ').len());
            self.text.push('\t');
        }
        self.cell = Some(self.text.len());
    }

    /// Separates the next text from the previous one, as the element requires.
    fn line(&mut self, tag: &str) {
        // The first line of an item follows its marker directly, except for the marker of a nested item.
        if self.marker == Some(self.text.len()) && tag != "li" {
            return;
        }
        let parts =
            matches!(tag, "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "blockquote" | "pre" | "table" | "hr");
        self.breaks = self.breaks.max(if parts { 2 } else { 1 });
    }

    /// Writes the pending line breaks or the space before the next text.
    fn settle(&mut self) {
        if self.breaks > 0 {
            self.text.truncate(self.text.trim_end().len());
            if !self.text.is_empty() {
                self.text.extend(std::iter::repeat_n('\n', self.breaks));
            }
        } else if self.has_space && !self.text.is_empty() && !self.text.ends_with(char::is_whitespace) {
            self.text.push(' ');
        }
        (self.breaks, self.has_space) = (0, false);
    }

    fn add(&mut self, text: &str) {
        if self.verbatim > 0 {
            self.settle();
            self.text.push_str(text);
            return;
        }
        for (index, word) in text.split(char::is_whitespace).enumerate() {
            self.has_space |= index > 0;
            if !word.is_empty() {
                self.settle();
                self.text.push_str(word);
            }
        }
    }

    fn end_link(&mut self, node: NodeId) {
        let Some(start) = self.open_links.pop() else { return };
        let href = self.tree.attribute(node, "href").unwrap_or_default();
        let Some(url) = self.addresses.of_link(href) else {
            // Signs that link to their own heading.
            if self.text.get(start..).is_some_and(|label| matches!(label.trim(), "¶" | "§" | "#" | "🔗")) {
                self.text.truncate(start);
            }
            return;
        };
        if self.verbatim > 0 {
            return;
        }
        let label = self.text.get(start..).unwrap_or_default().trim().to_owned();
        let is_its_own_text =
            [url.as_str(), href.trim(), url.strip_prefix("mailto:").unwrap_or(&url)].contains(&label.as_str());
        if self.links.len() < MAX_LINKS && self.known.insert(url.clone()) {
            let text = characters::shortened(characters::on_one_line(&label), MAX_NAME);
            self.links.push(Link { text, url: url.clone() });
        }
        if is_its_own_text {
            return;
        }
        let shown = match (label.is_empty(), self.options.links) {
            (true, _) => url,
            (false, LinkStyle::Parentheses) => format!(" ({url})"),
            (false, LinkStyle::Space) => format!(" {url}"),
        };
        // Line breaks of blocks in the link follow its address.
        let (breaks, has_space) = (self.breaks, self.has_space);
        if label.is_empty() {
            self.settle();
        }
        self.text.push_str(&shown);
        (self.breaks, self.has_space) = if label.is_empty() { (0, false) } else { (breaks, has_space) };
    }

    fn finish(mut self) -> Page {
        let mut notes = Vec::new();
        if self.text.len() > self.options.most {
            self.text.truncate(self.text.floor_char_boundary(self.options.most));
            notes.push("the text of the page is too long, and its end is missing".to_owned());
        }
        let lines: Vec<&str> = self.text.lines().map(str::trim_end).collect();
        let text = lines.join("\n").trim_matches('\n').to_owned();
        Page { text, links: self.links, notes, ..Page::default() }
    }
}
