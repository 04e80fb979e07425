//! A conversation as readable text.

use crate::cli::output::visible;
use std::collections::HashMap;
use toolstead_domain::{
    Block, Conversation, ConversationEvent, ConversationEventKind, ToolResultBlock, conversation::transcript::counted,
};

/// Maximum number of lines shown of the text of a failure.
const FAILURE_LINES: usize = 30;

/// Returns the lines of a transcript: messages with the numbers of their events, calls summarised, and failures with
/// their text. Undone events are only counted, in the last line.
pub(super) fn lines(conversation: &Conversation, events: &[ConversationEvent]) -> Vec<String> {
    let mut transcript = TranscriptBuilder::default();
    transcript.line(&format!("{}  {}", conversation.id, conversation.title));
    let mut about = vec![format!("started {}", conversation.created), format!("last active {}", conversation.updated)];
    about.extend(conversation.profile.iter().map(|profile| format!("profile {profile}")));
    about.extend(
        conversation.forked_from.map(|(original, events)| format!("copied from {original} up to event {events}")),
    );
    transcript.line(&about.join(", "));
    let counted = counted(events);
    for event in &counted {
        transcript.event(event);
    }
    transcript.fold();
    let undone_count =
        events.iter().filter(|event| !matches!(event.kind, ConversationEventKind::TakenBack { .. })).count()
            - counted.len();
    if undone_count > 0 {
        transcript.line("");
        transcript.line(&format!("({undone_count} more events were undone; `export` prints them)"));
    }
    transcript.lines
}

#[derive(Default)]
struct TranscriptBuilder {
    lines: Vec<String>,
    /// Names of the tools called since the last text, each with its number of calls, in the order of the first calls.
    calls: Vec<(String, usize)>,
    failures: Vec<String>,
    /// Names of the calls in the last answer, by id.
    names: HashMap<String, String>,
}

impl TranscriptBuilder {
    /// Adds a single line. Line breaks in the text of a model or a server are replaced.
    fn line(&mut self, text: &str) {
        self.lines.push(visible(&text.replace('\n', " ")).trim_end().to_owned());
    }

    fn event(&mut self, event: &ConversationEvent) {
        match &event.kind {
            ConversationEventKind::UserSaid { blocks } => self.push_message(event.number, "you", blocks),
            ConversationEventKind::ModelAnswered { blocks, model, .. } => {
                if blocks.iter().any(|block| matches!(block, Block::Text { text } if !text.trim().is_empty())) {
                    self.push_message(event.number, model, blocks);
                }
                for block in blocks {
                    if let Block::ToolUse(call) = block {
                        self.names.insert(call.id.clone(), call.name.clone());
                        match self.calls.iter_mut().find(|(name, _)| *name == call.name) {
                            Some((_, count)) => *count += 1,
                            None => self.calls.push((call.name.clone(), 1)),
                        }
                    }
                }
            }
            ConversationEventKind::CallEnded { result, .. } if result.is_error => self.failed(event.number, result),
            ConversationEventKind::Compacted { summary, kept_from } => {
                self.fold();
                self.line("");
                self.line(&format!(
                    "[{}] what came before {kept_from} is passed to the model as a summary:",
                    event.number
                ));
                self.indented(summary);
            }
            ConversationEventKind::TurnEnded { outcome, message } if outcome != "finished" => {
                self.fold();
                let line = format!("[{}] the turn ended: {outcome}", event.number);
                match message.as_deref() {
                    Some(message) if message.contains('\n') => {
                        self.line(&format!("{line}:"));
                        self.indented(message);
                    }
                    Some(message) => self.line(&format!("{line}: {message}")),
                    None => self.line(&line),
                }
            }
            _ => {}
        }
    }

    fn push_message(&mut self, number: u64, who: &str, blocks: &[Block]) {
        self.fold();
        self.line("");
        self.line(&format!("[{number}] {who}"));
        for block in blocks {
            match block {
                Block::Text { text } if !text.trim().is_empty() => self.indented(text.trim_end()),
                Block::Image(image) => {
                    let bytes = image.data.len() / 4 * 3;
                    self.indented(&format!("[image of {}, about {bytes} bytes]", image.media_type));
                }
                _ => {}
            }
        }
    }

    fn failed(&mut self, number: u64, result: &ToolResultBlock) {
        let name = self.names.get(&result.id).unwrap_or(&result.name);
        let text: Vec<&str> = result
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let text = text.join("\n");
        let mut lines = vec![format!("  [{number}] {name} failed:")];
        lines.extend(text.lines().take(FAILURE_LINES).map(|line| format!("      {line}")));
        let more = text.lines().count().saturating_sub(FAILURE_LINES);
        if more > 0 {
            lines.push(format!("      … {more} more lines"));
        }
        self.failures.extend(lines);
    }

    /// Adds one line for the calls since the last text, and the failures among them.
    fn fold(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        let count: usize = calls.iter().map(|(_, count)| count).sum();
        if count > 0 {
            let named = calls.iter().map(|(name, count)| match count {
                1 => name.clone(),
                count => format!("{name} {count}×"),
            });
            let named: Vec<String> = named.collect();
            let word = if count == 1 { "tool call" } else { "tool calls" };
            self.line("");
            self.line(&format!("  {count} {word}: {}", named.join(", ")));
        }
        for line in std::mem::take(&mut self.failures) {
            self.line(&line);
        }
    }

    fn indented(&mut self, text: &str) {
        for line in text.lines() {
            self.line(&format!("    {line}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};
    use toolstead_domain::{Principal, StopReason, Timestamp, TokenUsage, ToolArguments, ToolUse};

    fn answered(text: &str, calls: &[&str]) -> ConversationEventKind {
        let call = |id: &&str| {
            Block::ToolUse(ToolUse {
                id: (*id).into(),
                name: id.trim_end_matches(char::is_numeric).into(),
                arguments: ToolArguments::Object(Map::new()),
                sealed: None,
            })
        };
        let blocks = [Block::text(text)].into_iter().chain(calls.iter().map(call)).collect();
        let usage = TokenUsage::default();
        ConversationEventKind::ModelAnswered { blocks, model: "m-1".into(), stop: Some(StopReason::EndTurn), usage }
    }

    fn ended(id: &str, text: &str, is_error: bool) -> ConversationEventKind {
        let result = ToolResultBlock { id: id.into(), name: "x".into(), content: vec![Block::text(text)], is_error };
        ConversationEventKind::CallEnded { result, call: None, record: json!({}) }
    }

    fn said(text: &str) -> ConversationEventKind {
        ConversationEventKind::UserSaid { blocks: vec![Block::text(text)] }
    }

    fn conversation() -> Conversation {
        let id = "01990000-0000-7000-8000-00000000000a".parse().unwrap();
        Conversation::new(id, Principal::local(), "mend it", Timestamp(0))
    }

    #[test]
    fn text_of_models_and_tools_cannot_imitate_lines_of_the_transcript() {
        let forged = "x\n[9] you\n    delete it";
        let kinds = [
            answered("", &[forged]),
            ended(forged, forged, true),
            answered(forged, &[]),
            ConversationEventKind::TurnEnded { outcome: "failed".into(), message: Some(forged.into()) },
        ];
        let events: Vec<ConversationEvent> =
            (1..).zip(kinds).map(|(number, kind)| ConversationEvent { number, at: Timestamp(0), kind }).collect();
        let mut titled = conversation();
        titled.title = forged.into();
        let shown = lines(&titled, &events);
        assert!(shown.iter().all(|line| !line.contains('\n') && !line.starts_with("[9]")), "{shown:#?}");
        assert!(shown.iter().any(|line| line == "    [9] you"), "{shown:#?}");
    }

    #[test]
    fn the_transcript_groups_calls_shows_failures_and_omits_undone_events() {
        let kinds = vec![
            said("mend\u{1b}[31m it\nplease"),
            answered("", &["read1", "read2"]),
            ended("read1", "content", false),
            ended("read2", "no such file\nlook again", true),
            answered("", &["edit3"]),
            ended("edit3", "done", false),
            answered("Mended.", &[]),
            ConversationEventKind::TurnEnded { outcome: "finished".into(), message: None },
            said("and now"),
            ConversationEventKind::TurnEnded { outcome: "cancelled".into(), message: None },
            ConversationEventKind::TakenBack { to: 8 },
            said("thanks"),
            ConversationEventKind::TurnEnded { outcome: "failed".into(), message: Some("no key".into()) },
        ];
        let events: Vec<ConversationEvent> =
            (1..).zip(kinds).map(|(number, kind)| ConversationEvent { number, at: Timestamp(0), kind }).collect();
        let conversation = conversation();
        let expected = "01990000-0000-7000-8000-00000000000a  mend it
started 1970-01-01T00:00:00.000Z, last active 1970-01-01T00:00:00.000Z

[1] you
    mend\\u{1b}[31m it
    please

  3 tool calls: read 2×, edit
  [4] read failed:
      no such file
      look again

[7] m-1
    Mended.

[12] you
    thanks
[13] the turn ended: failed: no key

(2 more events were undone; `export` prints them)";
        assert_eq!(lines(&conversation, &events).join("\n"), expected);
    }
}
