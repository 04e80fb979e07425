//! Task that a server creates for a call (`CreateTaskResult` of MCP's extension `io.modelcontextprotocol/tasks`).

use crate::mcp::client::connection::{own_members, request_error::RequestError};
use serde_json::{Map, Value};
use toolstead_domain::ToolResult;

/// Maximum length of a task id, in bytes.
const MAX_ID_BYTES: usize = 1024;

/// Returns the task in this result, without `content` and without members that only Toolstead may set.
///
/// # Errors
/// Returns the reason why the task is invalid.
pub(in crate::mcp::client) fn read_task(mut result: Map<String, Value>) -> Result<ToolResult, RequestError> {
    let id = result.get("taskId").and_then(Value::as_str).unwrap_or_default();
    if id.is_empty() || id.len() > MAX_ID_BYTES || !result.get("status").is_some_and(Value::is_string) {
        return Err(RequestError::Malformed("it created a task for the call without an id or a status".into()));
    }
    own_members::take_out(&mut result);
    result.remove("content");
    Ok(ToolResult::task(result))
}
