//! Files and folders of a database.

use std::path::{Path, PathBuf};

/// Folder beside the database with a lock file and the backlog of each process that has it open.
pub(super) const INSTANCES: &str = "instances";
/// Folder beside the database with the contents of large outputs and of changed files.
pub(super) const BLOBS: &str = "blobs";

/// Folder beside the database with the copy that was made before the last update of its schema.
pub(super) const BACKUPS: &str = "backups";

/// Files and folders of a database. If the path of the database is a link, the others are beside the link's target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFiles {
    /// Database, its write-ahead log, and the index of that log.
    pub files: [PathBuf; 3],
    /// Folders beside the database: contents, lock files with backlogs, and backups.
    pub folders: [PathBuf; 3],
}

impl DatabaseFiles {
    /// Returns the files and folders of the database at this path. None of them need exist.
    pub fn of(database: &Path) -> Self {
        let name = database.file_name().unwrap_or_default();
        let files = ["", "-wal", "-shm"].map(|ending| {
            let mut file = name.to_os_string();
            file.push(ending);
            database.with_file_name(file)
        });
        Self { files, folders: [BLOBS, INSTANCES, BACKUPS].map(|folder| database.with_file_name(folder)) }
    }
}
