//! Lists of commands, hosts and tools of kodelet.

use crate::config::{
    imports::translation::{ForeignFormat, TranslatedFileBuilder},
    tree::{
        node::{Member, Node, NodeContent},
        origin::Origin,
    },
};
use std::path::Path;
use toolstead_domain::{Effect, workspace_roots::lexical};

/// Programs that kodelet never runs, regardless of its lists.
const BANNED: &[&str] = &["vim", "view", "less", "more", "cd"];

pub(super) const FORMAT: ForeignFormat = ForeignFormat { keys: &["allowed_domains_file", "allowed_tools"], take };

fn take(made: &mut TranslatedFileBuilder<'_>, member: Member) -> Option<Member> {
    let Member { name, origin, node } = member;
    match (name.as_str(), node.content) {
        ("allowed_tools", NodeContent::List(nodes)) => made.selection(&name, nodes, &origin),
        ("allowed_tools", NodeContent::Text(none)) if none == "none" => made.selection(&name, Vec::new(), &origin),
        ("allowed_commands", content) => commands(made, content, &node.origin),
        ("allowed_domains_file", NodeContent::Text(path)) => {
            let base = made.surroundings.base;
            let path = match (path.strip_prefix("~/"), base.home) {
                (Some(rest), Some(home)) => lexical(home, Path::new(rest)),
                _ => lexical(base.folder, Path::new(&path)),
            };
            made.domains.push((path, node.origin));
            made.note(&origin, "hosts that are not in the file require approval in Toolstead; kodelet refuses them");
        }
        (_, content) => return Some(Member { name, origin, node: Node { content, ..node } }),
    }
    None
}

/// Translates the list of commands to allow rules: each entry is a whole command, in which `*` is a wildcard. Adds deny
/// rules for the programs in [`BANNED`].
fn commands(made: &mut TranslatedFileBuilder<'_>, content: NodeContent, origin: &Origin) {
    for (entry, origin) in made.texts("allowed_commands", content, origin) {
        match entry.contains(['?', '[', ']', '{', '}']) {
            true => {
                made.note(&origin, format!("the command {entry:?} is left out: `*` is the only supported wildcard"));
            }
            false => {
                let rule = format!("Bash({entry})");
                made.derived_rule(Effect::Allow, rule, format!("`{entry}` of `allowed_commands`"), &origin);
            }
        }
    }
    for banned in BANNED {
        let entry = format!("`allowed_commands`, in addition to which kodelet bans `{banned}`");
        made.derived_rule(Effect::Deny, format!("Bash({banned} *)"), entry, origin);
    }
    made.note(origin, "commands that are not in the list require approval in Toolstead; kodelet refuses them");
}
