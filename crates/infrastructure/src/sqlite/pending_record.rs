//! Audit record on its way from the thread of its call to the thread that writes it.

use super::{
    execution_record::{DecodedRecord, encode, encode_labels, estimated_bytes},
    execution_row::{PARAMETERS, stored_as},
};
use rusqlite::Statement;
use toolstead_domain::{AuditedRequestKind, BorrowedToolExecution, OutcomeKind};
use uuid::Uuid;

/// Encoded record with the columns of its row. All texts share one allocation: freeing an allocation on another thread
/// misses the cache, which costs more than a copy.
#[derive(Debug)]
pub(super) struct PendingRecord {
    id: Uuid,
    parent: Option<Uuid>,
    instance: Option<Uuid>,
    started: i64,
    outcome: OutcomeKind,
    kind: AuditedRequestKind,
    /// Line of the backlog file, followed by tool, principal, client and labels.
    texts: String,
    /// End of each part of `texts` except the last, in bytes.
    ends: [usize; 4],
}

impl PendingRecord {
    /// Encodes the record of a call of this process.
    pub(super) fn new<'a>(execution: impl Into<BorrowedToolExecution<'a>>, instance: Uuid) -> Self {
        let execution = execution.into();
        let mut line = Vec::with_capacity(estimated_bytes(&execution));
        encode(&execution, instance, &mut line);
        line.push(b'\n');
        Self::with_line(line, &execution, Some(instance))
    }

    /// Returns a record of a backlog file. A record in the canonical form is not encoded again.
    pub(super) fn read(line: &[u8], record: &DecodedRecord) -> Self {
        let (execution, instance) = (&record.execution, record.instance);
        if record.is_canonical {
            return Self::with_line([line, b"\n"].concat(), &execution.into(), instance);
        }
        Self { instance, ..Self::new(execution, instance.unwrap_or_default()) }
    }

    fn with_line(mut texts: Vec<u8>, execution: &BorrowedToolExecution<'_>, instance: Option<Uuid>) -> Self {
        let line = texts.len();
        let [tool, principal, client] = [execution.tool, execution.principal, execution.client].map(|column| {
            texts.extend_from_slice(column.as_bytes());
            texts.len()
        });
        if !execution.labels.is_empty() {
            encode_labels(execution.labels, &mut texts);
        }
        Self {
            id: execution.id.0,
            parent: execution.parent.map(|parent| parent.0),
            instance: instance.filter(|_| !execution.outcome.is_final()),
            started: execution.started.0,
            outcome: stored_as(execution.outcome.kind()),
            kind: execution.kind,
            // JSON and texts are valid UTF-8.
            texts: String::from_utf8(texts).unwrap_or_default(),
            ends: [line, tool, principal, client],
        }
    }

    /// Returns the id of the call.
    pub(super) fn id(&self) -> Uuid {
        self.id
    }

    /// Returns `true` if a later record of the call has no effect.
    pub(super) fn is_final(&self) -> bool {
        self.outcome != OutcomeKind::Running
    }

    /// Returns the length of the texts in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.texts.len()
    }

    /// Returns the encoded record, with a line end after it.
    pub(super) fn line(&self) -> &str {
        self.text(0, self.ends[0])
    }

    fn text(&self, start: usize, end: usize) -> &str {
        self.texts.get(start..end).unwrap_or_default()
    }

    /// Binds the parameters of the row at this position in a statement of
    /// [`record_statement`](super::execution_row::record_statement).
    pub(super) fn bind(&self, statement: &mut Statement<'_>, row: usize) -> rusqlite::Result<()> {
        let first = row * PARAMETERS;
        let [line, tool, principal, client] = self.ends;
        let labels = self.text(client, self.texts.len());
        statement.raw_bind_parameter(first + 1, self.id.as_bytes())?;
        statement.raw_bind_parameter(first + 2, self.text(line, tool))?;
        statement.raw_bind_parameter(first + 3, self.text(tool, principal))?;
        statement.raw_bind_parameter(first + 4, self.text(principal, client))?;
        statement.raw_bind_parameter(first + 5, self.started)?;
        statement.raw_bind_parameter(first + 6, self.outcome.as_str())?;
        statement.raw_bind_parameter(first + 7, self.instance.as_ref().map(Uuid::as_bytes))?;
        statement.raw_bind_parameter(first + 8, self.parent.as_ref().map(Uuid::as_bytes))?;
        statement.raw_bind_parameter(first + 9, (!labels.is_empty()).then_some(labels))?;
        statement
            .raw_bind_parameter(first + 10, (self.kind != AuditedRequestKind::Tool).then(|| self.kind.as_str()))?;
        statement.raw_bind_parameter(first + 11, self.text(0, line.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{
        connection::readers,
        execution_row::{read, select_executions},
        new_database::new_database,
    };
    use serde_json::json;
    use toolstead_domain::{
        CallLabels, ExecutionOutcome, RecordedDecision, ToolExecution, error_kind::ErrorKind, testing::samples,
    };

    #[tokio::test]
    async fn every_stored_field_is_read_back_unchanged_even_if_it_is_empty() {
        let mut database = new_database().await;
        let full = ToolExecution {
            parent: Some(samples::call_id(9)),
            kind: AuditedRequestKind::Prompt,
            tool: "the tool".into(),
            called_as: String::new(),
            source: "the source".into(),
            principal: "the principal".into(),
            session: "the session".into(),
            client: "the client ä".into(),
            arguments: json!({"argument": "\"ö\""}),
            arguments_digest: "the digest".into(),
            accesses: vec!["read /x".into()],
            decision: Some(RecordedDecision {
                verdict: "ask".into(),
                reason: String::new(),
                approved_by: Some("somebody".into()),
                trace: json!(["trace"]),
            }),
            outcome: ExecutionOutcome::Failed(ErrorKind::Timeout, "late".into()),
            result_bytes: 7,
            result_digest: Some("the other digest".into()),
            metadata: json!({"lines": 1}),
            labels: CallLabels::default().with("label", "value").unwrap(),
            ..samples::execution(1)
        };
        let rows = [full, samples::execution(2), samples::running_execution(3)];
        let pending = rows.each_ref().map(|row| PendingRecord::new(row, Uuid::from_u128(1)));
        assert!(database.recorder.record(pending.iter()).unwrap().iter().all(Result::is_ok));
        let stored = sqlx::query(select_executions!("ORDER BY seq"))
            .fetch_all(&readers(&database.options.path, &database.options))
            .await
            .unwrap();
        let stored: Vec<ToolExecution> = stored.iter().map(|row| read(row).unwrap()).collect();
        assert_eq!(stored, rows);
    }

    #[test]
    fn a_record_that_was_read_has_the_bytes_that_were_written() {
        for execution in [samples::execution(1), samples::running_execution(2)] {
            let written = PendingRecord::new(&execution, Uuid::from_u128(7));
            let line = written.line().trim_matches('\n').as_bytes();
            let read = PendingRecord::read(line, &DecodedRecord::decode(line).unwrap());
            assert_eq!((read.line(), read.instance), (written.line(), written.instance));
        }
    }
}
