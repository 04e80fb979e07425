//! Conversations with an agent: an append-only log of events, from which messages are derived.

pub mod event;
pub mod record;
pub mod transcript;

use crate::{ports::clock::Timestamp, principal::Principal, tool_call::CallId};
use std::{fmt, str::FromStr, sync::Arc};
use uuid::Uuid;

/// Names a conversation: a version 7 UUID made outside. It is also the session of the calls made in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct ConversationId(pub Uuid);

/// A conversation without its events.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conversation {
    /// Its id.
    pub id: ConversationId,
    /// Whose it is.
    pub principal: Principal,
    /// For people: the beginning of what was said first.
    pub title: String,
    /// The profile that it was begun with, by name.
    pub profile: Option<String>,
    /// The time of its beginning.
    pub created: Timestamp,
    /// The time of the last event that was added.
    pub updated: Timestamp,
    /// As many events it has.
    pub events: u64,
    /// The conversation that it is a copy of, and as many events of it.
    pub forked_from: Option<(ConversationId, u64)>,
    /// Set where it is that of an agent that was handed work; `None`: a person began it.
    pub handed_over: Option<HandedOver>,
}

/// The way an agent came by its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandedOver {
    /// In this session, which for an agent is that of its conversation.
    pub session: Arc<str>,
    /// By this call.
    pub call: CallId,
    /// The agent, by name.
    pub agent: Arc<str>,
}

impl ConversationId {
    /// As the id of the session in which the calls of the conversation are made.
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
    /// A conversation that begins.
    pub fn begun(id: ConversationId, principal: Principal, title: impl Into<String>, at: Timestamp) -> Self {
        Self {
            id,
            principal,
            title: title.into(),
            profile: None,
            created: at,
            updated: at,
            events: 0,
            forked_from: None,
            handed_over: None,
        }
    }
}
