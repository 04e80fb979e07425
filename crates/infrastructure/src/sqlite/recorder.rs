//! The connection that writes the audit trail, used from one thread: a change of threads costs more than a row.

use super::{
    connection::connect_recorder,
    database_options::DatabaseOptions,
    execution_row::{RECORD, RecordedRow},
    fault::Fault,
};
use rusqlite::Connection;
use std::{collections::HashMap, path::Path, thread};

/// After so many rows the thread lets others run.
const BETWEEN_PAUSES: usize = 16;

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

    /// Of a call that stands among them as running and as ended the last row is written, in the place of the first: to write
    /// both costs twice as much, and nobody reads what one transaction changes twice.
    fn insert<'a>(&self, rows: impl Iterator<Item = &'a RecordedRow>) -> Result<Vec<Result<(), Fault>>, Fault> {
        let rows: Vec<_> = rows.collect();
        let mut newest = HashMap::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let known = newest.entry(row.id()).or_insert(at);
            if !rows[*known].is_final() {
                *known = at;
            }
        }
        let mut statement = self.0.prepare_cached(RECORD)?;
        let mut write = |row: &RecordedRow| {
            match row.bind(&mut statement).and_then(|()| statement.raw_execute()).map_err(Fault::from) {
                // What fails in a statement undoes that statement alone.
                Err(fault) if fault.lies_in_the_row() && !self.0.is_autocommit() => Ok(Err(fault)),
                written => written.map(|_| Ok(())),
            }
        };
        let mut written: Vec<_> = rows.iter().map(|_| Ok(())).collect();
        for (at, row) in rows.iter().enumerate() {
            let Some(last) = newest.remove(&row.id()) else { continue };
            if at % BETWEEN_PAUSES == BETWEEN_PAUSES - 1 {
                // Calls that came meanwhile wait for a processor, and nobody waits for these rows.
                thread::yield_now();
            }
            written[last] = write(rows[last])?;
            if last != at && written[last].is_err() {
                written[at] = write(row)?;
            }
        }
        Ok(written)
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
