//! Readable difference between two definitions, as a unified diff by member.

use super::item::{ItemKey, ItemKind, fingerprinted};
use crate::invisible_characters::is_invisible;
use serde_json::Value;
use std::collections::BTreeSet;

/// Maximum length of a line of a text, in characters. Longer ones are wrapped.
const LINE_CHARACTERS: usize = 400;
/// Length of a difference by member from which the definitions are compared as a whole. Each changed member repeats its
/// path, so nested members with long names would make a difference far larger than the definitions.
const MAX_BYTES: usize = 256 << 10;

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
    let mut difference = DiffLines::default();
    compare("", old.as_ref(), new.as_ref(), &mut difference);
    let lines = match difference.is_full() {
        true => whole_definitions(old.as_ref(), new.as_ref()),
        false => difference.lines,
    };
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

/// Lines of a difference by member.
#[derive(Default)]
struct DiffLines {
    lines: Vec<String>,
    bytes: usize,
}

impl DiffLines {
    fn add(&mut self, line: String) {
        self.bytes += line.len();
        self.lines.push(line);
    }

    fn is_full(&self) -> bool {
        self.bytes > MAX_BYTES
    }
}

/// Returns the lines of the difference between the two definitions, which are compared as compact JSON texts.
fn whole_definitions(old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
    let text = |value: Option<&Value>| value.map_or_else(Vec::new, |value| wrapped(&value.to_string()));
    let mut difference = DiffLines { lines: vec!["@@ definition @@".to_owned()], bytes: 0 };
    changed_lines(&text(old), &text(new), &mut difference);
    difference.lines
}

fn compare(path: &str, old: Option<&Value>, new: Option<&Value>, difference: &mut DiffLines) {
    if old == new || difference.is_full() {
        return;
    }
    let members = |value: Option<&Value>| value.and_then(Value::as_object).cloned();
    match (members(old), members(new)) {
        (Some(before), Some(after)) => in_members(path, &before, &after, difference),
        (Some(before), None) if new.is_none() && !before.is_empty() => {
            in_members(path, &before, &Default::default(), difference)
        }
        (None, Some(after)) if old.is_none() && !after.is_empty() => {
            in_members(path, &Default::default(), &after, difference)
        }
        _ => {
            difference.add(format!("@@ {} @@", if path.is_empty() { "text" } else { path }));
            changed_lines(&texts(old), &texts(new), difference);
        }
    }
}

fn in_members(
    path: &str,
    old: &serde_json::Map<String, Value>,
    new: &serde_json::Map<String, Value>,
    difference: &mut DiffLines,
) {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        if difference.is_full() {
            return;
        }
        let below = if path.is_empty() { shown(name) } else { format!("{path}.{}", shown(name)) };
        compare(&below, old.get(name), new.get(name), difference);
    }
}

/// Adds the lines that differ. Equal lines at both ends are left out.
fn changed_lines(old: &[String], new: &[String], difference: &mut DiffLines) {
    let start = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let rest = |lines: &[String]| lines.len() - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(rest(old).min(rest(new)));
    let end = end.take_while(|(one, other)| one == other).count();
    old[start..old.len() - end].iter().for_each(|line| difference.add(format!("-{line}")));
    new[start..new.len() - end].iter().for_each(|line| difference.add(format!("+{line}")));
}

/// Returns the lines of a value. Long lines are wrapped, not shortened.
fn texts(value: Option<&Value>) -> Vec<String> {
    let text = match value {
        None => return Vec::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    text.split('\n').flat_map(wrapped).collect()
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
    fn a_carriage_return_is_a_change_that_is_shown() {
        let key = ItemKey::new(ItemKind::Tool, "t");
        let text = diff(&key, Some(&json!({"description": "a\nb"})), Some(&json!({"description": "a\r\nb"})));
        assert!(text.ends_with("-a\n+a\\u{d}\n"), "{text}");
    }

    #[test]
    fn a_diff_is_complete_and_at_most_twice_the_size_of_the_definition() {
        let key = ItemKey::new(ItemKind::Tool, "t");
        let many: serde_json::Map<String, Value> = (0..5_000).map(|number| (number.to_string(), json!(1))).collect();
        let name = "x".repeat(30_000);
        let new = json!({"inputSchema": {"properties": {name.as_str(): many}}});
        let text = diff(&key, None, Some(&new));
        assert!(text.len() < 2 * new.to_string().len(), "{}", text.len());
        let shown: String = text.lines().filter_map(|line| line.strip_prefix('+')).skip(1).collect();
        assert!(shown.contains(&name) && shown.contains("\"4999\":1"), "{}", shown.len());
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
