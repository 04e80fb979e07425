//! Outcomes of requests for resources, prompts and completions.

use crate::mcp::{
    client::{
        calls::outcome::CallTarget,
        connection::{own_members, request_error::RequestError},
    },
    wire::{incoming::RawResponse, message::RpcError},
};
use serde_json::Value;
use toolstead_domain::{
    AuditedRequestKind, CallOutcome, ProtocolGeneration, ToolFailure, ToolResult, error_kind::ErrorKind,
};

impl CallTarget<'_> {
    /// Returns the outcome of a response: the members of its result, without `content` and without those that only
    /// Toolstead may set, or the questions of a modern server.
    ///
    /// # Errors
    /// Returns [`ToolFailure`] for an error, and for an invalid result.
    pub(super) fn members(
        &self,
        answer: RawResponse,
        generation: ProtocolGeneration,
        kind: AuditedRequestKind,
    ) -> Result<CallOutcome, ToolFailure> {
        let malformed = |reason: String| self.failure(RequestError::Malformed(reason));
        if answer.heavy_result().is_some() {
            return Err(malformed("its result holds too many values".into()));
        }
        let result = match answer.into_outcome() {
            Ok(Ok(Value::Object(result))) => result,
            Ok(Ok(_)) => return Err(malformed("its result is not an object".into())),
            Ok(Err(error)) => {
                let is_unknown = kind == AuditedRequestKind::Resource
                    && (error.code == RpcError::RESOURCE_NOT_FOUND
                        || (generation == ProtocolGeneration::Modern && error.code == RpcError::INVALID_PARAMS));
                let failure = self.failure(RequestError::Rpc(error));
                return Err(if is_unknown { not_found(failure) } else { failure });
            }
            Err(error) => return Err(malformed(error.to_string())),
        };
        let mut result = match generation {
            ProtocolGeneration::Legacy => result,
            ProtocolGeneration::Modern => match self.modern_result(result)? {
                Ok(Value::Object(result)) => result,
                Ok(_) => return Err(malformed("its result is not an object".into())),
                Err(outcome) => return Ok(outcome),
            },
        };
        own_members::take_out(&mut result);
        let lists = ["contents", "messages"].into_iter();
        let items = lists.filter_map(|list| result.get(list)).filter_map(Value::as_array).flatten();
        let has_own = items.clone().any(|item| item.get("_meta").is_some() || item.get("content").is_some());
        if has_own {
            for list in ["contents", "messages"] {
                for item in result.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                    take_out(item);
                }
            }
        }
        // With this member the result would be mistaken for a tool result.
        result.shift_remove("content");
        Ok(CallOutcome::Done(ToolResult::of_members(result)))
    }
}

/// Removes members that only Toolstead may set from an item of a list and from its contents.
fn take_out(item: &mut Value) {
    let Value::Object(members) = item else { return };
    own_members::take_out(members);
    for name in ["content", "resource"] {
        match members.get_mut(name) {
            Some(Value::Array(blocks)) => blocks.iter_mut().for_each(take_out),
            Some(block) => take_out(block),
            None => {}
        }
    }
}

/// Returns `true` if the error code means that the resource does not exist.
pub(super) fn is_unknown_resource(code: i64) -> bool {
    matches!(code, RpcError::RESOURCE_NOT_FOUND | RpcError::INVALID_PARAMS)
}

/// Turns a failure into that of an unknown resource. The error code depends on the client's generation and is set
/// later.
pub(super) fn not_found(mut failure: ToolFailure) -> ToolFailure {
    failure.kind = ErrorKind::NotFound;
    if let Some(error) = failure.upstream.take()
        && let Some(data @ Value::Object(_)) = error.data
    {
        failure.data = data;
    }
    failure
}
