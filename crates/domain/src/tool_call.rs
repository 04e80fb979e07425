//! One call of one tool.

use crate::{principal::Principal, tool::Tool};
use serde_json::{Map, Value};
use std::sync::Arc;
use uuid::Uuid;

/// The id of a call: a version 7 UUID made outside, so that ids sort by time. It is also the audit row's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub Uuid);

impl std::fmt::Display for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A call as its provider sees it: the tool is resolved, the parameters renamed and validated.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// Names this call, from the first log line to the audit row.
    pub id: CallId,
    /// On whose behalf it is made.
    pub principal: Principal,
    /// The id of the session in which it is made.
    pub session: Arc<str>,
    /// The tool.
    pub tool: Arc<Tool>,
    /// The name under which the caller reached it, an alias perhaps.
    pub called_as: String,
    /// The arguments under their canonical names: a JSON object that fits the tool's schema.
    pub arguments: Map<String, Value>,
    /// The request's `_meta` as the caller sent it, without what belongs to one hop (progress token, protocol
    /// version, capabilities).
    pub meta: Map<String, Value>,
}
