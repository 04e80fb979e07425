//! `resources/subscribe` and `resources/unsubscribe`, up to MCP 2025-11-25.

use super::{
    McpServer, answer::SerializedResponse, call_tool::ClientContext, forward_request::failed,
    protocol_error::invalid_params, watches::ResourceWatches,
};
use serde_json::{Map, Value, json};
use toolstead_domain::{AuditedRequestKind, ProtocolGeneration};
use toolstead_infrastructure::mcp::wire::message::{RequestId, RpcError};

impl McpServer {
    /// Answers `resources/subscribe` or `resources/unsubscribe`: adds a resource to the session's `watches` or removes
    /// it.
    pub(super) async fn watch(
        &self,
        id: &RequestId,
        method: &str,
        params: &Map<String, Value>,
        client: &ClientContext,
        watches: &ResourceWatches,
    ) -> SerializedResponse {
        let uri = match uri(params) {
            Ok(uri) => uri,
            Err(error) => return SerializedResponse::error(id, &error),
        };
        if method == "resources/unsubscribe" {
            watches.remove(uri);
            return SerializedResponse::result(id, &json!({}));
        }
        match watches.add(&self.app, client, uri.to_owned()).await {
            Ok(()) => SerializedResponse::result(id, &json!({})),
            Err(failure) => failed(
                id,
                AuditedRequestKind::Resource,
                uri,
                &failure,
                ProtocolGeneration::Legacy,
                self.app.execute_tool.suggestions(),
            ),
        }
    }
}

fn uri(params: &Map<String, Value>) -> Result<&str, RpcError> {
    params.get("uri").and_then(Value::as_str).ok_or_else(|| invalid_params("`uri` must be the URI of a resource"))
}
