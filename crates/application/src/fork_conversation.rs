//! Creation of a conversation as a copy of another.

use std::sync::Arc;
use toolstead_domain::{Clock, Conversation, ConversationId, ConversationStore, Principal, StoreError};
use uuid::Uuid;

/// Creates a copy of a conversation.
#[derive(Debug, Clone)]
pub struct ForkConversationCommand {
    /// Owner of the conversation.
    pub principal: Principal,
    /// Id of the original, which does not change.
    pub original: ConversationId,
    /// Number of the last event to copy, counted from 1; `None`: all events are copied.
    pub to: Option<u64>,
}

/// The reason why no copy was created.
#[derive(Debug, thiserror::Error)]
pub enum ForkConversationError {
    /// The principal has no conversation with this id.
    #[error("there is no conversation {0}")]
    NotFound(ConversationId),
    /// The conversation is shorter.
    #[error("the conversation has {events} events, so it cannot be copied up to event {to}")]
    NoSuchEvent {
        /// Number of the requested event.
        to: u64,
        /// Number of events of the conversation.
        events: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Creates conversations as copies of others.
///
/// ```
/// use std::sync::Arc;
/// use toolstead_application::fork_conversation::{ForkConversationCommand, ForkConversationHandler};
/// use toolstead_domain::{
///     ConversationStore,
///     testing::{
///         conversation_store_contract::conversation, fixed_clock::FixedClock,
///         in_memory_conversations::InMemoryConversations, samples::START,
///     },
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (store, original) = (Arc::new(InMemoryConversations::new()), conversation(1));
/// store.begin(&original).await?;
/// let handler = ForkConversationHandler::new(store, Arc::new(FixedClock::at(START)));
/// let command = ForkConversationCommand { principal: original.principal, original: original.id, to: None };
/// assert_eq!(handler.handle(command).await?.forked_from, Some((original.id, 0)));
/// # Ok(())
/// # }
/// ```
pub struct ForkConversationHandler {
    conversations: Arc<dyn ConversationStore>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for ForkConversationHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForkConversationHandler").finish_non_exhaustive()
    }
}

impl ForkConversationHandler {
    /// Creates a handler on this store.
    pub fn new(conversations: Arc<dyn ConversationStore>, clock: Arc<dyn Clock>) -> Self {
        Self { conversations, clock }
    }

    /// Creates the copy, and returns its description. Its calls are those of the original: their audit records, and the
    /// undo data of their file changes, still belong to the original.
    ///
    /// # Errors
    /// [`ForkConversationError`]; nothing is created then.
    pub async fn handle(&self, command: ForkConversationCommand) -> Result<Conversation, ForkConversationError> {
        let ForkConversationCommand { principal, original, to } = command;
        let known = self.conversations.find(&principal, original).await?;
        let known = known.ok_or(ForkConversationError::NotFound(original))?;
        let events = to.unwrap_or(known.events);
        if events > known.events {
            return Err(ForkConversationError::NoSuchEvent { to: events, events: known.events });
        }
        let id = ConversationId(Uuid::now_v7());
        let mut copy = Conversation::new(id, principal, known.title, self.clock.now());
        copy.profile = known.profile;
        copy.forked_from = Some((original, events));
        self.conversations.begin(&copy).await?;
        copy.events = events;
        Ok(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::testing::{
        conversation_store_contract::{conversation, one_of_each},
        fixed_clock::FixedClock,
        in_memory_conversations::InMemoryConversations,
        samples::START,
    };

    #[tokio::test]
    async fn a_fork_copies_the_requested_number_of_events_and_only_of_own_conversations() {
        let (store, original) = (Arc::new(InMemoryConversations::new()), conversation(1));
        store.begin(&original).await.unwrap();
        let all = store.append(&original.principal, original.id, 0, START, one_of_each()).await.unwrap();
        let handler = ForkConversationHandler::new(store.clone(), Arc::new(FixedClock::at(START)));
        let fork = |principal: &Principal, to| {
            handler.handle(ForkConversationCommand { principal: principal.clone(), original: original.id, to })
        };
        let me = &original.principal;
        for (to, events) in [(None, all), (Some(3), 3), (Some(0), 0)] {
            let copy = fork(me, to).await.unwrap();
            assert_eq!((copy.forked_from, copy.title.as_str()), (Some((original.id, events)), "talk 1"));
            assert_eq!(store.find(me, copy.id).await.unwrap().as_ref(), Some(&copy));
            let copied = store.events(me, copy.id).await.unwrap();
            assert_eq!(copied, store.events(me, original.id).await.unwrap()[..copied.len()]);
        }
        let beyond = fork(me, Some(all + 1)).await.unwrap_err();
        assert!(matches!(beyond, ForkConversationError::NoSuchEvent { .. }), "{beyond:?}");
        let others = fork(&Principal::token("ann"), None).await.unwrap_err();
        assert!(matches!(others, ForkConversationError::NotFound(_)), "{others:?}");
    }
}
