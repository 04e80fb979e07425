//! A text as lines that keep their line breaks, and what hunks make of it.

use crate::builtin::apply_patch::{
    matching::Place,
    parser::{Hunk, HunkLine},
};
use std::borrow::Cow;

/// A line with what ends it: `\n`, `\r\n`, `\r`, or nothing at the end of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) text: &'a str,
    pub(super) ending: &'a str,
}

/// The lines of a text. A carriage return of its own ends a line only where there is no line feed in the whole text:
/// elsewhere it is part of a line, as readers see it.
pub(super) fn lines_of(text: &str) -> Vec<Line<'_>> {
    let last = if text.contains('\n') { '\n' } else { '\r' };
    let line = |whole| {
        let text: &str = str::trim_end_matches(whole, last);
        let text =
            if text.len() == whole.len() || last == '\r' { text } else { text.strip_suffix('\r').unwrap_or(text) };
        Line { text, ending: &whole[text.len()..] }
    };
    text.split_inclusive(last).map(line).collect()
}

/// A text after its hunks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Patched {
    pub(super) text: String,
    pub(super) added: usize,
    pub(super) removed: usize,
    /// The lines of each hunk as they are now, from 0: the first, and the one behind the last.
    pub(super) lines: Vec<(usize, usize)>,
}

/// A line of the new text.
struct New<'a> {
    line: Cow<'a, str>,
    ending: &'a str,
    is_added: bool,
}

/// The text with each hunk at its place; the places are in order and apart from each other. Lines that no hunk adds or
/// removes keep every byte, with one exception: a last line without a line break gets one when lines follow it.
pub(super) fn patched<'a>(lines: &[Line<'a>], hunks: &'a [Hunk], places: &[Place]) -> Patched {
    let mut new: Vec<New<'a>> = Vec::with_capacity(lines.len());
    let kept = |line: &Line<'a>| New { line: Cow::Borrowed(line.text), ending: line.ending, is_added: false };
    let (mut added, mut removed, mut shown) = (0, 0, Vec::with_capacity(hunks.len()));
    let mut done = 0;
    let ending_before = |at: usize| lines[..at].last().map(|line| line.ending).filter(|ending| !ending.is_empty());
    let ending_after = |at: usize| lines[at..].first().map(|line| line.ending).filter(|ending| !ending.is_empty());
    for (hunk, place) in hunks.iter().zip(places) {
        new.extend(lines[done..place.first].iter().map(kept));
        let first = new.len();
        let mut at = place.first;
        // The lines that were removed here and have found no successor.
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
                    let of_the_old = gone.next().map(|old| lines[old].ending).filter(|ending| !ending.is_empty());
                    let ending = of_the_old.or_else(|| ending_before(at)).or_else(|| ending_after(at)).unwrap_or("\n");
                    new.push(New { line: place.shift.applied(text), ending, is_added: true });
                }
            }
        }
        shown.push((first, new.len()));
        done = at;
    }
    new.extend(lines[done..].iter().map(kept));

    let was_unended = lines.last().is_some_and(|line| line.ending.is_empty());
    let says = hunks.last().and_then(|hunk| hunk.ends_in_break).filter(|_| done == lines.len());
    let usual =
        ending_before(lines.len()).or(lines.first().map(|line| line.ending)).filter(|ending| !ending.is_empty());
    let count = new.len();
    let mut text = String::new();
    for (index, New { line, ending, is_added }) in new.into_iter().enumerate() {
        let is_ended = match says.filter(|_| index + 1 == count) {
            Some(says) => says,
            None if index + 1 < count => true,
            // The file ends as it did, whichever line is the last one now; a line that was there stays as it is.
            None if is_added => !was_unended,
            None => !ending.is_empty(),
        };
        text.push_str(&line);
        match (is_ended, ending) {
            (false, _) => {}
            (true, "") => text.push_str(usual.unwrap_or("\n")),
            (true, ending) => text.push_str(ending),
        }
    }
    Patched { text, added, removed, lines: shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_whatever_they_end() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let lines: Vec<(&str, &str)> = lines_of(text).iter().map(|line| (line.text, line.ending)).collect();
            assert_eq!(lines, expected, "{text:?}");
        };
        check("", &[]);
        check("a", &[("a", "")]);
        check("a\n\r\nb\rc\r\n\n", &[("a", "\n"), ("", "\r\n"), ("b\rc", "\r\n"), ("", "\n")]);
        check("a\rb\r\r", &[("a", "\r"), ("b", "\r"), ("", "\r")]);
        check("a\r\r\nb\r", &[("a\r", "\r\n"), ("b\r", "")]);
    }
}
