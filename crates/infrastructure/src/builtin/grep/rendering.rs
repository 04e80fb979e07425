//! What `grep` answers.

use crate::{
    builtin::{
        answer::{answer, counted, on_one_line, passed_over},
        grep::{
            Input, MAX_SEEN, OutputMode,
            findings::{Ended, FileFindings, Findings, FoundLine},
        },
    },
    sandbox::workspace::walk::{WalkEnd, Walked},
};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use toolstead_domain::{tool_failure::ToolFailure, tool_result::ToolResult};

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    mode: OutputMode,
    /// The files that match, the last changed first. Relative to the working directory, or absolute outside of it.
    files: Vec<String>,
    /// The lines that match, in the mode `content`.
    matches: Vec<MatchedLine>,
    /// The number of lines that match, by file, in the mode `count`.
    counts: Vec<Count>,
    /// All that match, shown or not; in the mode `files_with_matches` the number of files.
    total_matches: u64,
    /// Whether there is more, or may be.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
struct MatchedLine {
    path: String,
    line: u64,
    text: String,
    /// Where the match begins in the text, in characters from 0.
    start: usize,
    /// Where it ends.
    end: usize,
}

#[derive(Serialize, JsonSchema)]
struct Count {
    path: String,
    count: u64,
}

pub(super) fn answered(
    input: &Input,
    start: &str,
    mut findings: Findings,
    walked: Option<Walked>,
    ignored: usize,
) -> Result<ToolResult, ToolFailure> {
    findings.files.sort_unstable_by(|a, b| (Reverse(a.modified), &a.path).cmp(&(Reverse(b.modified), &b.path)));
    let limit = if input.head_limit == 0 { usize::MAX } else { input.head_limit };
    let page = page(input, &findings.files, limit);
    let is_cut = page.available > input.offset.saturating_add(limit);
    let mut text = page.text;
    if findings.files.is_empty() {
        text.push_str(&format!("Nothing matches `{}` in `{start}`.\n", input.pattern));
        if ignored > 0 {
            let entries = counted(ignored, "file or folder").replace("file or folders", "files or folders");
            text.push_str(&format!("Ignore files leave out {entries}: set `no_ignore` to search them, too.\n"));
        }
    } else if input.offset >= page.available {
        text.push_str(&format!("There are only {} to show; `offset` lies past them.\n", page.available));
    }
    if input.output_mode == OutputMode::Count && !findings.files.is_empty() {
        let files = counted(findings.files.len(), "file");
        text.push_str(&format!("{} in {files}\n", counted_lines(findings.total_matches)));
    }
    if is_cut {
        let shown = page.available.min(input.offset.saturating_add(limit));
        text.push_str(&format!(
            "[{shown} of {} are shown; narrow the search, or go on with offset={shown}]\n",
            page.available
        ));
    }
    for note in notes(&findings, walked) {
        text.push_str(&format!("[{note}]\n"));
    }
    let truncated = is_cut || findings.ended.is_some() || walked.is_some_and(|walked| walked.ended.is_some());
    let output = Output {
        mode: input.output_mode,
        files: page.files,
        matches: page.matches,
        counts: page.counts,
        total_matches: findings.total_matches,
        truncated,
    };
    answer(text.trim_end_matches('\n'), &output)
}

fn counted_lines(lines: u64) -> String {
    if lines == 1 { "1 line matches".into() } else { format!("{lines} lines match") }
}

/// What is shown of everything.
#[derive(Default)]
struct Page {
    text: String,
    files: Vec<String>,
    matches: Vec<MatchedLine>,
    counts: Vec<Count>,
    /// How many lines or files there are in all.
    available: usize,
}

fn page(input: &Input, found: &[FileFindings], limit: usize) -> Page {
    let mut page = Page::default();
    if input.output_mode != OutputMode::Content {
        page.available = found.len();
        for file in found.iter().skip(input.offset).take(limit) {
            page.text.push_str(&on_one_line(&file.path));
            if input.output_mode == OutputMode::Count {
                page.text.push_str(&format!(":{}", file.matches));
                page.counts.push(Count { path: file.path.clone(), count: file.matches });
            }
            page.text.push('\n');
            page.files.push(file.path.clone());
        }
        return page;
    }
    let has_context = found.iter().flat_map(|file| &file.lines).any(|line| line.place.is_none());
    let lines = found.iter().flat_map(|file| file.lines.iter().enumerate().map(move |line| (file, line)));
    for (file, (index, line)) in lines {
        page.available += 1;
        if page.available <= input.offset || page.available - input.offset > limit {
            continue;
        }
        if has_context && (index == 0 || line.follows_gap) && !page.text.is_empty() {
            page.text.push_str("--\n");
        }
        push_line(&mut page.text, input, file, line);
        if page.files.last() != Some(&file.path) {
            page.files.push(file.path.clone());
        }
        if let Some((start, end)) = line.place {
            let (path, text) = (file.path.clone(), line.text.clone());
            page.matches.push(MatchedLine { path, line: line.number, text, start, end });
        }
    }
    page
}

/// `path:12:text`, with `-` for lines around a match.
fn push_line(text: &mut String, input: &Input, file: &FileFindings, line: &FoundLine) {
    let mark = if line.place.is_some() { ':' } else { '-' };
    text.push_str(&on_one_line(&file.path));
    text.push(mark);
    if input.line_numbers {
        text.push_str(&line.number.to_string());
        text.push(mark);
    }
    text.push_str(&line.text);
    text.push('\n');
}

fn notes(findings: &Findings, walked: Option<Walked>) -> Vec<String> {
    let mut notes = Vec::new();
    let walked = walked.unwrap_or_default();
    match (findings.ended, walked.ended) {
        (Some(Ended::Time), _) | (None, Some(WalkEnd::Time)) => {
            notes.push("the time was over before everything was searched; give a `path` or a `glob`".into());
        }
        (Some(Ended::Hits), _) => {
            notes.push("the search ended there, because so much was found; narrow it".into());
        }
        (None, Some(WalkEnd::Entries)) => {
            notes.push(format!("only {MAX_SEEN} entries were looked at; give a `path`"));
        }
        (None, Some(WalkEnd::Visitor) | None) => {}
    }
    notes.extend(passed_over(walked.refused, "searched"));
    if findings.binary_files > 0 {
        notes.push(format!("{} passed over", counted(findings.binary_files, "binary file")));
    }
    let unreadable = findings.unreadable_files + walked.unreadable;
    if unreadable > 0 {
        notes.push(format!("{unreadable} could not be searched: not readable, or with lines that are too long"));
    }
    notes
}
