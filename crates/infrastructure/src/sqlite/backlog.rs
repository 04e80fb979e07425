//! Audit records that are acknowledged but not in the database yet.
//!
//! Waiting for a commit costs a call more than everything else that is done for it. A record is therefore acknowledged
//! once it is in a file beside the database, `instances/{id}.{number}.{database}.rows`, which survives a kill of this
//! process. The writer commits many records at once, and deletes a file when all of its records are in the database.
//!
//! Readers of the audit log read these files as well. Writing a record twice has no effect, so the next process that
//! opens the database commits the records of dead processes.

use super::{
    execution_record::{self, DecodedRecord},
    fault::Fault,
    pending_record::PendingRecord,
};
use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write},
    mem,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::Notify;
use toolstead_domain::CallId;
use uuid::Uuid;

/// Maximum number of records between two commits. Further ones wait for the database.
const MAX_ROWS: usize = 4096;
/// Number of records that are committed without delay: larger commits occupy a processor for longer.
const ENOUGH_ROWS: usize = 256;
/// Maximum length of a file in bytes. Further records wait for the database.
const MAX_FILE_BYTES: usize = 4 << 20;
/// Maximum length of a record in bytes. Longer ones are written to the database at once.
const MAX_ROW_BYTES: usize = 64 << 10;
/// Length in bytes from which a file is replaced by a new one at the next commit.
const LONG_FILE_BYTES: usize = 256 << 10;

/// Location of the files of one database: the folder of the lock files, which several databases may share.
#[derive(Debug, Clone)]
pub(super) struct BacklogLocation {
    folder: PathBuf,
    /// Suffix of the files' names.
    ending: String,
}

#[derive(Debug)]
pub(super) struct Backlog {
    location: BacklogLocation,
    instance: Uuid,
    /// `false` if a record counts only once it is on the disk (`power_safe`).
    is_used: bool,
    files: RwLock<Files>,
    /// Locked while `files` is locked, so that records and files match, and for no longer than a push.
    rows: Mutex<Vec<PendingRecord>>,
    has_records: Notify,
    /// Notified at [`ENOUGH_ROWS`] records.
    enough: Notify,
}

/// Open file of this process. Calls append under a shared lock, so that none waits for another's write.
#[derive(Debug, Default)]
struct Files {
    /// `true` after a failed commit: further records wait for the database, so that their callers receive its error.
    is_shut: bool,
    file: Option<File>,
    bytes: AtomicUsize,
    /// Number of the current file, or of the next one if there is none.
    number: u32,
    /// Files that receive no more records.
    full: Vec<PathBuf>,
    /// `true` while taken records are neither committed nor failed.
    are_rows_out: bool,
}

/// Records to commit, and the files to delete afterwards.
#[derive(Debug, Default)]
pub(super) struct BacklogBatch {
    pub(super) rows: Vec<PendingRecord>,
    full: Vec<PathBuf>,
}

impl BacklogBatch {
    /// Returns `true` if there is nothing to commit and nothing to delete.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.full.is_empty()
    }
}

impl BacklogLocation {
    /// Returns the location of the database's files in this folder.
    pub(super) fn new(folder: &Path, database: &Path) -> Self {
        let name = database.file_name().map(OsString::from).unwrap_or_default();
        Self { folder: folder.to_owned(), ending: format!(".{}.rows", name.to_string_lossy()) }
    }

    /// Returns the existing files with their processes, in the order in which each process wrote them.
    pub(super) fn files(&self) -> io::Result<Vec<(Uuid, PathBuf)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let parts = name.to_str().and_then(|name| name.strip_suffix(&self.ending)?.split_once('.'));
            if let Some((instance, number)) = parts
                && let (Ok(instance), Ok(number)) = (instance.parse::<Uuid>(), number.parse::<u32>())
            {
                found.push((instance, number, entry.path()));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(instance, _, path)| (instance, path)).collect())
    }

    /// Returns the records of these calls from all processes; some of them may be in the database already. The records
    /// of one process are in their order, and none is older than the state in the database at the time of the call.
    pub(super) fn records(&self, is_wanted: impl Fn(CallId) -> bool) -> Result<Vec<DecodedRecord>, Fault> {
        let mut records = Vec::new();
        for (path, file) in self.opened().map_err(Fault::Files)? {
            let read = read_records(file, &path, &is_wanted).map_err(Fault::Files)?;
            records.extend(read.records.into_iter().map(|(_, record)| record));
        }
        Ok(records)
    }

    /// Opens all files before reading the first. A file may be deleted at any time, once its records are in the
    /// database. If a file is missing, the files before it may contain an older state of the same calls, so the folder
    /// is listed again.
    fn opened(&self) -> io::Result<Vec<(PathBuf, File)>> {
        let mut gone = BTreeSet::new();
        'listing: loop {
            let mut opened = Vec::new();
            for (_, path) in self.files()? {
                match File::open(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        // A name that is listed again without a file is skipped.
                        if gone.insert(path) {
                            continue 'listing;
                        }
                    }
                    file => opened.push((path, file?)),
                }
            }
            return Ok(opened);
        }
    }

    fn file(&self, instance: Uuid, number: u32) -> PathBuf {
        self.folder.join(format!("{instance}.{number}{}", self.ending))
    }
}

impl Backlog {
    /// Creates an empty backlog. With `is_used` false, it accepts no records.
    pub(super) fn new(place: BacklogLocation, instance: Uuid, is_used: bool) -> Self {
        let (files, rows, news, enough) = Default::default();
        Self { location: place, instance, is_used, files, rows, has_records: news, enough }
    }

    /// Appends a record to the file. If the record is returned, the caller has to commit it.
    pub(super) fn append(&self, record: PendingRecord) -> Result<(), Box<PendingRecord>> {
        if !self.is_used || record.line().len() > MAX_ROW_BYTES {
            return Err(record.into());
        }
        let line = record.line();
        let files = self.ensure_open_file();
        let Some(file) = files.file.as_ref().filter(|_| !files.is_shut) else { return Err(record.into()) };
        if files.bytes.fetch_add(line.len(), Ordering::Relaxed) + line.len() > MAX_FILE_BYTES
            || self.rows().len() >= MAX_ROWS
        {
            return Err(record.into());
        }
        // Written in one call: the rest of a partial line would follow the line of another call.
        match { file }.write(line.as_bytes()) {
            Ok(written) if written == line.len() => {}
            Ok(_) => return Err(record.into()),
            Err(error) => {
                drop(files);
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "could not write a pending audit record to the backlog"
                );
                return Err(record.into());
            }
        }
        let mut rows = self.rows();
        rows.push(record);
        let waiting = rows.len();
        drop((rows, files));
        match waiting {
            1 => self.has_records.notify_one(),
            ENOUGH_ROWS => self.enough.notify_one(),
            _ => {}
        }
        Ok(())
    }

    /// Waits until there is something to commit. Cancel-safe.
    pub(super) async fn wait_for_records(&self) {
        self.has_records.notified().await;
    }

    /// Waits until [`ENOUGH_ROWS`] records are pending. Cancel-safe.
    pub(super) async fn enough(&self) {
        // A stored notification may be about records that are committed meanwhile.
        while self.rows().len() < ENOUGH_ROWS {
            self.enough.notified().await;
        }
    }

    /// Takes all records and full files. Pass them to [`committed`](Self::committed) or [`failed`](Self::failed).
    pub(super) fn take(&self) -> BacklogBatch {
        let mut files = self.files();
        if files.bytes.load(Ordering::Relaxed) >= LONG_FILE_BYTES {
            self.turn(&mut files);
        }
        let taken = BacklogBatch { rows: mem::take(&mut *self.rows()), full: mem::take(&mut files.full) };
        files.are_rows_out |= !taken.is_empty();
        taken
    }

    /// Deletes the files of records that are in the database.
    pub(super) fn committed(&self, taken: BacklogBatch) {
        let mut files = self.files();
        files.is_shut = false;
        files.are_rows_out = false;
        let done = self.done(&mut files);
        if !self.rows().is_empty() {
            // Records of an earlier failed commit have no further notification.
            self.has_records.notify_one();
        }
        drop(files);
        remove(taken.full);
        remove(done);
    }

    /// Retains records that are not in the database, to be committed again.
    pub(super) fn failed(&self, taken: BacklogBatch, fault: &Fault) {
        let mut files = self.files();
        let was_shut = mem::replace(&mut files.is_shut, true);
        files.are_rows_out = false;
        files.full.extend(taken.full);
        let mut rows = self.rows();
        rows.splice(0..0, taken.rows);
        let waiting = rows.len();
        drop((rows, files));
        if !was_shut && waiting > 0 {
            let fault: &(dyn std::error::Error + 'static) = fault;
            tracing::warn!(error = fault, waiting, "audit records are pending in the backlog of the database");
        }
    }

    /// Returns `true` if there are records whose commit failed.
    pub(super) fn has_failed(&self) -> bool {
        let files = self.files();
        files.is_shut && !self.rows().is_empty()
    }

    /// Stops accepting records. The next process that opens the database commits the rest.
    pub(super) fn close(&self) {
        let mut files = self.files();
        files.is_shut = true;
        let done = self.done(&mut files);
        let waiting = self.rows().len();
        drop(files);
        remove(done);
        if waiting > 0 {
            tracing::warn!(waiting, "pending audit records are stored when the database is opened again");
        }
    }

    /// Returns the location of the files.
    pub(super) fn location(&self) -> &BacklogLocation {
        &self.location
    }

    /// Returns the files, with an open one unless it cannot be created or the backlog is closed.
    fn ensure_open_file(&self) -> RwLockReadGuard<'_, Files> {
        let shared = || self.files.read().unwrap_or_else(PoisonError::into_inner);
        let files = shared();
        if files.file.is_some() || files.is_shut {
            return files;
        }
        drop(files);
        let mut files = self.files();
        if files.file.is_none() && !files.is_shut {
            let path = self.location.file(self.instance, files.number);
            match OpenOptions::new().append(true).create_new(true).mode(0o600).open(path) {
                Ok(file) => files.file = Some(file),
                Err(error) => {
                    drop(files);
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "could not create a backlog file for pending audit records"
                    );
                    return shared();
                }
            }
        }
        drop(files);
        shared()
    }

    /// Returns the files that can be deleted.
    fn done(&self, files: &mut Files) -> Vec<PathBuf> {
        if files.are_rows_out || !self.rows().is_empty() {
            return Vec::new();
        }
        self.turn(files);
        mem::take(&mut files.full)
    }

    /// Closes the current file, so that the next record starts a new one.
    fn turn(&self, files: &mut Files) {
        if files.file.take().is_some() {
            files.full.push(self.location.file(self.instance, files.number));
            files.number += 1;
            files.bytes = AtomicUsize::default();
        }
    }

    // No code panics while a lock is held.

    fn files(&self) -> RwLockWriteGuard<'_, Files> {
        self.files.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn rows(&self) -> MutexGuard<'_, Vec<PendingRecord>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
pub(super) struct BacklogContents {
    /// Records to write, with their decoded form.
    pub(super) records: Vec<(PendingRecord, DecodedRecord)>,
    /// `true` if a complete line is not a valid record: the file is damaged, or of a later version.
    pub(super) is_damaged: bool,
}

/// Reads a file. A missing file was committed and deleted.
pub(super) fn records_in(path: &Path) -> io::Result<BacklogContents> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BacklogContents::default()),
        file => read_records(file?, path, &|_| true),
    }
}

/// Reads an open file. A partial record at its end was never acknowledged and is skipped.
fn read_records(mut file: File, path: &Path, is_wanted: &dyn Fn(CallId) -> bool) -> io::Result<BacklogContents> {
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let mut read = BacklogContents::default();
    let lines = text.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
    for line in lines.filter(|line| !line.is_empty()) {
        if execution_record::id_of(line).is_some_and(|id| !is_wanted(id)) {
            continue;
        }
        match DecodedRecord::decode(line) {
            Ok(record) if is_wanted(record.execution.id) => {
                read.records.push((PendingRecord::read(line, &record), record));
            }
            Ok(_) => {}
            Err(error) => {
                let (error, file) = (&error as &dyn std::error::Error, path.display());
                tracing::warn!(error, %file, "could not read a pending audit record");
                read.is_damaged = true;
            }
        }
    }
    Ok(read)
}

/// Deletes files whose records are in the database. A remaining file is committed again later, without effect.
fn remove(files: Vec<PathBuf>) {
    for path in files {
        let _ = fs::remove_file(path);
    }
}

/// Deletes the file of a dead process after its records are in the database. A file with unreadable records is renamed
/// instead.
pub(super) fn put_away(path: PathBuf, read: &BacklogContents) {
    if read.is_damaged {
        let mut kept = path.clone().into_os_string();
        kept.push(".damaged");
        let _ = fs::rename(&path, kept);
    } else {
        remove(vec![path]);
    }
}

/// Logs records that the database rejects. Trying again would fail in the same way, so only the log mentions them.
pub(super) fn refused<'a>(
    rows: impl Iterator<Item = &'a PendingRecord>,
    written: impl Iterator<Item = Result<(), Fault>>,
) {
    for (row, written) in rows.zip(written) {
        if let Err(fault) = written {
            let fault: &(dyn std::error::Error + 'static) = &fault;
            tracing::error!(call = %row.id(), error = fault, "the database rejected an audit record");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use tempfile::TempDir;
    use toolstead_domain::testing::samples;

    const MINE: Uuid = Uuid::from_u128(1);

    fn place(folder: &TempDir) -> BacklogLocation {
        BacklogLocation::new(folder.path(), Path::new("test.db"))
    }

    fn backlog() -> (Backlog, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (Backlog::new(place(&folder), MINE, true), folder)
    }

    fn append(backlog: &Backlog, number: u32) -> bool {
        backlog.append(PendingRecord::new(&samples::execution(number), MINE)).is_ok()
    }

    fn waiting(backlog: &Backlog) -> Vec<Uuid> {
        backlog.location().records(|_| true).unwrap().iter().map(|record| record.execution.id.0).collect()
    }

    fn pending(rows: &[PendingRecord]) -> Vec<Uuid> {
        rows.iter().map(PendingRecord::id).collect()
    }

    fn of<const N: usize>(numbers: [u32; N]) -> [Uuid; N] {
        numbers.map(|number| samples::call_id(number).0)
    }

    fn count(folder: &TempDir) -> usize {
        fs::read_dir(folder.path()).unwrap().count()
    }

    fn full() -> Fault {
        Fault::DiskFull("no space".into())
    }

    #[test]
    fn a_row_stands_in_a_file_until_it_is_committed() {
        let (backlog, folder) = backlog();
        for number in [1, 2] {
            assert!(append(&backlog, number));
        }
        assert_eq!(waiting(&backlog), of([1, 2]));
        let taken = backlog.take();
        assert_eq!(pending(&taken.rows), of([1, 2]));
        backlog.failed(taken, &full());
        assert!(backlog.has_failed() && !append(&backlog, 3), "whoever records has to hear of it");
        let again = backlog.take();
        assert_eq!(pending(&again.rows), of([1, 2]));
        backlog.committed(again);
        assert!(!backlog.has_failed());
        assert_eq!(count(&folder), 0, "an idle process has no file");
        assert!(append(&backlog, 3));
        backlog.close();
        assert_eq!(waiting(&backlog), of([3]), "what is not committed stays");
        assert!(!append(&backlog, 4));
    }

    #[test]
    fn rows_that_were_taken_and_never_committed_stay() {
        let (backlog, _folder) = backlog();
        assert!(append(&backlog, 1));
        drop(backlog.take());
        backlog.close();
        assert_eq!(waiting(&backlog), of([1]));
    }

    #[tokio::test]
    async fn rows_that_failed_are_told_of_again_when_others_could_be_committed() {
        let (backlog, _folder) = backlog();
        assert!(append(&backlog, 1));
        backlog.wait_for_records().await;
        backlog.failed(backlog.take(), &full());
        backlog.committed(BacklogBatch::default());
        backlog.wait_for_records().await;
        assert_eq!(pending(&backlog.take().rows), of([1]));
    }

    #[tokio::test]
    async fn so_many_rows_are_enough_and_those_that_were_taken_do_not_count() {
        let (backlog, _folder) = backlog();
        let fill = |count: usize| (0..count).for_each(|number| assert!(append(&backlog, number as u32)));
        fill(ENOUGH_ROWS);
        backlog.committed(backlog.take());
        fill(ENOUGH_ROWS - 1);
        assert!(backlog.enough().now_or_never().is_none());
        fill(1);
        backlog.enough().await;
    }

    #[test]
    fn files_and_rows_are_bounded() {
        let (backlog, folder) = backlog();
        let accepted = (0..5000).take_while(|number| append(&backlog, *number)).count();
        assert_eq!(accepted, MAX_ROWS);
        let taken = backlog.take();
        assert!(append(&backlog, 6000));
        assert_eq!(count(&folder), 2, "a long file is followed by a new one");
        backlog.committed(taken);
        assert_eq!(waiting(&backlog), of([6000]));
        let append_large = |number, length| {
            let mut execution = samples::execution(number);
            execution.arguments = "x".repeat(length).into();
            backlog.append(PendingRecord::new(&execution, MINE)).is_ok()
        };
        assert!(!append_large(6001, MAX_ROW_BYTES));
        let accepted = (7000..).take_while(|number| append_large(*number, MAX_ROW_BYTES / 2)).count();
        let longest = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
        assert!((100..MAX_ROWS).contains(&accepted) && longest.max().unwrap() <= MAX_FILE_BYTES as u64);
    }

    #[test]
    fn what_was_written_by_half_is_no_row_and_what_is_damaged_is_told() {
        let (backlog, folder) = backlog();
        assert!(append(&backlog, 1));
        let (_, path) = place(&folder).files().unwrap().remove(0);
        let whole = fs::read(&path).unwrap();
        for (more, is_damaged) in [(&whole[..whole.len() - 1], false), (&whole[..9], false), (b"{}\n".as_slice(), true)]
        {
            fs::write(&path, [&whole, more].concat()).unwrap();
            let read = records_in(&path).unwrap();
            let ids: Vec<Uuid> = read.records.iter().map(|(row, _)| row.id()).collect();
            assert_eq!((ids, read.is_damaged), (of([1]).to_vec(), is_damaged));
        }
    }

    #[test]
    fn a_file_that_goes_while_others_are_read_leaves_no_older_state_of_its_rows() {
        let folder = tempfile::tempdir().unwrap();
        let row = |execution| PendingRecord::new(&execution, MINE).line().as_bytes().to_vec();
        let [older, newer] = [0, 1].map(|number| place(&folder).file(MINE, number));
        // A named pipe blocks its reader until it is opened for writing.
        rustix::fs::mknodat(rustix::fs::CWD, &older, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        fs::write(&newer, row(samples::execution(1))).unwrap();
        let read = std::thread::spawn({
            let place = place(&folder);
            move || place.records(|_| true).unwrap().last().map(|record| record.execution.ended)
        });
        let mut pipe = OpenOptions::new().write(true).open(&older).unwrap();
        // Both are committed, and are deleted in this order.
        for path in [older, newer] {
            fs::remove_file(path).unwrap();
        }
        // Fails if the reader has started again.
        let _ = pipe.write_all(&row(samples::running_execution(1)));
        drop(pipe);
        let last = read.join().unwrap();
        assert!(last.is_none_or(|ended| ended.is_some()), "the older state of the call alone");
    }

    #[test]
    fn a_name_that_leads_to_no_file_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..2 {
            std::os::unix::fs::symlink(folder.path().join("missing"), place(&folder).file(MINE, number)).unwrap();
        }
        assert!(place(&folder).records(|_| true).unwrap().is_empty());
    }

    /// A process of such a version may have been killed before the upgrade.
    #[test]
    fn rows_of_versions_before_the_canonical_form_are_read_and_rewritten() {
        let line = r#"{"id":"00000000-0000-7000-8000-000000000007","tool":"echo","called_as":"Echo","source":"built-in","principal":"local","session":"s","client":"c 1","arguments":"{\"a\":1}","arguments_digest":"d","accesses":"[\"read /x\"]","verdict":"allow","reason":"r","approved_by":null,"started":1,"ended":2,"outcome":"failed","error_kind":"timeout","detail":"late","result_bytes":3,"result_digest":null,"instance":null,"trace":"[]","metadata":"{\"lines\":1}"}"#;
        let (folder, before) = (tempfile::tempdir().unwrap(), line.replace(r#","metadata":"{\"lines\":1}""#, ""));
        let path = folder.path().join("rows");
        fs::write(&path, format!("\n{line}\n\n{before}\n")).unwrap();
        let read = records_in(&path).unwrap();
        let [(row, record), (_, older)] = read.records.as_slice() else { panic!("{read:?}") };
        assert_eq!(record.execution.accesses, ["read /x"]);
        assert_eq!(older.execution.metadata, serde_json::Value::Null);
        let rewritten = DecodedRecord::decode(row.line().trim().as_bytes()).unwrap();
        assert!(rewritten.is_canonical);
        assert_eq!(rewritten.execution, record.execution);
    }

    #[test]
    fn files_are_those_of_one_database_in_the_order_of_their_rows() {
        let folder = tempfile::tempdir().unwrap();
        let id = Uuid::from_u128(7);
        for name in [".10.test.db.rows", ".9.test.db.rows", ".0.other.db.rows", ".0.x.test.db.rows", ".lock"] {
            fs::write(folder.path().join(format!("{id}{name}")), "").unwrap();
        }
        let found = place(&folder).files().unwrap();
        let names: Vec<_> = found.iter().map(|(_, path)| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, [format!("{id}.9.test.db.rows"), format!("{id}.10.test.db.rows")]);
    }

    #[test]
    fn where_no_file_can_be_written_the_row_comes_back_and_nothing_is_taken_for_empty() {
        let (backlog, folder) = backlog();
        drop(folder);
        assert!(!append(&backlog, 1));
        assert!(backlog.take().rows.is_empty());
        assert!(matches!(backlog.location().records(|_| true), Err(Fault::Files(_))));
    }
}
