//! Messages of hooks in the text that a caller receives.

/// Start of a hook's message.
const SAID: &str = "[the hook `";
/// Maximum number of characters of hook messages per call.
const CONTEXT_CHARACTERS: usize = 10_000;

/// Returns the messages of hooks at the end of a text.
pub(super) fn hook_messages_in(text: &str) -> Option<&str> {
    let begin = if text.starts_with(SAID) { 0 } else { text.find(&format!("\n{SAID}"))? + 1 };
    Some(&text[begin..])
}

/// Joins the messages into one text; `None` if there are none.
pub(super) fn joined(context: &[(String, String)]) -> Option<String> {
    let texts: Vec<String> = context.iter().map(|(hook, text)| format!("{SAID}{hook}` says: {text}]")).collect();
    let mut text = texts.join("\n");
    if let Some((at, _)) = text.char_indices().nth(CONTEXT_CHARACTERS) {
        text.truncate(at);
        text.push_str(&format!("\n[… what hooks say ends here, after {CONTEXT_CHARACTERS} characters]"));
    }
    (!text.is_empty()).then_some(text)
}
