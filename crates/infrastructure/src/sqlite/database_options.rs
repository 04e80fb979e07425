//! Which database, and how it is treated.

use super::retention::{ContentRetention, Retention};
use std::{path::PathBuf, time::Duration};

/// What [`Database::open`](super::database::Database::open) needs to know.
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
