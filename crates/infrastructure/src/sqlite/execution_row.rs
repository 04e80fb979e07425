//! How a row of the audit trail is written and read.

use super::fault::Fault;
use rusqlite::Statement;
use serde_json::Value;
use sqlx::{Row, sqlite::SqliteRow};
use std::{error::Error, str::FromStr};
use toolstead_domain::{
    error_kind::ErrorKind,
    ports::clock::Timestamp,
    tool_call::CallId,
    tool_execution::{CancelReason, Outcome, OutcomeKind, RecordedDecision, ToolExecution},
};
use uuid::Uuid;

/// Writes a row, as [`RecordedRow::bind`] gives it. A row that is final stays as it is.
pub(super) const RECORD: &str = "
    INSERT INTO tool_executions (
        id, tool, called_as, source, principal, session, client, arguments, arguments_digest, accesses,
        verdict, reason, approved_by, started, ended, outcome, error_kind, detail, result_bytes, result_digest, instance,
        trace
    )
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)
    ON CONFLICT (id) DO UPDATE SET
        tool = excluded.tool, called_as = excluded.called_as, source = excluded.source,
        principal = excluded.principal, session = excluded.session, client = excluded.client,
        arguments = excluded.arguments, arguments_digest = excluded.arguments_digest, accesses = excluded.accesses,
        verdict = excluded.verdict, reason = excluded.reason, approved_by = excluded.approved_by,
        started = excluded.started, ended = excluded.ended, outcome = excluded.outcome,
        error_kind = excluded.error_kind, detail = excluded.detail, result_bytes = excluded.result_bytes,
        result_digest = excluded.result_digest, instance = excluded.instance,
        trace = excluded.trace
    WHERE tool_executions.outcome = 'running'";

/// A row on its way to the disk; what has to be written as JSON is so already.
#[derive(Debug)]
pub(super) struct RecordedRow {
    execution: ToolExecution,
    arguments: Option<String>,
    accesses: String,
    trace: Option<String>,
    /// The process that writes it; kept while the call runs.
    instance: Uuid,
}

impl RecordedRow {
    /// The row of a call of this process.
    pub(super) fn new(execution: ToolExecution, instance: Uuid) -> Self {
        let arguments = (!execution.arguments.is_null()).then(|| execution.arguments.to_string());
        let accesses = Value::from(execution.accesses.as_slice()).to_string();
        let trace = execution.decision.as_ref().map(|decision| &decision.trace).filter(|trace| !trace.is_null());
        let trace = trace.map(Value::to_string);
        Self { execution, arguments, accesses, trace, instance }
    }

    /// About how long its texts are, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let detail = detail(&self.execution.outcome).map_or(0, str::len);
        self.arguments.as_ref().map_or(0, String::len)
            + self.accesses.len()
            + self.trace.as_ref().map_or(0, String::len)
            + detail
    }

    /// Gives the values to [`RECORD`].
    pub(super) fn bind(&self, statement: &mut Statement<'_>) -> rusqlite::Result<()> {
        let Self { execution, arguments, accesses, trace, instance } = self;
        let decision = execution.decision.as_ref();
        let outcome = &execution.outcome;
        statement.raw_bind_parameter(1, execution.id.0.as_bytes())?;
        statement.raw_bind_parameter(2, &execution.tool)?;
        statement.raw_bind_parameter(3, &execution.called_as)?;
        statement.raw_bind_parameter(4, &execution.source)?;
        statement.raw_bind_parameter(5, &execution.principal)?;
        statement.raw_bind_parameter(6, &execution.session)?;
        statement.raw_bind_parameter(7, &execution.client)?;
        statement.raw_bind_parameter(8, arguments)?;
        statement.raw_bind_parameter(9, &execution.arguments_digest)?;
        statement.raw_bind_parameter(10, accesses)?;
        statement.raw_bind_parameter(11, decision.map(|decision| &decision.verdict))?;
        statement.raw_bind_parameter(12, decision.map(|decision| &decision.reason))?;
        statement.raw_bind_parameter(13, decision.and_then(|decision| decision.approved_by.as_ref()))?;
        statement.raw_bind_parameter(14, execution.started.0)?;
        statement.raw_bind_parameter(15, execution.ended.map(|ended| ended.0))?;
        statement.raw_bind_parameter(16, outcome.kind().as_str())?;
        statement.raw_bind_parameter(17, outcome.error_kind().map(ErrorKind::as_str))?;
        statement.raw_bind_parameter(18, detail(outcome))?;
        // SQLite's integers have a sign.
        statement.raw_bind_parameter(19, i64::try_from(execution.result_bytes).unwrap_or(i64::MAX))?;
        statement.raw_bind_parameter(20, &execution.result_digest)?;
        statement.raw_bind_parameter(21, (!outcome.is_final()).then_some(instance.as_bytes()))?;
        statement.raw_bind_parameter(22, trace)
    }
}

fn detail(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Failed(_, message) | Outcome::Refused(_, message) => Some(message),
        Outcome::Cancelled(reason) => Some(reason.as_str()),
        Outcome::Running | Outcome::Succeeded | Outcome::InputRequired | Outcome::Interrupted => None,
    }
}

/// Begins every statement that reads rows; [`read`] knows the order.
macro_rules! select_executions {
    ($($rest:literal),* $(,)?) => {
        concat!(
            "SELECT id, tool, called_as, source, principal, session, client, arguments, arguments_digest, accesses, ",
            "verdict, reason, approved_by, started, ended, outcome, error_kind, detail, result_bytes, result_digest, ",
            "trace ",
            "FROM tool_executions ",
            $($rest),*
        )
    };
}
pub(super) use select_executions;

/// Reads a row of a statement that began with `select_executions!`.
pub(super) fn read(row: &SqliteRow) -> Result<ToolExecution, Fault> {
    let text = |column: usize| row.try_get::<String, _>(column);
    let optional = |column: usize| row.try_get::<Option<String>, _>(column);
    let decision = match optional(10)? {
        Some(verdict) => Some(RecordedDecision {
            verdict,
            reason: optional(11)?.unwrap_or_default(),
            approved_by: optional(12)?,
            trace: optional(20)?.map_or(Ok(Value::Null), |text| parse::<Value>(&text))?,
        }),
        None => None,
    };
    Ok(ToolExecution {
        id: CallId(row.try_get(0)?),
        tool: text(1)?,
        called_as: text(2)?,
        source: text(3)?,
        principal: text(4)?,
        session: text(5)?,
        client: text(6)?,
        arguments: optional(7)?.map_or(Ok(Value::Null), |text| parse::<Value>(&text))?,
        arguments_digest: text(8)?,
        accesses: serde_json::from_str(&text(9)?).map_err(unreadable)?,
        decision,
        started: Timestamp(row.try_get(13)?),
        ended: row.try_get::<Option<i64>, _>(14)?.map(Timestamp),
        outcome: outcome(&text(15)?, optional(16)?, optional(17)?.unwrap_or_default())?,
        result_bytes: u64::try_from(row.try_get::<i64, _>(18)?).unwrap_or(0),
        result_digest: optional(19)?,
    })
}

fn outcome(kind: &str, error_kind: Option<String>, detail: String) -> Result<Outcome, Fault> {
    let unknown = || unreadable(format!("the outcome `{kind}` is not known"));
    Ok(match OutcomeKind::parse(kind).ok_or_else(unknown)? {
        OutcomeKind::Running => Outcome::Running,
        OutcomeKind::Succeeded => Outcome::Succeeded,
        OutcomeKind::InputRequired => Outcome::InputRequired,
        OutcomeKind::Interrupted => Outcome::Interrupted,
        OutcomeKind::Cancelled => {
            let unknown = || unreadable(format!("`{detail}` is not known as a reason to cancel"));
            Outcome::Cancelled(CancelReason::parse(&detail).ok_or_else(unknown)?)
        }
        OutcomeKind::Failed => {
            let (kind, message) = error(error_kind, detail);
            Outcome::Failed(kind, message)
        }
        OutcomeKind::Refused => {
            let (kind, message) = error(error_kind, detail);
            Outcome::Refused(kind, message)
        }
    })
}

/// A kind that this version does not know, from a process that runs a later one, is told in the message: one row must
/// not hide a whole page.
fn error(kind: Option<String>, message: String) -> (ErrorKind, String) {
    let kind = kind.unwrap_or_default();
    match ErrorKind::from_name(&kind) {
        Some(kind) => (kind, message),
        None => (ErrorKind::Internal, format!("{kind}: {message}")),
    }
}

fn parse<T: FromStr<Err = serde_json::Error>>(text: &str) -> Result<T, Fault> {
    text.parse().map_err(unreadable)
}

fn unreadable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Fault {
    Fault::Unreadable(cause.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_error_from_a_later_version_is_told_in_the_message() {
        let told = outcome("failed", Some("too_hot".into()), "it melted".into()).unwrap();
        assert_eq!(told, Outcome::Failed(ErrorKind::Internal, "too_hot: it melted".into()));
    }

    #[test]
    fn an_outcome_that_cannot_be_understood_is_a_fault() {
        assert!(outcome("dreamt", None, String::new()).is_err());
        assert!(outcome("cancelled", None, "tired".into()).is_err());
    }
}
