//! Third stage: the stores of an application, with one function per backend.

use super::{SessionLifetime, StartupError};
use crate::config::{Config, sections::database_url::DatabaseUrl, workspace::make_folders_beside};
use futures::{FutureExt, future::BoxFuture};
use std::{fmt, path::Path, sync::Arc, time::Duration};
use toolstead_domain::{
    ChangeJournal, Clock, ConversationStore, ExecutionLog, NoConversations, NoJournal, NoOutputs, OutputStore,
    PinnedDefinitionStore, QuestionStore, ReadState, Stores, TodoStore, ToolRepository,
};
use toolstead_infrastructure::sqlite::{self, AuditRetention, ContentRetention, Database, DatabaseOptions, OpenError};

/// Stores that an embedding application provides instead of those of the configured database.
#[derive(Default)]
pub(super) struct StoreReplacements {
    pub(super) tool_repository: Option<Arc<dyn ToolRepository>>,
    pub(super) execution_log: Option<Arc<dyn ExecutionLog>>,
    pub(super) outputs: Option<Arc<dyn OutputStore>>,
    pub(super) journal: Option<Arc<dyn ChangeJournal>>,
    pub(super) conversations: Option<Arc<dyn ConversationStore>>,
    pub(super) todos: Option<Arc<dyn TodoStore>>,
    pub(super) questions: Option<Arc<dyn QuestionStore>>,
}

/// Stores that an application uses.
pub(super) struct StoreStage {
    pub(super) tool_repository: Arc<dyn ToolRepository>,
    pub(super) execution_log: Arc<dyn ExecutionLog>,
    pub(super) outputs: Arc<dyn OutputStore>,
    pub(super) journal: Arc<dyn ChangeJournal>,
    pub(super) conversations: Arc<dyn ConversationStore>,
    /// `None`: plans are held in memory.
    pub(super) todos: Option<Arc<dyn TodoStore>>,
    /// `None`: no questions are stored.
    pub(super) questions: Option<Arc<dyn QuestionStore>>,
    /// `None`: sessions end with the process, or no database is open.
    pub(super) read_state: Option<Arc<dyn ReadState>>,
    /// Store of the definitions of MCP servers and of their approvals; `None`: definitions are served without approval.
    pub(super) definitions: Option<Arc<dyn PinnedDefinitionStore>>,
    /// `None` if no database is open.
    pub(super) opened: Option<OpenStores>,
}

impl StoreStage {
    /// Opens the configured database and creates the folders beside it, unless both the tool repository and the audit
    /// log are replaced.
    pub(super) async fn open(
        config: &Config,
        replacements: StoreReplacements,
        session_lifetime: Option<SessionLifetime>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StartupError> {
        let StoreReplacements { outputs, journal, conversations, todos, questions, .. } = replacements;
        let (tool_repository, execution_log, opened) = match (replacements.tool_repository, replacements.execution_log)
        {
            (Some(repository), Some(log)) => (repository, log, None),
            (repository, log) => {
                let opened = OpenStores::open(config, clock).await?;
                make_folders_beside(&config.database, &config.roots);
                let Stores { tool_repository, execution_log, .. } = opened.stores.clone();
                (repository.unwrap_or(tool_repository), log.unwrap_or(execution_log), Some(opened))
            }
        };
        let stored = opened.as_ref().map(|opened| opened.stores.clone());
        let stored = stored.as_ref();
        Ok(Self {
            tool_repository,
            execution_log,
            outputs: outputs.or_else(|| Some(stored?.output_store.clone())).unwrap_or_else(|| Arc::new(NoOutputs)),
            journal: journal.or_else(|| Some(stored?.change_journal.clone())).unwrap_or_else(|| Arc::new(NoJournal)),
            conversations: conversations
                .or_else(|| Some(stored?.conversations.clone()))
                .unwrap_or_else(|| Arc::new(NoConversations)),
            todos: todos.or_else(|| Some(stored?.todos.clone())),
            questions: questions.or_else(|| Some(stored?.questions.clone())),
            read_state: session_lifetime.and_then(|_| Some(stored?.seen_files.clone())),
            definitions: stored.map(|stored| stored.definitions.clone()),
            opened,
        })
    }
}

/// Stores of the workspace, and the function that closes them.
pub(super) struct OpenStores {
    pub(super) stores: Stores,
    close: Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send + Sync>,
}

impl OpenStores {
    /// Opens the configured stores.
    pub(super) async fn open(config: &Config, clock: Arc<dyn Clock>) -> Result<Self, StartupError> {
        match &config.database.url {
            DatabaseUrl::Sqlite(path) => Ok(in_sqlite(config, path, clock).await?),
        }
    }

    /// Writes pending data and closes the stores.
    pub(super) async fn close(self) {
        (self.close)().await;
    }
}

impl fmt::Debug for OpenStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenStores").field("stores", &self.stores).finish_non_exhaustive()
    }
}

/// Opens the audit log read-only, for stores that cannot be written because their disk is full or read-only.
///
/// # Errors
/// [`StartupError`].
pub async fn open_audit_log_read_only(config: &Config) -> Result<Arc<dyn ExecutionLog>, StartupError> {
    match &config.database.url {
        DatabaseUrl::Sqlite(path) => Ok(sqlite::open_audit_log_read_only(sqlite_options(config, path)).await?),
    }
}

async fn in_sqlite(config: &Config, path: &Path, clock: Arc<dyn Clock>) -> Result<OpenStores, OpenError> {
    let database = Database::open(sqlite_options(config, path), clock).await?;
    let stores = database.stores(config.workspace());
    Ok(OpenStores { stores, close: Box::new(|| database.close().boxed()) })
}

fn sqlite_options(config: &Config, path: &Path) -> DatabaseOptions {
    let unlimited = Duration::from_secs(u64::from(u32::MAX));
    let retention = AuditRetention {
        max_age: config.audit.retention_days.map_or(unlimited, |days| Duration::from_secs(days.saturating_mul(86_400))),
        max_rows: config.audit.retention_rows.unwrap_or(u64::MAX),
    };
    let contents = ContentRetention {
        max_age: Duration::from_secs(config.outputs.retention_days.saturating_mul(86_400)),
        max_bytes: config.outputs.retention_bytes,
    };
    DatabaseOptions { power_safe: config.audit.power_safe, retention, contents, ..DatabaseOptions::at(path) }
}
