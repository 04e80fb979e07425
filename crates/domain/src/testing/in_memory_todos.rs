//! A store of plans in memory.

use super::lock;
use crate::{
    ports::{todo_store::TodoStore, tool_repository::StoreError},
    principal::Principal,
    todo::TodoList,
};
use async_trait::async_trait;
use std::{collections::HashMap, sync::Mutex};

/// Store that holds every plan until it is dropped: tests have few.
#[derive(Debug, Default)]
pub struct InMemoryTodos {
    plans: Mutex<HashMap<(Principal, String), TodoList>>,
}

impl InMemoryTodos {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl TodoStore for InMemoryTodos {
    async fn todos(&self, principal: &Principal, session: &str) -> Result<TodoList, StoreError> {
        Ok(lock(&self.plans).get(&(principal.clone(), session.to_owned())).cloned().unwrap_or_default())
    }

    async fn replace(&self, principal: &Principal, session: &str, todos: TodoList) -> Result<TodoList, StoreError> {
        Ok(lock(&self.plans).insert((principal.clone(), session.to_owned()), todos).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block_on::block_on, todo_store_contract::todo_store_contract};

    #[test]
    fn the_in_memory_todo_store_fulfils_the_contract() {
        block_on(todo_store_contract(&InMemoryTodos::new()));
    }
}
