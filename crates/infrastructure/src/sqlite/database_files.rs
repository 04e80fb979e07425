//! What a database is on the disk: its file, what SQLite puts beside it, and our folders beside it.

use std::path::{Path, PathBuf};

/// The folder beside the database with a lock file for each process that has it open, and its backlog.
pub(super) const INSTANCES: &str = "instances";
/// The folder beside the database with the contents of large outputs and of changed files.
pub(super) const BLOBS: &str = "blobs";

/// Everything that belongs to a database. Where its path is a link, all but the link lies beside what that leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFiles {
    /// The database, its write-ahead log, and the index of that.
    pub files: [PathBuf; 3],
    /// The folders beside it.
    pub folders: [PathBuf; 2],
}

impl DatabaseFiles {
    /// Those of the database at this path. Nothing need be there.
    pub fn of(database: &Path) -> Self {
        let name = database.file_name().unwrap_or_default();
        let files = ["", "-wal", "-shm"].map(|ending| {
            let mut file = name.to_os_string();
            file.push(ending);
            database.with_file_name(file)
        });
        Self { files, folders: [BLOBS, INSTANCES].map(|folder| database.with_file_name(folder)) }
    }
}
