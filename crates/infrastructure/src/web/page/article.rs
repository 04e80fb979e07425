//! The article of a page, without what stands around it.

use super::{
    addresses::Addresses,
    characters,
    tree::{self, Step, Tree, visible},
};
use legible::{Document, Options};
use std::borrow::Cow;

/// Elements of a page in which an article is still looked for.
const MAX_ELEMENTS: usize = 60_000;
/// Characters that an article has at least.
const LEAST: usize = 250;
/// The part of the page's text that an article is at least: less is one post of a forum, or a teaser.
const LEAST_PERCENT: usize = 20;
/// Bytes of HTML that are looked at.
const MAX_HTML: usize = 32 << 20;
/// Bytes of an attribute that are handed on: pictures as `data:` are larger.
const MAX_ATTRIBUTE: usize = 4_096;

/// An article.
#[derive(Debug)]
pub(super) struct Article {
    /// Its own tree, whose addresses are absolute.
    pub(super) tree: Tree,
    /// The share of the page that it is, in words.
    pub(super) note: String,
}

/// Looks for the article of a page; `None` where there is none, or too little of one.
pub(super) fn article(tree: &Tree, addresses: &Addresses) -> Option<Article> {
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
    // The page's own words: quoted, so that they do not read as a part of the note.
    let [by, when] = [by, when].map(|said| said.map(|said| said.replace('"', "'")));
    let origin = match (by.filter(|name| !name.is_empty()), when.filter(|time| !time.is_empty())) {
        (Some(name), Some(time)) => format!(" (author: \"{name}\"; published: \"{time}\")"),
        (Some(name), None) => format!(" (author: \"{name}\")"),
        (None, Some(time)) => format!(" (published: \"{time}\")"),
        (None, None) => String::new(),
    };
    let note = format!(
        "this is the article of the page{origin}, about {percent} % of its text; what stands around it is left out"
    );
    Some(Article { tree: tree::parse_text(&html), note })
}

/// The visible page as HTML again, with the bounded depth of its tree; `None` where that is too much.
fn serialized(tree: &Tree) -> Option<String> {
    let mut html = String::new();
    let mut walk = tree.walk(tree.root());
    while let Some(step) = walk.next() {
        if html.len() > MAX_HTML {
            return None;
        }
        match step {
            Step::Enter(node) => {
                if let Some(text) = tree.text(node) {
                    html.push_str(&escaped(text));
                    continue;
                }
                let Some(name) = tree.local_name(node) else { continue };
                let is_of_head = matches!(name, "head" | "title" | "meta" | "base" | "link");
                if !is_of_head && visible::is_left_out(tree, node) || matches!(name, "noscript" | "iframe") {
                    walk.pass_over(node);
                    // Its end must not be written either.
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
                    // The first line break of one does not count.
                    html.push('\n');
                }
            }
            Step::Leave(node) => {
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

/// Another name for an element of raw text: escaped text in it would be read as it stands.
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
