//! Converts a page to Markdown: one walk over its tree, without recursion.

mod code;
mod inline;
mod lines;
mod table;

use super::{
    Heading, LITTLE_TEXT, Link, MAX_HEADINGS, MAX_LINKS, MAX_NAME, Page,
    addresses::LinkResolver,
    characters, has_text,
    numbers::ListCounter,
    tree::{
        NodeId, PageTree, WalkEvent,
        visible::{is_block, is_left_out},
    },
};
use inline::{InlineWriter, LinkTarget, Mark, escaped_start};
use lines::{Gap, MarkdownWriter};
use std::collections::HashSet;
use table::Table;

/// Maximum number of shown options of a list of choices.
const MAX_OPTIONS: usize = 20;

/// Returns the whole tree as Markdown of at most `most` bytes. If that has little text, the contents of `noscript` are
/// included.
pub(super) fn page(tree: &PageTree, addresses: &LinkResolver, most: usize) -> Page {
    let page = written(tree, addresses, most, false);
    if has_text(&page.text, LITTLE_TEXT) {
        return page;
    }
    written(tree, addresses, most, true)
}

fn written(tree: &PageTree, addresses: &LinkResolver, most: usize, shows_noscript: bool) -> Page {
    let mut writer = MarkdownRenderer {
        tree,
        addresses,
        shows_noscript,
        data_tables: table::data_tables(tree),
        lines: MarkdownWriter::new(most),
        inline: InlineWriter::default(),
        lists: Vec::new(),
        table: None,
        is_in_cell: false,
        undo: Vec::new(),
        outline: Vec::new(),
        is_in_heading: false,
    };
    let mut walk = tree.walk(tree.root());
    while let Some(step) = walk.next() {
        if writer.is_full(most) {
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
    writer.finish(most)
}

struct MarkdownRenderer<'a> {
    tree: &'a PageTree,
    addresses: &'a LinkResolver,
    shows_noscript: bool,
    data_tables: HashSet<NodeId>,
    lines: MarkdownWriter,
    inline: InlineWriter,
    lists: Vec<List>,
    /// Table that is being read.
    table: Option<Table>,
    is_in_cell: bool,
    /// Steps to perform at the ends of the open elements.
    undo: Vec<(NodeId, ClosingStep)>,
    outline: Vec<Heading>,
    is_in_heading: bool,
}

#[derive(Debug)]
struct List {
    /// `None` for dashes.
    numbers: Option<ListCounter>,
    has_items: bool,
}

/// A step at the end of an element.
#[derive(Debug)]
enum ClosingStep {
    Mark,
    Prefix,
    List,
    Heading(u8),
    Cell,
    Table,
    Quoted,
    Parenthesis,
}

impl MarkdownRenderer<'_> {
    /// Returns `true` if the limit of text is reached.
    fn is_full(&self, most: usize) -> bool {
        self.lines.is_cut() || self.inline.len() > most || self.table.as_ref().is_some_and(|table| table.len() > most)
    }

    /// Begins a node; returns `false` if the content is skipped.
    fn enter(&mut self, node: NodeId) -> bool {
        if let Some(text) = self.tree.text(node) {
            self.inline.add(text);
            return true;
        }
        let Some(tag) = self.tree.tag(node) else { return true };
        if tag == "script" {
            self.formula_of_script(node);
        }
        if is_left_out(self.tree, node) || tag == "noscript" && !self.shows_noscript {
            return false;
        }
        if self.table.is_some() {
            if let Some(goes_on) = self.enter_in_table(node, tag) {
                return goes_on;
            }
        } else if is_block(tag) {
            if !self.is_in_heading {
                return self.enter_block(node, tag);
            }
            self.inline.space();
        }
        self.enter_inline(node, tag)
    }

    fn leave(&mut self, node: NodeId) {
        while let Some((_, undo)) = self.undo.pop_if(|(of, _)| *of == node) {
            self.end(node, undo);
        }
        let Some(tag) = self.tree.tag(node).filter(|tag| is_block(tag)) else { return };
        if self.is_in_heading || self.is_in_cell {
            self.inline.space();
        } else if self.table.is_none() {
            self.paragraph();
            // Text after a list in an item does not belong to the last item of that list.
            let is_loose = self.is_loose(tag) || is_list(tag);
            self.lines.part(if is_loose { Gap::Blank } else { Gap::Line });
        }
    }

    fn end(&mut self, node: NodeId, undo: ClosingStep) {
        match undo {
            ClosingStep::Mark => self.inline.close(),
            ClosingStep::Prefix => {
                self.paragraph();
                self.lines.end();
            }
            ClosingStep::List => {
                self.paragraph();
                self.lists.pop();
            }
            ClosingStep::Heading(level) => self.heading(level),
            ClosingStep::Cell => {
                self.is_in_cell = false;
                let text = self.inline.take().split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
                let text = text.trim_end_matches(';').to_owned();
                let span =
                    |name| self.tree.attribute(node, name).and_then(|span| span.trim().parse().ok()).unwrap_or(1);
                let is_head = self.tree.tag(node) == Some("th");
                if let Some(table) = &mut self.table {
                    table.add(text, is_head, span("colspan"), span("rowspan"));
                }
            }
            ClosingStep::Table => {
                for (index, line) in self.table.take().map(Table::lines).unwrap_or_default().into_iter().enumerate() {
                    self.lines.part(if index == 0 { Gap::Blank } else { Gap::Line });
                    self.lines.write(&line);
                }
            }
            ClosingStep::Quoted => self.inline.add_markdown("”"),
            ClosingStep::Parenthesis => self.inline.add_markdown(")"),
        }
    }

    /// Returns `true` if an empty line precedes and follows a block.
    fn is_loose(&self, tag: &str) -> bool {
        match tag {
            "li" | "dt" | "dd" | "tr" | "td" | "th" | "tbody" | "thead" | "tfoot" | "option" | "optgroup" => false,
            tag => !is_list(tag) || self.lists.is_empty(),
        }
    }

    fn enter_block(&mut self, node: NodeId, tag: &str) -> bool {
        self.paragraph();
        if self.is_loose(tag) {
            self.lines.part(Gap::Blank);
        }
        match tag {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.is_in_heading = true;
                self.undo.push((node, ClosingStep::Heading(tag.as_bytes()[1] - b'0')));
            }
            "hr" => {
                self.lines.write("---");
                self.lines.part(Gap::Blank);
            }
            "pre" => {
                for (index, line) in code::lines(self.tree, node).iter().enumerate() {
                    self.lines.part(if index == 0 { Gap::Blank } else { Gap::Line });
                    self.lines.write(line);
                }
                self.lines.part(Gap::Blank);
                return false;
            }
            "blockquote" => self.begin(node, "> ", "> "),
            tag if is_list(tag) => self.begin_list(node, tag),
            "li" => self.begin_item(node),
            "dt" => self.lines.part(Gap::Blank),
            "dd" => {
                self.lines.place(Gap::Line);
                self.begin(node, ": ", "  ");
            }
            "table" if self.data_tables.contains(&node) => {
                self.table = Some(Table::default());
                self.undo.push((node, ClosingStep::Table));
            }
            "summary" => self.mark(node, Mark::Strong),
            "frame" => {
                let src = self.tree.attribute(node, "src").and_then(|src| self.addresses.of_part(src));
                let name = self.tree.attribute(node, "title").or(self.tree.attribute(node, "name")).unwrap_or("frame");
                if let Some(url) = src {
                    self.linked(characters::on_one_line(name), url);
                }
            }
            _ => {}
        }
        true
    }

    /// Begins an element in a table of data; `None` if it is handled as outside of tables.
    fn enter_in_table(&mut self, node: NodeId, tag: &str) -> Option<bool> {
        let is_own_part = !self.is_in_cell;
        match tag {
            "caption" if is_own_part => {
                let caption = characters::shortened(self.tree.text_of(node), 10 * MAX_NAME);
                if !caption.is_empty() {
                    self.lines.part(Gap::Blank);
                    self.lines.write(&escaped_start(&caption));
                }
                Some(false)
            }
            "tr" if is_own_part => {
                self.table.iter_mut().for_each(Table::begin_row);
                Some(true)
            }
            "td" | "th" if is_own_part => {
                self.is_in_cell = true;
                self.undo.push((node, ClosingStep::Cell));
                Some(true)
            }
            // An item of a list, or a row of a table in a cell.
            "li" | "tr" | "dt" => {
                self.inline.part();
                Some(true)
            }
            "pre" => {
                let code = code::text(self.tree, node);
                self.inline.space();
                self.inline.open(Mark::Code);
                self.inline.add(&code);
                self.inline.close();
                self.inline.space();
                Some(false)
            }
            "br" => {
                self.inline.space();
                Some(true)
            }
            tag if is_block(tag) => {
                self.inline.space();
                Some(true)
            }
            _ => None,
        }
    }

    fn enter_inline(&mut self, node: NodeId, tag: &str) -> bool {
        let attribute = |name| self.tree.attribute(node, name);
        match tag {
            "b" | "strong" => self.mark(node, Mark::Strong),
            "i" | "em" | "cite" | "dfn" | "var" => self.mark(node, Mark::Emphasis),
            "s" | "del" | "strike" => self.mark(node, Mark::Struck),
            "code" | "kbd" | "samp" | "tt" => self.mark(node, Mark::Code),
            "sup" => self.mark(node, Mark::Raised),
            "sub" => self.mark(node, Mark::Lowered),
            "a" => {
                if let Some(href) = attribute("href") {
                    let target = self.target(node, href);
                    self.mark(node, Mark::Link(target));
                }
            }
            "br" => self.inline.line_break(),
            "q" => {
                self.inline.add_markdown("“");
                self.undo.push((node, ClosingStep::Quoted));
            }
            "rt" => {
                self.inline.add_markdown("(");
                self.undo.push((node, ClosingStep::Parenthesis));
            }
            "img" => self.image(node),
            "svg" => {
                let title = self.tree.children(node).find(|child| self.tree.local_name(*child) == Some("title"));
                let title = title.map(|title| self.tree.text_of(title)).filter(|title| !title.is_empty());
                if let Some(title) = title.or(attribute("aria-label").map(characters::on_one_line)) {
                    self.inline.add(&title);
                }
                return false;
            }
            "math" => {
                self.formula(node);
                return false;
            }
            "audio" | "video" => {
                let source = self.tree.select(node, "source", "").find_map(|source| self.tree.attribute(source, "src"));
                if let Some(url) = attribute("src").or(source).and_then(|src| self.addresses.of_part(src)) {
                    self.linked(characters::on_one_line(attribute("title").unwrap_or(tag)), url);
                }
                return false;
            }
            "iframe" => {
                let url = attribute("src").and_then(|src| self.addresses.of_part(src));
                if let (Some(title), Some(url)) = (attribute("title").filter(|title| !title.trim().is_empty()), url) {
                    self.linked(characters::on_one_line(title), url);
                }
                return false;
            }
            "input" => self.input(node),
            "select" => {
                let options = self.tree.select(node, "option", "").map(|option| self.tree.text_of(option));
                let mut options: Vec<String> = options.filter(|text| !text.is_empty()).take(MAX_OPTIONS + 1).collect();
                if options.len() > MAX_OPTIONS {
                    options[MAX_OPTIONS] = "…".into();
                }
                self.inline.space();
                self.inline.add(&options.join(" / "));
                self.inline.space();
                return false;
            }
            "object" | "noscript" | "button" | "label" | "textarea" => self.inline.space(),
            _ => {}
        }
        true
    }

    /// Marks the content of the element, unless it is already marked so.
    fn mark(&mut self, node: NodeId, mark: Mark) {
        let is_there = match &mark {
            Mark::Link(_) => self.inline.is_in_link() || self.inline.is_open(&Mark::Code),
            mark => self.inline.is_open(mark) || self.inline.is_open(&Mark::Code),
        };
        if !is_there {
            self.inline.open(mark);
            self.undo.push((node, ClosingStep::Mark));
        }
    }

    fn begin(&mut self, node: NodeId, marker: &str, rest: &str) {
        self.lines.begin(marker, rest);
        self.undo.push((node, ClosingStep::Prefix));
    }

    fn begin_list(&mut self, node: NodeId, tag: &str) {
        let is_nested = !self.lists.is_empty();
        if is_nested {
            self.lines.place(Gap::Line);
            // A list directly in a list, outside of its items.
            if self.tree.parent(node).is_some_and(|parent| self.tree.tag(parent).is_some_and(is_list)) {
                self.begin(node, "  ", "  ");
            }
        }
        self.lists.push(List { numbers: (tag == "ol").then(|| ListCounter::of(self.tree, node)), has_items: false });
        self.undo.push((node, ClosingStep::List));
    }

    fn begin_item(&mut self, node: NodeId) {
        let mut marker = "- ".to_owned();
        if let Some(list) = self.lists.last_mut() {
            if std::mem::replace(&mut list.has_items, true) {
                self.lines.place(Gap::Line);
            }
            if let Some(numbers) = &mut list.numbers {
                marker = format!("{}. ", numbers.next(self.tree, node));
            }
        }
        let rest = " ".repeat(marker.len());
        self.begin(node, &marker, &rest);
    }

    /// Writes the current paragraph.
    fn paragraph(&mut self) {
        if self.inline.is_empty() {
            let _ = self.inline.take();
            return;
        }
        let text = self.inline.take();
        let mut is_first = true;
        let mut lines = text.trim().lines().map(str::trim).peekable();
        while let Some(line) = lines.next() {
            if line.is_empty() {
                self.lines.part(Gap::Blank);
                continue;
            }
            let breaks = lines.peek().is_some_and(|next| !next.is_empty());
            let line = format!("{}{}", escaped_start(line), if breaks { "  " } else { "" });
            if !std::mem::take(&mut is_first) {
                self.lines.part(Gap::Line);
            }
            self.lines.write(&line);
        }
    }

    fn heading(&mut self, level: u8) {
        self.is_in_heading = false;
        let text = self.inline.take();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() {
            return;
        }
        self.lines.part(Gap::Blank);
        self.lines.write(&format!("{} {text}", "#".repeat(level.into())));
        self.lines.part(Gap::Blank);
        if self.outline.len() < MAX_HEADINGS {
            self.outline.push(Heading { level, text: named(&text), line: self.lines.number() });
        }
    }

    fn target(&self, node: NodeId, href: &str) -> LinkTarget {
        match self.addresses.of_link(href) {
            Some(url) => {
                let label = ["aria-label", "title"].into_iter().find_map(|name| self.tree.attribute(node, name));
                let label = characters::shortened(characters::on_one_line(label.unwrap_or_default()), MAX_NAME);
                LinkTarget::Address { url, label }
            }
            None => LinkTarget::InPage,
        }
    }

    /// Adds a separate link.
    fn linked(&mut self, label: String, url: String) {
        self.inline.space();
        self.inline.open(Mark::Link(LinkTarget::Address { url, label }));
        self.inline.close();
        self.inline.space();
    }

    fn image(&mut self, node: NodeId) {
        let attribute = |name| self.tree.attribute(node, name);
        let is_tiny =
            ["width", "height"].into_iter().any(|name| matches!(attribute(name), Some("0" | "1" | "0px" | "1px")));
        let alt = attribute("alt").map(characters::on_one_line);
        // An empty text marks a decorative picture.
        if is_tiny || alt.as_deref() == Some("") {
            return;
        }
        let first_of_set =
            attribute("srcset").or(attribute("data-srcset")).and_then(|set| set.split_whitespace().next());
        let sources = [attribute("src"), attribute("data-src"), attribute("data-original"), first_of_set];
        let url = sources.into_iter().flatten().find_map(|src| self.addresses.of_part(src));
        let alt = alt.unwrap_or_default();
        match url {
            Some(url) => self.inline.add_picture(&alt, &url),
            None => self.inline.add(&alt),
        }
    }

    fn input(&mut self, node: NodeId) {
        let attribute = |name| self.tree.attribute(node, name);
        match attribute("type").unwrap_or("text").to_ascii_lowercase().as_str() {
            "checkbox" | "radio" => {
                self.inline.add_markdown(if attribute("checked").is_some() { "[x] " } else { "[ ] " });
            }
            "submit" | "button" | "reset" => {
                self.inline.space();
                self.inline.add(&characters::on_one_line(attribute("value").unwrap_or_default()));
                self.inline.space();
            }
            _ => {}
        }
    }

    /// Writes a formula as TeX if the page contains it, otherwise as its text.
    fn formula(&mut self, node: NodeId) {
        let is_tex = |node: &NodeId| self.tree.attribute(*node, "encoding") == Some("application/x-tex");
        let annotation = self.tree.descendants(node).find(is_tex).map(|node| self.tree.text_of(node));
        let tex = annotation.or(self.tree.attribute(node, "alttext").map(characters::on_one_line));
        match tex.filter(|tex| !tex.is_empty()) {
            Some(tex) => self.tex(&tex, self.tree.attribute(node, "display") == Some("block")),
            None => {
                let text = self.tree.text_of(node);
                self.inline.add(&text);
            }
        }
    }

    /// Writes a formula that a script of the page would render.
    fn formula_of_script(&mut self, node: NodeId) {
        let Some(kind) = self.tree.attribute(node, "type").filter(|kind| kind.starts_with("math/tex")) else { return };
        let tex: String = self.tree.children(node).filter_map(|child| self.tree.text(child)).collect();
        self.tex(&characters::on_one_line(&tex), kind.contains("display"));
    }

    fn tex(&mut self, tex: &str, is_block: bool) {
        let sign = if is_block { "$$" } else { "$" };
        self.inline.add_markdown(&format!("{sign}{tex}{sign}"));
    }

    fn finish(mut self, most: usize) -> Page {
        let is_full = self.is_full(most);
        self.paragraph();
        let notes = if is_full {
            vec!["the text of the page is too long, and its end is missing".to_owned()]
        } else {
            Vec::new()
        };
        let mut known = HashSet::new();
        let links = self.inline.into_links().into_iter().filter(|(_, url)| known.insert(url.clone())).take(MAX_LINKS);
        let links = links.map(|(text, url)| Link { text: named(&text), url }).collect();
        Page { text: self.lines.into_text(), outline: self.outline, links, notes, ..Page::default() }
    }
}

fn is_list(tag: &str) -> bool {
    matches!(tag, "ul" | "ol" | "menu" | "dir")
}

/// Returns the short text of a heading or a link, without markup.
fn named(markdown: &str) -> String {
    characters::shortened(characters::on_one_line(&plain(markdown)), MAX_NAME)
}

/// Removes the markup from Markdown: links become their text, and signs of emphasis, code or escaping are removed.
fn plain(markdown: &str) -> String {
    let mut plain = String::with_capacity(markdown.len());
    // Positions of the brackets that are still open.
    let mut brackets = Vec::new();
    let mut rest = markdown;
    while let Some(char) = rest.chars().next() {
        rest = &rest[char.len_utf8()..];
        match char {
            '\\' => {
                if let Some(escaped) = rest.chars().next() {
                    plain.push(escaped);
                    rest = &rest[escaped.len_utf8()..];
                }
            }
            '[' => {
                brackets.push(plain.len());
                plain.push('[');
            }
            ']' if rest.starts_with('(') => {
                if let Some(start) = brackets.pop() {
                    let is_picture = plain[..start].ends_with('!');
                    plain.replace_range(start - usize::from(is_picture)..=start, "");
                }
                rest = behind_parentheses(rest);
            }
            ']' => {
                brackets.pop();
                plain.push(']');
            }
            '`' | '*' => {}
            char => plain.push(char),
        }
    }
    plain.trim().to_owned()
}

/// Returns the text after the pair of parentheses at its start, with nested ones; empty if the pair does not end.
fn behind_parentheses(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' if depth <= 1 => return &text[at + 1..],
            ')' => depth -= 1,
            _ => {}
        }
    }
    ""
}
