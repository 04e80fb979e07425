//! Formats the result of a search.

use crate::{
    builtin::{
        text::wording::{counted, denied_entries_note, on_one_line},
        tool_kit::answer::answer,
        tools::grep::{
            Input, OutputMode,
            findings::{FileFindings, FoundLine, SearchEnd},
            plan::separated,
            search::{ExcludedMatches, SearchResult},
        },
    },
    sandbox::workspace::walk::WalkEnd,
};
use schemars::JsonSchema;
use serde::Serialize;
use toolstead_domain::{ToolFailure, ToolResult};

/// Default maximum number of lines.
const USUAL_LINES: usize = 250;
/// Default maximum number of files.
const USUAL_FILES: usize = 100;
/// Length of the text, in bytes, at which it ends unless the caller requests everything. A model gets at most this many
/// characters of any result.
const MAX_CHARS: usize = 30_000;

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    mode: OutputMode,
    /// Matching files, the last changed first. Relative to the working directory, or absolute outside of it.
    files: Vec<String>,
    /// Matching lines, in the mode `content` or if there are few.
    matches: Vec<MatchedLine>,
    /// Number of matching lines by file, in the mode `count`.
    counts: Vec<FileMatchCount>,
    /// Total matches, shown or not; in the mode `files_with_matches` the number of files.
    total_matches: u64,
    /// `true` if there is, or may be, more.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
struct MatchedLine {
    path: String,
    line: u64,
    text: String,
    /// Start of the match in the text, in characters from 0.
    start: usize,
    /// Its end.
    end: usize,
}

#[derive(Serialize, JsonSchema)]
struct FileMatchCount {
    path: String,
    count: u64,
}

/// Formats the result of a search that began at the path displayed as `start`.
pub(super) fn format_result(input: &Input, start: &str, searched: &SearchResult) -> Result<ToolResult, ToolFailure> {
    let SearchResult { findings, few, .. } = searched;
    let page = match few {
        Some(few) => lines(input, &few.files, usize::MAX),
        None if input.mode() == OutputMode::Content => lines(input, &findings.files, limit(input, USUAL_LINES)),
        None => names(input, &findings.files, limit(input, USUAL_FILES)),
    };
    let mut text = page.text;
    let next = input.offset.saturating_add(page.shown);
    let is_cut = few.is_none() && page.shown > 0 && next < page.available;
    if findings.files.is_empty() {
        text.push_str(&format!("Nothing matches `{}` in `{start}`.\n", input.pattern));
        text.push_str(&describe_excluded_matches(input, searched));
        if input.glob.as_ref().is_some_and(|globs| separated(globs).iter().any(|glob| glob.contains(' '))) {
            text.push_str("`glob` has a space, which is part of the name; separate several patterns by commas.\n");
        }
    } else if input.offset > 0 && input.offset >= page.available {
        text.push_str(&format!("There are only {} to show; `offset` is beyond them.\n", page.available));
    }
    if input.mode() == OutputMode::Count && !findings.files.is_empty() {
        let files = counted(findings.files.len(), "file");
        text.push_str(&format!("{} in {files}\n", counted_lines(findings.total_matches)));
    }
    if is_cut {
        text.push_str(&format!(
            "[{next} of {} are shown; narrow the search, or continue with offset={next}]\n",
            page.available
        ));
    }
    for note in notes(searched) {
        text.push_str(&format!("[{note}]\n"));
    }
    let output = Output {
        mode: input.mode(),
        files: page.files,
        matches: page.matches,
        counts: page.counts,
        total_matches: findings.total_matches,
        truncated: is_cut || findings.ended.is_some() || searched.walked.ended.is_some(),
    };
    answer(text.trim_end_matches('\n'), &output)
}

fn limit(input: &Input, usual: usize) -> usize {
    match input.head_limit {
        None => usual,
        Some(0) => usize::MAX,
        Some(limit) => limit,
    }
}

/// Returns a sentence about the matches, or the unsearched entries, in ignored and hidden paths, for a search without
/// other matches; an empty text if there is nothing to report.
fn describe_excluded_matches(input: &Input, searched: &SearchResult) -> String {
    let flags = match (input.no_ignore, input.show_hidden) {
        (false, true) => "`no_ignore`",
        (true, false) => "`show_hidden`",
        _ => "`no_ignore` and `show_hidden`",
    };
    match &searched.excluded {
        Some(ExcludedMatches { lines, files, is_whole }) if *lines > 0 => {
            let at_least = if *is_whole { "" } else { "at least " };
            let lines = counted_lines(*lines);
            let files = counted(*files, "file");
            format!("But {at_least}{lines} in {files} in ignored or hidden paths: set {flags} to search them, too.\n")
        }
        Some(ExcludedMatches { is_whole: true, .. }) => String::new(),
        _ if searched.passed_over > 0 => {
            let entries =
                counted(searched.passed_over, "file or folder").replace("file or folders", "files or folders");
            format!("Not searched: {entries} in ignored or hidden paths. Set {flags} to search them, too.\n")
        }
        _ => String::new(),
    }
}

fn counted_lines(lines: u64) -> String {
    if lines == 1 { "1 line matches".into() } else { format!("{lines} lines match") }
}

/// The part of the findings that is shown.
#[derive(Default)]
struct RenderedPage {
    text: String,
    files: Vec<String>,
    matches: Vec<MatchedLine>,
    counts: Vec<FileMatchCount>,
    /// Number of lines or files that are shown.
    shown: usize,
    /// Number of lines or files that were found.
    available: usize,
}

impl RenderedPage {
    /// Returns `true` if one more line or file fits.
    fn has_room(&self, input: &Input, limit: usize) -> bool {
        self.shown < limit && (self.text.len() < MAX_CHARS || input.head_limit == Some(0))
    }
}

fn names(input: &Input, found: &[FileFindings], limit: usize) -> RenderedPage {
    let mut page = RenderedPage { available: found.len(), ..RenderedPage::default() };
    for file in found.iter().skip(input.offset) {
        if !page.has_room(input, limit) {
            break;
        }
        page.shown += 1;
        page.text.push_str(&on_one_line(&file.place.shown));
        if input.mode() == OutputMode::Count {
            page.text.push_str(&format!(":{}", file.matches));
            page.counts.push(FileMatchCount { path: file.place.shown.clone(), count: file.matches });
        }
        page.text.push('\n');
        page.files.push(file.place.shown.clone());
    }
    page
}

fn lines(input: &Input, found: &[FileFindings], limit: usize) -> RenderedPage {
    let all = || found.iter().flat_map(|file| file.lines.iter().enumerate().map(move |line| (file, line)));
    let has_context = all().any(|(_, (_, line))| line.place.is_none());
    let mut page = RenderedPage { available: all().count(), ..RenderedPage::default() };
    for (file, (index, line)) in all().skip(input.offset) {
        if !page.has_room(input, limit) {
            break;
        }
        page.shown += 1;
        if has_context && (index == 0 || line.follows_gap) && !page.text.is_empty() {
            page.text.push_str("--\n");
        }
        push_line(&mut page.text, input, file, line);
        if page.files.last() != Some(&file.place.shown) {
            page.files.push(file.place.shown.clone());
        }
        if let Some((start, end)) = line.place {
            let (path, text) = (file.place.shown.clone(), line.text.clone());
            page.matches.push(MatchedLine { path, line: line.number, text, start, end });
        }
    }
    page
}

/// Appends `path:12:text`, with `-` instead of `:` for a context line, and without the number if none are requested.
fn push_line(text: &mut String, input: &Input, file: &FileFindings, line: &FoundLine) {
    let mark = if line.place.is_some() { ':' } else { '-' };
    text.push_str(&on_one_line(&file.place.shown));
    text.push(mark);
    if input.line_numbers {
        text.push_str(&line.number.to_string());
        text.push(mark);
    }
    text.push_str(&line.text);
    text.push('\n');
}

fn notes(searched: &SearchResult) -> Vec<String> {
    let mut notes = Vec::new();
    let SearchResult { findings, walked, .. } = searched;
    match (findings.ended, walked.ended) {
        (Some(SearchEnd::Time), _) | (None, Some(WalkEnd::Time)) => {
            notes.push("the time ran out before everything was searched; give a `path` or a `glob`".into());
        }
        (Some(SearchEnd::Hits), _) => {
            notes.push("the search ended at the maximum number of matches; narrow it".into());
        }
        (None, Some(WalkEnd::Entries)) => {
            notes.push(format!("only {} entries were examined; give a `path`", walked.entries));
        }
        (None, Some(WalkEnd::Visitor) | None) => {}
    }
    notes.extend(denied_entries_note(walked.refused, "searched"));
    if findings.binary_files > 0 {
        notes.push(format!("{} skipped", counted(findings.binary_files, "binary file")));
    }
    let unreadable = findings.unreadable_files + walked.unreadable;
    if unreadable > 0 {
        notes.push(format!("{unreadable} could not be searched: not readable, or with lines that are too long"));
    }
    notes
}
