//! Answer of a hook, parsed from its exit code and outputs.

use super::{definition::HookEvent, text::clean};
use crate::sandbox::{
    launcher::Exit,
    unconfined_run::{RunOutcome, RunResult},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolstead_domain::{HookVerdict, ToolResult};

/// Answer of a hook.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HookAnswer {
    /// Decision; `None` if the hook made none.
    pub decision: Option<HookDecision>,
    /// Replacement for the arguments, in the parameter names of the hook's input.
    pub updated_input: Option<Map<String, Value>>,
    /// Reason for which the run is to stop (`continue: false`).
    pub stop_reason: Option<String>,
    /// Context for the model.
    pub context: Option<String>,
    /// Replacement for the result that the model receives.
    pub updated_output: Option<Value>,
    /// Message for the user.
    pub message: Option<String>,
    /// Reason why the answer cannot be used: the hook was not started, timed out, crashed or returned an invalid
    /// answer.
    pub fault: Option<String>,
}

/// Decision of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookDecision {
    /// No objection. Permission rules still apply.
    Allow,
    /// Verdict of the hook: deny, defer, ask, or continue without a decision.
    Verdict(HookVerdict),
}

impl HookDecision {
    pub(super) fn strictness(&self) -> u8 {
        match self {
            Self::Allow | Self::Verdict(HookVerdict::Continue) => 0,
            Self::Verdict(HookVerdict::Ask(_)) => 1,
            Self::Verdict(HookVerdict::Defer(_)) => 2,
            Self::Verdict(HookVerdict::Deny(_)) => 3,
        }
    }
}

impl std::fmt::Display for HookDecision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Allow => f.write_str("allow"),
            Self::Verdict(HookVerdict::Continue) => f.write_str("nothing"),
            Self::Verdict(HookVerdict::Ask(reason)) => write!(f, "ask: {reason}"),
            Self::Verdict(HookVerdict::Defer(reason)) => write!(f, "defer: {reason}"),
            Self::Verdict(HookVerdict::Deny(reason)) => write!(f, "deny: {reason}"),
        }
    }
}

/// JSON output of a hook. Unknown members are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HookOutput {
    #[serde(rename = "continue")]
    should_continue: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    hook_specific_output: Option<HookSpecificOutput>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HookSpecificOutput {
    hook_event_name: Option<String>,
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Map<String, Value>>,
    additional_context: Option<String>,
    updated_tool_output: Option<Value>,
    #[serde(rename = "updatedMCPToolOutput")]
    updated_mcp_tool_output: Option<Value>,
    decision: Option<PermissionRequestDecision>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionRequestDecision {
    behavior: String,
    message: Option<String>,
    updated_input: Option<Value>,
}

impl HookAnswer {
    /// Parses the answer of a run for this event.
    pub(super) fn of(ran: &RunResult, event: HookEvent) -> Self {
        let code = match &ran.end {
            RunOutcome::NotStarted(reason) => return Self::fault(reason.clone()),
            RunOutcome::TimedOut => return Self::fault("it did not answer in time".into()),
            RunOutcome::Exited(exit @ (Exit::Signal(_) | Exit::OutOfMemory(_) | Exit::TimedOut(_))) => {
                return Self::fault(exit.to_string());
            }
            RunOutcome::Exited(Exit::Code(code)) => *code,
        };
        let stdout = ran.stdout.text();
        let stderr = clean(&ran.stderr.text());
        let is_json = stdout.trim_start().starts_with('{');
        let json = match is_json && !ran.stdout.is_cut {
            true => serde_json::from_str::<HookOutput>(&stdout).map_err(|error| error.to_string()),
            false => Err(if is_json { "it is longer than 1 MiB".to_owned() } else { String::new() }),
        };
        match (code, json) {
            (2, json) => Self::blocked(json.ok().map(|written| Self::read(written, event)), stderr),
            (_, Ok(written)) => Self::read(written, event),
            (0, Err(reason)) if is_json => Self::fault(format!("its answer is not valid JSON: {reason}")),
            (0, Err(_)) => {
                // Plain text is context for the model at events that begin something, and is ignored at all others.
                let begins =
                    matches!(event, HookEvent::SessionStart | HookEvent::UserPromptSubmit | HookEvent::SubagentStart);
                let context = begins.then(|| clean(&stdout)).filter(|text| !text.is_empty());
                Self { context, ..Self::default() }
            }
            (code, Err(_)) => {
                let said = if stderr.is_empty() { String::new() } else { format!(": {stderr}") };
                Self::fault(format!("it ended with code {code}{said}"))
            }
        }
    }

    /// Returns the answer for exit code 2, which is an objection regardless of the output.
    fn blocked(parsed: Option<Self>, stderr: String) -> Self {
        let mut answer = parsed.unwrap_or_default();
        let reason = match answer.decision.take() {
            Some(HookDecision::Verdict(
                HookVerdict::Deny(reason) | HookVerdict::Defer(reason) | HookVerdict::Ask(reason),
            )) => Some(reason),
            Some(HookDecision::Verdict(HookVerdict::Continue) | HookDecision::Allow) | None => None,
        };
        let reason = reason.filter(|reason| !reason.is_empty() && reason != NO_REASON).or(Some(stderr));
        let reason = reason.filter(|reason| !reason.is_empty()).unwrap_or_else(|| NO_REASON.into());
        answer.decision = Some(HookDecision::Verdict(HookVerdict::Deny(reason)));
        answer.fault = None;
        answer
    }

    fn read(written: HookOutput, event: HookEvent) -> Self {
        let specific = written.hook_specific_output.unwrap_or_default();
        if let Some(other) = specific.hook_event_name.filter(|name| name != event.as_str()) {
            return Self::fault(format!(
                "it answers the event `{}`, but the event is `{}`",
                clean(&other),
                event.as_str()
            ));
        }
        let reason = |given: Option<String>| given.map(|text| clean(&text)).unwrap_or_else(|| NO_REASON.into());
        let mut answer = Self {
            updated_input: specific.updated_input,
            context: specific.additional_context.map(|text| clean(&text)).filter(|text| !text.is_empty()),
            updated_output: specific.updated_tool_output.or(specific.updated_mcp_tool_output),
            message: written.system_message.map(|text| clean(&text)).filter(|text| !text.is_empty()),
            ..Self::default()
        };
        if written.should_continue == Some(false) {
            let why = reason(written.stop_reason);
            answer.stop_reason = Some(why.clone());
            answer.decision = Some(HookDecision::Verdict(HookVerdict::Deny(why)));
            return answer;
        }
        let changes = specific.decision.as_ref().is_some_and(|request| request.updated_input.is_some());
        let mut fault = changes.then(|| "it cannot change a call that is awaiting approval".to_owned());
        // The decision may occur in several places. If they differ, the strictest counts.
        let decisions = [
            (specific.permission_decision, specific.permission_decision_reason.or_else(|| written.reason.clone())),
            specific.decision.map_or((None, None), |request| (Some(request.behavior), request.message)),
            (written.decision, written.reason),
        ];
        for (word, given) in decisions {
            let Some(word) = word else { continue };
            let decided = match word.as_str() {
                "allow" | "approve" => HookDecision::Allow,
                "ask" => HookDecision::Verdict(HookVerdict::Ask(reason(given))),
                "defer" => HookDecision::Verdict(HookVerdict::Defer(reason(given))),
                "deny" | "block" => HookDecision::Verdict(HookVerdict::Deny(reason(given))),
                other => {
                    fault.get_or_insert(format!("`{}` is not a valid decision", clean(other)));
                    continue;
                }
            };
            if answer.decision.as_ref().is_none_or(|other| other.strictness() < decided.strictness()) {
                answer.decision = Some(decided);
            }
        }
        match fault {
            // A deny remains in force even if another part of the answer is invalid.
            Some(fault) if answer.objection().is_none() => Self::fault(fault),
            _ => answer,
        }
    }

    pub(super) fn fault(reason: String) -> Self {
        Self { fault: Some(reason), ..Self::default() }
    }

    /// Returns the reason if the hook denies; `None` if it only asks or defers.
    pub fn objection(&self) -> Option<&str> {
        match &self.decision {
            Some(HookDecision::Verdict(HookVerdict::Deny(reason))) => Some(reason),
            _ => None,
        }
    }
}

/// Default for a missing reason.
const NO_REASON: &str = "it gave no reason";

/// Converts a hook's replacement for a result: text, content blocks, an MCP result, or any other JSON as text.
pub(super) fn as_result(value: Value) -> ToolResult {
    match value {
        Value::String(text) => ToolResult::text(text),
        Value::Array(blocks) if !blocks.is_empty() && blocks.iter().all(|block| block["type"].is_string()) => {
            ToolResult::of_blocks(blocks)
        }
        Value::Object(object) if object.get("content").is_some_and(Value::is_array) => {
            let text = Value::Object(object.clone()).to_string();
            ToolResult::from_upstream(Value::Object(object)).unwrap_or_else(|_| ToolResult::text(text))
        }
        other => ToolResult::text(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::unconfined_run::CapturedStream;
    use serde_json::json;
    use std::time::Duration;

    fn answer(event: HookEvent, end: RunOutcome, stdout: &str, stderr: &str) -> HookAnswer {
        let captured = |text: &str| CapturedStream { bytes: text.into(), is_cut: false };
        let ran = RunResult { end, stdout: captured(stdout), stderr: captured(stderr), duration: Duration::ZERO };
        HookAnswer::of(&ran, event)
    }

    fn before(code: i32, stdout: &str, stderr: &str) -> HookAnswer {
        answer(HookEvent::PreToolUse, RunOutcome::Exited(Exit::Code(code)), stdout, stderr)
    }

    fn specific(members: Value) -> String {
        json!({"hookSpecificOutput": members}).to_string()
    }

    fn deny(reason: &str) -> Option<HookDecision> {
        Some(HookDecision::Verdict(HookVerdict::Deny(reason.into())))
    }

    #[test]
    fn exit_code_2_always_denies() {
        let allow = specific(json!({"permissionDecision": "allow"}));
        assert_eq!(before(2, "", "no\u{1b}[1m way\n").decision, deny("no way"));
        assert_eq!(before(2, "", "").decision, deny(NO_REASON));
        assert_eq!(before(2, &allow, "stop").decision, deny("stop"));
        assert_eq!(before(2, "{nonsense", "").decision, deny(NO_REASON));
        let said = specific(json!({"permissionDecision": "deny", "permissionDecisionReason": "json"}));
        assert_eq!(before(2, &said, "stderr").decision, deny("json"));
        assert_eq!(before(2, &specific(json!({"permissionDecision": "hm"})), "").decision, deny(NO_REASON));
    }

    #[test]
    fn json_output_decides_regardless_of_exit_codes_other_than_2() {
        for code in [0, 1, 3] {
            let said = |members| before(code, &specific(members), "").decision;
            assert_eq!(said(json!({"permissionDecision": "allow"})), Some(HookDecision::Allow));
            assert_eq!(
                said(json!({"permissionDecision": "ask", "permissionDecisionReason": "why"})),
                Some(HookDecision::Verdict(HookVerdict::Ask("why".into())))
            );
            assert_eq!(
                said(json!({"permissionDecision": "defer"})),
                Some(HookDecision::Verdict(HookVerdict::Defer(NO_REASON.into())))
            );
            assert_eq!(said(json!({"permissionDecision": "deny"})), deny(NO_REASON));
            assert_eq!(before(code, r#"{"decision": "block", "reason": "old"}"#, "").decision, deny("old"));
            assert_eq!(before(code, r#"{"decision": "approve"}"#, "").decision, Some(HookDecision::Allow));
            assert_eq!(before(code, r#"{"continue": false, "stopReason": "enough"}"#, "").decision, deny("enough"));
            assert_eq!(before(code, "{}", ""), HookAnswer::default());
        }
    }

    #[test]
    fn the_strictest_of_several_decisions_in_one_answer_applies() {
        let both = |old: &str, new: &str| {
            let said = json!({"decision": old, "reason": "why", "hookSpecificOutput": {"permissionDecision": new}});
            before(0, &said.to_string(), "")
        };
        assert_eq!(both("block", "allow").decision, deny("why"));
        assert_eq!(both("approve", "deny").decision, deny("why"));
        assert_eq!(both("approve", "ask").decision, Some(HookDecision::Verdict(HookVerdict::Ask("why".into()))));
        assert_eq!(both("approve", "allow").decision, Some(HookDecision::Allow));
        // An invalid decision makes the answer a fault, unless another one is a deny.
        for other in ["allow", "ask", "defer"] {
            assert!(both("perhaps", other).fault.is_some(), "{other}");
        }
        assert_eq!(both("perhaps", "deny").decision, deny("why"));
        assert_eq!(both("block", "perhaps").decision, deny("why"));
    }

    #[test]
    fn failed_hooks_and_invalid_answers_are_faults_without_a_decision() {
        for (answer, outcome) in [
            (before(1, "", "boom"), "it ended with code 1: boom"),
            (before(127, "text", ""), "it ended with code 127"),
            (before(0, "{nonsense", ""), "its answer is not valid JSON"),
            (before(0, r#"{"continue": "yes"}"#, ""), "its answer is not valid JSON"),
            (before(0, &specific(json!({"permissionDecision": "perhaps"})), ""), "`perhaps` is not a valid decision"),
            (before(0, &specific(json!({"hookEventName": "Stop"})), ""), "it answers the event `Stop`"),
            (before(0, &specific(json!({"updatedInput": []})), ""), "its answer is not valid JSON"),
            (answer(HookEvent::PreToolUse, RunOutcome::TimedOut, "", ""), "it did not answer in time"),
            (answer(HookEvent::PreToolUse, RunOutcome::Exited(Exit::Signal(9)), "", ""), "signal 9"),
            (answer(HookEvent::PreToolUse, RunOutcome::NotStarted("gone".into()), "", ""), "gone"),
        ] {
            assert!(answer.fault.as_ref().is_some_and(|fault| fault.contains(outcome)), "{answer:?}");
            assert_eq!(answer.decision, None);
        }
        assert_eq!(before(0, "just talk", ""), HookAnswer::default());
    }

    #[test]
    fn a_hook_answer_keeps_its_message_context_and_updated_input() {
        let said = json!({"systemMessage": "note", "suppressOutput": true, "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"a": 1},
            "additionalContext": "mind", "unknown": 7}});
        let answer = before(0, &said.to_string(), "");
        assert_eq!((answer.message.as_deref(), answer.context.as_deref()), (Some("note"), Some("mind")));
        assert_eq!(Value::Object(answer.updated_input.unwrap()), json!({"a": 1}));
        let start = answer_of_session("hello\n");
        assert_eq!(start.context.as_deref(), Some("hello"));
    }

    fn answer_of_session(stdout: &str) -> HookAnswer {
        answer(HookEvent::SessionStart, RunOutcome::Exited(Exit::Code(0)), stdout, "")
    }

    #[test]
    fn a_permission_request_hook_may_decide_but_not_change_the_input() {
        let asked = |decision: Value| {
            let said = specific(json!({"hookEventName": "PermissionRequest", "decision": decision}));
            answer(HookEvent::PermissionRequest, RunOutcome::Exited(Exit::Code(0)), &said, "")
        };
        assert_eq!(asked(json!({"behavior": "allow"})).decision, Some(HookDecision::Allow));
        assert_eq!(asked(json!({"behavior": "deny", "message": "no"})).decision, deny("no"));
        assert!(asked(json!({"behavior": "allow", "updatedInput": {}})).fault.is_some());
        assert_eq!(asked(json!({"behavior": "deny", "message": "no", "updatedInput": {}})).decision, deny("no"));
    }

    #[test]
    fn any_json_output_becomes_a_tool_result() {
        assert_eq!(as_result(json!("a")).joined_text(), "a");
        assert_eq!(as_result(json!([{"type": "text", "text": "b"}])).joined_text(), "b");
        assert_eq!(as_result(json!({"content": [{"type": "text", "text": "c"}]})).joined_text(), "c");
        assert_eq!(as_result(json!({"d": 1})).joined_text(), r#"{"d":1}"#);
    }
}
