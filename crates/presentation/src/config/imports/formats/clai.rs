//! Banned phrases and the tool selection of clai.

use crate::config::{
    imports::translation::{ForeignFormat, TranslatedFileBuilder},
    tree::{
        node::{Member, Node, NodeContent},
        origin::Origin,
    },
};
use toolstead_domain::Effect;

pub(super) const FORMAT: ForeignFormat = ForeignFormat { keys: &["tools", "use_tools", "use-tools"], take };

fn take(made: &mut TranslatedFileBuilder<'_>, member: Member) -> Option<Member> {
    let Member { name, origin, node } = member;
    match (name.as_str(), node.content) {
        ("tools", NodeContent::List(nodes)) => made.selection(&name, nodes, &origin),
        ("use_tools" | "use-tools", NodeContent::Boolean(false)) => {
            made.put("tools", "select", &origin, NodeContent::Text(String::new()));
        }
        ("use_tools" | "use-tools", NodeContent::Boolean(true)) => {}
        ("cmd-ban" | "cmd_ban" | "cmdBan", content) => banned(made, &name, content, &node.origin),
        (_, content) => return Some(Member { name, origin, node: Node { content, ..node } }),
    }
    None
}

/// Translates banned phrases, which are consecutive words anywhere in a command, to deny rules.
fn banned(made: &mut TranslatedFileBuilder<'_>, name: &str, content: NodeContent, origin: &Origin) {
    let phrases = match content {
        NodeContent::Text(text) => text.split(',').map(|phrase| (phrase.to_owned(), origin.clone())).collect(),
        content => made.texts(name, content, origin),
    };
    for (phrase, origin) in phrases.iter().filter(|(phrase, _)| !phrase.trim().is_empty()) {
        let words: Vec<String> = phrase.split_whitespace().map(literal).collect();
        let words = words.join(" ");
        let entry = format!("`{}` of `{name}`", phrase.trim());
        made.derived_rule(Effect::Deny, format!("Bash({words} *)"), entry.clone(), origin);
        made.derived_rule(Effect::Deny, format!("Bash(* {words} *)"), entry, origin);
    }
}

/// Escapes a word of a phrase. Quotes have the same meaning in patterns as in commands, but `*` does not.
fn literal(word: &str) -> String {
    word.replace('*', r"\*")
}
