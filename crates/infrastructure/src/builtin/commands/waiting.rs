//! Waiting for a command: until it ends, with what it prints told on the way.

use crate::builtin::{
    commands::command::{self, Command, End},
    text::plain_text::PlainText,
};
use regex::{Regex, RegexBuilder};
use std::{
    future::Future,
    time::{Duration, Instant},
};
use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until};
use toolstead_domain::{
    error_kind::ErrorKind,
    ports::caller::{Caller, Progress},
    tool_failure::ToolFailure,
};

/// A call that waits for a task ends so long after its own time at the latest.
pub(crate) const SLACK: Duration = Duration::from_secs(5);
/// Output is told on the way at most so often, and so much of it at once.
const BETWEEN_PROGRESS: Duration = Duration::from_secs(1);
const PROGRESS_BYTES: usize = 4 << 10;
/// How long a command has to end by itself when its caller wants no more of it.
const TIME_TO_HEED: Duration = Duration::from_millis(200);
/// Longer than this no command stands still for answers, all of them together: each may take a day at most
/// (`approval_timeout`), and a program can ask for the next one before it has the last.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// A regular expression for lines; its time is linear in the line.
pub(crate) fn pattern(text: &str) -> Result<Regex, ToolFailure> {
    let built = RegexBuilder::new(text).size_limit(1 << 20).dfa_size_limit(1 << 20).build();
    built.map_err(|error| {
        ToolFailure::new(ErrorKind::InvalidInput, format!("the regular expression cannot be used: {error}"))
            .next("The syntax is that of Rust's `regex`: no look-around and no back-references.")
    })
}

/// Waits for the end, which comes soon once the caller wants no more than what there is.
pub(crate) async fn ended_in_time(command: &Command, caller: &dyn Caller) -> End {
    let end = told_on_the_way(command, command.ended(), caller);
    tokio::pin!(end);
    tokio::select! {
        end = &mut end => return end,
        () = caller.hurried() => command.stop(),
    }
    tokio::select! {
        end = &mut end => return end,
        () = sleep(TIME_TO_HEED) => command.kill(),
    }
    end.await
}

/// The same for a command that has as much time as its call: what that waits for answers to its calls is no time of it.
pub(crate) async fn ended_by(command: &Command, caller: &dyn Caller, deadline: Instant) -> End {
    let before = caller.waited();
    let at = || later_by(deadline, caller.waited().saturating_sub(before));
    let end = ended_in_time(command, caller);
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

/// The end of the time of a command whose call has waited so long for answers.
fn later_by(deadline: Instant, waited: Duration) -> Instant {
    deadline + waited.min(LONGEST_WAIT)
}

/// Waits, and tells the client meanwhile what the command prints.
pub(crate) async fn told_on_the_way(command: &Command, ended: impl Future<Output = End>, caller: &dyn Caller) -> End {
    let mut ticks = interval(BETWEEN_PROGRESS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = 0;
    tokio::pin!(ended);
    loop {
        tokio::select! {
            end = &mut ended => return end,
            _ = ticks.tick() => {
                let total = command.capture.total();
                if total == told || !caller.wants_progress() {
                    continue;
                }
                // The newest: a client that is behind wants to know where the command is.
                let from = told.max(total.saturating_sub(PROGRESS_BYTES as u64));
                if let Ok((_, bytes)) = command::read(&command.capture, from, PROGRESS_BYTES).await {
                    let message = Some(PlainText::of(&bytes));
                    caller.progress(Progress { message, ..Progress::at(total as f64) });
                }
                told = total;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_stands_still_while_somebody_is_asked_and_not_for_ever() {
        let deadline = Instant::now();
        let hour = Duration::from_secs(60 * 60);
        assert_eq!(later_by(deadline, hour), deadline + hour);
        assert_eq!(later_by(deadline, 1000 * hour), deadline + 24 * hour);
        assert_eq!(later_by(deadline, Duration::MAX), deadline + 24 * hour);
    }
}
