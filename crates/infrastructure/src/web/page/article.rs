//! The article of a page, without the parts around it.

use super::{
    addresses::LinkResolver,
    characters,
    tree::{self, PageTree, WalkEvent, visible},
};
use legible::{Document, Options};
use std::borrow::Cow;

/// Maximum number of elements of a page in which an article is searched for.
const MAX_ELEMENTS: usize = 60_000;
/// Minimum number of characters of an article.
const LEAST: usize = 250;
/// Minimum share of the page's text in percent: less is one post of a forum, or a teaser.
const LEAST_PERCENT: usize = 20;
/// Maximum length of the HTML in which an article is searched for, in bytes.
const MAX_HTML: usize = 32 << 20;
/// Maximum number of bytes of a copied attribute: pictures as `data:` are larger.
const MAX_ATTRIBUTE: usize = 4_096;

/// An article.
#[derive(Debug)]
pub(super) struct Article {
    /// Tree of the article alone, with absolute addresses.
    pub(super) tree: PageTree,
    /// Note for the reader: author and date of the article, and its share of the page's text.
    pub(super) note: String,
}

/// Extracts the article of a page; `None` if there is none, or it is too small.
pub(super) fn article(tree: &PageTree, addresses: &LinkResolver) -> Option<Article> {
    let html = serialized(tree)?;
    let document = Document::new(&html);
    if !document.is_probably_readerable(None) {
        return None;
    }
    let options = Options::new().max_elems_to_parse(MAX_ELEMENTS).keep_classes(true).disable_json_ld(true);
    let found = document.parse(Some(addresses.page().as_str()), Some(options)).ok()?;
    let whole = tree.text_of(tree.root()).chars().count().max(1);
    let percent = (found.length * 100 / whole).min(100);
    if found.length < LEAST || percent < LEAST_PERCENT {
        return None;
    }
    let mut html = String::new();
    let body = tree::parse_text(&found.content);
    if !found.title.trim().is_empty() && body.select(body.root(), "h1", "").next().is_none() {
        html.push_str("<h1>");
        html.push_str(&escaped(&found.title));
        html.push_str("</h1>");
    }
    html.push_str(&found.content);
    let by = found.byline.map(|name| characters::shortened(characters::on_one_line(&name), super::MAX_NAME));
    let when = found.published_time.map(|time| characters::shortened(characters::on_one_line(&time), 40));
    // Quoted, because the page controls these texts, which must not read as a part of the note.
    let [by, when] = [by, when].map(|said| said.map(|said| said.replace('"', "'")));
    let origin = match (by.filter(|name| !name.is_empty()), when.filter(|time| !time.is_empty())) {
        (Some(name), Some(time)) => format!(" (author: \"{name}\"; published: \"{time}\")"),
        (Some(name), None) => format!(" (author: \"{name}\")"),
        (None, Some(time)) => format!(" (published: \"{time}\")"),
        (None, None) => String::new(),
    };
    let note = format!("this is the article of the page{origin}, about {percent} % of its text; the rest is omitted");
    Some(Article { tree: tree::parse_text(&html), note })
}

/// Serializes the visible page as HTML, with the limited depth of its tree; `None` if it is too large.
fn serialized(tree: &PageTree) -> Option<String> {
    let mut html = String::new();
    let mut walk = tree.walk(tree.root());
    while let Some(step) = walk.next() {
        if html.len() > MAX_HTML {
            return None;
        }
        match step {
            WalkEvent::Enter(node) => {
                if let Some(text) = tree.text(node) {
                    html.push_str(&escaped(text));
                    continue;
                }
                let Some(name) = tree.local_name(node) else { continue };
                let is_of_head = matches!(name, "head" | "title" | "meta" | "base" | "link");
                if !is_of_head && visible::is_left_out(tree, node) || matches!(name, "noscript" | "iframe") {
                    walk.pass_over(node);
                    // Skips its end, too.
                    walk.next();
                    continue;
                }
                html.push('<');
                html.push_str(written_name(name));
                for (name, value) in tree.attributes(node).filter(|(_, value)| value.len() <= MAX_ATTRIBUTE) {
                    html.push(' ');
                    html.push_str(name);
                    html.push_str("=\"");
                    html.push_str(&escaped(value));
                    html.push('"');
                }
                html.push('>');
                if name == "pre" {
                    // Parsers drop the first line break in `pre`.
                    html.push('\n');
                }
            }
            WalkEvent::Leave(node) => {
                if let Some(name) = tree.local_name(node).filter(|name| !is_void(name)) {
                    html.push_str("</");
                    html.push_str(written_name(name));
                    html.push('>');
                }
            }
        }
    }
    Some(html)
}

/// Replaces the name of a raw text element, because a parser would not unescape the text in it.
fn written_name(name: &str) -> &str {
    if matches!(name, "xmp" | "plaintext" | "listing") { "pre" } else { name }
}

fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "frame"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "source"
            | "track"
            | "wbr"
    )
}

fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"']) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            char => escaped.push(char),
        }
    }
    Cow::Owned(escaped)
}
