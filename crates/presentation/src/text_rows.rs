//! Splits long lines into rows of a limited width, so that their ends are not truncated or hidden by a pager or
//! terminal.

/// Beginning of a row that continues a line. No line of a shown text begins with it.
const CONTINUATION: &str = "  : ";

/// Splits an escaped line into rows of at most this many columns.
pub(crate) fn rows(line: &str, columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    for c in line.chars() {
        if used + width(c) > columns && used > CONTINUATION.len() {
            rows.push(std::mem::replace(&mut row, CONTINUATION.into()));
            used = CONTINUATION.len();
        }
        row.push(c);
        used += width(c);
    }
    rows.push(row);
    rows
}

/// Returns the number of columns of a character: two if it may be wide.
pub(crate) fn width(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_line_continues_in_further_rows() {
        assert_eq!(rows("  | +abcdefghij", 10), ["  | +abcde", "  : fghij"]);
        assert_eq!(rows("  | +äöü", 10), ["  | +äö", "  : ü"]);
        assert_eq!(rows("", 10), [""]);
    }

    proptest! {
        #[test]
        fn rows_fit_their_width_and_hold_the_whole_line(line in "  \\| [+-]?[a-zäö世 ]{0,200}", columns in 10_usize..100) {
            let rows = rows(&line, columns);
            prop_assert!(rows.iter().all(|row| row.chars().map(width).sum::<usize>() <= columns), "{rows:?}");
            let rest = rows[1..].iter().map(|row| row.strip_prefix(CONTINUATION).unwrap());
            prop_assert_eq!(std::iter::once(rows[0].as_str()).chain(rest).collect::<String>(), line);
        }
    }
}
