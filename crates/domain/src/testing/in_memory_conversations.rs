//! A store of conversations in memory.

use super::{failure_switch::FailureSwitch, lock};
use crate::{
    conversation::{
        Conversation, ConversationId,
        event::{ConversationEvent, ConversationEventKind},
    },
    ports::{
        clock::Timestamp,
        conversation_store::{AppendError, ConversationStore},
        tool_repository::StoreError,
    },
    principal::Principal,
};
use async_trait::async_trait;
use std::sync::Mutex;

/// Store that holds every conversation until it is dropped.
#[derive(Debug, Default)]
pub struct InMemoryConversations {
    /// Conversations in the order of their last change.
    kept: Mutex<Vec<StoredConversation>>,
    appends: FailureSwitch,
}

#[derive(Debug)]
struct StoredConversation {
    conversation: Conversation,
    events: Vec<ConversationEvent>,
}

impl InMemoryConversations {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the next `append` fail.
    pub fn fail_next_append(&self) {
        self.appends.fail_next(1);
    }
}

fn place(kept: &[StoredConversation], principal: &Principal, id: ConversationId) -> Option<usize> {
    kept.iter().position(|kept| kept.conversation.id == id && kept.conversation.principal == *principal)
}

/// Returns the number of events, which never exceeds a `u64`.
fn count(events: &[ConversationEvent]) -> u64 {
    u64::try_from(events.len()).unwrap_or(u64::MAX)
}

#[async_trait]
impl ConversationStore for InMemoryConversations {
    async fn begin(&self, conversation: &Conversation) -> Result<(), StoreError> {
        let failed = |why: &str| StoreError { operation: "begin the conversation".into(), source: why.into() };
        let mut kept = lock(&self.kept);
        if place(&kept, &conversation.principal, conversation.id).is_some() {
            return Err(failed("its id is taken"));
        }
        let events = match conversation.forked_from {
            None => Vec::new(),
            Some((original, events)) => place(&kept, &conversation.principal, original)
                .and_then(|place| kept[place].events.get(..usize::try_from(events).ok()?))
                .ok_or_else(|| failed("the conversation that it is a copy of has no such events"))?
                .to_vec(),
        };
        let conversation = Conversation { events: count(&events), ..conversation.clone() };
        kept.push(StoredConversation { conversation, events });
        Ok(())
    }

    async fn append(
        &self,
        principal: &Principal,
        id: ConversationId,
        expected: u64,
        at: Timestamp,
        events: Vec<ConversationEventKind>,
    ) -> Result<u64, AppendError> {
        self.appends.check("add to the conversation")?;
        let mut kept = lock(&self.kept);
        let place = place(&kept, principal, id).ok_or(AppendError::NotFound(id))?;
        let found = kept[place].conversation.events;
        if found != expected {
            return Err(AppendError::GoesOnElsewhere { found, expected });
        }
        if events.is_empty() {
            return Ok(found);
        }
        let mut one = kept.remove(place);
        for (number, kind) in (found + 1..).zip(events) {
            one.events.push(ConversationEvent { number, at, kind });
        }
        one.conversation.events = count(&one.events);
        one.conversation.updated = at;
        let last = one.conversation.events;
        kept.push(one);
        Ok(last)
    }

    async fn find(&self, principal: &Principal, id: ConversationId) -> Result<Option<Conversation>, StoreError> {
        let kept = lock(&self.kept);
        Ok(place(&kept, principal, id).map(|place| kept[place].conversation.clone()))
    }

    async fn events(&self, principal: &Principal, id: ConversationId) -> Result<Vec<ConversationEvent>, StoreError> {
        let kept = lock(&self.kept);
        Ok(place(&kept, principal, id).map(|place| kept[place].events.clone()).unwrap_or_default())
    }

    async fn latest(&self, principal: &Principal, limit: usize) -> Result<Vec<Conversation>, StoreError> {
        let kept = lock(&self.kept);
        let own = kept.iter().rev().map(|kept| &kept.conversation).filter(|one| one.principal == *principal);
        Ok(own.filter(|one| one.delegated_by.is_none()).take(limit).cloned().collect())
    }

    async fn delegated_in(
        &self,
        principal: &Principal,
        session: &str,
        limit: usize,
    ) -> Result<Vec<Conversation>, StoreError> {
        let kept = lock(&self.kept);
        let own = kept.iter().rev().map(|kept| &kept.conversation).filter(|one| one.principal == *principal);
        let in_session = |one: &&Conversation| one.delegated_by.as_ref().is_some_and(|by| *by.session == *session);
        Ok(own.filter(in_session).take(limit).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        block_on::block_on,
        conversation_store_contract::{conversation, conversation_store_contract, one_of_each},
        samples::START,
    };

    #[test]
    fn conversations_in_memory_keep_the_contract() {
        block_on(conversation_store_contract(&InMemoryConversations::new()));
    }

    #[test]
    fn a_failed_append_adds_nothing() {
        let (store, begun) = (InMemoryConversations::new(), conversation(1));
        block_on(store.begin(&begun)).unwrap();
        store.fail_next_append();
        let append = || block_on(store.append(&begun.principal, begun.id, 0, START, one_of_each()));
        assert!(matches!(append(), Err(AppendError::Store(_))));
        assert!(block_on(store.events(&begun.principal, begun.id)).unwrap().is_empty());
        assert!(append().is_ok());
    }
}
