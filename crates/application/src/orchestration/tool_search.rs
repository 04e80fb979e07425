//! The tool `tool_search`: finds tools that are not in the caller's list, and returns their definitions.

use super::{OrchestratingTool, call_tool, definition::ToolDefinition, example_of};
use crate::{
    tool_deferral::{SEARCH_TOOLS, is_search_tool},
    tool_search::{ToolMatches, ToolSearch},
};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc};
use toolstead_domain::{CallContext, Tool, ToolAnnotations, ToolCall, ToolFailure, ToolResult, error_kind::ErrorKind};

pub(super) const NAME: &str = SEARCH_TOOLS[0];
/// Default number of definitions.
const DEFAULT_LIMIT: usize = 5;
/// Maximum number of definitions.
const MAX_LIMIT: usize = 20;
/// Maximum number of further matching tools that a result names without their definitions.
const MAX_FURTHER: usize = 15;
/// Number of characters of a result that are reserved for text beside the definitions.
const RESERVED: usize = 2_000;

pub(super) struct ToolSearchTool {
    pub(super) example: &'static str,
    pub(super) search: ToolSearch,
}

#[derive(Deserialize)]
struct Input {
    query: String,
    limit: Option<usize>,
}

#[async_trait]
impl OrchestratingTool for ToolSearchTool {
    fn definition(&self) -> Tool {
        let schema = json!({
            "type": "object",
            "required": ["query"],
            "additionalProperties": false,
            "properties": {
                "query": {
                    "type": "string", "minLength": 1, "maxLength": 1000,
                    "description": "What the tool must do, in a few words, or its name. `+word` must occur in its definition.",
                },
                "limit": {
                    "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT,
                    "description": "Maximum number of definitions.",
                },
            },
            "examples": [example_of(self.example)],
        });
        let brief = json!({
            "type": "object",
            "required": ["query"],
            "properties": {
                "query": {"type": "string", "description": "Words of the task, or a name; `+word` must occur."},
                "limit": {"type": "integer"},
            },
        });
        let result = json!({
            "type": "object",
            "required": ["tools", "further"],
            "properties": {
                "tools": {
                    "type": "array",
                    "description": "Definitions, best first.",
                    "items": {
                        "type": "object",
                        "required": ["name", "description", "inputSchema"],
                        "properties": {
                            "name": {"type": "string"},
                            "description": {"type": "string"},
                            "inputSchema": {"type": "object"},
                        },
                    },
                },
                "further": {
                    "type": "array", "items": {"type": "string"},
                    "description": "Names of further tools that match, best first.",
                },
                "note": {"type": "string", "description": "Reason why the search is worse than usual."},
            },
        });
        let mut tool = ToolDefinition {
            name: NAME,
            title: "Search tools",
            description: "Finds tools that are not in the list of tools, and returns their complete definitions, best \
                          first. Use it before you conclude that no tool can do something. Call a tool that it found \
                          with `call_tool`. Only tools that may be called are found.",
            input: schema,
            output: Some(result),
            brief: "Most tools are not listed: finds them by what they do, and returns their definitions. Then use \
                    `call_tool`.",
            brief_input: brief,
            hints: ToolAnnotations::READ_ONLY,
        }
        .tool();
        tool.tags = vec!["orchestration".into()];
        tool
    }

    fn example(&self) -> &'static str {
        self.example
    }

    async fn run(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<ToolResult, ToolFailure> {
        let Input { query, limit } = Input::deserialize(&call.arguments).map_err(|error| {
            ToolFailure::new(ErrorKind::InvalidInput, format!("the arguments cannot be used: {error}"))
        })?;
        let limit = limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let mut tools = context.calls.list();
        tools.retain(|tool| !is_search_tool(tool));
        let found = self.search.search(&query, &tools).await;
        Ok(match found.tools.is_empty() {
            true => no_match(&tools, found.note),
            false => result(&found, limit, context.output_characters),
        })
    }
}

/// Returns the definitions that fit the limits, and the names of further tools.
fn result(found: &ToolMatches, limit: usize, characters: usize) -> ToolResult {
    let mut left = characters.saturating_sub(RESERVED);
    let mut definitions: Vec<Value> = Vec::new();
    for tool in found.tools.iter().take(limit) {
        let definition = definition_of(tool);
        let length = definition.to_string().len();
        // The best tool is always included: the call path stores what exceeds the limit.
        if !definitions.is_empty() && length > left {
            break;
        }
        left = left.saturating_sub(length);
        definitions.push(definition);
    }
    let further = found.tools.iter().skip(definitions.len()).take(MAX_FURTHER);
    let further: Vec<&str> = further.map(|tool| tool.name().as_str()).collect();
    let lines = definitions.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let mut text = format!("Call one with `{}`.\n{lines}", call_tool::NAME);
    if !further.is_empty() {
        text.push_str(&format!("\nFurther tools: {}", further.join(", ")));
    }
    let content = json!({"tools": definitions, "further": further});
    with_note(text, content, found.note.as_deref())
}

/// Returns the result of a search without a match. It lists the servers with their numbers of tools, so that the model
/// can choose other words.
fn no_match(tools: &[Arc<Tool>], note: Option<String>) -> ToolResult {
    let mut origins: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in tools {
        *origins.entry(tool.server().map_or("built-in", |server| server.as_str())).or_default() += 1;
    }
    let origins: Vec<String> = origins.iter().map(|(origin, count)| format!("{origin} ({count})")).collect();
    let text =
        format!("No tool matches. Use other words, and fewer with `+`. Tools by origin: {}.", origins.join(", "));
    with_note(text, json!({"tools": [], "further": []}), note.as_deref())
}

fn with_note(mut text: String, mut content: Value, note: Option<&str>) -> ToolResult {
    if let Some(note) = note {
        let note = format!("Ranked by words alone, since the embeddings failed: {note}.");
        text.push_str(&format!("\n{note}"));
        content["note"] = note.into();
    }
    ToolResult::text(text).with_structured_content(content)
}

/// Returns the definition as lists show it, reduced to the members that models read.
fn definition_of(tool: &Tool) -> Value {
    let advertised = tool.advertised();
    let mut definition = Map::new();
    definition.insert("name".into(), tool.name().as_str().into());
    definition.insert("description".into(), advertised.get("description").cloned().unwrap_or_else(|| "".into()));
    let schema = advertised.get("inputSchema").filter(|schema| schema.is_object()).cloned();
    definition.insert("inputSchema".into(), schema.unwrap_or_else(|| json!({"type": "object"})));
    Value::Object(definition)
}
