//! Standard input of hooks.

use super::{
    definition::HookEvent,
    dialect_names::{DialectCallNames, with_absolute_paths},
};
use serde_json::{Map, Value};
use std::path::Path;
use toolstead_domain::{Access, AgentHookEvent, EndedCall, ExecutionOutcome, PermissionMode, ToolCall, ToolResult};

/// Event with its data.
#[derive(Debug, Clone, Copy)]
pub(super) enum HookPayload<'a> {
    /// Call with its accesses, before the permission decision or before the user is asked.
    Call(HookEvent, &'a ToolCall, Option<&'a [Access]>),
    /// Ended call with its outcome.
    Ended(HookEvent, &'a ToolCall, EndedCall<'a>),
    /// Begin or end of a session.
    Session(HookEvent, &'a str),
    /// Event of an agent's run in this session.
    Agent(HookEvent, &'a str, AgentHookEvent<'a>),
}

impl<'a> HookPayload<'a> {
    /// Returns the event for an ended call. `None` for calls without hooks: those of unresolved tools, and those that
    /// ended before the permission decision.
    pub(super) fn of_end(ended: EndedCall<'a>) -> Option<Self> {
        let event = match &ended.execution.outcome {
            ExecutionOutcome::Succeeded => HookEvent::PostToolUse,
            ExecutionOutcome::Failed(..) | ExecutionOutcome::Cancelled(_) => HookEvent::PostToolUseFailure,
            ExecutionOutcome::Refused(..) if ended.execution.decision.is_some() => HookEvent::PermissionDenied,
            ExecutionOutcome::Refused(..)
            | ExecutionOutcome::Running
            | ExecutionOutcome::InputRequired
            | ExecutionOutcome::Interrupted => return None,
        };
        Some(Self::Ended(event, ended.call?, ended))
    }

    pub(super) fn event(&self) -> HookEvent {
        match self {
            Self::Call(event, ..) | Self::Ended(event, ..) | Self::Session(event, _) | Self::Agent(event, ..) => *event,
        }
    }

    pub(super) fn call(&self) -> Option<&'a ToolCall> {
        match self {
            Self::Call(_, call, _) | Self::Ended(_, call, _) => Some(call),
            Self::Session(..) | Self::Agent(..) => None,
        }
    }

    /// Returns the accesses of the call, if they are known.
    pub(super) fn accesses(&self) -> Option<&'a [Access]> {
        match self {
            Self::Call(_, _, accesses) => *accesses,
            Self::Ended(_, _, ended) => ended.accesses,
            Self::Session(..) | Self::Agent(..) => None,
        }
    }

    pub(super) fn session(&self) -> &'a str {
        match self {
            Self::Call(_, call, _) | Self::Ended(_, call, _) => &call.session,
            Self::Session(_, session) | Self::Agent(_, session, _) => session,
        }
    }

    /// Returns the names to compare with matchers. Empty for events without matchers.
    pub(super) fn names(&self) -> Vec<&'a str> {
        match self {
            Self::Agent(HookEvent::PreCompact, _, moment) => vec![moment.text],
            Self::Agent(HookEvent::Notification, _, moment) => vec![kind_of_notification(moment.text)],
            Self::Agent(event, _, moment) if event.is_of_subagent() => {
                moment.delegated_by.map(|by| &*by.agent).into_iter().collect()
            }
            Self::Agent(..) => Vec::new(),
            Self::Session(HookEvent::SessionStart, _) => vec![SOURCE],
            Self::Session(..) => vec![REASON],
            Self::Call(_, call, _) | Self::Ended(_, call, _) => {
                let tool = &call.tool;
                let aliases = tool.aliases.iter().map(|alias| alias.name);
                let own = [tool.name().as_str(), tool.rule_name().as_str(), call.called_as.as_str()];
                own.into_iter().chain(aliases).collect()
            }
        }
    }
}

/// Returns the kind of a notification in Claude Code.
fn kind_of_notification(text: &str) -> &'static str {
    let text = text.to_ascii_lowercase();
    match ["approval", "permission"].iter().any(|word| text.contains(word)) {
        true => "permission_prompt",
        false => "idle_prompt",
    }
}

/// Member `source` of the input at the start of every session, because sessions are never resumed.
const SOURCE: &str = "startup";
/// Member `reason` of the input at the end of every session.
const REASON: &str = "other";

/// Returns the input of a hook. Its members are those of Claude Code, and `canonical_tool_name`, `canonical_tool_input`
/// and `called_as` for hooks written for Toolstead.
pub(super) fn input(occasion: HookPayload<'_>, mode: PermissionMode, start: &Path) -> Value {
    let mut input = Map::new();
    let mut put = |name: &str, value: Value| input.insert(name.to_owned(), value);
    put("session_id", occasion.session().into());
    // There is no transcript file, because the agent stores the conversation. Hooks that read the member find it empty.
    put("transcript_path", "".into());
    put("cwd", start.to_string_lossy().into());
    put("permission_mode", mode_name(mode).into());
    put("hook_event_name", occasion.event().as_str().into());
    if let Some(call) = occasion.call() {
        let names = DialectCallNames::of(call);
        let arguments = with_absolute_paths(call, start);
        put("tool_name", names.name.into());
        put("tool_input", names.to_dialect(&arguments).into());
        put("tool_use_id", call.id.to_string().into());
        put("called_as", call.called_as.as_str().into());
        put("canonical_tool_name", call.tool.name().as_str().into());
        put("canonical_tool_input", arguments.into());
    }
    match occasion {
        HookPayload::Session(HookEvent::SessionStart, _) => drop(put("source", SOURCE.into())),
        HookPayload::Session(..) => drop(put("reason", REASON.into())),
        HookPayload::Call(..) => {}
        HookPayload::Agent(event, _, moment) => match event {
            HookEvent::UserPromptSubmit => drop(put("prompt", moment.text.into())),
            HookEvent::Stop => {
                put("stop_hook_active", moment.goes_on_by_hook.into());
                put("last_assistant_message", moment.text.into());
            }
            HookEvent::SubagentStart | HookEvent::SubagentStop => {
                put("agent_id", moment.conversation.to_string().into());
                put("agent_type", moment.delegated_by.map_or("", |by| &*by.agent).into());
                if event == HookEvent::SubagentStop {
                    put("stop_hook_active", moment.goes_on_by_hook.into());
                    put("agent_transcript_path", "".into());
                    put("last_assistant_message", moment.text.into());
                }
            }
            HookEvent::PreCompact => {
                put("trigger", moment.text.into());
                put("custom_instructions", "".into());
            }
            _ => {
                put("message", moment.text.into());
                put("notification_type", kind_of_notification(moment.text).into());
            }
        },
        HookPayload::Ended(event, _, EndedCall { execution, result, .. }) => {
            let duration = execution.ended.unwrap_or(execution.started).since(execution.started);
            put("duration_ms", u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into());
            match event {
                HookEvent::PostToolUse => drop(put("tool_response", response(result))),
                HookEvent::PermissionDenied => drop(put("reason", words(&execution.outcome).into())),
                _ => {
                    put("error", words(&execution.outcome).into());
                    put("is_interrupt", matches!(execution.outcome, ExecutionOutcome::Cancelled(_)).into());
                }
            }
        }
    }
    Value::Object(input)
}

/// Returns the result in the form of MCP, with the additional members `success` and `is_error`.
fn response(result: Option<&ToolResult>) -> Value {
    let mut response = result.map(|result| result.as_object().clone()).unwrap_or_default();
    response.insert("success".into(), true.into());
    // Hooks written for different agents read either member.
    let is_error = result.is_some_and(ToolResult::is_error);
    response.entry("isError").or_insert(is_error.into());
    response.insert("is_error".into(), is_error.into());
    Value::Object(response)
}

fn words(outcome: &ExecutionOutcome) -> String {
    match outcome {
        ExecutionOutcome::Failed(_, message) | ExecutionOutcome::Refused(_, message) => message.clone(),
        ExecutionOutcome::Cancelled(reason) => format!("the call was cancelled ({})", reason.as_str()),
        ExecutionOutcome::Running
        | ExecutionOutcome::Succeeded
        | ExecutionOutcome::InputRequired
        | ExecutionOutcome::Interrupted => String::new(),
    }
}

/// Returns the mode's name in Claude Code.
fn mode_name(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Default => "default",
        PermissionMode::Plan => "plan",
        PermissionMode::AcceptEdits => "acceptEdits",
        PermissionMode::DontAsk => "dontAsk",
        PermissionMode::Bypass => "bypassPermissions",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::dialects::CLAUDE_CODE;
    use serde_json::json;
    use toolstead_domain::{
        Alias, ToolExecution,
        alias::Rewrite::{self, Default, Each, Rename, Set},
        testing::samples,
    };

    /// Tools under their names in Claude Code.
    const THEIRS: &[(&str, &str, &[Rewrite])] = &[
        ("list_directory", "LS", &[Set("depth", "0")]),
        (
            "multi_edit",
            "MultiEdit",
            &[Each(
                "edits",
                &[Rename("file_path", "path"), Rename("old_string", "old_text"), Rename("new_string", "new_text")],
            )],
        ),
        ("write_file", "Write", &[Rename("file_path", "path"), Default("if_match", r#""read""#)]),
    ];

    /// Returns a call of a built-in tool.
    pub(in crate::hooks) fn call(name: &str, arguments: Value) -> ToolCall {
        let mut tool = samples::tool(name);
        let theirs = THEIRS.iter().filter(|(ours, ..)| *ours == name);
        tool.aliases = theirs.map(|(_, name, rewrites)| Alias::new(name, CLAUDE_CODE, rewrites)).collect();
        samples::call(1, tool, arguments)
    }

    #[test]
    fn tool_hooks_receive_claude_code_input_and_the_canonical_call() {
        let call = call("write_file", json!({"path": "a", "content": "b"}));
        let message =
            input(HookPayload::Call(HookEvent::PreToolUse, &call, None), PermissionMode::AcceptEdits, Path::new("/w"));
        assert_eq!(
            message,
            json!({
                "session_id": &*call.session, "transcript_path": "", "cwd": "/w", "permission_mode": "acceptEdits",
                "hook_event_name": "PreToolUse", "tool_name": "Write",
                "tool_input": {"content": "b", "file_path": "/w/a"}, "tool_use_id": call.id.to_string(),
                "called_as": &call.called_as, "canonical_tool_name": "write_file",
                "canonical_tool_input": {"path": "/w/a", "content": "b"},
            })
        );
    }

    #[test]
    fn the_call_outcome_determines_the_hook_event_at_its_end() {
        let call = call("write_file", json!({"path": "a", "content": "b"}));
        let mut row = samples::execution(1);
        let result = ToolResult::text("done");
        let occasion = |row: &ToolExecution| {
            let ended = EndedCall { call: Some(&call), accesses: None, execution: row, result: Some(&result) };
            HookPayload::of_end(ended).map(|occasion| input(occasion, PermissionMode::Default, Path::new("/w")))
        };
        row.outcome = ExecutionOutcome::Succeeded;
        let outcome = occasion(&row).unwrap();
        assert_eq!(outcome["hook_event_name"], "PostToolUse");
        assert_eq!(outcome["tool_response"]["content"][0]["text"], "done");
        let response = &outcome["tool_response"];
        assert_eq!((&response["isError"], &response["is_error"]), (&json!(false), &json!(false)));
        row.outcome = ExecutionOutcome::Cancelled(toolstead_domain::tool_execution::CancelReason::Client);
        let outcome = occasion(&row).unwrap();
        assert_eq!(
            (&outcome["hook_event_name"], &outcome["is_interrupt"]),
            (&json!("PostToolUseFailure"), &json!(true))
        );
        row.outcome = ExecutionOutcome::InputRequired;
        assert!(occasion(&row).is_none());
    }
}
