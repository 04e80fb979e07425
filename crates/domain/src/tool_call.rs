//! One call of one tool.

use crate::{principal::Principal, tool::Tool};
use serde_json::{Map, Value};
use std::sync::Arc;
use uuid::Uuid;

/// Id of a call: a version 7 UUID that the caller generates, so that ids sort by time. It is also the key of the audit
/// record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub Uuid);

impl std::fmt::Display for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Call as its provider receives it: the tool is resolved, the parameters are renamed and validated.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// Id of the call, used from the first log line to the audit record.
    pub id: CallId,
    /// Principal on whose behalf the call is made.
    pub principal: Principal,
    /// Id of the session of the call.
    pub session: Arc<str>,
    /// Tool that is called.
    pub tool: Arc<Tool>,
    /// Name that the caller used, possibly an alias.
    pub called_as: String,
    /// Arguments with their canonical names: a JSON object that is valid for the schema of the tool.
    pub arguments: Map<String, Value>,
    /// `_meta` of the request as the caller sent it, without the members for a single connection (progress token,
    /// protocol version, capabilities).
    pub meta: Map<String, Value>,
}
