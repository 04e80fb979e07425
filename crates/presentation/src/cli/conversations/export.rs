//! A conversation as lines with the fields of Chorus.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use toolstead_domain::{
    Block, ConversationEvent, ConversationEventKind, ConversationId, ToolArguments, conversation::transcript::counted,
};
use uuid::{Builder, Uuid};

/// Returns one line per message, model text, call, result, summary and unfinished turn of the events that were not
/// undone. The same conversation always gives the same lines.
pub(super) fn chorus(id: ConversationId, events: &[ConversationEvent]) -> Vec<Value> {
    let mut lines = Vec::new();
    for event in counted(events) {
        let parts = parts(&event.kind);
        lines.extend((0_u64..).zip(parts).map(|(index, (kind, members))| {
            let mut line = Map::new();
            line.insert("uuid".into(), line_id(id, event.number, index).to_string().into());
            line.insert("type".into(), kind.into());
            line.insert("timestamp".into(), event.at.to_string().into());
            line.insert("sessionId".into(), id.to_string().into());
            if let Value::Object(members) = members {
                line.extend(members.into_iter().filter(|(_, value)| !value.is_null()));
            }
            Value::Object(line)
        }));
    }
    lines
}

/// Returns the lines of an event, each as its type and its specific members; none if Chorus has no line for the event.
fn parts(kind: &ConversationEventKind) -> Vec<(&'static str, Value)> {
    match kind {
        ConversationEventKind::UserSaid { blocks } => vec![("user", json!({"content": text(blocks)}))],
        ConversationEventKind::ModelAnswered { blocks, usage, .. } => {
            let said = text(blocks);
            let mut parts = Vec::new();
            if !said.is_empty() {
                parts.push(("assistant", json!({"content": said})));
            }
            parts.extend(blocks.iter().filter_map(|block| match block {
                Block::ToolUse(call) => {
                    let input = match &call.arguments {
                        ToolArguments::Object(object) => Value::Object(object.clone()),
                        ToolArguments::Malformed(text) => text.as_str().into(),
                    };
                    Some((
                        "tool_use",
                        json!({
                            "content": "", "toolName": call.name, "toolInput": input, "toolUseId": call.id,
                        }),
                    ))
                }
                _ => None,
            }));
            // The usage is on the first line of the answer.
            if let Some((_, first)) = parts.first_mut() {
                first["tokens"] = json!({"input": usage.context(), "output": usage.output_tokens});
            }
            parts
        }
        ConversationEventKind::CallEnded { result, .. } => vec![(
            "tool_result",
            json!({
                "content": text(&result.content), "toolName": result.name, "toolUseId": result.id,
                "isToolError": result.is_error,
            }),
        )],
        ConversationEventKind::Compacted { summary, .. } => vec![("system", json!({"content": summary}))],
        ConversationEventKind::TurnEnded { outcome, message } if outcome != "finished" => {
            let message = message.as_deref().unwrap_or(outcome);
            vec![("error", json!({"content": message}))]
        }
        _ => Vec::new(),
    }
}

fn text(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.clone()),
        Block::Image(image) => Some(format!("[image of {}]", image.media_type)),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the stable id of a line.
fn line_id(id: ConversationId, number: u64, index: u64) -> Uuid {
    let digest = Sha256::digest(format!("{id}:{number}:{index}"));
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(byte, of_digest)| *byte = of_digest);
    Builder::from_random_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::{Timestamp, TokenUsage, ToolResultBlock, ToolUse};

    #[test]
    fn the_export_has_one_line_for_each_text_call_and_result() {
        let call = ToolUse {
            id: "c1".into(),
            name: "grep".into(),
            arguments: ToolArguments::parse(r#"{"pattern": "x"}"#),
            sealed: None,
        };
        let result = ToolResultBlock {
            id: "c1".into(),
            name: "grep".into(),
            content: vec![Block::text("none")],
            is_error: true,
        };
        let usage = TokenUsage { input_tokens: 5, cache_read_tokens: 2, output_tokens: 3, ..TokenUsage::default() };
        let kinds = vec![
            ConversationEventKind::UserSaid { blocks: vec![Block::text("find x")] },
            ConversationEventKind::ModelAnswered {
                blocks: vec![Block::text("I look."), Block::ToolUse(call)],
                model: "m".into(),
                stop: None,
                usage,
            },
            ConversationEventKind::CallEnded { result, call: None, record: json!({}) },
            ConversationEventKind::TurnEnded { outcome: "cancelled".into(), message: None },
            ConversationEventKind::TurnEnded { outcome: "finished".into(), message: None },
        ];
        let events: Vec<ConversationEvent> =
            (1..).zip(kinds).map(|(number, kind)| ConversationEvent { number, at: Timestamp(0), kind }).collect();
        let id: ConversationId = "01990000-0000-7000-8000-00000000000a".parse().unwrap();
        let mut lines = chorus(id, &events);
        assert_eq!(lines, chorus(id, &events));
        let uuids: std::collections::HashSet<String> =
            lines.iter_mut().map(|line| line.as_object_mut().unwrap().remove("uuid").unwrap().to_string()).collect();
        assert_eq!(uuids.len(), lines.len());
        let line = |kind: &str, members: Value| {
            let mut line = json!({"type": kind, "timestamp": "1970-01-01T00:00:00.000Z", "sessionId": id.to_string()});
            line.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            line
        };
        let expected = [
            line("user", json!({"content": "find x"})),
            line("assistant", json!({"content": "I look.", "tokens": {"input": 7, "output": 3}})),
            line(
                "tool_use",
                json!({"content": "", "toolName": "grep", "toolInput": {"pattern": "x"}, "toolUseId": "c1"}),
            ),
            line("tool_result", json!({"content": "none", "toolName": "grep", "toolUseId": "c1", "isToolError": true})),
            line("error", json!({"content": "cancelled"})),
        ];
        assert_eq!(lines, expected);
    }
}
