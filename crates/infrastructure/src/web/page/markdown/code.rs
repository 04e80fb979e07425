//! Blocks of code: their exact text, and their language.

use super::{
    super::tree::{
        NodeId, PageTree, WalkEvent,
        visible::{is_block, is_left_out},
    },
    inline::longest_run,
};

/// Language names that classes contain without a prefix.
const LANGUAGES: [&str; 45] = [
    "bash",
    "c",
    "clojure",
    "console",
    "cpp",
    "csharp",
    "css",
    "dart",
    "diff",
    "dockerfile",
    "elixir",
    "erlang",
    "fortran",
    "go",
    "graphql",
    "haskell",
    "html",
    "ini",
    "java",
    "javascript",
    "js",
    "json",
    "julia",
    "kotlin",
    "lua",
    "makefile",
    "nix",
    "ocaml",
    "perl",
    "php",
    "powershell",
    "python",
    "r",
    "ruby",
    "rust",
    "scala",
    "sh",
    "shell",
    "sql",
    "swift",
    "toml",
    "ts",
    "typescript",
    "xml",
    "yaml",
];

/// Returns the lines of a block of code with the fences around it; none if it is empty.
pub(super) fn lines(tree: &PageTree, pre: NodeId) -> Vec<String> {
    let code = text(tree, pre);
    let code = code.trim_end().trim_start_matches('\n');
    if code.trim().is_empty() {
        return Vec::new();
    }
    let fence = "`".repeat(longest_run(code, '`').max(2) + 1);
    let mut lines = vec![format!("{fence}{}", language(tree, pre).unwrap_or_default())];
    lines.extend(code.lines().map(|line| line.trim_end_matches('\r').to_owned()));
    lines.push(fence);
    lines
}

/// Returns the text below a node with its line breaks and spaces.
pub(super) fn text(tree: &PageTree, node: NodeId) -> String {
    let mut text = String::new();
    let mut walk = tree.walk(node);
    while let Some(step) = walk.next() {
        match step {
            WalkEvent::Enter(below) => match (tree.text(below), tree.tag(below)) {
                (Some(part), _) => text.push_str(part),
                (None, Some("br")) => text.push('\n'),
                (None, Some(_)) if is_left_out(tree, below) => {
                    walk.pass_over(below);
                }
                (None, Some(tag)) if below != node && is_block(tag) => line_start(&mut text),
                _ => {}
            },
            WalkEvent::Leave(below) => {
                if below != node && tree.tag(below).is_some_and(is_block) {
                    line_start(&mut text);
                }
            }
        }
    }
    text
}

fn line_start(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Returns the language that an attribute or a class of the block, of its child `code` or of a container names.
fn language(tree: &PageTree, pre: NodeId) -> Option<String> {
    let inner = tree.children(pre).find(|child| tree.tag(*child) == Some("code"));
    let mut outer = tree.parent(pre);
    let mut around = Vec::new();
    for _ in 0..3 {
        // A container of a single block. The classes of one with several blocks do not describe this block.
        let Some(node) = outer.filter(|node| matches!(tree.tag(*node), Some("div" | "figure" | "td" | "section")))
        else {
            break;
        };
        around.push(node);
        outer = tree.parent(node);
    }
    [inner, Some(pre)].into_iter().flatten().chain(around).find_map(|node| named(tree, node))
}

fn named(tree: &PageTree, node: NodeId) -> Option<String> {
    let data = ["data-lang", "data-language"].into_iter().find_map(|name| tree.attribute(node, name));
    let classes = tree.attribute(node, "class").unwrap_or_default();
    let by_word = || {
        let prefixes = ["language-", "lang-", "highlight-source-", "highlight-", "brush:", "sourceCode-"];
        let word = classes.split_ascii_whitespace().find_map(|class| {
            prefixes.into_iter().find_map(|prefix| class.strip_prefix(prefix)).filter(|name| !name.is_empty())
        });
        word.or_else(|| classes.split_once("brush: ").and_then(|(_, rest)| rest.split([' ', ';']).next()))
    };
    let by_name = || classes.split_ascii_whitespace().find(|class| LANGUAGES.contains(class));
    let name = data.or_else(by_word).or_else(by_name)?;
    let name = name.trim_end_matches(';').to_ascii_lowercase();
    let is_name = (1..=20).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+#._-".contains(&byte));
    (is_name && !matches!(name.as_str(), "none" | "default" | "text" | "plaintext" | "notranslate" | "auto"))
        .then_some(name)
}
