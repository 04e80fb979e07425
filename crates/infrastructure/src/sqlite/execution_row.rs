//! How a row of the audit trail is written and read.

use super::fault::Fault;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{Row, sqlite::SqliteRow};
use std::{borrow::Cow, collections::BTreeMap, error::Error};
use toolstead_domain::{
    error_kind::ErrorKind,
    labels::Labels,
    ports::clock::Timestamp,
    tool_call::CallId,
    tool_execution::{CancelReason, Outcome, OutcomeKind, RecordedDecision, RequestKind, ToolExecution},
};
use uuid::Uuid;

/// Writes a row, as [`PackedRow::bind`](super::packed_row::PackedRow::bind) gives it. A row that is final stays as it is.
pub(super) const RECORD: &str = "
    INSERT INTO tool_executions (
        id, tool, called_as, source, principal, session, client, arguments, arguments_digest, accesses,
        verdict, reason, approved_by, started, ended, outcome, error_kind, detail, result_bytes, result_digest, instance,
        trace, metadata, labels, parent, kind
    )
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
        ?24, ?25, ?26)
    ON CONFLICT (id) DO UPDATE SET
        tool = excluded.tool, called_as = excluded.called_as, source = excluded.source,
        principal = excluded.principal, session = excluded.session, client = excluded.client,
        arguments = excluded.arguments, arguments_digest = excluded.arguments_digest, accesses = excluded.accesses,
        verdict = excluded.verdict, reason = excluded.reason, approved_by = excluded.approved_by,
        started = excluded.started, ended = excluded.ended, outcome = excluded.outcome,
        error_kind = excluded.error_kind, detail = excluded.detail, result_bytes = excluded.result_bytes,
        result_digest = excluded.result_digest, instance = excluded.instance,
        trace = excluded.trace, metadata = excluded.metadata, labels = excluded.labels, parent = excluded.parent,
        kind = excluded.kind
    WHERE tool_executions.outcome = 'running'";

/// The parameters of [`RECORD`] that are texts, in the order of [`RecordedRow::texts`].
pub(super) const TEXTS: [usize; 20] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18, 20, 22, 23, 24, 26];

/// A row on its way to the disk, a field a column.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RecordedRow<'a> {
    pub(super) id: Uuid,
    tool: Cow<'a, str>,
    called_as: Cow<'a, str>,
    source: Cow<'a, str>,
    principal: Cow<'a, str>,
    session: Cow<'a, str>,
    client: Cow<'a, str>,
    arguments: Option<Cow<'a, str>>,
    arguments_digest: Cow<'a, str>,
    accesses: Cow<'a, str>,
    verdict: Option<Cow<'a, str>>,
    reason: Option<Cow<'a, str>>,
    approved_by: Option<Cow<'a, str>>,
    pub(super) started: i64,
    pub(super) ended: Option<i64>,
    outcome: Cow<'a, str>,
    error_kind: Option<Cow<'a, str>>,
    detail: Option<Cow<'a, str>>,
    pub(super) result_bytes: i64,
    result_digest: Option<Cow<'a, str>>,
    /// The process that writes it; kept while the call runs or waits, and by nothing that is final.
    pub(super) instance: Option<Uuid>,
    trace: Option<Cow<'a, str>>,
    /// Absent in files of versions that did not keep it.
    #[serde(default)]
    metadata: Option<Cow<'a, str>>,
    /// The same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    labels: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<Uuid>,
    /// Absent of a call of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<Cow<'a, str>>,
}

impl<'a> RecordedRow<'a> {
    /// The row of a call of this process.
    pub(super) fn new(execution: &'a ToolExecution, instance: Uuid) -> Self {
        let decision = execution.decision.as_ref();
        let trace = decision.map(|decision| &decision.trace).filter(|trace| !trace.is_null());
        Self {
            id: execution.id.0,
            tool: text(&execution.tool),
            called_as: text(&execution.called_as),
            source: text(&execution.source),
            principal: text(&execution.principal),
            session: text(&execution.session),
            client: text(&execution.client),
            arguments: (!execution.arguments.is_null()).then(|| json(&execution.arguments).into()),
            arguments_digest: text(&execution.arguments_digest),
            accesses: json(&execution.accesses).into(),
            verdict: decision.map(|decision| text(&decision.verdict)),
            reason: decision.map(|decision| text(&decision.reason)),
            approved_by: decision.and_then(|decision| decision.approved_by.as_deref()).map(text),
            started: execution.started.0,
            ended: execution.ended.map(|ended| ended.0),
            outcome: text(stored_as(execution.outcome.kind()).as_str()),
            error_kind: execution.outcome.error_kind().map(|kind| text(kind.as_str())),
            // SQLite's integers have a sign.
            result_bytes: i64::try_from(execution.result_bytes).unwrap_or(i64::MAX),
            result_digest: execution.result_digest.as_deref().map(text),
            instance: (!execution.outcome.is_final()).then_some(instance),
            trace: trace.map(|trace| json(trace).into()),
            metadata: (!execution.metadata.is_null()).then(|| json(&execution.metadata).into()),
            labels: written_labels(&execution.labels).map(Cow::from),
            parent: execution.parent.map(|parent| parent.0),
            kind: (execution.kind != RequestKind::Tool).then(|| text(execution.kind.as_str())),
            detail: detail(&execution.outcome).map(text),
        }
    }

    /// What was recorded.
    pub(super) fn into_execution(self) -> Result<ToolExecution, Fault> {
        let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        let trace = self.trace.map_or(Ok(Value::Null), |text| parse(&text))?;
        let reason = owned(self.reason).unwrap_or_default();
        let approved_by = owned(self.approved_by);
        Ok(ToolExecution {
            id: CallId(self.id),
            parent: self.parent.map(CallId),
            kind: kind(self.kind.as_deref())?,
            tool: self.tool.into(),
            called_as: self.called_as.into(),
            source: self.source.into(),
            principal: self.principal.into(),
            session: self.session.into(),
            client: self.client.into(),
            arguments: self.arguments.map_or(Ok(Value::Null), |text| parse(&text))?,
            arguments_digest: self.arguments_digest.into(),
            accesses: serde_json::from_str(&self.accesses).map_err(unreadable)?,
            decision: owned(self.verdict).map(|verdict| RecordedDecision { verdict, reason, approved_by, trace }),
            started: Timestamp(self.started),
            ended: self.ended.map(Timestamp),
            outcome: outcome(&self.outcome, self.error_kind, owned(self.detail).unwrap_or_default())?,
            result_bytes: u64::try_from(self.result_bytes).unwrap_or(0),
            result_digest: owned(self.result_digest),
            metadata: self.metadata.map_or(Ok(Value::Null), |text| parse(&text))?,
            labels: self.labels.map_or_else(|| Ok(Labels::default()), |text| labels(&text))?,
        })
    }

    /// Tells whether it stays as it is once it is written.
    pub(super) fn is_final(&self) -> bool {
        self.outcome != OutcomeKind::Running.as_str()
    }

    /// About how long its texts are, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let texts = [&self.arguments, &self.trace, &self.detail, &self.metadata, &self.labels].into_iter().flatten();
        self.accesses.len() + texts.map(|text| text.len()).sum::<usize>()
    }

    /// Its texts, in the order of [`TEXTS`].
    pub(super) fn texts(&self) -> [Option<&str>; TEXTS.len()] {
        [
            Some(&self.tool),
            Some(&self.called_as),
            Some(&self.source),
            Some(&self.principal),
            Some(&self.session),
            Some(&self.client),
            self.arguments.as_deref(),
            Some(&self.arguments_digest),
            Some(&self.accesses),
            self.verdict.as_deref(),
            self.reason.as_deref(),
            self.approved_by.as_deref(),
            Some(&self.outcome),
            self.error_kind.as_deref(),
            self.detail.as_deref(),
            self.result_digest.as_deref(),
            self.trace.as_deref(),
            self.metadata.as_deref(),
            self.labels.as_deref(),
            Some(self.kind.as_deref().unwrap_or(RequestKind::Tool.as_str())),
        ]
    }
}

fn text(text: &str) -> Cow<'_, str> {
    text.into()
}

/// As compact JSON, which values of JSON and texts always have. `Display` would write it a few characters at a time.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A JSON object in which a label stands as [`written_label`] writes it; `None` where there are no labels.
fn written_labels(labels: &Labels) -> Option<String> {
    let all: BTreeMap<&str, &str> = labels.iter().collect();
    (!all.is_empty()).then(|| json(&all))
}

/// The text that is in the labels of a row if and only if it bears this one: a quote within a value is written with a
/// backslash before it.
pub(super) fn written_label(name: &str, value: &str) -> String {
    format!("{}:{}", json(&name), json(&value))
}

fn labels(text: &str) -> Result<Labels, Fault> {
    let all: BTreeMap<String, String> = serde_json::from_str(text).map_err(unreadable)?;
    all.into_iter().try_fold(Labels::default(), |labels, (name, value)| labels.with(&name, value)).map_err(unreadable)
}

/// The detail of a call that runs, and waits for its client meanwhile: it is marked as interrupted as one that runs.
const WAITS: &str = "input_required";

/// The outcome that a call has in the database.
fn stored_as(outcome: OutcomeKind) -> OutcomeKind {
    if outcome == OutcomeKind::InputRequired { OutcomeKind::Running } else { outcome }
}

/// The outcomes that rows of this one have in the database: those of versions in which a question ended the call have
/// their own.
pub(super) fn stored_outcomes(outcome: Option<OutcomeKind>) -> Vec<Option<OutcomeKind>> {
    match outcome {
        Some(OutcomeKind::InputRequired) => vec![outcome, Some(OutcomeKind::Running)],
        other => vec![other],
    }
}

fn detail(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::InputRequired => Some(WAITS),
        Outcome::Failed(_, message) | Outcome::Refused(_, message) => Some(message),
        Outcome::Cancelled(reason) => Some(reason.as_str()),
        Outcome::Running | Outcome::Succeeded | Outcome::Interrupted => None,
    }
}

/// Begins every statement that reads rows; [`read`] knows the order.
macro_rules! select_executions {
    ($($rest:literal),* $(,)?) => {
        concat!(
            "SELECT id, tool, called_as, source, principal, session, client, arguments, arguments_digest, accesses, ",
            "verdict, reason, approved_by, started, ended, outcome, error_kind, detail, result_bytes, result_digest, ",
            "trace, metadata, labels, parent, kind, seq ",
            "FROM tool_executions ",
            $($rest),*
        )
    };
}
pub(super) use select_executions;

/// Reads a row of a statement that began with `select_executions!`.
pub(super) fn read(row: &SqliteRow) -> Result<ToolExecution, Fault> {
    let text = |column: usize| row.try_get::<String, _>(column).map(Cow::from);
    let optional = |column: usize| row.try_get::<Option<String>, _>(column).map(|text| text.map(Cow::from));
    let row = RecordedRow {
        id: row.try_get(0)?,
        tool: text(1)?,
        called_as: text(2)?,
        source: text(3)?,
        principal: text(4)?,
        session: text(5)?,
        client: text(6)?,
        arguments: optional(7)?,
        arguments_digest: text(8)?,
        accesses: text(9)?,
        verdict: optional(10)?,
        reason: optional(11)?,
        approved_by: optional(12)?,
        started: row.try_get(13)?,
        ended: row.try_get(14)?,
        outcome: text(15)?,
        error_kind: optional(16)?,
        detail: optional(17)?,
        result_bytes: row.try_get(18)?,
        result_digest: optional(19)?,
        instance: None,
        trace: optional(20)?,
        metadata: optional(21)?,
        labels: optional(22)?,
        parent: row.try_get(23)?,
        kind: optional(24)?,
    };
    row.into_execution()
}

/// Where a row of such a statement stands in the order of recording.
pub(super) fn seq(row: &SqliteRow) -> Result<i64, Fault> {
    Ok(row.try_get(25)?)
}

fn kind(text: Option<&str>) -> Result<RequestKind, Fault> {
    let Some(text) = text else { return Ok(RequestKind::Tool) };
    RequestKind::parse(text).ok_or_else(|| unreadable(format!("the kind of request `{text}` is not known")))
}

fn outcome(kind: &str, error_kind: Option<Cow<'_, str>>, detail: String) -> Result<Outcome, Fault> {
    let unknown = || unreadable(format!("the outcome `{kind}` is not known"));
    Ok(match OutcomeKind::parse(kind).ok_or_else(unknown)? {
        OutcomeKind::Running if detail == WAITS => Outcome::InputRequired,
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
fn error(kind: Option<Cow<'_, str>>, message: String) -> (ErrorKind, String) {
    let kind = kind.unwrap_or_default();
    match ErrorKind::from_name(&kind) {
        Some(kind) => (kind, message),
        None => (ErrorKind::Internal, format!("{kind}: {message}")),
    }
}

fn parse(text: &str) -> Result<Value, Fault> {
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
