//! The store of the plans of sessions.

use crate::{ports::tool_repository::StoreError, principal::Principal, todo::TodoList};
use async_trait::async_trait;

/// Stores the plan (todo list) of each session. The session of an agent is that of its conversation.
///
/// Implementers guarantee:
/// - the plan of a session is not visible to others, even with its name;
/// - a plan is replaced completely or not at all;
/// - the store is bounded: the plan with the oldest replacement is deleted first.
///
/// A test of an implementation runs the contract:
///
/// ```
/// use toolstead_domain::testing::{in_memory_todos::InMemoryTodos, todo_store_contract::todo_store_contract};
///
/// # async fn test() {
/// todo_store_contract(&InMemoryTodos::new()).await;
/// # }
/// ```
#[async_trait]
pub trait TodoStore: Send + Sync {
    /// Returns the plan of the session; empty if there is none.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn todos(&self, principal: &Principal, session: &str) -> Result<TodoList, StoreError>;

    /// Replaces the plan, and returns the previous one.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be stored. The previous plan then remains.
    async fn replace(&self, principal: &Principal, session: &str, todos: TodoList) -> Result<TodoList, StoreError>;
}
