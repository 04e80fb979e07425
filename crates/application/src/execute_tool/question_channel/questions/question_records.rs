//! Audit records of questions. Each question has one, which ends in exactly one outcome.

use super::client_adaptation::host_of;
use crate::execute_tool::{
    ports::ExecuteToolPorts,
    record::{CallRecord, digest},
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use toolstead_domain::{
    AuditedRequestKind, CallId, CallLabels, CancelReason, Clock, ExecutionLog, ExecutionOutcome, InputRequest,
    InputResponse, NotAnswered, ToolCall, ToolExecution, error_kind::ErrorKind,
};
use uuid::Uuid;

/// Writer of the audit records of questions, including withdrawn ones.
pub(in crate::execute_tool::question_channel) struct QuestionAuditWriter {
    log: Arc<dyn ExecutionLog>,
    clock: Arc<dyn Clock>,
    /// Final records that are not stored yet.
    left: Mutex<Vec<ToolExecution>>,
    writing: tokio::sync::Mutex<()>,
}

impl QuestionAuditWriter {
    pub(super) fn new(ports: &ExecuteToolPorts) -> Self {
        Self {
            log: ports.log.clone(),
            clock: ports.clock.clone(),
            left: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Stores the remaining final records. Failures are logged.
    pub(in crate::execute_tool::question_channel) async fn settle(&self) {
        let _writing = self.writing.lock().await;
        let left = std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner));
        for row in left {
            let id = row.id;
            if let Err(error) = self.log.record(row).await {
                tracing::error!(question = %id, error = &error as &dyn std::error::Error, "the end of a question is not recorded");
            }
        }
    }

    fn leave(&self, row: ToolExecution) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).push(row);
    }
}

/// Returns the audit record of a question that is being asked. It contains the text for the user as far as `[audit]
/// arguments` allows, and only the host of a page's URL.
pub(super) fn question_record(
    call: &ToolCall,
    record: &CallRecord,
    request: &InputRequest,
    clock: &dyn Clock,
) -> ToolExecution {
    let mut params = request.params.clone();
    if let Some(url) = params.get_mut("url") {
        *url = host_of(url.as_str().unwrap_or_default()).unwrap_or("?").into();
    }
    let of_call = record.execution();
    ToolExecution {
        id: CallId(Uuid::now_v7()),
        parent: Some(call.id),
        kind: AuditedRequestKind::Question,
        tool: request.method.chars().take(128).collect(),
        called_as: call.tool.server().map_or_else(|| call.tool.name().to_string(), ToString::to_string),
        source: of_call.source.to_owned(),
        principal: of_call.principal.to_owned(),
        session: of_call.session.to_owned(),
        client: of_call.client.to_owned(),
        arguments: record.recorded_value(&params, "questions"),
        arguments_digest: digest(&request.params).0.into(),
        accesses: Vec::new(),
        decision: None,
        started: clock.now(),
        ended: None,
        outcome: ExecutionOutcome::InputRequired,
        result_bytes: 0,
        result_digest: None,
        metadata: Value::Null,
        labels: CallLabels::default(),
    }
}

/// End of a question, without the answer itself.
pub(super) struct QuestionEnd {
    pub(super) word: &'static str,
    /// Reason of the client or of the runtime.
    pub(super) detail: String,
    end: QuestionOutcome,
}

enum QuestionOutcome {
    Answered,
    Refused(ErrorKind),
    Failed(ErrorKind),
    Cancelled,
}

impl QuestionEnd {
    pub(super) fn of(method: &str, said: &Result<InputResponse, NotAnswered>) -> Self {
        let (word, end) = match said {
            Ok(InputResponse(answer)) if method == "elicitation/create" => match answer["action"].as_str() {
                Some("decline") => ("declined", QuestionOutcome::Refused(ErrorKind::PermissionDenied)),
                Some("cancel") => ("cancelled", QuestionOutcome::Cancelled),
                _ => ("answered", QuestionOutcome::Answered),
            },
            Ok(_) => ("answered", QuestionOutcome::Answered),
            Err(NotAnswered::Refused { .. }) => ("declined", QuestionOutcome::Refused(ErrorKind::PermissionDenied)),
            Err(NotAnswered::Unsupported) => ("unanswered", QuestionOutcome::Refused(ErrorKind::MissingCapability)),
            Err(NotAnswered::Unfit(_)) => ("unanswered", QuestionOutcome::Refused(ErrorKind::InvalidInput)),
            Err(NotAnswered::TimedOut) => ("unanswered", QuestionOutcome::Failed(ErrorKind::ApprovalTimeout)),
            Err(NotAnswered::TooMany | NotAnswered::Exhausted) => {
                ("unanswered", QuestionOutcome::Failed(ErrorKind::RateLimited))
            }
            Err(NotAnswered::NotRecorded) => ("unanswered", QuestionOutcome::Failed(ErrorKind::Internal)),
            Err(NotAnswered::Disconnected) => ("cancelled", QuestionOutcome::Cancelled),
        };
        let detail = said.as_ref().err().map(ToString::to_string).unwrap_or_default();
        Self { word, detail, end }
    }

    fn outcome(self, detail: String) -> ExecutionOutcome {
        match self.end {
            QuestionOutcome::Answered => ExecutionOutcome::Succeeded,
            QuestionOutcome::Refused(kind) => ExecutionOutcome::Refused(kind, detail),
            QuestionOutcome::Failed(kind) => ExecutionOutcome::Failed(kind, detail),
            QuestionOutcome::Cancelled => ExecutionOutcome::Cancelled(CancelReason::Client),
        }
    }
}

/// Audit record of an open question. Dropping it records that the question was withdrawn.
pub(super) struct QuestionAuditGuard {
    rows: Arc<QuestionAuditWriter>,
    row: Option<ToolExecution>,
}

impl QuestionAuditGuard {
    /// Stores the record.
    ///
    /// # Errors
    /// [`NotAnswered::NotRecorded`]. Such a question is not asked.
    pub(super) async fn open(rows: Arc<QuestionAuditWriter>, row: ToolExecution) -> Result<Self, NotAnswered> {
        let open = Self { rows: rows.clone(), row: Some(row.clone()) };
        rows.log.record(row).await.map_err(|error| {
            tracing::error!(error = &error as &dyn std::error::Error, "a question is not recorded");
            NotAnswered::NotRecorded
        })?;
        Ok(open)
    }

    /// Stores the end of the question.
    pub(super) async fn close(mut self, closed: QuestionEnd, detail: String) {
        let word = closed.word;
        self.ended(closed.outcome(detail), word);
        self.rows.settle().await;
    }

    fn ended(&mut self, outcome: ExecutionOutcome, word: &str) {
        if let Some(row) = self.row.take() {
            let (ended, metadata) = (Some(self.rows.clock.now()), json!({"answer": word}));
            self.rows.leave(ToolExecution { outcome, ended, metadata, ..row });
        }
    }
}

impl Drop for QuestionAuditGuard {
    fn drop(&mut self) {
        self.ended(ExecutionOutcome::Cancelled(CancelReason::Client), "taken back");
    }
}
