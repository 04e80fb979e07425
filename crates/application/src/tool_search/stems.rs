//! Words of texts as stems.

use rust_stemmers::{Algorithm, Stemmer};

/// Maximum number of words of one text.
const MAX_WORDS: usize = 2_000;
/// Maximum length of a word in bytes. Longer ones are data and not words.
const MAX_WORD_BYTES: usize = 64;
/// Words without a meaning of their own, in sentences that describe a task.
const FUNCTION_WORDS: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can", "could", "did", "do",
    "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "just", "let",
    "like", "me", "my", "need", "of", "on", "or", "our", "please", "should", "so", "some", "that", "the", "their",
    "them", "then", "there", "these", "they", "this", "those", "to", "us", "want", "was", "we", "were", "what", "when",
    "where", "which", "who", "will", "with", "would", "you", "your",
];

/// Returns the stems of the words of a text, in their order, without function words. Names in snake case and camel case
/// are split.
pub(super) fn stems(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let meaningful = words(text).filter(|word| !FUNCTION_WORDS.contains(&word.as_str()));
    meaningful.take(MAX_WORDS).map(|word| stemmer.stem(&word).into_owned()).collect()
}

/// Returns the words of a text in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|character: char| !character.is_alphanumeric());
    let words = parts.flat_map(camel_parts).filter(|word| !word.is_empty() && word.len() <= MAX_WORD_BYTES);
    words.map(str::to_lowercase)
}

/// Splits a name in camel case: `readFile2` is `read`, `File2`.
fn camel_parts(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut is_before_lower = false;
    for (at, character) in name.char_indices() {
        if character.is_uppercase() && is_before_lower {
            parts.push(&name[start..at]);
            start = at;
        }
        is_before_lower = character.is_lowercase() || character.is_numeric();
    }
    parts.push(&name[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(stems(text), expected);
    }

    #[test]
    fn texts_and_names_become_stems() {
        check("Reads the files of a folder.", &["read", "file", "folder"]);
        check("mcp__git__git_status", &["mcp", "git", "git", "status"]);
        check("listPullRequests", &["list", "pull", "request"]);
        check("HTTPServer2 x", &["httpserver2", "x"]);
        check("Größe ändern", &["größe", "ändern"]);
        check("how do I", &[]);
        check(&"x".repeat(65), &[]);
    }
}
