//! Characters of a definition that hide or reorder text for users, while a model reads it.

use crate::{definition_scan, invisible_characters::changes_direction};
use serde_json::{Map, Value};
use std::fmt;

/// First character of a definition that hides or reorders text, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HiddenCharacter {
    character: char,
    kind: &'static str,
    /// Names of the members on the way to the character, separated by dots.
    place: String,
}

/// Maximum length of a reported path, in characters.
const MAX_PLACE_CHARACTERS: usize = 120;

/// Returns the first character that hides or reorders text, in any text or member name of the definition.
pub(super) fn find(definition: &Map<String, Value>) -> Option<HiddenCharacter> {
    in_members(definition, &mut Vec::new())
}

/// Returns the first character in the text that hides or reorders text; `place` is its reported position.
pub(super) fn find_in_text(place: &str, text: &str) -> Option<HiddenCharacter> {
    in_text(text, &[place.to_owned()])
}

fn in_members(members: &Map<String, Value>, place: &mut Vec<String>) -> Option<HiddenCharacter> {
    members.iter().find_map(|(name, value)| {
        place.push(name.clone());
        let found = in_text(name, place).or_else(|| in_value(value, place));
        place.pop();
        found
    })
}

/// Recurses as deep as the JSON parser allows a definition to be nested.
fn in_value(value: &Value, place: &mut Vec<String>) -> Option<HiddenCharacter> {
    match value {
        Value::String(text) => in_text(text, place),
        Value::Array(items) => items.iter().find_map(|item| in_value(item, place)),
        Value::Object(members) => in_members(members, place),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn in_text(text: &str, place: &[String]) -> Option<HiddenCharacter> {
    let (character, kind) = definition_scan::first_hidden(text)?;
    let place: String = place.join(".").chars().filter(|one| is_displayable(*one)).take(MAX_PLACE_CHARACTERS).collect();
    Some(HiddenCharacter { character, kind, place })
}

fn is_displayable(character: char) -> bool {
    kind(character).is_none() && !character.is_control()
}

/// Returns `true` if the character hides or reorders text that a model reads. Line ends and tabs do not.
pub fn is_hidden(character: char) -> bool {
    kind(character).is_some()
}

/// Returns the kind of a character that no definition needs; `None` for all others. Joiners in emoji are allowed.
fn kind(character: char) -> Option<&'static str> {
    match character {
        '\t' | '\n' | '\r' => None,
        character if character.is_control() => Some("control character"),
        character if changes_direction(character) => Some("character that changes the direction of text"),
        '\u{e0000}'..='\u{e007f}' => Some("tag character"),
        _ => None,
    }
}

impl fmt::Display for HiddenCharacter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { character, kind, place } = self;
        let code = u32::from(*character);
        write!(
            f,
            "its definition has the {kind} U+{code:04X} in `{place}`, which can hide text from people but not from a model"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(definition: Value, expected: Option<&str>) {
        let found = find(definition.as_object().unwrap()).map(|hidden| hidden.to_string());
        let (found, expected) = (found.as_deref(), expected);
        match expected {
            None => assert_eq!(found, None),
            Some(expected) => assert!(found.is_some_and(|found| found.contains(expected)), "{found:?}"),
        }
    }

    #[test]
    fn hidden_text_is_found_in_every_member_of_a_definition() {
        for (text, expected) in [
            ("a\u{1b}[8mb", "control character U+001B"),
            ("a\u{0}b", "control character U+0000"),
            ("a\u{7f}b", "control character U+007F"),
            ("a\u{9b}b", "control character U+009B"),
            ("a\u{202e}b", "changes the direction of text U+202E"),
            ("a\u{2066}b", "changes the direction of text U+2066"),
            ("a\u{200f}b", "changes the direction of text U+200F"),
            ("a\u{e0041}b", "tag character U+E0041"),
        ] {
            check(json!({"name": text}), Some(expected));
            check(json!({"title": text}), Some("in `title`"));
            check(json!({"description": text}), Some(expected));
            let property = json!({"properties": {"path": {"enum": ["x", text]}}});
            check(json!({"inputSchema": property}), Some("in `inputSchema.properties.path.enum`"));
            check(json!({"inputSchema": {"properties": {text: {}}}}), Some(expected));
            check(json!({"annotations": {"title": text}}), Some(expected));
        }
    }

    #[test]
    fn line_breaks_tabs_foreign_scripts_and_emoji_are_not_hidden_text() {
        let text = "a\tb\r\nc äöü 日本語 עברית العربية 👩\u{200d}💻 ❤\u{fe0f} ภาษา\u{200b}ไทย";
        check(json!({"description": text, "inputSchema": {"enum": [text]}}), None);
    }
}
