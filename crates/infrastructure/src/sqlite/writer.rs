//! The one thread that writes.
//!
//! Recording does not set the pace of calls: the thread takes every row that waits, commits all of them in one
//! transaction, and only then tells those who wait. Nobody waits for others to come; while one transaction is on its
//! way to the disk the rows of the next one gather. The queue has a bound, so a disk that is too slow slows the calls
//! down rather than filling the memory.

use super::{
    execution_row::RecordedRow,
    fault::Fault,
    instance::Instance,
    recorder::Recorder,
    retention::{self, Expiry},
    tool_row::{self, Catalogue},
};
use futures::{FutureExt, future::BoxFuture};
use sqlx::{Connection, SqliteConnection};
use std::{io, sync::Arc, thread};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
};
use uuid::Uuid;

/// As many writes may wait; further ones wait to wait.
const QUEUE: usize = 1024;
/// As many rows go into one transaction at most: some milliseconds, even in a debug build.
const BATCH_ROWS: usize = 256;
/// A transaction ends with the row that makes its text this long, in bytes.
const BATCH_BYTES: usize = 4 << 20;

/// Hands writes to the thread. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Write>,
    instance: Uuid,
}

type Done<T> = oneshot::Sender<Result<T, Arc<Fault>>>;

/// Work of any kind with the connection, which tells its end by itself.
type Work = Box<dyn for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, ()> + Send>;

enum Write {
    /// A row of the audit trail.
    Record(Box<RecordedRow>, Done<()>),
    SaveCatalogue(Catalogue, Done<()>),
    SetEnabled {
        tool: String,
        enabled: bool,
        done: Done<()>,
    },
    DeleteExpired(Expiry, Done<u64>),
    Apply(Work),
    Close(oneshot::Sender<()>),
}

impl Writer {
    /// Starts the thread, which owns connections and instance from here on: the recorder for the audit trail, the
    /// connection for everything else. It ends with [`close`](Self::close), or when nobody is left who could write.
    ///
    /// # Errors
    /// The operating system's, when it has no thread left.
    pub(super) fn spawn(recorder: Recorder, connection: SqliteConnection, instance: Instance) -> io::Result<Self> {
        let (queue, writes) = mpsc::channel(QUEUE);
        let id = instance.id();
        let runtime = Handle::current();
        let work = move || runtime.block_on(run(recorder, connection, instance, writes));
        thread::Builder::new().name("writer".into()).spawn(work)?;
        Ok(Self { queue, instance: id })
    }

    /// Names this process in the rows of running calls.
    pub(super) fn instance(&self) -> Uuid {
        self.instance
    }

    /// Writes a row of the audit trail. Once it is in the queue it is written, also if nobody waits any more.
    pub(super) async fn record(&self, row: RecordedRow) -> Result<(), Arc<Fault>> {
        self.write(|done| Write::Record(row.into(), done)).await
    }

    /// Replaces a catalogue.
    pub(super) async fn save_catalogue(&self, catalogue: Catalogue) -> Result<(), Arc<Fault>> {
        self.write(|done| Write::SaveCatalogue(catalogue, done)).await
    }

    /// Switches a tool.
    pub(super) async fn set_enabled(&self, tool: String, enabled: bool) -> Result<(), Arc<Fault>> {
        self.write(|done| Write::SetEnabled { tool, enabled, done }).await
    }

    /// Deletes some of the rows that have to go, and returns how many; 0 when none is left.
    pub(super) async fn delete_expired(&self, expiry: Expiry) -> Result<u64, Arc<Fault>> {
        self.write(|done| Write::DeleteExpired(expiry, done)).await
    }

    /// Does something else with the connection that writes: a transaction or several, each of some milliseconds, for
    /// which recording waits. Once it is in the queue it is done, also if nobody waits any more.
    pub(super) async fn apply<T: Send + 'static>(
        &self,
        work: impl for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Arc<Fault>> {
        let told = |done: Done<T>| -> Work {
            Box::new(move |connection| async move { tell(done, work(connection).await) }.boxed())
        };
        self.write(|done| Write::Apply(told(done))).await
    }

    /// Ends the thread once everything in the queue is written and the connections are closed.
    pub(super) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        // Whoever closes second finds the thread gone, or going with the first.
        if self.queue.send(Write::Close(done)).await.is_ok() {
            let _ = closed.await;
        }
    }

    async fn write<T>(&self, write: impl FnOnce(Done<T>) -> Write) -> Result<T, Arc<Fault>> {
        let (done, written) = oneshot::channel();
        self.queue.send(write(done)).await.map_err(|_| Fault::Closed)?;
        written.await.map_err(|_| Fault::Closed)?
    }
}

async fn run(
    mut recorder: Recorder,
    mut connection: SqliteConnection,
    instance: Instance,
    mut queue: mpsc::Receiver<Write>,
) {
    let mut writes = Vec::with_capacity(BATCH_ROWS);
    let mut closed = Vec::new();
    while queue.recv_many(&mut writes, BATCH_ROWS).await > 0 {
        let mut batch = Batch::default();
        for write in writes.drain(..) {
            match write {
                Write::Record(row, done) => {
                    batch.bytes += row.bytes();
                    batch.rows.push((row, done));
                    if batch.bytes >= BATCH_BYTES {
                        std::mem::take(&mut batch).commit(&mut recorder);
                    }
                }
                Write::SaveCatalogue(catalogue, done) => {
                    tell(done, catalogue.save(&mut connection).await);
                }
                Write::SetEnabled { tool, enabled, done } => {
                    tell(done, tool_row::switch(&mut connection, &tool, enabled).await);
                }
                Write::DeleteExpired(expiry, done) => {
                    tell(done, retention::delete_some(&mut connection, expiry).await);
                }
                Write::Apply(work) => work(&mut connection).await,
                Write::Close(done) => {
                    // What stands in the queue is still taken out and written; nothing new comes in.
                    queue.close();
                    closed.push(done);
                }
            }
        }
        batch.commit(&mut recorder);
    }
    drop(recorder);
    if let Err(error) = connection.close().await {
        tracing::warn!(error = &error as &dyn std::error::Error, "could not close the database");
    }
    // The lock is given up last: whoever finds it free may mark what still runs as interrupted.
    drop(instance);
    for done in closed {
        // Nobody waits any more.
        let _ = done.send(());
    }
}

/// Rows that are committed together.
#[derive(Default)]
struct Batch {
    rows: Vec<(Box<RecordedRow>, Done<()>)>,
    bytes: usize,
}

impl Batch {
    fn commit(self, recorder: &mut Recorder) {
        if self.rows.is_empty() {
            return;
        }
        match recorder.record(self.rows.iter().map(|(row, _)| &**row)) {
            Ok(written) => self.rows.into_iter().zip(written).for_each(|((_, done), written)| tell(done, written)),
            Err(fault) => {
                let fault = Arc::new(fault);
                for (_, done) in self.rows {
                    // Nobody waits any more.
                    let _ = done.send(Err(fault.clone()));
                }
            }
        }
    }
}

fn tell<T>(done: Done<T>, result: Result<T, Fault>) {
    // Nobody waits any more: the one who asked was dropped, and what it asked for is done all the same.
    let _ = done.send(result.map_err(Arc::new));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{
        connection::readers,
        execution_log::SqliteExecutionLog,
        new_database::{NewDatabase, new_database},
    };
    use std::{error::Error, future::Future, pin::pin, task::Context, task::Waker};
    use tempfile::TempDir;
    use toolstead_domain::{ports::execution_log::ExecutionLog, testing::samples};

    fn start(database: NewDatabase) -> (Writer, SqliteExecutionLog, TempDir) {
        let NewDatabase { folder, options, connection, recorder } = database;
        let instance = Instance::join(&folder.path().join("instances")).unwrap();
        let writer = Writer::spawn(recorder, connection, instance).unwrap();
        let log = SqliteExecutionLog::new(writer.clone(), readers(&options.path, &options));
        (writer, log, folder)
    }

    fn row(number: u32) -> RecordedRow {
        RecordedRow::new(samples::execution(number), Uuid::nil())
    }

    #[tokio::test]
    async fn a_row_that_cannot_be_written_harms_no_other() {
        let mut database = new_database().await;
        let trigger = "CREATE TRIGGER refuse BEFORE INSERT ON tool_executions WHEN new.id = x'BAD'
            BEGIN SELECT RAISE(ABORT, 'refused'); END";
        let bad = samples::call_id(7);
        let trigger = trigger.replace("BAD", &bad.0.simple().to_string());
        sqlx::query(sqlx::AssertSqlSafe(trigger)).execute(&mut database.connection).await.unwrap();
        let rows = [1, 7, 2].map(row);
        let written = database.recorder.record(rows.iter()).unwrap();
        assert!(matches!(written.as_slice(), [Ok(()), Err(Fault::Statement(_)), Ok(())]), "{written:?}");
        let (writer, log, _folder) = start(database);
        let written = tokio::join!(writer.record(row(3)), writer.record(row(7)), writer.record(row(4)));
        assert!(matches!(written, (Ok(()), Err(_), Ok(()))), "{written:?}");
        assert_eq!(log.list(&Default::default()).await.unwrap(), [4, 3, 2, 1].map(samples::execution));
    }

    #[tokio::test]
    async fn a_row_is_written_also_when_nobody_waits_for_it_any_more() {
        let (writer, log, _folder) = start(new_database().await);
        assert!(pin!(writer.record(row(1))).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        writer.close().await;
        assert_eq!(log.find(samples::call_id(1)).await.unwrap(), Some(samples::execution(1)));
        let late = log.record(samples::execution(2)).await.unwrap_err();
        assert_eq!(late.source().unwrap().to_string(), "the database is closed");
        writer.close().await;
    }

    #[tokio::test]
    async fn a_full_disk_is_told_and_what_was_acknowledged_stays() {
        let database = new_database().await;
        database.recorder.limit_pages(40);
        let (writer, log, _folder) = start(database);
        let mut written = 0;
        let fault = loop {
            assert!(written < 1000, "the database is larger than it was to be");
            match writer.record(row(written + 1)).await {
                Ok(()) => written += 1,
                Err(fault) => break fault,
            }
        };
        assert!(written > 10, "{written}");
        assert!(matches!(*fault, Fault::DiskFull(_)), "{fault:?}");
        let told = log.record(samples::execution(written + 1)).await.unwrap_err();
        assert_eq!(told.source().unwrap().to_string(), "the disk is full");
        assert_eq!(log.find(samples::call_id(written + 1)).await.unwrap(), None);
        for number in 1..=written {
            assert_eq!(log.find(samples::call_id(number)).await.unwrap(), Some(samples::execution(number)));
        }
    }

    #[tokio::test]
    async fn rows_are_committed_together_up_to_a_bound_of_bytes() {
        let (writer, log, _folder) = start(new_database().await);
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
