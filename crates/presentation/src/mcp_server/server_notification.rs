//! A notification that does not belong to a request.

use serde_json::{Map, Value, json};
use toolstead_domain::LogMessage;
use toolstead_infrastructure::mcp::wire::{message::RequestId, meta::SUBSCRIPTION_ID};

/// A list that clients can request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ListKind {
    Tools,
    /// Resources and templates.
    Resources,
    Prompts,
}

/// Subject of a notification.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ServerNotification {
    /// The list changed, although possibly not for this client.
    ListChanged(ListKind),
    /// The resource with this URI changed.
    Updated(String),
    /// A provider logged this message outside of any call.
    Log(LogMessage),
}

impl ListKind {
    pub(super) const ALL: [Self; 3] = [Self::Tools, Self::Resources, Self::Prompts];

    /// Returns the name of the list in the filter of a subscription (MCP 2026-07-28, schema, `SubscriptionFilter`).
    pub(super) fn filter_name(self) -> &'static str {
        match self {
            Self::Tools => "toolsListChanged",
            Self::Resources => "resourcesListChanged",
            Self::Prompts => "promptsListChanged",
        }
    }
}

impl ServerNotification {
    /// Returns the notification as JSON, with the id of this subscription, or without one for a session.
    pub(super) fn encode(self, subscription: Option<&RequestId>) -> Vec<u8> {
        let mut params = Map::new();
        if let Some(id) = subscription {
            params.insert("_meta".into(), json!({SUBSCRIPTION_ID: id.to_value()}));
        }
        let method = match self {
            Self::ListChanged(ListKind::Tools) => "notifications/tools/list_changed",
            Self::ListChanged(ListKind::Resources) => "notifications/resources/list_changed",
            Self::ListChanged(ListKind::Prompts) => "notifications/prompts/list_changed",
            Self::Updated(uri) => {
                params.insert("uri".into(), uri.into());
                "notifications/resources/updated"
            }
            Self::Log(message) => {
                params.extend(message.into_params());
                "notifications/message"
            }
        };
        let mut notification = json!({"jsonrpc": "2.0", "method": method});
        if !params.is_empty() {
            notification["params"] = Value::Object(params);
        }
        notification.to_string().into_bytes()
    }
}
