//! Number of terminal columns that a text occupies.

use crate::text_rows::width;

/// Width of a terminal that does not report its width.
const USUAL: usize = 80;
/// Minimum width for formatting.
const LEAST: usize = 40;

/// Returns the columns to write in, for a terminal that reports this number.
pub(super) fn usable(reported: u16) -> usize {
    match reported {
        0 => USUAL,
        reported => usize::from(reported).max(LEAST),
    }
}

/// Returns the number of columns that the text takes at most.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// Splits the text into rows of this width, and returns at most the last `most` of them.
pub(super) fn folded(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    let mut column = width;
    for character in text.chars() {
        let taken = columns(character.encode_utf8(&mut [0; 4]));
        if column + taken > width {
            rows.push(String::new());
            column = 0;
        }
        if let Some(row) = rows.last_mut() {
            row.push(character);
        }
        column += taken;
    }
    rows.split_off(rows.len().saturating_sub(most))
}

/// Returns the text if it fits into this number of columns, or else its longest beginning that fits with a `…` after
/// it.
pub(super) fn beginning(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut rows = folded(text, width - columns("…"), usize::MAX);
    rows.truncate(1);
    rows.concat() + "…"
}

/// Returns the text if it fits into this number of columns, or else its longest end that fits with a `…` before it.
pub(super) fn end(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let reversed: String = text.chars().rev().collect();
    beginning(&reversed, width).chars().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_or_tiny_terminal_width_is_replaced_by_a_usable_width() {
        assert_eq!([0, 20, 80, 200].map(usable), [80, 40, 80, 200]);
    }

    #[test]
    fn a_text_is_cut_by_columns_at_either_end() {
        for (text, first, last) in
            [("short", "short", "short"), ("abcdefghijk", "abcdefgh…", "…defghijk"), ("ääääää", "ääää…", "…ääää")]
        {
            assert_eq!((beginning(text, 10).as_str(), end(text, 10).as_str()), (first, last));
        }
    }
}
