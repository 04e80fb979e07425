//! The messages of a conversation, derived from its events.
//!
//! Providers refuse a conversation that does not begin with the user, or in which a call lacks its result. No event log
//! leads to such a conversation: what is missing after a crash or a cancelled turn is filled in here, each time anew.

use super::event::{ConversationEvent, ConversationEventKind};
use crate::model::{
    message::{Block, Message, Role, SealedBlock, ToolResultBlock, ToolUse},
    reply::StopReason,
};
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet, VecDeque},
    mem,
};

/// Result of a call without a recorded result.
pub const INTERRUPTED: &str = "The call was interrupted. Its effects are unknown; check them before you repeat it.";
/// Prefix of a summary.
const SUMMARY: &str = "Summary of the conversation so far:\n\n";
/// Message of the user before a conversation that begins with the model.
const GO_ON: &str = "Continue.";

/// Returns the events that count: without undone events, and without the events that undid them.
pub fn counted(events: &[ConversationEvent]) -> Vec<&ConversationEvent> {
    let mut counted: Vec<&ConversationEvent> = Vec::with_capacity(events.len());
    for event in events {
        match event.kind {
            ConversationEventKind::TakenBack { to } => counted.retain(|earlier| earlier.number <= to),
            _ => counted.push(event),
        }
    }
    counted
}

/// Returns the messages of the next request to the model, derived from all events of a conversation.
///
/// For any events, in any order: the messages begin with the user, user and model alternate, no message is empty, and
/// each call has one result in the next message, in the order of the calls and before everything else. A call without a
/// result gets one that reports it as [interrupted](INTERRUPTED), and a result without a call is left out.
pub fn messages(events: &[ConversationEvent]) -> Vec<Message> {
    let counted = counted(events);
    let mut masked: HashSet<&u64> = HashSet::new();
    let mut compacted = None;
    for event in &counted {
        match &event.kind {
            ConversationEventKind::Masked { events } => masked.extend(events),
            ConversationEventKind::Compacted { summary, kept_from } => compacted = Some((summary, *kept_from)),
            _ => {}
        }
    }
    let mut transcript = MessageListBuilder::default();
    if let Some((summary, _)) = compacted {
        transcript.add_user_blocks(vec![Block::text(format!("{SUMMARY}{summary}"))]);
    }
    let kept_from = compacted.map_or(0, |(_, kept_from)| kept_from);
    for event in counted.into_iter().filter(|event| event.number >= kept_from) {
        match &event.kind {
            ConversationEventKind::UserSaid { blocks } => transcript.add_user_blocks(spoken(blocks)),
            ConversationEventKind::ModelAnswered { blocks, stop, .. } => transcript.answered(answer(blocks, *stop)),
            ConversationEventKind::CallEnded { result, record, .. } => {
                let is_masked = masked.contains(&event.number);
                transcript.ended(if is_masked { pointer(result, record) } else { result_for_model(result) });
            }
            _ => {}
        }
    }
    transcript.finish()
}

#[derive(Default)]
struct MessageListBuilder {
    messages: Vec<Message>,
    /// Calls of the last answer, in order: id and name.
    open: Vec<(String, String)>,
    /// Results since the last answer, by the id of the call, in order of arrival.
    results: HashMap<String, VecDeque<ToolResultBlock>>,
    /// Blocks of the user since the last answer.
    said: Vec<Block>,
}

impl MessageListBuilder {
    fn add_user_blocks(&mut self, blocks: Vec<Block>) {
        self.said.extend(blocks);
    }

    fn answered(&mut self, blocks: Vec<Block>) {
        self.settle();
        if blocks.is_empty() {
            return;
        }
        if self.messages.is_empty() {
            self.push(Role::User, vec![Block::text(GO_ON)]);
        }
        let calls = blocks.iter().filter_map(|block| match block {
            Block::ToolUse(ToolUse { id, name, .. }) => Some((id.clone(), name.clone())),
            _ => None,
        });
        self.open = calls.collect();
        self.push(Role::Assistant, blocks);
    }

    fn ended(&mut self, result: ToolResultBlock) {
        self.results.entry(result.id.clone()).or_default().push_back(result);
    }

    /// Appends a message with one result for each call of the last answer ([`INTERRUPTED`] if it has none), followed by
    /// the blocks of the user since then. Does nothing if there are neither.
    fn settle(&mut self) {
        let mut results = mem::take(&mut self.results);
        let settled = mem::take(&mut self.open).into_iter().map(|(id, name)| {
            let result = results.get_mut(&id).and_then(VecDeque::pop_front);
            Block::ToolResult(result.unwrap_or_else(|| ToolResultBlock {
                id,
                name,
                content: vec![Block::text(INTERRUPTED)],
                is_error: true,
            }))
        });
        let mut blocks: Vec<Block> = settled.collect();
        blocks.append(&mut self.said);
        if !blocks.is_empty() {
            self.push(Role::User, blocks);
        }
    }

    /// Appends a message. Adjacent messages of one role are merged.
    fn push(&mut self, role: Role, blocks: Vec<Block>) {
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.blocks.extend(blocks),
            _ => self.messages.push(Message { role, blocks }),
        }
    }

    fn finish(mut self) -> Vec<Message> {
        self.settle();
        self.messages
    }
}

/// Returns the blocks that a message of the user may contain: images, and texts that are not only white space.
fn spoken(blocks: &[Block]) -> Vec<Block> {
    let may_stand = |block: &&Block| match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::Image(_) => true,
        Block::ToolUse(_) | Block::ToolResult(_) | Block::Sealed(_) => false,
    };
    blocks.iter().filter(may_stand).cloned().collect()
}

/// Returns the blocks of an answer that providers accept: no results, no texts of white space, and no thinking at the
/// end of an answer that was cut off or has nothing else.
fn answer(blocks: &[Block], stop: Option<StopReason>) -> Vec<Block> {
    let may_stand = |block: &&Block| match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::ToolResult(_) => false,
        Block::Image(_) | Block::ToolUse(_) | Block::Sealed(_) => true,
    };
    let mut blocks: Vec<Block> = blocks.iter().filter(may_stand).cloned().collect();
    // Providers refuse thinking blocks that nothing follows.
    let is_thinking = |block: &Block| matches!(block, Block::Sealed(_));
    if matches!(stop, None | Some(StopReason::MaxTokens)) || blocks.iter().all(is_thinking) {
        while let Some(Block::Sealed(SealedBlock { .. })) = blocks.last() {
            blocks.pop();
        }
    }
    blocks
}

/// Returns the result without blocks that providers refuse.
fn result_for_model(result: &ToolResultBlock) -> ToolResultBlock {
    ToolResultBlock { content: spoken(&result.content), ..result.clone() }
}

/// Returns the result with a note in place of its content. The note names the stored outputs that `record` lists.
fn pointer(result: &ToolResultBlock, record: &Value) -> ToolResultBlock {
    let ToolResultBlock { id, name, content, is_error } = result;
    let length: usize = content.iter().map(length).sum();
    let handles: Vec<&str> = record["outputs"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|output| output["handle"].as_str())
        .take(10)
        .collect();
    let stored = match handles.as_slice() {
        [] => String::new(),
        handles => format!(" It is stored as {}.", handles.join(", ")),
    };
    let text =
        format!("[This output of `{name}` ({length} bytes) is left out to keep the conversation short.{stored}]");
    ToolResultBlock { id: id.clone(), name: name.clone(), content: vec![Block::text(text)], is_error: *is_error }
}

fn length(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::Image(image) => image.data.len(),
        Block::ToolUse(_) | Block::ToolResult(_) | Block::Sealed(_) => 0,
    }
}

#[cfg(test)]
mod tests;
