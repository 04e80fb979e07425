//! Parts of a page that a reader does not see.

use super::{NodeId, PageTree};

/// Block elements.
const BLOCKS: [&str; 52] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "center",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "hr",
    "html",
    "legend",
    "li",
    "main",
    "menu",
    "nav",
    "ol",
    "optgroup",
    "option",
    "p",
    "pre",
    "search",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "ul",
];

/// Elements whose content is not text of the page, or is shown in another way.
const LEFT_OUT: [&str; 20] = [
    "applet", "area", "base", "basefont", "canvas", "col", "colgroup", "datalist", "embed", "head", "link", "meta",
    "noembed", "noframes", "param", "rp", "script", "style", "template", "title",
];

/// Returns `true` if an element with this tag is block-level.
pub(in crate::web::page) fn is_block(tag: &str) -> bool {
    BLOCKS.contains(&tag)
}

/// Returns `true` if a reader does not see an element and everything below it.
pub(in crate::web::page) fn is_left_out(tree: &PageTree, node: NodeId) -> bool {
    tree.tag(node).is_some_and(|tag| {
        LEFT_OUT.contains(&tag)
            || tag == "dialog" && tree.attribute(node, "open").is_none()
            || is_hidden(tree, node)
            || is_gutter(tree, node)
    })
}

/// Returns `true` if attributes of an element hide it.
fn is_hidden(tree: &PageTree, node: NodeId) -> bool {
    tree.attributes(node).any(|(name, value)| match name {
        "hidden" => true,
        "aria-hidden" => value.trim().eq_ignore_ascii_case("true"),
        "style" => hides(value),
        _ => false,
    })
}

/// Returns `true` if a style hides its element.
fn hides(style: &str) -> bool {
    style.split(';').filter_map(|declaration| declaration.split_once(':')).any(|(property, value)| {
        let value = value.split('!').next().unwrap_or_default().trim();
        let is =
            |name: &str, hiding: &str| property.trim().eq_ignore_ascii_case(name) && value.eq_ignore_ascii_case(hiding);
        is("display", "none") || is("visibility", "hidden") || is("visibility", "collapse")
    })
}

/// Returns `true` if an element contains line numbers beside code.
fn is_gutter(tree: &PageTree, node: NodeId) -> bool {
    const GUTTERS: [&str; 9] =
        ["linenos", "lineno", "linenodiv", "line-numbers", "line-number", "gutter", "blob-num", "rouge-gutter", "lnt"];
    tree.attribute(node, "class").is_some_and(|classes| classes.split_ascii_whitespace().any(|it| GUTTERS.contains(&it)))
        // Some pages have the class of the gutter on the code itself.
        && tree.tag(node) != Some("pre")
}
