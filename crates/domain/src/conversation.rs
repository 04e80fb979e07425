//! Conversations with an agent: an append-only log of events, from which messages are derived.

pub mod event;
pub mod record;
pub mod transcript;

use crate::{ports::clock::Timestamp, principal::Principal, tool_call::CallId};
use std::{fmt, str::FromStr, sync::Arc};
use uuid::Uuid;

/// Id of a conversation: a version 7 UUID that the caller generates. It is also the session of the calls made in the
/// conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct ConversationId(pub Uuid);

/// Conversation without its events.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conversation {
    /// Id of the conversation.
    pub id: ConversationId,
    /// Owner of the conversation.
    pub principal: Principal,
    /// Title for users: the beginning of the first message.
    pub title: String,
    /// Name of the profile with which it was begun.
    pub profile: Option<String>,
    /// Time of its beginning.
    pub created: Timestamp,
    /// Time of its last event.
    pub updated: Timestamp,
    /// Number of events.
    pub events: u64,
    /// Conversation that it is a copy of, and the number of events copied from it.
    pub forked_from: Option<(ConversationId, u64)>,
    /// Set if the conversation belongs to an agent to which work was delegated; `None` if a user began it.
    pub delegated_by: Option<Delegation>,
}

/// Delegation of work to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    /// Id of the session in which the work was delegated, not of the session of the agent.
    pub session: Arc<str>,
    /// Call that delegated the work.
    pub call: CallId,
    /// Name of the agent.
    pub agent: Arc<str>,
}

impl ConversationId {
    /// Returns the id of the session in which the calls of the conversation are made.
    pub fn session(self) -> Arc<str> {
        self.to_string().into()
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ConversationId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        Uuid::parse_str(text).map(Self)
    }
}

impl Conversation {
    /// Creates a conversation without events.
    pub fn new(id: ConversationId, principal: Principal, title: impl Into<String>, at: Timestamp) -> Self {
        Self {
            id,
            principal,
            title: title.into(),
            profile: None,
            created: at,
            updated: at,
            events: 0,
            forked_from: None,
            delegated_by: None,
        }
    }
}
