//! `toolstead executions list|show`.

use super::{
    Outcome,
    exit::{Exit, Failed},
    global::Global,
    output::{Output, cut, table},
};
use crate::composition_root::Servers;
use chrono::{DateTime, SecondsFormat};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolstead_domain::{
    ports::{clock::Timestamp, execution_log::ExecutionFilter},
    tool_call::CallId,
    tool_execution::{Outcome as CallOutcome, OutcomeKind, ToolExecution},
};
use uuid::Uuid;

/// Looks into the audit trail.
#[derive(Debug, Args)]
pub struct Executions {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists calls, the newest first
    List {
        /// Only calls of this tool
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// Only calls that ended so: running, succeeded, failed, refused, cancelled, input_required or interrupted
        #[arg(long)]
        outcome: Option<String>,
        /// At most so many
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Only calls older than this one
        #[arg(long, value_name = "ID")]
        before: Option<Uuid>,
    },
    /// Shows everything that is on record of one call
    Show {
        /// The call's id
        id: Uuid,
    },
}

impl Executions {
    pub(super) async fn run(self, global: &Global, output: &mut Output) -> Outcome {
        let composition = global.compose(Servers::None).await?;
        let trail = &composition.app.list_executions;
        let outcome = match self.command {
            Command::List { tool, outcome, limit, before } => {
                let outcome =
                    outcome.map(|text| OutcomeKind::parse(&text).ok_or(text)).transpose().map_err(|text| {
                        let known: Vec<&str> = OutcomeKind::ALL.iter().map(|kind| kind.as_str()).collect();
                        Failed::Usage(format!("`{text}` is no outcome: use one of {}", known.join(", ")))
                    })?;
                let filter = ExecutionFilter { tool, outcome, limit, before: before.map(CallId), principal: None };
                list(&trail.list(&filter).await?, global.json, output)
            }
            Command::Show { id } => match trail.get(CallId(id)).await? {
                Some(execution) => output.json(&to_json(&execution)).map_err(Failed::from),
                None => Err(Failed::NotFound(format!("no call of the id {id} is on record"))),
            },
        };
        composition.close().await;
        outcome.map(|()| Exit::Done)
    }
}

fn list(executions: &[ToolExecution], as_json: bool, output: &mut Output) -> Result<(), Failed> {
    if as_json {
        let all: Vec<Value> = executions.iter().map(to_json).collect();
        return Ok(output.json(&json!({"executions": all}))?);
    }
    let row = |one: &ToolExecution| {
        let took =
            one.ended.map_or("-".to_owned(), |ended| format!("{:.1} ms", ended.since(one.started).as_secs_f64() * 1e3));
        let outcome = match one.outcome.error_kind() {
            Some(kind) => format!("{} ({kind})", one.outcome.kind().as_str()),
            None => one.outcome.kind().as_str().to_owned(),
        };
        vec![time(one.started), one.tool.clone(), outcome, took, one.client.clone(), one.id.to_string()]
    };
    for line in table(&["STARTED", "TOOL", "OUTCOME", "TOOK", "CLIENT", "ID"], executions.iter().map(row)).lines() {
        output.line(&cut(line, output.width()))?;
    }
    Ok(())
}

pub(super) fn time(timestamp: Timestamp) -> String {
    DateTime::from_timestamp_micros(timestamp.0)
        .map_or("-".into(), |time| time.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// One row as JSON, with the names of the audit trail.
fn to_json(execution: &ToolExecution) -> Value {
    let detail = match &execution.outcome {
        CallOutcome::Failed(_, detail) | CallOutcome::Refused(_, detail) => Some(detail.clone()),
        CallOutcome::Cancelled(reason) => Some(reason.as_str().to_owned()),
        CallOutcome::Running | CallOutcome::Succeeded | CallOutcome::InputRequired | CallOutcome::Interrupted => None,
    };
    json!({
        "id": execution.id.to_string(),
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
        "detail": detail,
        "result_bytes": execution.result_bytes,
        "result_digest": execution.result_digest,
    })
}
