//! The database to open, how it is treated, and how much it keeps.

use std::{path::PathBuf, time::Duration};

/// What [`Database::open`](super::Database::open) needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseOptions {
    /// The file. It and its folder are made where they are missing, for their owner alone (modes 0600 and 0700).
    pub path: PathBuf,
    /// Whether a committed row also survives the loss of power (`synchronous=FULL`). Without it the last rows before
    /// that may be lost; a kill of the process loses nothing either way.
    pub power_safe: bool,
    /// How long to wait while another process writes.
    pub busy_timeout: Duration,
    /// What is kept of the audit trail.
    pub retention: Retention,
    /// What is kept of large outputs and of changed files.
    pub contents: ContentRetention,
}

impl DatabaseOptions {
    /// The database in this file, treated as usual: not power-safe, 5 seconds of patience, [`Retention::default`],
    /// [`ContentRetention::default`].
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            power_safe: false,
            busy_timeout: Duration::from_secs(5),
            retention: Retention::default(),
            contents: ContentRetention::default(),
        }
    }
}

/// What is kept of the audit trail. Older rows are deleted in the background when a database is opened and from
/// time to time while it is; the space is used again for new rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Rows of calls that began longer ago are deleted.
    pub max_age: Duration,
    /// Of more rows than these, the ones recorded first are deleted.
    pub max_rows: u64,
}

impl Default for Retention {
    /// 90 days, and at most 5,000,000 rows: some 3 GB.
    fn default() -> Self {
        Self { max_age: Duration::from_secs(90 * 24 * 60 * 60), max_rows: 5_000_000 }
    }
}

/// What is kept of large outputs and of changed files, both together. What is older or over the size goes in the
/// background, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentRetention {
    /// Outputs that were last stored, and changes that were made, longer ago are forgotten.
    pub max_age: Duration,
    /// Bytes of all contents on the disk.
    pub max_bytes: u64,
}

impl Default for ContentRetention {
    /// 7 days, and at most 2 GiB.
    fn default() -> Self {
        Self { max_age: Duration::from_secs(7 * 24 * 60 * 60), max_bytes: 2 << 30 }
    }
}
