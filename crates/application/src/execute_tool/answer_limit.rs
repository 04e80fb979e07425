//! Size limit of the answers to requests other than tool calls. A truncated resource would be a different one, so an
//! answer over the limit is an error.

use super::{error::ExecuteToolError, record::each_piece};
use serde_json::json;
use toolstead_domain::{CallOutcome, ToolFailure, error_kind::ErrorKind};

/// Returns the outcome, or an error if it has more than `at_most` bytes of JSON.
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
    let message = format!("The answer has {bytes} bytes, and at most {at_most} are returned at once.");
    let failure = ToolFailure::new(ErrorKind::TooLarge, message).with_data(json!({"bytes": bytes, "limit": at_most}));
    Err(ExecuteToolError::Failed(failure.next("Use a tool that reads a part of it.")))
}
