//! Log lines about finished calls.

use std::time::Duration;
use toolstead_domain::{
    AuditedRequestKind, BorrowedToolExecution, CallId, OutcomeKind, Timestamp, error_kind::ErrorKind,
};
use tracing::Level;

/// Log target of the lines about finished calls.
pub const CALLS: &str = "toolstead::calls";

/// Log line of one call. The id is that of the audit record.
pub(super) struct CallLine {
    call: CallId,
    parent: Option<CallId>,
    kind: AuditedRequestKind,
    tool: String,
    principal: String,
    session: String,
    decision: Option<String>,
    approved_by: Option<String>,
    outcome: OutcomeKind,
    error: Option<ErrorKind>,
    duration: Duration,
}

impl CallLine {
    /// Returns the line of a final record; `None` if calls are not logged. Boxed, because it is in memory while the
    /// record is stored, and most calls have none.
    pub(super) fn of(record: &BorrowedToolExecution<'_>) -> Option<Box<Self>> {
        if !tracing::enabled!(target: CALLS, Level::INFO) {
            return None;
        }
        let decision = record.decision;
        Some(Box::new(Self {
            call: record.id,
            parent: record.parent,
            kind: record.kind,
            tool: record.tool.to_owned(),
            principal: record.principal.to_owned(),
            session: record.session.to_owned(),
            decision: decision.map(|decision| decision.verdict.to_owned()),
            approved_by: decision.and_then(|decision| decision.approved_by.map(str::to_owned)),
            outcome: record.outcome.kind(),
            error: record.outcome.error_kind(),
            duration: record.ended.unwrap_or(Timestamp(0)).since(record.started),
        }))
    }

    pub(super) fn log(&self) {
        tracing::info!(
            target: CALLS,
            call = %self.call,
            parent = self.parent.map(tracing::field::display),
            kind = self.kind.as_str(),
            tool = self.tool,
            decision = self.decision,
            approved_by = self.approved_by,
            outcome = self.outcome.as_str(),
            error = self.error.map(ErrorKind::as_str),
            ms = u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
            principal = self.principal,
            session = self.session,
            "call ended"
        );
    }
}
