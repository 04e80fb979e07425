//! Inputs of the user in chats, for recall with the arrow keys. They are stored in a file in the data folder that only
//! its owner can read.

use crate::config::layers::folders::{ExistingFileTreatment, write_private};
use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

const FILE: &str = "chat_inputs.jsonl";
/// Maximum number of stored inputs.
const KEPT: usize = 1_000;
/// Maximum length of a stored input in bytes. Longer inputs were pasted, and are part of the conversation.
const MOST_BYTES: usize = 16 << 10;
/// Size in bytes above which the file is rewritten with the last inputs.
const MOST_FILE_BYTES: usize = 4 << 20;

/// Inputs, oldest first, and their file, which contains one JSON string per line.
#[derive(Debug)]
pub(super) struct InputHistory {
    known: Vec<String>,
    file: Option<PathBuf>,
}

impl InputHistory {
    /// Opens the inputs stored in this folder. There are none without a folder or if the file cannot be read.
    pub(super) fn open(folder: Option<&Path>) -> Self {
        let file = folder.map(|folder| folder.join(FILE));
        let known = file.as_deref().map(known).unwrap_or_default();
        Self { known, file }
    }

    /// Returns all inputs, oldest first.
    pub(super) fn known(&self) -> &[String] {
        &self.known
    }

    /// Adds an input and stores it in the file, unless it repeats the last one or is too long.
    pub(super) fn add(&mut self, text: &str) {
        if text.len() > MOST_BYTES || self.known.last().is_some_and(|last| last == text) {
            return;
        }
        self.known.push(text.to_owned());
        if let Some(file) = &self.file
            && let Err(error) = append(file, text)
        {
            tracing::debug!(%error, "the input history could not be saved");
        }
    }
}

fn known(file: &Path) -> Vec<String> {
    let Ok(opened) = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(file) else { return Vec::new() };
    let text = beginning(opened).unwrap_or_default();
    let all: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let last = all[all.len().saturating_sub(KEPT)..].to_vec();
    if text.len() > MOST_FILE_BYTES {
        let lines: String = last.iter().map(|text| line(text)).collect();
        // If writing fails, the file stays as it is.
        let _ = write_private(file, lines.as_bytes(), ExistingFileTreatment::Replaced);
    }
    last
}

/// Reads the beginning of the file. The size limit guards against a file that was enlarged by another program.
fn beginning(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(4 * MOST_FILE_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn append(file: &Path, text: &str) -> io::Result<()> {
    let options = || OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(file);
    // Written by a single call, because another chat may write at the same time.
    options()?.write_all(line(text).as_bytes())
}

fn line(text: &str) -> String {
    format!("{}\n", serde_json::Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    #[test]
    fn input_history_is_restored_and_readable_only_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let mut inputs = InputHistory::open(Some(folder.path()));
        for text in ["one", "two\nlines", "two\nlines", "one", &"x".repeat(MOST_BYTES + 1)] {
            inputs.add(text);
        }
        let expected = ["one", "two\nlines", "one"];
        assert_eq!(inputs.known(), expected);
        assert_eq!(InputHistory::open(Some(folder.path())).known(), expected);
        let mode = fs::metadata(folder.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        InputHistory::open(None).add("nowhere");
    }

    #[test]
    fn the_history_file_is_truncated_and_broken_lines_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        let long = "x".repeat(MOST_BYTES);
        let many: String = (0..300).map(|number| line(&format!("{number} {long}"))).collect();
        fs::write(&file, format!("{many}\"half\n{}", line("last"))).unwrap();
        let known = InputHistory::open(Some(folder.path()));
        assert_eq!(known.known().len(), 301);
        let few: String = (0..KEPT + 5).map(|number| line(&number.to_string())).collect();
        fs::write(&file, format!("{}{few}", "\n".repeat(MOST_FILE_BYTES))).unwrap();
        let known = InputHistory::open(Some(folder.path()));
        assert_eq!((known.known().len(), known.known()[0].as_str()), (KEPT, "5"));
        assert!(fs::metadata(&file).unwrap().len() < 10_000);
        assert_eq!(InputHistory::open(Some(folder.path())).known().len(), KEPT);
    }
}
