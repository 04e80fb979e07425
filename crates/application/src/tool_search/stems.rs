//! Words of texts as stems.

use rust_stemmers::{Algorithm, Stemmer};

/// Maximum number of stems of one text. Further words are ignored.
const MAX_WORDS: usize = 2_000;
/// Maximum length of a word in bytes. Longer ones are left out, because they are data and not words.
const MAX_WORD_BYTES: usize = 64;
/// Words without a meaning of their own, in sentences that describe a task: the English list of the Snowball project,
/// parts of contractions (`don't`), and polite words. Sorted.
#[rustfmt::skip]
const FUNCTION_WORDS: &[&str] = &[
    "a", "about", "above", "after", "again", "against", "all", "also", "am", "an", "and", "any", "anything", "are",
    "aren", "as", "at", "be", "because", "been", "before", "being", "below", "between", "both", "but", "by", "can",
    "could", "couldn", "d", "did", "didn", "do", "does", "doesn", "doing", "don", "down", "during", "each",
    "everything", "few", "for", "from", "further", "had", "has", "hasn", "have", "haven", "having", "he", "her",
    "here", "hers", "herself", "him", "himself", "his", "how", "i", "if", "in", "into", "is", "isn", "it", "its",
    "itself", "just", "let", "like", "ll", "m", "me", "more", "most", "my", "myself", "need", "no", "nor", "not",
    "now", "of", "off", "on", "once", "only", "or", "other", "ought", "our", "ours", "ourselves", "out", "over",
    "own", "please", "re", "s", "same", "she", "should", "shouldn", "so", "some", "somebody", "someone",
    "something", "such", "t", "than", "that", "the", "their", "theirs", "them", "themselves", "then", "there",
    "these", "they", "thing", "things", "this", "those", "through", "to", "too", "under", "until", "up", "us",
    "using", "ve", "very", "via", "want", "was", "wasn", "we", "were", "what", "when", "where", "whether", "which",
    "while", "who", "whom", "why", "will", "with", "without", "won", "would", "wouldn", "you", "your", "yours",
    "yourself", "yourselves",
];

/// Returns the stems of the words of a text, in their order, without function words. Names in snake case and camel case
/// are split.
pub(super) fn stems(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let meaningful = words(text).filter(|word| FUNCTION_WORDS.binary_search(&word.as_str()).is_err());
    meaningful.take(MAX_WORDS).map(|word| stemmer.stem(&word).into_owned()).collect()
}

/// Returns the words of a text in lower case. A word with hyphens follows its parts: `e-mail` is `e`, `mail`, `email`.
fn words(text: &str) -> impl Iterator<Item = String> {
    let compounds = text.split(|character: char| !character.is_alphanumeric() && character != '-');
    let words = compounds.flat_map(|compound| {
        let parts = compound.split('-').flat_map(camel_parts).map(str::to_owned);
        let whole = compound.trim_matches('-');
        parts.chain(whole.contains('-').then(|| whole.replace('-', "")))
    });
    words.filter(|word| !word.is_empty() && word.len() <= MAX_WORD_BYTES).map(|word| word.to_lowercase())
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

    #[test]
    fn function_words_are_sorted() {
        assert!(FUNCTION_WORDS.is_sorted());
    }

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
        check("don't what's", &[]);
        check("an e-mail to-do -- -x-", &["e", "mail", "email", "todo", "x"]);
        check(&"x".repeat(65), &[]);
    }
}
