//! Collects the matches of a search, within limits.

use crate::{builtin::tools::grep::OutputMode, sandbox::workspace::stop::StopCondition};
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use std::{
    cmp::Reverse,
    io::{self, Read},
    ops::Range,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};
use toolstead_domain::Timestamp;

/// Maximum number of stored lines per matching line, on average. Context lines count.
const LINES_PER_HIT: usize = 2;
/// Maximum length of a line, in characters. Longer lines are cut around their match.
const MAX_LINE_CHARS: usize = 500;
/// Number of characters before the match in a cut line.
const LEAD_CHARS: usize = 150;

/// Maximum number of matches per line that are reported separately.
const MAX_PLACES: usize = 1000;
/// Number of bytes after a block that are read when its matches are located again, for assertions like `\b`.
const LOOK_AHEAD_BYTES: usize = 128;

/// Numbers of matches and of lines that a search may still store, shared by all its threads.
#[derive(Debug)]
pub(super) struct SearchBudget {
    hits: AtomicUsize,
    lines: AtomicUsize,
}

impl SearchBudget {
    /// Allows `hits` matching lines, or matching files if lines are not requested, and twice as many stored lines.
    pub(super) fn new(hits: usize) -> Self {
        Self { hits: AtomicUsize::new(hits), lines: AtomicUsize::new(hits.saturating_mul(LINES_PER_HIT)) }
    }
}

/// Takes one from the counter `left`; returns `false` if it is 0 already.
fn take(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

/// Matcher, searcher and findings of one thread.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) matcher: RegexMatcher,
    pub(super) searcher: Searcher,
    pub(super) mode: OutputMode,
    pub(super) only_matching: bool,
    pub(super) findings: Findings,
}

/// Findings of one thread, or of the whole search.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) files: Vec<FileFindings>,
    /// Number of matching lines; number of matching files if lines are not requested.
    pub(super) total_matches: u64,
    pub(super) binary_files: usize,
    pub(super) unreadable_files: usize,
    /// Reason why the search of files ended early; `None` if it did not.
    pub(super) ended: Option<SearchEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchEnd {
    Time,
    Hits,
}

/// File or stored output that has matches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FindingsSource {
    /// Displayed path of the file, or handle of the stored output.
    pub(super) shown: String,
    /// Full path; empty for a stored output.
    pub(super) lexical: PathBuf,
}

/// Findings in one file.
#[derive(Debug)]
pub(super) struct FileFindings {
    pub(super) place: FindingsSource,
    pub(super) modified: Timestamp,
    pub(super) matches: u64,
    pub(super) lines: Vec<FoundLine>,
}

/// Matching line, context line, or one match of a line.
#[derive(Debug)]
pub(super) struct FoundLine {
    pub(super) number: u64,
    pub(super) text: String,
    /// Range of the match in the text, in characters; `None` for a context line.
    pub(super) place: Option<(usize, usize)>,
    /// `true` if lines before this one are omitted.
    pub(super) follows_gap: bool,
}

impl Findings {
    /// Adds the findings of another thread.
    pub(super) fn absorb(&mut self, other: Self) {
        self.files.extend(other.files);
        self.total_matches += other.total_matches;
        self.binary_files += other.binary_files;
        self.unreadable_files += other.unreadable_files;
        self.ended = self.ended.or(other.ended);
    }

    /// Sorts the files by time of change, latest first.
    pub(super) fn sort(&mut self) {
        self.files.sort_unstable_by(|a, b| (Reverse(a.modified), &a.place).cmp(&(Reverse(b.modified), &b.place)));
    }

    /// Returns the approximate number of characters that all lines take when displayed.
    pub(super) fn chars(&self) -> usize {
        let chars = |file: &FileFindings| -> usize {
            file.lines.iter().map(|line| line.text.chars().count() + file.place.shown.len() + 8).sum()
        };
        self.files.iter().map(chars).sum()
    }
}

impl Worker {
    /// Searches one file and adds its matches to the findings of this worker. Calls `place` only if there is a match.
    pub(super) fn search(
        &mut self,
        content: impl Read,
        modified: Timestamp,
        place: impl FnOnce() -> FindingsSource,
        bounds: &SearchBudget,
        stop: &StopCondition,
    ) {
        let mut sink = FileSink {
            matcher: &self.matcher,
            mode: self.mode,
            only_matching: self.only_matching,
            bounds,
            matches: 0,
            lines: Vec::new(),
            is_binary: false,
            is_full: false,
            follows_gap: false,
        };
        let searched =
            self.searcher.search_reader(&self.matcher, StoppableReader { content, stop, is_at_end: false }, &mut sink);
        let FileSink { matches, lines, is_binary, is_full, .. } = sink;
        let findings = &mut self.findings;
        if stop.is_due() {
            findings.ended = Some(SearchEnd::Time);
        } else if searched.is_err() {
            findings.unreadable_files += 1;
        }
        findings.binary_files += usize::from(is_binary);
        // Lines before the first NUL are text, but a count of them would be incomplete.
        if matches > 0 && (!is_binary || self.mode == OutputMode::Content) {
            findings.total_matches += matches;
            findings.files.push(FileFindings { place: place(), modified, matches, lines });
        }
        if is_full {
            findings.ended.get_or_insert(SearchEnd::Hits);
        }
    }
}

/// Reader that ends when the stop condition is due. After its end it does not read again, because the engine reads
/// twice.
struct StoppableReader<'a, R> {
    content: R,
    stop: &'a StopCondition,
    is_at_end: bool,
}

impl<R: Read> Read for StoppableReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_at_end || self.stop.is_due() {
            return Ok(0);
        }
        let count = self.content.read(buffer)?;
        self.is_at_end = count == 0 && !buffer.is_empty();
        Ok(count)
    }
}

struct FileSink<'a> {
    matcher: &'a RegexMatcher,
    mode: OutputMode,
    only_matching: bool,
    bounds: &'a SearchBudget,
    matches: u64,
    lines: Vec<FoundLine>,
    is_binary: bool,
    is_full: bool,
    follows_gap: bool,
}

impl FileSink<'_> {
    /// Stores a line; returns `false` if the capacity is used up.
    fn keep(&mut self, number: u64, line: &[u8], place: Option<(usize, usize)>) -> bool {
        if !take(&self.bounds.lines) {
            self.is_full = true;
            return false;
        }
        let (text, place) = cut(line, place);
        let follows_gap = std::mem::take(&mut self.follows_gap);
        self.lines.push(FoundLine { number, text, place, follows_gap });
        true
    }

    /// Stores the lines of a block, each with its matches; returns `false` if the capacity is used up. The matches are
    /// located as the searcher did: across lines, and with the text around the block.
    fn keep_block(&mut self, found: &SinkMatch<'_>) -> bool {
        let (matcher, range) = (self.matcher, found.bytes_range_in_buffer());
        let end = range.end.saturating_add(LOOK_AHEAD_BYTES).min(found.buffer().len());
        let buffer = &found.buffer()[..end];
        let numbers = found.line_number().unwrap_or(0)..;
        let lines = numbers.zip(found.lines()).scan(range.start, |end, (number, line)| {
            let start = *end;
            *end += line.len();
            Some((number, start..*end))
        });
        let mut lines = lines.peekable();
        let Some((first, mut line)) = lines.next() else { return true };
        let (mut number, kept) = (first, self.lines.len());
        let (mut places, mut is_through, mut has_room) = (Vec::new(), false, true);
        // Stores the lines that end before the match, and records the match for each line that it overlaps.
        let mut meet = |place: Range<usize>| {
            while !is_through {
                if place.start < line.end {
                    if places.len() < if self.only_matching { MAX_PLACES } else { 1 } {
                        places.push(place.start.max(line.start)..place.end.min(line.end));
                    }
                    if place.end <= line.end {
                        return self.only_matching || lines.peek().is_some();
                    }
                }
                has_room = self.keep_line(number, buffer, &line, &places);
                places.clear();
                match lines.next().filter(|_| has_room) {
                    Some(next) => (number, line) = next,
                    None => is_through = true,
                }
            }
            false
        };
        // This matcher never returns an error.
        let _ = matcher.find_iter_at(buffer, range.start, |place| meet(place.start()..place.end()));
        meet(usize::MAX..usize::MAX);
        // If no match has characters, its position is stored.
        if has_room && self.lines.len() == kept {
            has_room = self.keep(first, b"", Some((0, 0)));
        }
        has_room
    }

    /// Stores a line with its first match, or each match by itself if only matches are requested; returns `false` if
    /// the capacity is used up.
    fn keep_line(&mut self, number: u64, buffer: &[u8], line: &Range<usize>, places: &[Range<usize>]) -> bool {
        if !self.take_hit() {
            return false;
        }
        let text = without_break(&buffer[line.clone()]);
        // The part of a match in the line break is not shown.
        let shown = |place: &Range<usize>| {
            let within = |at: usize| (at - line.start).min(text.len());
            let shown = (within(place.start), within(place.end));
            (place.is_empty() || shown.0 < shown.1).then_some(shown)
        };
        let mut shown = places.iter().filter_map(shown);
        if !self.only_matching {
            let place = shown.next().unwrap_or((0, text.len()));
            return self.keep(number, text, Some(place));
        }
        let mut parts = shown.filter(|(start, end)| start < end);
        parts.all(|(start, end)| self.keep(number, &text[start..end], Some((0, end - start))))
    }

    /// Counts one matching line or file and takes it from the capacity; returns `false` if that is used up.
    fn take_hit(&mut self) -> bool {
        let is_taken = take(&self.bounds.hits);
        self.matches += u64::from(is_taken);
        self.is_full |= !is_taken;
        is_taken
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        match self.mode {
            OutputMode::Content => Ok(self.keep_block(found)),
            OutputMode::FilesWithMatches => {
                self.take_hit();
                Ok(false)
            }
            // A file takes one from the capacity, however many of its lines match.
            OutputMode::Count => {
                let is_known = self.matches > 0;
                if is_known || self.take_hit() {
                    self.matches += found.lines().count() as u64 - u64::from(!is_known);
                }
                Ok(!self.is_full)
            }
        }
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.keep(context.line_number().unwrap_or(0), without_break(context.bytes()), None))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.follows_gap = true;
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

fn without_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns the line as text, cut around the match if it is long, and the range of the match in characters.
fn cut(line: &[u8], place: Option<(usize, usize)>) -> (String, Option<(usize, usize)>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let place = place.map(|(start, end)| {
        let before = text(&line[..start]).chars().count();
        (before, before + text(&line[start..end]).chars().count())
    });
    let whole = text(line);
    let chars = whole.chars().count();
    if chars <= MAX_LINE_CHARS {
        return (whole, place);
    }
    let from = place.map_or(0, |(start, _)| start.saturating_sub(LEAD_CHARS)).min(chars - MAX_LINE_CHARS);
    let mut cut = String::new();
    if from > 0 {
        cut.push('…');
    }
    cut.extend(whole.chars().skip(from).take(MAX_LINE_CHARS));
    if from + MAX_LINE_CHARS < chars {
        cut.push('…');
    }
    let lead = usize::from(from > 0);
    let moved = |at: usize| (at.saturating_sub(from) + lead).min(MAX_LINE_CHARS + lead);
    (cut, place.map(|(start, end)| (moved(start), moved(end))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_around_its_match() {
        let line = format!("{}ä match {}", "x".repeat(1000), "y".repeat(1000));
        let start = line.find("match").unwrap();
        let (text, place) = cut(line.as_bytes(), Some((start, start + 5)));
        let (start, end) = place.unwrap();
        assert_eq!(text.chars().skip(start).take(end - start).collect::<String>(), "match");
        assert_eq!(text.chars().count(), MAX_LINE_CHARS + 2);
        assert!(text.starts_with('…') && text.ends_with('…'));
        assert_eq!(cut(b"short", Some((1, 2))), ("short".into(), Some((1, 2))));
    }
}
