//! The conversation of a run: what happened before, and what is added to it.

use super::transcript;
use std::sync::Arc;
use toolstead_domain::{
    conversation::{
        Conversation, ConversationId,
        event::{ConversationEvent, ConversationEventKind},
    },
    model::message::Message,
    ports::{
        clock::Clock,
        conversation_store::{AppendError, ConversationStore},
        tool_repository::StoreError,
    },
    principal::Principal,
};

/// A conversation as it is in the store, which only this adds to.
pub(super) struct History {
    store: Arc<dyn ConversationStore>,
    clock: Arc<dyn Clock>,
    principal: Principal,
    id: ConversationId,
    events: Vec<ConversationEvent>,
}

impl History {
    /// The conversation of that id; one that there is not is begun under this title.
    pub(super) async fn open(
        store: Arc<dyn ConversationStore>,
        clock: Arc<dyn Clock>,
        principal: &Principal,
        id: ConversationId,
        title: &str,
        profile: Option<&str>,
    ) -> Result<Self, StoreError> {
        let events = match store.find(principal, id).await? {
            Some(_) => store.events(principal, id).await?,
            None => {
                let mut conversation = Conversation::begun(id, principal.clone(), title, clock.now());
                conversation.profile = profile.map(str::to_owned);
                store.begin(&conversation).await?;
                Vec::new()
            }
        };
        Ok(Self { store, clock, principal: principal.clone(), id, events })
    }

    /// Adds events. Once this returns they are kept.
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

    /// What a request holds of it.
    pub(super) fn messages(&self) -> Vec<Message> {
        transcript::messages(&self.events)
    }
}
