//! Statements that write and read rows of the audit log.

use super::{
    execution_record::DecodedRecord,
    fault::Fault,
    former_row::{self, FormerRow},
};
use sqlx::{Row, sqlite::SqliteRow};
use std::fmt::Write as _;
use toolstead_domain::{
    tool_call::CallId,
    tool_execution::{Outcome, OutcomeKind, ToolExecution},
};

/// Parameters of one row, in the order in which [`PendingRecord::bind`](super::pending_record::PendingRecord::bind)
/// binds them.
pub(super) const PARAMETERS: usize = 11;

/// Returns the statement that writes that many rows. A row that is final is not changed.
pub(super) fn record_statement(rows: usize) -> String {
    let mut statement = String::from(
        "INSERT INTO tool_executions (
            id, tool, principal, client, started, outcome, instance, parent, labels, kind, record
        )
        VALUES ",
    );
    for row in 0..rows {
        statement.push_str(if row == 0 { "(?" } else { ", (?" });
        for _ in 1..PARAMETERS {
            statement.push_str(", ?");
        }
        statement.push(')');
    }
    let columns =
        ["tool", "principal", "client", "started", "outcome", "instance", "parent", "labels", "kind", "record"];
    for (at, column) in columns.into_iter().enumerate() {
        let before = if at == 0 { " ON CONFLICT (id) DO UPDATE SET" } else { "," };
        // A `String` takes everything.
        let _ = write!(statement, "{before} {column} = excluded.{column}");
    }
    statement.push_str(" WHERE tool_executions.outcome = 'running'");
    statement
}

/// Returns the outcome in the column of that name. A call that waits for its client is stored as running, so that it is
/// marked as interrupted with its process.
pub(super) fn stored_as(outcome: OutcomeKind) -> OutcomeKind {
    if outcome == OutcomeKind::InputRequired { OutcomeKind::Running } else { outcome }
}

/// Returns the outcomes in the column of rows with this one. Rows of versions in which a question ended the call have
/// their own.
pub(super) fn stored_outcomes(outcome: Option<OutcomeKind>) -> Vec<Option<OutcomeKind>> {
    match outcome {
        Some(OutcomeKind::InputRequired) => vec![outcome, Some(OutcomeKind::Running)],
        other => vec![other],
    }
}

/// Begins every statement that reads rows; [`read`] knows the order.
macro_rules! select_executions {
    ($($rest:literal),* $(,)?) => {
        concat!(
            "SELECT id, tool, called_as, source, principal, session, client, arguments, arguments_digest, accesses, ",
            "verdict, reason, approved_by, started, ended, outcome, error_kind, detail, result_bytes, result_digest, ",
            "trace, metadata, labels, parent, kind, seq, record ",
            "FROM tool_executions ",
            $($rest),*
        )
    };
}
pub(super) use select_executions;

/// Reads a row of a statement that begins with `select_executions!`.
pub(super) fn read(row: &SqliteRow) -> Result<ToolExecution, Fault> {
    let Some(record) = row.try_get::<Option<&str>, _>(former_row::COLUMNS + 1)? else {
        return FormerRow::read(row)?.into_execution();
    };
    let mut execution = DecodedRecord::decode(record.as_bytes())?.execution;
    execution.id = CallId(row.try_get(0)?);
    // The record is what the process wrote that ran the call. Another process marked the row after that one died.
    if row.try_get::<&str, _>(15)? == OutcomeKind::Interrupted.as_str() {
        execution.outcome = Outcome::Interrupted;
    }
    Ok(execution)
}

/// Returns the position of a row of such a statement in the order of recording.
pub(super) fn seq(row: &SqliteRow) -> Result<i64, Fault> {
    Ok(row.try_get(former_row::COLUMNS)?)
}
