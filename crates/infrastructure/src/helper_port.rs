//! The port for processing untrusted bytes, such as parsing a page. A helper process does the work, never this one.
//!
//! With the feature `sandbox` the adapter is `sandbox::helper::HelperLauncher`, which starts confined processes. A program
//! without it passes [`NoHelpers`], which refuses all work, or an adapter of its own.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use std::{
    fmt,
    io::{self, Read},
    time::{Duration, Instant},
};

/// Runs helpers.
#[async_trait]
pub trait HelperPort: fmt::Debug + Send + Sync {
    /// Starts a helper, sends it the order and the input, and returns its answer. The helper has ended when this
    /// returns, and when this future is dropped.
    ///
    /// # Errors
    /// [`HelperError`]. An implementation never does the work in this process instead.
    async fn call(&self, call: HelperCall) -> Result<Vec<u8>, HelperError>;
}

/// Minimum wall-clock backstop of a helper.
const MIN_BACKSTOP: Duration = Duration::from_secs(60);
/// Wall-clock backstop, as a multiple of the processor time.
const BACKSTOP_FACTOR: u32 = 20;

/// Limits of a helper process.
///
/// A helper that blocks without using the processor is ended by a wall-clock backstop of 20 times
/// [`seconds`](Self::seconds), and at least one minute. A busy machine does not reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelperLimits {
    /// Maximum processor time, in seconds.
    pub seconds: u64,
    /// Maximum address space, in bytes.
    pub memory_bytes: u64,
}

impl HelperLimits {
    /// Returns the wall-clock time after which the helper is ended.
    pub fn backstop(self) -> Duration {
        Duration::from_secs(self.seconds).saturating_mul(BACKSTOP_FACTOR).max(MIN_BACKSTOP)
    }
}

/// One request to a helper.
pub struct HelperCall {
    /// Name of the helper, such as `web::page::HELPER`.
    pub name: &'static str,
    /// Order as JSON that the helper understands.
    pub order: Box<RawValue>,
    /// Bytes to process, from the current position of the reader.
    pub input: Box<dyn Read + Send>,
    /// Maximum number of input bytes. The rest is not sent.
    pub input_bytes: u64,
    /// Maximum size of the answer, in bytes.
    pub answer_bytes: u64,
    /// Limits of the process.
    pub bounds: HelperLimits,
    /// Deadline of the call that needs the helper. `None` if the caller drops the future at that time.
    pub deadline: Option<Instant>,
}

impl HelperCall {
    /// Returns an order as JSON.
    ///
    /// # Errors
    /// [`HelperError::NotStarted`] if the order cannot be serialized.
    pub fn order_of(order: &impl Serialize) -> Result<Box<RawValue>, HelperError> {
        to_raw_value(order).map_err(|error| HelperError::NotStarted(error.to_string()))
    }
}

impl fmt::Debug for HelperCall {
    /// Omits the input, which may hold anything.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HelperCall").field("name", &self.name).field("bounds", &self.bounds).finish_non_exhaustive()
    }
}

/// Failure of a helper call.
#[derive(Debug, thiserror::Error)]
pub enum HelperError {
    /// The program has no helpers ([`NoHelpers`]).
    #[error("this program has no helper processes: build `toolstead-infrastructure` with the feature `sandbox`")]
    NoSandbox,
    /// `main` of the program does not begin with `enter_if_helper()`.
    #[error("this program cannot start itself as a helper, because its `main` does not begin with `enter_if_helper()`")]
    NoDoor,
    /// The process did not start, or is not a helper.
    #[error("the helper did not start: {0}")]
    NotStarted(String),
    /// The helper used up its processor time. The value is the limit in seconds.
    #[error("the helper used more than {} of processor time", counted_seconds(*.0))]
    OutOfProcessorTime(u64),
    /// The helper did not answer before the backstop or the end of the call.
    #[error("the helper did not answer in time")]
    Late,
    /// The helper reached its memory limit.
    #[error("the helper ran out of memory")]
    OutOfMemory,
    /// The answer is longer than the limit. The value is the limit in bytes.
    #[error("the answer of the helper is larger than {0} bytes")]
    AnswerTooLarge(u64),
    /// The helper ended before it answered.
    #[error("the helper failed: {exit}")]
    Died {
        /// Exit status of the process, as text.
        exit: String,
        /// Last part of its standard error, for the operator.
        stderr: String,
    },
    /// The input could not be read.
    #[error("the input could not be read")]
    Input(#[source] io::Error),
}

/// Returns a number of seconds with its noun: `1 second`, `2 seconds`.
pub(crate) fn counted_seconds(seconds: u64) -> String {
    format!("{seconds} second{}", if seconds == 1 { "" } else { "s" })
}

/// Refuses all work, for programs that are built without the feature `sandbox`.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHelpers;

#[async_trait]
impl HelperPort for NoHelpers {
    async fn call(&self, _: HelperCall) -> Result<Vec<u8>, HelperError> {
        Err(HelperError::NoSandbox)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backstop_is_twenty_times_the_processor_time_and_at_least_a_minute() {
        for (seconds, backstop) in [(1, 60), (3, 60), (10, 200), (60, 1_200)] {
            let bounds = HelperLimits { seconds, memory_bytes: 0 };
            assert_eq!(bounds.backstop(), Duration::from_secs(backstop), "{seconds}");
        }
    }
}
