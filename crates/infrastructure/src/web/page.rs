//! Pages as text: hostile HTML is parsed in a child process, and comes back as Markdown or text, bounded.
//!
//! [`read`] is the runtime's side. For parsers of single sites, which run in helpers of their own, there are [`tree`] and
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
    reading::{PageOrder, read},
};

use crate::web::page::{
    addresses::Addresses,
    tree::{Step, Tree},
};
use serde::{Deserialize, Serialize};
use std::{
    io::Read,
    panic::{AssertUnwindSafe, catch_unwind},
};
use url::Url;

/// Name of the helper that parses pages.
pub const HELPER: &str = "page";
/// Characters of a title, of a heading in the outline and of a link's text.
const MAX_NAME: usize = 200;
/// Headings of an outline, and links that are told.
const MAX_HEADINGS: usize = 500;
const MAX_LINKS: usize = 1_000;
/// A page with fewer characters of text than these, and with scripts, makes its text by them.
const LITTLE_TEXT: usize = 200;

/// The bounds of one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageLimits {
    /// Bytes of HTML that are read; what lies behind is left out, with a note.
    pub page_bytes: u64,
    /// Bytes of text that are made of it; the rest is left out, with a note.
    pub text_bytes: usize,
    /// Processor time, in seconds.
    pub seconds: u64,
    /// Bytes of address space of the process that reads it.
    pub memory_bytes: u64,
}

impl Default for PageLimits {
    fn default() -> Self {
        Self { page_bytes: 5 << 20, text_bytes: 2 << 20, seconds: 10, memory_bytes: 1 << 30 }
    }
}

/// The form in which a page is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Its article as Markdown; the whole page where no article is found.
    Article,
    /// The whole page as Markdown.
    Markdown,
    /// The whole page as text, with links as `text (url)` and cells of tables parted by tabs.
    Text,
}

/// A page as text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Its title.
    pub title: Option<String>,
    /// Its text, in the form that was wanted.
    pub text: String,
    /// The headings in `text`; none where the form is text.
    pub outline: Vec<Heading>,
    /// The links in `text`, each address once.
    pub links: Vec<Link>,
    /// `text` is the article alone.
    pub is_article: bool,
    /// Facts that a reader must know besides, each a sentence without a full stop.
    pub notes: Vec<String>,
    /// Number of invisible characters that were removed.
    pub removed: usize,
    /// There is hardly any text, and scripts that would make it: a browser would show more.
    pub looks_like_script_shell: bool,
}

/// A heading of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// From 1, the largest, to 6.
    pub level: u8,
    /// Its text without markup.
    pub text: String,
    /// The line of the page's text that it stands on, from 1.
    pub line: usize,
}

/// A link of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its text without markup.
    pub text: String,
    /// Its absolute address.
    pub url: String,
}

/// The question to the child.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    form: Form,
    charset: Option<String>,
    url: Url,
    text_bytes: usize,
}

/// Parses a page: the work of the helper [`HELPER`]. Takes the bytes of a page and returns a [`Page`] as JSON. Call it
/// only in a confined process.
pub fn answer(order: &str, input: &mut dyn Read) -> Vec<u8> {
    let mut html = Vec::new();
    let page = serde_json::from_str::<Order>(order).ok().map(|order| {
        // A page whose input failed is read as far as it came.
        let _ = input.read_to_end(&mut html);
        page(&html, &order)
    });
    serde_json::to_vec(&page).unwrap_or_default()
}

/// Reads a page. This is the child's part: never call it on bytes from outside in the runtime's own process.
fn page(html: &[u8], order: &Order) -> Page {
    let tree = tree::parse(html, order.charset.as_deref());
    let addresses = Addresses::of(&tree, &order.url);
    let told = told(&tree);
    let article = (order.form == Form::Article)
        // It is somebody else's code on somebody else's page.
        .then(|| catch_unwind(AssertUnwindSafe(|| article::article(&tree, &addresses))).ok().flatten())
        .flatten();
    let is_article = article.is_some();
    let mut page = match (order.form, article) {
        (Form::Text, _) => plain::page(&tree, &addresses, order.text_bytes),
        (_, Some(article)) => {
            let mut page = markdown::page(&article.tree, &addresses, order.text_bytes);
            page.notes.push(article.note);
            page
        }
        (_, None) => markdown::page(&tree, &addresses, order.text_bytes),
    };
    if order.form == Form::Article && !is_article {
        page.notes.push("no article was found in the page, so this is all of it".into());
    }
    if tree.is_cut() {
        page.notes.push("the page has more elements than are read, and its end is missing".into());
    }
    let looks_like_script_shell = told.scripts > 0
        && (told.has_mount || told.asks_for_scripts || told.scripts > 2)
        && !has_text(&page.text, LITTLE_TEXT);
    Page { title: told.title, is_article, removed: tree.removed(), looks_like_script_shell, ..page }
}

/// Facts of the page beside its text.
#[derive(Default)]
struct Told {
    title: Option<String>,
    scripts: usize,
    /// An element that applications are mounted in.
    has_mount: bool,
    asks_for_scripts: bool,
}

fn told(tree: &Tree) -> Told {
    const MOUNTS: [&str; 9] =
        ["root", "app", "__next", "__nuxt", "app-root", "react-root", "svelte", "main-app", "application"];
    let mut told = Told::default();
    let mut walk = tree.walk(tree.root());
    while let Some(step) = walk.next() {
        let Step::Enter(node) = step else { continue };
        match tree.tag(node) {
            Some("title") if told.title.is_none() => {
                let text: String = tree.descendants(node).filter_map(|text| tree.text(text)).collect();
                let text = characters::shortened(characters::on_one_line(&text), MAX_NAME);
                told.title = (!text.is_empty()).then_some(text);
            }
            Some("script") => told.scripts += 1,
            Some("noscript") => {
                told.asks_for_scripts |= tree.text_of(node).to_lowercase().contains("javascript");
                walk.pass_over(node);
            }
            Some("app-root") => told.has_mount = true,
            Some(_) => told.has_mount |= tree.attribute(node, "id").is_some_and(|id| MOUNTS.contains(&id)),
            None => {}
        }
    }
    told
}

/// Tells whether a text has that many characters that are no white space.
fn has_text(text: &str, characters: usize) -> bool {
    text.chars().filter(|char| !char.is_whitespace()).nth(characters.saturating_sub(1)).is_some()
}

#[cfg(test)]
mod tests;
