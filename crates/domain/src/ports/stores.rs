//! All stores of an application, from one backend.

use crate::ports::{
    change_journal::ChangeJournal, conversation_store::ConversationStore, definition_store::PinnedDefinitionStore,
    execution_log::ExecutionLog, output_store::OutputStore, question_store::QuestionStore, read_state::ReadState,
    todo_store::TodoStore, tool_repository::ToolRepository,
};
use std::{fmt, sync::Arc};

/// Stores of one workspace. A backend fulfils the contracts of all ports: `testing::stores_contract` checks them all.
#[derive(Clone)]
pub struct Stores {
    /// Catalogue of tools: `testing::tool_repository_contract`.
    pub tool_repository: Arc<dyn ToolRepository>,
    /// Versions of the definitions of servers: `testing::definition_store_contract`.
    pub definitions: Arc<dyn PinnedDefinitionStore>,
    /// Audit log of all workspaces: `testing::execution_log_contract`.
    pub execution_log: Arc<dyn ExecutionLog>,
    /// Large outputs: `testing::output_store_contract`.
    pub output_store: Arc<dyn OutputStore>,
    /// Changes of files: `testing::change_journal_contract`.
    pub change_journal: Arc<dyn ChangeJournal>,
    /// Known file versions of sessions that continue in other processes: `testing::read_state_contract`.
    pub seen_files: Arc<dyn ReadState>,
    /// Conversations with agents: `testing::conversation_store_contract`.
    pub conversations: Arc<dyn ConversationStore>,
    /// Plans of sessions: `testing::todo_store_contract`.
    pub todos: Arc<dyn TodoStore>,
    /// Questions that wait for an answer: `testing::question_store_contract`.
    pub questions: Arc<dyn QuestionStore>,
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores").finish_non_exhaustive()
    }
}
