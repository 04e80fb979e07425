//! Rows of the audit trail that are on record, though not in the database yet.
//!
//! Waiting for a commit costs a call more than everything else that is done for it. So a row counts as recorded once it
//! stands in a file beside the database, `instances/{id}.{number}.rows`: a kill of this process does not take it away.
//! The writer commits many of them at once, and a file goes when all of its rows are in the database.
//!
//! Whoever reads the trail reads these files as well. Writing a row a second time has no effect, so the next process that
//! opens the database writes what it finds of dead ones.

use super::{execution_row::RecordedRow, fault::Fault};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    mem,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;
use uuid::Uuid;

/// As many rows wait here at most; further ones wait for the database.
const MAX_ROWS: usize = 1024;
/// A longer row goes to the database at once, in bytes.
const MAX_ROW_BYTES: usize = 64 << 10;
/// A file of this length is followed by a new one, in bytes.
const MAX_FILE_BYTES: usize = 256 << 10;
/// How the files' names end.
const ENDING: &str = ".rows";

/// The backlog of this process.
#[derive(Debug)]
pub(super) struct Backlog {
    folder: PathBuf,
    instance: Uuid,
    /// False where a row has to be on the disk itself to count.
    is_used: bool,
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// After a commit that failed, whoever records has to hear of it.
    is_shut: bool,
    rows: Vec<RecordedRow>,
    file: Option<File>,
    bytes: usize,
    /// The number of the file, or of the next one if there is none.
    number: u32,
    /// Files that get no more rows.
    full: Vec<PathBuf>,
}

/// What is to be committed, and the files that may go afterwards.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) rows: Vec<RecordedRow>,
    full: Vec<PathBuf>,
}

impl Taken {
    /// Whether there is nothing to commit and nothing to remove.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.full.is_empty()
    }
}

impl Backlog {
    /// An empty backlog in the folder of the lock files. One that is not used takes no rows.
    pub(super) fn new(folder: PathBuf, instance: Uuid, is_used: bool) -> Self {
        Self { folder, instance, is_used, state: Mutex::default(), news: Notify::new() }
    }

    /// Puts a row on record. One that comes back has to be committed before it counts.
    pub(super) fn append(&self, row: Box<RecordedRow>) -> Result<(), Box<RecordedRow>> {
        if !self.is_used {
            return Err(row);
        }
        let Ok(mut line) = serde_json::to_vec(&row) else { return Err(row) };
        line.push(b'\n');
        let mut state = self.lock();
        if line.len() > MAX_ROW_BYTES || state.is_shut || state.rows.len() >= MAX_ROWS {
            return Err(row);
        }
        if let Err(error) = self.write(&mut state, &line) {
            tracing::warn!(error = &error as &dyn std::error::Error, "rows cannot wait beside the database");
            // What may stand in it by half must not become the beginning of another row.
            self.turn(&mut state);
            return Err(row);
        }
        state.rows.push(*row);
        let is_first = state.rows.len() == 1;
        drop(state);
        if is_first {
            self.news.notify_one();
        }
        Ok(())
    }

    /// Returns once there is something to commit. Cancel-safe.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }

    /// Hands everything out. It must come back by [`committed`](Self::committed) or [`failed`](Self::failed).
    pub(super) fn take(&self) -> Taken {
        let mut state = self.lock();
        if state.bytes >= MAX_FILE_BYTES {
            self.turn(&mut state);
        }
        Taken { rows: mem::take(&mut state.rows), full: mem::take(&mut state.full) }
    }

    /// The rows are in the database.
    pub(super) fn committed(&self, taken: Taken) {
        remove(taken.full);
        let mut state = self.lock();
        state.is_shut = false;
        self.remove_if_done(&mut state);
    }

    /// The rows are not in the database, and are kept to be tried again.
    pub(super) fn failed(&self, taken: Taken) {
        let mut state = self.lock();
        state.is_shut = true;
        state.rows.splice(0..0, taken.rows);
        state.full.extend(taken.full);
    }

    /// Whether rows are kept that could not be committed.
    pub(super) fn has_failed(&self) -> bool {
        let state = self.lock();
        state.is_shut && !state.rows.is_empty()
    }

    /// Takes no more rows. What is not in the database stays for the next process that opens it.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_shut = true;
        self.remove_if_done(&mut state);
    }

    /// All rows on record, whichever process recorded them; some of them are in the database by now.
    pub(super) fn rows(&self) -> Vec<RecordedRow> {
        files(&self.folder).flat_map(|(_, path)| rows_in(&path)).collect()
    }

    fn remove_if_done(&self, state: &mut State) {
        if state.rows.is_empty() {
            self.turn(state);
            remove(mem::take(&mut state.full));
        }
    }

    fn write(&self, state: &mut State, line: &[u8]) -> io::Result<()> {
        let file = match &mut state.file {
            Some(file) => file,
            none => none.insert(OpenOptions::new().append(true).create_new(true).mode(0o600).open(path(
                &self.folder,
                self.instance,
                state.number,
            ))?),
        };
        state.bytes += line.len();
        file.write_all(line)
    }

    /// Has the next row begin a new file.
    fn turn(&self, state: &mut State) {
        if state.file.take().is_some() {
            state.full.push(path(&self.folder, self.instance, state.number));
            state.number += 1;
            state.bytes = 0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files with rows in the folder, with the processes that wrote them.
pub(super) fn files(folder: &Path) -> impl Iterator<Item = (Uuid, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name();
        let (instance, _) = name.to_str()?.strip_suffix(ENDING)?.split_once('.')?;
        Some((instance.parse().ok()?, entry.path()))
    })
}

/// The rows in a file. What was written by half was never acknowledged, and a file that is gone was committed.
pub(super) fn rows_in(path: &Path) -> Vec<RecordedRow> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            let file = path.display();
            tracing::warn!(error = &error as &dyn std::error::Error, %file, "rows of the audit trail cannot be read");
            return Vec::new();
        }
    };
    let lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Removes files whose rows are in the database. One that stays is written again by whoever finds it, without effect.
pub(super) fn remove(files: Vec<PathBuf>) {
    for path in files {
        let _ = fs::remove_file(path);
    }
}

/// Tells of rows that the database refuses for themselves. It would refuse them again, and only the program's log knows
/// of them.
pub(super) fn refused<'a>(
    rows: impl Iterator<Item = &'a RecordedRow>,
    written: impl Iterator<Item = Result<(), Fault>>,
) {
    for (row, written) in rows.zip(written) {
        if let Err(fault) = written {
            let fault: &(dyn std::error::Error + 'static) = &fault;
            tracing::error!(call = %row.id(), error = fault, "the database refuses a row of the audit trail");
        }
    }
}

fn path(folder: &Path, instance: Uuid, number: u32) -> PathBuf {
    folder.join(format!("{instance}.{number}{ENDING}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;
    use toolstead_domain::testing::samples;

    fn backlog() -> (Backlog, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (Backlog::new(folder.path().to_path_buf(), Uuid::from_u128(1), true), folder)
    }

    fn row(number: u32) -> Box<RecordedRow> {
        RecordedRow::new(samples::execution(number), Uuid::from_u128(1)).into()
    }

    fn ids(rows: &[RecordedRow]) -> Vec<Uuid> {
        rows.iter().map(RecordedRow::id).collect()
    }

    fn in_files(folder: &TempDir) -> Vec<Uuid> {
        let mut files: Vec<_> = files(folder.path()).map(|(_, path)| path).collect();
        files.sort();
        files.iter().flat_map(|path| ids(&rows_in(path))).collect()
    }

    #[test]
    fn a_row_stands_in_a_file_until_it_is_committed() {
        let (backlog, folder) = backlog();
        for number in [1, 2] {
            backlog.append(row(number)).unwrap();
        }
        let both = [1, 2].map(|number| samples::call_id(number).0);
        assert_eq!(in_files(&folder), both);
        let taken = backlog.take();
        assert_eq!(ids(&taken.rows), both);
        backlog.failed(taken);
        assert!(backlog.has_failed() && backlog.append(row(3)).is_err(), "whoever records has to hear of it");
        let again = backlog.take();
        assert_eq!(ids(&again.rows), both);
        backlog.committed(again);
        assert!(!backlog.has_failed());
        assert_eq!(files(folder.path()).count(), 0, "an idle process has no file");
        backlog.append(row(3)).unwrap();
        backlog.close();
        assert_eq!(in_files(&folder), [samples::call_id(3).0], "what is not committed stays");
        assert!(backlog.append(row(4)).is_err());
    }

    #[test]
    fn files_and_rows_are_bounded() {
        let (backlog, folder) = backlog();
        let accepted = (0..5000).take_while(|number| backlog.append(row(*number)).is_ok()).count();
        assert_eq!(accepted, MAX_ROWS);
        let taken = backlog.take();
        backlog.append(row(6000)).unwrap();
        assert_eq!(files(folder.path()).count(), 2, "a full file is followed by a new one");
        backlog.committed(taken);
        assert_eq!(in_files(&folder), [samples::call_id(6000).0]);
        let mut large = samples::execution(6001);
        large.arguments = "x".repeat(MAX_ROW_BYTES).into();
        assert!(backlog.append(RecordedRow::new(large, Uuid::nil()).into()).is_err());
    }

    #[test]
    fn what_was_written_by_half_is_no_row() {
        let (backlog, folder) = backlog();
        backlog.append(row(1)).unwrap();
        let (_, path) = files(folder.path()).next().unwrap();
        let whole = fs::read(&path).unwrap();
        for length in [whole.len() - 1, whole.len() / 2] {
            let text = [&whole[..], &whole[..length]].concat();
            fs::write(&path, text).unwrap();
            assert_eq!(ids(&rows_in(&path)), [samples::call_id(1).0]);
        }
        fs::write(folder.path().join("notes.txt"), "").unwrap();
        assert_eq!(files(folder.path()).count(), 1);
        let other = Backlog::new(folder.path().to_path_buf(), Uuid::from_u128(2), true);
        assert_eq!(ids(&other.rows()), [samples::call_id(1).0]);
    }

    #[test]
    fn where_no_file_can_be_written_the_row_comes_back() {
        let (backlog, folder) = backlog();
        drop(folder);
        assert!(backlog.append(row(1)).is_err());
        assert!(backlog.take().rows.is_empty());
    }
}
