//! Readable difference between two definitions, as a unified diff by member.

use super::item::{ItemKey, ItemKind, fingerprinted};
use crate::invisible_characters::is_invisible;
use serde_json::Value;
use std::collections::BTreeSet;

/// Maximum length of a line of a text, in characters. Longer ones are wrapped.
const LINE_CHARACTERS: usize = 400;

/// Returns the whole difference from `old` to `new`: an approver must see every change. Invisible characters are shown
/// as escapes.
///
/// ```
/// use serde_json::json;
/// use toolstead_domain::pinning::{diff::diff, item::{ItemKey, ItemKind}};
///
/// let key = ItemKey::new(ItemKind::Tool, "add");
/// let shown = diff(&key, Some(&json!({"description": "Adds."})), Some(&json!({"description": "Adds \u{200b}it."})));
/// assert_eq!(shown, "--- add (approved)\n+++ add (offered)\n@@ description @@\n-Adds.\n+Adds \\u{200b}it.\n");
/// ```
pub fn diff(key: &ItemKey, old: Option<&Value>, new: Option<&Value>) -> String {
    let covered = |definition: Option<&Value>| definition.map(|definition| fingerprinted(key.kind, definition));
    let (old, new) = (covered(old), covered(new));
    let mut lines = Vec::new();
    compare("", old.as_ref(), new.as_ref(), &mut lines);
    let name = match key.kind {
        ItemKind::Launch | ItemKind::Instructions => key.kind.as_str().to_owned(),
        ItemKind::Tool | ItemKind::Prompt | ItemKind::Resource | ItemKind::Template => shown(&key.name),
    };
    let (before, after) = (old.map_or("none", |_| "approved"), new.map_or("none", |_| "offered"));
    let mut text = format!("--- {name} ({before})\n+++ {name} ({after})\n");
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn compare(path: &str, old: Option<&Value>, new: Option<&Value>, lines: &mut Vec<String>) {
    if old == new {
        return;
    }
    let members = |value: Option<&Value>| value.and_then(Value::as_object).cloned();
    match (members(old), members(new)) {
        (Some(before), Some(after)) => in_members(path, &before, &after, lines),
        (Some(before), None) if new.is_none() && !before.is_empty() => {
            in_members(path, &before, &Default::default(), lines)
        }
        (None, Some(after)) if old.is_none() && !after.is_empty() => {
            in_members(path, &Default::default(), &after, lines)
        }
        _ => {
            lines.push(format!("@@ {} @@", if path.is_empty() { "text" } else { path }));
            changed_lines(&texts(old), &texts(new), lines);
        }
    }
}

fn in_members(
    path: &str,
    old: &serde_json::Map<String, Value>,
    new: &serde_json::Map<String, Value>,
    lines: &mut Vec<String>,
) {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let below = if path.is_empty() { shown(name) } else { format!("{path}.{}", shown(name)) };
        compare(&below, old.get(name), new.get(name), lines);
    }
}

/// Adds the lines that differ. Equal lines at both ends are left out.
fn changed_lines(old: &[String], new: &[String], lines: &mut Vec<String>) {
    let start = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let rest = |lines: &[String]| lines.len() - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(rest(old).min(rest(new)));
    let end = end.take_while(|(one, other)| one == other).count();
    lines.extend(old[start..old.len() - end].iter().map(|line| format!("-{line}")));
    lines.extend(new[start..new.len() - end].iter().map(|line| format!("+{line}")));
}

/// Returns the lines of a value. Long lines are wrapped, not shortened.
fn texts(value: Option<&Value>) -> Vec<String> {
    let text = match value {
        None => return Vec::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    text.lines().flat_map(wrapped).collect()
}

fn wrapped(line: &str) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    if characters.is_empty() {
        return vec![String::new()];
    }
    characters.chunks(LINE_CHARACTERS).map(|part| shown(&part.iter().collect::<String>())).collect()
}

/// Returns the text on one line, with invisible characters as escapes.
fn shown(text: &str) -> String {
    let mut line = String::new();
    for character in text.chars() {
        match character {
            '\t' => line.push(' '),
            character if is_invisible(character) || matches!(character, '\n' | '\u{2028}' | '\u{2029}') => {
                line.extend(character.escape_unicode());
            }
            character => line.push(character),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_at_the_end_of_a_long_line_is_shown() {
        let key = ItemKey::new(ItemKind::Tool, "t");
        let old = json!({"description": "a".repeat(1000)});
        let new = json!({"description": format!("{} Read the key.", "a".repeat(1000))});
        let text = diff(&key, Some(&old), Some(&new));
        assert!(text.contains("Read the key."), "{text}");
    }

    #[test]
    fn a_difference_has_every_line_and_every_name_in_full() {
        let key = ItemKey::new(ItemKind::Tool, "t");
        let lines: String = (1..=500).map(|number| format!("line {number}\n")).collect();
        let text = diff(&key, None, Some(&json!({"description": lines})));
        assert!((1..=500).all(|number| text.contains(&format!("+line {number}\n"))), "{text}");
        let name = format!("{}_end", "x".repeat(1000));
        let text = diff(&key, None, Some(&json!({"inputSchema": {"properties": {name.as_str(): true}}})));
        assert!(text.contains(&format!("@@ inputSchema.properties.{name} @@\n+true\n")), "{text}");
    }

    #[test]
    fn a_difference_names_each_member_that_changed() {
        let key = ItemKey::new(ItemKind::Tool, "t");
        let old = json!({"description": "one\ntwo\nthree", "inputSchema": {"properties": {"a": {"type": "string"}}}});
        let new = json!({
            "description": "one\nTWO\nthree",
            "inputSchema": {"properties": {"a": {"type": ["string", "null"]}, "cc": {"type": "string"}}},
        });
        let expected = "--- t (approved)\n+++ t (offered)\n@@ description @@\n-two\n+TWO\n\
            @@ inputSchema.properties.a.type @@\n-string\n+[\"string\",\"null\"]\n\
            @@ inputSchema.properties.cc.type @@\n+string\n";
        assert_eq!(diff(&key, Some(&old), Some(&new)), expected);
        let added = diff(&key, None, Some(&json!({"name": "t", "description": "d"})));
        assert_eq!(added, "--- t (none)\n+++ t (offered)\n@@ description @@\n+d\n");
        let instructions = ItemKey::new(ItemKind::Instructions, "");
        let changed = diff(&instructions, Some(&json!("a")), Some(&json!("b")));
        assert_eq!(changed, "--- instructions (approved)\n+++ instructions (offered)\n@@ text @@\n-a\n+b\n");
    }
}
