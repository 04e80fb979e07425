//! Inserts an allow rule into the text of a TOML file.

use crate::config::tree::{
    format::ConfigFormat,
    node::{Node, NodeContent},
    origin::Origin,
};
use serde_json::json;
use std::{path::Path, sync::Arc};
use toml_edit::{Array, Document, Item, Value};

/// Returns the text with one more allow rule and every other byte unchanged, or `None` if the rule is already present.
/// The result is parsed again to verify that it differs only by the rule.
///
/// # Errors
/// The reason why the file is invalid or has no place for a rule.
pub(super) fn with_allow_rule(text: &str, rule: &str, file: &Path) -> Result<Option<String>, String> {
    let before = plain(text, file)?;
    let says_it = |known: &serde_json::Value| {
        known.as_str().or_else(|| known["rule"].as_str()).map(str::trim) == Some(rule.trim())
    };
    if before["permissions"]["allow"].as_array().is_some_and(|rules| rules.iter().any(says_it)) {
        return Ok(None);
    }
    let after = inserted(text, rule).ok_or_else(no_place)?;

    let mut expected = before;
    let mut allowed = expected["permissions"]["allow"].as_array().cloned().unwrap_or_default();
    allowed.push(rule.into());
    expected["permissions"]["allow"] = allowed.into();
    if plain(&after, file)? == expected { Ok(Some(after)) } else { Err(no_place()) }
}

fn no_place() -> String {
    "`permissions.allow` is not written as a list in a table: add the rule by hand".into()
}

/// Returns the text with the rule at the end of its list; `None` if there is no place for it.
fn inserted(text: &str, rule: &str) -> Option<String> {
    // A byte order mark is preserved, but not parsed.
    let (mark, text) = text.split_at(text.len() - text.trim_start_matches('\u{feff}').len());
    let document = Document::parse(text).ok()?;
    let quoted = json!(rule).to_string();
    let allow = match document.get("permissions") {
        None => {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            let gap = if text.is_empty() { "" } else { "\n" };
            return Some(format!("{mark}{text}{end}{gap}[permissions]\nallow = [{quoted}]\n"));
        }
        Some(permissions) => permissions.as_table_like()?.get("allow"),
    };
    let at = |at: usize, insertion: &str| Some(format!("{mark}{}{insertion}{}", text.get(..at)?, text.get(at..)?));
    match (allow, document.get("permissions")) {
        (Some(Item::Value(Value::Array(rules))), _) => {
            in_list(text, rules, &quoted).map(|text| format!("{mark}{text}"))
        }
        (None, Some(Item::Table(permissions))) if !permissions.is_dotted() && !permissions.is_implicit() => {
            let header = document.get_key_value("permissions")?.0.span()?.end;
            match text.get(header..)?.find('\n') {
                Some(end) => at(header + end + 1, &format!("allow = [{quoted}]\n")),
                None => at(text.len(), &format!("\nallow = [{quoted}]\n")),
            }
        }
        _ => None,
    }
}

/// Returns the text with the rule after the last one of the list, on a line of its own if the closing bracket has one.
fn in_list(text: &str, rules: &Array, quoted: &str) -> Option<String> {
    let list = rules.span()?;
    let closing = list.end.checked_sub(1)?;
    let last = rules.iter().last().and_then(Value::span);
    let end = last.as_ref().map_or(list.start + 1, |last| last.end);
    let (before, between, after) = (text.get(..end)?, text.get(end..closing)?, text.get(closing..)?);
    let comma = if last.is_some() && !rules.trailing_comma() { "," } else { "" };
    Some(match between.rfind('\n') {
        Some(line) => {
            let (comments, indent_of_bracket) = between.split_at(line + 1);
            let first_of_line = last.and_then(|last| Some(text.get(..last.start)?.rsplit_once('\n')?.1));
            let indent = first_of_line.filter(|indent| indent.trim().is_empty()).unwrap_or("    ");
            let newline = if comments.ends_with("\r\n") { "\r\n" } else { "\n" };
            format!("{before}{comma}{comments}{indent}{quoted},{newline}{indent_of_bracket}{after}")
        }
        None if rules.is_empty() => format!("{before}{quoted}{between}{after}"),
        None => format!("{before}, {quoted}{between}{after}"),
    })
}

/// Returns the content as JSON, without origins. Missing tables are null.
fn plain(text: &str, file: &Path) -> Result<serde_json::Value, String> {
    let root = ConfigFormat::Toml.read(text, &Arc::from(file)).map_err(|problem| problem.to_string())?;
    Ok(root.content.to_json())
}

/// Returns the line of the rule; 0 if it is not found.
pub(super) fn line_of(text: &str, rule: &str, file: &Path) -> usize {
    let find = || {
        let root = ConfigFormat::Toml.read(text, &Arc::from(file)).ok()?;
        let member = |node: &Node, name: &str| match &node.content {
            NodeContent::Table(members) => members.iter().find(|one| one.name == name).map(|one| one.node.clone()),
            _ => None,
        };
        let NodeContent::List(rules) = member(&member(&root, "permissions")?, "allow")?.content else { return None };
        let says_it = |one: &Node| match &one.content {
            NodeContent::Text(text) => text.trim() == rule,
            NodeContent::Table(_) => {
                matches!(member(one, "rule"), Some(Node { content: NodeContent::Text(text), .. }) if text.trim() == rule)
            }
            _ => false,
        };
        let found = rules.into_iter().find(says_it)?;
        match found.origin {
            Origin::File(_, line) => Some(line),
            _ => None,
        }
    };
    find().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "Write(//w/a \"b\")";

    #[track_caller]
    fn check(before: &str, expected: &str) {
        let after = with_allow_rule(before, RULE, Path::new("/x.toml")).unwrap();
        assert_eq!(after.as_deref(), Some(expected));
        assert_eq!(with_allow_rule(expected, RULE, Path::new("/x.toml")), Ok(None), "it is added once");
    }

    #[test]
    fn a_rule_is_added_and_every_other_byte_stays() {
        check("", "[permissions]\nallow = [\"Write(//w/a \\\"b\\\")\"]\n");
        check(
            "[limits]\nprocesses = 3",
            "[limits]\nprocesses = 3\n\n[permissions]\nallow = [\"Write(//w/a \\\"b\\\")\"]\n",
        );
        check(
            "# mine\n[permissions] # so\nmode = \"plan\"\n",
            "# mine\n[permissions] # so\nallow = [\"Write(//w/a \\\"b\\\")\"]\nmode = \"plan\"\n",
        );
        check("[permissions]", "[permissions]\nallow = [\"Write(//w/a \\\"b\\\")\"]\n");
        check("[permissions]\nallow = []\n", "[permissions]\nallow = [\"Write(//w/a \\\"b\\\")\"]\n");
        check(
            "[permissions]\nallow = [ # why\n  'Read', # because\n]\ndeny = ['x']\n",
            "[permissions]\nallow = [ # why\n  'Read', # because\n  \"Write(//w/a \\\"b\\\")\",\n]\ndeny = ['x']\n",
        );
        check("permissions.allow = ['Read']\n", "permissions.allow = ['Read', \"Write(//w/a \\\"b\\\")\"]\n");
        check("permissions = { allow = [] }\n", "permissions = { allow = [\"Write(//w/a \\\"b\\\")\"] }\n");
        check(
            "[permissions]\nallow = ['Read'] # all\n",
            "[permissions]\nallow = ['Read', \"Write(//w/a \\\"b\\\")\"] # all\n",
        );
        check(
            "[permissions]\nallow = [\n    'Read', # all\n    'Grep',\n    # the end\n]\ndeny = []\n",
            "[permissions]\nallow = [\n    'Read', # all\n    'Grep',\n    # the end\n    \"Write(//w/a \\\"b\\\")\",\n]\ndeny = []\n",
        );
        check(
            "[permissions]\nallow = [\n  'Read' # all\n]\n",
            "[permissions]\nallow = [\n  'Read', # all\n  \"Write(//w/a \\\"b\\\")\",\n]\n",
        );
        check(
            "\u{feff}[permissions]\r\nallow = [\r\n  'Read'\r\n]\r\n",
            "\u{feff}[permissions]\r\nallow = [\r\n  'Read',\r\n  \"Write(//w/a \\\"b\\\")\",\r\n]\r\n",
        );
        check("[permissions]\nallow = ['Read',]\n", "[permissions]\nallow = ['Read', \"Write(//w/a \\\"b\\\")\",]\n");
    }

    #[test]
    fn a_rule_that_is_already_listed_with_examples_is_not_added_again() {
        let text = "[permissions]\nallow = [{ rule = \"Bash(git *)\", matches = [\"git x\"] }]\n";
        assert_eq!(with_allow_rule(text, "Bash(git *)", Path::new("/x.toml")), Ok(None));
        assert_eq!(line_of(text, "Bash(git *)", Path::new("/x.toml")), 2);
    }

    #[test]
    fn adding_a_rule_to_an_unsuitable_file_is_an_error() {
        for text in [
            "permissions = 1\n",
            "[permissions]\nallow = \"x\"",
            "[permissions",
            "permissions = { mode = 'plan' }\n",
            "permissions.mode = 'plan'\n",
            "[permissions]\nallow = 'Read'\n",
            "[permissions\n",
            "a = 1\na = 2\n",
        ] {
            assert!(with_allow_rule(text, RULE, Path::new("/x.toml")).is_err(), "{text}");
        }
    }
}
