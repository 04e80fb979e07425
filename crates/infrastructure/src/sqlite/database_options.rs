//! Options of a database: path, durability and retention.

use std::{path::PathBuf, time::Duration};

/// Options of [`Database::open`](super::Database::open).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseOptions {
    /// Path of the file. The file and its folder are created if they are missing, accessible to the owner only (modes
    /// 0600 and 0700).
    pub path: PathBuf,
    /// `true` if committed rows survive a power failure (`synchronous=FULL`). Otherwise a power failure may lose the
    /// last rows. A kill of the process loses nothing in either case.
    pub power_safe: bool,
    /// Maximum time to wait for another process that writes.
    pub busy_timeout: Duration,
    /// Retention of the audit log.
    pub retention: AuditRetention,
    /// Retention of large outputs and of changed files.
    pub contents: ContentRetention,
}

impl DatabaseOptions {
    /// Creates the default options for this path: not power-safe, a busy timeout of 5 seconds, [`AuditRetention::default`]
    /// and [`ContentRetention::default`].
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            power_safe: false,
            busy_timeout: Duration::from_secs(5),
            retention: AuditRetention::default(),
            contents: ContentRetention::default(),
        }
    }
}

/// Retention of the audit log. Expired records are deleted in the background when the database is opened, and regularly
/// afterwards. New records reuse the space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditRetention {
    /// Maximum age of a record, counted from the start of its call.
    pub max_age: Duration,
    /// Maximum number of records. If there are more, the ones recorded first are deleted.
    pub max_rows: u64,
}

impl Default for AuditRetention {
    /// 90 days, and at most 5,000,000 rows: some 3 GB.
    fn default() -> Self {
        Self { max_age: Duration::from_secs(90 * 24 * 60 * 60), max_rows: 5_000_000 }
    }
}

/// Retention of large outputs and of changed files together. Contents that are older or exceed the size are deleted in
/// the background, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentRetention {
    /// Maximum age of an output since it was last stored, and of a file change.
    pub max_age: Duration,
    /// Maximum size of all contents on the disk in bytes.
    pub max_bytes: u64,
}

impl Default for ContentRetention {
    /// 7 days, and at most 2 GiB.
    fn default() -> Self {
        Self { max_age: Duration::from_secs(7 * 24 * 60 * 60), max_bytes: 2 << 30 }
    }
}
