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

/// The reason why events were not added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The principal has no conversation of that id.
    #[error("there is no conversation {0}")]
    NotFound(ConversationId),
    /// Somebody else added events meanwhile: the conversation goes on in another process.
    #[error("the conversation goes on elsewhere: it has {found} events, and {expected} were expected")]
    GoesOnElsewhere {
        /// As many as there are.
        found: u64,
        /// As many as there were to be.
        expected: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps conversations of one workspace, by principal.
///
/// Implementers guarantee:
/// - events are only ever added, at the end, without gaps; what [`append`](Self::append) returned is kept, also across
///   `kill -9`, and what it did not is kept whole or not at all;
/// - of two processes that add to one conversation at once one is refused;
/// - one principal's conversations mean nothing to another.
#[async_trait]
pub trait ConversationStore: Send + Sync {
    /// Begins a conversation. It has no events, or those that [`forked_from`](Conversation::forked_from) says, with their
    /// numbers and times; `events` does not count here.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be kept, the principal has one of that id, or the principal's conversation that it
    /// is a copy of is not there or has fewer events. Then nothing of it is kept.
    async fn begin(&self, conversation: &Conversation) -> Result<(), StoreError>;

    /// Adds events behind the first `expected` ones, and says the number of the last.
    ///
    /// # Errors
    /// [`AppendError`]; then none of them is added.
    async fn append(
        &self,
        principal: &Principal,
        id: ConversationId,
        expected: u64,
        at: Timestamp,
        events: Vec<ConversationEventKind>,
    ) -> Result<u64, AppendError>;

    /// A conversation without its events; `None` if the principal has none of that id.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn find(&self, principal: &Principal, id: ConversationId) -> Result<Option<Conversation>, StoreError>;

    /// Its events, in order; none where there is no such conversation.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn events(&self, principal: &Principal, id: ConversationId) -> Result<Vec<ConversationEvent>, StoreError>;

    /// The principal's conversations that were handed over in this session, the latest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn handed_over_in(
        &self,
        principal: &Principal,
        session: &str,
        limit: usize,
    ) -> Result<Vec<Conversation>, StoreError>;

    /// The principal's conversations that a person began, the one that was added to last first, at most `limit`. What began
    /// counts as added to.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn latest(&self, principal: &Principal, limit: usize) -> Result<Vec<Conversation>, StoreError>;
}

/// Keeps nothing, for programs that embed Toolstead without a store: no conversation begins.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoConversations;

#[async_trait]
impl ConversationStore for NoConversations {
    async fn begin(&self, conversation: &Conversation) -> Result<(), StoreError> {
        let operation = format!("begin the conversation {}", conversation.id);
        Err(StoreError { operation, source: "the program keeps no conversations".into() })
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

    async fn handed_over_in(&self, _: &Principal, _: &str, _: usize) -> Result<Vec<Conversation>, StoreError> {
        Ok(Vec::new())
    }

    async fn latest(&self, _: &Principal, _: usize) -> Result<Vec<Conversation>, StoreError> {
        Ok(Vec::new())
    }
}
