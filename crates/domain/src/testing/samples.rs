//! Plausible values for tests, distinguished by a number.

use crate::{
    category::Category,
    labels::CallLabels,
    ports::clock::Timestamp,
    principal::Principal,
    tool::{Tool, ToolSource},
    tool_call::{CallId, ToolCall},
    tool_execution::{AuditedRequestKind, ExecutionOutcome, RecordedDecision, ToolExecution},
    tool_name::ToolName,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use uuid::Uuid;

/// 2025-09-01T00:00:00Z, in microseconds.
pub const START: Timestamp = Timestamp(1_756_684_800_000_000);

/// Returns the id of the call with this number: a version 7 UUID, sorted like the numbers.
pub fn call_id(number: u32) -> CallId {
    let milliseconds = START.0.unsigned_abs() / 1000 + u64::from(number);
    CallId(Uuid::from_u128((u128::from(milliseconds) << 80) | (0x7 << 76) | (0b10 << 62) | u128::from(number)))
}

/// Returns the record of a call of `echo` that was allowed and succeeded, one millisecond after the call with the
/// previous number.
pub fn execution(number: u32) -> ToolExecution {
    let started = START.0 + i64::from(number) * 1000;
    ToolExecution {
        id: call_id(number),
        parent: None,
        kind: AuditedRequestKind::Tool,
        tool: "echo".into(),
        called_as: "echo".into(),
        source: "built-in".into(),
        principal: "local".into(),
        session: "session-1".into(),
        client: "test 1.0".into(),
        arguments: json!({"text": "hello", "number": number}),
        arguments_digest: format!("{number:064x}"),
        accesses: vec![format!("read /srv/{number}.txt")],
        decision: Some(RecordedDecision {
            verdict: "allow".into(),
            reason: "calls that touch nothing are allowed by default".into(),
            approved_by: None,
            trace: json!([{"verdict": "allow", "part": null, "cause": "calls that touch nothing are allowed by default"}]),
        }),
        started: Timestamp(started),
        ended: Some(Timestamp(started + 250)),
        outcome: ExecutionOutcome::Succeeded,
        result_bytes: 120,
        result_digest: Some(format!("{:064x}", number + 1)),
        metadata: json!({"lines": number}),
        labels: CallLabels::default(),
    }
}

/// Returns the record of [`execution`] while the call runs.
pub fn running_execution(number: u32) -> ToolExecution {
    ToolExecution {
        ended: None,
        outcome: ExecutionOutcome::Running,
        result_bytes: 0,
        result_digest: None,
        metadata: Value::Null,
        ..execution(number)
    }
}

/// Returns a tool with this name that accepts any arguments. An invalid name results in the tool `invalid`.
pub fn tool(name: &str) -> Tool {
    let definition = json!({
        "name": name,
        "description": format!("Does what {name} does."),
        "inputSchema": {"type": "object"},
    });
    let name = ToolName::parse(name).unwrap_or_else(|_| ToolName::for_plain_upstream("invalid"));
    let definition = match definition {
        Value::Object(definition) => definition,
        _ => Map::new(),
    };
    Tool::new(name, definition, Category::Utility, ToolSource::BuiltIn)
}

/// Returns a call of the tool. Arguments other than an object are left out.
pub fn call(number: u32, tool: Tool, arguments: Value) -> ToolCall {
    let called_as = tool.name().to_string();
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    ToolCall {
        id: call_id(number),
        principal: Principal::local(),
        session: "session".into(),
        tool: Arc::new(tool),
        called_as,
        arguments,
        meta: Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_of_version_7_and_sort_as_their_numbers() {
        let ids: Vec<CallId> = [0, 1, 2, 1000, u32::MAX].map(call_id).to_vec();
        assert!(ids.is_sorted());
        assert!(ids.iter().all(|id| id.0.get_version_num() == 7 && id.0.get_variant() == uuid::Variant::RFC4122));
    }
}
