//! Lines with their numbers, as models read them.

use std::{fmt::Display, ops::Range};

/// Maximum number of characters of a line. Longer lines are cut, with a count of what is hidden.
pub(crate) const MAX_LINE_CHARS: usize = 2000;

/// Adds a line with its number: right-aligned in six columns, then a tab.
pub(crate) fn push_numbered(text: &mut String, number: impl Display, line: &str, max_chars: usize) {
    text.push_str(&format!("{number:>6}\t"));
    push_cut(text, line, max_chars);
    text.push('\n');
}

/// Adds a line, with a count of what is left out.
pub(crate) fn push_cut(text: &mut String, line: &str, max_chars: usize) {
    match line.char_indices().nth(max_chars) {
        None => text.push_str(line),
        Some((end, _)) => {
            text.push_str(&line[..end]);
            text.push_str(&format!("… [{} more characters]", line[end..].chars().count()));
        }
    }
}

/// Returns the lines of a range (from 0) with their numbers (from 1), and `radius` lines before and after it. Of more
/// than 40 lines the others are only counted.
pub(crate) fn surroundings(lines: &[&str], range: Range<usize>, radius: usize) -> String {
    const MAX_LINES: usize = 40;
    const MAX_CHARS: usize = 500;
    let start = range.start.saturating_sub(radius);
    let end = range.end.saturating_add(radius).min(lines.len());
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate().take(end).skip(start).take(MAX_LINES) {
        push_numbered(&mut text, index + 1, line, MAX_CHARS);
    }
    if end.saturating_sub(start) > MAX_LINES {
        text.push_str(&format!("… [{} more lines]\n", end - start - MAX_LINES));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_truncated_at_character_boundaries() {
        let mut text = String::new();
        push_numbered(&mut text, 7, "äöü", 2);
        assert_eq!(text, "     7\täö… [1 more characters]\n");
        assert_eq!(surroundings(&["a", "b", "c", "d"], 2..3, 1), "     2\tb\n     3\tc\n     4\td\n");
        assert_eq!(surroundings(&[], 0..0, 3), "");
    }
}
