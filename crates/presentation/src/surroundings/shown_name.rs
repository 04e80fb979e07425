//! Names of files and folders in texts for models and users.

use toolstead_domain::invisible_characters::{displaces_text, is_invisible};

/// Returns the name on one line, without characters that are invisible, move other text, or could end a quotation: each
/// is shown as `\u{…}`.
pub(super) fn shown_name(name: &str) -> String {
    let is_escaped = |c: char| {
        displaces_text(c) || is_invisible(c) || c.is_control() || matches!(c, '"' | '`' | '<' | '>' | '\u{2028}')
    };
    let shown = |c: char| if is_escaped(c) { c.escape_unicode().to_string() } else { c.to_string() };
    name.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_quotation_characters_in_a_shown_name_are_escaped() {
        let hostile = "a\nb\t`c\" <system>\u{202e}\u{200b}\u{1b}[2J\u{e0041}ä.md";
        assert_eq!(
            shown_name(hostile),
            "a\\u{a}b\\u{9}\\u{60}c\\u{22} \\u{3c}system\\u{3e}\\u{202e}\\u{200b}\\u{1b}[2J\\u{e0041}ä.md"
        );
    }
}
