//! Finds the place of each hunk of a patch in a text.
//!
//! The context and removed lines of a hunk must occur consecutively in the file, after the lines of the previous hunk.
//! If they occur several times, the hunk's anchors, its line number or its end-of-file mark must identify one place.
//! Lines may differ only in ways that leave every token intact (see [`LineTolerance`]); a degree of similarity is never
//! used.

use crate::{
    builtin::{
        text::text_edit::plain_character,
        tools::apply_patch::{parser::Hunk, text_lines::TextLine},
    },
    sandbox::workspace::stop::StopCondition,
};
use std::{borrow::Cow, cell::OnceCell, collections::HashMap};

/// Maximum number of places that match except for their indentation; more count as ambiguous.
const MAX_CANDIDATES: usize = 100_000;
/// Maximum number of lines whose indentation is compared for one hunk, over all places where it may be; more count as
/// ambiguous.
const MAX_COMPARED: usize = 4_000_000;

/// Differences between lines that are ignored. Each variant includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LineTolerance {
    /// No differences; even carriage returns are compared.
    Verbatim,
    /// Differences in line endings.
    Exact,
    /// Differences in trailing white space.
    TrailingSpace,
    /// Differences in typographic quotation marks, dashes and spaces.
    Typography,
    /// A difference in indentation that all lines share.
    Indent,
}

impl LineTolerance {
    /// All variants but `Verbatim`: most patches do not carry carriage returns.
    const COMMON: [Self; 4] = [Self::Exact, Self::TrailingSpace, Self::Typography, Self::Indent];

    /// Names the ignored differences for a message; `None` if they are not worth a mention.
    pub(super) fn words(self) -> Option<&'static str> {
        match self {
            Self::Verbatim | Self::Exact => None,
            Self::TrailingSpace => Some("white space at the ends of lines"),
            Self::Typography => Some("typographic quotes, dashes or spaces"),
            Self::Indent => Some("indentation"),
        }
    }

    /// Returns the part of a line that is compared: lines with equal keys count as equal.
    pub(super) fn key(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Verbatim => Cow::Borrowed(line),
            Self::Exact => Cow::Borrowed(line.strip_suffix('\r').unwrap_or(line)),
            Self::TrailingSpace => Cow::Borrowed(line.trim_end()),
            Self::Typography => plain_line(line.trim_end()),
            Self::Indent => plain_line(line.trim()),
        }
    }
}

/// Place of a hunk in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HunkPlacement {
    /// Index of its first line in the file, from 0.
    pub(super) first: usize,
    pub(super) tolerance: LineTolerance,
    pub(super) shift: IndentShift,
}

/// Common indentation of a hunk's lines in the patch (`from`) and in the file (`to`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct IndentShift {
    from: String,
    to: String,
}

impl IndentShift {
    /// Returns a line of the hunk with the indentation of the file.
    pub(super) fn applied<'l>(&self, line: &'l str) -> Cow<'l, str> {
        match line.strip_prefix(&*self.from) {
            Some(rest) if self.from != self.to && !line.trim().is_empty() => Cow::Owned(format!("{}{rest}", self.to)),
            _ => Cow::Borrowed(line),
        }
    }

    fn fits(&self, line: &str) -> bool {
        line.trim().is_empty() || line.starts_with(&*self.from)
    }
}

/// Reason why a hunk has no place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HunkProblem {
    /// No line matches this anchor.
    NoAnchor(String),
    /// The lines occur nowhere.
    NoMatch,
    /// The lines occur only before the end of the previous hunk. The index (from 0) is that of the first place.
    OutOfOrder(usize),
    /// The lines occur, but not after the anchors. The index (from 0) is that of the first place.
    NotAfterAnchors(usize),
    /// The lines occur at several places, with these indices (from 0).
    Ambiguous(Vec<usize>),
    /// The deadline passed during the search.
    OutOfTime,
}

/// The lines of a file, with indices for finding hunks.
#[derive(Debug)]
pub(super) struct HunkFinder<'a> {
    lines: &'a [TextLine<'a>],
    stop: &'a StopCondition,
    indices: [OnceCell<InternedLines<'a>>; 5],
}

/// Lines as numbers: equal lines have equal numbers.
#[derive(Debug)]
struct InternedLines<'a> {
    numbers: Vec<u32>,
    by_line: HashMap<Cow<'a, str>, u32>,
}

impl<'a> HunkFinder<'a> {
    pub(super) fn of(lines: &'a [TextLine<'a>], stop: &'a StopCondition) -> Self {
        Self { lines, stop, indices: Default::default() }
    }

    /// Returns the place of a hunk at or after the line with index `from`.
    pub(super) fn place(&self, hunk: &Hunk, from: usize) -> Result<HunkPlacement, HunkProblem> {
        let behind = self.lines_after_anchors(hunk)?;
        let old: Vec<&str> = hunk.old_lines().collect();
        if old.is_empty() {
            return self.place_of_insertion(hunk, from, behind);
        }
        let mut elsewhere = None;
        let carries_returns = hunk.old_lines().any(|line| line.ends_with('\r'));
        let carried = carries_returns.then_some(LineTolerance::Verbatim);
        for looseness in carried.into_iter().chain(LineTolerance::COMMON) {
            self.check_deadline()?;
            let found = self.find(&old, hunk, looseness)?;
            let fitting: Vec<&HunkPlacement> = found.iter().filter(|place| place.first >= from).collect();
            if fitting.is_empty() {
                elsewhere = elsewhere.or(found.first().map(|place| HunkProblem::OutOfOrder(place.first)));
                continue;
            }
            let meant = self.select_candidates(hunk, &fitting, old.len(), behind.as_deref());
            return match &meant[..] {
                [] => Err(HunkProblem::NotAfterAnchors(fitting[0].first)),
                [only] => Ok((*only).clone()),
                several => Err(HunkProblem::Ambiguous(several.iter().map(|place| place.first).collect())),
            };
        }
        Err(elsewhere.unwrap_or(HunkProblem::NoMatch))
    }

    fn check_deadline(&self) -> Result<(), HunkProblem> {
        if self.stop.is_due() { Err(HunkProblem::OutOfTime) } else { Ok(()) }
    }

    /// Returns the index of the only exact occurrence of these lines. Line endings are not compared.
    pub(super) fn find_unique(&self, lines: &[&str]) -> Option<usize> {
        let index = self.index(LineTolerance::Exact);
        let wanted: Option<Vec<u32>> =
            lines.iter().map(|line| index.by_line.get(&LineTolerance::Exact.key(line)).copied()).collect();
        match occurrences(&index.numbers, &wanted.filter(|wanted| !wanted.is_empty())?)[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Selects the places that the hunk may refer to, by its end-of-file mark, its line number or its anchors.
    fn select_candidates<'p>(
        &self,
        hunk: &Hunk,
        found: &[&'p HunkPlacement],
        length: usize,
        behind: Option<&[usize]>,
    ) -> Vec<&'p HunkPlacement> {
        if hunk.is_at_end
            && let Some(last) = found.last().filter(|place| place.first + length == self.lines.len())
        {
            return vec![last];
        }
        if let Some(at) = hunk.at
            && let Some(there) = found.iter().find(|place| place.first + 1 == at)
        {
            return vec![there];
        }
        let Some(behind) = behind else { return found.to_vec() };
        // Each possible position of the anchors refers to the first place after it.
        let mut firsts: Vec<usize> = behind
            .iter()
            .map(|anchor| found.partition_point(|place| place.first < *anchor))
            .filter(|index| *index < found.len())
            .collect();
        firsts.dedup();
        firsts.into_iter().map(|index| found[index]).collect()
    }

    /// Returns the place of a hunk that only adds lines: after its anchor, at its line number, or at the end of the
    /// file.
    fn place_of_insertion(
        &self,
        hunk: &Hunk,
        from: usize,
        behind: Option<Vec<usize>>,
    ) -> Result<HunkPlacement, HunkProblem> {
        let first = match (behind.as_deref(), hunk.at) {
            (Some([only]), _) if !hunk.is_at_end => only + 1,
            (Some(several), _) if !hunk.is_at_end => return Err(HunkProblem::Ambiguous(several.to_vec())),
            (None, Some(at)) => at.saturating_sub(1).min(self.lines.len()),
            _ => self.lines.len(),
        };
        if first < from {
            return Err(HunkProblem::OutOfOrder(first));
        }
        Ok(HunkPlacement { first, tolerance: LineTolerance::Exact, shift: IndentShift::default() })
    }

    /// Returns the indices of the lines that the innermost anchor may refer to: ascending, and never empty. Returns
    /// `None` if the hunk has no anchors.
    fn lines_after_anchors(&self, hunk: &Hunk) -> Result<Option<Vec<usize>>, HunkProblem> {
        let mut behind: Option<Vec<usize>> = None;
        for anchor in &hunk.anchors {
            self.check_deadline()?;
            let stands = self.anchor(anchor);
            let mut stands: Vec<usize> = match &behind {
                None => stands,
                Some(outer) => {
                    let next = |outer: &usize| stands.get(stands.partition_point(|at| at <= outer)).copied();
                    outer.iter().filter_map(next).collect()
                }
            };
            stands.dedup();
            if stands.is_empty() {
                return Err(HunkProblem::NoAnchor(anchor.clone()));
            }
            behind = Some(stands);
        }
        Ok(behind)
    }

    /// Returns the indices of the lines that an anchor matches: lines equal to it, or else lines that begin with it.
    fn anchor(&self, anchor: &str) -> Vec<usize> {
        for looseness in LineTolerance::COMMON {
            let index = self.index(looseness);
            if let Some(number) = index.by_line.get(&looseness.key(anchor)) {
                return (0..index.numbers.len()).filter(|at| index.numbers[*at] == *number).collect();
            }
        }
        let key = LineTolerance::Indent.key(anchor);
        let begins = |line: &TextLine<'_>| !key.is_empty() && LineTolerance::Indent.key(line.text).starts_with(&*key);
        (0..self.lines.len()).filter(|at| begins(&self.lines[*at])).collect()
    }

    /// Returns all places of the lines, ascending. If there are too many to compare their indentation, they are
    /// ambiguous.
    fn find(&self, old: &[&str], hunk: &Hunk, looseness: LineTolerance) -> Result<Vec<HunkPlacement>, HunkProblem> {
        let index = self.index(looseness);
        let wanted: Option<Vec<u32>> =
            old.iter().map(|line| index.by_line.get(&looseness.key(line)).copied()).collect();
        let Some(wanted) = wanted else { return Ok(Vec::new()) };
        let found = occurrences(&index.numbers, &wanted);
        if looseness < LineTolerance::Indent {
            return Ok(found
                .into_iter()
                .map(|first| HunkPlacement { first, tolerance: looseness, shift: IndentShift::default() })
                .collect());
        }
        if found.len() > MAX_CANDIDATES || found.len().saturating_mul(old.len()) > MAX_COMPARED {
            return Err(HunkProblem::Ambiguous(found));
        }
        let shifted = |first: usize| {
            let shift = self.shift(old, first)?;
            hunk.new_lines().all(|line| shift.fits(line)).then_some(HunkPlacement {
                first,
                tolerance: looseness,
                shift,
            })
        };
        Ok(found.into_iter().filter_map(shifted).collect())
    }

    /// Returns the difference in indentation between the hunk and the file; `None` if the lines do not share one.
    fn shift(&self, old: &[&str], first: usize) -> Option<IndentShift> {
        let pairs = self.lines[first..].iter().zip(old).filter(|(_, old)| !old.trim().is_empty());
        let pairs: Vec<(&str, &str)> = pairs.map(|(line, old)| (indent_of(line.text), indent_of(old))).collect();
        let to = pairs.iter().map(|(there, _)| *there).min_by_key(|indent| indent.len()).unwrap_or_default();
        let from = pairs.iter().map(|(_, here)| *here).min_by_key(|indent| indent.len()).unwrap_or_default();
        let same = |(there, here): &(&str, &str)| {
            let (there, here) = (there.strip_prefix(to), here.strip_prefix(from));
            there.is_some() && there == here
        };
        pairs.iter().all(same).then(|| IndentShift { from: from.to_owned(), to: to.to_owned() })
    }

    fn index(&self, looseness: LineTolerance) -> &InternedLines<'a> {
        self.indices[looseness as usize].get_or_init(|| {
            let mut by_line: HashMap<Cow<'a, str>, u32> = HashMap::new();
            let numbers = self.lines.iter().map(|line| {
                let next = by_line.len() as u32;
                *by_line.entry(looseness.key(line.carried)).or_insert(next)
            });
            let numbers = numbers.collect();
            InternedLines { numbers, by_line }
        })
    }
}

fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// Replaces typographic characters by plain ones.
fn plain_line(line: &str) -> Cow<'_, str> {
    if line.is_ascii() { Cow::Borrowed(line) } else { Cow::Owned(line.chars().map(plain_character).collect()) }
}

/// Returns all positions of one sequence in another, ascending, including overlapping ones. The time is proportional to
/// the sum of both lengths for every input (Knuth–Morris–Pratt).
fn occurrences(numbers: &[u32], wanted: &[u32]) -> Vec<usize> {
    // For each prefix of `wanted`: the length of its longest proper suffix that is also a prefix.
    let mut borders = vec![0; wanted.len()];
    let mut length = 0;
    for at in 1..wanted.len() {
        while length > 0 && wanted[length] != wanted[at] {
            length = borders[length - 1];
        }
        length += usize::from(wanted[length] == wanted[at]);
        borders[at] = length;
    }
    let (mut found, mut matched) = (Vec::new(), 0);
    for (at, number) in numbers.iter().enumerate() {
        while matched > 0 && (matched == wanted.len() || wanted[matched] != *number) {
            matched = borders[matched - 1];
        }
        matched += usize::from(wanted[matched] == *number);
        if matched == wanted.len() {
            found.push(at + 1 - matched);
        }
    }
    found
}

#[cfg(test)]
mod tests;
