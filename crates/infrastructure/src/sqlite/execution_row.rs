//! Statements that write and read rows of the audit log.

use super::{
    execution_record::DecodedRecord,
    fault::Fault,
    legacy_audit_record::{self, LegacyAuditRecord},
};
use sqlx::{Row, sqlite::SqliteRow};
use std::fmt::Write as _;
use toolstead_domain::{CallId, ExecutionOutcome, OutcomeKind, ToolExecution};

/// Number of parameters per row, in the order in which
/// [`PendingRecord::bind`](super::pending_record::PendingRecord::bind) binds them.
pub(super) const PARAMETERS: usize = 11;

/// Returns the statement that writes this number of rows. It does not change a final row.
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
        // Writing to a `String` never fails.
        let _ = write!(statement, "{before} {column} = excluded.{column}");
    }
    statement.push_str(" WHERE tool_executions.outcome = 'running'");
    statement
}

/// Returns the value for the column `outcome`. A call that waits for its client is stored as running, so that it is
/// marked as interrupted if its process dies.
pub(super) fn stored_as(outcome: OutcomeKind) -> OutcomeKind {
    if outcome == OutcomeKind::InputRequired { OutcomeKind::Running } else { outcome }
}

/// Returns the values of the column `outcome` that match this outcome; `None` stands for any. In older versions a
/// question ended the call, and its rows have a value of their own.
pub(super) fn stored_outcomes(outcome: Option<OutcomeKind>) -> Vec<Option<OutcomeKind>> {
    match outcome {
        Some(OutcomeKind::InputRequired) => vec![outcome, Some(OutcomeKind::Running)],
        other => vec![other],
    }
}

/// Start of every statement that reads rows. [`read`] relies on the order of the columns.
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

/// Reads a row of a statement that starts with `select_executions!`.
pub(super) fn read(row: &SqliteRow) -> Result<ToolExecution, Fault> {
    let Some(record) = row.try_get::<Option<&str>, _>(legacy_audit_record::COLUMNS + 1)? else {
        return LegacyAuditRecord::read(row)?.into_execution();
    };
    let mut execution = DecodedRecord::decode(record.as_bytes())?.execution;
    execution.id = CallId(row.try_get(0)?);
    // The record was written by the process that ran the call. After that process died, another one marked the row.
    if row.try_get::<&str, _>(15)? == OutcomeKind::Interrupted.as_str() {
        execution.outcome = ExecutionOutcome::Interrupted;
    }
    Ok(execution)
}

/// Returns the sequence number of a row of a statement that starts with `select_executions!`.
pub(super) fn seq(row: &SqliteRow) -> Result<i64, Fault> {
    Ok(row.try_get(legacy_audit_record::COLUMNS)?)
}
