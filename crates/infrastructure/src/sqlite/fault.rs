//! Failures of SQLite, classified by what the operator can do about them.

use std::{error::Error, io, sync::Arc};
use toolstead_domain::StoreError;

/// Error of SQLite or of its library.
type Cause = Box<dyn Error + Send + Sync>;

/// Failure of the database, classified by what the operator can do about it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The disk is full.
    #[error("the disk is full")]
    DiskFull(#[source] Cause),
    /// The database remained locked for the busy timeout.
    #[error("another program has locked the database")]
    Locked(#[source] Cause),
    /// The file or its folder is missing, or is read-only.
    #[error("the database cannot be opened for writing")]
    ReadOnly(#[source] Cause),
    /// The file is not an SQLite database.
    #[error("the file is not an SQLite database")]
    NotADatabase(#[source] Cause),
    /// The file is an SQLite database, but damaged.
    #[error("the database is damaged")]
    Damaged(#[source] Cause),
    /// The disk failed.
    #[error("the disk failed")]
    Disk(#[source] Cause),
    /// Files beside the database (contents, backlogs or backups) cannot be accessed.
    #[error("the stored contents cannot be read or written")]
    Files(#[source] io::Error),
    /// The database was closed before, or is open only for reading.
    #[error("the database is closed")]
    Closed,
    /// A stored value cannot be parsed by this version.
    #[error("a stored value is invalid")]
    Unreadable(#[source] Cause),
    /// The database or its adapter rejects a value, which violates a limit or a constraint.
    #[error("the database rejected the statement")]
    Refused(#[source] Cause),
    /// The statement failed for another reason.
    #[error("the statement failed")]
    Statement(#[source] Cause),
}

/// SQLite's result codes (sqlite.org/rescode.html). The lowest byte is the primary one.
mod code {
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const READONLY: i32 = 8;
    pub(super) const IOERR: i32 = 10;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const TOOBIG: i32 = 18;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const MISMATCH: i32 = 20;
    pub(super) const NOTADB: i32 = 26;
    /// The shared-memory file beside the database could not grow.
    pub(super) const IOERR_SHMSIZE: i32 = 4874;
}

impl Fault {
    /// Returns the failure for this result code of SQLite.
    fn of(code: Option<i32>, cause: Cause) -> Self {
        let Some(code) = code else { return Self::Statement(cause) };
        match (code, code & 0xff) {
            (code::IOERR_SHMSIZE, _) | (_, code::FULL) => Self::DiskFull(cause),
            (_, code::BUSY | code::LOCKED) => Self::Locked(cause),
            (_, code::READONLY | code::CANTOPEN) => Self::ReadOnly(cause),
            (_, code::NOTADB) => Self::NotADatabase(cause),
            (_, code::CORRUPT) => Self::Damaged(cause),
            (_, code::IOERR) => Self::Disk(cause),
            (_, code::TOOBIG | code::CONSTRAINT | code::MISMATCH) => Self::Refused(cause),
            _ => Self::Statement(cause),
        }
    }

    /// Returns `true` if the failure concerns the written row and not the database.
    pub(super) fn lies_in_the_row(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

/// Returns the error of the port. `operation` names the attempt, such as "read the tools of `git`". The fault is
/// shared, because it may be reported to several callers of one transaction.
pub(super) fn store_error(operation: impl Into<String>, fault: impl Into<Arc<Fault>>) -> StoreError {
    StoreError { operation: operation.into(), source: Box::new(fault.into()) }
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        let code = match &error {
            sqlx::Error::Database(error) => error.code().and_then(|code| code.parse::<i32>().ok()),
            sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => return Self::Closed,
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => return Self::Unreadable(error.into()),
            _ => None,
        };
        Self::of(code, error.into())
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error().map(|error| error.extended_code);
        Self::of(code, error.into())
    }
}
