//! The database: opened once per process, accessed through ports, closed at the end.

use super::{
    backlog::{AuditBacklog, BacklogLocation},
    blobs::BlobFolder,
    change_journal::SqliteChangeJournal,
    connection,
    conversation_store::SqliteConversationStore,
    database_files::{BLOBS, INSTANCES},
    database_options::DatabaseOptions,
    definition_store::SqliteDefinitionStore,
    execution_log::SqliteExecutionLog,
    fault::Fault,
    instance::{self, InstanceLock},
    migrations,
    open_error::OpenError,
    output_store::SqliteOutputStore,
    question_store::SqliteQuestionStore,
    read_state::SqliteReadState,
    recorder::AuditLogConnection,
    tidying::DatabaseCleanup,
    todo_store::SqliteTodoStore,
    tool_repository::SqliteToolRepository,
    writer::WriterHandle,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use sqlx::SqlitePool;
use std::{
    fmt,
    fs::{DirBuilder, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolstead_domain::{
    ChangeJournal, Clock, ConversationStore, ExecutionLog, OutputStore, PinnedDefinitionStore, QuestionStore,
    ReadState, Stores, TodoStore, ToolRepository,
};

/// Open database. Several processes, and several values in one process, may have the same file open.
pub struct Database {
    writer: WriterHandle,
    readers: SqlitePool,
    blobs: Arc<BlobFolder>,
    clock: Arc<dyn Clock>,
    /// `true` once the first cleanup has ended.
    tidied: watch::Receiver<bool>,
    /// Stops the background work when it is dropped.
    _tidying: DropGuard,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("blobs", &self.blobs).finish_non_exhaustive()
    }
}

impl Database {
    /// Opens the database, or creates it. Updates its schema, marks calls of dead processes as interrupted, and starts
    /// to delete their leftovers and expired data in the background.
    ///
    /// Requires a tokio runtime with time enabled.
    ///
    /// # Errors
    /// [`OpenError`], with advice.
    pub async fn open(options: DatabaseOptions, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let path = create(&options.path)?;
        let instances = path.with_file_name(INSTANCES);
        let failed = |fault: Fault| OpenError::of(fault, path.clone());
        let mut connection = connection::connect_writer(&path, &options).await.map_err(failed)?;
        let migrated = migrations::migrate(&mut connection).await;
        migrated.map_err(|error| OpenError::of_migration(error, path.clone()))?;
        let instance = InstanceLock::join(&instances)
            .map_err(|source| OpenError::JoinInstances { path: instances.clone(), source })?;
        let blobs = Arc::new(BlobFolder::new(
            path.with_file_name(BLOBS),
            instance.id(),
            options.power_safe,
            options.contents.max_bytes / 8,
        ));
        let mut recorder = AuditLogConnection::open(&path, &options).map_err(failed)?;
        let backlogs = BacklogLocation::new(&instances, &path);
        let dead = instance::recover_dead_instances(&mut connection, &mut recorder, &backlogs, &instances, &instance);
        let dead = dead.await.map_err(failed)?;
        let backlog = AuditBacklog::new(backlogs, instance.id(), !options.power_safe);
        let writer = WriterHandle::spawn(recorder, connection, instance, backlog)
            .map_err(|source| OpenError::Other { path: path.clone(), source: source.into() })?;
        let tidying = CancellationToken::new();
        let tidy =
            DatabaseCleanup { writer: writer.clone(), blobs: blobs.clone(), clock: clock.clone(), instances, dead };
        let (done, tidied) = watch::channel(false);
        let work = tidy.run_periodically(options.retention, options.contents, done);
        tokio::spawn(tidying.clone().run_until_cancelled_owned(work));
        let readers = connection::readers(&path, &options);
        Ok(Self { writer, readers, blobs, clock, tidied, _tidying: tidying.drop_guard() })
    }

    /// Returns all stores of a workspace: the real path of its first root, or else of the start folder.
    pub fn stores(&self, workspace: &Path) -> Stores {
        Stores {
            tool_repository: self.tool_repository(),
            definitions: self.definitions(),
            execution_log: self.execution_log(),
            output_store: self.output_store(workspace),
            change_journal: self.change_journal(workspace),
            seen_files: self.read_state(workspace),
            conversations: self.conversations(workspace),
            todos: self.todos(workspace),
            questions: self.questions(workspace),
        }
    }

    /// Returns the tool repository in this database.
    pub fn tool_repository(&self) -> Arc<dyn ToolRepository> {
        Arc::new(SqliteToolRepository::new(self.writer.clone(), self.readers.clone()))
    }

    /// Returns the store of the definitions (tools, prompts and resources) that MCP servers offer, with their versions.
    pub fn definitions(&self) -> Arc<dyn PinnedDefinitionStore> {
        Arc::new(SqliteDefinitionStore::new(self.writer.clone(), self.readers.clone()))
    }

    /// Returns the audit log in this database.
    pub fn execution_log(&self) -> Arc<dyn ExecutionLog> {
        Arc::new(SqliteExecutionLog::new(self.writer.clone(), self.readers.clone()))
    }

    /// Returns the store of a workspace's large outputs. Their contents are in the folder beside the database. A
    /// workspace is the real path of its first root, or else of the start folder.
    pub fn output_store(&self, workspace: &Path) -> Arc<dyn OutputStore> {
        let (writer, readers) = (self.writer.clone(), self.readers.clone());
        Arc::new(SqliteOutputStore::new(writer, readers, self.blobs.clone(), self.clock.clone(), workspace.into()))
    }

    /// Returns the journal of file changes in a workspace. The contents are in the folder beside the database.
    pub fn change_journal(&self, workspace: &Path) -> Arc<dyn ChangeJournal> {
        let (writer, readers) = (self.writer.clone(), self.readers.clone());
        Arc::new(SqliteChangeJournal::new(writer, readers, self.blobs.clone(), workspace.into()))
    }

    /// Returns the store of the file versions that sessions know in a workspace, for sessions that resume in another
    /// process.
    pub fn read_state(&self, workspace: &Path) -> Arc<dyn ReadState> {
        Arc::new(SqliteReadState::new(self.writer.clone(), self.readers.clone(), workspace.into()))
    }

    /// Returns the conversations with agents in a workspace.
    pub fn conversations(&self, workspace: &Path) -> Arc<dyn ConversationStore> {
        Arc::new(SqliteConversationStore::new(self.writer.clone(), self.readers.clone(), workspace.into()))
    }

    /// Returns the plans of sessions in a workspace.
    pub fn todos(&self, workspace: &Path) -> Arc<dyn TodoStore> {
        Arc::new(SqliteTodoStore::new(self.writer.clone(), self.readers.clone(), workspace.into()))
    }

    /// Returns the store of a workspace's deferred questions.
    pub fn questions(&self, workspace: &Path) -> Arc<dyn QuestionStore> {
        Arc::new(SqliteQuestionStore::new(self.writer.clone(), self.readers.clone(), workspace.into()))
    }

    /// Waits until all data that had expired when the database was opened is deleted.
    pub async fn tidied(&self) {
        // Also returns if the background work ended.
        let _ = self.tidied.clone().wait_for(|tidied| *tidied).await;
    }

    /// Stops reading, writes pending data and closes the file. Recording afterwards is an error. Records that are
    /// acknowledged at this moment are written when the database is opened again.
    ///
    /// Dropping the database without this call loses no acknowledged data. The next process that opens it completes the
    /// cleanup.
    pub async fn close(self) {
        // The last connection that closes merges the write-ahead log into the database. A read-only connection cannot.
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// Returns the read-only audit log of a database that cannot be opened for writing, because its disk is full or
/// read-only. Writes nothing, not even the files that SQLite shares between processes if those cannot be created.
///
/// # Errors
/// [`OpenError`] if the database cannot be read either, or its schema is not current: updating it requires writing.
pub async fn open_audit_log_read_only(options: DatabaseOptions) -> Result<Arc<dyn ExecutionLog>, OpenError> {
    let path = options.path.canonicalize();
    let path = path.map_err(|source| OpenError::CreateFile { path: options.path.clone(), source })?;
    let failed = |fault: Fault| OpenError::of(fault, path.clone());
    let place = BacklogLocation::new(&path.with_file_name(INSTANCES), &path);
    let mut readers = connection::readers(&path, &options);
    if let Err(fault) = connection::try_to_read(&readers).await {
        readers = connection::readers_of_the_file_alone(&path, &options);
        // The error of the first attempt is the cause.
        connection::try_to_read(&readers).await.map_err(|_| failed(fault))?;
        let log = path.with_file_name(format!("{}-wal", path.file_name().unwrap_or_default().to_string_lossy()));
        if log.metadata().is_ok_and(|log| log.len() > 0) {
            tracing::warn!("the newest records are missing, because the write-ahead log cannot be read");
        }
    }
    let mut connection = readers.acquire().await.map_err(Fault::from).map_err(failed)?;
    match migrations::missing_steps(&mut connection).await {
        Ok(0) => Ok(Arc::new(SqliteExecutionLog::only_to_read(place, readers.clone()))),
        Ok(_) => Err(OpenError::ReadOnly { path, source: "its schema is outdated".into() }),
        Err(error) => Err(OpenError::of_migration(error, path)),
    }
}

/// Creates the file and its folder if they are missing. Returns the real path, because two processes that use different
/// links must use the same lock files.
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

/// Creates an empty file, accessible to its owner only, unless it exists.
fn make_file(path: &Path) -> io::Result<()> {
    // Without opening it: SQLite uses POSIX locks, which are released when a process closes any descriptor of the file.
    if mknodat(CWD, path, FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0).is_ok() {
        return Ok(());
    }
    // The file exists, or the file system does not support this call or cannot create the file.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
