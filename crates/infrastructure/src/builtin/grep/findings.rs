//! What `grep` finds, within bounds.

use crate::{
    builtin::grep::{Input, OutputMode, plan::Plan},
    sandbox::workspace::stop::Stop,
};
use grep_matcher::Matcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use std::{
    fs::File,
    io::{self, Read},
};
use toolstead_domain::ports::clock::Timestamp;

/// As many lines that match are taken.
const MAX_HITS: u64 = 10_000;
/// As many lines are kept, those around matches included.
const MAX_LINES: usize = 20_000;
/// Longer lines are cut around their match.
const MAX_LINE_CHARS: usize = 500;
/// As many characters are kept before a match in a long line.
const LEAD_CHARS: usize = 150;

/// All that was found.
#[derive(Debug)]
pub(super) struct Findings {
    plan: Plan,
    searcher: Searcher,
    mode: OutputMode,
    only_matching: bool,
    stop: Stop,
    pub(super) files: Vec<FileFindings>,
    pub(super) total_matches: u64,
    kept_lines: usize,
    pub(super) binary_files: usize,
    pub(super) unreadable_files: usize,
    /// Why not everything was searched.
    pub(super) ended: Option<Ended>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Time,
    Hits,
}

/// What was found in one file.
#[derive(Debug)]
pub(super) struct FileFindings {
    pub(super) path: String,
    pub(super) modified: Timestamp,
    pub(super) matches: u64,
    pub(super) lines: Vec<FoundLine>,
}

/// One line, or one match of a line.
#[derive(Debug)]
pub(super) struct FoundLine {
    pub(super) number: u64,
    pub(super) text: String,
    /// The match in the text, in characters; `None` for a line around a match.
    pub(super) place: Option<(usize, usize)>,
    /// Whether lines are left out before it.
    pub(super) follows_gap: bool,
}

/// Whether to search on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Searched {
    GoOn,
    Enough,
}

impl Findings {
    pub(super) fn of(plan: Plan, input: &Input, stop: Stop) -> Self {
        Self {
            plan,
            searcher: Plan::searcher(input),
            mode: input.output_mode,
            only_matching: input.only_matching,
            stop,
            files: Vec::new(),
            total_matches: 0,
            kept_lines: 0,
            binary_files: 0,
            unreadable_files: 0,
            ended: None,
        }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn unreadable(&mut self) -> Searched {
        self.unreadable_files += 1;
        Searched::GoOn
    }

    /// Searches one file.
    pub(super) fn search(&mut self, path: &str, file: File, modified: Timestamp) -> Searched {
        let mut sink = FileSink {
            matcher: &self.plan.matcher,
            mode: self.mode,
            only_matching: self.only_matching,
            hits_left: MAX_HITS - self.total_matches.min(MAX_HITS),
            lines_left: MAX_LINES - self.kept_lines.min(MAX_LINES),
            found: FileFindings { path: path.into(), modified, matches: 0, lines: Vec::new() },
            is_binary: false,
            is_full: false,
            follows_gap: false,
        };
        let reader = UntilStopped { file, stop: &self.stop };
        let searched = self.searcher.search_reader(&self.plan.matcher, reader, &mut sink);
        let FileSink { found, is_binary, is_full, .. } = sink;
        if self.stop.is_due() {
            self.ended = Some(Ended::Time);
        } else if searched.is_err() {
            self.unreadable_files += 1;
        }
        if is_binary {
            self.binary_files += 1;
        } else if found.matches > 0 {
            self.total_matches += found.matches;
            self.kept_lines += found.lines.len();
            self.files.push(found);
            if is_full {
                self.ended.get_or_insert(Ended::Hits);
            }
        }
        if self.ended.is_some() { Searched::Enough } else { Searched::GoOn }
    }
}

/// A file that ends when the time is over.
struct UntilStopped<'a> {
    file: File,
    stop: &'a Stop,
}

impl Read for UntilStopped<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_due() { Ok(0) } else { self.file.read(buffer) }
    }
}

struct FileSink<'a> {
    matcher: &'a grep_regex::RegexMatcher,
    mode: OutputMode,
    only_matching: bool,
    hits_left: u64,
    lines_left: usize,
    found: FileFindings,
    is_binary: bool,
    is_full: bool,
    follows_gap: bool,
}

impl FileSink<'_> {
    /// Keeps a line; false when there is no more room.
    fn keep(&mut self, number: u64, line: &[u8], place: Option<(usize, usize)>) -> bool {
        if self.found.lines.len() >= self.lines_left {
            self.is_full = true;
            return false;
        }
        let (text, place) = cut(line, place);
        let follows_gap = std::mem::take(&mut self.follows_gap);
        self.found.lines.push(FoundLine { number, text, place, follows_gap });
        true
    }

    fn keep_matches(&mut self, number: u64, line: &[u8]) -> bool {
        let mut places = Vec::new();
        let one_line = without_break(line);
        // The engine's errors are of a kind that cannot happen.
        let _ = self.matcher.find_iter(one_line, |place| {
            places.push((place.start(), place.end()));
            self.only_matching && places.len() < 1000
        });
        if !self.only_matching {
            let place = places.first().copied().unwrap_or((0, one_line.len()));
            return self.keep(number, one_line, Some(place));
        }
        places.retain(|(start, end)| end > start);
        places.into_iter().all(|(start, end)| self.keep(number, &one_line[start..end], Some((0, end - start))))
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let first = found.line_number().unwrap_or(0);
        for (number, line) in (first..).zip(found.lines()) {
            if self.found.matches >= self.hits_left {
                self.is_full = true;
                return Ok(false);
            }
            self.found.matches += 1;
            match self.mode {
                OutputMode::FilesWithMatches => return Ok(false),
                OutputMode::Count => {}
                OutputMode::Content => {
                    if !self.keep_matches(number, line) {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
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

/// The line as text, a long one cut around the match; the match in it, counted in characters.
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
