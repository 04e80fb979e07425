//! Tools that call other tools, with examples that name existing tools, and the built-in agents.

use crate::app::App;
use std::sync::Arc;
use toolstead_application::{OrchestrationToolExamples, OrchestrationTools, SubagentPorts, ToolSearch};
use toolstead_domain::{AgentDefinition, TaskStarter, ToolSelection};
use toolstead_infrastructure::builtin::aliases_of;

const EXAMPLES: OrchestrationToolExamples = OrchestrationToolExamples {
    batch: r#"{"invocations": [{"tool_name": "current_time", "parameters": {}}, {"tool_name": "glob", "parameters": {"pattern": "*.toml"}}]}"#,
    subagent: r#"{"description": "Find the retries", "prompt": "Find where requests are tried again in this workspace. Name each file with its line, and say what bounds the tries.", "agent": "explore"}"#,
    tool_search: r#"{"query": "create a calendar event"}"#,
    call_tool: r#"{"name": "current_time", "arguments": {"zone": "Europe/Berlin"}}"#,
};

/// Instructions for every built-in agent.
const REPORT: &str = "You were handed one piece of work by another agent, who reads your last message and nothing else of what \
                      you do. Do that work and nothing beside it, without asking back. A call may be refused: the refusal \
                      says why; do not try to get around it. Your last message is the report: what you found or did, with \
                      paths and lines, what is left, and no preamble.";

/// Tools of the built-in agent `explore`. They only read.
const READING: &[&str] = &[
    "current_time",
    "disk_info",
    "file_info",
    "git",
    "glob",
    "grep",
    "list_directory",
    "network_info",
    "read_file",
    "system_info",
    "think",
    "working_directory",
];

/// Returns the provider of the tools that call other tools, for their definitions only. It cannot delegate work.
pub fn orchestration() -> OrchestrationTools {
    OrchestrationTools::new(EXAMPLES, aliases_of, None)
}

/// Returns the provider of the tools that call other tools. It can delegate work to agents of the application.
pub(super) fn orchestration_of(app: &App, tasks: Arc<dyn TaskStarter>, search: ToolSearch) -> OrchestrationTools {
    let agents = SubagentPorts {
        run_agent: app.run_agent.clone(),
        models: Arc::new(app.models.clone()),
        own: own_agents(),
        catalogue: app.agent_files.clone(),
        tasks,
        budgets: app.agent.settings.budgets.clone(),
        compaction: app.agent.compaction(),
        summarizer: app.agent.settings.summarizer.clone(),
    };
    OrchestrationTools::with_search(EXAMPLES, aliases_of, Some(agents), search)
}

/// Returns the built-in agents.
fn own_agents() -> Vec<Arc<AgentDefinition>> {
    let general = AgentDefinition::new(
        "general",
        "Any work that takes several steps, changes of files among them. It has all tools that are offered here.",
        REPORT,
    );
    let mut explore = AgentDefinition::new(
        "explore",
        "Searches and reads, and changes nothing: finds where something is done in code or documents, and how it hangs \
         together.",
        format!(
            "{REPORT} You only read: look widely first, then read what matters, and name what you did not look at."
        ),
    );
    explore.tools = ToolSelection::canonical(READING.iter().copied());
    vec![Arc::new(general), Arc::new(explore)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sections::policy::nameable;
    use serde_json::{Value, json};
    use toolstead_domain::{FormatValidation, ToolInputSchema};

    #[track_caller]
    fn check(alias: &str, given: Value, expected: Value) {
        let orchestration = orchestration();
        let tool = orchestration.definitions().iter().find(|tool| tool.name().as_str() == "subagent").unwrap();
        let alias = tool.aliases.iter().find(|other| other.name == alias).unwrap();
        let mut arguments = given.as_object().unwrap().clone();
        alias.rewrite(&mut arguments).unwrap();
        assert_eq!(Value::Object(arguments), expected);
        ToolInputSchema::compile(tool.input_schema(), FormatValidation::Asserted).unwrap().validate(&expected).unwrap();
    }

    #[test]
    fn subagent_aliases_accept_the_arguments_of_other_systems() {
        let theirs = json!({
            "description": "d", "prompt": "p", "subagent_type": "explore", "model": "inherit", "resume": "x",
            "run_in_background": true, "max_turns": 3,
        });
        let ours = json!({
            "description": "d", "prompt": "p", "model": "inherit", "resume": "x", "max_turns": 3, "agent": "explore",
            "background": true,
        });
        check("Task", theirs.clone(), ours.clone());
        check("Agent", theirs, ours);
        check(
            "subagent",
            json!({"question": "why?", "model_strength": "weak"}),
            json!({"prompt": "why?", "model": "weak"}),
        );
        let args = r#"query --profile reader -model=small "say 'hi'" to \"me\""#;
        check(
            "clai_run",
            json!({"args": args}),
            json!({"agent": "reader", "model": "small", "prompt": "say 'hi' to \"me\"", "background": true}),
        );
        check("clai_run", json!({"args": "tell --model x"}), json!({"prompt": "tell --model x", "background": true}));
    }

    #[test]
    fn a_line_with_an_open_quote_is_refused() {
        let alias = aliases_of("subagent").into_iter().find(|alias| alias.name == "clai_run").unwrap();
        let mut arguments = json!({"args": "query 'hi"}).as_object().unwrap().clone();
        assert_eq!(alias.rewrite(&mut arguments).unwrap_err().message, "`args` has a quote that is not closed");
    }

    #[test]
    fn rules_and_tool_selections_can_name_every_orchestration_tool_and_alias() {
        for tool in orchestration().definitions() {
            let names = std::iter::once(tool.name().as_str()).chain(tool.aliases.iter().map(|alias| alias.name));
            names.for_each(|name| assert!(nameable().contains(&name), "{name}"));
        }
    }
}
