//! Converts the tool names in a file to a tool selection. An entry that a selection cannot express removes the tool and
//! never adds one.

use crate::config::{
    sections::policy::canonical_name,
    tree::{origin::Origin, problem::Problem},
};
use toolstead_domain::ToolSelection;

/// Name of a tool, and the origin of the name.
pub(super) type TextWithOrigin = (String, Origin);

/// Returns the selection of the tools in `only` (all tools if it is `None`) without those in `without`. Adds the
/// entries that have no effect to `notes`.
pub(super) fn selection(
    only: Option<Vec<TextWithOrigin>>,
    without: Vec<TextWithOrigin>,
    notes: &mut Vec<Problem>,
) -> ToolSelection {
    let chosen = match only {
        Some(names) if !names.iter().any(|(name, _)| name == "*") => {
            let exact = names.into_iter().filter_map(|(name, origin)| match name.split_once('(') {
                // A selection cannot allow only some calls of a tool.
                Some((tool, _)) => {
                    let message = format!(
                        "`{name}` does not count: a list of tools takes whole tools, so write `{tool}`, and say which \
                         calls in a rule"
                    );
                    notes.push(Problem::new(origin, message));
                    None
                }
                None => Some(canonical(&name)),
            });
            ToolSelection::only(exact.collect::<Vec<_>>())
        }
        _ => ToolSelection::all(),
    };
    let mut removed: Vec<String> = Vec::new();
    for (name, origin) in without {
        let tools = outside_of_parentheses(&name);
        if name.contains('(') {
            let message = format!("`{name}` takes all of `{}` away: a rule takes calls away", tools.trim());
            notes.push(Problem::new(origin, message));
        }
        // Tool names contain no blanks, so the text contains several names.
        removed.extend(tools.split_whitespace().map(|tool| format!("-{}", canonical(tool))));
    }
    match removed.is_empty() {
        true => chosen,
        // Cannot fail: entries with signs only are always valid together.
        false => chosen.clone().adjusted(&removed.join(",")).unwrap_or_else(|_| ToolSelection::only([""; 0])),
    }
}

fn outside_of_parentheses(name: &str) -> String {
    let mut depth = 0_usize;
    let letters = name.chars().map(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => return letter,
            _ => {}
        }
        ' '
    });
    letters.collect()
}

/// Returns the canonical name of a tool; `mcp__git` becomes the pattern for all tools of that server.
fn canonical(name: &str) -> String {
    match name.strip_prefix("mcp__") {
        Some(server) if !server.is_empty() && !server.contains("__") && !server.contains('*') => format!("{name}__*"),
        _ => canonical_name(name).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(only: Option<&[&str]>, without: &[&str], expected: &ToolSelection, outcome: usize) {
        let named = |names: &[&str]| names.iter().map(|name| (name.to_string(), Origin::Default)).collect::<Vec<_>>();
        let mut notes = Vec::new();
        let selection = selection(only.map(named), named(without), &mut notes);
        assert_eq!((&selection, notes.len()), (expected, outcome), "{only:?} {without:?} {notes:?}");
    }

    #[test]
    fn foreign_tool_names_are_mapped_and_partial_grants_select_no_tool() {
        check(None, &[], &ToolSelection::all(), 0);
        check(Some(&["*"]), &[], &ToolSelection::all(), 0);
        check(Some(&[]), &[], &ToolSelection::only([""; 0]), 0);
        check(
            Some(&["Read", "grep_tool", "mcp__git", "mcp__git__push", "WhoKnows"]),
            &[],
            &ToolSelection::only(["read_file", "grep", "mcp__git__*", "mcp__git__push", "WhoKnows"]),
            0,
        );
        check(Some(&["Read", "Bash(git *)"]), &[], &ToolSelection::only(["read_file"]), 1);
        check(None, &["Bash(rm *)", "Write"], &ToolSelection::all().adjusted("-bash,-write_file").unwrap(), 1);
        check(Some(&["Read"]), &["Read"], &ToolSelection::only(["read_file"]).adjusted("-read_file").unwrap(), 0);
    }
}
