//! The connection that writes the audit trail, used from one thread: a change of threads costs more than a row.

use super::{
    connection::connect_recorder, database_options::DatabaseOptions, execution_row::RECORD, fault::Fault,
    packed_row::PackedRow,
};
use rusqlite::Connection;
use std::{collections::HashMap, path::Path, ptr};

/// Writes rows. Blocks for as long as SQLite does.
#[derive(Debug)]
pub(super) struct Recorder(Connection);

impl Recorder {
    /// Opens the connection to a database whose schema is up to date.
    pub(super) fn open(path: &Path, options: &DatabaseOptions) -> Result<Self, Fault> {
        Ok(Self(connect_recorder(path, options)?))
    }

    /// Writes the rows in one transaction. What is returned is what became of each of them, once it is on the disk: one
    /// that cannot be written harms no other.
    ///
    /// # Errors
    /// The fault that hit all of them.
    pub(super) fn record<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a PackedRow>,
    ) -> Result<Vec<Result<(), Fault>>, Fault> {
        self.execute("BEGIN IMMEDIATE")?;
        let written = self.insert(rows).and_then(|written| self.execute("COMMIT").map(|()| written));
        if written.is_err() && !self.0.is_autocommit() {
            // SQLite has said already what is wrong, and does not begin again before this one is over.
            self.execute("ROLLBACK")?;
        }
        written
    }

    /// Writes something small, so that it is known whether rows could be written.
    ///
    /// # Errors
    /// The fault that would hit a row.
    pub(super) fn check(&mut self) -> Result<(), Fault> {
        self.execute("BEGIN IMMEDIATE")?;
        let tried = self
            .execute("INSERT INTO trials VALUES (zeroblob(8192))")
            .and_then(|()| self.execute("DELETE FROM trials"))
            .and_then(|()| self.execute("COMMIT"));
        if tried.is_err() && !self.0.is_autocommit() {
            self.execute("ROLLBACK")?;
        }
        tried
    }

    fn insert<'a>(&self, rows: impl Iterator<Item = &'a PackedRow>) -> Result<Vec<Result<(), Fault>>, Fault> {
        let mut statement = self.0.prepare_cached(RECORD)?;
        let mut write = |row: &PackedRow| -> Result<Result<(), Fault>, Fault> {
            match row.bind(&mut statement).and_then(|()| statement.raw_execute()).map_err(Fault::from) {
                // What fails in a statement undoes that statement alone.
                Err(fault) if fault.lies_in_the_row() && !self.0.is_autocommit() => Ok(Err(fault)),
                written => written.map(|_| Ok(())),
            }
        };
        let rows: Vec<&PackedRow> = rows.collect();
        // Most calls end before their start is written: the end alone is written then, in the place of the start.
        let mut last = HashMap::new();
        for &row in &rows {
            let known = last.entry(row.id()).or_insert(row);
            if !known.is_final() {
                *known = row;
            }
        }
        let written = rows.into_iter().map(|row| {
            let Some(&newer) = last.get(&row.id()) else { return Ok(Ok(())) };
            if !ptr::eq(newer, row) && write(newer)?.is_ok() {
                last.remove(&row.id());
                return Ok(Ok(()));
            }
            write(row)
        });
        written.collect()
    }

    fn execute(&self, statement: &str) -> Result<(), Fault> {
        self.0.prepare_cached(statement)?.raw_execute()?;
        Ok(())
    }

    /// Makes a full disk of what is more than so many pages.
    #[cfg(test)]
    pub(super) fn limit_pages(&self, pages: u32) {
        self.0.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{execution_row::RecordedRow, new_database::new_database};
    use sqlx::Row;
    use toolstead_domain::{testing::samples, tool_execution::ToolExecution};
    use uuid::Uuid;

    /// Records these rows at once; returns which of them were taken, how many were written, and what stands there, in order.
    async fn record(refused: &str, rows: &[ToolExecution]) -> (Vec<bool>, u64, Vec<(Uuid, String)>) {
        let mut database = new_database().await;
        let trigger = format!(
            "CREATE TRIGGER refuse BEFORE INSERT ON tool_executions WHEN new.outcome = '{refused}'
                BEGIN SELECT RAISE(ABORT, 'refused'); END"
        );
        sqlx::query(sqlx::AssertSqlSafe(trigger)).execute(&mut database.connection).await.unwrap();
        let rows: Vec<_> = rows.iter().map(|row| PackedRow::of(&RecordedRow::new(row, Uuid::from_u128(1)))).collect();
        let before = database.recorder.0.total_changes();
        let written = database.recorder.record(rows.iter()).unwrap();
        let changes = database.recorder.0.total_changes() - before;
        let query = sqlx::query("SELECT id, outcome FROM tool_executions ORDER BY seq");
        let stored = query.fetch_all(&mut database.connection).await.unwrap();
        let stored = stored.iter().map(|row| (row.get(0), row.get(1))).collect();
        (written.iter().map(Result::is_ok).collect(), changes, stored)
    }

    fn stands(number: u32, outcome: &str) -> (Uuid, String) {
        (samples::call_id(number).0, outcome.to_owned())
    }

    #[tokio::test]
    async fn a_call_that_has_ended_is_written_once_and_where_its_start_stands() {
        let (start, end) = (samples::running_execution, samples::execution);
        let rows = [start(1), end(2), start(3), start(1), end(1), start(1), start(3)];
        let (taken, changes, stored) = record("none", &rows).await;
        assert_eq!((taken, changes), (vec![true; 7], 3));
        assert_eq!(stored, [stands(1, "succeeded"), stands(2, "succeeded"), stands(3, "running")]);
    }

    #[tokio::test]
    async fn a_start_stands_where_the_end_is_refused() {
        let rows = [samples::running_execution(1), samples::execution(1), samples::running_execution(2)];
        let (taken, _, stored) = record("succeeded", &rows).await;
        assert_eq!(taken, [true, false, true]);
        assert_eq!(stored, [stands(1, "running"), stands(2, "running")]);
    }
}
