//! The complete audit record of a call, as JSON and as text.

use super::{call_target::call_target, listing::took, time};
use crate::cli::output::visible;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use toolstead_domain::{AuditedRequestKind, ExecutionOutcome, ToolExecution};

/// Returns a record as JSON; the members have the names of the fields of the audit log.
pub(super) fn to_json(execution: &ToolExecution) -> Value {
    json!({
        "id": execution.id.to_string(),
        "parent": execution.parent.map(|parent| parent.to_string()),
        "kind": execution.kind.as_str(),
        "tool": execution.tool,
        "called_as": execution.called_as,
        "source": execution.source,
        "principal": execution.principal,
        "session": execution.session,
        "client": execution.client,
        "arguments": execution.arguments,
        "arguments_digest": execution.arguments_digest,
        "accesses": execution.accesses,
        "decision": execution.decision.as_ref().map(|decision| json!({
            "verdict": decision.verdict, "reason": decision.reason, "approved_by": decision.approved_by,
            "trace": decision.trace,
        })),
        "started": time(execution.started),
        "ended": execution.ended.map(time),
        "outcome": execution.outcome.kind().as_str(),
        "error_kind": execution.outcome.error_kind().map(|kind| kind.as_str()),
        "detail": detail(execution),
        "result_bytes": execution.result_bytes,
        "result_digest": execution.result_digest,
        "metadata": execution.metadata,
        "labels": execution.labels.iter().collect::<BTreeMap<_, _>>(),
    })
}

/// Returns a record as JSON with the additional members of kodelet's structured result: `toolName`, `success`, `error`
/// if it failed, `metadata`, and `timestamp` (of its end, or of its start while it is running).
pub(super) fn with_kodelets_names(execution: &ToolExecution) -> Value {
    let mut record = to_json(execution);
    record["toolName"] = execution.called_as.as_str().into();
    record["success"] = matches!(execution.outcome, ExecutionOutcome::Succeeded).into();
    record["timestamp"] = time(execution.ended.unwrap_or(execution.started)).into();
    if !matches!(
        execution.outcome,
        ExecutionOutcome::Succeeded | ExecutionOutcome::Running | ExecutionOutcome::InputRequired
    ) {
        let error = detail(execution).unwrap_or_else(|| execution.outcome.kind().as_str().to_owned());
        record["error"] = error.into();
    }
    record
}

/// Returns a record as text: one line per fact, then the decision and the recorded data.
pub(super) fn to_text(execution: &ToolExecution) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let value = visible(value).replace('\n', "\n             ");
            text.push_str(&format!("{name:<11}  {value}\n"));
        }
    };
    let outcome = execution.outcome.kind().as_str();
    let outcome = execution.outcome.error_kind().map_or(outcome.to_owned(), |kind| format!("{outcome} ({kind})"));
    line("id", &execution.id.to_string());
    if execution.kind != AuditedRequestKind::Tool {
        line("kind", execution.kind.as_str());
    }
    match execution.called_as == execution.tool {
        true => line("tool", &execution.tool),
        false => line("tool", &format!("{} (called as {})", execution.tool, execution.called_as)),
    }
    line("called by", &execution.parent.map(|parent| parent.to_string()).unwrap_or_default());
    line("called", &call_target(execution));
    line("outcome", &outcome);
    line("detail", &detail(execution).unwrap_or_default());
    line("started", &time(execution.started));
    line("ended", &execution.ended.map(|ended| format!("{} ({})", time(ended), took(execution))).unwrap_or_default());
    line("source", &execution.source);
    line("client", &execution.client);
    line("principal", &execution.principal);
    line("session", &execution.session);
    if let Some(decision) = &execution.decision {
        line("decision", &format!("{}: {}", decision.verdict, decision.reason));
        line("approved by", decision.approved_by.as_deref().unwrap_or_default());
    }
    for (at, access) in execution.accesses.iter().enumerate() {
        line(if at == 0 { "touches" } else { "" }, access);
    }
    line("arguments", &pretty(&execution.arguments));
    line(
        "result",
        &if execution.result_bytes > 0 { format!("{} bytes", execution.result_bytes) } else { String::new() },
    );
    line("metadata", &pretty(&execution.metadata));
    for (at, (name, value)) in execution.labels.iter().enumerate() {
        line(if at == 0 { "labels" } else { "" }, &format!("{name}={value}"));
    }
    text.truncate(text.trim_end().len());
    text
}

fn pretty(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

fn detail(execution: &ToolExecution) -> Option<String> {
    match &execution.outcome {
        ExecutionOutcome::Failed(_, detail) | ExecutionOutcome::Refused(_, detail) => Some(detail.clone()),
        ExecutionOutcome::Cancelled(reason) => Some(reason.as_str().to_owned()),
        ExecutionOutcome::Running
        | ExecutionOutcome::Succeeded
        | ExecutionOutcome::InputRequired
        | ExecutionOutcome::Interrupted => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::{CancelReason, error_kind::ErrorKind, testing::samples};

    #[test]
    fn a_record_contains_kodelet_fields_beside_its_own() {
        let failed = ExecutionOutcome::Failed(ErrorKind::Timeout, "late".into());
        for (outcome, success, error) in [
            (ExecutionOutcome::Succeeded, true, None),
            (failed, false, Some("late")),
            (ExecutionOutcome::Cancelled(CancelReason::Client), false, Some("client")),
            (ExecutionOutcome::Interrupted, false, Some("interrupted")),
            (ExecutionOutcome::Running, false, None),
        ] {
            let execution = ToolExecution { outcome, called_as: "file_read".into(), ..samples::execution(7) };
            let record = with_kodelets_names(&execution);
            assert_eq!(
                (&record["toolName"], &record["success"], record.get("error").and_then(Value::as_str)),
                (&json!("file_read"), &json!(success), error)
            );
            assert_eq!((&record["metadata"], &record["timestamp"]), (&json!({"lines": 7}), &record["ended"]));
            assert_eq!(record["id"], execution.id.to_string());
        }
    }

    #[test]
    fn the_text_form_of_a_record_is_readable_and_escapes_control_characters() {
        let execution = ToolExecution {
            outcome: ExecutionOutcome::Failed(ErrorKind::Timeout, "first\nsecond\u{1b}[31m".into()),
            called_as: "file_read".into(),
            parent: Some(samples::call_id(6)),
            ..samples::execution(7)
        };
        assert_eq!(to_json(&execution)["parent"], samples::call_id(6).to_string());
        let text = to_text(&execution);
        assert!(text.contains(&format!("called by    {}\n", samples::call_id(6))), "{text}");
        for expected in [
            "tool         echo (called as file_read)\n",
            "called       /srv/7.txt\n",
            "outcome      failed (timeout)\ndetail       first\n             second\\u{1b}[31m\n",
            "ended        2025-09-01T00:00:00.007Z (0.2 ms)\n",
            "decision     allow: calls that touch nothing are allowed by default\n",
            "touches      read /srv/7.txt\n",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }
}
