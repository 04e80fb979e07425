//! Connection that writes the audit log, used from one thread: a thread switch costs more than a row.

use super::{
    connection::connect_recorder, database_options::DatabaseOptions, execution_row::record_statement, fault::Fault,
    pending_record::PendingRecord,
};
use rusqlite::Connection;
use std::{collections::HashMap, iter, path::Path};
use uuid::Uuid;

/// Numbers of rows per statement, largest first. One statement with 16 rows takes 0.6 of the instructions of 16
/// statements, because the cursors of table and indexes are opened once.
const STATEMENT_ROWS: [usize; 3] = [16, 4, 1];

/// Number of rows after which an idle writer makes a checkpoint: some 1,000 pages, compared to the 8,000 of SQLite's
/// own.
const CHECKPOINT_ROWS: usize = 4096;

/// Writer of audit records. Its methods block while SQLite does.
#[derive(Debug)]
pub(super) struct AuditLogConnection {
    connection: Connection,
    /// For each of [`STATEMENT_ROWS`], the number of rows and the statement that inserts them.
    statements: [(usize, String); STATEMENT_ROWS.len()],
    /// Number of rows since the last [`checkpoint`](Self::checkpoint).
    rows: usize,
}

impl AuditLogConnection {
    /// Opens the connection to a database whose schema is up to date.
    pub(super) fn open(path: &Path, options: &DatabaseOptions) -> Result<Self, Fault> {
        let statements = STATEMENT_ROWS.map(|rows| (rows, record_statement(rows)));
        Ok(Self { connection: connect_recorder(path, options)?, statements, rows: 0 })
    }

    /// Writes the rows in one transaction. Returns the result of each row after the commit: a rejected row does not
    /// affect the others.
    ///
    /// # Errors
    /// A fault that affects all rows.
    pub(super) fn record<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a PendingRecord>,
    ) -> Result<Vec<Result<(), Fault>>, Fault> {
        self.execute("BEGIN IMMEDIATE")?;
        let written = self.insert(rows).and_then(|written| self.execute("COMMIT").map(|()| written));
        if written.is_err() && !self.connection.is_autocommit() {
            // SQLite has reported the error already, and starts no new transaction before this one ends.
            self.execute("ROLLBACK")?;
        }
        self.rows += written.as_ref().map_or(0, Vec::len);
        written
    }

    /// Returns `true` if a checkpoint is worth its two waits for the disk.
    pub(super) fn is_checkpoint_due(&self) -> bool {
        self.rows >= CHECKPOINT_ROWS
    }

    /// Copies the write-ahead log into the database as far as no reader needs it, so that SQLite seldom does this
    /// during a commit. Under constant load SQLite's own checkpoints limit the log.
    pub(super) fn checkpoint(&mut self) {
        self.rows = 0;
        if let Err(error) = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
            tracing::warn!(error = &error as &dyn std::error::Error, "could not checkpoint the write-ahead log");
        }
    }

    /// Checks by a small write that rows can be written.
    ///
    /// # Errors
    /// The fault that a row would cause.
    pub(super) fn check(&mut self) -> Result<(), Fault> {
        self.execute("BEGIN IMMEDIATE")?;
        let tried = self
            .execute("INSERT INTO trials VALUES (zeroblob(8192))")
            .and_then(|()| self.execute("DELETE FROM trials"))
            .and_then(|()| self.execute("COMMIT"));
        if tried.is_err() && !self.connection.is_autocommit() {
            self.execute("ROLLBACK")?;
        }
        tried
    }

    fn insert<'a>(&self, rows: impl Iterator<Item = &'a PendingRecord>) -> Result<Vec<Result<(), Fault>>, Fault> {
        let rows: Vec<&PendingRecord> = rows.collect();
        let mut written: Vec<Result<(), Fault>> = rows.iter().map(|_| Ok(())).collect();
        let to_write = rows_to_write(&rows);
        let mut rest = to_write.as_slice();
        for (size, statement) in &self.statements {
            while let Some((group, after)) = rest.split_at_checked(*size) {
                rest = after;
                if self.write(statement, group.iter().map(|row| rows[*row]))?.is_ok() {
                    continue;
                }
                // A rejected row undoes the whole statement, so each row is written separately.
                for row in group {
                    written[*row] = self.write_one(rows[*row])?;
                    if written[*row].is_ok() {
                        continue;
                    }
                    // This row would have replaced the others of its call, which are written instead.
                    for (at, other) in rows.iter().enumerate() {
                        if at != *row && other.id() == rows[*row].id() {
                            written[at] = self.write_one(other)?;
                        }
                    }
                }
            }
        }
        Ok(written)
    }

    fn write_one(&self, row: &PendingRecord) -> Result<Result<(), Fault>, Fault> {
        let [.., (_, statement)] = &self.statements;
        self.write(statement, iter::once(row))
    }

    /// Writes as many rows as the statement takes. The inner fault is that of a row; nothing is written then.
    fn write<'a>(
        &self,
        statement: &str,
        rows: impl Iterator<Item = &'a PendingRecord>,
    ) -> Result<Result<(), Fault>, Fault> {
        let mut statement = self.connection.prepare_cached(statement)?;
        let bound = rows.enumerate().try_for_each(|(at, row)| row.bind(&mut statement, at));
        match bound.and_then(|()| statement.raw_execute()).map_err(Fault::from) {
            Err(fault) if fault.lies_in_the_row() && !self.connection.is_autocommit() => Ok(Err(fault)),
            written => written.map(|_| Ok(())),
        }
    }

    fn execute(&self, statement: &str) -> Result<(), Fault> {
        self.connection.prepare_cached(statement)?.raw_execute()?;
        Ok(())
    }

    /// Simulates a full disk at this number of pages.
    #[cfg(test)]
    pub(super) fn limit_pages(&self, pages: u32) {
        self.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    }
}

/// Returns the indexes of the rows to write, in order. Most calls end before their start is written. Then only their
/// end is written, at the position of the start.
fn rows_to_write(rows: &[&PendingRecord]) -> Vec<usize> {
    if rows.iter().all(|row| row.is_final()) {
        return (0..rows.len()).collect();
    }
    // The first final record of a call, or else its last record.
    let mut last: HashMap<Uuid, usize> = HashMap::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let known = last.entry(row.id()).or_insert(at);
        if !rows[*known].is_final() {
            *known = at;
        }
    }
    // Removed at the first row of the call, so that its other rows are skipped.
    rows.iter().filter_map(|row| last.remove(&row.id())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{connection::readers_of_the_file_alone, new_database::new_database};
    use sqlx::Row;
    use toolstead_domain::{ExecutionOutcome, ToolExecution, testing::samples};

    /// Records these rows at once. Returns which were accepted, how many were written, and the stored rows in order.
    async fn record(refused: &str, rows: &[ToolExecution]) -> (Vec<bool>, u64, Vec<(Uuid, String)>) {
        let mut database = new_database().await;
        let trigger = format!(
            "CREATE TRIGGER refuse BEFORE INSERT ON tool_executions WHEN new.outcome = '{refused}'
                BEGIN SELECT RAISE(ABORT, 'refused'); END"
        );
        sqlx::query(sqlx::AssertSqlSafe(trigger)).execute(&mut database.connection).await.unwrap();
        let rows: Vec<_> = rows.iter().map(|row| PendingRecord::new(row, Uuid::from_u128(1))).collect();
        let before = database.recorder.connection.total_changes();
        let written = database.recorder.record(rows.iter()).unwrap();
        let changes = database.recorder.connection.total_changes() - before;
        let query = sqlx::query("SELECT id, outcome FROM tool_executions ORDER BY seq");
        let stored = query.fetch_all(&mut database.connection).await.unwrap();
        let stored = stored.iter().map(|row| (row.get(0), row.get(1))).collect();
        (written.iter().map(Result::is_ok).collect(), changes, stored)
    }

    fn stands(number: u32, outcome: &str) -> (Uuid, String) {
        (samples::call_id(number).0, outcome.to_owned())
    }

    #[tokio::test]
    async fn an_ended_call_is_written_once_at_the_position_of_its_start() {
        let (start, end) = (samples::running_execution, samples::execution);
        let rows = [start(1), end(2), start(3), start(1), end(1), start(1), start(3)];
        let (taken, changes, stored) = record("none", &rows).await;
        assert_eq!((taken, changes), (vec![true; 7], 3));
        assert_eq!(stored, [stands(1, "succeeded"), stands(2, "succeeded"), stands(3, "running")]);
    }

    #[tokio::test]
    async fn a_checkpoint_moves_recorded_executions_into_the_database_file() {
        let mut database = new_database().await;
        let rows: Vec<_> =
            (0..4096).map(|number| PendingRecord::new(&samples::execution(number), Uuid::nil())).collect();
        let (some, rest) = rows.split_at(4000);
        database.recorder.record(some.iter()).unwrap();
        assert!(!database.recorder.is_checkpoint_due());
        database.recorder.record(rest.iter()).unwrap();
        assert!(database.recorder.is_checkpoint_due());
        database.recorder.checkpoint();
        assert!(!database.recorder.is_checkpoint_due());
        let file = readers_of_the_file_alone(&database.options.path, &database.options);
        let found: i64 = sqlx::query_scalar("SELECT count(*) FROM tool_executions").fetch_one(&file).await.unwrap();
        assert_eq!(found, 4096);
    }

    #[tokio::test]
    async fn a_rejected_record_does_not_affect_others_of_its_statement() {
        let row = |number| match number {
            3 | 20 => ToolExecution { outcome: ExecutionOutcome::Interrupted, ..samples::execution(number) },
            _ => samples::execution(number),
        };
        let rows: Vec<ToolExecution> = (0..40).map(row).collect();
        let (taken, _, stored) = record("interrupted", &rows).await;
        assert_eq!(taken, (0..40).map(|number| ![3, 20].contains(&number)).collect::<Vec<_>>());
        assert_eq!(stored.len(), 38);
        assert!(stored.is_sorted());
    }

    #[tokio::test]
    async fn the_start_of_a_call_remains_if_its_end_is_rejected() {
        let rows = [samples::running_execution(1), samples::execution(1), samples::running_execution(2)];
        let (taken, _, stored) = record("succeeded", &rows).await;
        assert_eq!(taken, [true, false, true]);
        assert_eq!(stored, [stands(1, "running"), stands(2, "running")]);
    }

    #[tokio::test]
    async fn a_later_end_is_written_if_the_first_end_is_rejected() {
        let refused = ToolExecution { outcome: ExecutionOutcome::Interrupted, ..samples::execution(1) };
        let rows = [samples::running_execution(1), refused, samples::execution(1)];
        let (taken, _, stored) = record("interrupted", &rows).await;
        assert_eq!(taken, [true, false, true]);
        assert_eq!(stored, [stands(1, "succeeded")]);
    }
}
