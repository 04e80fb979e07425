//! Unified diffs of changes, for users.

use crate::builtin::text::comparison_time;
use similar::{DiffTag, TextDiff, TextDiffConfig};
use std::{borrow::Cow, ops::Range, time::Duration};

/// Maximum size in bytes of texts to compare, together.
const MAX_COMPARED_BYTES: usize = 2 << 20;
/// Maximum size of a diff in bytes. Longer ones are left out, because users would not read them.
const MAX_DIFF_BYTES: usize = 64 << 10;
/// Processor time after which a comparison becomes coarser.
const TIME_TO_COMPARE: Duration = Duration::from_millis(200);

/// Returns the diff of two texts under a name; `None` if there is no difference, or the diff is too large.
pub(crate) fn unified_diff(name: &str, old: &str, new: &str) -> Option<String> {
    diff_up_to(MAX_DIFF_BYTES, name, old, new)
}

/// Returns the diff at any length, for the user who approves the change; `None` if there is no difference, or the texts
/// are too large to be compared.
pub(crate) fn whole_diff(name: &str, old: &str, new: &str) -> Option<String> {
    diff_up_to(usize::MAX, name, old, new)
}

fn diff_up_to(max_bytes: usize, name: &str, old: &str, new: &str) -> Option<String> {
    if old.len() + new.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let (old, new) = (marked(old), marked(new));
    let (old, new) = (lines(&old), lines(&new));
    let diff = compared(TextDiff::configure().newline_terminated(true), &old, &new);
    let name = one_line(name);
    let (before, after) = (format!("a/{name}"), format!("b/{name}"));
    let text = diff.unified_diff().context_radius(3).header(&before, &after).to_string();
    (!text.is_empty() && text.len() <= max_bytes).then_some(text)
}

/// Escapes line breaks and other control characters. Without this, a file name could add lines to a diff.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

fn compared<'t>(config: &TextDiffConfig, old: &[&'t str], new: &[&'t str]) -> TextDiff<'t, 't, str> {
    comparison_time::within(TIME_TO_COMPARE, |deadline| config.clone().deadline(deadline).diff_slices(old, new))
}

/// Marks a carriage return at the very end of the text, which would look like the end of a line.
fn marked(text: &str) -> Cow<'_, str> {
    match text.strip_suffix('\r') {
        Some(rest) => Cow::Owned(format!("{rest}\u{240d}")),
        None => Cow::Borrowed(text),
    }
}

/// Splits a text into the lines that `read_file` counts: a lone carriage return does not end a line.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Returns the lines (from 0) of the new text that differ from the old one, a range for each place; none if the texts
/// are too large to be compared.
pub(crate) fn changed_lines(old: &str, new: &str) -> Vec<Range<usize>> {
    if old.len() + new.len() > MAX_COMPARED_BYTES {
        return Vec::new();
    }
    let (old, new) = (lines(old), lines(new));
    let diff = compared(&TextDiff::configure(), &old, &new);
    let places = diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal);
    places.map(|op| op.new_range().start..op.new_range().end.max(op.new_range().start + 1)).collect()
}

/// Returns the numbers of added and removed lines; `None` if a text is not UTF-8, or they are too large to be compared.
pub(crate) fn line_counts(old: &[u8], new: &[u8]) -> Option<(usize, usize)> {
    if old.len() + new.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let (old, new) = (std::str::from_utf8(old).ok()?, std::str::from_utf8(new).ok()?);
    let (old, new) = (lines(old), lines(new));
    let diff = compared(&TextDiff::configure(), &old, &new);
    let differing = diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal);
    Some(differing.fold((0, 0), |(added, removed), op| (added + op.new_range().len(), removed + op.old_range().len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_removed_lines_are_counted() {
        assert_eq!(line_counts(b"a\nb\nc\n", b"a\nB\nC\nc\n"), Some((2, 1)));
        assert_eq!(line_counts(b"", b"a\nb"), Some((2, 0)));
        assert_eq!(line_counts(b"\xff", b"a"), None);
    }

    #[test]
    fn a_line_break_in_a_file_name_adds_no_line_to_the_diff() {
        let diff = unified_diff("x\n+++ b/y", "", "a\n").unwrap();
        assert_eq!(diff, "--- a/x\\n+++ b/y\n+++ b/x\\n+++ b/y\n@@ -0,0 +1 @@\n+a\n");
    }

    #[test]
    fn the_diff_for_an_approval_has_every_line_of_a_long_text() {
        let text = "line\n".repeat(20_000);
        assert_eq!(unified_diff("x", "", &text), None);
        assert_eq!(whole_diff("x", "", &text).unwrap().matches("\n+line").count(), 20_000);
    }

    #[test]
    fn a_change_is_shown_with_its_surroundings() {
        let diff = unified_diff("x", "a\nb\nc\n", "a\nB\nc\n").unwrap();
        assert_eq!(diff, "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
        assert_eq!(changed_lines("a\nb\nc\nd", "a\nB\nc\nD"), [1..2, 3..4]);
        assert_eq!(changed_lines("a\nb\nc\nd\n", "A\nb\nc\n"), [0..1, 3..4]);
        let diff = unified_diff("x", "a\rb", "a\rc").unwrap();
        assert!(diff.contains("-a\rb\n") && diff.contains("+a\rc\n"), "{diff:?}");
        let diff = unified_diff("x", "a\r", "b").unwrap();
        assert!(
            diff.ends_with("-a\u{240d}\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"),
            "{diff:?}"
        );
        assert_eq!(unified_diff("x", "a", "a"), None);
        assert_eq!(unified_diff("x", &"a\n".repeat(2 << 20), ""), None);
    }
}
