//! A row of the audit trail on its way from the thread that made it to the one that writes it.

use super::execution_row::{RecordedRow, TEXTS};
use rusqlite::Statement;
use uuid::Uuid;

/// A row whose texts stand in one piece of memory. Each piece goes back to the thread that it was taken on, and by then is
/// in the cache of neither: that costs more than to copy what stands in it.
#[derive(Debug)]
pub(super) struct PackedRow {
    id: Uuid,
    parent: Option<Uuid>,
    instance: Option<Uuid>,
    started: i64,
    ended: Option<i64>,
    result_bytes: i64,
    is_final: bool,
    texts: Box<str>,
    /// How long each text is, in bytes; `None` where there is none.
    lengths: [Option<usize>; TEXTS.len()],
}

impl PackedRow {
    pub(super) fn of(row: &RecordedRow<'_>) -> Self {
        let texts = row.texts();
        let lengths = texts.map(|text| text.map(str::len));
        let mut all = String::with_capacity(lengths.iter().flatten().sum());
        for text in texts.into_iter().flatten() {
            all.push_str(text);
        }
        Self {
            id: row.id,
            parent: row.parent,
            instance: row.instance,
            started: row.started,
            ended: row.ended,
            result_bytes: row.result_bytes,
            is_final: row.is_final(),
            texts: all.into(),
            lengths,
        }
    }

    /// The call.
    pub(super) fn id(&self) -> Uuid {
        self.id
    }

    /// Tells whether it stays as it is once it is written.
    pub(super) fn is_final(&self) -> bool {
        self.is_final
    }

    /// How long its texts are, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.texts.len()
    }

    /// Gives the values to [`RECORD`](super::execution_row::RECORD).
    pub(super) fn bind(&self, statement: &mut Statement<'_>) -> rusqlite::Result<()> {
        statement.raw_bind_parameter(1, self.id.as_bytes())?;
        statement.raw_bind_parameter(14, self.started)?;
        statement.raw_bind_parameter(15, self.ended)?;
        statement.raw_bind_parameter(19, self.result_bytes)?;
        statement.raw_bind_parameter(21, self.instance.as_ref().map(Uuid::as_bytes))?;
        statement.raw_bind_parameter(25, self.parent.as_ref().map(Uuid::as_bytes))?;
        let mut rest = &*self.texts;
        for (parameter, length) in TEXTS.into_iter().zip(self.lengths) {
            let text = length.and_then(|length| rest.split_at_checked(length)).map(|(text, after)| {
                rest = after;
                text
            });
            statement.raw_bind_parameter(parameter, text)?;
        }
        Ok(())
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
        error_kind::ErrorKind,
        labels::Labels,
        testing::samples,
        tool_execution::{Outcome, RecordedDecision, RequestKind, ToolExecution},
    };

    #[tokio::test]
    async fn every_field_stands_in_its_column_and_an_empty_text_is_one() {
        let mut database = new_database().await;
        let full = ToolExecution {
            parent: Some(samples::call_id(9)),
            kind: RequestKind::Prompt,
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
            outcome: Outcome::Failed(ErrorKind::Timeout, "late".into()),
            result_bytes: 7,
            result_digest: Some("the other digest".into()),
            metadata: json!({"lines": 1}),
            labels: Labels::default().with("label", "value").unwrap(),
            ..samples::execution(1)
        };
        let rows = [full, samples::execution(2), samples::running_execution(3)];
        let packed = rows.each_ref().map(|row| PackedRow::of(&RecordedRow::new(row, Uuid::from_u128(1))));
        assert!(database.recorder.record(packed.iter()).unwrap().iter().all(Result::is_ok));
        let stored = sqlx::query(select_executions!("ORDER BY seq"))
            .fetch_all(&readers(&database.options.path, &database.options))
            .await
            .unwrap();
        let stored: Vec<ToolExecution> = stored.iter().map(|row| read(row).unwrap()).collect();
        assert_eq!(stored, rows);
    }
}
