//! The tool `batch`: makes several calls in one, concurrently if they cannot interfere with each other.

mod report;

use super::{
    OrchestratingTool,
    definition::{ANYTHING, ToolDefinition},
    example_of,
};
use crate::call_effects::CallEffects;
use async_trait::async_trait;
use futures::{
    future::join_all,
    stream::{FuturesUnordered, StreamExt},
};
use report::{BatchItem, report};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Instant;
use toolstead_domain::{
    CallContext, CallPreview, NestedCall, Tool, ToolCall, ToolFailure, ToolName, ToolResult, error_kind::ErrorKind,
};

pub(super) const NAME: &str = "batch";
/// Maximum number of calls in one batch.
const MAX_CALLS: usize = 25;
/// Maximum number of calls of a batch that run at once.
const AT_ONCE: usize = 8;
/// Estimated number of characters that are added to the result of each call.
const AROUND: usize = 200;
/// Minimum number of characters of each result, however many calls there are.
const LEAST_SHARE: usize = 500;

pub(super) struct BatchTool {
    pub(super) example: &'static str,
}

#[derive(Deserialize)]
struct Input {
    invocations: Vec<Invocation>,
    #[serde(default)]
    fail_fast: bool,
}

#[derive(Deserialize)]
struct Invocation {
    tool_name: String,
    #[serde(default)]
    parameters: Value,
}

impl Invocation {
    fn call(&self, share: usize) -> NestedCall {
        NestedCall::new(&*self.tool_name, self.parameters.clone()).answering_within(share)
    }
}

#[async_trait]
impl OrchestratingTool for BatchTool {
    fn definition(&self) -> Tool {
        let description = format!(
            "Calls several tools at once and gives their results in the order of the calls. Use it for calls that do not \
             need each other's results: it saves a turn for each. Calls that only read, or change different files, run side \
             by side, {AT_ONCE} at once; others run one after another, in their order. Each call is checked, approved \
             and recorded as if it were made alone. All are checked before the first one runs: where a tool is unknown \
             or arguments do not fit, none is run. Batches cannot be nested."
        );
        let invocation = json!({
            "type": "object",
            "required": ["tool_name"],
            "additionalProperties": false,
            "properties": {
                "tool_name": {"type": "string", "maxLength": 256, "description": "The tool, as it would be called alone."},
                "parameters": {"type": "object", "description": "Its arguments."},
            },
        });
        let schema = json!({
            "type": "object",
            "required": ["invocations"],
            "additionalProperties": false,
            "properties": {
                "description": {"type": "string", "description": "What the calls are for, in a few words."},
                "invocations": {
                    "type": "array", "minItems": 1, "maxItems": MAX_CALLS, "items": invocation,
                    "description": format!("The calls, at most {MAX_CALLS}."),
                },
                "fail_fast": {
                    "type": "boolean", "default": false,
                    "description": "Begin no further call once one has failed.",
                },
            },
            "examples": [example_of(self.example)],
        });
        let brief = json!({
            "type": "object",
            "required": ["invocations"],
            "properties": {
                "invocations": {
                    "type": "array", "maxItems": MAX_CALLS,
                    "items": {
                        "type": "object",
                        "required": ["tool_name"],
                        "properties": {"tool_name": {"type": "string"}, "parameters": {"type": "object"}},
                    },
                },
                "fail_fast": {"type": "boolean"},
            },
        });
        let result = json!({
            "type": "object",
            "required": ["results", "success_count", "failure_count"],
            "properties": {
                "results": {
                    "type": "array",
                    "description": "One for each call, in the order of the calls.",
                    "items": {
                        "type": "object",
                        "required": ["index", "tool_name", "is_error", "text"],
                        "properties": {
                            "index": {"type": "integer", "description": "Index of the call, from 0."},
                            "tool_name": {"type": "string"},
                            "is_error": {"type": "boolean"},
                            "error_kind": {"type": "string"},
                            "text": {"type": "string"},
                            "structured": {"type": "object", "description": "The structured result, if it fits."},
                        },
                    },
                },
                "success_count": {"type": "integer"},
                "failure_count": {"type": "integer", "description": "Includes calls that were not run."},
            },
        });
        let mut tool = ToolDefinition {
            name: NAME,
            title: "Batch",
            description: &description,
            input: schema,
            output: Some(result),
            brief: "Calls several tools at once, side by side where they only read or change different files; results \
                    in the order of the calls.",
            brief_input: brief,
            hints: ANYTHING,
        }
        .tool();
        tool.tags = vec!["orchestration".into()];
        tool.keywords = "bulk concurrent multiple parallel simultaneous together";
        tool.passes_references_on = true;
        tool
    }

    fn example(&self) -> &'static str {
        self.example
    }

    async fn run(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<ToolResult, ToolFailure> {
        let Input { invocations, fail_fast } = Input::deserialize(&call.arguments).map_err(|error| {
            ToolFailure::new(ErrorKind::InvalidInput, format!("the arguments cannot be used: {error}"))
        })?;
        let share = (context.output_characters / invocations.len().max(1)).saturating_sub(AROUND).max(LEAST_SHARE);
        let foreseen = preview_calls(call.tool.name(), &invocations, share, context).await?;
        let touches: Vec<CallEffects> = foreseen.iter().map(CallEffects::of).collect();
        let made = make(&invocations, &touches, share, fail_fast, context).await;
        Ok(report(&made, context.output_characters))
    }
}

/// Previews each call.
///
/// # Errors
/// All problems of all calls.
async fn preview_calls(
    own: &ToolName,
    invocations: &[Invocation],
    share: usize,
    context: &CallContext<'_>,
) -> Result<Vec<CallPreview>, ToolFailure> {
    let foreseen = join_all(invocations.iter().map(|one| context.calls.preview(one.call(share)))).await;
    let (mut good, mut problems) = (Vec::with_capacity(invocations.len()), Vec::new());
    for (index, (invocation, foreseen)) in invocations.iter().zip(foreseen).enumerate() {
        let name: String = invocation.tool_name.chars().take(128).collect();
        match foreseen {
            Ok(foreseen) if foreseen.tool.name() == own => {
                problems.push(format!("invocations[{index}] (`{name}`): batches cannot be nested"));
            }
            Ok(foreseen) if foreseen.tool.stands_alone => {
                problems.push(format!("invocations[{index}] (`{name}`): it must be called on its own"));
            }
            Ok(foreseen) => good.push(foreseen),
            Err(failure) => problems.push(format!("invocations[{index}] (`{name}`): {}", failure.text())),
        }
    }
    if problems.is_empty() {
        return Ok(good);
    }
    let message = format!(
        "None of the {} calls was run, since {} cannot be:\n{}\n",
        invocations.len(),
        problems.len(),
        problems.join("\n")
    );
    Err(ToolFailure::new(ErrorKind::InvalidInput, message)
        .next("Correct them and call again.")
        .with_data(json!({"problems": problems})))
}

/// Makes the calls. Each starts once all earlier calls that it could interfere with have ended. Calls that do not
/// start, because of `fail_fast` or the deadline, have a failure as their result.
async fn make(
    invocations: &[Invocation],
    touches: &[CallEffects],
    share: usize,
    fail_fast: bool,
    context: &CallContext<'_>,
) -> Vec<BatchItem> {
    let mut items: Vec<Option<BatchItem>> = invocations.iter().map(|_| None).collect();
    let mut begun = vec![false; invocations.len()];
    let mut running = FuturesUnordered::new();
    let mut stopped: Option<ToolFailure> = None;
    loop {
        if Instant::now() >= context.deadline + context.caller.waited() {
            stopped.get_or_insert_with(|| {
                ToolFailure::new(ErrorKind::Timeout, "Not run: there was no time left. Call it again.")
            });
        }
        for index in 0..invocations.len() {
            let is_free = |(earlier, item): (usize, &Option<BatchItem>)| {
                item.is_some() || !touches[earlier].conflicts_with(&touches[index])
            };
            let may_begin = stopped.is_none() && running.len() < AT_ONCE && !begun[index];
            if may_begin && items.iter().enumerate().take(index).all(is_free) {
                begun[index] = true;
                let call = invocations[index].call(share);
                running.push(async move { (index, context.calls.call(call).await) });
            }
        }
        let Some((index, outcome)) = running.next().await else { break };
        let item = BatchItem::new(index, &invocations[index].tool_name, outcome);
        if fail_fast && item.is_error() && stopped.is_none() {
            let message = format!("Not run: call {index} failed, and `fail_fast` is set.");
            stopped = Some(ToolFailure::new(ErrorKind::Cancelled, message));
        }
        items[index] = Some(item);
    }
    let not_run = || match &stopped {
        Some(why) => ToolFailure::new(why.kind, why.message.clone()),
        None => ToolFailure::new(ErrorKind::Internal, "Not run."),
    };
    let all = items.into_iter().zip(invocations).enumerate();
    all.map(|(index, (item, invocation))| {
        item.unwrap_or_else(|| BatchItem::new(index, &invocation.tool_name, Err(not_run())))
    })
    .collect()
}

#[cfg(test)]
mod tests;
