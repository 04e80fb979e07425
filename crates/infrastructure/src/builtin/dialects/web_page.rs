//! A fetched page, for dialects that show little but its text.

use serde_json::Value;
use toolstead_domain::AdapterInput;

/// Returns the text of a page without Toolstead's text around it; `None` for a failure, an image, a redirect, or a page
/// without content.
pub(super) fn content<'a>(answered: &AdapterInput<'a>) -> Option<&'a str> {
    let is_text = answered.error_kind().is_none() && answered.is_text_alone();
    let content = answered.member("content").and_then(Value::as_str).filter(|content| !content.is_empty());
    content.filter(|_| is_text && answered.member("redirect_to").is_none())
}

/// Returns the remarks on a page: where it was saved, what is missing, and how to read that.
pub(super) fn remark(answered: &AdapterInput<'_>) -> Option<String> {
    let text = |name| answered.member(name).and_then(Value::as_str);
    let saved = text("saved_path").map(|path| format!("Saved as `{path}`."));
    let notes = answered.member("notes").and_then(Value::as_array).into_iter().flatten();
    let notes = notes.filter_map(Value::as_str).map(|note| format!("Note: {note}."));
    let words = answered.text();
    // Toolstead's own text follows the last marked line, whose name the page cannot know.
    let rest = words.rsplit_once("----- end of ").and_then(|(_, end)| end.split_once(" -----\n"));
    let rest = rest.map(|(_, rest)| rest.to_owned());
    let rest = rest.filter(|_| answered.member("truncated") == Some(&Value::Bool(true)));
    let lines: Vec<String> = saved.into_iter().chain(notes).chain(rest).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns a number with separators: `50,000`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};
    use toolstead_domain::ToolResult;

    #[test]
    fn large_numbers_have_thousands_separators() {
        for (number, expected) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expected);
        }
    }

    #[test]
    fn page_content_and_the_remarks_after_it_are_extracted_separately() {
        let answer =
            json!({"content": "a\n----- end -----\nfalse", "truncated": true, "saved_path": "x", "notes": ["n"]});
        let text = "https://a/\n----- web page 1 -----\na\n----- end -----\nfalse\n----- end of web page 1 -----\nThese are all.";
        let result = ToolResult::text(text).with_structured_content(answer);
        let arguments = Map::new();
        let answered = AdapterInput { arguments: &arguments, characters: 99, in_tags: false, outcome: Ok(&result) };
        assert_eq!(content(&answered), Some("a\n----- end -----\nfalse"));
        assert_eq!(remark(&answered).as_deref(), Some("Saved as `x`.\nNote: n.\nThese are all."));
        // Without Toolstead's text after the page.
        let text = text.strip_suffix("\nThese are all.").unwrap();
        let result = ToolResult::text(text).with_structured_content(json!({"content": "a", "truncated": true}));
        assert_eq!(remark(&AdapterInput { outcome: Ok(&result), ..answered }), None);
    }
}
