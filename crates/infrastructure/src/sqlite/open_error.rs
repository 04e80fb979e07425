//! Errors of opening a database, with advice.

use super::{fault::Fault, migrations::MigrateError};
use std::{error::Error, io, path::PathBuf};

/// Error of opening a database. Its data is intact, but its schema may be updated already.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder is missing and cannot be created.
    #[error("could not create the folder `{path}` for the database")]
    CreateFolder {
        /// Path of the folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is missing and cannot be created.
    #[error("could not create the database `{path}`")]
    CreateFile {
        /// Path of the database.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The lock file of this process cannot be created.
    #[error("could not create a lock file in `{path}`, beside the database")]
    JoinInstances {
        /// Path of the folder of lock files.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The path is not valid UTF-8.
    #[error("the path of the database, `{path}`, is not valid UTF-8: choose another one")]
    PathNotText {
        /// Path of the database.
        path: PathBuf,
    },
    /// The path is of another kind of file, or of a database of another program.
    #[error("`{path}` is not a database of Toolstead: move it away, or choose another path for the database")]
    NotOurs {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is an SQLite database, but damaged.
    #[error("the database `{path}` is damaged: restore it from a backup, or move it away to create a new one")]
    Damaged {
        /// Path of the database.
        path: PathBuf,
        /// Error of SQLite.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Another process locked the database for longer than the busy timeout.
    #[error("another program has locked the database `{path}`: end it, or try again later")]
    Locked {
        /// Path of the database.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("the disk that holds the database `{path}` is full: free some space")]
    DiskFull {
        /// Path of the database.
        path: PathBuf,
    },
    /// The file or its folder cannot be written.
    #[error("the database `{path}` cannot be opened for writing: check the permissions of the file and of its folder")]
    ReadOnly {
        /// Path of the database.
        path: PathBuf,
        /// Error of SQLite.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The database was written by a later version.
    #[error(
        "the database `{path}` was written by a newer version of Toolstead (step {version} of its schema is unknown): update this program, or choose another path for the database"
    )]
    Newer {
        /// Path of the database.
        path: PathBuf,
        /// Number of the first unknown migration.
        version: i64,
    },
    /// The schema was created by other migrations.
    #[error(
        "the database `{path}` was created by an unreleased version of Toolstead (step {version} of its schema differs): use that version, or choose another path for the database"
    )]
    ChangedMigration {
        /// Path of the database.
        path: PathBuf,
        /// Number of the migration that differs.
        version: i64,
    },
    /// The schema must be updated, and the database could not be backed up first.
    #[error(
        "could not back up the database `{path}` before updating its schema: free some space, and check the permissions of its folder"
    )]
    Backup {
        /// Path of the database.
        path: PathBuf,
        /// Error of SQLite or of the operating system.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Any other failure.
    #[error("could not open the database `{path}`")]
    Other {
        /// Path of the database.
        path: PathBuf,
        /// Underlying error.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl OpenError {
    /// Returns `true` if the database may still be readable: only writing fails, for lack of space or permission.
    pub fn may_be_readable(&self) -> bool {
        let is_about_writing = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::ReadOnlyFilesystem
                    | io::ErrorKind::PermissionDenied
            )
        };
        match self {
            Self::DiskFull { .. } | Self::ReadOnly { .. } | Self::Backup { .. } | Self::Other { .. } => true,
            Self::CreateFolder { source, .. }
            | Self::CreateFile { source, .. }
            | Self::JoinInstances { source, .. } => is_about_writing(source),
            Self::PathNotText { .. }
            | Self::NotOurs { .. }
            | Self::Damaged { .. }
            | Self::Locked { .. }
            | Self::Newer { .. }
            | Self::ChangedMigration { .. } => false,
        }
    }

    /// Returns the error for a failed migration of this database.
    pub(super) fn of_migration(error: MigrateError, path: PathBuf) -> Self {
        match error {
            MigrateError::NotOurs => Self::NotOurs { path },
            MigrateError::Newer(version) => Self::Newer { path, version },
            MigrateError::Changed(version) => Self::ChangedMigration { path, version },
            MigrateError::Backup(fault) => Self::Backup { path, source: fault.into() },
            MigrateError::Fault(fault) => Self::of(fault, path),
        }
    }

    /// Returns the error for a failure of SQLite while this database was opened.
    pub(super) fn of(fault: Fault, path: PathBuf) -> Self {
        match fault {
            Fault::NotADatabase(_) => Self::NotOurs { path },
            Fault::Locked(_) => Self::Locked { path },
            Fault::DiskFull(_) => Self::DiskFull { path },
            Fault::Damaged(source) => Self::Damaged { path, source },
            Fault::ReadOnly(source) => Self::ReadOnly { path, source },
            Fault::Disk(source) | Fault::Refused(source) | Fault::Statement(source) | Fault::Unreadable(source) => {
                Self::Other { path, source }
            }
            Fault::Files(source) => Self::Other { path, source: source.into() },
            Fault::Closed => Self::Other { path, source: fault.into() },
        }
    }
}
