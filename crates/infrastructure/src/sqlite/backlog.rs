//! Audit records that are acknowledged but not in the database yet.
//!
//! Waiting for a commit costs a call more than everything else that is done for it. A record is therefore acknowledged
//! once it is in a [segment](segment), a file beside the database, `instances/{id}.{number}.{database}.rows`, which
//! survives a kill of this process. The writer commits many records at once, and clears a segment when all of its
//! records are in the database.
//!
//! Readers of the audit log read these files as well. Writing a record twice has no effect, so the next process that
//! opens the database commits the records of dead processes.

mod location;
mod segment;

pub(super) use location::{BacklogLocation, put_away, records_in, refused};

use self::segment::{SEGMENT_BYTES, Segment};
use super::{fault::Fault, pending_record::PendingRecord};
use std::{
    io, mem,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;
use uuid::Uuid;

/// Maximum number of records between two commits. Further ones wait for the database.
const MAX_ROWS: usize = 4096;
/// Number of records that are committed without delay: larger commits occupy a processor for longer.
const ENOUGH_ROWS: usize = 256;
/// Maximum length of the segments between two commits, in bytes. Further records wait for the database.
const MAX_BYTES: usize = 4 << 20;
/// Maximum length of a record in bytes. Longer ones are written to the database at once.
const MAX_ROW_BYTES: usize = 64 << 10;
/// Length in bytes from which a segment is replaced at the next commit. Small segments stay in the processor's cache.
const LONG_SEGMENT_BYTES: usize = 128 << 10;

#[derive(Debug)]
pub(super) struct AuditBacklog {
    location: BacklogLocation,
    instance: Uuid,
    /// `false` if a record counts only once it is on the disk (`power_safe`).
    is_used: bool,
    state: Mutex<State>,
    has_records: Notify,
    /// Notified at [`ENOUGH_ROWS`] records.
    enough: Notify,
}

#[derive(Debug, Default)]
struct State {
    rows: Vec<PendingRecord>,
    /// `true` after a failed commit: further records wait for the database, so that their callers receive its error.
    is_shut: bool,
    current: Option<Segment>,
    /// Segments that receive no more records, except those that are being committed.
    full: Vec<Segment>,
    /// Cleared segment for later records.
    spare: Option<Segment>,
    /// Number of the next file.
    number: u64,
    /// `true` while taken records are neither committed nor failed.
    are_rows_out: bool,
}

/// Records to commit, and the segments to clear afterwards.
#[derive(Debug, Default)]
pub(super) struct BacklogBatch {
    pub(super) rows: Vec<PendingRecord>,
    full: Vec<Segment>,
}

impl BacklogBatch {
    /// Returns `true` if there is nothing to commit and nothing to clear.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.full.is_empty()
    }
}

impl AuditBacklog {
    /// Creates an empty backlog. With `is_used` false, it accepts no records.
    pub(super) fn new(location: BacklogLocation, instance: Uuid, is_used: bool) -> Self {
        let (state, has_records, enough) = Default::default();
        Self { location, instance, is_used, state, has_records, enough }
    }

    /// Appends a record to a segment. If the record is returned, the caller has to commit it.
    pub(super) fn append(&self, record: PendingRecord) -> Result<(), Box<PendingRecord>> {
        let line = record.line().as_bytes();
        if !self.is_used || line.len() > MAX_ROW_BYTES {
            return Err(record.into());
        }
        let mut state = self.state();
        if state.is_shut || state.rows.len() >= MAX_ROWS {
            return Err(record.into());
        }
        match self.write(&mut state, line) {
            Ok(true) => {}
            Ok(false) => return Err(record.into()),
            Err(error) => {
                drop(state);
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "could not write a pending audit record to the backlog"
                );
                return Err(record.into());
            }
        }
        state.rows.push(record);
        let waiting = state.rows.len();
        drop(state);
        match waiting {
            1 => self.has_records.notify_one(),
            ENOUGH_ROWS => self.enough.notify_one(),
            _ => {}
        }
        Ok(())
    }

    /// Writes a record. Returns `false` if the segments are full.
    fn write(&self, state: &mut State, line: &[u8]) -> io::Result<bool> {
        if let Some(segment) = state.current.as_mut().filter(|segment| segment.has_space_for(line)) {
            segment.append(line)?;
            return Ok(true);
        }
        if state.full.len() + 1 >= MAX_BYTES / SEGMENT_BYTES {
            return Ok(false);
        }
        let mut next = match state.spare.take() {
            Some(spare) => spare,
            None => Segment::create(self.location.file(self.instance, state.next_number()))?,
        };
        if let Err(error) = next.append(line) {
            state.spare = Some(next);
            return Err(error);
        }
        state.full.extend(state.current.replace(next));
        Ok(true)
    }

    /// Waits until there is something to commit. Cancel-safe.
    pub(super) async fn wait_for_records(&self) {
        self.has_records.notified().await;
    }

    /// Waits until [`ENOUGH_ROWS`] records are pending. Cancel-safe.
    pub(super) async fn enough(&self) {
        // A stored notification may be about records that are committed meanwhile.
        while self.state().rows.len() < ENOUGH_ROWS {
            self.enough.notified().await;
        }
    }

    /// Takes all records and full segments. Pass them to [`committed`](Self::committed) or [`failed`](Self::failed).
    pub(super) fn take(&self) -> BacklogBatch {
        let mut state = self.state();
        let is_long = |segment: &mut Segment| segment.len() >= LONG_SEGMENT_BYTES;
        let long = state.current.take_if(is_long);
        state.full.extend(long);
        let batch = BacklogBatch { rows: mem::take(&mut state.rows), full: mem::take(&mut state.full) };
        state.are_rows_out |= !batch.is_empty();
        batch
    }

    /// Clears the segments of a batch whose records are in the database, and ends the refusal of records after a failed
    /// commit.
    pub(super) fn committed(&self, batch: BacklogBatch) {
        let mut done = batch.full;
        let mut state = self.state();
        state.is_shut = false;
        state.are_rows_out = false;
        done.extend(state.take_done());
        if !state.rows.is_empty() {
            // Records of an earlier failed commit have no further notification.
            self.has_records.notify_one();
        }
        let last = done.pop().map(|segment| (segment, state.next_number()));
        drop(state);
        // Only a burst needs more segments. The oldest go first: a later record of a call replaces an earlier one.
        done.into_iter().for_each(Segment::delete);
        if let Some((segment, number)) = last {
            self.reuse(segment, number);
        }
    }

    /// Clears a segment, which takes too long to do it under the lock, and retains it for later records.
    fn reuse(&self, mut segment: Segment, number: u64) {
        if segment.clear(self.location.file(self.instance, number)).is_ok() {
            let mut state = self.state();
            // Segments are numbered in the order of their records. A new one may have been created meanwhile.
            if state.spare.is_none() && state.number == number + 1 {
                state.spare = Some(segment);
                return;
            }
        }
        segment.delete();
    }

    /// Retains the records of a failed commit, to be committed again. Until then the backlog accepts no further
    /// records.
    pub(super) fn failed(&self, batch: BacklogBatch, fault: &Fault) {
        let mut state = self.state();
        let was_shut = mem::replace(&mut state.is_shut, true);
        state.are_rows_out = false;
        state.full.splice(0..0, batch.full);
        state.rows.splice(0..0, batch.rows);
        let waiting = state.rows.len();
        drop(state);
        if !was_shut && waiting > 0 {
            let fault: &(dyn std::error::Error + 'static) = fault;
            tracing::warn!(error = fault, waiting, "audit records are pending in the backlog of the database");
        }
    }

    /// Returns `true` if there are records whose commit failed.
    pub(super) fn has_failed(&self) -> bool {
        let state = self.state();
        state.is_shut && !state.rows.is_empty()
    }

    /// Stops accepting records, and deletes the segments whose records are all in the database. The next process that
    /// opens the database commits the remaining records.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_shut = true;
        let mut done = state.take_done();
        done.extend(state.spare.take());
        let waiting = state.rows.len();
        drop(state);
        done.into_iter().for_each(Segment::delete);
        if waiting > 0 {
            tracing::warn!(waiting, "pending audit records are stored when the database is opened again");
        }
    }

    /// Returns the location of the backlog files.
    pub(super) fn location(&self) -> &BacklogLocation {
        &self.location
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Removes all used segments and returns them, if every record is in the database. Otherwise it returns none.
    fn take_done(&mut self) -> Vec<Segment> {
        if self.are_rows_out || !self.rows.is_empty() {
            return Vec::new();
        }
        let mut done = mem::take(&mut self.full);
        done.extend(self.current.take());
        done
    }

    fn next_number(&mut self) -> u64 {
        let number = self.number;
        self.number += 1;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::execution_record::DecodedRecord;
    use futures::FutureExt;
    use std::{
        fs::{self, OpenOptions},
        io::Write,
        path::Path,
    };
    use tempfile::TempDir;
    use toolstead_domain::testing::samples;

    const MINE: Uuid = Uuid::from_u128(1);

    fn place(folder: &TempDir) -> BacklogLocation {
        BacklogLocation::new(folder.path(), Path::new("test.db"))
    }

    fn backlog() -> (AuditBacklog, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (AuditBacklog::new(place(&folder), MINE, true), folder)
    }

    fn append(backlog: &AuditBacklog, number: u32) -> bool {
        backlog.append(PendingRecord::new(&samples::execution(number), MINE)).is_ok()
    }

    fn waiting(backlog: &AuditBacklog) -> Vec<Uuid> {
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
    fn a_record_is_kept_in_a_file_until_it_is_committed() {
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
        assert_eq!((waiting(&backlog), count(&folder)), (Vec::new(), 1), "one segment is reused");
        assert!(append(&backlog, 3));
        backlog.close();
        assert_eq!((waiting(&backlog), count(&folder)), (of([3]).to_vec(), 1), "pending records remain");
        assert!(!append(&backlog, 4));
    }

    #[test]
    fn a_closed_backlog_without_records_has_no_file() {
        let (backlog, folder) = backlog();
        assert!(append(&backlog, 1));
        backlog.committed(backlog.take());
        backlog.close();
        assert_eq!(count(&folder), 0);
    }

    #[test]
    fn segments_are_reused_and_the_order_of_their_records_remains() {
        let (backlog, folder) = backlog();
        let mut next = 0;
        let mut fill = || -> Vec<Uuid> {
            let numbers = next..next + 300;
            next = numbers.end;
            numbers
                .map(|number| {
                    assert!(append(&backlog, number));
                    samples::call_id(number).0
                })
                .collect()
        };
        let mut earlier = fill();
        for _ in 0..10 {
            let batch = backlog.take();
            let later = fill();
            assert_eq!(waiting(&backlog), [earlier, later.clone()].concat());
            backlog.committed(batch);
            assert_eq!((waiting(&backlog), count(&folder)), (later.clone(), 2));
            earlier = later;
        }
    }

    #[test]
    fn records_that_are_taken_but_not_committed_remain_in_the_backlog() {
        let (backlog, _folder) = backlog();
        assert!(append(&backlog, 1));
        drop(backlog.take());
        backlog.close();
        assert_eq!(waiting(&backlog), of([1]));
    }

    #[tokio::test]
    async fn a_later_commit_signals_failed_records_again() {
        let (backlog, _folder) = backlog();
        assert!(append(&backlog, 1));
        backlog.wait_for_records().await;
        backlog.failed(backlog.take(), &full());
        backlog.committed(BacklogBatch::default());
        backlog.wait_for_records().await;
        assert_eq!(pending(&backlog.take().rows), of([1]));
    }

    #[tokio::test]
    async fn the_record_threshold_does_not_count_records_that_were_taken() {
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
    fn an_unwritable_segment_is_reused_and_deleted_at_close() {
        let (backlog, folder) = backlog();
        let path = folder.path().join("segment");
        backlog.state().spare = Some(Segment::unwritable(path.clone()));
        assert!(!append(&backlog, 1) && !append(&backlog, 2));
        assert_eq!(count(&folder), 1);
        backlog.close();
        assert!(!path.exists());
    }

    #[test]
    fn the_backlog_bounds_its_records_and_the_size_of_its_files() {
        let (backlog, folder) = backlog();
        let accepted = (0..5000).take_while(|number| append(&backlog, *number)).count();
        assert_eq!(accepted, MAX_ROWS);
        let taken = backlog.take();
        assert!(append(&backlog, 6000));
        assert_eq!(count(&folder), 4, "a long segment is followed by another one");
        backlog.committed(taken);
        assert_eq!((waiting(&backlog), count(&folder)), (of([6000]).to_vec(), 2));
        let append_large = |number, length| {
            let mut execution = samples::execution(number);
            execution.arguments = "x".repeat(length).into();
            backlog.append(PendingRecord::new(&execution, MINE)).is_ok()
        };
        assert!(!append_large(6001, MAX_ROW_BYTES));
        let accepted = (7000..).take_while(|number| append_large(*number, MAX_ROW_BYTES / 2)).count();
        let lengths = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
        assert!((100..MAX_ROWS).contains(&accepted) && lengths.sum::<u64>() <= MAX_BYTES as u64);
    }

    #[test]
    fn a_partial_record_is_skipped_and_a_damaged_one_is_reported() {
        let (backlog, folder) = backlog();
        assert!(append(&backlog, 1));
        let (_, path) = place(&folder).files().unwrap().remove(0);
        let mut whole = fs::read(&path).unwrap();
        whole.truncate(whole.iter().position(|byte| *byte == b'\n').unwrap() + 1);
        let with_hole = [&whole[..9], &[0; 20], &whole[29..]].concat();
        for (more, is_damaged) in [
            (&whole[..whole.len() - 1], false),
            (&whole[..9], false),
            (&with_hole, false),
            (&[0; 100_000], false),
            (b"{}\n", true),
        ] {
            fs::write(&path, [&whole, more].concat()).unwrap();
            let read = records_in(&path).unwrap();
            let ids: Vec<Uuid> = read.records.iter().map(|(row, _)| row.id()).collect();
            assert_eq!((ids, read.is_damaged), (of([1]).to_vec(), is_damaged));
        }
    }

    #[test]
    fn reading_while_files_are_deleted_never_returns_only_an_older_state() {
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
    fn dangling_links_in_the_backlog_folder_are_ignored() {
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
    fn lists_only_files_of_one_database_in_record_order() {
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
    fn a_missing_folder_rejects_records_and_is_not_read_as_empty() {
        let (backlog, folder) = backlog();
        drop(folder);
        assert!(!append(&backlog, 1));
        assert!(backlog.take().rows.is_empty());
        assert!(matches!(backlog.location().records(|_| true), Err(Fault::Files(_))));
    }
}
