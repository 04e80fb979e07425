//! The bound of what answers a request that is no call of a tool. A cut resource is another one, so nothing is cut out of it.

use super::{ExecuteToolError, record::each_piece};
use serde_json::json;
use toolstead_domain::{error_kind::ErrorKind, ports::tool_provider::CallOutcome, tool_failure::ToolFailure};

/// The outcome, unless it is over so many bytes of JSON.
pub(super) fn bound(
    outcome: Result<CallOutcome, ExecuteToolError>,
    at_most: usize,
) -> Result<CallOutcome, ExecuteToolError> {
    let outcome = outcome?;
    let bytes = match &outcome {
        CallOutcome::Done(result) => each_piece(result, |_| ()),
        CallOutcome::InputRequired(_) => return Ok(outcome),
    };
    if bytes <= at_most as u64 {
        return Ok(outcome);
    }
    let message = format!("The answer has {bytes} bytes, and at most {at_most} are given at once.");
    let failure = ToolFailure::new(ErrorKind::TooLarge, message).with_data(json!({"bytes": bytes, "limit": at_most}));
    Err(ExecuteToolError::Failed(failure.next("Use a tool that reads a part of it.")))
}
