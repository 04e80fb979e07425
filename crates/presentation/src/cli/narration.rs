//! A run of an agent, as a person reads it: calls fold into one line, what failed stands open.

use super::output::visible;
use std::time::Duration;
use toolstead_domain::{
    agent::{
        budget::Budget,
        event::{AgentEvent, AgentOutcome},
    },
    model::usage::Usage,
};

/// Of the text of a failure so many lines are shown, and so many characters.
const SHOWN_LINES: usize = 30;
const SHOWN_CHARACTERS: usize = 4_000;
/// Of a name that a model made up so many characters are shown.
const NAME_CHARACTERS: usize = 80;

/// A piece to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text of the model, as it is.
    Text(String),
    /// Whole lines beside the answer. None but the first begins at the left edge.
    Beside(String),
    /// What is going on until the next piece, in a few words; nothing where nothing is.
    Now(String),
}

/// Turns what happens into pieces, one run after another.
#[derive(Debug)]
pub(super) struct Narration {
    /// The text of the model is told as it comes. Otherwise the last answer is told at the end, and what was said between
    /// calls beside it.
    streams: bool,
    /// What was said since the last call, where it is not told as it comes.
    said: String,
    /// Something was said since the last line that stands beside it.
    is_speaking: bool,
    /// The last line of what was said is open.
    is_line_open: bool,
    /// The calls that run: the id and the tool.
    running: Vec<(String, String)>,
    /// The calls that ended since the last line about them, by tool.
    ended: Vec<(String, usize)>,
    failed: usize,
    now: String,
}

impl Narration {
    /// Nothing has happened yet.
    pub(super) fn new(streams: bool) -> Self {
        Self {
            streams,
            said: String::new(),
            is_speaking: false,
            is_line_open: false,
            running: Vec::new(),
            ended: Vec::new(),
            failed: 0,
            now: String::new(),
        }
    }

    /// What is written of an event.
    pub(super) fn tell(&mut self, event: &AgentEvent) -> Vec<Piece> {
        let mut pieces = Vec::new();
        match event {
            AgentEvent::Text(text) => self.say(text, &mut pieces),
            AgentEvent::Thinking(_) => self.show("thinking".into(), &mut pieces),
            AgentEvent::CallWritten { tool } => self.show(format!("writes a call of {}", named(tool)), &mut pieces),
            AgentEvent::CallStarted { id, tool, .. } => {
                self.end_text(&mut pieces);
                self.running.push((id.clone(), tool.clone()));
                self.show_calls(&mut pieces);
            }
            AgentEvent::CallEnded { id, tool, is_error, text, duration, .. } => {
                self.end_text(&mut pieces);
                if let Some(at) = self.running.iter().position(|(running, _)| running == id) {
                    self.running.remove(at);
                }
                match self.ended.iter_mut().find(|(known, _)| known == tool) {
                    Some((_, count)) => *count += 1,
                    None => self.ended.push((tool.clone(), 1)),
                }
                if *is_error {
                    self.failed += 1;
                    self.beside(
                        opened(&format!("{} failed after {}:", named(tool), seconds(*duration)), text),
                        &mut pieces,
                    );
                }
                self.show_calls(&mut pieces);
            }
            AgentEvent::Retrying { after, reason } => {
                let line = opened(&format!("the model is asked again in {}:", seconds(*after)), reason);
                self.beside(line, &mut pieces);
            }
            AgentEvent::Compacted { how, before, after } => {
                let line = format!("what came before was {how}: {} tokens, now {}", grouped(*before), grouped(*after));
                self.beside(line, &mut pieces);
            }
            AgentEvent::Notice(text) => self.beside(opened("note:", text), &mut pieces),
            AgentEvent::OfSubagent { handed_over, event, .. } => {
                if let AgentEvent::Ended { outcome, usage, calls, .. } = &**event {
                    let how = outcome.as_str().replace('_', " ");
                    let tokens = grouped(usage.total());
                    let line =
                        format!("the agent {}: {how}, {calls} tool calls, {tokens} tokens", named(&handed_over.agent));
                    self.beside(line, &mut pieces);
                }
            }
            AgentEvent::Ended { outcome, text, .. } => self.end(outcome, text, &mut pieces),
            // Others, and those that are added later, are told by `--json` alone.
            _ => {}
        }
        pieces
    }

    fn say(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        self.fold(pieces);
        // Models begin with blank lines, above all after calls.
        let goes_on = if self.streams { self.is_speaking } else { !self.said.is_empty() };
        let text = if goes_on { text } else { text.trim_start_matches(['\n', '\r']) };
        if text.is_empty() {
            return;
        }
        self.is_speaking = true;
        if self.streams {
            self.now.clear();
            self.is_line_open = !text.ends_with('\n');
            pieces.push(Piece::Text(text.to_owned()));
        } else {
            self.said.push_str(text);
        }
    }

    /// What was said up to here was not the answer: something follows it.
    fn end_text(&mut self, pieces: &mut Vec<Piece>) {
        self.close_line(pieces);
        let said = std::mem::take(&mut self.said);
        if !said.trim().is_empty() {
            self.now.clear();
            pieces.push(Piece::Beside(quoted(said.trim_end())));
        }
    }

    fn close_line(&mut self, pieces: &mut Vec<Piece>) {
        self.is_speaking = false;
        if std::mem::take(&mut self.is_line_open) {
            pieces.push(Piece::Text("\n".into()));
        }
    }

    fn beside(&mut self, line: String, pieces: &mut Vec<Piece>) {
        // Not the end of what is said: it may go on behind a notice, and the answer is told whole.
        self.close_line(pieces);
        self.now.clear();
        pieces.push(Piece::Beside(line));
    }

    /// The calls since the last such line as one.
    fn fold(&mut self, pieces: &mut Vec<Piece>) {
        let ended = std::mem::take(&mut self.ended);
        let failed = std::mem::take(&mut self.failed);
        let total: usize = ended.iter().map(|(_, count)| count).sum();
        if total == 0 {
            return;
        }
        let times = |(tool, count): &(String, usize)| match count {
            1 => named(tool),
            count => format!("{} ×{count}", named(tool)),
        };
        let tools = ended.iter().map(times).collect::<Vec<_>>().join(", ");
        let calls = if total == 1 { "tool call" } else { "tool calls" };
        let failed = if failed == 0 { String::new() } else { format!(", {failed} failed") };
        self.beside(format!("{total} {calls}{failed}: {tools}"), pieces);
    }

    fn show_calls(&mut self, pieces: &mut Vec<Piece>) {
        let total: usize = self.ended.iter().map(|(_, count)| count).sum();
        let running = self.running.iter().map(|(_, tool)| named(tool)).collect::<Vec<_>>().join(", ");
        let done = match total {
            0 => String::new(),
            1 => "1 tool call; ".to_owned(),
            total => format!("{total} tool calls; "),
        };
        self.show(
            if running.is_empty() { format!("{done}the model is asked") } else { format!("{done}{running}") },
            pieces,
        );
    }

    fn show(&mut self, now: String, pieces: &mut Vec<Piece>) {
        // In the middle of a line there is no place for it.
        if now != self.now && !self.is_line_open {
            self.now.clone_from(&now);
            pieces.push(Piece::Now(now));
        }
    }

    fn end(&mut self, outcome: &AgentOutcome, text: &str, pieces: &mut Vec<Piece>) {
        self.fold(pieces);
        if !self.streams {
            let said = std::mem::take(&mut self.said);
            let answer = if said.trim().is_empty() { text } else { &said };
            let answer = answer.trim_matches(['\n', '\r']);
            if !answer.is_empty() {
                pieces.push(Piece::Text(format!("{answer}\n")));
            }
        }
        self.running.clear();
        self.close_line(pieces);
        if let Some(line) = ending(outcome) {
            self.beside(line, pieces);
        }
        if !std::mem::take(&mut self.now).is_empty() {
            pieces.push(Piece::Now(String::new()));
        }
    }
}

/// The end of a run that did not end by itself.
pub(super) fn ending(outcome: &AgentOutcome) -> Option<String> {
    Some(match outcome {
        AgentOutcome::Finished => return None,
        AgentOutcome::Cancelled => "taken back".into(),
        AgentOutcome::BudgetExhausted(budget) => {
            let what = match budget {
                Budget::Calls => "calls of tools",
                Budget::Turns => "answers of the model",
                Budget::Tokens => "tokens",
                Budget::Cost => "money",
                Budget::Time => "time",
            };
            format!("stopped: the budget of {what} is used up; `--max-{budget}` or `[agent] max_{budget}` sets it")
        }
        AgentOutcome::Stopped(why) => opened("stopped:", why),
        AgentOutcome::Looping(why) => opened("stopped, because it went round in a circle:", why),
        AgentOutcome::Waiting(questions) => {
            format!("waits for an answer: `toolstead questions answer {questions}` gives it, and `--continue` goes on")
        }
        AgentOutcome::Failed { message, .. } => opened("error:", message),
        other => format!("stopped: {}", other.as_str()),
    })
}

/// Figures of a run on one line.
pub(super) fn figures(calls: u64, turns: u64, usage: Usage, cost: Option<f64>) -> String {
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

/// The number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or_default()).collect();
    groups.join(",")
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// A tool by the name that a model gave it, on one line.
fn named(tool: &str) -> String {
    let shown: String =
        tool.chars().take(NAME_CHARACTERS).map(|c| if c == '\n' || c == '\t' { ' ' } else { c }).collect();
    format!("`{}`", visible(&shown))
}

/// A text behind its label: on the same line, or below it behind a mark. Nobody takes a line of it for one of ours.
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

fn quoted(text: &str) -> String {
    format!("  | {}", text.replace('\n', "\n  | "))
}

#[cfg(test)]
mod tests;
