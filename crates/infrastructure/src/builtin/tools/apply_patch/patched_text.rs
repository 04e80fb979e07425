//! Applies hunks to a text.

use crate::builtin::tools::apply_patch::{
    matching::HunkPlacement,
    parser::{Hunk, HunkLine},
    text_lines::TextLine,
};
use std::borrow::Cow;

/// A text after its hunks were applied.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PatchedText {
    pub(super) text: String,
    pub(super) added: usize,
    pub(super) removed: usize,
    /// Range of each hunk in the new text: index of its first line (from 0) and of the line after its last.
    pub(super) lines: Vec<(usize, usize)>,
    /// `true` if the hunks have other line endings than the file, so that those of the file were used.
    pub(super) uses_file_endings: bool,
}

/// Line endings that the hunks of a file specify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEndingSource {
    /// Those of added lines with a carriage return. The other lines of the patch have none.
    WithReturns,
    /// Those of all lines: context and removed lines have the same endings in the patch and in the file.
    All,
    /// None: context and removed lines have other endings in the patch than in the file.
    Unspecified,
}

impl LineEndingSource {
    fn by(hunks: &[Hunk], places: &[HunkPlacement], lines: &[TextLine<'_>]) -> Self {
        let old = || hunks.iter().zip(places).flat_map(|(hunk, place)| hunk.old_lines().zip(&lines[place.first..]));
        if !old().any(|(old, _)| old.ends_with('\r')) {
            return Self::WithReturns;
        }
        let agrees = old().all(|(old, there)| old.ends_with('\r') == there.carried.ends_with('\r'));
        if agrees { Self::All } else { Self::Unspecified }
    }
}

/// A line of the new text.
struct PatchedLine<'a> {
    line: Cow<'a, str>,
    ending: &'a str,
    is_added: bool,
}

/// Applies each hunk at its place; the places are ascending and do not overlap. Lines that no hunk adds or removes keep
/// every byte, with one exception: a last line without a line break gets one if lines follow it. Added lines get the
/// ending that the patch specifies, or else that of the lines around them.
pub(super) fn apply_hunks<'a>(lines: &[TextLine<'a>], hunks: &'a [Hunk], places: &[HunkPlacement]) -> PatchedText {
    let mut new: Vec<PatchedLine<'a>> = Vec::with_capacity(lines.len());
    let kept =
        |line: &TextLine<'a>| PatchedLine { line: Cow::Borrowed(line.text), ending: line.ending, is_added: false };
    let (mut added, mut removed, mut shown) = (0, 0, Vec::with_capacity(hunks.len()));
    let mut done = 0;
    let ending_source = LineEndingSource::by(hunks, places, lines);
    let is_one = |ending: &&str| !ending.is_empty();
    // The last line may have none.
    let ending_before = |at: usize| lines[..at].iter().rev().map(|line| line.ending).find(is_one);
    let ending_after = |at: usize| lines[at..].first().map(|line| line.ending).filter(is_one);
    for (hunk, place) in hunks.iter().zip(places) {
        new.extend(lines[done..place.first].iter().map(kept));
        let first = new.len();
        let mut at = place.first;
        // Removed lines that no added line has replaced yet.
        let mut gone = at..at;
        for line in &hunk.lines {
            match line {
                HunkLine::Kept(_) => {
                    new.push(kept(&lines[at]));
                    at += 1;
                    gone = at..at;
                }
                HunkLine::Removed(_) => {
                    removed += 1;
                    at += 1;
                    gone.end = at;
                }
                HunkLine::Added(text) => {
                    added += 1;
                    let of_the_old = gone.next().map(|old| lines[old].ending).filter(is_one);
                    let follows = of_the_old.or_else(|| ending_before(at)).or_else(|| ending_after(at));
                    let (text, ending) = match (ending_source, text.strip_suffix('\r')) {
                        (LineEndingSource::All, _) | (LineEndingSource::WithReturns, Some(_)) => (&**text, "\n"),
                        (LineEndingSource::Unspecified, bare) => (bare.unwrap_or(text), follows.unwrap_or("\n")),
                        (LineEndingSource::WithReturns, None) => (&**text, follows.unwrap_or("\n")),
                    };
                    new.push(PatchedLine { line: place.shift.applied(text), ending, is_added: true });
                }
            }
        }
        shown.push((first, new.len()));
        done = at;
    }
    new.extend(lines[done..].iter().map(kept));

    let was_unended = lines.last().is_some_and(|line| line.ending.is_empty());
    let says = hunks.last().and_then(|hunk| hunk.ends_in_break).filter(|_| done == lines.len());
    let usual = ending_before(lines.len());
    let count = new.len();
    let mut text = String::new();
    for (index, PatchedLine { line, ending, is_added }) in new.into_iter().enumerate() {
        let is_ended = match says.filter(|_| index + 1 == count) {
            Some(says) => says,
            None if index + 1 < count => true,
            // The end of the file does not change, whichever line is the last one now. A line of the old text is not
            // changed.
            None if is_added => !was_unended,
            None => !ending.is_empty(),
        };
        // A carriage return of an added line is part of its ending, unless the patch states that the line has no
        // ending.
        let is_bare = is_added && !is_ended && says.is_none();
        text.push_str(if is_bare { line.strip_suffix('\r').unwrap_or(&line) } else { &line });
        match (is_ended, ending) {
            (false, _) => {}
            (true, "") => text.push_str(usual.unwrap_or("\n")),
            (true, ending) => text.push_str(ending),
        }
    }
    PatchedText {
        text,
        added,
        removed,
        lines: shown,
        uses_file_endings: ending_source == LineEndingSource::Unspecified,
    }
}
