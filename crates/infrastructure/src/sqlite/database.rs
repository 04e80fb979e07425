//! The database: opened once a process, handed out as ports, closed at the end.

use super::{
    backlog::{Backlog, Place},
    blobs::Blobs,
    change_journal::SqliteChangeJournal,
    connection,
    conversation_store::SqliteConversationStore,
    database_files::{BLOBS, INSTANCES},
    database_options::DatabaseOptions,
    execution_log::SqliteExecutionLog,
    fault::Fault,
    instance::{self, Instance},
    migrations,
    open_error::OpenError,
    output_store::SqliteOutputStore,
    question_store::SqliteQuestionStore,
    recorder::Recorder,
    seen_files::SqliteSeenFiles,
    tidying::Tidying,
    todo_store::SqliteTodoStore,
    tool_repository::SqliteToolRepository,
    writer::Writer,
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
use toolstead_domain::ports::{
    change_journal::ChangeJournal, clock::Clock, conversation_store::ConversationStore, execution_log::ExecutionLog,
    output_store::OutputStore, question_store::QuestionStore, seen_files::SeenFiles, stores::Stores,
    todo_store::TodoStore, tool_repository::ToolRepository,
};

/// An open database. Several processes, and several of these in one process, may have the same file open.
pub struct Database {
    writer: Writer,
    readers: SqlitePool,
    blobs: Arc<Blobs>,
    clock: Arc<dyn Clock>,
    /// True once the first tidying is over.
    tidied: watch::Receiver<bool>,
    /// Ends the work in the background.
    _tidying: DropGuard,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("blobs", &self.blobs).finish_non_exhaustive()
    }
}

impl Database {
    /// Opens the database, and makes it where there is none. Brings its schema up to date, marks as interrupted what
    /// ran in processes that have died, and begins in the background to remove what those left behind and what need not be
    /// kept any longer.
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
        let migrated = migrations::migrate(&mut connection).await;
        migrated.map_err(|error| OpenError::of_migration(error, path.clone()))?;
        let instance = Instance::join(&instances)
            .map_err(|source| OpenError::JoinInstances { path: instances.clone(), source })?;
        let blobs = Arc::new(Blobs::new(
            path.with_file_name(BLOBS),
            instance.id(),
            options.power_safe,
            options.contents.max_bytes / 8,
        ));
        let mut recorder = Recorder::open(&path, &options).map_err(failed)?;
        let backlogs = Place::new(&instances, &path);
        let dead = instance::recover_dead_instances(&mut connection, &mut recorder, &backlogs, &instances, &instance);
        let dead = dead.await.map_err(failed)?;
        let backlog = Backlog::new(backlogs, instance.id(), !options.power_safe);
        let writer = Writer::spawn(recorder, connection, instance, backlog)
            .map_err(|source| OpenError::Other { path: path.clone(), source: source.into() })?;
        let tidying = CancellationToken::new();
        let tidy = Tidying { writer: writer.clone(), blobs: blobs.clone(), clock: clock.clone(), instances, dead };
        let (done, tidied) = watch::channel(false);
        let work = tidy.again_and_again(options.retention, options.contents, done);
        tokio::spawn(tidying.clone().run_until_cancelled_owned(work));
        let readers = connection::readers(&path, &options);
        Ok(Self { writer, readers, blobs, clock, tidied, _tidying: tidying.drop_guard() })
    }

    /// All stores in this database, of a workspace: the real path of its first root, else of the start folder.
    pub fn stores(&self, workspace: &Path) -> Stores {
        Stores {
            tool_repository: self.tool_repository(),
            execution_log: self.execution_log(),
            output_store: self.output_store(workspace),
            change_journal: self.change_journal(workspace),
            seen_files: self.seen_files(workspace),
            conversations: self.conversations(workspace),
            todos: self.todos(workspace),
            questions: self.questions(workspace),
        }
    }

    /// The tool repository in this database.
    pub fn tool_repository(&self) -> Arc<dyn ToolRepository> {
        Arc::new(SqliteToolRepository::new(self.writer.clone(), self.readers.clone()))
    }

    /// The audit trail in this database.
    pub fn execution_log(&self) -> Arc<dyn ExecutionLog> {
        Arc::new(SqliteExecutionLog::new(self.writer.clone(), self.readers.clone()))
    }

    /// The store of a workspace's large outputs in this database and in the folder of contents beside it. A workspace is
    /// the real path of its first root, else of the start folder.
    pub fn output_store(&self, workspace: &Path) -> Arc<dyn OutputStore> {
        let (writer, readers) = (self.writer.clone(), self.readers.clone());
        Arc::new(SqliteOutputStore::new(writer, readers, self.blobs.clone(), self.clock.clone(), workspace.into()))
    }

    /// The journal of file changes in a workspace, in this database and in the folder of contents beside it.
    pub fn change_journal(&self, workspace: &Path) -> Arc<dyn ChangeJournal> {
        let (writer, readers) = (self.writer.clone(), self.readers.clone());
        Arc::new(SqliteChangeJournal::new(writer, readers, self.blobs.clone(), workspace.into()))
    }

    /// What sessions have read in a workspace that go on in another process.
    pub fn seen_files(&self, workspace: &Path) -> Arc<dyn SeenFiles> {
        Arc::new(SqliteSeenFiles::new(self.writer.clone(), self.readers.clone(), workspace.into()))
    }

    /// The conversations with agents in a workspace.
    pub fn conversations(&self, workspace: &Path) -> Arc<dyn ConversationStore> {
        Arc::new(SqliteConversationStore::new(self.writer.clone(), self.readers.clone(), workspace.into()))
    }

    /// The plans of sessions in a workspace.
    pub fn todos(&self, workspace: &Path) -> Arc<dyn TodoStore> {
        Arc::new(SqliteTodoStore::new(self.writer.clone(), self.readers.clone(), workspace.into()))
    }

    /// The questions of a workspace that wait for somebody.
    pub fn questions(&self, workspace: &Path) -> Arc<dyn QuestionStore> {
        Arc::new(SqliteQuestionStore::new(self.writer.clone(), self.readers.clone(), workspace.into()))
    }

    /// Returns when everything is deleted that need not have been kept any longer when the database was opened.
    pub async fn tidied(&self) {
        // It ends also where the work does.
        let _ = self.tidied.clone().wait_for(|tidied| *tidied).await;
    }

    /// Ends reading, writes what waits to be written, and closes the file. Whoever records after that gets an error; what
    /// was on record in that very moment is written when the database is opened again.
    ///
    /// A database that is dropped without it loses nothing that was acknowledged; the next one who opens it tidies up.
    pub async fn close(self) {
        // The last connection to leave folds the write-ahead log into the database, which a reader cannot do.
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// The audit trail of a database that cannot be opened in whole: its disk is full, or may only be read. Nothing is written,
/// not even the files that SQLite shares between processes, where those cannot be had.
///
/// # Errors
/// [`OpenError`] when it cannot be read either, or its schema is not the newest: that is brought up to date where it can
/// be written.
pub async fn trail_to_read(options: DatabaseOptions) -> Result<Arc<dyn ExecutionLog>, OpenError> {
    let path = options.path.canonicalize();
    let path = path.map_err(|source| OpenError::CreateFile { path: options.path.clone(), source })?;
    let failed = |fault: Fault| OpenError::of(fault, path.clone());
    let place = Place::new(&path.with_file_name(INSTANCES), &path);
    let mut readers = connection::readers(&path, &options);
    if let Err(fault) = connection::try_to_read(&readers).await {
        readers = connection::readers_of_the_file_alone(&path, &options);
        // What the first try met is the reason.
        connection::try_to_read(&readers).await.map_err(|_| failed(fault))?;
        let log = path.with_file_name(format!("{}-wal", path.file_name().unwrap_or_default().to_string_lossy()));
        if log.metadata().is_ok_and(|log| log.len() > 0) {
            tracing::warn!("the last rows stand in the write-ahead log, which cannot be read here, and are missing");
        }
    }
    let mut connection = readers.acquire().await.map_err(Fault::from).map_err(failed)?;
    match migrations::missing_steps(&mut connection).await {
        Ok(0) => Ok(Arc::new(SqliteExecutionLog::only_to_read(place, readers.clone()))),
        Ok(_) => Err(OpenError::ReadOnly { path, source: "its schema is not the newest".into() }),
        Err(error) => Err(OpenError::of_migration(error, path)),
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
