//! Records of versions before the canonical form, in lines of the backlog and in columns. Each member is separate, and
//! the longer ones are JSON in a text.

use super::{
    fault::Fault,
    stored_values::{kind, labels, outcome, unreadable, value},
};
use serde::Deserialize;
use sqlx::{Row, sqlite::SqliteRow};
use toolstead_domain::{CallId, ExecutionOutcome, RecordedDecision, Timestamp, ToolExecution};
use uuid::Uuid;

/// Detail of an unfinished call that waits for its client.
const WAITS: &str = "input_required";

/// Number of columns of a former row, in the order of [`LegacyAuditRecord::read`].
pub(super) const COLUMNS: usize = 25;

/// Audit record in the form of earlier versions, before the canonical form.
#[derive(Debug, Deserialize)]
pub(super) struct LegacyAuditRecord {
    id: Uuid,
    tool: String,
    called_as: String,
    source: String,
    principal: String,
    session: String,
    client: String,
    arguments: Option<String>,
    arguments_digest: String,
    accesses: String,
    verdict: Option<String>,
    reason: Option<String>,
    approved_by: Option<String>,
    started: i64,
    ended: Option<i64>,
    outcome: String,
    error_kind: Option<String>,
    detail: Option<String>,
    result_bytes: i64,
    result_digest: Option<String>,
    /// Process in which an unfinished call runs.
    pub(super) instance: Option<Uuid>,
    trace: Option<String>,
    metadata: Option<String>,
    labels: Option<String>,
    parent: Option<Uuid>,
    kind: Option<String>,
}

impl LegacyAuditRecord {
    /// Reads a row of a statement that starts with `select_executions!`.
    pub(super) fn read(row: &SqliteRow) -> Result<Self, Fault> {
        Ok(Self {
            id: row.try_get(0)?,
            tool: row.try_get(1)?,
            called_as: row.try_get(2)?,
            source: row.try_get(3)?,
            principal: row.try_get(4)?,
            session: row.try_get(5)?,
            client: row.try_get(6)?,
            arguments: row.try_get(7)?,
            arguments_digest: row.try_get(8)?,
            accesses: row.try_get(9)?,
            verdict: row.try_get(10)?,
            reason: row.try_get(11)?,
            approved_by: row.try_get(12)?,
            started: row.try_get(13)?,
            ended: row.try_get(14)?,
            outcome: row.try_get(15)?,
            error_kind: row.try_get(16)?,
            detail: row.try_get(17)?,
            result_bytes: row.try_get(18)?,
            result_digest: row.try_get(19)?,
            instance: None,
            trace: row.try_get(20)?,
            metadata: row.try_get(21)?,
            labels: row.try_get(22)?,
            parent: row.try_get(23)?,
            kind: row.try_get(24)?,
        })
    }

    /// Converts the row into the record of a call.
    pub(super) fn into_execution(self) -> Result<ToolExecution, Fault> {
        let trace = value(self.trace.as_deref());
        let (reason, approved_by) = (self.reason.unwrap_or_default(), self.approved_by);
        let outcome = match outcome(&self.outcome, self.error_kind.as_deref(), self.detail.clone().unwrap_or_default())?
        {
            ExecutionOutcome::Running if self.detail.as_deref() == Some(WAITS) => ExecutionOutcome::InputRequired,
            outcome => outcome,
        };
        let all_labels = self.labels.map_or_else(|| Ok(Default::default()), |text| serde_json::from_str(&text));
        Ok(ToolExecution {
            id: CallId(self.id),
            parent: self.parent.map(CallId),
            kind: kind(self.kind.as_deref())?,
            tool: self.tool,
            called_as: self.called_as,
            source: self.source,
            principal: self.principal,
            session: self.session,
            client: self.client,
            arguments: value(self.arguments.as_deref()),
            arguments_digest: self.arguments_digest,
            accesses: serde_json::from_str(&self.accesses).map_err(unreadable)?,
            decision: self.verdict.map(|verdict| RecordedDecision { verdict, reason, approved_by, trace }),
            started: Timestamp(self.started),
            ended: self.ended.map(Timestamp),
            outcome,
            result_bytes: u64::try_from(self.result_bytes).unwrap_or(0),
            result_digest: self.result_digest,
            metadata: value(self.metadata.as_deref()),
            labels: labels(all_labels.map_err(unreadable)?)?,
        })
    }
}
