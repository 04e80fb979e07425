//! The database: opened once a process, handed out as ports, closed at the end.

use super::{
    connection,
    database_options::DatabaseOptions,
    execution_log::SqliteExecutionLog,
    fault::Fault,
    instance::{self, Instance},
    migrations::{self, MigrateError},
    open_error::OpenError,
    recorder::Recorder,
    retention::Retention,
    tool_repository::SqliteToolRepository,
    writer::Writer,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use sqlx::SqlitePool;
use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};
use toolstead_domain::ports::{clock::Clock, execution_log::ExecutionLog, tool_repository::ToolRepository};

/// The folder beside the database with a lock file for each process that has it open.
const INSTANCES: &str = "instances";

/// An open database. Several processes, and several of these in one process, may have the same file open.
#[derive(Debug)]
pub struct Database {
    writer: Writer,
    readers: SqlitePool,
}

impl Database {
    /// Opens the database, and makes it where there is none. Brings its schema up to date, marks as interrupted what
    /// ran in processes that have died, and begins in the background to delete what need not be kept any longer.
    ///
    /// Needs a tokio runtime with time.
    ///
    /// # Errors
    /// [`OpenError`], which says what to do.
    pub async fn open(options: DatabaseOptions, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let path = create(&options.path)?;
        let instances = path.with_file_name(INSTANCES);
        let failed = |fault: Fault| OpenError::of(fault, path.clone());
        let mut connection = connection::connect_writer(&path, &options).await.map_err(failed)?;
        migrations::migrate(&mut connection).await.map_err(|error| match error {
            MigrateError::NotOurs => OpenError::NotOurs { path: path.clone() },
            MigrateError::Newer(version) => OpenError::Newer { path: path.clone(), version },
            MigrateError::Changed(version) => OpenError::ChangedMigration { path: path.clone(), version },
            MigrateError::Fault(fault) => failed(fault),
        })?;
        let instance = Instance::join(&instances)
            .map_err(|source| OpenError::JoinInstances { path: instances.clone(), source })?;
        instance::bury_the_dead(&mut connection, &instances, &instance).await.map_err(failed)?;
        let recorder = Recorder::open(&path, &options).map_err(failed)?;
        let writer = Writer::spawn(recorder, connection, instance)
            .map_err(|source| OpenError::Other { path: path.clone(), source: source.into() })?;
        tokio::spawn(delete_expired(writer.clone(), options.retention, clock));
        Ok(Self { writer, readers: connection::readers(&path, &options) })
    }

    /// The tool repository in this database.
    pub fn tool_repository(&self) -> Arc<dyn ToolRepository> {
        Arc::new(SqliteToolRepository::new(self.writer.clone(), self.readers.clone()))
    }

    /// The audit trail in this database.
    pub fn execution_log(&self) -> Arc<dyn ExecutionLog> {
        Arc::new(SqliteExecutionLog::new(self.writer.clone(), self.readers.clone()))
    }

    /// Ends reading, writes what waits to be written, and closes the file. Whoever records after that gets an error.
    ///
    /// A database that is dropped without it loses nothing that was acknowledged; the next one who opens it tidies up.
    pub async fn close(self) {
        // The last connection to leave folds the write-ahead log into the database, which a reader cannot do.
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// Makes file and folder where they are missing, and returns the file's one true path: two processes that come by
/// different links must meet at the same lock files.
fn create(path: &Path) -> Result<PathBuf, OpenError> {
    let failed = |source| OpenError::CreateFile { path: path.to_owned(), source };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| OpenError::CreateFolder { path: folder.to_owned(), source })?;
    make_file(path).map_err(failed)?;
    let path = path.canonicalize().map_err(failed)?;
    if !path.is_file() {
        return Err(OpenError::NotOurs { path });
    }
    match path.to_str() {
        Some(_) => Ok(path),
        None => Err(OpenError::PathNotText { path }),
    }
}

/// Makes an empty file for its owner alone where there is none.
fn make_file(path: &Path) -> io::Result<()> {
    // Without opening it: SQLite's locks are POSIX locks, and those go when a process closes any descriptor of the file.
    if mknodat(CWD, path, FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0).is_ok() {
        return Ok(());
    }
    // It is there, or the file system cannot make it in this way, or in no way.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Deletes step by step, between the writes of others.
async fn delete_expired(writer: Writer, retention: Retention, clock: Arc<dyn Clock>) {
    let expiry = retention.expiry(clock.now());
    let mut deleted = 0;
    loop {
        match writer.delete_expired(expiry).await {
            Ok(0) => break,
            Ok(rows) => deleted += rows,
            Err(fault) if matches!(*fault, Fault::Closed) => break,
            Err(fault) => {
                let fault: &(dyn std::error::Error + 'static) = &*fault;
                tracing::warn!(error = fault, "could not delete old rows of the audit trail");
                break;
            }
        }
    }
    if deleted > 0 {
        tracing::info!(rows = deleted, "deleted old rows of the audit trail");
    }
}
