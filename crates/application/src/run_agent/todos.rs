//! The plan of a conversation, if plans are stored.

use std::sync::Arc;
use toolstead_domain::{ConversationId, Principal, TodoList, TodoStore, error_chain::with_causes};

/// Access to the plan of one conversation.
#[derive(Clone)]
pub(super) struct TodoReader {
    store: Option<Arc<dyn TodoStore>>,
    principal: Principal,
    session: Arc<str>,
}

impl TodoReader {
    pub(super) fn new(store: Option<Arc<dyn TodoStore>>, principal: &Principal, conversation: ConversationId) -> Self {
        Self { store, principal: principal.clone(), session: conversation.session() }
    }

    /// Returns the current plan. If it cannot be read, an empty one is returned, and the stored plan remains.
    pub(super) async fn now(&self) -> TodoList {
        let Some(store) = &self.store else { return TodoList::default() };
        match store.todos(&self.principal, &self.session).await {
            Ok(todos) => todos,
            Err(error) => {
                tracing::warn!(error = %with_causes(&error), "the plan cannot be read");
                TodoList::default()
            }
        }
    }
}
