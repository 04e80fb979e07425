//! The messages of one `subscriptions/listen` (MCP 2026-07-28, basic/patterns/subscriptions).

use super::{
    call_tool::ClientContext,
    notification_feed::Interests,
    protocol_error::{invalid_params, of_kind},
    server_identity::ServerIdentity,
    server_notification::{ListKind, ServerNotification},
    watches::{MAX_WATCHED, ResourceWatches},
};
use crate::app::App;
use futures::future::join_all;
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, sync::Arc};
use toolstead_domain::error_kind::ErrorKind;
use toolstead_infrastructure::mcp::wire::{
    message::{RequestId, RpcError, response},
    meta::SUBSCRIPTION_ID,
};

/// A subscription. Its id is that of the request that opened it.
#[derive(Debug)]
pub(super) struct ChangeSubscription {
    id: RequestId,
    /// Lists whose changes are reported.
    lists: BTreeSet<ListKind>,
    /// Resources whose changes are reported.
    resources: BTreeSet<String>,
}

impl ChangeSubscription {
    /// Parses the filter of the client. Unknown kinds are omitted from the acknowledgement.
    ///
    /// # Errors
    /// -32602 if there is no `notifications` object, or there are more resources than one subscription may watch.
    pub(super) fn parse(id: RequestId, params: &Map<String, Value>) -> Result<Self, RpcError> {
        let Some(Value::Object(wanted)) = params.get("notifications") else {
            return Err(invalid_params("`notifications` must be an object that names what to listen to"));
        };
        let is_wanted = |list: &ListKind| wanted.get(list.filter_name()) == Some(&Value::Bool(true));
        let resources: BTreeSet<String> = match wanted.get(RESOURCES) {
            Some(Value::Array(uris)) => uris.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => BTreeSet::new(),
        };
        if resources.len() > MAX_WATCHED {
            let message =
                format!("a subscription watches up to {MAX_WATCHED} resources: open another one for the rest");
            return Err(of_kind(RpcError::INVALID_PARAMS, ErrorKind::TooLarge, message));
        }
        Ok(Self { id, lists: ListKind::ALL.into_iter().filter(is_wanted).collect(), resources })
    }

    /// Starts watching the resources, and returns the lists and resources that are reported to the client. Resources
    /// that cannot be watched, or not by this client, are removed from the subscription.
    pub(super) async fn agree(&mut self, app: &App, client: ClientContext) -> Interests {
        let watches = Arc::new(ResourceWatches::default());
        let requested: Vec<String> = std::mem::take(&mut self.resources).into_iter().collect();
        for some in requested.chunks(AT_ONCE) {
            let adding: Vec<_> = some.iter().map(|uri| watches.add(app, &client, uri.clone())).collect();
            for (uri, added) in some.iter().zip(join_all(adding).await) {
                match added {
                    Ok(()) => drop(self.resources.insert(uri.clone())),
                    Err(failure) => tracing::debug!(uri, reason = failure.message, "a resource is not watched"),
                }
            }
        }
        Interests { client, lists: self.lists.clone(), watches, logs: None }
    }

    /// Returns the first message, which contains the accepted filter.
    pub(super) fn acknowledgement(&self) -> Vec<u8> {
        let mut agreed: Map<String, Value> =
            self.lists.iter().map(|list| (list.filter_name().to_owned(), true.into())).collect();
        if !self.resources.is_empty() {
            agreed.insert(RESOURCES.into(), self.resources.iter().cloned().collect());
        }
        self.notification("notifications/subscriptions/acknowledged", [("notifications", agreed.into())])
    }

    /// Returns a notification for this subscription.
    pub(super) fn encode(&self, news: ServerNotification) -> Vec<u8> {
        news.encode(Some(&self.id))
    }

    /// Returns the message with which the server ends the subscription (basic/patterns/cancellation).
    pub(super) fn cancelled(&self) -> Vec<u8> {
        self.notification(
            "notifications/cancelled",
            [("requestId", self.id.to_value()), ("reason", "the server is shutting down".into())],
        )
    }

    /// Returns the last message: the answer to the request that opened the subscription.
    pub(super) fn result(&self, identity: &ServerIdentity) -> Vec<u8> {
        let mut meta = identity.result_meta();
        meta[SUBSCRIPTION_ID] = self.id.to_value();
        response(&self.id, &json!({"resultType": "complete", "_meta": meta}))
    }

    fn notification<const N: usize>(&self, method: &str, members: [(&str, Value); N]) -> Vec<u8> {
        let mut params = Map::new();
        params.insert("_meta".into(), json!({SUBSCRIPTION_ID: self.id.to_value()}));
        params.extend(members.map(|(name, value)| (name.to_owned(), value)));
        json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string().into_bytes()
    }
}

/// Number of resources for which watching is started concurrently: each may wait for a server that is still starting.
const AT_ONCE: usize = 16;
/// Member of the filter that names the resources to watch.
const RESOURCES: &str = "resourceSubscriptions";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    fn parse(notifications: Value) -> Result<ChangeSubscription, RpcError> {
        ChangeSubscription::parse(RequestId::Number(4), json!({"notifications": notifications}).as_object().unwrap())
    }

    #[test]
    fn only_requested_changes_that_the_server_offers_are_acknowledged() {
        let agreed = |notifications: Value| parsed(&parse(notifications).unwrap().acknowledgement())["params"].clone();
        let both = json!({"promptsListChanged": true, "toolsListChanged": true, "unknown": true});
        assert_eq!(
            agreed(both),
            json!({"_meta": {SUBSCRIPTION_ID: 4},
                "notifications": {"toolsListChanged": true, "promptsListChanged": true}})
        );
        for nothing in [
            json!({"toolsListChanged": false}),
            json!({"resourcesListChanged": 1}),
            json!({"resourceSubscriptions": []}),
            json!({"resourceSubscriptions": "a://b"}),
            json!({"resourceSubscriptions": [1]}),
        ] {
            assert_eq!(agreed(nothing)["notifications"], json!({}));
        }
        let uris = |count: usize| -> Value { (0..count).map(|n| format!("a://{n}")).collect() };
        assert_eq!(parse(json!({"resourceSubscriptions": uris(MAX_WATCHED)})).unwrap().resources.len(), MAX_WATCHED);
        let error = parse(json!({"resourceSubscriptions": uris(MAX_WATCHED + 1)})).unwrap_err();
        assert_eq!((error.code, &error.data.unwrap()["kind"]), (-32602, &json!("too_large")));
        assert_eq!(ChangeSubscription::parse(RequestId::Number(4), &Map::new()).unwrap_err().code, -32602);
    }

    #[test]
    fn every_subscription_message_has_the_subscription_id() {
        let subscription = ChangeSubscription { id: RequestId::Text("s".into()), ..parse(json!({})).unwrap() };
        let news = [ServerNotification::ListChanged(ListKind::Prompts), ServerNotification::Updated("a://b".into())];
        let outcome = news.map(|news| subscription.encode(news));
        for message in [subscription.acknowledgement(), subscription.cancelled()].iter().chain(&outcome) {
            assert_eq!(parsed(message)["params"]["_meta"][SUBSCRIPTION_ID], "s");
        }
        assert_eq!(parsed(&outcome[0])["method"], "notifications/prompts/list_changed");
        assert_eq!(parsed(&outcome[1])["params"]["uri"], "a://b");
        let end = parsed(&subscription.result(&ServerIdentity::default()));
        assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!("s"), &json!("complete")));
        assert_eq!(end["result"]["_meta"][SUBSCRIPTION_ID], "s");
    }
}
