//! The dialect in which a caller receives the answer of a call. It is applied last, after the record is stored: rules,
//! hooks, the record and the budget apply to the tool's own answer.

use super::{command::ExecuteToolCommand, error::ExecuteToolError, hook_words, settings::CallSettings};
use crate::tool_registry::ToolRegistry;
use serde_json::{Map, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use toolstead_domain::{AdaptedResult, AdapterInput, CallOutcome, DialectAdapter, Tool, ToolFailure, ToolResult};

/// Dialect adapter of a tool, with the arguments of one call.
#[derive(Debug)]
pub(crate) struct AppliedDialect {
    adapter: &'static DialectAdapter,
    arguments: Map<String, Value>,
    tagged_results: bool,
    characters: usize,
}

/// Returns the dialect adapter of the tool for this call. Nested calls and requests other than tool calls have none:
/// they receive the tool's own answer. A call of a tool that a view changes has none either, because the view shows its
/// own definition.
pub(super) fn adapter_for(tool: &Tool, command: &ExecuteToolCommand) -> Option<&'static DialectAdapter> {
    let is_from_outside = command.parent.is_none() && command.answered_by.is_none();
    let is_adapted = is_from_outside && command.scope.overlays_of(tool).next().is_none();
    is_adapted.then(|| tool.adapter_for(command.scope.dialect, &command.tool)).flatten()
}

impl AppliedDialect {
    pub(super) fn of(registry: &ToolRegistry, command: &ExecuteToolCommand, settings: &CallSettings) -> Option<Self> {
        let registered = registry.resolve_in(command.scope.dialect, command.scope.tool_named(&command.tool)).ok()?;
        let face = adapter_for(&registered.tool, command)?;
        let arguments = command.arguments.as_object().cloned().unwrap_or_default();
        let CallSettings { tagged_results: in_tags, output_characters: characters, .. } = *settings;
        Some(Self { adapter: face, arguments, tagged_results: in_tags, characters })
    }

    /// Returns the outcome in the format of the dialect, with only the structured content that the adapter returns.
    /// Tasks, questions and cancellations remain unchanged.
    pub(crate) fn apply_to(
        &self,
        outcome: Result<CallOutcome, ExecuteToolError>,
    ) -> Result<CallOutcome, ExecuteToolError> {
        match outcome {
            Ok(CallOutcome::Done(result)) if !result.is_task() => Ok(CallOutcome::Done(self.apply_to_result(result))),
            Err(ExecuteToolError::Refused(failure)) => Err(ExecuteToolError::Refused(self.apply_to_failure(failure))),
            Err(ExecuteToolError::Failed(failure)) => Err(ExecuteToolError::Failed(self.apply_to_failure(failure))),
            other => other,
        }
    }

    fn adapt(&self, outcome: Result<&ToolResult, &ToolFailure>) -> Option<AdaptedResult> {
        let Self { arguments, tagged_results: in_tags, characters, .. } = self;
        let input = AdapterInput { arguments, in_tags: *in_tags, characters: *characters, outcome };
        // The call has ended and is recorded. If the adapter panics, the caller receives the unadapted answer.
        catch_unwind(AssertUnwindSafe(|| (self.adapter.answer)(&input))).unwrap_or_else(|_| {
            tracing::error!("a dialect adapter panicked: the answer is returned unadapted");
            None
        })
    }

    fn apply_to_result(&self, mut result: ToolResult) -> ToolResult {
        // An output that a hook substituted is not an answer of the tool, and is not adapted.
        let said = if result.is_tool_output() { self.adapt(Ok(&result)) } else { None };
        match said {
            Some(AdaptedResult { text, extra_block: beside, is_error, structured }) => {
                let texts = std::iter::once(text).chain(beside).collect();
                result.said_as(texts, is_error, structured)
            }
            None => {
                // The tool list of the dialect announces no structured content, and clients may show it to a model in
                // place of the text.
                result.take_structured_content();
                result
            }
        }
    }

    fn apply_to_failure(&self, mut failure: ToolFailure) -> ToolFailure {
        let said = self.adapt(Err(&failure));
        if let Some(partial) = &mut failure.partial {
            partial.take_structured_content();
        }
        let Some(AdaptedResult { text, extra_block: beside, .. }) = said else { return failure };
        if let Some(beside) = beside {
            failure.partial = Some(Box::new(ToolResult::text(beside)));
        }
        // Only the part of `next` that hooks added is retained.
        let by_hooks = failure.next.take().and_then(|next| hook_words::hook_messages_in(&next).map(str::to_owned));
        failure.next = by_hooks.filter(|words| !text.contains(words));
        failure.message = text;
        failure.stands_first = true;
        failure
    }
}
