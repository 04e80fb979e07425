//! A `tools` block with a table for each tool, as in Toolstead's own files, and `enabled`.

use crate::config::{
    imports::{
        foreign_tools::FOREIGN_TOOLS,
        prohibitions,
        translation::{ForeignFormat, TranslatedFileBuilder},
    },
    sections::policy::{is_known_tool, is_of_mcp, no_such_tool},
    tree::{
        node::{Member, Node, NodeContent},
        problem::Problem,
    },
};
use toolstead_domain::{Effect, tool_input_schema::nearest_name};
use toolstead_infrastructure::builtin::names_and_aliases;

/// Keys of a tool's block, as in Toolstead's own files.
const BLOCK_KEYS: &[&str] = &["allowed_commands", "denied_commands", "allowed_paths", "denied_paths", "timeout"];

pub(super) const FORMAT: ForeignFormat = ForeignFormat { keys: &["tools"], take };

fn take(made: &mut TranslatedFileBuilder<'_>, member: Member) -> Option<Member> {
    match (member.name.as_str(), member.node.content) {
        ("tools", NodeContent::Table(tools)) => tools.into_iter().for_each(|tool| block(made, tool)),
        (_, content) => return Some(Member { node: Node { content, ..member.node }, ..member }),
    }
    None
}

/// Translates the table of one tool, whose keys are those of Toolstead's own files.
fn block(made: &mut TranslatedFileBuilder<'_>, tool: Member) {
    let Member { name, origin, node } = tool;
    let NodeContent::Table(members) = node.content else {
        let message = format!("`tools.{name}` must be a table, got {}", node.content);
        return made.problems.push(Problem::new(node.origin, message));
    };
    let of_mcp = is_of_mcp(&name);
    if !is_known_tool(&name) && !of_mcp {
        let is_typo = !FOREIGN_TOOLS.contains(&name.as_str()) && nearest_name(&name, names_and_aliases()).is_some();
        let message = format!("`tools.{name}` is left out: no tool is called `{name}` here");
        return match is_typo {
            true => made.problems.push(Problem::new(origin, no_such_tool(&name, &names_and_aliases()))),
            false => made.note(&origin, message),
        };
    }
    let (known, others): (Vec<Member>, Vec<Member>) =
        members.into_iter().partition(|member| BLOCK_KEYS.contains(&member.name.as_str()));
    for Member { name: key, origin, node } in others {
        match (key.as_str(), &node.content) {
            ("enabled", NodeContent::Boolean(true)) => {}
            ("enabled", NodeContent::Boolean(false)) => {
                made.derived_rule(Effect::Deny, name.clone(), format!("`false` of `tools.{name}.enabled`"), &origin);
            }
            (key, _) if prohibitions::HARMLESS_OF_TOOLS.contains(&key) => {
                made.note(&origin, format!("`tools.{name}.{key}` has no meaning here"));
            }
            (key, content) => {
                made.problems.push(prohibitions::unknown(&format!("tools.{name}.{key}"), content, &origin));
            }
        }
    }
    made.put("tools", &name, &origin, NodeContent::Table(known));
}
