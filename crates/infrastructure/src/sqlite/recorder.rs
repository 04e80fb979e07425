//! The connection that writes the audit trail: used where a row is recorded, since a change of threads costs more.

use super::{
    connection::{CHECKPOINT_PAGES, connect_recorder},
    database_options::DatabaseOptions,
    execution_row::{RECORD, RecordedRow},
    fault::Fault,
};
use rusqlite::Connection;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// A transaction writes about so many pages (a leaf of the table and of each index), and so many bytes make one more.
const PAGES_A_COMMIT: usize = 6;
const PAGE_BYTES: usize = 4096;
/// What a row takes in the table and the indexes beside its texts.
const ROW_BYTES: usize = 400;

/// Folds the write-ahead log into the database without waiting for anybody.
pub(super) const FOLD_LOG: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// Writes rows. Does not wait for other connections unless told to.
#[derive(Debug)]
pub(super) struct Recorder {
    connection: Connection,
    path: PathBuf,
    options: DatabaseOptions,
    /// About how many pages the write-ahead log has grown by since it was last told.
    grown: usize,
}

impl Recorder {
    /// Opens the connection to a database whose schema is up to date.
    pub(super) fn open(path: &Path, options: &DatabaseOptions) -> Result<Self, Fault> {
        let connection = connect_recorder(path, options)?;
        Ok(Self { connection, path: path.to_owned(), options: options.clone(), grown: 0 })
    }

    /// Whether each commit waits for the disk.
    pub(super) fn is_power_safe(&self) -> bool {
        self.options.power_safe
    }

    /// Whether to wait while another connection writes, for as long as the options say.
    pub(super) fn be_patient(&self, patient: bool) {
        let patience = if patient { self.options.busy_timeout } else { Duration::ZERO };
        // It sets a number, and cannot fail for an open connection.
        let _ = self.connection.busy_timeout(patience);
    }

    /// Writes the rows in one transaction. What is returned is what became of each of them, once it is on the disk: one
    /// that cannot be written harms no other.
    ///
    /// # Errors
    /// The fault that hit all of them; then none is written.
    pub(super) fn record<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a RecordedRow>,
    ) -> Result<Vec<Result<(), Fault>>, Fault> {
        if !self.connection.is_autocommit() {
            self.reopen()?;
        }
        self.execute("BEGIN IMMEDIATE")?;
        let written = self.insert(rows).and_then(|written| self.execute("COMMIT").map(|()| written));
        if written.is_err() && !self.connection.is_autocommit() && self.execute("ROLLBACK").is_err() {
            // SQLite has said already what is wrong, and does not begin again on a connection where this is not over.
            // Where it cannot be opened either, that is tried again with the next rows.
            let _ = self.reopen();
        }
        written
    }

    /// Whether the log has grown so much that it is to be folded into the database. Begins to count anew then.
    pub(super) fn takes_growth(&mut self) -> bool {
        let long = self.grown >= CHECKPOINT_PAGES as usize;
        if long {
            self.grown = 0;
        }
        long
    }

    /// Folds the write-ahead log into the database as far as nobody reads what is older, without waiting for anybody.
    pub(super) fn fold_log(&self) -> Result<(), Fault> {
        Ok(self.connection.query_row(FOLD_LOG, [], |_| Ok(()))?)
    }

    fn insert<'a>(&mut self, rows: impl Iterator<Item = &'a RecordedRow>) -> Result<Vec<Result<(), Fault>>, Fault> {
        let mut statement = self.connection.prepare_cached(RECORD)?;
        let mut bytes = 0;
        let written = rows
            .map(|row| {
                bytes += row.bytes() + ROW_BYTES;
                match row.bind(&mut statement).and_then(|()| statement.raw_execute()).map_err(Fault::from) {
                    // What fails in a statement undoes that statement alone.
                    Err(fault) if fault.may_lie_in_the_row() && !self.connection.is_autocommit() => Ok(Err(fault)),
                    written => written.map(|_| Ok(())),
                }
            })
            .collect();
        self.grown += PAGES_A_COMMIT + bytes / PAGE_BYTES;
        written
    }

    fn execute(&self, statement: &str) -> Result<(), Fault> {
        self.connection.prepare_cached(statement)?.raw_execute()?;
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), Fault> {
        self.connection = connect_recorder(&self.path, &self.options)?;
        Ok(())
    }

    /// Makes a full disk of what is more than so many pages.
    #[cfg(test)]
    pub(super) fn limit_pages(&self, pages: u32) {
        self.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use crate::sqlite::{execution_row::RecordedRow, new_database::new_database};
    use toolstead_domain::testing::samples;
    use uuid::Uuid;

    #[tokio::test]
    async fn a_transaction_that_could_not_be_ended_does_not_stop_recording() {
        let mut database = new_database().await;
        database.recorder.execute("BEGIN IMMEDIATE").unwrap();
        let written = database.recorder.record([RecordedRow::new(samples::execution(1), Uuid::nil())].iter()).unwrap();
        assert!(matches!(written.as_slice(), [Ok(())]), "{written:?}");
    }
}
