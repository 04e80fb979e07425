//! Computes the lines of a place that really change, so that all other bytes stay the same.

use crate::builtin::text::{
    comparison_time,
    line_ending::in_lines,
    text_edit::{edit_span::SpanReplacement, folded_text::plain_character},
};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use std::{ops::Range, rc::Rc, time::Duration};

/// Processor time after which a comparison becomes coarser.
const TIME_TO_COMPARE: Duration = Duration::from_millis(100);

/// A range of the view, and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hunk {
    pub(super) range: Range<usize>,
    pub(super) new: String,
}

/// Text after all hunks, with line feeds only, and the lines of each place in it (from 0): the first, and the one after
/// the last.
#[derive(Debug)]
pub(super) struct AppliedHunks {
    pub(super) after: String,
    pub(super) lines: Vec<(usize, usize)>,
}

/// Differences between the lines of an old and a new text. All places of a literal edit have the same ones, so they are
/// computed once.
#[derive(Debug)]
pub(super) struct LineDiff {
    old: Rc<str>,
    new: Rc<str>,
    changes: Vec<DiffOp>,
}

impl LineDiff {
    fn is_of(&self, place: &SpanReplacement) -> bool {
        Rc::ptr_eq(&self.old, &place.old) && Rc::ptr_eq(&self.new, &place.new)
    }

    fn of(place: &SpanReplacement, old: &[&str], new: &[&str]) -> Self {
        let mut changes = comparison_time::within(TIME_TO_COMPARE, |deadline| {
            capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline))
        });
        changes.retain(|op| !matches!(op, DiffOp::Equal { .. }));
        Self { old: place.old.clone(), new: place.new.clone(), changes }
    }
}

/// Returns the hunks of one place, in order and without overlaps; none if nothing changes. Reuses the last diff if it
/// matches.
pub(super) fn of_place(text: &str, place: &SpanReplacement, last: &mut Option<LineDiff>) -> Vec<Hunk> {
    let theirs = &text[place.range.clone()];
    let mut hunks = Vec::new();
    if !place.old.contains('\n') {
        push(&mut hunks, theirs, &place.old, &place.new, place.range.start);
        return hunks;
    }
    let old: Vec<&str> = place.old.split_inclusive('\n').collect();
    let new: Vec<&str> = place.new.split_inclusive('\n').collect();
    let Some(starts) = line_starts(theirs, &old) else {
        push(&mut hunks, theirs, &place.old, &place.new, place.range.start);
        return hunks;
    };
    if !last.as_ref().is_some_and(|last| last.is_of(place)) {
        *last = Some(LineDiff::of(place, &old, &new));
    }
    for op in last.iter().flat_map(|diff| &diff.changes) {
        let (mine, to) = (op.old_range(), op.new_range());
        let range = starts[mine.start]..starts[mine.end];
        push(
            &mut hunks,
            &theirs[range.clone()],
            &old[mine].concat(),
            &new[to].concat(),
            place.range.start + range.start,
        );
    }
    hunks
}

/// Returns the offset of each line of `theirs`, and of its end; `None` if `theirs` and `old` have different numbers of
/// lines.
fn line_starts(theirs: &str, old: &[&str]) -> Option<Vec<usize>> {
    let breaks: Vec<usize> = theirs.match_indices('\n').map(|(at, _)| at + 1).collect();
    let wanted = old.iter().filter(|line| line.ends_with('\n')).count();
    // Lone carriage returns count as line breaks only if the search had to treat them so.
    let breaks = match breaks.len() == wanted {
        true => breaks,
        false => theirs.match_indices(['\n', '\r']).map(|(at, _)| at + 1).collect(),
    };
    if breaks.len() != wanted {
        return None;
    }
    let mut starts: Vec<usize> = std::iter::once(0).chain(breaks).collect();
    if old.len() > wanted {
        starts.push(theirs.len());
    }
    Some(starts)
}

/// Adds the hunk that turns `old` into `new` at `start`, without the common beginning and end that the file's own text
/// `theirs` shares. Adds nothing if nothing changes.
fn push(hunks: &mut Vec<Hunk>, theirs: &str, old: &str, new: &str, start: usize) {
    let same = |theirs: char, old: char, new: char| {
        old == new
            && (theirs == old || plain_character(theirs) == plain_character(old) || (theirs == '\r' && old == '\n'))
    };
    let front = theirs.chars().zip(old.chars()).zip(new.chars()).take_while(|((a, b), c)| same(*a, *b, *c));
    let (mut front_theirs, mut front_old) = (0, 0);
    for ((theirs, old), _) in front {
        front_theirs += theirs.len_utf8();
        front_old += old.len_utf8();
    }
    let (rest_theirs, rest_old, rest_new) = (&theirs[front_theirs..], &old[front_old..], &new[front_old..]);
    let back = rest_theirs.chars().rev().zip(rest_old.chars().rev()).zip(rest_new.chars().rev());
    let (mut back_theirs, mut back_new) = (0, 0);
    for ((theirs, _), new) in back.take_while(|((a, b), c)| same(*a, *b, *c)) {
        back_theirs += theirs.len_utf8();
        back_new += new.len_utf8();
    }
    let range = start + front_theirs..start + theirs.len() - back_theirs;
    let new = &rest_new[..rest_new.len() - back_new];
    if !(range.is_empty() && new.is_empty()) {
        hunks.push(Hunk { range, new: new.into() });
    }
}

/// Applies the hunks of each place.
pub(super) fn apply_hunks(text: &str, places: &[SpanReplacement], hunks: &[Vec<Hunk>]) -> AppliedHunks {
    let (mut after, mut ranges) = (String::with_capacity(text.len()), Vec::with_capacity(places.len()));
    let mut done = 0;
    for (place, hunks) in places.iter().zip(hunks) {
        after.push_str(&text[done..place.range.start.max(done)]);
        let first = after.len();
        done = place.range.start.max(done);
        for hunk in hunks {
            after.push_str(&text[done..hunk.range.start]);
            after.push_str(&hunk.new);
            done = hunk.range.end;
        }
        after.push_str(&text[done..place.range.end]);
        done = place.range.end;
        ranges.push(first..after.len());
    }
    after.push_str(&text[done..]);
    let after = in_lines(&after).into_owned();
    let (mut done, mut line) = (0, 0);
    let mut line_of = |at: usize| {
        line += after.as_bytes()[done..at].iter().filter(|byte| **byte == b'\n').count();
        done = at;
        line
    };
    let lines = ranges.into_iter().map(|range| (line_of(range.start), line_of(range.end) + 1)).collect();
    AppliedHunks { after, lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_contain_only_the_differing_text() {
        let check = |theirs: &str, old: &str, new: &str, expected: &[(&str, &str)]| {
            let place = SpanReplacement { range: 0..theirs.len(), old: old.into(), new: new.into() };
            let hunks = of_place(theirs, &place, &mut None);
            let shown: Vec<(&str, &str)> = hunks.iter().map(|hunk| (&theirs[hunk.range.clone()], &*hunk.new)).collect();
            assert_eq!(shown, expected, "{theirs:?}");
        };
        check("abc", "abc", "aXc", &[("b", "X")]);
        check("a\nb\nc", "a\nb\nc", "A\nb\nC", &[("a", "A"), ("c", "C")]);
        check("a\nb\n", "a\nb\n", "a\nx\nb\n", &[("", "x\n")]);
        check("a\nb", "a\nb", "a\nb\nc", &[("", "\nc")]);
        check("a  \nb", "a\nb", "a\nB", &[("b", "B")]);
        check("\u{201c}a\u{201d} b", "\"a\" b", "\"a\" c", &[("b", "c")]);
        check("a\rb", "a\nb", "a\nc", &[("b", "c")]);
        check("aa", "aa", "aaa", &[("", "a")]);
        check("ab", "ab", "ab", &[]);
        check("ab", "ab", "", &[("ab", "")]);
    }
}
