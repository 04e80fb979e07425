//! The audit log.

use super::{
    backlog, execution_record,
    execution_row::{self, select_executions},
    fault::{Fault, store_error},
    pending_record::PendingRecord,
    writer::WriterHandle,
};
use async_trait::async_trait;
use futures::future::{self, BoxFuture};
use sqlx::SqlitePool;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, btree_map::Entry},
    sync::Arc,
};
use toolstead_domain::{
    AuditedRequestKind, BorrowedToolExecution, CallId, ExecutionFilter, ExecutionLog, OutcomeKind, StoreError,
    ToolExecution,
};
use uuid::Uuid;

/// Adapter that records through the [`WriterHandle`], and reads from the pool and the backlog.
#[derive(Debug)]
pub(super) struct SqliteExecutionLog {
    /// `None` if the audit log is read-only.
    writer: Option<WriterHandle>,
    backlog: backlog::BacklogLocation,
    readers: SqlitePool,
}

impl SqliteExecutionLog {
    /// Creates the audit log of this database.
    pub(super) fn new(writer: WriterHandle, readers: SqlitePool) -> Self {
        Self { backlog: writer.backlog(), writer: Some(writer), readers }
    }

    /// Creates an audit log that accepts no records.
    pub(super) fn only_to_read(backlog: backlog::BacklogLocation, readers: SqlitePool) -> Self {
        Self { writer: None, backlog, readers }
    }

    fn writer(&self) -> Result<&WriterHandle, Arc<Fault>> {
        self.writer.as_ref().ok_or_else(|| Fault::Closed.into())
    }

    fn put(&self, execution: BorrowedToolExecution<'_>) -> BoxFuture<'_, Result<(), StoreError>> {
        let id = execution.id;
        let failed = move |fault: Arc<Fault>| store_error(format!("record the call {id}"), fault);
        let writer = match self.writer() {
            Ok(writer) => writer,
            Err(fault) => return Box::pin(future::ready(Err(failed(fault)))),
        };
        match writer.append(PendingRecord::new(execution, writer.instance())) {
            Ok(()) => Box::pin(future::ready(Ok(()))),
            Err(record) => Box::pin(async move { writer.commit(record).await.map_err(failed) }),
        }
    }

    async fn rows(&self, filter: &ExecutionFilter) -> Result<Vec<ToolExecution>, Fault> {
        // The backlog is read first: records that are committed meanwhile are in the database afterwards.
        let waiting = self.waiting(|_| true).await?;
        let mut listed = BTreeMap::new();
        for (at, row) in waiting.into_iter().enumerate() {
            // A record without a row in the database follows all stored rows.
            let stored = self.stored(row.id).await?;
            let place = stored.as_ref().map_or(RecordPosition::Waiting(at), |(seq, _)| RecordPosition::Stored(*seq));
            // A final record never changes.
            listed.insert(place, stored.map(|(_, row)| row).filter(|row| row.outcome.is_final()).unwrap_or(row));
        }
        let before = match filter.before {
            None => None,
            Some(id) => match listed.iter().find(|(_, row)| row.id == id) {
                Some((place, _)) => Some(*place),
                None => match self.stored(id).await? {
                    Some((seq, _)) => Some(RecordPosition::Stored(seq)),
                    None => return Ok(Vec::new()),
                },
            },
        };
        let mut rows = Vec::new();
        for outcome in execution_row::stored_outcomes(filter.outcome) {
            let mut stored = filter.clone();
            stored.outcome = outcome;
            // Running and parked calls have the same stored outcome. Their number is bounded by the limit of open
            // calls.
            let is_open = outcome == Some(OutcomeKind::Running);
            let limit = if is_open { i64::MAX } else { i64::from(filter.limit) };
            let found = sqlx::query(statement(&stored))
                .bind(match before {
                    Some(RecordPosition::Stored(seq)) => seq,
                    Some(RecordPosition::Waiting(_)) | None => i64::MAX,
                })
                .bind(filter.tool.clone())
                .bind(filter.principal.clone())
                .bind(outcome.map(OutcomeKind::as_str))
                .bind(limit)
                .bind(filter.client.clone())
                .bind(filter.since.map(|since| since.0))
                .bind(filter.label.as_ref().map(|(name, value)| execution_record::encoded_label(name, value)))
                .bind(filter.parent.map(|parent| parent.0))
                .bind(filter.kind.map(AuditedRequestKind::as_str))
                .fetch_all(&self.readers)
                .await?;
            rows.extend(found);
        }
        // Records that were committed meanwhile are moved to their place in the database. The last one is looked up
        // first: if it is committed, those before it are too, and the order is preserved.
        let waiting: Vec<RecordPosition> =
            listed.keys().rev().filter(|place| matches!(place, RecordPosition::Waiting(_))).copied().collect();
        for place in waiting {
            if let Some(id) = listed.get(&place).map(|row| row.id)
                && let Some((seq, stored)) = self.stored(id).await?
                && let Some(read) = listed.remove(&place)
            {
                listed.insert(RecordPosition::Stored(seq), if stored.outcome.is_final() { stored } else { read });
            }
        }
        for row in &rows {
            let stored = execution_row::read(row)?;
            // A final record never changes. Of others, the one in the backlog is newer or equal.
            match listed.entry(RecordPosition::Stored(execution_row::seq(row)?)) {
                Entry::Occupied(mut known) if stored.outcome.is_final() => _ = known.insert(stored),
                Entry::Occupied(_) => {}
                Entry::Vacant(free) => _ = free.insert(stored),
            }
        }
        let listed = listed
            .into_iter()
            .rev()
            .filter(|(place, row)| before.is_none_or(|before| *place < before) && filter.fits(row));
        Ok(listed.map(|(_, row)| row).take(usize::try_from(filter.limit).unwrap_or(usize::MAX)).collect())
    }

    /// Returns the record in the database with its sequence number.
    async fn stored(&self, id: CallId) -> Result<Option<(i64, ToolExecution)>, Fault> {
        let statement = sqlx::query(select_executions!("WHERE id = $1")).bind(id.0);
        let Some(row) = statement.fetch_optional(&self.readers).await? else { return Ok(None) };
        Ok(Some((execution_row::seq(&row)?, execution_row::read(&row)?)))
    }

    /// Returns one record of each wanted call that has records in the backlog, some of which may be in the database
    /// already: its final or else newest one, at the position of its first one.
    async fn waiting(&self, is_wanted: impl Fn(CallId) -> bool + Send + 'static) -> Result<Vec<ToolExecution>, Fault> {
        let backlog = self.backlog.clone();
        let rows = tokio::task::spawn_blocking(move || {
            let (mut rows, mut places) = (Vec::<ToolExecution>::new(), HashMap::<CallId, usize>::new());
            for row in backlog.records(is_wanted)?.into_iter().map(|record| record.execution) {
                match places.get(&row.id) {
                    // As in the database, a final record never changes.
                    Some(place) if rows[*place].outcome.is_final() => {}
                    Some(place) => rows[*place] = row,
                    None => {
                        places.insert(row.id, rows.len());
                        rows.push(row);
                    }
                }
            }
            Ok(rows)
        });
        rows.await.map_err(|_| Fault::Closed)?
    }

    async fn found(&self, id: CallId) -> Result<Option<ToolExecution>, Fault> {
        let waiting = self.waiting(move |waiting| waiting == id).await?.pop();
        Ok(match self.stored(id).await? {
            Some((_, row)) if row.outcome.is_final() => Some(row),
            stored => waiting.or(stored.map(|(_, row)| row)),
        })
    }

    async fn ids(&self, digits: &str, at_most: u32) -> Result<Vec<CallId>, Fault> {
        let whole = |rest: char| -> Option<Uuid> {
            let padded: String = digits.chars().chain(std::iter::repeat(rest)).take(32.max(digits.len())).collect();
            Uuid::try_parse(&padded).ok()
        };
        let (Some(first), Some(last)) = (whole('0'), whole('f')) else { return Ok(Vec::new()) };
        let waiting = self.waiting(move |id| (first..=last).contains(&id.0)).await?;
        let statement = "SELECT id FROM tool_executions WHERE id BETWEEN $1 AND $2 ORDER BY id LIMIT $3";
        let stored: Vec<Uuid> =
            sqlx::query_scalar(statement).bind(first).bind(last).bind(at_most).fetch_all(&self.readers).await?;
        let all: BTreeSet<CallId> = stored.into_iter().map(CallId).chain(waiting.iter().map(|row| row.id)).collect();
        Ok(all.into_iter().take(at_most as usize).collect())
    }
}

/// Position of a record in the order of recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RecordPosition {
    /// Stored in the database with this sequence number.
    Stored(i64),
    /// At this position in the backlog.
    Waiting(usize),
}

#[async_trait]
impl ExecutionLog for SqliteExecutionLog {
    async fn record(&self, execution: ToolExecution) -> Result<(), StoreError> {
        // Dropped before the future is polled, so that a pending record is in memory once.
        let recorded = self.put((&execution).into());
        drop(execution);
        recorded.await
    }

    /// Records before it returns, unless it has to wait for a commit. For most calls the future is a few bytes.
    fn record_ref<'life0, 'life1, 'async_trait>(
        &'life0 self,
        execution: BorrowedToolExecution<'life1>,
    ) -> BoxFuture<'async_trait, Result<(), StoreError>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        self.put(execution)
    }

    async fn find(&self, id: CallId) -> Result<Option<ToolExecution>, StoreError> {
        self.found(id).await.map_err(|fault| store_error(format!("read the call {id}"), fault))
    }

    async fn beginning_with(&self, digits: &str, at_most: u32) -> Result<Vec<CallId>, StoreError> {
        self.ids(digits, at_most).await.map_err(|fault| store_error("read the ids of the calls", fault))
    }

    async fn list(&self, filter: &ExecutionFilter) -> Result<Vec<ToolExecution>, StoreError> {
        self.rows(filter).await.map_err(|fault| store_error("list the calls", fault))
    }

    async fn check(&self) -> Result<(), StoreError> {
        let failed = |fault| store_error("record a call", fault);
        self.writer().map_err(failed)?.check().await.map_err(failed)
    }
}

/// Returns the statement that scans the most selective index from the newest record, and checks the other conditions on
/// each row.
///
/// Parameters of all statements: before, tool, principal, outcome, limit, client, since, label, parent, kind.
fn statement(filter: &ExecutionFilter) -> &'static str {
    macro_rules! statement {
        ($index:literal, $first:literal, $($rest:literal),*) => {
            select_executions!(
                $index, "WHERE ", $first, "seq < $1 ", $($rest,)*
                "AND ($6 IS NULL OR client = $6 OR substr(client, 1, length($6) + 1) = $6 || ' ') ",
                "AND ($7 IS NULL OR started >= $7) ",
                "AND ($8 IS NULL OR instr(labels, $8) > 0) AND ($9 IS NULL OR parent = $9) ",
                "AND ($10 IS NULL OR coalesce(kind, 'tool') = $10) ",
                "ORDER BY seq DESC LIMIT $5",
            )
        };
    }
    if filter.parent.is_some() {
        return statement!(
            "INDEXED BY tool_executions_by_parent ",
            "parent = $9 AND parent IS NOT NULL AND ",
            "AND ($2 IS NULL OR tool = $2) AND ($3 IS NULL OR principal = $3) AND ($4 IS NULL OR outcome = $4) "
        );
    }
    match (filter.outcome, &filter.tool, &filter.principal) {
        (Some(outcome), _, _) if outcome != OutcomeKind::Succeeded => statement!(
            "INDEXED BY tool_executions_by_outcome ",
            "outcome = $4 AND outcome <> 'succeeded' AND ",
            "AND ($2 IS NULL OR tool = $2) AND ($3 IS NULL OR principal = $3) "
        ),
        (_, Some(_), _) => statement!(
            "INDEXED BY tool_executions_by_tool ",
            "tool = $2 AND ",
            "AND ($3 IS NULL OR principal = $3) AND ($4 IS NULL OR outcome = $4) "
        ),
        (_, None, Some(_)) => statement!(
            "INDEXED BY tool_executions_by_principal ",
            "principal = $3 AND ",
            "AND ($4 IS NULL OR outcome = $4) "
        ),
        (_, None, None) => statement!("", "", "AND ($4 IS NULL OR outcome = $4) "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::new_database::{TestDatabase, new_database};

    #[tokio::test]
    async fn every_execution_list_query_is_a_single_index_search() {
        let TestDatabase { folder: _folder, mut connection, .. } = new_database().await;
        let [tool, principal] = [Some("t".to_owned()), Some("p".to_owned())];
        let outcomes = [None, Some(OutcomeKind::Succeeded), Some(OutcomeKind::Failed)];
        let parent = Some(CallId(Uuid::nil()));
        for (tool, principal, parent) in [
            (None, None, None),
            (tool.clone(), None, None),
            (None, principal.clone(), None),
            (tool.clone(), principal, None),
            (None, None, parent),
            (tool, None, parent),
        ] {
            for outcome in outcomes {
                let filter = ExecutionFilter {
                    parent,
                    tool: tool.clone(),
                    principal: principal.clone(),
                    outcome,
                    ..ExecutionFilter::default()
                };
                let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", statement(&filter)));
                let plan: Vec<(i64, i64, i64, String)> =
                    sqlx::query_as(explain).fetch_all(&mut connection).await.unwrap();
                let [(.., step)] = plan.as_slice() else { panic!("{filter:?} takes several steps: {plan:?}") };
                assert!(step.starts_with("SEARCH tool_executions USING "), "{filter:?}: {step}");
            }
        }
    }
}
