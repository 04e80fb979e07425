//! The change that a call would make, as the approver sees it: a summary, the first rows, and all lines.

use super::{hides, quote};
use crate::text_rows::rows;
use toolstead_domain::ports::tool_provider::CONTENT_NOT_SHOWN;

/// Maximum number of rows of a change in a question; [`ROW_COLUMNS`] is that of columns in each.
const EXCERPT_ROWS: usize = 60;
const ROW_COLUMNS: usize = 160;
/// Maximum number of files that a summary lists.
const LISTED_FILES: usize = 12;
/// Maximum number of characters of a file name in a summary.
const NAME_CHARACTERS: usize = 200;

/// A change, with every text of a model or file escaped.
#[derive(Debug, PartialEq)]
pub(super) struct ShownChange {
    /// Names of the changed files and numbers of changed lines, in words of Toolstead.
    pub(super) summary: Vec<String>,
    /// Every line of the change.
    pub(super) lines: Vec<String>,
    /// The first lines, wrapped into rows.
    pub(super) excerpt: Vec<String>,
    /// Number of lines that are not in the excerpt as a whole.
    pub(super) cut_lines: usize,
    /// `true` if the preview contains every content that would change.
    pub(super) is_complete: bool,
}

impl ShownChange {
    pub(super) fn of(preview: &str) -> Self {
        // Not `lines()`: a carriage return at the end of a line is a change that the approver must see.
        let given: Vec<&str> = preview.strip_suffix('\n').unwrap_or(preview).split('\n').collect();
        let lines: Vec<String> = given.iter().map(|line| escaped(line)).collect();
        let mut excerpt = Vec::new();
        let mut whole_lines = 0;
        for line in &lines {
            let rows = rows(line, ROW_COLUMNS);
            let free = EXCERPT_ROWS - excerpt.len();
            if rows.len() > free {
                excerpt.extend(rows.into_iter().take(free));
                break;
            }
            excerpt.extend(rows);
            whole_lines += 1;
        }
        let cut_lines = lines.len() - whole_lines;
        let counts = DiffStat::of(&given);
        Self { summary: counts.summary(lines.len()), lines, excerpt, cut_lines, is_complete: counts.is_complete }
    }

    /// Returns the change of a tool's definition, which always contains every text that changes.
    pub(super) fn of_definition(difference: &str) -> Self {
        let change = Self::of(difference);
        let summary = vec![format!("The change of its definition ({}):", counted(change.lines.len(), "line"))];
        Self { summary, is_complete: true, ..change }
    }
}

/// Escapes characters that move or hide text, and puts a mark before the line. A tab is shown as an arrow.
fn escaped(line: &str) -> String {
    let mut shown = String::from("  | ");
    for c in line.chars() {
        match c {
            ' ' => shown.push(c),
            '\t' => shown.push_str("\u{2192}   "),
            c if hides(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// The files of a unified diff, with the numbers of their lines.
struct DiffStat {
    files: Vec<FileDiffStat>,
    /// Lines outside of the hunks: moved files, permission bits, binary contents.
    other_changes: usize,
    is_complete: bool,
}

struct FileDiffStat {
    name: String,
    added: usize,
    removed: usize,
}

impl DiffStat {
    /// Counts the lines of each file. A line inside of a hunk is never read as a header, whatever its text.
    fn of(lines: &[&str]) -> Self {
        let mut counts = Self { files: Vec::new(), other_changes: 0, is_complete: true };
        let (mut old, mut new) = (0_usize, 0_usize);
        for line in lines {
            if old > 0 || new > 0 {
                let file = counts.files.last_mut();
                match (line.chars().next(), file) {
                    (Some('+'), Some(file)) => (file.added, new) = (file.added + 1, new.saturating_sub(1)),
                    (Some('-'), Some(file)) => (file.removed, old) = (file.removed + 1, old.saturating_sub(1)),
                    (Some('\\'), _) => {}
                    _ => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
                }
            } else if let Some(name) = line.strip_prefix("+++ ") {
                let name = name.strip_prefix("b/").unwrap_or(name);
                counts.files.push(FileDiffStat { name: quote(name, NAME_CHARACTERS).text, added: 0, removed: 0 });
            } else if let Some(hunk) = line.strip_prefix("@@ ") {
                (old, new) = hunk_lengths(hunk).unwrap_or_default();
            } else if !line.starts_with("--- ") && !line.starts_with('\\') && !line.is_empty() {
                counts.other_changes += 1;
                counts.is_complete &= !line.ends_with(CONTENT_NOT_SHOWN);
            }
        }
        counts
    }

    fn summary(&self, lines: usize) -> Vec<String> {
        let (files, others) = (self.files.as_slice(), counted(self.other_changes, "other change"));
        let heading = match (files.len(), self.other_changes) {
            (0, _) => counted(lines, "line"),
            (number, 0) => format!("{}, {}", counted(number, "file"), line_counts(files)),
            (number, _) => format!("{}, {}, {others}", counted(number, "file"), line_counts(files)),
        };
        let mut summary = vec![format!("The change ({heading}):")];
        if files.len() > 1 {
            let (listed, rest) = files.split_at(files.len().min(LISTED_FILES));
            summary.extend(
                listed.iter().map(|file| format!("  {}: {}", file.name, line_counts(std::slice::from_ref(file)))),
            );
            if !rest.is_empty() {
                summary.push(format!("  And {}: {}", counted(rest.len(), "more file"), line_counts(rest)));
            }
        }
        summary
    }
}

fn line_counts(files: &[FileDiffStat]) -> String {
    let added: usize = files.iter().map(|file| file.added).sum();
    let removed: usize = files.iter().map(|file| file.removed).sum();
    format!("{} added, {removed} removed", counted(added, "line"))
}

fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Parses `-1,2 +3,4 @@`: the lines of a hunk in the old and in the new text.
fn hunk_lengths(hunk: &str) -> Option<(usize, usize)> {
    let mut ranges = hunk.split(' ');
    let old = ranges.next()?.strip_prefix('-')?;
    let new = ranges.next()?.strip_prefix('+')?;
    let length = |range: &str| range.split_once(',').map_or(Some(1), |(_, length)| length.parse().ok());
    Some((length(old)?, length(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_file(name: &str, lines: usize) -> String {
        format!("--- a/{name}\n+++ b/{name}\n@@ -0,0 +1,{lines} @@\n{}", "+line\n".repeat(lines))
    }

    #[test]
    fn a_summary_counts_files_and_lines_and_reads_no_header_inside_of_a_hunk() {
        for (preview, summary) in [
            (new_file("a", 300), vec!["The change (1 file, 300 lines added, 0 removed):"]),
            (
                format!("{}--- a/b\n+++ b/b\n@@ -1,2 +1,2 @@\n same\n-- old\n+++ b/fake\n", new_file("a", 1)),
                vec![
                    "The change (2 files, 2 lines added, 1 removed):",
                    "  `a`: 1 line added, 0 removed",
                    "  `b`: 1 line added, 1 removed",
                ],
            ),
            (
                format!("moved `a` to `b` (+0 -0)\n{}", new_file("c", 1)),
                vec!["The change (1 file, 1 line added, 0 removed, 1 other change):"],
            ),
            (
                "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
                    .into(),
                vec!["The change (1 file, 1 line added, 1 removed):"],
            ),
            ("+new".into(), vec!["The change (1 line):"]),
        ] {
            assert_eq!(ShownChange::of(&preview).summary, summary, "{preview}");
        }
        let many: String = (0..50).map(|number| new_file(&number.to_string(), 1)).collect();
        let summary = ShownChange::of(&many).summary;
        assert_eq!((summary.len(), &*summary[13]), (14, "  And 38 more files: 38 lines added, 0 removed"));
    }

    #[test]
    fn the_row_limit_of_the_excerpt_counts_long_wide_and_escaped_lines_as_shown() {
        for (preview, cut_lines) in [
            (new_file("a", 57), 0),
            (new_file("a", 58), 1),
            (new_file("a", 300), 243),
            // One line of 20,000 characters, wide characters, and a line of nothing but blanks take rows as well.
            (format!("@@ -0,0 +1 @@\n+{}\n", "x".repeat(20_000)), 1),
            (format!("@@ -0,0 +1 @@\n+{}\n", "\u{4e16}".repeat(5_000)), 1),
            (format!("@@ -0,0 +1,2 @@\n+{}\n+rm -rf\n", " ".repeat(20_000)), 2),
            // Escapes count as they are shown.
            (format!("@@ -0,0 +1 @@\n+{}\n", "\u{200b}".repeat(1_200)), 1),
            (format!("@@ -0,0 +1 @@\n+{}\n", "\r".repeat(3_000)), 1),
        ] {
            let change = ShownChange::of(&preview);
            assert!(change.excerpt.len() <= EXCERPT_ROWS && change.cut_lines == cut_lines, "{}", change.cut_lines);
            assert!(change.excerpt.iter().all(|row| !row.chars().any(|c| c != ' ' && hides(c))));
        }
    }

    #[test]
    fn a_preview_that_omits_file_content_is_incomplete() {
        assert!(!ShownChange::of("b/x: 70000 bytes, which are not shown\n").is_complete);
        assert!(ShownChange::of("--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+text, which are not shown\n").is_complete);
    }
}
