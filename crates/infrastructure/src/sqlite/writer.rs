//! Thread that does all writing.
//!
//! Recording does not limit the rate of calls: a record is acknowledged once it is in the [`AuditBacklog`], and the
//! thread commits the collected records in one transaction. If the backlog accepts no record (it is full, the last
//! commit failed, the record is large or must survive a power failure), the caller waits for the commit and receives
//! its error. Backlog and queue are bounded, so a slow disk slows calls down instead of filling the memory.

use super::{
    backlog::{self, AuditBacklog, BacklogBatch},
    fault::Fault,
    instance::InstanceLock,
    pending_record::PendingRecord,
    recorder::AuditLogConnection,
    retention::{self, AuditLogCutoff},
    tool_row::{self, CatalogueStatementParameters},
};
use futures::{FutureExt, future::BoxFuture};
use sqlx::{Connection, SqliteConnection};
use std::{future, io, mem, sync::Arc, thread, time::Duration};
use tokio::{
    runtime,
    sync::{mpsc, oneshot},
    time::{Instant, sleep},
};
use uuid::Uuid;

/// Maximum number of queued writes. Callers with further ones wait.
const QUEUE: usize = 1024;
/// Maximum number of queued records per transaction, in addition to those of the backlog.
const BATCH_ROWS: usize = 256;
/// Length in bytes of the texts of queued records at which a transaction is committed.
const BATCH_BYTES: usize = 4 << 20;
/// Maximum time to collect records in the backlog, unless there are enough or a caller waits.
const GATHERING: Duration = Duration::from_millis(20);
/// Minimum time to collect records, unless a caller waits: other processes write to the database as well.
const PAUSE: Duration = Duration::from_millis(2);
/// Time after which records are committed again whose commit failed, unless another write comes first.
const RETRY: Duration = Duration::from_secs(1);

/// Time without work after which the write-ahead log is copied into the database.
const IDLE: Duration = Duration::from_millis(100);

/// Time in which a successful check is not repeated, because each check writes.
const TRIED_LATELY: Duration = Duration::from_secs(1);

/// Handle that queues writes for the thread. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct WriterHandle {
    queue: mpsc::Sender<WriterMessage>,
    backlog: Arc<AuditBacklog>,
    instance: Uuid,
}

type ResultSender<T> = oneshot::Sender<Result<T, Arc<Fault>>>;

/// Work with the connection, which sends its own result.
type Work = Box<dyn for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, ()> + Send>;

enum WriterMessage {
    /// Audit record that the backlog did not accept.
    Record(Box<PendingRecord>, ResultSender<()>),
    SaveCatalogue(CatalogueStatementParameters, ResultSender<()>),
    SetEnabled {
        tool: String,
        enabled: bool,
        done: ResultSender<()>,
    },
    DeleteExpired(AuditLogCutoff, ResultSender<u64>),
    Check(ResultSender<()>),
    Apply(Work),
    Close(oneshot::Sender<()>),
}

impl WriterHandle {
    /// Starts the thread, which owns the connections and the instance: the recorder for the audit log, the connection
    /// for everything else. The thread ends with [`close`](Self::close), or when the last handle is dropped.
    ///
    /// # Errors
    /// An error of the operating system, if it cannot start a thread.
    pub(super) fn spawn(
        recorder: AuditLogConnection,
        connection: SqliteConnection,
        instance: InstanceLock,
        backlog: AuditBacklog,
    ) -> io::Result<Self> {
        let (queue, writes) = mpsc::channel(QUEUE);
        let id = instance.id();
        let backlog = Arc::new(backlog);
        // A runtime of its own, whose timers work even while the process's runtime shuts down.
        let runtime = runtime::Builder::new_current_thread().enable_time().build()?;
        let taken_from = backlog.clone();
        let work = move || runtime.block_on(run(recorder, connection, instance, &taken_from, writes));
        thread::Builder::new().name("writer".into()).spawn(work)?;
        Ok(Self { queue, backlog, instance: id })
    }

    /// Returns the id of this process in the rows of running calls.
    pub(super) fn instance(&self) -> Uuid {
        self.instance
    }

    /// Appends a record to the backlog. If the record is returned, it must be [committed](Self::commit).
    pub(super) fn append(&self, record: PendingRecord) -> Result<(), Box<PendingRecord>> {
        self.backlog.append(record)
    }

    /// Commits a record. Once it is queued, it is written even if the future is dropped.
    pub(super) async fn commit(&self, record: Box<PendingRecord>) -> Result<(), Arc<Fault>> {
        self.write(|done| WriterMessage::Record(record, done)).await
    }

    /// Returns the location of the backlog files of all processes.
    pub(super) fn backlog(&self) -> backlog::BacklogLocation {
        self.backlog.location().clone()
    }

    /// Checks that a record can be committed. Writes nothing if a recent check succeeded.
    pub(super) async fn check(&self) -> Result<(), Arc<Fault>> {
        self.write(WriterMessage::Check).await
    }

    pub(super) async fn save_catalogue(&self, catalogue: CatalogueStatementParameters) -> Result<(), Arc<Fault>> {
        self.write(|done| WriterMessage::SaveCatalogue(catalogue, done)).await
    }

    /// Enables or disables a tool.
    pub(super) async fn set_enabled(&self, tool: String, enabled: bool) -> Result<(), Arc<Fault>> {
        self.write(|done| WriterMessage::SetEnabled { tool, enabled, done }).await
    }

    /// Deletes some expired rows. Returns their number, which is 0 when none is left.
    pub(super) async fn delete_expired(&self, expiry: AuditLogCutoff) -> Result<u64, Arc<Fault>> {
        self.write(|done| WriterMessage::DeleteExpired(expiry, done)).await
    }

    /// Runs other work with the connection that writes: one or more transactions of some milliseconds each, for which
    /// recording waits. Once it is queued, it is done even if the future is dropped.
    pub(super) async fn apply<T: Send + 'static>(
        &self,
        work: impl for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Arc<Fault>> {
        let with_sender = |done: ResultSender<T>| -> Work {
            Box::new(move |connection| async move { send_result(done, work(connection).await) }.boxed())
        };
        self.write(|done| WriterMessage::Apply(with_sender(done))).await
    }

    /// Stops the thread once everything in the queue is written and the connections are closed.
    pub(super) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        // A second caller finds the thread stopped, or stopping with the first.
        if self.queue.send(WriterMessage::Close(done)).await.is_ok() {
            let _ = closed.await;
        }
    }

    async fn write<T>(&self, write: impl FnOnce(ResultSender<T>) -> WriterMessage) -> Result<T, Arc<Fault>> {
        let (done, written) = oneshot::channel();
        self.queue.send(write(done)).await.map_err(|_| Fault::Closed)?;
        written.await.map_err(|_| Fault::Closed)?
    }
}

async fn run(
    mut recorder: AuditLogConnection,
    mut connection: SqliteConnection,
    instance: InstanceLock,
    backlog: &AuditBacklog,
    mut queue: mpsc::Receiver<WriterMessage>,
) {
    let mut writes = Vec::with_capacity(BATCH_ROWS);
    let (mut checks, mut closed) = (Vec::new(), Vec::new());
    let mut passed: Option<Instant> = None;
    let closing = CloseBacklogOnDrop(backlog);
    loop {
        let retry = async { if backlog.has_failed() { sleep(RETRY).await } else { future::pending().await } };
        let is_checkpoint_due = recorder.is_checkpoint_due();
        let idle = async { if is_checkpoint_due { sleep(IDLE).await } else { future::pending().await } };
        let is_over = tokio::select! {
            biased;
            taken = queue.recv_many(&mut writes, BATCH_ROWS) => taken == 0,
            () = backlog.wait_for_records() => tokio::select! {
                biased;
                taken = queue.recv_many(&mut writes, BATCH_ROWS) => taken == 0,
                () = sleep(PAUSE).then(|()| backlog.enough()) => false,
                () = sleep(GATHERING) => false,
            },
            () = retry => false,
            () = idle => {
                recorder.checkpoint();
                false
            }
        };
        let mut batch = Batch { taken: backlog.take(), ..Batch::default() };
        for write in writes.drain(..) {
            match write {
                WriterMessage::Record(row, done) => {
                    batch.bytes += row.bytes();
                    batch.rows.push((row, done));
                    if batch.bytes >= BATCH_BYTES {
                        mem::take(&mut batch).commit(&mut recorder, backlog);
                    }
                }
                WriterMessage::SaveCatalogue(catalogue, done) => {
                    send_result(done, catalogue.save(&mut connection).await);
                }
                WriterMessage::SetEnabled { tool, enabled, done } => {
                    send_result(done, tool_row::switch(&mut connection, &tool, enabled).await);
                }
                WriterMessage::DeleteExpired(expiry, done) => {
                    send_result(done, retention::delete_some(&mut connection, expiry).await);
                }
                WriterMessage::Check(done) => checks.push(done),
                WriterMessage::Apply(work) => work(&mut connection).await,
                WriterMessage::Close(done) => {
                    // Queued writes are still done. New ones are rejected.
                    queue.close();
                    closed.push(done);
                }
            }
        }
        batch.commit(&mut recorder, backlog);
        if !checks.is_empty() {
            let was_tried = passed.is_some_and(|at| at.elapsed() < TRIED_LATELY) && !backlog.has_failed();
            let found = if was_tried { Ok(()) } else { recorder.check().map_err(Arc::new) };
            if !was_tried {
                passed = found.is_ok().then(Instant::now);
            }
            for done in checks.drain(..) {
                // The receiver may have been dropped.
                let _ = done.send(found.clone());
            }
        }
        if is_over {
            break;
        }
    }
    drop(closing);
    drop(recorder);
    if let Err(error) = connection.close().await {
        tracing::warn!(error = &error as &dyn std::error::Error, "could not close the database");
    }
    // The lock is released last: a process that finds it free marks running calls as interrupted.
    drop(instance);
    for done in closed {
        // The receiver may have been dropped.
        let _ = done.send(());
    }
}

/// Guard that closes the backlog when the thread ends for any reason, before the lock is released.
struct CloseBacklogOnDrop<'a>(&'a AuditBacklog);

impl Drop for CloseBacklogOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Records that are committed together.
#[derive(Default)]
struct Batch {
    /// Records of the backlog, which are acknowledged already.
    taken: BacklogBatch,
    rows: Vec<(Box<PendingRecord>, ResultSender<()>)>,
    bytes: usize,
}

impl Batch {
    /// Commits the records and sends the results. Records of the backlog return to it if the commit fails.
    fn commit(self, recorder: &mut AuditLogConnection, backlog: &AuditBacklog) {
        let Self { taken, rows, .. } = self;
        if taken.is_empty() && rows.is_empty() {
            return;
        }
        match recorder.record(taken.rows.iter().chain(rows.iter().map(|(row, _)| &**row))) {
            Ok(written) => {
                let mut written = written.into_iter();
                backlog::refused(taken.rows.iter(), written.by_ref());
                rows.into_iter().zip(written).for_each(|((_, done), written)| send_result(done, written));
                backlog.committed(taken);
            }
            Err(fault) => {
                let fault = Arc::new(fault);
                backlog.failed(taken, &fault);
                for (_, done) in rows {
                    // The receiver may have been dropped.
                    let _ = done.send(Err(fault.clone()));
                }
            }
        }
    }
}

fn send_result<T>(done: ResultSender<T>, result: Result<T, Fault>) {
    // The receiver may have been dropped. The work is done in any case.
    let _ = done.send(result.map_err(Arc::new));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{
        backlog::BacklogLocation,
        connection::{connect_writer, readers},
        database::Database,
        database_options::DatabaseOptions,
        execution_log::SqliteExecutionLog,
        new_database::{TestDatabase, new_database},
    };
    use std::{error::Error, path::Path, time::Instant};
    use tempfile::TempDir;
    use toolstead_domain::{
        ExecutionFilter, ExecutionLog, OutcomeKind, ToolExecution,
        testing::{fixed_clock::FixedClock, samples},
    };

    /// With or without a backlog.
    fn start(database: TestDatabase, has_backlog: bool) -> (WriterHandle, SqliteExecutionLog, TempDir) {
        let TestDatabase { folder, options, connection, recorder } = database;
        let instances = folder.path().join("instances");
        let instance = InstanceLock::join(&instances).unwrap();
        let backlog = AuditBacklog::new(BacklogLocation::new(&instances, &options.path), instance.id(), has_backlog);
        let writer = WriterHandle::spawn(recorder, connection, instance, backlog).unwrap();
        let log = SqliteExecutionLog::new(writer.clone(), readers(&options.path, &options));
        (writer, log, folder)
    }

    async fn record(writer: &WriterHandle, number: u32) -> Result<(), Arc<Fault>> {
        match writer.append(PendingRecord::new(&samples::execution(number), Uuid::nil())) {
            Ok(()) => Ok(()),
            Err(record) => writer.commit(record).await,
        }
    }

    #[tokio::test]
    async fn a_record_that_cannot_be_written_does_not_affect_other_records() {
        let mut database = new_database().await;
        let trigger = "CREATE TRIGGER refuse BEFORE INSERT ON tool_executions WHEN new.id = x'BAD'
            BEGIN SELECT RAISE(ABORT, 'refused'); END";
        let bad = samples::call_id(7);
        let trigger = trigger.replace("BAD", &bad.0.simple().to_string());
        sqlx::query(sqlx::AssertSqlSafe(trigger)).execute(&mut database.connection).await.unwrap();
        let rows = [1, 7, 2].map(|number| PendingRecord::new(&samples::execution(number), Uuid::nil()));
        let written = database.recorder.record(rows.iter()).unwrap();
        assert!(matches!(written.as_slice(), [Ok(()), Err(Fault::Refused(_)), Ok(())]), "{written:?}");
        let (writer, log, _folder) = start(database, false);
        let written = tokio::join!(record(&writer, 3), record(&writer, 7), record(&writer, 4));
        assert!(matches!(written, (Ok(()), Err(_), Ok(()))), "{written:?}");
        assert_eq!(log.list(&Default::default()).await.unwrap(), [4, 3, 2, 1].map(samples::execution));
    }

    #[tokio::test]
    async fn a_record_is_written_even_if_its_caller_no_longer_waits() {
        let (writer, log, _folder) = start(new_database().await, false);
        // The thread does nothing else until `go_on` is sent.
        let (go_on, held_up) = oneshot::channel::<()>();
        let wait = writer.apply(|_| held_up.map(|_| Ok(())).boxed());
        assert!(wait.now_or_never().is_none());
        assert!(record(&writer, 1).now_or_never().is_none(), "somebody waits, and not any more");
        assert_eq!(log.find(samples::call_id(1)).await.unwrap(), None);
        go_on.send(()).unwrap();
        writer.close().await;
        assert_eq!(log.find(samples::call_id(1)).await.unwrap(), Some(samples::execution(1)));
        let late = log.record(samples::execution(2)).await.unwrap_err();
        assert_eq!(late.source().unwrap().to_string(), "the database is closed");
        writer.close().await;
    }

    #[tokio::test]
    async fn a_full_disk_is_reported_and_acknowledged_records_remain() {
        let database = new_database().await;
        database.recorder.limit_pages(56);
        let (writer, log, _folder) = start(database, false);
        let mut written = 0;
        let fault = loop {
            assert!(written < 1000, "the database grew beyond its limit");
            match record(&writer, written + 1).await {
                Ok(()) => written += 1,
                Err(fault) => break fault,
            }
        };
        assert!(written > 10, "{written}");
        assert!(matches!(*fault, Fault::DiskFull(_)), "{fault:?}");
        assert!(matches!(*writer.check().await.unwrap_err(), Fault::DiskFull(_)), "whoever asks before is told");
        let message = log.record(samples::execution(written + 1)).await.unwrap_err();
        assert_eq!(message.source().unwrap().to_string(), "the disk is full");
        assert_eq!(log.find(samples::call_id(written + 1)).await.unwrap(), None);
        for number in 1..=written {
            assert_eq!(log.find(samples::call_id(number)).await.unwrap(), Some(samples::execution(number)));
        }
    }

    #[tokio::test]
    async fn checks_in_quick_succession_cause_only_one_trial_write() {
        let mut database = new_database().await;
        let mut other = connect_writer(&database.options.path, &database.options).await.unwrap();
        let trial = "CREATE TABLE tried (at INTEGER); \
                     CREATE TRIGGER try AFTER INSERT ON trials BEGIN INSERT INTO tried VALUES (1); END";
        sqlx::raw_sql(trial).execute(&mut database.connection).await.unwrap();
        let (writer, _log, _folder) = start(database, true);
        // Repeated until two checks follow each other within [`TRIED_LATELY`].
        loop {
            let start = Instant::now();
            let mut tried = Vec::new();
            for _ in 0..2 {
                writer.check().await.unwrap();
                let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM tried");
                tried.push(count.fetch_one(&mut other).await.unwrap());
            }
            assert!(tried[0] >= 1);
            if start.elapsed() < TRIED_LATELY {
                assert_eq!(tried[0], tried[1]);
                break;
            }
        }
        writer.close().await;
    }

    #[tokio::test]
    async fn records_in_the_backlog_survive_a_full_disk() {
        let database = new_database().await;
        database.recorder.limit_pages(56);
        let (writer, log, folder) = start(database, true);
        let mut written = 0;
        let fault = loop {
            assert!(written < 100_000, "the full disk must be reported to the caller");
            match record(&writer, written + 1).await {
                Ok(()) => written += 1,
                Err(fault) => break fault,
            }
        };
        assert!(matches!(*fault, Fault::DiskFull(_)), "{fault:?}");
        all_are_there(&log, written).await;
        writer.close().await;
        let place = BacklogLocation::new(&folder.path().join("instances"), Path::new("test.db"));
        assert!(!place.files().unwrap().is_empty(), "some of them wait");
        // The limit was that of the connection.
        let options = DatabaseOptions::at(folder.path().join("test.db"));
        let database = Database::open(options, Arc::new(FixedClock::at(samples::START))).await.unwrap();
        assert_eq!(place.files().unwrap(), []);
        all_are_there(&*database.execution_log(), written).await;
        database.close().await;
    }

    /// Checks that the rows up to this number are found, and listed once each.
    async fn all_are_there(log: &dyn ExecutionLog, last: u32) {
        for number in 1..=last {
            assert_eq!(log.find(samples::call_id(number)).await.unwrap(), Some(samples::execution(number)));
        }
        assert_eq!(log.find(samples::call_id(last + 1)).await.unwrap(), None);
        let (mut filter, mut listed) = (ExecutionFilter { limit: 7, ..ExecutionFilter::default() }, Vec::new());
        loop {
            let page = log.list(&filter).await.unwrap();
            filter.before = page.last().map(|row| row.id);
            let is_last = page.len() < 7;
            listed.extend(page);
            if is_last {
                break;
            }
        }
        assert_eq!(listed, (1..=last).rev().map(samples::execution).collect::<Vec<_>>());
    }

    /// Waits until the database itself, without the backlog, has this number of rows.
    async fn until_committed(options: &DatabaseOptions, rows: i64) {
        let pool = readers(&options.path, options);
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let found: i64 = sqlx::query_scalar("SELECT count(*) FROM tool_executions").fetch_one(&pool).await.unwrap();
            if found == rows {
                return;
            }
            assert!(Instant::now() < deadline, "{found} rows of {rows}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn uncommitted_records_are_retried_without_further_activity() {
        let mut database = new_database().await;
        database.recorder = impatient(&database.options);
        let options = database.options.clone();
        let mut other = connect_writer(&options.path, &options).await.unwrap();
        let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
        let (writer, _log, _folder) = start(database, true);
        let mut recorded = 0;
        while record(&writer, recorded + 1).await.is_ok() {
            recorded += 1;
        }
        lock.rollback().await.unwrap();
        until_committed(&options, recorded.into()).await;
        writer.close().await;
    }

    fn impatient(options: &DatabaseOptions) -> AuditLogConnection {
        let options = DatabaseOptions { busy_timeout: Duration::from_millis(20), ..options.clone() };
        AuditLogConnection::open(&options.path, &options).unwrap()
    }

    #[tokio::test]
    async fn a_backlog_record_that_the_database_rejects_does_not_affect_others() {
        let mut database = new_database().await;
        let trigger = "CREATE TRIGGER refuse BEFORE INSERT ON tool_executions WHEN new.tool = 'bad'
            BEGIN SELECT RAISE(ABORT, 'refused'); END";
        sqlx::query(trigger).execute(&mut database.connection).await.unwrap();
        let options = database.options.clone();
        let (writer, log, _folder) = start(database, true);
        let bad = ToolExecution { tool: "bad".into(), ..samples::execution(2) };
        for execution in [samples::execution(1), bad, samples::execution(3)] {
            writer.append(PendingRecord::new(&execution, Uuid::nil())).unwrap();
        }
        until_committed(&options, 2).await;
        record(&writer, 4).await.unwrap();
        until_committed(&options, 3).await;
        assert_eq!(log.list(&Default::default()).await.unwrap(), [4, 3, 1].map(samples::execution));
        writer.close().await;
    }

    #[tokio::test]
    async fn a_record_is_readable_by_every_reader_before_it_is_committed() {
        let (writer, log, folder) = start(new_database().await, true);
        writer.check().await.unwrap();
        record(&writer, 1).now_or_never().expect("nothing to wait for").unwrap();
        assert_eq!(log.find(samples::call_id(1)).await.unwrap(), Some(samples::execution(1)));
        let options = DatabaseOptions::at(folder.path().join("test.db"));
        let other = Database::open(options, Arc::new(FixedClock::at(samples::START))).await.unwrap();
        record(&writer, 2).await.unwrap();
        let listed = other.execution_log().list(&Default::default()).await.unwrap();
        assert_eq!(listed, [2, 1].map(samples::execution));
        // A call that is running in the database has ended if the backlog contains its end.
        let running = PendingRecord::new(&samples::running_execution(3), Uuid::max());
        writer.write(|done| WriterMessage::Record(running.into(), done)).await.unwrap();
        record(&writer, 3).await.unwrap();
        assert_eq!(log.find(samples::call_id(3)).await.unwrap(), Some(samples::execution(3)));
        let running = ExecutionFilter { outcome: Some(OutcomeKind::Running), ..ExecutionFilter::default() };
        assert_eq!(other.execution_log().list(&running).await.unwrap(), []);
        other.close().await;
        writer.close().await;
    }

    #[tokio::test]
    async fn large_records_beyond_one_batch_are_all_committed() {
        let (writer, log, _folder) = start(new_database().await, true);
        let large = |number| {
            let mut execution = samples::execution(number);
            execution.arguments = "x".repeat(3 << 20).into();
            execution
        };
        let rows = [1, 2, 3].map(large);
        let [one, two, three] = rows.clone().map(|row| log.record(row));
        let (one, two, three) = tokio::join!(one, two, three);
        assert!(one.is_ok() && two.is_ok() && three.is_ok());
        assert_eq!(log.find(samples::call_id(3)).await.unwrap().as_ref(), Some(&rows[2]));
        writer.close().await;
    }
}
