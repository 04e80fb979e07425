//! Describes why a hunk has no place in its file.

use crate::builtin::{
    text::{snippet::surroundings, wording::counted},
    tools::apply_patch::{
        matching::{HunkFinder, HunkProblem, LineTolerance},
        parser::{Hunk, HunkLine},
        text_lines::TextLine,
    },
};
use std::collections::HashMap;
use toolstead_domain::error_kind::ErrorKind;

/// Maximum number of line numbers that are listed.
const NAMED_LINES: usize = 10;
/// Maximum number of occurrences of a line in the file. More frequent lines are not used to find the nearest place.
const MAX_TIMES: usize = 200;
/// Maximum number of characters quoted from a line.
const QUOTED_CHARS: usize = 100;

/// Returns the error kind of a misfit.
pub(super) fn kind(misfit: &HunkProblem) -> ErrorKind {
    match misfit {
        HunkProblem::Ambiguous(_) => ErrorKind::AmbiguousMatch,
        HunkProblem::OutOfTime => ErrorKind::Timeout,
        HunkProblem::NoAnchor(_)
        | HunkProblem::NoMatch
        | HunkProblem::OutOfOrder(_)
        | HunkProblem::NotAfterAnchors(_) => ErrorKind::NoMatch,
    }
}

/// Describes the problem and the next step, in a few lines.
pub(super) fn described(misfit: &HunkProblem, hunk: &Hunk, lines: &[TextLine<'_>], lookup: &HunkFinder<'_>) -> String {
    let texts: Vec<&str> = lines.iter().map(|line| line.text).collect();
    let height = hunk.old_lines().count().max(1);
    match misfit {
        HunkProblem::Ambiguous(places) => {
            let named: Vec<String> = places.iter().take(NAMED_LINES).map(|first| (first + 1).to_string()).collect();
            let more = if places.len() > NAMED_LINES { " and others" } else { "" };
            format!(
                "its lines match {} places: lines {}{more}. Give more lines around the change, or identify the place \
                 by an anchor, like `@@ fn name`.",
                places.len(),
                named.join(", ")
            )
        }
        HunkProblem::NoAnchor(anchor) => {
            let near = most_common_line(&[anchor], lines);
            let near = near
                .map(|at| format!(" The most similar line is {}:\n{}", at + 1, surroundings(&texts, at..at + 1, 1)));
            format!(
                "no line of the file begins with its anchor `{}`.{}",
                quoted(anchor),
                near.unwrap_or_else(|| " Leave it out if the lines of the hunk are enough to find the place.".into())
            )
        }
        HunkProblem::OutOfTime => "the time ran out before its place was found.".to_owned(),
        HunkProblem::OutOfOrder(first) => format!(
            "its lines match at line {}, before those of the previous hunk. Put the hunks of a file in the order of \
             their lines.",
            first + 1
        ),
        HunkProblem::NotAfterAnchors(first) => format!(
            "its lines match at line {}, which is not after `@@ {}`. Correct the anchor, or leave it out.",
            first + 1,
            quoted(hunk.anchors.last().map_or("", String::as_str))
        ),
        HunkProblem::NoMatch => {
            let adds = hunk.lines.iter().any(|line| matches!(line, HunkLine::Added(text) if !text.trim().is_empty()));
            let new: Vec<&str> = hunk.new_lines().collect();
            if let Some(first) = lookup.find_unique(&new).filter(|_| adds) {
                return format!("its new lines are already at line {}: it was probably applied before.", first + 1);
            }
            let old: Vec<&str> = hunk.old_lines().collect();
            let Some((first, differing)) = nearest(&old, lines) else {
                return format!(
                    "none of its lines is in the file, which has {}. Read the file again.",
                    counted(lines.len(), "line")
                );
            };
            let differs = differing.map_or_else(String::new, |at| match texts.get(first + at) {
                Some(there) => format!(
                    " Line {} is the first that differs: the file has `{}`, the patch has `{}`.",
                    first + at + 1,
                    quoted(there),
                    quoted(old[at])
                ),
                None => format!(" The file ends before `{}`.", quoted(old[at])),
            });
            let end = (first + height).min(texts.len());
            format!("its lines match nowhere.{differs} The nearest region:\n{}", surroundings(&texts, first..end, 1))
        }
    }
}

/// Returns the index (from 0) of the place in the file that shares most lines with the hunk, and the offset in the hunk
/// of the first line that differs there, if one does. Returns `None` if no line is similar.
fn nearest(old: &[&str], lines: &[TextLine<'_>]) -> Option<(usize, Option<usize>)> {
    let mut places: HashMap<_, Vec<usize>> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        let places = places.entry(LineTolerance::Indent.key(line.text)).or_default();
        if places.len() <= MAX_TIMES {
            places.push(at);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (offset, line) in old.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let stands = places.get(&LineTolerance::Indent.key(line)).filter(|stands| stands.len() <= MAX_TIMES);
        for first in stands.into_iter().flatten().filter_map(|at| at.checked_sub(offset)) {
            *votes.entry(first).or_default() += 1;
        }
    }
    // Of several equally near places, the first is reported.
    let first = votes.into_iter().max_by_key(|(first, votes)| (*votes, usize::MAX - first)).map(|(first, _)| first);
    let first = first.or_else(|| most_common_line(old, lines))?;
    let same = |(offset, line): &(usize, &&str)| {
        lines
            .get(first + offset)
            .is_some_and(|there| LineTolerance::Typography.key(there.text) == LineTolerance::Typography.key(line))
    };
    Some((first, old.iter().enumerate().find(|pair| !same(pair)).map(|(offset, _)| offset)))
}

/// Returns the index of the line that shares most words with the longest of the wanted lines, if it has half of them.
fn most_common_line(wanted: &[&str], lines: &[TextLine<'_>]) -> Option<usize> {
    let words = |line: &str| -> Vec<String> {
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        words.take(50).map(str::to_owned).collect()
    };
    let wanted = wanted.iter().map(|line| words(line)).max_by_key(Vec::len).filter(|words| !words.is_empty())?;
    let common = |line: &TextLine<'_>| {
        let words = words(line.text);
        wanted.iter().filter(|word| words.contains(word)).count()
    };
    let counts = lines.iter().take(100_000).enumerate().map(|(at, line)| (common(line), usize::MAX - at));
    let (count, at) = counts.max()?;
    (count * 2 >= wanted.len()).then(|| usize::MAX - at)
}

fn quoted(line: &str) -> String {
    let more = if line.chars().count() > QUOTED_CHARS { "…" } else { "" };
    format!("{}{more}", line.chars().take(QUOTED_CHARS).collect::<String>())
}
