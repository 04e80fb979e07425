//! The messages of one `subscriptions/listen` (MCP 2026-07-28, basic/patterns/subscriptions).

use super::{protocol_error::invalid_params, server_identity::ServerIdentity};
use serde_json::{Map, Value, json};
use toolstead_infrastructure::mcp::wire::{
    message::{Id, RpcError, response},
    meta::SUBSCRIPTION_ID,
};

/// One subscription: its id is that of the request that opened it.
#[derive(Debug)]
pub(super) struct Subscription {
    id: Id,
    /// Whether the client asked for `notifications/tools/list_changed`, the one kind that is offered.
    pub(super) tools_list_changed: bool,
}

impl Subscription {
    /// Reads what the client asks for. Kinds that are not offered are left out of the acknowledgement.
    ///
    /// # Errors
    /// -32602 without a `notifications` object.
    pub(super) fn parse(id: Id, params: &Map<String, Value>) -> Result<Self, RpcError> {
        let Some(Value::Object(wanted)) = params.get("notifications") else {
            return Err(invalid_params("`notifications` must be an object that names what to listen to"));
        };
        Ok(Self { id, tools_list_changed: wanted.get("toolsListChanged") == Some(&Value::Bool(true)) })
    }

    /// The first message.
    pub(super) fn acknowledgement(&self) -> Vec<u8> {
        let mut agreed = Map::new();
        if self.tools_list_changed {
            agreed.insert("toolsListChanged".into(), true.into());
        }
        self.notification("notifications/subscriptions/acknowledged", [("notifications", agreed.into())])
    }

    /// The list of tools changed.
    pub(super) fn list_changed(&self) -> Vec<u8> {
        self.notification("notifications/tools/list_changed", [])
    }

    /// The server ends it (basic/patterns/cancellation).
    pub(super) fn cancelled(&self) -> Vec<u8> {
        self.notification(
            "notifications/cancelled",
            [("requestId", self.id.to_value()), ("reason", "the server is shutting down".into())],
        )
    }

    /// The last message: the answer to the request that opened it.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn only_what_was_asked_for_and_is_offered_is_agreed() {
        let parse = |notifications: Value| {
            let params = json!({"notifications": notifications}).as_object().unwrap().clone();
            parsed(&Subscription::parse(Id::Number(4), &params).unwrap().acknowledgement())
        };
        let both = parse(json!({"promptsListChanged": true, "toolsListChanged": true}));
        assert_eq!(both["params"], json!({"_meta": {SUBSCRIPTION_ID: 4}, "notifications": {"toolsListChanged": true}}));
        assert_eq!(parse(json!({"toolsListChanged": false}))["params"]["notifications"], json!({}));
        assert_eq!(parse(json!({"toolsListChanged": 1}))["params"]["notifications"], json!({}));
        assert_eq!(Subscription::parse(Id::Number(4), &Map::new()).unwrap_err().code, -32602);
    }

    #[test]
    fn every_message_bears_the_subscriptions_id() {
        let subscription = Subscription { id: Id::Text("s".into()), tools_list_changed: true };
        for message in [subscription.acknowledgement(), subscription.list_changed(), subscription.cancelled()] {
            assert_eq!(parsed(&message)["params"]["_meta"][SUBSCRIPTION_ID], "s");
        }
        let end = parsed(&subscription.result(&ServerIdentity::default()));
        assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!("s"), &json!("complete")));
        assert_eq!(end["result"]["_meta"][SUBSCRIPTION_ID], "s");
    }
}
