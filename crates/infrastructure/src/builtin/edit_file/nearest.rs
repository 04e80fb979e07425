//! What to tell when the text to replace stands nowhere: what is nearest to it.

use crate::builtin::{edit_file::Input, snippet::surroundings};
use std::{collections::HashSet, ops::Range};
use toolstead_domain::{error_kind::ErrorKind, tool_failure::ToolFailure};

/// As many lines of a file are compared with the missing text.
const MAX_COMPARED_LINES: usize = 100_000;
/// Shorter lines are like too many others.
const MIN_TELLING_CHARS: usize = 4;
/// How alike two lines must be to be shown, of 100.
const ALIKE_PERCENT: usize = 60;

pub(super) fn no_match(text: &str, path: &str, input: &Input, region: Range<usize>, new: &str) -> ToolFailure {
    let failure = |message: String| ToolFailure::new(ErrorKind::NoMatch, message);
    if input.regex {
        return failure(format!("the regular expression matches no line of `{path}`")).next("Nothing was changed.");
    }
    let old = input.old_text.replace("\r\n", "\n");
    let lines: Vec<&str> = text.split('\n').collect();
    let is_limited = region != (0..text.len());
    if is_limited && text.contains(&old) {
        let message = format!("`old_text` stands in `{path}`, but not between `start_line` and `end_line`");
        return failure(message).next("Leave them out, or correct them.");
    }
    if !new.trim().is_empty() && new.trim().len() >= MIN_TELLING_CHARS && text.contains(new) {
        let message = format!("`old_text` does not stand in `{path}`, but `new_text` does");
        return failure(message).next("The change seems to be made already; read the file to make sure.");
    }
    let message = format!("`old_text` does not stand in `{path}`");
    if let Some(range) = same_but_for_spaces(&lines, &old) {
        return failure(format!(
            "{message}; these lines differ from it only in white space or quotation marks:\n{}",
            surroundings(&lines, range, 0)
        ))
        .next("Copy them exactly, without the line numbers.");
    }
    match most_alike(&lines, &old) {
        Some(line) => {
            let shown = surroundings(&lines, line..line + 1, 3);
            failure(format!("{message}; the nearest to it is around line {}:\n{shown}", line + 1))
                .next("Read the file again and copy the text exactly, without the line numbers.")
        }
        None => failure(message).next("Read the file again; use `grep` to find the text elsewhere."),
    }
}

/// A line without what models get wrong: white space, and typographic quotation marks.
fn folded(line: &str) -> String {
    line.chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| match c {
            '\u{2018}' | '\u{2019}' => '\'',
            '\u{201c}' | '\u{201d}' => '"',
            c => c,
        })
        .collect()
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

/// The line that is most like the longest line of the missing text, by the pairs of characters that they share.
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
    // Of several that are equally alike the first is told.
    let (percent, index) = all.max_by_key(|(percent, index)| (*percent, usize::MAX - index))?;
    (percent >= ALIKE_PERCENT).then_some(index)
}

fn pairs(text: &str) -> HashSet<(char, char)> {
    // A line longer than this is no line that somebody copies.
    let chars: Vec<char> = text.chars().take(500).collect();
    chars.windows(2).map(|pair| (pair[0], pair[1])).collect()
}
