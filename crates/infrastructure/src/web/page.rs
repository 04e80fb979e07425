//! Pages as text: hostile HTML is parsed in a child process, and returned as Markdown or text of limited size.
//!
//! [`read`] is the runtime's side. Parsers for single sites, which run in their own helper processes, use [`tree`] and
//! [`text_below`].

mod addresses;
mod article;
mod characters;
mod markdown;
mod numbers;
mod plain;
mod reading;
pub mod tree;

pub use crate::web::page::{
    plain::{LinkStyle, text_below},
    reading::{HtmlPageInput, read},
};

use crate::web::page::{
    addresses::LinkResolver,
    tree::{PageTree, WalkEvent},
};
use serde::{Deserialize, Serialize};
use std::{
    io::Read,
    panic::{AssertUnwindSafe, catch_unwind},
};
use url::Url;

/// Name of the helper that parses pages.
pub const HELPER: &str = "page";
/// Maximum number of characters of a title, of a heading in the outline and of a link's text.
const MAX_NAME: usize = 200;
/// Maximum number of headings in an outline; [`MAX_LINKS`] is that of links.
const MAX_HEADINGS: usize = 500;
const MAX_LINKS: usize = 1_000;
/// Number of characters of text below which a page with scripts probably creates its text by script.
const LITTLE_TEXT: usize = 200;

/// Limits of one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageLimits {
    /// Maximum number of bytes of HTML; the rest is left out, with a note.
    pub page_bytes: u64,
    /// Maximum number of bytes of the resulting text; the rest is left out, with a note.
    pub text_bytes: usize,
    /// Processor time, in seconds.
    pub seconds: u64,
    /// Maximum address space of the process that reads it, in bytes.
    pub memory_bytes: u64,
}

impl Default for PageLimits {
    fn default() -> Self {
        Self { page_bytes: 5 << 20, text_bytes: 2 << 20, seconds: 10, memory_bytes: 1 << 30 }
    }
}

/// Requested form of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageFormat {
    /// The article as Markdown; the whole page if no article is found.
    Article,
    /// The whole page as Markdown.
    Markdown,
    /// The whole page as text, with links as `text (url)` and cells of tables separated by tabs.
    Text,
}

/// A page as text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Title.
    pub title: Option<String>,
    /// Text, in the requested form.
    pub text: String,
    /// Headings in `text`; none if the form is text.
    pub outline: Vec<Heading>,
    /// Links in `text`, each address once.
    pub links: Vec<Link>,
    /// `true` if `text` is the article alone.
    pub is_article: bool,
    /// Notes for the reader, each a sentence without a full stop.
    pub notes: Vec<String>,
    /// Number of invisible characters that were removed.
    pub removed: usize,
    /// `true` if there is hardly any text, but scripts that would create it: a browser would show more.
    pub looks_like_script_shell: bool,
}

/// A heading of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// Level from 1, the largest, to 6.
    pub level: u8,
    /// Text without markup.
    pub text: String,
    /// Line in the page's text, from 1.
    pub line: usize,
}

/// A link of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Text without markup.
    pub text: String,
    /// Absolute address.
    pub url: String,
}

/// Request to the child process.
#[derive(Debug, Serialize, Deserialize)]
struct PageRenderRequest {
    form: PageFormat,
    charset: Option<String>,
    url: Url,
    text_bytes: usize,
}

/// Parses a page: the work of the helper [`HELPER`]. Takes the bytes of a page and returns a [`Page`] as JSON, or
/// `null` for an invalid order. Call it only in a confined process.
pub fn answer(order: &str, input: &mut dyn Read) -> Vec<u8> {
    let mut html = Vec::new();
    let page = serde_json::from_str::<PageRenderRequest>(order).ok().map(|order| {
        // If the input fails, the page is read up to that point.
        let _ = input.read_to_end(&mut html);
        page(&html, &order)
    });
    serde_json::to_vec(&page).unwrap_or_default()
}

/// Reads a page. Only the child process may call it on untrusted bytes, never the runtime.
fn page(html: &[u8], order: &PageRenderRequest) -> Page {
    let tree = tree::parse(html, order.charset.as_deref());
    let addresses = LinkResolver::of(&tree, &order.url);
    let metadata = read_metadata(&tree);
    let article = (order.form == PageFormat::Article)
        // Third-party code processes an untrusted page.
        .then(|| catch_unwind(AssertUnwindSafe(|| article::article(&tree, &addresses))).ok().flatten())
        .flatten();
    let is_article = article.is_some();
    let mut page = match (order.form, article) {
        (PageFormat::Text, _) => plain::page(&tree, &addresses, order.text_bytes),
        (_, Some(article)) => {
            let mut page = markdown::page(&article.tree, &addresses, order.text_bytes);
            page.notes.push(article.note);
            page
        }
        (_, None) => markdown::page(&tree, &addresses, order.text_bytes),
    };
    if order.form == PageFormat::Article && !is_article {
        page.notes.push("no article was found in the page, so this is all of it".into());
    }
    if tree.is_cut() {
        page.notes.push("the page has too many elements, and its end is missing".into());
    }
    let looks_like_script_shell = metadata.scripts > 0
        && (metadata.has_mount || metadata.asks_for_scripts || metadata.scripts > 2)
        && !has_text(&page.text, LITTLE_TEXT);
    Page { title: metadata.title, is_article, removed: tree.removed(), looks_like_script_shell, ..page }
}

/// Facts of the page beside its text.
#[derive(Default)]
struct TitleAndScriptFacts {
    title: Option<String>,
    scripts: usize,
    /// `true` if there is an element in which applications are mounted.
    has_mount: bool,
    asks_for_scripts: bool,
}

fn read_metadata(tree: &PageTree) -> TitleAndScriptFacts {
    const MOUNTS: [&str; 9] =
        ["root", "app", "__next", "__nuxt", "app-root", "react-root", "svelte", "main-app", "application"];
    let mut metadata = TitleAndScriptFacts::default();
    let mut walk = tree.walk(tree.root());
    while let Some(step) = walk.next() {
        let WalkEvent::Enter(node) = step else { continue };
        match tree.tag(node) {
            Some("title") if metadata.title.is_none() => {
                let text: String = tree.descendants(node).filter_map(|text| tree.text(text)).collect();
                let text = characters::shortened(characters::on_one_line(&text), MAX_NAME);
                metadata.title = (!text.is_empty()).then_some(text);
            }
            Some("script") => metadata.scripts += 1,
            Some("noscript") => {
                metadata.asks_for_scripts |= tree.text_of(node).to_lowercase().contains("javascript");
                walk.pass_over(node);
            }
            Some("app-root") => metadata.has_mount = true,
            Some(_) => metadata.has_mount |= tree.attribute(node, "id").is_some_and(|id| MOUNTS.contains(&id)),
            None => {}
        }
    }
    metadata
}

/// Returns `true` if a text has at least this number of characters that are not white space.
fn has_text(text: &str, characters: usize) -> bool {
    text.chars().filter(|char| !char.is_whitespace()).nth(characters.saturating_sub(1)).is_some()
}

#[cfg(test)]
mod tests;
