//! The conversation of a run: its past events and the events that the run appends.

use std::sync::Arc;
use toolstead_domain::{
    AppendError, Clock, Conversation, ConversationEvent, ConversationEventKind, ConversationId, ConversationStore,
    Message, Principal, StoreError, conversation::transcript,
};

/// A stored conversation. Only this run appends to it.
pub(super) struct ConversationHistory {
    store: Arc<dyn ConversationStore>,
    clock: Arc<dyn Clock>,
    principal: Principal,
    id: ConversationId,
    events: Vec<ConversationEvent>,
}

impl ConversationHistory {
    /// Returns the conversation with this id, if the principal has one.
    pub(super) async fn find(
        store: Arc<dyn ConversationStore>,
        clock: Arc<dyn Clock>,
        principal: &Principal,
        id: ConversationId,
    ) -> Result<Option<Self>, StoreError> {
        if store.find(principal, id).await?.is_none() {
            return Ok(None);
        }
        let events = store.events(principal, id).await?;
        Ok(Some(Self { store, clock, principal: principal.clone(), id, events }))
    }

    /// Creates a conversation.
    pub(super) async fn begin(
        store: Arc<dyn ConversationStore>,
        clock: Arc<dyn Clock>,
        conversation: Conversation,
    ) -> Result<Self, StoreError> {
        store.begin(&conversation).await?;
        let Conversation { id, principal, .. } = conversation;
        Ok(Self { store, clock, principal, id, events: Vec::new() })
    }

    /// Appends events. They are stored once this returns.
    pub(super) async fn add(
        &mut self,
        kinds: impl IntoIterator<Item = ConversationEventKind>,
    ) -> Result<(), AppendError> {
        let kinds: Vec<_> = kinds.into_iter().collect();
        let (expected, at) = (self.events.len() as u64, self.clock.now());
        self.store.append(&self.principal, self.id, expected, at, kinds.clone()).await?;
        let numbered = kinds.into_iter().zip(expected + 1..);
        self.events.extend(numbered.map(|(kind, number)| ConversationEvent { number, at, kind }));
        Ok(())
    }

    /// Returns all events.
    pub(super) fn events(&self) -> &[ConversationEvent] {
        &self.events
    }

    /// Returns the messages for a request.
    pub(super) fn messages(&self) -> Vec<Message> {
        transcript::messages(&self.events)
    }
}
