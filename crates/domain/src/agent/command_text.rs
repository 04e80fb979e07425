//! Insertion of arguments into the text of a command.
//!
//! `$ARGUMENTS` is replaced by everything that the user typed after the name, `$1` to `$99` by one word of it, and
//! `{{.name}}` by the argument with that name. Inserted text is never searched for placeholders again.

use crate::agent::definition::{CommandPromptTemplate, Skill};
use std::collections::BTreeMap;

/// Maximum length of the resulting text, in bytes.
const MOST_BYTES: usize = 1 << 20;
/// Maximum length of an argument name, in bytes.
const LONGEST_NAME: usize = 64;
const ALL: &str = "$ARGUMENTS";

/// Reason why the text cannot be produced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentInsertionError {
    /// Required arguments are missing. Holds their names.
    #[error("it needs {}", .0.iter().map(|name| format!("`{name}=…`")).collect::<Vec<_>>().join(" and "))]
    Missing(Vec<String>),
    /// The text would be too long.
    #[error("with these arguments its text is longer than {MOST_BYTES} bytes: give shorter ones")]
    TooLong,
}

impl CommandPromptTemplate {
    /// Returns the text for what the user typed after the name. Words `name=value` set the argument with this name, if
    /// there is one; quotes hold blanks together.
    ///
    /// # Errors
    /// [`ArgumentInsertionError`] if arguments are missing or the text is too long.
    pub fn text(&self, typed: &str) -> Result<String, ArgumentInsertionError> {
        let mut named = BTreeMap::new();
        let mut rest = Vec::new();
        for word in words(typed) {
            match word.split_once('=') {
                Some((name, value)) if self.arguments.iter().any(|one| one.name == name) => {
                    named.insert(name.to_owned(), value.to_owned());
                }
                _ => rest.push(word),
            }
        }
        // Unchanged unless named arguments were removed from it.
        let rest = if named.is_empty() { typed.trim().to_owned() } else { rest.join(" ") };
        self.text_with(&rest, &named)
    }

    /// Returns the body with the typed words and the named arguments inserted. Arguments missing in `named` get their
    /// defaults.
    ///
    /// # Errors
    /// [`ArgumentInsertionError`] if arguments are missing or the text is too long.
    pub fn text_with(&self, typed: &str, named: &BTreeMap<String, String>) -> Result<String, ArgumentInsertionError> {
        let mut values = BTreeMap::new();
        let mut missing = Vec::new();
        for argument in &self.arguments {
            match named.get(&argument.name).or(argument.default.as_ref()) {
                Some(value) => _ = values.insert(argument.name.as_str(), value.as_str()),
                None => missing.push(argument.name.clone()),
            }
        }
        match missing.is_empty() {
            true => filled(&self.body, typed, &values),
            false => Err(ArgumentInsertionError::Missing(missing)),
        }
    }

    /// Returns `true` if the text has a placeholder for typed words.
    pub fn takes_words(&self) -> bool {
        next_place(&self.body, &BTreeMap::new()).is_some()
    }
}

impl Skill {
    /// Returns the instructions with the typed words in place of the placeholders, or appended if there is no
    /// placeholder.
    ///
    /// # Errors
    /// [`ArgumentInsertionError::TooLong`] if the text is too long.
    pub fn text(&self, typed: &str) -> Result<String, ArgumentInsertionError> {
        filled(&self.body, typed, &BTreeMap::new())
    }
}

/// Returns the body with all placeholders replaced. Appends the typed words if the body has no placeholder for them.
fn filled(body: &str, typed: &str, named: &BTreeMap<&str, &str>) -> Result<String, ArgumentInsertionError> {
    let typed = typed.trim();
    let words = words(typed);
    let (mut text, mut rest, mut is_used) = (String::new(), body, typed.is_empty());
    let push = |text: &mut String, part: &str| {
        text.push_str(part);
        if text.len() > MOST_BYTES { Err(ArgumentInsertionError::TooLong) } else { Ok(()) }
    };
    while let Some((at, length, place)) = next_place(rest, named) {
        push(&mut text, &rest[..at])?;
        match place {
            Placeholder::All => {
                push(&mut text, typed)?;
                is_used = true;
            }
            Placeholder::Word(number) => {
                push(&mut text, words.get(number - 1).map_or("", String::as_str))?;
                is_used = true;
            }
            Placeholder::Named(value) => push(&mut text, value)?,
        }
        rest = &rest[at + length..];
    }
    push(&mut text, rest)?;
    if !is_used {
        push(&mut text, &format!("\n\nArguments: {typed}"))?;
    }
    Ok(text)
}

enum Placeholder<'a> {
    All,
    Word(usize),
    Named(&'a str),
}

/// Returns the byte position, the length in bytes and the kind of the first placeholder in the text. `{{.name}}` is one
/// only if `named` contains the name.
fn next_place<'a>(text: &str, named: &BTreeMap<&str, &'a str>) -> Option<(usize, usize, Placeholder<'a>)> {
    text.match_indices(['$', '{']).find_map(|(at, _)| {
        let rest = &text[at..];
        if let Some(behind) = rest.strip_prefix(ALL) {
            let is_longer_word = behind.starts_with(|next: char| next.is_alphanumeric() || next == '_');
            return (!is_longer_word).then_some((at, ALL.len(), Placeholder::All));
        }
        if let Some(behind) = rest.strip_prefix('$') {
            let digits = behind.len() - behind.trim_start_matches(|next: char| next.is_ascii_digit()).len();
            let number = behind[..digits].parse().ok().filter(|number| (1..=99).contains(number))?;
            return Some((at, 1 + digits, Placeholder::Word(number)));
        }
        let behind = rest.strip_prefix("{{.")?;
        let (name, end) = behind.split_at(behind.bytes().take(LONGEST_NAME + 1).position(|byte| byte == b'}')?);
        if !end.starts_with("}}") {
            return None;
        }
        named.get(name).map(|value| (at, "{{.}}".len() + name.len(), Placeholder::Named(value)))
    })
}

/// Splits a text into words; quotes hold blanks together, and an unclosed quote extends to the end.
fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    for letter in text.chars() {
        match (quote, letter) {
            (Some(open), close) if open == close => quote = None,
            (None, '"' | '\'') if word.as_ref().is_none_or(|word| word.is_empty() || word.ends_with('=')) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, blank) if blank.is_whitespace() => all.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    all.extend(word);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::definition::CommandArgument;
    use proptest::prelude::*;

    #[track_caller]
    fn check(body: &str, typed: &str, expected: &str) {
        assert_eq!(CommandPromptTemplate::new("c", "", body).text(typed).unwrap(), expected, "{body} {typed}");
    }

    #[test]
    fn typed_arguments_replace_their_placeholders_or_are_appended_to_the_text() {
        check("Review.", "", "Review.");
        check("Review.", "src and docs", "Review.\n\nArguments: src and docs");
        check("Review $ARGUMENTS now, $ARGUMENTS", " a  b ", "Review a  b now, a  b");
        check("$2 before $1; $3.", "one 'two words' ", "two words before one; .");
        check("$12$ARGUMENTSX $0 $100 $x {{.x}} ${1}", "a", "$ARGUMENTSX $0 $100 $x {{.x}} ${1}");
        check("Fix it's $1", "it's \"open end", "Fix it's it's");
    }

    #[test]
    fn placeholders_in_inserted_arguments_are_not_expanded() {
        check("$1 $2", "$2 $ARGUMENTS", "$2 $ARGUMENTS");
    }

    #[test]
    fn a_named_argument_has_a_given_value_or_a_default_or_is_reported_as_missing() {
        let argument =
            |name: &str, default: Option<&str>| CommandArgument { name: name.into(), default: default.map(Into::into) };
        let mut command = CommandPromptTemplate::new("c", "", "{{.who}} is {{.what}}. {{.other}}");
        command.arguments = vec![argument("who", None), argument("what", Some("here"))];
        assert_eq!(command.text("who='Ada L' what={{.who}}").unwrap(), "Ada L is {{.who}}. {{.other}}");
        assert_eq!(command.text("who=Ada more words").unwrap(), "Ada is here. {{.other}}\n\nArguments: more words");
        let missing = command.text("what=x").unwrap_err();
        assert_eq!(missing.to_string(), "it needs `who=…`");
    }

    #[test]
    fn a_command_text_that_would_become_too_long_is_rejected() {
        let command = CommandPromptTemplate::new("c", "", "$ARGUMENTS ".repeat(1_000));
        assert_eq!(command.text(&"x".repeat(2_000)), Err(ArgumentInsertionError::TooLong));
    }

    proptest! {
        #[test]
        fn a_text_without_placeholders_keeps_its_content_and_expansion_never_panics(body in ".{0,80}", typed in ".{0,40}") {
            let command = CommandPromptTemplate::new("c", "", body.clone());
            let text = command.text(&typed).unwrap();
            if !command.takes_words() {
                prop_assert!(text.starts_with(&body));
            }
        }
    }
}
