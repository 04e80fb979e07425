//! One thing that a client is told outside of its requests.

use serde_json::{Map, Value, json};
use toolstead_domain::ports::caller::LogMessage;
use toolstead_infrastructure::mcp::wire::{message::Id, meta::SUBSCRIPTION_ID};

/// A list that clients ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum List {
    Tools,
    /// Resources and templates.
    Resources,
    Prompts,
}

/// What there is to tell.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum News {
    /// The list is another, perhaps not for this client.
    ListChanged(List),
    /// The resource of this URI changed.
    Updated(String),
    /// Somebody said this outside of any call.
    Said(LogMessage),
}

impl List {
    pub(super) const ALL: [Self; 3] = [Self::Tools, Self::Resources, Self::Prompts];

    /// Its name in the filter of a subscription (MCP 2026-07-28, schema, `SubscriptionFilter`).
    pub(super) fn wanted_as(self) -> &'static str {
        match self {
            Self::Tools => "toolsListChanged",
            Self::Resources => "resourcesListChanged",
            Self::Prompts => "promptsListChanged",
        }
    }
}

impl News {
    /// The notification: of this subscription, or of a session.
    pub(super) fn notification(self, subscription: Option<&Id>) -> Vec<u8> {
        let mut params = Map::new();
        if let Some(id) = subscription {
            params.insert("_meta".into(), json!({SUBSCRIPTION_ID: id.to_value()}));
        }
        let method = match self {
            Self::ListChanged(List::Tools) => "notifications/tools/list_changed",
            Self::ListChanged(List::Resources) => "notifications/resources/list_changed",
            Self::ListChanged(List::Prompts) => "notifications/prompts/list_changed",
            Self::Updated(uri) => {
                params.insert("uri".into(), uri.into());
                "notifications/resources/updated"
            }
            Self::Said(message) => {
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
