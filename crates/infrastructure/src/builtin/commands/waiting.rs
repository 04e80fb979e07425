//! Waits for a command, and reports its output as progress meanwhile.

use crate::builtin::{
    commands::command::{self, CommandEnd, CommandHandle},
    text::plain_text::ControlSequenceFilter,
};
use regex::{Regex, RegexBuilder};
use std::{
    future::Future,
    time::{Duration, Instant},
};
use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until};
use toolstead_domain::{Caller, Progress, ToolFailure, error_kind::ErrorKind};

/// Maximum time by which a call that waits for a task may exceed its own timeout.
pub(crate) const SLACK: Duration = Duration::from_secs(5);
/// Minimum interval between progress notifications, and maximum number of bytes in each.
const BETWEEN_PROGRESS: Duration = Duration::from_secs(1);
const PROGRESS_BYTES: usize = 4 << 10;
/// Time for a command to end by itself after its caller has cancelled.
const CANCEL_GRACE: Duration = Duration::from_millis(200);
/// Maximum total time that a command waits for answers. Each answer may take a day at most (`approval_timeout`), and a
/// program can request the next one before it has the previous one.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Compiles a regular expression for lines; matching takes time linear in the line.
pub(crate) fn pattern(text: &str) -> Result<Regex, ToolFailure> {
    let built = RegexBuilder::new(text).size_limit(1 << 20).dfa_size_limit(1 << 20).build();
    built.map_err(|error| {
        ToolFailure::new(ErrorKind::InvalidInput, format!("the regular expression cannot be used: {error}"))
            .next("The syntax is that of Rust's `regex`, without look-around and back-references.")
    })
}

/// Waits for the end of a command, and sends its output as progress. Once the caller has cancelled, stops the command,
/// and kills it if it does not end soon.
pub(crate) async fn wait_for_end(command: &CommandHandle, caller: &dyn Caller) -> CommandEnd {
    let end = wait_with_progress(command, command.ended(), caller);
    tokio::pin!(end);
    tokio::select! {
        end = &mut end => return end,
        () = caller.hurried() => command.stop(),
    }
    tokio::select! {
        end = &mut end => return end,
        () = sleep(CANCEL_GRACE) => command.kill(),
    }
    end.await
}

/// Waits for the end of a command that shares the deadline of its call, and times it out at the deadline. Time in which
/// the call waits for answers does not count.
pub(crate) async fn wait_until_deadline(command: &CommandHandle, caller: &dyn Caller, deadline: Instant) -> CommandEnd {
    let before = caller.waited();
    let at = || later_by(deadline, caller.waited().saturating_sub(before));
    let end = wait_for_end(command, caller);
    tokio::pin!(end);
    while Instant::now() < at() {
        tokio::select! {
            end = &mut end => return end,
            () = sleep_until(at().into()) => {}
        }
    }
    command.time_out();
    end.await
}

/// Returns the deadline, extended by the time that the call has waited for answers.
fn later_by(deadline: Instant, waited: Duration) -> Instant {
    deadline + waited.min(LONGEST_WAIT)
}

/// Waits for `ended`, and sends the output to the client as progress meanwhile.
pub(crate) async fn wait_with_progress(
    command: &CommandHandle,
    ended: impl Future<Output = CommandEnd>,
    caller: &dyn Caller,
) -> CommandEnd {
    let mut ticks = interval(BETWEEN_PROGRESS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut reported = 0;
    tokio::pin!(ended);
    loop {
        tokio::select! {
            end = &mut ended => return end,
            _ = ticks.tick() => {
                let total = command.capture.total();
                if total == reported || !caller.wants_progress() {
                    continue;
                }
                // The newest output: a client that is behind needs the current state.
                let from = reported.max(total.saturating_sub(PROGRESS_BYTES as u64));
                if let Ok((_, bytes)) = command::read(&command.capture, from, PROGRESS_BYTES).await {
                    let message = Some(ControlSequenceFilter::of(&bytes));
                    caller.progress(Progress { message, ..Progress::at(total as f64) });
                }
                reported = total;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_approvals_extends_a_deadline_by_at_most_one_day() {
        let deadline = Instant::now();
        let hour = Duration::from_secs(60 * 60);
        assert_eq!(later_by(deadline, hour), deadline + hour);
        assert_eq!(later_by(deadline, 1000 * hour), deadline + 24 * hour);
        assert_eq!(later_by(deadline, Duration::MAX), deadline + 24 * hour);
    }
}
