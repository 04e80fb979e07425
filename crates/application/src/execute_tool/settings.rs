//! Limits of every call.

use super::{
    command::ExecuteToolCommand, nesting::NestedCallPosition, output_budget::ResultSizeLimits,
    tool_timeouts::ToolTimeouts,
};
use std::time::Duration;
use toolstead_domain::{Tool, ToolProvider};

/// Limits of every call (`[limits]`, `[audit]`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSettings {
    /// Timeout of calls that request none.
    pub default_timeout: Duration,
    /// Default timeouts of single tools and servers.
    pub timeouts: ToolTimeouts,
    /// Maximum timeout that a call may request.
    pub max_timeout: Duration,
    /// Maximum time for the answer to an approval request, or for the retry with answers to a tool's questions.
    pub approval_timeout: Duration,
    /// Time after the deadline in which a provider may still return partial output: longer than the grace period of a
    /// process.
    pub grace: Duration,
    /// Maximum number of characters of one result that a model receives.
    pub output_characters: usize,
    /// Maximum number of bytes of binary content in one result, as base64.
    pub media_bytes: usize,
    /// Maximum number of stored bytes of one output that exceeds the limits of a result.
    pub stored_output_bytes: usize,
    /// Part of the arguments that the audit log records.
    pub arguments: RecordedArguments,
    /// Publishes events with the arguments and the answer of each call.
    pub tells_details: bool,
    /// Encloses results in tags in dialects that have such tags.
    pub tagged_results: bool,
}

impl Default for CallSettings {
    fn default() -> Self {
        Self {
            default_timeout: Duration::from_secs(120),
            timeouts: ToolTimeouts::default(),
            max_timeout: Duration::from_secs(600),
            approval_timeout: Duration::from_secs(300),
            grace: Duration::from_secs(4),
            output_characters: 30_000,
            media_bytes: 5 << 20,
            stored_output_bytes: 64 << 20,
            arguments: RecordedArguments::Redacted,
            tells_details: false,
            tagged_results: false,
        }
    }
}

impl CallSettings {
    pub(super) fn bounded_output(&self) -> ResultSizeLimits {
        ResultSizeLimits { characters: self.output_characters, media_bytes: self.media_bytes }
    }

    /// Returns the budget of results of the provider's tools.
    pub(super) fn output_budget(&self, provider: &dyn ToolProvider) -> ResultSizeLimits {
        if provider.bounds_output() { self.bounded_output() } else { ResultSizeLimits::WHOLE }
    }

    /// Returns the timeout of a call of the tool that requests `wanted`, or the default for `None`: at most the
    /// configured maximum, that of the views of `command`, and the remaining time of its parent call.
    pub(super) fn time_for(&self, tool: &Tool, wanted: Option<Duration>, command: &ExecuteToolCommand) -> Duration {
        let time = wanted.or_else(|| self.timeouts.of(tool)).unwrap_or(self.default_timeout).min(self.max_timeout);
        let time = command.scope.limits().timeout.map_or(time, |limit| time.min(limit));
        command.parent.as_ref().map_or(time, |nesting| nesting.time(time))
    }

    pub(super) fn grace_for(&self, parent: Option<&NestedCallPosition>) -> Duration {
        parent.map_or(self.grace, |nesting| nesting.grace(self.grace))
    }

    /// Returns the maximum size in bytes of an answer to a request other than a tool call: the larger of the limits for
    /// text and media of one result.
    pub(super) fn answer_bytes(&self) -> usize {
        self.media_bytes.max(self.output_characters.saturating_mul(4))
    }
}

/// Part of the arguments that the audit log records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedArguments {
    /// Everything except apparent secrets. Long texts are shortened.
    Redacted,
    /// Everything.
    Full,
    /// Only the digest.
    None,
}
