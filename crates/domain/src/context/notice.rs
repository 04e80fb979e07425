//! Notices of a provider outside of any request.

use crate::{ports::caller::LogMessage, principal::Principal};

/// Something that those who listen to a provider hear.
#[derive(Debug, Clone, PartialEq)]
pub enum ContextNotice {
    /// A resource that is watched changed (MCP `notifications/resources/updated`).
    ResourceUpdated {
        /// Its URI, as the provider's catalogue or templates have it.
        uri: String,
    },
    /// A log message that belongs to no call.
    Log {
        /// The message.
        message: LogMessage,
        /// The one whom alone it may concern; `None`: everybody who may use the provider.
        principal: Option<Principal>,
    },
}
