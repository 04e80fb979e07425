//! Output of programs in the format of clai. An exit code other than 0 is a failure.

use super::{failed, shown};
use crate::builtin::dialects::{
    caller_text::shorten,
    command_output::{CommandOutput, command_remark, time_had, with_remark},
};
use serde_json::Value;
use toolstead_domain::{AdaptedResult, AdapterInput, error_kind::ErrorKind};

/// Returns the result of a command line in clai's format. A timeout or an exit code other than 0 is an error of the
/// tool `name`.
pub(super) fn command(answered: &AdapterInput<'_>, name: &str) -> Option<AdaptedResult> {
    let line = shorten(answered.text_argument("command").unwrap_or_default());
    let error = |error: &str| Some(failed(name, &format!("run freetext command {line:?}: {error}")));
    if let Err(failure) = answered.outcome {
        return match (failure.kind, &failure.partial) {
            (ErrorKind::Timeout, Some(_)) => {
                let given = answered.arguments.get("timeout_seconds").and_then(Value::as_f64).unwrap_or(60.0);
                let seconds = time_had(answered, given * 1000.0) / 1000.0;
                let text =
                    format!("command timed out after {seconds} seconds. Use async_cmd for longer-running commands.");
                error(with_remark(text, command_remark(answered)).trim_end())
            }
            _ => error(&failure.text()),
        };
    }
    let CommandOutput { text, code } = CommandOutput::of(answered);
    match code {
        0 => shown(answered, name, |answered| Some(CommandOutput::of(answered).text)),
        code => error(&format!("exit status {code}, output: {text}")),
    }
}

/// Returns the result of a program that has its own tool `name`, such as `git`. An exit code other than 0 is an error.
pub(super) fn program(answered: &AdapterInput<'_>, name: &str) -> Option<AdaptedResult> {
    let CommandOutput { text, code } = CommandOutput::of(answered);
    match (answered.outcome, code) {
        (Ok(_), code) if code != 0 => {
            Some(failed(name, &format!("failed to run {name}: exit status {code}, output: {text}")))
        }
        _ => shown(answered, name, |answered| Some(CommandOutput::of(answered).text)),
    }
}
