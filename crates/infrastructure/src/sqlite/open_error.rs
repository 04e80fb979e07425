//! Why a database cannot be opened, in words that say what to do.

use super::{fault::Fault, migrations::MigrateError};
use std::{error::Error, io, path::PathBuf};

/// A database that cannot be opened. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder is not there and cannot be made.
    #[error("could not create the folder `{path}` for the database")]
    CreateFolder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not there and cannot be made.
    #[error("could not create the database `{path}`")]
    CreateFile {
        /// The database.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The lock file by which the processes at one database know of each other cannot be made.
    #[error("could not create a lock file in `{path}`, beside the database")]
    JoinInstances {
        /// The folder of the lock files.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The path is not text.
    #[error("the path of the database, `{path}`, is not valid UTF-8: choose another one")]
    PathNotText {
        /// The database.
        path: PathBuf,
    },
    /// There is something else: another kind of file, or the database of another program.
    #[error("`{path}` is not a database of Toolstead: move it away, or choose another path for the database")]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// The file was a database.
    #[error("the database `{path}` is damaged: restore it from a backup, or move it away to begin a new one")]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What SQLite says.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Some process holds it, longer than was waited.
    #[error("another program keeps the database `{path}` locked: end it, or try again later")]
    Locked {
        /// The database.
        path: PathBuf,
    },
    /// There is no space left.
    #[error("the disk that holds the database `{path}` is full: make room on it")]
    DiskFull {
        /// The database.
        path: PathBuf,
    },
    /// The file or its folder cannot be written.
    #[error("the database `{path}` cannot be opened for writing: check the permissions of the file and of its folder")]
    ReadOnly {
        /// The database.
        path: PathBuf,
        /// What SQLite says.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A later version of the program has been here.
    #[error(
        "the database `{path}` was written by a newer version of Toolstead (step {version} of its schema is not known here): update this program, or choose another path for the database"
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// The number of the first migration that is not known here.
        version: i64,
    },
    /// The schema was made by other steps than ours.
    #[error(
        "the database `{path}` was made by a version of Toolstead that was never released (step {version} of its schema differs): use that version, or choose another path for the database"
    )]
    ChangedMigration {
        /// The database.
        path: PathBuf,
        /// The number of the migration.
        version: i64,
    },
    /// Anything else.
    #[error("could not open the database `{path}`")]
    Other {
        /// The database.
        path: PathBuf,
        /// What SQLite says.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl OpenError {
    /// Whether the database may still be read: only writing fails, for want of room or of a permission.
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
            Self::DiskFull { .. } | Self::ReadOnly { .. } | Self::Other { .. } => true,
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

    /// A schema of this database that is not ours.
    pub(super) fn of_migration(error: MigrateError, path: PathBuf) -> Self {
        match error {
            MigrateError::NotOurs => Self::NotOurs { path },
            MigrateError::Newer(version) => Self::Newer { path, version },
            MigrateError::Changed(version) => Self::ChangedMigration { path, version },
            MigrateError::Fault(fault) => Self::of(fault, path),
        }
    }

    /// A failure of SQLite while this database was opened.
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
