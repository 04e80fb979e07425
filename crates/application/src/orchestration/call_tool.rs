//! The tool `call_tool`: calls a tool that is not in the caller's list.
//!
//! The call is nested, so it is validated, decided and recorded as a call of the tool itself.

use super::{
    OrchestratingTool,
    definition::{ANYTHING, ToolDefinition},
    example_of,
};
use crate::tool_deferral::SEARCH_TOOLS;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use toolstead_domain::{CallContext, NestedCall, Tool, ToolCall, ToolFailure, ToolResult, error_kind::ErrorKind};

pub(super) const NAME: &str = SEARCH_TOOLS[1];

pub(super) struct CallTool {
    pub(super) example: &'static str,
}

#[derive(Deserialize)]
struct Input {
    name: String,
    #[serde(default)]
    arguments: Value,
}

#[async_trait]
impl OrchestratingTool for CallTool {
    fn definition(&self) -> Tool {
        let schema = |described: bool| {
            let mut schema = json!({
                "type": "object",
                "required": ["name"],
                "additionalProperties": false,
                "properties": {
                    "name": {"type": "string", "minLength": 1, "maxLength": 256, "description": "The name of the tool."},
                    "arguments": {"type": "object", "description": "Its arguments, as its `inputSchema` defines them."},
                },
                "examples": [example_of(self.example)],
            });
            if !described {
                schema = json!({
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
                });
            }
            schema
        };
        let mut tool = ToolDefinition {
            name: NAME,
            title: "Call a tool",
            description: "Calls a tool that is not in the list of tools, with the name and the arguments of the \
                          definition that `tool_search` returned, and returns its result. The call is validated, \
                          approved and recorded like any call of that tool.",
            input: schema(true),
            output: None,
            brief: "Calls a tool that `tool_search` found, and returns its result.",
            brief_input: schema(false),
            hints: ANYTHING,
        }
        .tool();
        tool.tags = vec!["orchestration".into()];
        tool.passes_references_on = true;
        // A batch can call the other tool directly.
        tool.stands_alone = true;
        tool
    }

    fn example(&self) -> &'static str {
        self.example
    }

    async fn run(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<ToolResult, ToolFailure> {
        let Input { name, arguments } = Input::deserialize(&call.arguments).map_err(|error| {
            ToolFailure::new(ErrorKind::InvalidInput, format!("the arguments cannot be used: {error}"))
        })?;
        if SEARCH_TOOLS.contains(&name.as_str()) {
            let message = format!("`{name}` cannot be called by `{NAME}`");
            return Err(ToolFailure::new(ErrorKind::InvalidInput, message).next("Call it directly."));
        }
        let nested = NestedCall::new(name, arguments).answering_within(context.output_characters);
        context.calls.call(nested).await.map_err(|failure| {
            let is_known = !failure.message.starts_with("Unknown tool: ");
            let has_suggestion = failure.next.as_ref().is_some_and(|next| next.starts_with("Did you mean"));
            if is_known || has_suggestion {
                failure
            } else {
                failure.next("Find the name of the tool with `tool_search`.")
            }
        })
    }
}
