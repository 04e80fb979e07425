//! The store of conversations.

use crate::{
    conversation::{
        Conversation, ConversationId,
        event::{ConversationEvent, ConversationEventKind},
    },
    ports::{clock::Timestamp, tool_repository::StoreError},
    principal::Principal,
};
use async_trait::async_trait;

/// Reason why events were not added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The principal has no conversation with that id.
    #[error("there is no conversation {0}")]
    NotFound(ConversationId),
    /// Another process added events in the meantime.
    #[error("the conversation was continued elsewhere: it has {found} events, and {expected} were expected")]
    GoesOnElsewhere {
        /// Number of stored events.
        found: u64,
        /// Number of events that the caller expected.
        expected: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Store of the conversations of one workspace, by principal.
///
/// Implementers guarantee:
/// - events are only ever added, at the end, without gaps; events for which [`append`](Self::append) returned are
///   stored durably, also across `kill -9`, and an interrupted append is stored completely or not at all;
/// - if two processes add to one conversation at the same time, one of them is refused;
/// - a principal cannot read the conversations of another.
///
/// A test of an implementation runs the contract:
///
/// ```
/// use toolstead_domain::testing::{in_memory_conversations::InMemoryConversations, conversation_store_contract::conversation_store_contract};
///
/// # async fn test() {
/// conversation_store_contract(&InMemoryConversations::new()).await;
/// # }
/// ```
#[async_trait]
pub trait ConversationStore: Send + Sync {
    /// Begins a conversation. It has no events, or the events that [`forked_from`](Conversation::forked_from) refers
    /// to, with their numbers and times; the field `events` is ignored.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be stored, the principal already has one with that id, or the principal's
    /// conversation that it is a copy of does not exist or has fewer events. Nothing of it is then stored.
    async fn begin(&self, conversation: &Conversation) -> Result<(), StoreError>;

    /// Adds events after the first `expected` ones, and returns the number of the last.
    ///
    /// # Errors
    /// [`AppendError`]; none of the events is then added.
    async fn append(
        &self,
        principal: &Principal,
        id: ConversationId,
        expected: u64,
        at: Timestamp,
        events: Vec<ConversationEventKind>,
    ) -> Result<u64, AppendError>;

    /// Returns a conversation without its events; `None` if the principal has none with that id.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    async fn find(&self, principal: &Principal, id: ConversationId) -> Result<Option<Conversation>, StoreError>;

    /// Returns the events of a conversation, in order; empty if there is no such conversation.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    async fn events(&self, principal: &Principal, id: ConversationId) -> Result<Vec<ConversationEvent>, StoreError>;

    /// Returns the principal's conversations that were delegated in this session, the latest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    async fn delegated_in(
        &self,
        principal: &Principal,
        session: &str,
        limit: usize,
    ) -> Result<Vec<Conversation>, StoreError>;

    /// Returns the principal's conversations that a user began, the most recently extended first, at most `limit`.
    /// Beginning a conversation counts as extending it.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    async fn latest(&self, principal: &Principal, limit: usize) -> Result<Vec<Conversation>, StoreError>;
}

/// Store that stores nothing, for embedding applications without a store: no conversation can begin.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoConversations;

#[async_trait]
impl ConversationStore for NoConversations {
    async fn begin(&self, conversation: &Conversation) -> Result<(), StoreError> {
        let operation = format!("begin the conversation {}", conversation.id);
        Err(StoreError { operation, source: "the program does not store conversations".into() })
    }

    async fn append(
        &self,
        _: &Principal,
        id: ConversationId,
        _: u64,
        _: Timestamp,
        _: Vec<ConversationEventKind>,
    ) -> Result<u64, AppendError> {
        Err(AppendError::NotFound(id))
    }

    async fn find(&self, _: &Principal, _: ConversationId) -> Result<Option<Conversation>, StoreError> {
        Ok(None)
    }

    async fn events(&self, _: &Principal, _: ConversationId) -> Result<Vec<ConversationEvent>, StoreError> {
        Ok(Vec::new())
    }

    async fn delegated_in(&self, _: &Principal, _: &str, _: usize) -> Result<Vec<Conversation>, StoreError> {
        Ok(Vec::new())
    }

    async fn latest(&self, _: &Principal, _: usize) -> Result<Vec<Conversation>, StoreError> {
        Ok(Vec::new())
    }
}
