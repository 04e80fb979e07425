//! The definition of the tool `subagent`.

use super::{MAX_TEXT, NAME};
use crate::orchestration::{
    definition::{ANYTHING, ToolDefinition},
    example_of,
};
use serde_json::json;
use std::sync::Arc;
use toolstead_domain::{AgentDefinition, Tool};

/// Maximum number of agents in the description.
const MAX_LISTED_AGENTS: usize = 32;
/// Maximum length of the description of one agent, in characters.
const MAX_DESCRIPTION_CHARACTERS: usize = 240;

/// Returns the definition, which lists these agents.
pub(super) fn definition(agents: &[Arc<AgentDefinition>], example: &str) -> Tool {
    let known = known(agents);
    let description = format!(
        "Hands work to another agent, which does it in a conversation of its own and answers with a report. Use it for \
         work that takes many calls whose results are not needed afterwards, such as a search through much code. It \
         knows nothing of this conversation: the prompt must say all that it needs, and what to report. Its tools are \
         among those that are offered here, and rules and approvals hold for each of its calls. Several agents work \
         side by side when they are called in one answer. With `background` it runs as a task, which the tools for tasks \
         show, wait for and stop. `resume` continues an earlier agent.{known}"
    );
    let schema = json!({
        "type": "object",
        "required": ["prompt"],
        "additionalProperties": false,
        "properties": {
            "prompt": {"type": "string", "minLength": 1, "description": "The work, with all that the agent must know."},
            "description": {"type": "string", "description": "The work in a few words, for people."},
            "agent": {"type": "string", "description": "The agent. Default: `general`, or the resumed one."},
            "model": {
                "type": "string",
                "description": "`weak`, `strong`, the name of a model, or `inherit`: that of the caller.",
            },
            "background": {"type": "boolean", "default": false, "description": "Run as a task, and do not wait."},
            "max_turns": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "Most answers of its model."},
            "resume": {"type": "string", "description": "The `agent_id` of an earlier call, whose agent continues."},
        },
        "examples": [example_of(example)],
    });
    let brief = json!({
        "type": "object",
        "required": ["prompt"],
        "properties": {
            "prompt": {"type": "string"},
            "description": {"type": "string", "description": "A few words."},
            "agent": {"type": "string"},
            "model": {"type": "string", "description": "weak, strong, inherit or a name."},
            "background": {"type": "boolean"},
            "max_turns": {"type": "integer"},
            "resume": {"type": "string", "description": "An earlier `agent_id`."},
        },
    });
    let result = json!({
        "type": "object",
        "required": ["agent_id", "agent"],
        "properties": {
            "agent_id": {"type": "string", "description": "Value for `resume`: the agent's conversation."},
            "agent": {"type": "string"},
            "task_id": {"type": "string", "description": "The task, if it runs in the background."},
            "outcome": {"type": "string", "description": "How its run ended."},
            "text": {"type": "string", "description": format!("Its last text, at most {MAX_TEXT} characters.")},
            "tool_uses": {"type": "integer"},
            "turns": {"type": "integer"},
            "duration_ms": {"type": "integer"},
            "usage": {
                "type": "object",
                "properties": {
                    "input_tokens": {"type": "integer"},
                    "cache_read_tokens": {"type": "integer"},
                    "cache_write_tokens": {"type": "integer"},
                    "output_tokens": {"type": "integer"},
                    "total_tokens": {"type": "integer"},
                    "cost": {"type": "number", "description": "US dollars, where prices are known."},
                },
            },
            "transcript": {"type": "string", "description": "The conversation with all its events."},
        },
    });
    let mut tool = ToolDefinition {
        name: NAME,
        title: "Hand work to an agent",
        description: &description,
        input: schema,
        output: Some(result),
        brief: &format!(
            "Hands work to another agent with a conversation of its own, which answers with a report. The prompt must say all \
             that it needs. Called several times in one answer they work side by side.{known}"
        ),
        brief_input: brief,
            hints: ANYTHING,
    }
    .tool();
    tool.tags = vec!["agent".into(), "orchestration".into()];
    tool.keywords = "assistant delegate helper investigate worker";
    tool
}

/// Returns the agents, one per line.
fn known(agents: &[Arc<AgentDefinition>]) -> String {
    let mut text = String::new();
    for agent in agents.iter().take(MAX_LISTED_AGENTS) {
        let words = agent.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let summary: String = words.chars().take(MAX_DESCRIPTION_CHARACTERS).collect();
        let rest = if summary.len() < words.len() { "…" } else { "" };
        text.push_str(&format!("\n- {}: {summary}{rest}", agent.name));
    }
    match text.is_empty() {
        true => text,
        false => format!("\nAgents:{text}"),
    }
}
