//! Processor time of a thread.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Returns the processor time of this thread. Unlike a clock, it does not advance while other threads run.
pub(crate) fn processor_time() -> Duration {
    // Never negative, so that the conversion cannot fail.
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}
