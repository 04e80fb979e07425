//! The audit trail.

use super::{
    execution_row::{self, RecordedRow, select_executions},
    fault::{Fault, store_error},
    writer::Writer,
};
use async_trait::async_trait;
use sqlx::SqlitePool;
use std::collections::BTreeMap;
use toolstead_domain::{
    ports::{
        execution_log::{ExecutionFilter, ExecutionLog},
        tool_repository::StoreError,
    },
    tool_call::CallId,
    tool_execution::{OutcomeKind, ToolExecution},
};

/// Records through the [`Writer`], reads from the pool.
#[derive(Debug)]
pub(super) struct SqliteExecutionLog {
    writer: Writer,
    readers: SqlitePool,
}

impl SqliteExecutionLog {
    /// A log on this database.
    pub(super) fn new(writer: Writer, readers: SqlitePool) -> Self {
        Self { writer, readers }
    }

    async fn rows(&self, filter: &ExecutionFilter) -> Result<Vec<ToolExecution>, Fault> {
        // First those that wait: what is committed meanwhile is found in the database.
        let mut waiting = self.waiting(|_| true).await?;
        // Each of them may stand in place of one that the database has.
        let limit = u64::from(filter.limit) + waiting.len() as u64;
        let rows = sqlx::query(statement(filter))
            .bind(before(filter))
            .bind(filter.tool.clone())
            .bind(filter.principal.clone())
            .bind(filter.outcome.map(OutcomeKind::as_str))
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&self.readers)
            .await?;
        let mut listed = BTreeMap::new();
        for row in &rows {
            let stored = execution_row::read(row)?;
            // A final row is never changed.
            let newer = waiting.remove(&stored.id).filter(|_| !stored.outcome.is_final());
            listed.insert(stored.id, newer.unwrap_or(stored));
        }
        for (id, row) in waiting.into_iter().filter(|(_, row)| fits(filter, row)) {
            // The final row may have been committed meanwhile, and is none of the list's.
            let is_over = !row.outcome.is_final() && self.stored(id).await?.is_some_and(|row| row.outcome.is_final());
            if !is_over {
                listed.insert(id, row);
            }
        }
        let listed = listed.into_values().rev().filter(|row| fits(filter, row));
        Ok(listed.take(usize::try_from(filter.limit).unwrap_or(usize::MAX)).collect())
    }

    async fn stored(&self, id: CallId) -> Result<Option<ToolExecution>, Fault> {
        let statement = sqlx::query(select_executions!("WHERE id = $1")).bind(id.0);
        statement.fetch_optional(&self.readers).await?.as_ref().map(execution_row::read).transpose()
    }

    /// Rows that are on record, and perhaps not in the database yet.
    async fn waiting(
        &self,
        is_wanted: impl Fn(CallId) -> bool + Send + 'static,
    ) -> Result<BTreeMap<CallId, ToolExecution>, Fault> {
        let writer = self.writer.clone();
        let rows = tokio::task::spawn_blocking(move || {
            let mut rows = BTreeMap::<CallId, ToolExecution>::new();
            for row in writer.waiting()?.into_iter().filter(|row| is_wanted(CallId(row.id()))) {
                let row = row.into_execution()?;
                // As in the database: a final row is never changed.
                if rows.get(&row.id).is_none_or(|known| !known.outcome.is_final()) {
                    rows.insert(row.id, row);
                }
            }
            Ok(rows)
        });
        rows.await.map_err(|_| Fault::Closed)?
    }
}

#[async_trait]
impl ExecutionLog for SqliteExecutionLog {
    async fn record(&self, execution: ToolExecution) -> Result<(), StoreError> {
        let id = execution.id;
        let row = RecordedRow::new(execution, self.writer.instance());
        self.writer.record(row).await.map_err(|fault| store_error(format!("record the call {id}"), fault))
    }

    async fn find(&self, id: CallId) -> Result<Option<ToolExecution>, StoreError> {
        let found = async {
            let mut waiting = self.waiting(move |waiting| waiting == id).await?;
            Ok::<_, Fault>(match self.stored(id).await? {
                Some(row) if row.outcome.is_final() => Some(row),
                other => waiting.remove(&id).or(other),
            })
        };
        found.await.map_err(|fault| store_error(format!("read the call {id}"), fault))
    }

    async fn list(&self, filter: &ExecutionFilter) -> Result<Vec<ToolExecution>, StoreError> {
        self.rows(filter).await.map_err(|fault| store_error("list the calls", fault))
    }
}

/// Whether a row that did not come from the database belongs into the list.
fn fits(filter: &ExecutionFilter, row: &ToolExecution) -> bool {
    filter.before.is_none_or(|before| row.id < before)
        && filter.tool.as_ref().is_none_or(|tool| row.tool == *tool)
        && filter.principal.as_ref().is_none_or(|principal| row.principal == *principal)
        && filter.outcome.is_none_or(|outcome| row.outcome.kind() == outcome)
}

/// One end of the range of ids: the row where the page before ended, or what is greater than every id.
fn before(filter: &ExecutionFilter) -> Vec<u8> {
    filter.before.map_or_else(|| vec![0xff; 17], |id| id.0.as_bytes().to_vec())
}

/// The statement that walks along the most telling index, newest first, and looks at each row for the other conditions.
///
/// Parameters of all of them: before, tool, principal, outcome, limit.
fn statement(filter: &ExecutionFilter) -> &'static str {
    match (filter.outcome, &filter.tool, &filter.principal) {
        (Some(outcome), _, _) if outcome != OutcomeKind::Succeeded => select_executions!(
            "INDEXED BY tool_executions_by_outcome ",
            "WHERE outcome = $4 AND outcome <> 'succeeded' AND id < $1 ",
            "AND ($2 IS NULL OR tool = $2) AND ($3 IS NULL OR principal = $3) ",
            "ORDER BY id DESC LIMIT $5",
        ),
        (_, Some(_), _) => select_executions!(
            "INDEXED BY tool_executions_by_tool ",
            "WHERE tool = $2 AND id < $1 ",
            "AND ($3 IS NULL OR principal = $3) AND ($4 IS NULL OR outcome = $4) ",
            "ORDER BY id DESC LIMIT $5",
        ),
        (_, None, Some(_)) => select_executions!(
            "INDEXED BY tool_executions_by_principal ",
            "WHERE principal = $3 AND id < $1 ",
            "AND ($4 IS NULL OR outcome = $4) ",
            "ORDER BY id DESC LIMIT $5",
        ),
        (_, None, None) => {
            select_executions!("WHERE id < $1 AND ($4 IS NULL OR outcome = $4) ", "ORDER BY id DESC LIMIT $5")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::new_database::{NewDatabase, new_database};

    #[tokio::test]
    async fn no_list_sorts_or_walks_the_table() {
        let NewDatabase { folder: _folder, mut connection, .. } = new_database().await;
        let [tool, principal] = [Some("t".to_owned()), Some("p".to_owned())];
        let outcomes = [None, Some(OutcomeKind::Succeeded), Some(OutcomeKind::Failed)];
        for (tool, principal) in [(None, None), (tool.clone(), None), (None, principal.clone()), (tool, principal)] {
            for outcome in outcomes {
                let filter = ExecutionFilter {
                    tool: tool.clone(),
                    principal: principal.clone(),
                    outcome,
                    ..ExecutionFilter::default()
                };
                let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", statement(&filter)));
                let plan: Vec<(i64, i64, i64, String)> =
                    sqlx::query_as(explain).fetch_all(&mut connection).await.unwrap();
                let [(.., step)] = plan.as_slice() else { panic!("{filter:?} takes several steps: {plan:?}") };
                assert!(step.starts_with("SEARCH tool_executions USING INDEX"), "{filter:?}: {step}");
            }
        }
    }
}
