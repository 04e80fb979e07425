//! Text output of a run of an agent: a line for each call, and the details of calls that changed files or failed.

mod call_line;

use call_line::{call_line, changed_lines, diffs, name, one_line};
use serde_json::Value;
use std::time::{Duration, Instant};
use toolstead_domain::{AgentEvent, AgentOutcome, BudgetKind, TokenUsage};

/// Maximum number of lines shown of the text of a failure, and of a diff.
const SHOWN_LINES: usize = 30;
/// Maximum number of characters shown of the text of a failure, and of a diff.
const SHOWN_CHARACTERS: usize = 4_000;
/// Maximum number of last lines of a failed command.
const LAST_LINES: usize = 10;
/// Maximum number of characters of a running call, which leave columns for its output.
const RUNNING_CHARACTERS: usize = 40;
/// Maximum number of characters of the newest output line of a running call.
const NEWEST_CHARACTERS: usize = 200;

/// Mark of a line about a call, so that the name of a tool cannot be mistaken for a line of Toolstead.
const CALL_MARK: &str = "• ";

/// Piece of the text output of an agent run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NarrationPiece {
    /// Text of the model, unchanged.
    Text(String),
    /// Whole lines in addition to the answer. Only the first one begins at the left edge.
    Note(String),
    /// State of the run until the next piece, in a few words. Empty if there is none.
    Status(String),
}

/// Renderer of the events of successive agent runs as pieces of text. It keeps the state of the output between events.
#[derive(Debug)]
pub(super) struct RunRenderer {
    /// `true` if the text of the model is shown as it arrives. Otherwise the last answer is shown at the end, and text
    /// between calls is shown as [`NarrationPiece::Note`].
    streams: bool,
    /// `true` if outputs of calls are shown in full.
    is_verbose: bool,
    /// Text of the model since the last call, if it is not shown as it arrives.
    pending_text: String,
    /// `true` if the last output was text of the model, which the next text continues.
    is_speaking: bool,
    /// `true` if the last line of the model's text has no line break yet.
    is_line_open: bool,
    running: Vec<RunningCall>,
    status: String,
}

/// A call that has not ended yet.
#[derive(Debug)]
struct RunningCall {
    /// Id that the model assigned.
    id: String,
    /// The tool and its subject.
    line: String,
    begun: Instant,
    /// The newest line of its output.
    newest: String,
}

impl RunRenderer {
    /// Creates a renderer that has not received any event.
    pub(super) fn new(streams: bool, is_verbose: bool) -> Self {
        Self {
            streams,
            is_verbose,
            pending_text: String::new(),
            is_speaking: false,
            is_line_open: false,
            running: Vec::new(),
            status: String::new(),
        }
    }

    /// Returns the pieces that show an event.
    pub(super) fn narrate(&mut self, event: &AgentEvent) -> Vec<NarrationPiece> {
        let mut pieces = Vec::new();
        match event {
            AgentEvent::Text(text) => self.push_text(text, &mut pieces),
            AgentEvent::Thinking(_) => self.show("thinking".into(), &mut pieces),
            AgentEvent::CallWritten { tool } => self.show(format!("writes a call of {}", named(tool)), &mut pieces),
            AgentEvent::CallStarted { id, tool, arguments } => {
                self.end_text(&mut pieces);
                let (id, line) = (id.clone(), call_line(tool, arguments));
                self.running.push(RunningCall { id, line, begun: Instant::now(), newest: String::new() });
                self.show_calls(&mut pieces);
            }
            AgentEvent::CallProgress { id, message, .. } => {
                let newest =
                    message.as_deref().and_then(|message| message.lines().rfind(|line| !line.trim().is_empty()));
                if let Some(call) = self.running.iter_mut().find(|call| call.id == *id)
                    && let Some(newest) = newest
                {
                    call.newest = one_line(newest, NEWEST_CHARACTERS);
                    self.show_calls(&mut pieces);
                }
            }
            AgentEvent::CallEnded { id, tool, is_error, text, structured, suggestion, duration, .. } => {
                self.end_text(&mut pieces);
                let at = self.running.iter().position(|call| call.id == *id);
                // A call that was never started has no entry.
                let line = at.map_or_else(|| name(tool), |at| self.running.remove(at).line);
                self.push_note(self.ended(&line, *is_error, text, structured.as_ref(), *duration), &mut pieces);
                if let Some(suggestion) = suggestion {
                    self.push_note(suggestion.clone(), &mut pieces);
                }
                self.show_calls(&mut pieces);
            }
            AgentEvent::Retrying { after, reason } => {
                let line = opened(&format!("the model request is retried in {}:", seconds(*after)), reason);
                self.push_note(line, &mut pieces);
            }
            AgentEvent::Compacted { how, before, after } => {
                let line = format!("what came before was {how}: {} tokens, now {}", grouped(*before), grouped(*after));
                self.push_note(line, &mut pieces);
            }
            AgentEvent::Notice(text) => self.push_note(opened("note:", text), &mut pieces),
            AgentEvent::OfSubagent { delegation: handed_over, event, .. } => {
                if let AgentEvent::Ended { outcome, usage, calls, .. } = &**event {
                    let how = outcome.as_str().replace('_', " ");
                    let tokens = grouped(usage.total());
                    let line =
                        format!("the agent {}: {how}, {calls} tool calls, {tokens} tokens", named(&handed_over.agent));
                    self.push_note(line, &mut pieces);
                }
            }
            AgentEvent::Ended { outcome, text, .. } => self.end(outcome, text, &mut pieces),
            // All other events, including later additions, are only in the output of `--json`.
            _ => {}
        }
        pieces
    }

    /// Returns a status with the running calls and the time since their start. Returns `None` if no call is running, if
    /// the status has not changed, or in the middle of a line of the model's text.
    pub(super) fn running_status(&mut self) -> Option<NarrationPiece> {
        let mut pieces = Vec::new();
        if !self.running.is_empty() {
            self.show_calls(&mut pieces);
        }
        pieces.pop()
    }

    /// Returns the lines about a call that ended.
    fn ended(&self, line: &str, is_error: bool, text: &str, structured: Option<&Value>, duration: Duration) -> String {
        let exit_code = structured.and_then(|structured| structured.get("exit_code")?.as_i64());
        let time = seconds(duration);
        let changed = changed_lines(structured).map(|changed| format!(" {changed}")).unwrap_or_default();
        let heading = format!("{CALL_MARK}{line}{changed}");
        if is_error {
            let with_code = exit_code.map(|code| format!(" with exit code {code}"));
            let heading = format!("{heading} failed after {time}{}:", with_code.as_deref().unwrap_or_default());
            return match (self.is_verbose, exit_code) {
                (true, _) => quoted_below(&heading, text),
                // The end of the output usually contains the reason.
                (false, Some(_)) => last_lines(&heading, text),
                (false, None) => opened(&heading, text),
            };
        }
        let heading = match exit_code {
            // Not an error: for example, a search without a match.
            Some(code) if code != 0 => format!("{heading} ({time}, exit code {code})"),
            _ => format!("{heading} ({time})"),
        };
        let diff = diffs(structured).join("\n");
        match (diff.is_empty(), self.is_verbose) {
            (true, false) => heading,
            (false, false) => below(&heading, &diff),
            (true, true) => quoted_below(&heading, text),
            (false, true) => quoted_below(&heading, &format!("{diff}\n{text}")),
        }
    }

    fn push_text(&mut self, text: &str, pieces: &mut Vec<NarrationPiece>) {
        // Models often start with blank lines, especially after calls.
        let is_continuation = if self.streams { self.is_speaking } else { !self.pending_text.is_empty() };
        let text = if is_continuation { text } else { text.trim_start_matches(['\n', '\r']) };
        if text.is_empty() {
            return;
        }
        self.is_speaking = true;
        if self.streams {
            self.status.clear();
            self.is_line_open = !text.ends_with('\n');
            pieces.push(NarrationPiece::Text(text.to_owned()));
        } else {
            self.pending_text.push_str(text);
        }
    }

    /// Ends the model's text before a call: ends its line, and shows text that was held back as a note.
    fn end_text(&mut self, pieces: &mut Vec<NarrationPiece>) {
        self.close_line(pieces);
        let said = std::mem::take(&mut self.pending_text);
        if !said.trim().is_empty() {
            self.status.clear();
            pieces.push(NarrationPiece::Note(quoted(said.trim_end())));
        }
    }

    fn close_line(&mut self, pieces: &mut Vec<NarrationPiece>) {
        self.is_speaking = false;
        if std::mem::take(&mut self.is_line_open) {
            pieces.push(NarrationPiece::Text("\n".into()));
        }
    }

    fn push_note(&mut self, line: String, pieces: &mut Vec<NarrationPiece>) {
        // The answer may continue after a notice, so its text is not ended.
        self.close_line(pieces);
        self.status.clear();
        pieces.push(NarrationPiece::Note(line));
    }

    fn show_calls(&mut self, pieces: &mut Vec<NarrationPiece>) {
        // The call with the most recent output is the most informative one.
        let newest = self.running.iter().rfind(|call| !call.newest.is_empty()).or(self.running.last());
        let now = match newest {
            None => "the model is asked".to_owned(),
            Some(call) => {
                let others = match self.running.len() - 1 {
                    0 => String::new(),
                    others => format!(" (and {others} more)"),
                };
                let output = if call.newest.is_empty() { String::new() } else { format!(": {}", call.newest) };
                let line = one_line(&call.line, RUNNING_CHARACTERS);
                format!("{line}{others}, {} s{output}", call.begun.elapsed().as_secs())
            }
        };
        self.show(now, pieces);
    }

    fn show(&mut self, now: String, pieces: &mut Vec<NarrationPiece>) {
        // The state cannot be shown in the middle of a line.
        if now != self.status && !self.is_line_open {
            self.status.clone_from(&now);
            pieces.push(NarrationPiece::Status(now));
        }
    }

    fn end(&mut self, outcome: &AgentOutcome, text: &str, pieces: &mut Vec<NarrationPiece>) {
        if !self.streams {
            let said = std::mem::take(&mut self.pending_text);
            let answer = if said.trim().is_empty() { text } else { &said };
            let answer = answer.trim_matches(['\n', '\r']);
            if !answer.is_empty() {
                pieces.push(NarrationPiece::Text(format!("{answer}\n")));
            }
        }
        self.running.clear();
        self.close_line(pieces);
        if let Some(line) = ending(outcome) {
            self.push_note(line, pieces);
        }
        if !std::mem::take(&mut self.status).is_empty() {
            pieces.push(NarrationPiece::Status(String::new()));
        }
    }
}

/// Returns the description of the end of a run, unless it finished normally.
pub(super) fn ending(outcome: &AgentOutcome) -> Option<String> {
    Some(match outcome {
        AgentOutcome::Finished => return None,
        AgentOutcome::Cancelled => "cancelled".into(),
        AgentOutcome::BudgetExhausted(budget) => {
            let what = match budget {
                BudgetKind::Calls => "calls of tools",
                BudgetKind::Turns => "answers of the model",
                BudgetKind::Tokens => "tokens",
                BudgetKind::Cost => "money",
                BudgetKind::Time => "time",
            };
            format!("stopped: the budget of {what} is used up; `--max-{budget}` or `[agent] max_{budget}` sets it")
        }
        AgentOutcome::Stopped(why) => opened("stopped:", why),
        AgentOutcome::Looping(why) => opened("stopped, because the agent repeated itself in a loop:", why),
        AgentOutcome::Waiting(questions) => {
            format!(
                "waits for an answer: `toolstead questions answer {questions}` answers it, and `--continue` resumes"
            )
        }
        AgentOutcome::Failed { message, .. } => opened("error:", message),
        other => format!("stopped: {}", other.as_str()),
    })
}

/// Formats the figures of a run on one line: tool calls, answers of the model, tokens, and the cost in dollars if it is
/// known.
pub(super) fn figures(calls: u64, turns: u64, usage: TokenUsage, cost: Option<f64>) -> String {
    let of = |count: u64, one: &str, many: &str| format!("{} {}", grouped(count), if count == 1 { one } else { many });
    let cached = match usage.cache_read_tokens {
        0 => String::new(),
        cached => format!(" ({} of them from the cache)", grouped(cached)),
    };
    let cost = cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
    format!(
        "{}, {}, {} in{cached}, {} out{cost}",
        of(calls, "tool call", "tool calls"),
        of(turns, "answer", "answers"),
        of(usage.context(), "token", "tokens"),
        of(usage.output_tokens, "token", "tokens"),
    )
}

/// Formats a number with separators between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or_default()).collect();
    groups.join(",")
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// Returns the name that a model gave to a tool or agent, on one line and in backticks.
fn named(tool: &str) -> String {
    format!("`{}`", name(tool))
}

/// Returns the beginning of a text after its label: on the same line, or below it behind a mark, so that no line of it
/// looks like one of Toolstead.
pub(super) fn opened(label: &str, text: &str) -> String {
    let text = text.trim_end_matches('\n');
    let mut lines: Vec<&str> = text.lines().collect();
    let hidden = lines.len().saturating_sub(SHOWN_LINES);
    lines.truncate(SHOWN_LINES);
    let shown = lines.join("\n");
    let cut = shown.char_indices().nth(SHOWN_CHARACTERS).map(|(at, _)| at);
    let more = match (hidden, cut) {
        (0, None) => String::new(),
        (0, Some(_)) => "\n  … and more".to_owned(),
        (hidden, _) => format!("\n  … and {hidden} more lines"),
    };
    let shown = &shown[..cut.unwrap_or(shown.len())];
    match lines.len() {
        0 => label.to_owned(),
        1 => format!("{label} {shown}{more}"),
        _ => format!("{label}\n{}{more}", quoted(shown)),
    }
}

/// Returns the text whole below its label, behind a mark.
fn quoted_below(label: &str, text: &str) -> String {
    match text.trim_end_matches('\n') {
        "" => label.to_owned(),
        text => format!("{label}\n{}", quoted(text)),
    }
}

/// Returns the beginning of the text below its label, behind a mark.
fn below(label: &str, text: &str) -> String {
    let shown: Vec<&str> = text.lines().take(SHOWN_LINES).collect();
    let more = match text.lines().count() - shown.len() {
        0 => String::new(),
        more => format!("\n  … and {more} more lines"),
    };
    let shown = shown.join("\n");
    match shown.char_indices().nth(SHOWN_CHARACTERS) {
        Some((at, _)) => format!("{label}\n{}\n  … and more", quoted(&shown[..at])),
        None => format!("{label}\n{}{more}", quoted(&shown)),
    }
}

/// Returns the last lines of the text below its label, behind a mark.
fn last_lines(label: &str, text: &str) -> String {
    let lines: Vec<&str> = text.trim_end_matches('\n').lines().collect();
    let left_out = lines.len().saturating_sub(LAST_LINES);
    let shown = lines[left_out..].join("\n");
    let skipped = shown.chars().count().saturating_sub(SHOWN_CHARACTERS);
    let shown: String = shown.chars().skip(skipped).collect();
    let before = match (left_out, skipped) {
        (0, 0) => String::new(),
        (0, _) => "\n  … the beginning is left out".to_owned(),
        (lines, _) => format!("\n  … {lines} lines before"),
    };
    if shown.is_empty() { label.to_owned() } else { format!("{label}{before}\n{}", quoted(&shown)) }
}

fn quoted(text: &str) -> String {
    format!("  | {}", text.replace('\n', "\n  | "))
}

#[cfg(test)]
mod tests;
