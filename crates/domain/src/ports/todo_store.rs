//! The place where the plans of sessions are kept.

use crate::{ports::tool_repository::StoreError, principal::Principal, todo::TodoList};
use async_trait::async_trait;

/// The plan of each session, which for an agent is its conversation.
///
/// Implementers guarantee:
/// - one session's plan is nobody else's, whoever knows its name;
/// - a plan is replaced whole or not at all;
/// - they are bounded: the plan that was replaced longest ago is forgotten first.
#[async_trait]
pub trait TodoStore: Send + Sync {
    /// The plan of the session; empty where there is none.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn todos(&self, principal: &Principal, session: &str) -> Result<TodoList, StoreError>;

    /// Replaces it, and returns the one before.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be kept. The one before holds still.
    async fn replace(&self, principal: &Principal, session: &str, todos: TodoList) -> Result<TodoList, StoreError>;
}
