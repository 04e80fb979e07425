//! The rows of the audit trail on their way to the disk.
//!
//! Another thread that has to wake costs more than the transaction that it would do. So whoever records a row commits it
//! where it stands, together with all rows that wait: first it lets the other tasks that are ready run, whose rows then
//! come along; then the first one back takes the recorder, and the others find their rows written. Nobody waits for the
//! recorder: whoever has it looks again for rows after it has given it back, so none is left behind.
//!
//! What may take long is left to the thread that writes ([`commit_patiently`](Trail::commit_patiently)): where each
//! commit waits for the disk (`power_safe`), where another connection has the database locked, where there is much to
//! write, and for a while after a commit was slow.

use super::{execution_row::RecordedRow, fault::Fault, recorder::Recorder};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

/// As many rows may wait; further ones wait to wait. A disk that is too slow slows the calls down rather than filling
/// the memory.
const ROOM: usize = 1024;
/// As many rows go into one transaction of the thread at most: some milliseconds, even in a debug build.
const BATCH_ROWS: usize = 256;
/// A transaction ends with the row that makes its text this long, in bytes.
const BATCH_BYTES: usize = 4 << 20;
/// More than that is not committed where it was recorded.
const QUICK_ROWS: usize = 64;
const QUICK_BYTES: usize = 128 << 10;
/// Who records commits the rows of others so often at most before it goes on with its own call.
const ROUNDS: usize = 4;
/// A commit that takes longer is not for a thread that other calls need.
const SLOW: Duration = Duration::from_millis(2);
/// So many commits of the thread must be quick again before one is tried elsewhere.
const PROBATION: u32 = 16;

/// The queue of rows and the one connection that writes them.
#[derive(Debug)]
pub(super) struct Trail {
    waiting: Mutex<Waiting>,
    /// Gone once the trail is closed.
    recorder: Mutex<Option<Recorder>>,
    room: Arc<Semaphore>,
    power_safe: bool,
    /// Tells the thread that there is something for it.
    call: Notify,
    /// Whether the write-ahead log has grown enough to be folded into the database.
    log_is_long: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    rows: Vec<Entry>,
    bytes: usize,
    /// How many commits are left to the thread for now.
    probation: u32,
    /// The thread writes something else.
    held: bool,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    row: Box<RecordedRow>,
    done: oneshot::Sender<Result<(), Arc<Fault>>>,
    _room: OwnedSemaphorePermit,
}

impl Trail {
    /// A trail that writes through this connection.
    pub(super) fn new(recorder: Recorder) -> Self {
        Self {
            waiting: Mutex::default(),
            power_safe: recorder.is_power_safe(),
            recorder: Mutex::new(Some(recorder)),
            room: Arc::new(Semaphore::new(ROOM)),
            call: Notify::new(),
            log_is_long: AtomicBool::new(false),
        }
    }

    /// Writes a row, and returns once it is committed. Once it is in the queue it is written, also if nobody waits any
    /// more.
    pub(super) async fn record(&self, row: RecordedRow) -> Result<(), Arc<Fault>> {
        let room = self.room.clone().acquire_owned().await.map_err(|_| Fault::Closed)?;
        let (done, mut written) = oneshot::channel();
        if self.push(Entry { row: row.into(), done, _room: room })? {
            let mut duty = Duty { trail: self, left: true };
            tokio::task::yield_now().await;
            duty.left = false;
            if let Ok(written) = written.try_recv() {
                return written;
            }
            self.commit_here();
        } else {
            self.call.notify_one();
        }
        written.await.map_err(|_| Fault::Closed)?
    }

    /// Returns when there is something for the thread to do: to [`commit_patiently`](Self::commit_patiently), and to
    /// fold the log if [`takes_long_log`](Self::takes_long_log).
    pub(super) async fn called(&self) {
        self.call.notified().await;
    }

    /// Commits some of what waits, and is patient with other processes and slow disks. Calls again if that was not all.
    pub(super) fn commit_patiently(&self) {
        let mut guard = self.recorder();
        let Some(recorder) = &mut *guard else { return };
        let batch = self.waiting().take(BATCH_ROWS, BATCH_BYTES);
        if !batch.is_empty() {
            recorder.be_patient(true);
            let (begin, written) = (Instant::now(), write(recorder, &batch));
            recorder.be_patient(false);
            self.watch_log(recorder);
            tell(batch, written);
            self.waiting().was_slow(begin.elapsed() > SLOW);
        }
        drop(guard);
        if !self.waiting().rows.is_empty() {
            self.call.notify_one();
        }
    }

    /// Leaves all rows to the thread as long as it writes something else, so that the two do not wait for each other.
    pub(super) fn hold(&self, held: bool) {
        self.waiting().held = held;
        if !held {
            self.call.notify_one();
        }
    }

    /// Whether the write-ahead log is to be folded into the database now. Asked once, it is no more.
    pub(super) fn takes_long_log(&self) -> bool {
        self.log_is_long.swap(false, Ordering::Relaxed)
    }

    /// Folds the end of the log into the database while nobody records, so that it begins anew with the next row.
    pub(super) fn fold_rest(&self) -> Result<(), Fault> {
        let folded = self.recorder().as_mut().map_or(Ok(()), |recorder| recorder.fold_log());
        // The transaction that begins the log anew waits for the disk.
        self.waiting().was_slow(true);
        self.call.notify_one();
        folded
    }

    /// Takes no further row, writes what waits, and closes the connection.
    pub(super) fn close(&self) {
        self.waiting().closed = true;
        while !self.waiting().rows.is_empty() {
            self.commit_patiently();
        }
        self.recorder().take();
    }

    /// Puts a row into the queue. Returns whether it is to be committed where it was recorded.
    fn push(&self, entry: Entry) -> Result<bool, Fault> {
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(Fault::Closed);
        }
        waiting.bytes += entry.row.bytes();
        waiting.rows.push(entry);
        Ok(!self.power_safe && waiting.is_quick())
    }

    /// Commits what waits, unless somebody else is about to.
    fn commit_here(&self) {
        for _ in 0..ROUNDS {
            let mut guard = match self.recorder.try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
                // Who has it looks again after giving it back, and the row is in the queue already.
                Err(TryLockError::WouldBlock) => return,
            };
            let Some(recorder) = &mut *guard else { return };
            let batch = {
                let mut waiting = self.waiting();
                if !waiting.is_quick() {
                    break;
                }
                waiting.take(QUICK_ROWS, QUICK_BYTES)
            };
            if batch.is_empty() {
                drop(guard);
            } else {
                let (begin, written) = (Instant::now(), write(recorder, &batch));
                if matches!(written, Err(Fault::Locked(_))) {
                    self.waiting().put_back(batch);
                    break;
                }
                if begin.elapsed() > SLOW {
                    self.waiting().was_slow(true);
                }
                self.watch_log(recorder);
                drop(guard);
                tell(batch, written);
            }
            // Somebody may have come and gone meanwhile.
            if self.waiting().rows.is_empty() {
                return;
            }
        }
        self.call.notify_one();
    }

    fn watch_log(&self, recorder: &mut Recorder) {
        if recorder.takes_growth() {
            self.log_is_long.store(true, Ordering::Relaxed);
            self.call.notify_one();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recorder(&self) -> MutexGuard<'_, Option<Recorder>> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn is_quick(&self) -> bool {
        self.probation == 0 && !self.held && !self.closed && self.bytes <= QUICK_BYTES
    }

    /// The rows that have waited longest.
    fn take(&mut self, rows: usize, bytes: usize) -> Vec<Entry> {
        let mut taken = 0;
        let within = self.rows.iter().take(rows).take_while(|entry| {
            let before = taken;
            taken += entry.row.bytes();
            before < bytes
        });
        let count = within.count();
        let batch: Vec<_> = if count == self.rows.len() {
            let room = Vec::with_capacity(count);
            std::mem::replace(&mut self.rows, room)
        } else {
            self.rows.drain(..count).collect()
        };
        self.bytes -= batch.iter().map(|entry| entry.row.bytes()).sum::<usize>();
        batch
    }

    fn put_back(&mut self, batch: Vec<Entry>) {
        self.bytes += batch.iter().map(|entry| entry.row.bytes()).sum::<usize>();
        self.rows.splice(..0, batch);
    }

    fn was_slow(&mut self, slow: bool) {
        self.probation = if slow { PROBATION } else { self.probation.saturating_sub(1) };
    }
}

/// Gives the rows of one who is dropped before it could commit them to the thread.
struct Duty<'a> {
    trail: &'a Trail,
    left: bool,
}

impl Drop for Duty<'_> {
    fn drop(&mut self) {
        if self.left {
            self.trail.call.notify_one();
        }
    }
}

fn write(recorder: &mut Recorder, batch: &[Entry]) -> Result<Vec<Result<(), Fault>>, Fault> {
    recorder.record(batch.iter().map(|entry| &*entry.row))
}

/// Tells those who wait; some may have gone.
fn tell(batch: Vec<Entry>, written: Result<Vec<Result<(), Fault>>, Fault>) {
    match written {
        Ok(written) => {
            for (entry, written) in batch.into_iter().zip(written) {
                let _ = entry.done.send(written.map_err(Arc::new));
            }
        }
        Err(fault) => {
            let fault = Arc::new(fault);
            for entry in batch {
                let _ = entry.done.send(Err(fault.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::new_database::{NewDatabase, new_database};
    use futures::future::join_all;
    use std::{future::Future, pin::pin, task::Context, task::Waker};
    use toolstead_domain::testing::samples;
    use uuid::Uuid;

    fn row(number: u32) -> RecordedRow {
        RecordedRow::new(samples::execution(number), Uuid::nil())
    }

    async fn count(database: &mut NewDatabase) -> i64 {
        let count = sqlx::query_scalar("SELECT count(*) FROM tool_executions");
        count.fetch_one(&mut database.connection).await.unwrap()
    }

    /// A new database and a trail beside its recorder.
    async fn trail() -> (NewDatabase, Trail) {
        let database = new_database().await;
        let recorder = Recorder::open(&database.options.path, &database.options).unwrap();
        (database, Trail::new(recorder))
    }

    #[tokio::test]
    async fn rows_are_committed_where_they_are_recorded_with_those_that_wait() {
        let (mut database, trail) = trail().await;
        // No thread is there that could do it.
        let written = join_all((1..=100).map(|number| trail.record(row(number)))).await;
        assert!(written.iter().all(Result::is_ok), "{written:?}");
        assert_eq!(count(&mut database).await, 100);
    }

    #[tokio::test]
    async fn where_another_connection_writes_the_rows_are_the_threads() {
        let (mut database, trail) = trail().await;
        sqlx::query("BEGIN IMMEDIATE").execute(&mut database.connection).await.unwrap();
        let mut recorded = pin!(trail.record(row(1)));
        tokio::select! {
            biased;
            written = &mut recorded => panic!("{written:?}"),
            () = trail.called() => {}
        }
        sqlx::query("COMMIT").execute(&mut database.connection).await.unwrap();
        trail.commit_patiently();
        recorded.await.unwrap();
        assert_eq!(count(&mut database).await, 1);
    }

    #[tokio::test]
    async fn a_row_whose_recording_is_dropped_is_the_threads() {
        let (mut database, trail) = trail().await;
        assert!(pin!(trail.record(row(1))).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        trail.called().await;
        trail.commit_patiently();
        assert_eq!(count(&mut database).await, 1);
    }

    #[tokio::test]
    async fn a_row_that_finds_the_recorder_in_use_is_written_by_the_one_who_uses_it() {
        let (mut database, trail) = trail().await;
        let mut recorded = pin!(trail.record(row(1)));
        {
            let _used = trail.recorder();
            let context = &mut Context::from_waker(Waker::noop());
            assert!(recorded.as_mut().poll(context).is_pending());
            assert!(recorded.as_mut().poll(context).is_pending());
        }
        trail.record(row(2)).await.unwrap();
        recorded.await.unwrap();
        assert_eq!(count(&mut database).await, 2);
    }

    #[tokio::test]
    async fn a_long_row_is_the_threads_and_nothing_is_taken_after_the_end() {
        let (mut database, trail) = trail().await;
        let mut execution = samples::execution(1);
        execution.arguments = "x".repeat(QUICK_BYTES + 1).into();
        let long = trail.record(RecordedRow::new(execution, Uuid::nil()));
        assert!(pin!(long).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        trail.close();
        assert_eq!(count(&mut database).await, 1);
        assert!(matches!(*trail.record(row(2)).await.unwrap_err(), Fault::Closed));
    }

    #[tokio::test]
    async fn the_log_is_folded_and_begins_anew() {
        let (database, trail) = trail().await;
        let log = || std::fs::metadata(database.options.path.with_extension("db-wal")).unwrap().len();
        let mut number = 0;
        let mut until_long = async || {
            while !trail.takes_long_log() {
                number += 1;
                let mut execution = samples::execution(number);
                execution.arguments = "x".repeat(100 << 10).into();
                let row = RecordedRow::new(execution, Uuid::nil());
                tokio::select! {
                    written = trail.record(row) => written.unwrap(),
                    () = async { loop { trail.called().await; trail.commit_patiently(); } } => {}
                }
            }
        };
        until_long().await;
        let once = log();
        trail.fold_rest().unwrap();
        until_long().await;
        assert!(log() < once + once / 4, "{once} bytes, then {}", log());
    }
}
