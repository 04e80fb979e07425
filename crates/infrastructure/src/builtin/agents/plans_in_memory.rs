//! The plan of each session of this process.

use async_trait::async_trait;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};
use toolstead_domain::{Principal, StoreError, TodoList, TodoStore};

/// Maximum number of plans. The least recently written one is discarded first.
const PLANS: usize = 1_000;

/// Plans in memory, for applications without a store.
#[derive(Debug, Default)]
pub(crate) struct InMemoryTodoStore {
    plans: Mutex<Plans>,
}

#[derive(Debug, Default)]
struct Plans {
    of: HashMap<(Principal, String), (u64, TodoList)>,
    /// Number of plans written so far.
    written: u64,
}

#[async_trait]
impl TodoStore for InMemoryTodoStore {
    async fn todos(&self, principal: &Principal, session: &str) -> Result<TodoList, StoreError> {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = plans.of.get(&(principal.clone(), session.to_owned()));
        Ok(plan.map(|(_, todos)| todos.clone()).unwrap_or_default())
    }

    async fn replace(&self, principal: &Principal, session: &str, todos: TodoList) -> Result<TodoList, StoreError> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (principal.clone(), session.to_owned());
        plans.written += 1;
        let number = plans.written;
        let before = match todos.0.is_empty() {
            true => plans.of.remove(&name),
            false => plans.of.insert(name, (number, todos)),
        };
        if plans.of.len() > PLANS
            && let Some(oldest) = plans.of.iter().min_by_key(|(_, (number, _))| *number).map(|(name, _)| name.clone())
        {
            plans.of.remove(&oldest);
        }
        Ok(before.map(|(_, todos)| todos).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::testing::todo_store_contract::{plan, todo_store_contract};

    #[tokio::test]
    async fn plans_in_memory_keep_the_contract() {
        todo_store_contract(&InMemoryTodoStore::default()).await;
    }

    #[tokio::test]
    async fn the_oldest_plan_is_forgotten_first() {
        let (plans, me) = (InMemoryTodoStore::default(), Principal::local());
        for session in 0..=PLANS {
            plans.replace(&me, &session.to_string(), plan()).await.unwrap();
        }
        assert_eq!(plans.todos(&me, "0").await.unwrap(), TodoList::default());
        assert_eq!(plans.todos(&me, "1").await.unwrap(), plan());
    }
}
