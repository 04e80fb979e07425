//! Commands and agents in the background, in the format of clai.

use super::{failed, items, shown};
use serde_json::{Map, Value, json};
use toolstead_domain::{AdaptedResult, AdapterInput};

/// Returns `value` as JSON text, or the failure of the call as an error of clai's tool `name`; `None` if there is no
/// value.
fn json_result(
    answered: &AdapterInput<'_>,
    name: &str,
    value: impl FnOnce() -> Option<Value>,
) -> Option<AdaptedResult> {
    match answered.error_kind() {
        Some(_) => Some(failed(name, &answered.text())),
        None => value().map(|value| AdaptedResult::text(value.to_string())),
    }
}

pub(super) fn started(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    json_result(answered, "async_cmd", || {
        Some(json!({"async_cmd_id": answered.member("task_id")?, "status": "running", "pid": answered.member("pid")?}))
    })
}

pub(super) fn awaited(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    json_result(answered, "async_cmd_await", || {
        let states: Vec<Value> = items(answered, "tasks")?.iter().map(facts).collect();
        let result = if answered.member("timed_out") == Some(&Value::Bool(true)) { "timeout" } else { "completed" };
        Some(json!({"result": result, "async_cmds": states}))
    })
}

/// Returns the JSON state of the background command that the result is about, alone or as the first of its `tasks`; an
/// error of the tool `name` if the call failed.
pub(super) fn state(answered: &AdapterInput<'_>, name: &str) -> Option<AdaptedResult> {
    json_result(answered, name, || {
        let task = match items(answered, "tasks") {
            Some(tasks) => tasks.first()?,
            None => answered.structured()?,
        };
        Some(facts(task))
    })
}

/// Returns the output of a background command as JSON. `stdout` contains both streams, in the order in which they were
/// printed.
pub(super) fn logs(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    json_result(answered, "async_cmd_logs", || {
        let member = |name| answered.member(name);
        let output = json!({"preview": member("output")?, "truncated": member("truncated")?});
        Some(json!({"async_cmd_id": member("task_id")?, "status": status(member("status")?), "stdout": output}))
    })
}

fn facts(task: &Value) -> Value {
    let mut facts = Map::new();
    facts.insert("async_cmd_id".into(), task["task_id"].clone());
    facts.insert("status".into(), status(&task["status"]).into());
    for (ours, theirs) in
        [("started_at", "started_at"), ("ended_at", "finished_at"), ("pid", "pid"), ("exit_code", "exit_code")]
    {
        facts.insert(theirs.into(), task.get(ours).cloned().unwrap_or_default());
    }
    facts.into()
}

/// Returns the status of a background command in clai's words; `failed` for every other status.
fn status(ours: &Value) -> &'static str {
    match ours.as_str() {
        Some("running") => "running",
        Some("succeeded") => "succeeded",
        Some("cancelled") => "cancelled",
        _ => "failed",
    }
}

fn run_status(ours: &Value) -> &'static str {
    match status(ours) {
        "running" => "RUNNING",
        "succeeded" => "COMPLETED",
        _ => "FAILED",
    }
}

pub(super) fn run_state(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    shown(answered, "clai_check", |answered| {
        let task = items(answered, "tasks")?.first()?;
        Some(run_status(&task["status"]).to_owned())
    })
}

/// Returns the exit code and the output of a background command as text. `Stdout` contains both streams, in the order
/// in which they were printed.
pub(super) fn run_result(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    shown(answered, "clai_result", |answered| {
        let output = answered.member("output")?.as_str()?;
        let code = answered.member("exit_code")?.as_i64()?;
        Some(format!("Exit Code: {code}\nStdout:\n{output}\nStderr:\n"))
    })
}

pub(super) fn workers(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind().is_none() && answered.member("timed_out") == Some(&Value::Bool(true)) {
        return Some(failed("clai_wait_for_workers", "the timeout expired, and some workers still run"));
    }
    shown(answered, "clai_wait_for_workers", |answered| {
        let tasks = items(answered, "tasks")?;
        if tasks.is_empty() {
            return Some("No active workers".to_owned());
        }
        let workers = tasks.iter().map(|task| {
            let code = task.get("exit_code").map_or_else(|| "none".to_owned(), Value::to_string);
            let id = task["task_id"].as_str().unwrap_or_default();
            format!("\n\nWorker {id}:\nStatus: {} (exit code: {code})", run_status(&task["status"]))
        });
        Some(format!("All workers completed{}", workers.collect::<String>()))
    })
}
