//! Texts of the caller that a result repeats, shortened to fit.

use serde_json::Value;
use toolstead_domain::{AdaptedResult, AdapterInput};

/// Maximum number of characters of a line or pattern that a result repeats.
const MAX_REPEATED_CHARACTERS: usize = 200;

/// Returns a text of the caller, cut to [`MAX_REPEATED_CHARACTERS`] characters and `…` if it is longer.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_REPEATED_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Sets `members` as the structured content of a result, unless their JSON is longer than an answer may be.
pub(super) fn with_members(answered: &AdapterInput<'_>, said: AdaptedResult, members: Value) -> AdaptedResult {
    match members.to_string().chars().count() <= answered.characters {
        true => said.with_structured(members),
        false => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolstead_domain::ToolResult;

    #[test]
    fn caller_text_is_shortened_and_members_stay_within_the_budget() {
        assert_eq!(shorten("ä"), "ä");
        assert_eq!(shorten(&"ä".repeat(1000)), format!("{}…", "ä".repeat(MAX_REPEATED_CHARACTERS)));
        let (arguments, result) = (serde_json::Map::new(), ToolResult::text("done"));
        let answered = AdapterInput { arguments: &arguments, in_tags: false, characters: 20, outcome: Ok(&result) };
        let members =
            |text: &str| with_members(&answered, AdaptedResult::text("done"), json!({"content": text})).structured;
        assert_eq!(members("12345"), Some(json!({"content": "12345"})));
        assert_eq!(members("123456789"), None);
    }
}
