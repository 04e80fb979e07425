//! Replacements of regular expression matches: a text in which `$` may refer to groups.
//!
//! Everything in it is written, or the edit is refused. A reference to a missing group never becomes an empty text.

use crate::builtin::text::wording::counted;
use regex::{Captures, Regex};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// A replacement whose groups all exist.
#[derive(Debug)]
pub(super) struct ReplacementTemplate<'t>(Vec<Piece<'t>>);

#[derive(Debug)]
enum Piece<'t> {
    Text(&'t str),
    /// Text that the group with this number matched; empty if the group did not participate.
    Group(usize),
}

impl<'t> ReplacementTemplate<'t> {
    /// Parses a replacement: `$` and digits are a group, `${name}` is one by its name or number, `$$` is a dollar sign,
    /// and so is any other `$`.
    ///
    /// # Errors
    /// `invalid_input` for a group that the expression does not have, and for ambiguous references.
    pub(super) fn of(text: &'t str, regex: &Regex) -> Result<Self, ToolFailure> {
        let by_name = |name: &str| regex.capture_names().position(|known| known == Some(name));
        let by_number = |digits: &str| digits.parse().ok().filter(|number| *number < regex.captures_len());
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let is_digit = |c: char| c.is_ascii_digit();
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let behind = &rest[at + 1..];
            let digits = behind.len() - behind.trim_start_matches(is_digit).len();
            let word = behind.len() - behind.trim_start_matches(is_word).len();
            let (piece, length) = if behind.starts_with('$') {
                (Piece::Text("$"), 1)
            } else if digits > 0 {
                let digits = &behind[..digits];
                let group = by_number(digits).ok_or_else(|| no_group(&format!("${digits}"), regex))?;
                (Piece::Group(group), digits.len())
            } else if let Some(inner) = behind.strip_prefix('{') {
                let name = inner.split_once('}').map(|(name, _)| name).ok_or_else(unclosed)?;
                let group = by_number(name).filter(|_| name.chars().all(is_digit)).or_else(|| by_name(name));
                let group = group.ok_or_else(|| no_group(&format!("${{{name}}}"), regex))?;
                (Piece::Group(group), name.len() + 2)
            } else if by_name(&behind[..word]).is_some() {
                return Err(unclear(&behind[..word]));
            } else {
                (Piece::Text("$"), 0)
            };
            pieces.extend([Piece::Text(&rest[..at]), piece]);
            rest = &behind[length..];
        }
        pieces.push(Piece::Text(rest));
        Ok(Self(pieces))
    }

    /// Returns the replacement of one match.
    pub(super) fn expanded(&self, captures: &Captures<'_>) -> String {
        let text = |piece: &Piece<'t>| match piece {
            Piece::Text(text) => *text,
            Piece::Group(group) => captures.get(*group).map_or("", |group| group.as_str()),
        };
        self.0.iter().map(|piece| text(piece).to_owned()).collect()
    }
}

fn no_group(reference: &str, regex: &Regex) -> ToolFailure {
    let names: Vec<String> = regex.capture_names().flatten().map(|name| format!("`${{{name}}}`")).collect();
    let groups = match (regex.captures_len() - 1, names.is_empty()) {
        (0, _) => "no groups".to_owned(),
        (1, true) => "one group, `$1`".to_owned(),
        (count, true) => format!("the groups `$1` to `${count}`"),
        (count, false) => format!("{}, by name {}", counted(count, "group"), names.join(", ")),
    };
    let message = format!("`new_text` refers to the group `{reference}`, and the regular expression has {groups}");
    refused(message, "write `$$` for a dollar sign, and `${1}` where digits follow a group")
}

fn unclosed() -> ToolFailure {
    refused("`new_text` has a `${` without a `}`".into(), "write `$$` for a dollar sign")
}

fn unclear(name: &str) -> ToolFailure {
    let message = format!("`new_text` has `${name}`, which is neither clearly the group of that name nor clearly text");
    refused(message, &format!("write `${{{name}}}` for the group, or `$${name}` for the text"))
}

fn refused(message: String, next: &str) -> ToolFailure {
    ToolFailure::new(ErrorKind::InvalidInput, message).next(format!("Nothing was changed; {next}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn replaced(text: &str, pattern: &str, new: &str) -> Result<String, String> {
        let regex = Regex::new(pattern).unwrap();
        let replacement = ReplacementTemplate::of(new, &regex).map_err(|failure| failure.text())?;
        Ok(regex.replace_all(text, |captures: &Captures<'_>| replacement.expanded(captures)).into_owned())
    }

    #[test]
    fn group_references_are_expanded_and_all_other_characters_are_kept() {
        let check = |new: &str, expected: &str| {
            assert_eq!(replaced("a foo b", "(?<word>fo+)(x)?", new).as_deref(), Ok(expected), "{new}");
        };
        check("$1_x", "a foo_x b");
        check("$1x", "a foox b");
        check("[$0|${0}|${word}|${1}2|$2]", "a [foo|foo|foo|foo2|] b");
        check("cost $$5", "a cost $5 b");
        check("$$$1$$", "a $foo$ b");
        check("$HOME $ $- $(x) 5$", "a $HOME $ $- $(x) 5$ b");
        check("$words", "a $words b");
    }

    #[test]
    fn a_reference_to_a_missing_group_is_rejected() {
        let check = |new: &str, expected: &str| {
            let message = replaced("a foo b", "(?<word>foo)", new).unwrap_err();
            assert!(message.starts_with(expected), "{new}: {message}");
        };
        check(
            "cost $5",
            "`new_text` refers to the group `$5`, and the regular expression has 1 group, by name `${word}`",
        );
        check("$10", "`new_text` refers to the group `$10`");
        check("${name}", "`new_text` refers to the group `${name}`");
        check("${}", "`new_text` refers to the group `${}`");
        check("${+1}", "`new_text` refers to the group `${+1}`");
        check("$99999999999999999999999", "`new_text` refers to the group `$9999");
        check("${word", "`new_text` has a `${` without a `}`. Nothing was changed; write `$$`");
        check("$word", "`new_text` has `$word`, which is neither clearly");
        let message = replaced("a", "a", "$1").unwrap_err();
        assert!(message.contains("the regular expression has no groups. Nothing was changed; write `$$`"), "{message}");
    }

    proptest! {
        #[test]
        fn text_without_dollar_signs_is_inserted_unchanged(new in "[^$]{0,20}") {
            prop_assert_eq!(replaced("x", "(x)", &new), Ok(new));
        }

        #[test]
        fn text_with_doubled_dollar_signs_is_inserted_with_single_ones(new in "[$a1{}_ ]{0,12}") {
            prop_assert_eq!(replaced("x", "(?<a>x)", &new.replace('$', "$$")), Ok(new));
        }

        #[test]
        fn an_accepted_replacement_loses_no_characters(new in "[$a1{}_ ]{0,12}") {
            // The group is as long as the shortest reference, so that no text is shorter than what it was made of.
            if let Ok(made) = replaced("xxxxxxxx", "(?<a>x{8})", &new) {
                let dollars = new.matches("$$").count();
                prop_assert!(made.len() + dollars >= new.len(), "{}", made);
            }
        }
    }
}
