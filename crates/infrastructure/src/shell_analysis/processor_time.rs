//! The processor time of a thread.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Returns the processor time of this thread. Unlike the clock, it does not advance while other programs run.
pub(crate) fn processor_time() -> Duration {
    // Never negative, so that the conversion cannot fail.
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}
