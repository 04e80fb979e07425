//! Setup of connections to the database.

use super::{database_options::DatabaseOptions, fault::Fault};
use rusqlite::OpenFlags;
use sqlx::{
    ConnectOptions, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Maximum number of concurrent readers. More would compete for the same two or four cores.
const MAX_READERS: u32 = 4;
/// Minimum timeout for a reader of the pool. Locks have a timeout of their own; this one covers other readers, which
/// are slow on a busy machine.
const WAIT_FOR_READER: Duration = Duration::from_secs(30);
/// Size in bytes to which the write-ahead log is truncated after a checkpoint.
const KEPT_LOG_BYTES: u32 = 64 << 20;

/// Number of pages of the write-ahead log that trigger a checkpoint. Each checkpoint waits for the disk, and with
/// SQLite's default of 1000 that happens every few hundred rows.
const CHECKPOINT_PAGES: u32 = 8000;

/// Opens the connection that writes, and turns on write-ahead logging.
pub(super) async fn connect_writer(path: &Path, options: &DatabaseOptions) -> Result<SqliteConnection, Fault> {
    let synchronous = if options.power_safe { SqliteSynchronous::Full } else { SqliteSynchronous::Normal };
    let connect = base(path, options)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .foreign_keys(true)
        .pragma("journal_size_limit", KEPT_LOG_BYTES.to_string())
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES.to_string());
    let patience = Instant::now() + options.busy_timeout;
    loop {
        match connect.connect().await.map_err(Fault::from) {
            // SQLite does not apply its busy timeout if two processes turn on write-ahead logging at the same moment.
            Err(Fault::Locked(_)) if Instant::now() < patience => tokio::time::sleep(Duration::from_millis(2)).await,
            connected => return connected,
        }
    }
}

/// Opens the connection that writes the audit log. Requires a database that is set up already.
pub(super) fn connect_recorder(path: &Path, options: &DatabaseOptions) -> Result<rusqlite::Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(options.busy_timeout)?;
    connection.pragma_update(None, "synchronous", if options.power_safe { "FULL" } else { "NORMAL" })?;
    connection.pragma_update(None, "journal_size_limit", KEPT_LOG_BYTES)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    Ok(connection)
}

/// Creates the pool of connections that read. Each is opened on first use.
pub(super) fn readers(path: &Path, options: &DatabaseOptions) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(MAX_READERS)
        .acquire_timeout(options.busy_timeout.max(WAIT_FOR_READER))
        // A connection to a file does not become stale, and a test before each use costs a thread switch.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(base(path, options).read_only(true))
}

/// Creates a pool of connections that read only the database file, without locks and write-ahead log: for a disk that
/// cannot be written, where no process changes the file meanwhile.
pub(super) fn readers_of_the_file_alone(path: &Path, options: &DatabaseOptions) -> SqlitePool {
    let connect = base(path, options).read_only(true).immutable(true);
    SqlitePoolOptions::new()
        .max_connections(MAX_READERS)
        .acquire_timeout(options.busy_timeout.max(WAIT_FOR_READER))
        .connect_lazy_with(connect)
}

/// Reads from the database once, to detect errors.
pub(super) async fn try_to_read(readers: &SqlitePool) -> Result<(), Fault> {
    sqlx::query("SELECT count(*) FROM sqlite_schema").fetch_one(readers).await?;
    Ok(())
}

fn base(path: &Path, options: &DatabaseOptions) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(path).busy_timeout(options.busy_timeout).disable_statement_logging()
}
