//! The messages of a conversation.

use std::collections::HashMap;
use toolstead_domain::{
    conversation::event::{ConversationEvent, ConversationEventKind},
    model::message::{Block, Message, Role, ToolResultBlock},
};

pub(super) fn messages(events: &[ConversationEvent]) -> Vec<Message> {
    let mut results: HashMap<&str, &ToolResultBlock> = HashMap::new();
    for event in events {
        if let ConversationEventKind::CallEnded { result, .. } = &event.kind {
            results.insert(&result.id, result);
        }
    }
    let mut messages: Vec<Message> = Vec::new();
    let mut push = |role: Role, blocks: Vec<Block>| match messages.last_mut() {
        _ if blocks.is_empty() => {}
        Some(last) if last.role == role => last.blocks.extend(blocks),
        _ => messages.push(Message { role, blocks }),
    };
    for event in events {
        match &event.kind {
            ConversationEventKind::UserSaid { blocks } => push(Role::User, blocks.clone()),
            ConversationEventKind::ModelAnswered { blocks, .. } => {
                push(Role::Assistant, blocks.clone());
                let answers = blocks.iter().filter_map(|block| match block {
                    Block::ToolUse(call) => Some(Block::ToolResult(match results.get(call.id.as_str()) {
                        Some(result) => (*result).clone(),
                        None => ToolResultBlock {
                            id: call.id.clone(),
                            name: call.name.clone(),
                            content: vec![Block::text("interrupted")],
                            is_error: true,
                        },
                    })),
                    _ => None,
                });
                push(Role::User, answers.collect());
            }
            _ => {}
        }
    }
    messages
}
