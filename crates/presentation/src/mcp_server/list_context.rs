//! `resources/list`, `resources/templates/list` and `prompts/list`.

use super::{
    McpServer,
    answer::SerializedResponse,
    call_tool::ClientContext,
    list_tools::{LIST_TTL_MS, PAGE_BYTES, cursor},
    protocol_error::of_kind,
};
use serde_json::{Map, Value};
use toolstead_application::{ContextListKind, ListContextQuery};
use toolstead_domain::{ProtocolGeneration, error_kind::ErrorKind};
use toolstead_infrastructure::mcp::wire::message::{RequestId, RpcError};

impl McpServer {
    /// Returns one page of the list that the method names; any method other than the lists of resources, templates and
    /// prompts is `tools/list`.
    pub(super) async fn list(
        &self,
        id: &RequestId,
        method: &str,
        params: &Map<String, Value>,
        client: ClientContext,
    ) -> SerializedResponse {
        // Loading the commands detects changes and notifies the clients.
        self.app.agent_files.commands();
        let (of, member) = match method {
            "resources/list" => (ContextListKind::Resources, "resources"),
            "resources/templates/list" => (ContextListKind::Templates, "resourceTemplates"),
            "prompts/list" => (ContextListKind::Prompts, "prompts"),
            _ => return self.list_tools(id, params, client).await,
        };
        let (generation, scope) = (client.generation(), client.scope);
        let cursor = match cursor(params) {
            Ok(cursor) => cursor,
            Err(error) => return SerializedResponse::error(id, &error),
        };
        if cursor.is_none() {
            self.settle_context().await;
        }
        let query = ListContextQuery { of, scope, cursor, page_bytes: PAGE_BYTES };
        let page = match self.app.list_context.handle(&query) {
            Ok(page) => page,
            Err(error) => {
                let error = of_kind(RpcError::INVALID_PARAMS, ErrorKind::InvalidInput, error.to_string());
                return SerializedResponse::error(id, &error);
            }
        };
        let mut result = Map::new();
        if generation == ProtocolGeneration::Modern {
            result.insert("resultType".into(), "complete".into());
            result.insert("ttlMs".into(), LIST_TTL_MS.into());
            result.insert("cacheScope".into(), "private".into());
            result.insert("_meta".into(), self.identity.result_meta());
        }
        result.insert(member.into(), page.definitions.into());
        if let Some(next) = page.next_cursor {
            result.insert("nextCursor".into(), next.into());
        }
        SerializedResponse::result(id, &result)
    }
}
