//! Reading of a guest page in a child process.

use super::pages::{PageParseRequest, ParsedPage};
use crate::helper_port::{HelperCall, HelperError, HelperLimits, HelperPort, counted_seconds};
use bytes::Bytes;
use std::{io::Cursor, time::Instant};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Name of the helper that parses guest pages.
pub const HELPER: &str = "linkedin";
/// Maximum size of a page, in bytes.
pub(super) const PAGE_BYTES: usize = 4 << 20;
const ANSWER_BYTES: u64 = 4 << 20;
const BOUNDS: HelperLimits = HelperLimits { seconds: 10, memory_bytes: 1 << 30 };

/// Parses the page in a child process.
///
/// # Errors
/// A failure for the model. The page can harm only the child process.
pub(super) async fn read(
    helpers: &dyn HelperPort,
    order: &PageParseRequest,
    page: Bytes,
    deadline: Instant,
) -> Result<ParsedPage, ToolFailure> {
    let call = HelperCall {
        name: HELPER,
        order: HelperCall::order_of(order).map_err(failed)?,
        input: Box::new(Cursor::new(page)),
        input_bytes: PAGE_BYTES as u64,
        answer_bytes: ANSWER_BYTES,
        bounds: BOUNDS,
        deadline: Some(deadline),
    };
    let answer = helpers.call(call).await.map_err(failed)?;
    let found = serde_json::from_slice::<Option<ParsedPage>>(&answer).ok().flatten();
    found.ok_or_else(|| ToolFailure::new(ErrorKind::Internal, "the answer of the page reader is invalid"))
}

/// Converts the end of the child process to a failure for the model. Logs a crash.
fn failed(error: HelperError) -> ToolFailure {
    let used_up: String;
    let (kind, reason) = match &error {
        HelperError::NoSandbox => {
            (ErrorKind::Unavailable, "the embedding application was built without the feature `sandbox`")
        }
        HelperError::NoDoor => (
            ErrorKind::Unavailable,
            "the embedding application does not support it: its `main` does not begin with `enter_if_helper()`",
        ),
        HelperError::NotStarted(_) => (ErrorKind::Unavailable, "the process that reads pages did not start"),
        HelperError::OutOfProcessorTime(seconds) => {
            used_up = format!("the reader used more than {} of processor time", counted_seconds(*seconds));
            (ErrorKind::Timeout, used_up.as_str())
        }
        HelperError::Late => (ErrorKind::Timeout, "the reader did not answer in time"),
        HelperError::OutOfMemory => (ErrorKind::TooLarge, "the reader ran out of memory"),
        HelperError::AnswerTooLarge(_) => (ErrorKind::TooLarge, "it is too large"),
        HelperError::Died { .. } => (ErrorKind::UpstreamProtocol, "the reader crashed"),
        HelperError::Input(_) => (ErrorKind::Internal, "its content could not be passed to the reader"),
    };
    if let HelperError::Died { exit, stderr } = &error {
        tracing::warn!(%exit, stderr = stderr.trim_end(), "the process that reads a page of LinkedIn failed");
    }
    ToolFailure::new(kind, format!("the page of LinkedIn could not be read: {reason}")).caused_by(error)
}
