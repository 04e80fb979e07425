//! The connection that writes the audit trail, used from one thread: a change of threads costs more than a row.

use super::{
    connection::connect_recorder,
    database_options::DatabaseOptions,
    execution_row::{RECORD, RecordedRow},
    fault::Fault,
};
use rusqlite::Connection;
use std::path::Path;

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
        rows: impl Iterator<Item = &'a RecordedRow>,
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

    fn insert<'a>(&self, rows: impl Iterator<Item = &'a RecordedRow>) -> Result<Vec<Result<(), Fault>>, Fault> {
        let mut statement = self.0.prepare_cached(RECORD)?;
        rows.map(|row| {
            match row.bind(&mut statement).and_then(|()| statement.raw_execute()).map_err(Fault::from) {
                // What fails in a statement undoes that statement alone.
                Err(fault) if fault.lies_in_the_row() && !self.0.is_autocommit() => Ok(Err(fault)),
                written => written.map(|_| Ok(())),
            }
        })
        .collect()
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
