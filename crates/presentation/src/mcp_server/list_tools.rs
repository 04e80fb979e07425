//! `tools/list`.

use super::{
    McpServer,
    answer::SerializedResponse,
    call_tool::ClientContext,
    protocol_error::{invalid_params, of_kind},
};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use std::sync::Arc;
use toolstead_application::{ListToolsQuery, PageLimit, SharedRegisteredTool, ToolFilter, ToolListForm};
use toolstead_domain::{ProtocolGeneration, error_kind::ErrorKind};
use toolstead_infrastructure::mcp::wire::message::{RequestId, RpcError};

/// Maximum size of the definitions in a page, in bytes.
pub(super) const PAGE_BYTES: usize = 1 << 20;
/// Time in milliseconds for which a client may cache a page: long enough for one turn of an agent, and short enough
/// that a client without a subscription soon sees a server that started late.
pub(super) const LIST_TTL_MS: u32 = 5_000;

/// MCP's `ListToolsResult`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListToolsResult<'a> {
    #[serde(flatten)]
    modern: Option<ModernMembers>,
    tools: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<&'a str>,
    /// Further members of the result: those of an upstream server if all tools are from it, and `_meta`.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Members added in 2026-07-28 (basic, "ResultType"; server/utilities/caching).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModernMembers {
    result_type: &'static str,
    ttl_ms: u32,
    cache_scope: &'static str,
}

impl McpServer {
    /// Returns one page of tools, with each definition as its provider sent it.
    pub(super) async fn list_tools(
        &self,
        id: &RequestId,
        params: &Map<String, Value>,
        client: ClientContext,
    ) -> SerializedResponse {
        let generation = client.generation();
        let ClientContext { scope, profile } = client;
        let cursor = match cursor(params) {
            Ok(cursor) => cursor,
            Err(error) => return SerializedResponse::error(id, &error),
        };
        let is_later_page = cursor.is_some();
        if !is_later_page {
            self.settle().await;
        }
        let (scope, filter) = (self.in_dialect(scope), ToolFilter::default());
        let form = if profile.is_self_deferring() { ToolListForm::Whole } else { ToolListForm::Deferred };
        let query = ListToolsQuery { scope, filter, cursor, page: PageLimit::Bytes(PAGE_BYTES), form };
        let page = match self.app.list_tools.handle(&query) {
            Ok(page) => page,
            Err(error) => {
                let error = of_kind(RpcError::INVALID_PARAMS, ErrorKind::InvalidInput, error.to_string());
                return SerializedResponse::error(id, &error);
            }
        };
        let modern = match generation {
            ProtocolGeneration::Legacy => None,
            ProtocolGeneration::Modern => {
                Some(ModernMembers { result_type: "complete", ttl_ms: LIST_TTL_MS, cache_scope: "private" })
            }
        };
        let is_whole = page.next_cursor.is_none() && !is_later_page;
        let mut rest = if is_whole { members_of_all(&page.tools) } else { Map::new() };
        if generation == ProtocolGeneration::Modern {
            let meta = rest.entry("_meta").or_insert_with(|| Map::new().into());
            if let (Value::Object(meta), Value::Object(ours)) = (meta, self.identity.result_meta()) {
                meta.extend(ours);
            }
        }
        let tools = page.tools.iter().map(|one| one.wire()).collect();
        SerializedResponse::result(
            id,
            &ListToolsResult { modern, tools, next_cursor: page.next_cursor.as_deref(), rest },
        )
    }
}

/// Returns the further members of a server's list, if all of these tools are from that server; otherwise none.
fn members_of_all(tools: &[SharedRegisteredTool]) -> Map<String, Value> {
    match tools {
        [first, others @ ..] if others.iter().all(|one| Arc::ptr_eq(&one.provider, &first.provider)) => {
            let mut members = first.provider.list_members();
            members.retain(|name, _| name != "tools" && name != "nextCursor");
            members
        }
        _ => Map::new(),
    }
}

pub(super) fn cursor(params: &Map<String, Value>) -> Result<Option<String>, RpcError> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(cursor)) => Ok(Some(cursor.clone())),
        Some(_) => Err(invalid_params("`cursor` must be the text that came as `nextCursor`")),
    }
}
