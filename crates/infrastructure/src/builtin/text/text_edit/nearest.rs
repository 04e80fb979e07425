//! Failures for a text that is not in the file, with the most similar lines.

use crate::builtin::text::{
    snippet::surroundings,
    text_edit::{PatternSyntax, TextEdit, folded_text::plain_character},
    wording::counted,
};
use std::{collections::HashSet, ops::Range};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Maximum number of lines of a file that are compared with the missing text.
const MAX_COMPARED_LINES: usize = 100_000;
/// Minimum number of characters of a line to compare. Shorter lines are similar to too many others.
const MIN_TELLING_CHARS: usize = 4;
/// Minimum similarity of two lines to be shown, in percent.
const ALIKE_PERCENT: usize = 60;

pub(super) fn no_match(
    text: &str,
    path: &str,
    edit: &TextEdit<'_>,
    region: Range<usize>,
    old: &str,
    new: &str,
) -> ToolFailure {
    let failure = |message: String| ToolFailure::new(ErrorKind::NoMatch, message);
    match edit.mode {
        PatternSyntax::Literal => {}
        PatternSyntax::RegexByLine => {
            return failure(format!("the regular expression matches no line of `{path}`"))
                .next("Nothing was changed; it is matched against each line by itself, unless `multiline` is set.");
        }
        PatternSyntax::RegexAcrossLines => {
            return failure(format!("the regular expression matches nothing in `{path}`"))
                .next("Nothing was changed; `.` matches no line break, unless (?s) is put before it.");
        }
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let is_limited = region != (0..text.len());
    if is_limited && let Some(at) = text.find(old) {
        let line = text[..at].matches('\n').count() + 1;
        let message = format!("`old_text` occurs in line {line} of `{path}`, not between `start_line` and `end_line`");
        return failure(message).next("Nothing was changed; leave them out, or correct them.");
    }
    if let Some(without) = without_line_numbers(old)
        && text.contains(&*without)
    {
        let message = format!("`old_text` occurs in `{path}` without the line numbers that `read_file` adds");
        return failure(message).next("Nothing was changed; give both texts without the numbers.");
    }
    if new.trim().len() >= MIN_TELLING_CHARS && text.contains(new) {
        let line = text.find(new).map_or(1, |at| text[..at].matches('\n').count() + 1);
        let message = format!("`old_text` does not occur in `{path}`, but `new_text` does, at line {line}");
        return failure(message).next("The edit was probably made already; read the file to make sure.");
    }
    let message = format!("`old_text` does not occur in `{path}`");
    if let Some(range) = same_but_for_spaces(&lines, old) {
        return failure(format!(
            "{message}; these lines differ from it only in white space or quotation marks:\n{}",
            surroundings(&lines, range, 0)
        ))
        .next("Nothing was changed; copy them exactly, without the line numbers.");
    }
    match most_alike(&lines, old) {
        Some(line) => {
            let height = old.trim_matches('\n').split('\n').count();
            let shown = surroundings(&lines, line..line + height, 3);
            failure(format!("{message}; the nearest to it is around line {}:\n{shown}", line + 1))
                .next("Nothing was changed; copy the text exactly as in the file, without the line numbers.")
        }
        None => failure(format!("{message}, and nothing in its {} is like it", counted(text.lines().count(), "line")))
            .next("Nothing was changed; read the file again, or use `grep` to find the text elsewhere."),
    }
}

/// Removes the line numbers that results show before lines; `None` if a line has none.
fn without_line_numbers(old: &str) -> Option<String> {
    let stripped = old.split('\n').map(|line| {
        if line.trim().is_empty() {
            return Some(line);
        }
        let rest = line.trim_start();
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let rest = &rest[number..];
        let rest =
            rest.strip_prefix('\t').or_else(|| rest.strip_prefix(": ")).or_else(|| rest.strip_prefix('\u{2192}'));
        rest.filter(|_| number > 0)
    });
    Some(stripped.collect::<Option<Vec<_>>>()?.join("\n")).filter(|stripped| !stripped.trim().is_empty())
}

/// Removes what models get wrong from a line: white space, and typographic quotation marks.
fn folded(line: &str) -> String {
    line.chars().filter(|c| !c.is_whitespace()).map(plain_character).collect()
}

fn same_but_for_spaces(lines: &[&str], old: &str) -> Option<Range<usize>> {
    let wanted: Vec<String> = old.trim_matches('\n').split('\n').map(folded).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let folded: Vec<String> = lines.iter().take(MAX_COMPARED_LINES).map(|line| folded(line)).collect();
    let start = folded.windows(wanted.len()).position(|window| *window == *wanted)?;
    Some(start..start + wanted.len())
}

/// Returns the index of the line most similar to the longest line of the missing text, by the pairs of characters that
/// they share; `None` if no line is similar enough.
fn most_alike(lines: &[&str], old: &str) -> Option<usize> {
    let longest = old.split('\n').map(folded).max_by_key(|line| line.chars().count())?;
    if longest.chars().count() < MIN_TELLING_CHARS {
        return None;
    }
    let wanted = pairs(&longest);
    let alike = |line: &str| {
        let pairs = pairs(&folded(line));
        (200 * pairs.intersection(&wanted).count()) / (pairs.len() + wanted.len()).max(1)
    };
    let all = lines.iter().take(MAX_COMPARED_LINES).enumerate().map(|(index, line)| (alike(line), index));
    // Of equally similar lines the first is shown.
    let (percent, index) = all.max_by_key(|(percent, index)| (*percent, usize::MAX - index))?;
    (percent >= ALIKE_PERCENT).then_some(index)
}

fn pairs(text: &str) -> HashSet<(char, char)> {
    // A line longer than this is hardly copied from a file.
    let chars: Vec<char> = text.chars().take(500).collect();
    chars.windows(2).map(|pair| (pair[0], pair[1])).collect()
}
