//! Notifications of a provider that belong to no request.

use crate::{ports::caller::LogMessage, principal::Principal};

/// Notification to the subscribers of a provider.
#[derive(Debug, Clone, PartialEq)]
pub enum ContextNotice {
    /// A subscribed resource changed (MCP `notifications/resources/updated`).
    ResourceUpdated {
        /// URI of the resource, as in the provider's catalogue or templates.
        uri: String,
    },
    /// The provider logged a message that belongs to no call.
    Log {
        /// Log message.
        message: LogMessage,
        /// The only principal that may receive it; `None` for every user of the provider.
        principal: Option<Principal>,
    },
}
