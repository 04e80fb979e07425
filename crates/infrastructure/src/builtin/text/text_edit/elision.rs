//! Recognises lines by which a model marks an omission.

/// Words that mark an omission when they are next to dots.
const WORDS: &[&str] =
    &["existing", "rest", "unchanged", "remaining", "same", "previous", "omitted", "before", "other"];
/// Phrases that mark an omission in a comment even without dots.
const PHRASES: &[&str] = &[
    "rest of the code",
    "rest of code",
    "rest of the file",
    "rest of file",
    "rest of the function",
    "rest of the method",
    "rest of the class",
    "rest of the implementation",
    "rest unchanged",
    "rest is unchanged",
    "rest remains",
    "remains unchanged",
    "remaining code",
    "existing code",
    "unchanged code",
    "same as before",
    "code unchanged",
];
/// Beginnings of comments.
const COMMENTS: &[&str] = &["//", "/*", "#", "<!--", "--", ";", "%", "{/*", "\"\"\"", "*"];

/// Returns the first line of the new text that represents omitted lines, if the old text does not contain it.
pub(super) fn elided_line<'n>(old: &str, new: &'n str) -> Option<&'n str> {
    let mut lines = new.lines().map(str::trim);
    lines.find(|line| stands_for_others(line) && !old.lines().any(|other| other.trim() == *line))
}

fn stands_for_others(line: &str) -> bool {
    // A longer line has other content as well.
    if line.len() > 100 {
        return false;
    }
    let lower = line.to_lowercase();
    let comment = COMMENTS.iter().find_map(|mark| lower.strip_prefix(mark)).map(str::trim);
    let has_word = || lower.split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word));
    let has_phrase = || PHRASES.iter().any(|phrase| lower.contains(phrase));
    let dots = |text: &str| text.starts_with("...") || text.starts_with('…');
    match comment {
        Some(said) => (dots(said) && has_word()) || (has_phrase() && said.len() <= 60),
        None => dots(&lower) && has_word(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_placeholder_comments_from_code() {
        for line in [
            "// ... existing code ...",
            "    # ... rest of the function unchanged",
            "/* existing code */",
            "... rest unchanged",
            "<!-- rest of the file -->",
            "// rest of code",
            "… (remaining methods)",
        ] {
            assert_eq!(elided_line("x", &format!("a\n{line}\nb")), Some(line.trim()), "{line}");
            assert_eq!(elided_line(&format!("y\n{line}"), line), None);
        }
        for line in [
            "...",
            "let rest = [...existing];",
            "# keep the rest of the words apart: they are sorted and then the others follow",
            "f(...rest)",
            "// TODO: other cases",
            "x[..., 0]",
        ] {
            assert_eq!(elided_line("", line), None, "{line}");
        }
    }
}
