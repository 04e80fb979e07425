//! The words of hooks in what a caller reads: where they stand, and how much of them.

/// Begins what a hook says.
const SAID: &str = "[the hook `";
/// As many characters of what hooks have to say reach the model with one call.
const CONTEXT_CHARACTERS: usize = 10_000;

/// The part of a text in which hooks say something: it stands at the end.
pub(super) fn said_in(text: &str) -> Option<&str> {
    let begin = if text.starts_with(SAID) { 0 } else { text.find(&format!("\n{SAID}"))? + 1 };
    Some(&text[begin..])
}

/// All that they say, as one text; `None` where they say nothing.
pub(super) fn joined(context: &[(String, String)]) -> Option<String> {
    let texts: Vec<String> = context.iter().map(|(hook, text)| format!("{SAID}{hook}` says: {text}]")).collect();
    let mut text = texts.join("\n");
    if let Some((at, _)) = text.char_indices().nth(CONTEXT_CHARACTERS) {
        text.truncate(at);
        text.push_str(&format!("\n[… what hooks say ends here, after {CONTEXT_CHARACTERS} characters]"));
    }
    (!text.is_empty()).then_some(text)
}
