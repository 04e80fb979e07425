//! Stream on which a modern server reports changes (MCP 2026-07-28, basic/patterns/subscriptions).

use super::Connection;
use crate::mcp::client::{
    connection::{handshake_result::HandshakeResult, relay::or_never, request_error::RequestError},
    context::state::ResourceSubscriptions,
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, time::Duration};
use tokio::time::sleep;
use toolstead_domain::ContextNotice;

/// Listens for all list changes that the server can report, and for changes of the subscribed resources. When the set
/// of subscribed resources changes, opens a new stream and keeps the old one until the new one is acknowledged. An
/// ended stream is opened again after a pause. Returns if the server refuses the stream.
pub(in crate::mcp::client) async fn listen(connection: &Connection, watched: &ResourceSubscriptions) {
    let (transport, peer) = (&connection.transport, connection.transport.peer());
    let mut wanted = watched.changes();
    let mut pause = Duration::from_secs(1);
    let mut before = None;
    loop {
        let (version, uris) = wanted.borrow_and_update().clone();
        let filter = filter(&connection.card, &uris);
        if filter.is_empty() {
            watched.acknowledge(version);
            before = None;
            if wanted.changed().await.is_err() {
                return;
            }
            continue;
        }
        let params = Map::from_iter([("notifications".to_owned(), filter.into())]);
        // The stream is the response to this request. The transport handles its messages.
        let mut stream =
            Box::pin(async move { transport.request(&connection.writer, "subscriptions/listen", &params).await });
        let ended = loop {
            tokio::select! {
                ended = &mut stream => break Some(ended),
                () = peer.acknowledged.notified() => {
                    before = None;
                    watched.acknowledge(version);
                }
                _ = or_never(before.as_mut()) => before = None,
                changed = wanted.changed() => match changed {
                    Ok(()) => break None,
                    Err(_) => return,
                },
            }
        };
        let Some(ended) = ended else {
            before = Some(stream);
            continue;
        };
        match ended {
            Err(RequestError::Rpc(error)) => {
                tracing::debug!(server = %peer.server, %error, "the server reports no changes");
                return;
            }
            Ok(answer) if matches!(answer.result_text(), Ok(Err(_)) | Err(_)) => return,
            Ok(_) | Err(_) => {}
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(60));
        // Servers do not repeat changes from the time between the streams.
        peer.everything_changed();
        for uri in uris {
            peer.notices.push(ContextNotice::ResourceUpdated { uri });
        }
    }
}

/// Returns the changes to subscribe to (MCP's `SubscriptionFilter`).
fn filter(card: &HandshakeResult, uris: &BTreeSet<String>) -> Map<String, Value> {
    let lists =
        [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];
    let supported = lists.into_iter().filter(|(what, _)| card.can(what, "listChanged"));
    let mut filter: Map<String, Value> = supported.map(|(_, name)| (name.to_owned(), true.into())).collect();
    if !uris.is_empty() && card.can("resources", "subscribe") {
        filter.insert("resourceSubscriptions".into(), json!(uris));
    }
    filter
}
