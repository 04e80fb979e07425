//! Formatting of times, counts and paths in results.

use crate::sandbox::workspace::unmistakable;
use chrono::{DateTime, SecondsFormat, Utc};
use std::{borrow::Cow, path::Path};
use toolstead_domain::Timestamp;

/// Returns a time in RFC 3339, in UTC and to the second.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    let time = DateTime::<Utc>::from_timestamp_micros(time.0).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Returns a count with its noun: `1 file`, `2 files`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Returns a sentence that a walk skipped `refused` entries because a rule denies reading them; `done` is the
/// participle, such as `shown`. `None` if there are none.
pub(crate) fn denied_entries_note(refused: usize, done: &str) -> Option<String> {
    match refused {
        0 => None,
        1 => Some(format!("1 file or folder was not {done}: a rule denies reading it.")),
        _ => Some(format!("{refused} files or folders were not {done}: a rule denies reading them.")),
    }
}

/// Prefix of the shown paths below a folder, computed once.
#[derive(Debug)]
pub(crate) struct DisplayPathPrefix(String);

impl DisplayPathPrefix {
    /// Creates the prefix for a folder that is shown like this.
    pub(crate) fn of(folder: &str) -> Self {
        match folder {
            "." => Self(String::new()),
            folder if folder.ends_with('/') => Self(folder.into()),
            folder => Self(format!("{folder}/")),
        }
    }

    /// Returns the shown path of an entry below the folder.
    pub(crate) fn path(&self, below: &Path) -> String {
        let below = below.to_string_lossy();
        if self.0.is_empty() { unmistakable(below.into_owned()) } else { [&self.0, &*below].concat() }
    }
}

/// Escapes control characters in a name for a line: a line break would make one name look like two.
pub(crate) fn on_one_line(name: &str) -> Cow<'_, str> {
    if name.chars().any(char::is_control) { Cow::Owned(name.escape_debug().to_string()) } else { Cow::Borrowed(name) }
}
