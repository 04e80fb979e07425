//! The tools that call other tools, with examples that name tools there are, and the agents that are our own.

use crate::{app::App, config::Config};
use std::sync::Arc;
use toolstead_application::orchestration::{Agents, Examples, Orchestration};
use toolstead_domain::{
    agent::definition::AgentDefinition,
    ports::{agent_catalogue::AgentCatalogue, tasks::Tasks},
    tool_selection::ToolSelection,
};
use toolstead_infrastructure::builtin::aliases_of;

const EXAMPLES: Examples = Examples {
    batch: r#"{"invocations": [{"tool_name": "current_time", "parameters": {}}, {"tool_name": "glob", "parameters": {"pattern": "*.toml"}}]}"#,
    subagent: r#"{"description": "Find the retries", "prompt": "Find where requests are tried again in this workspace. Name each file with its line, and say what bounds the tries.", "agent": "explore"}"#,
};

/// What every agent of ours is told.
const REPORT: &str = "You were handed one piece of work by another agent, who reads your last message and nothing else of what \
                      you do. Do that work and nothing beside it, without asking back. A call may be refused: the refusal \
                      says why; do not try to get around it. Your last message is the report: what you found or did, with \
                      paths and lines, what is left, and no preamble.";

/// Tools that change nothing.
const READING: &[&str] = &[
    "current_time", "disk_info", "file_info", "git", "glob", "grep", "list_directory", "network_info", "read_file",
    "system_info", "think", "working_directory",
];

/// The provider of these tools, for their definitions. Nobody can be handed work by it.
pub fn orchestration() -> Orchestration {
    Orchestration::new(EXAMPLES, aliases_of, None)
}

/// The provider of these tools.
pub(super) fn orchestration_of(
    app: &App,
    config: &Config,
    catalogue: Arc<dyn AgentCatalogue>,
    tasks: Arc<dyn Tasks>,
) -> Orchestration {
    let agents = Agents {
        run_agent: app.run_agent.clone(),
        models: Arc::new(app.models.clone()),
        own: own_agents(),
        catalogue,
        tasks,
        budgets: app.agent.settings.budgets.clone(),
        compaction: app.agent.compaction(),
        summarizer: app.agent.settings.summarizer.clone(),
        surroundings: format!(
            "Your workspace is the folder {}: relative paths begin there.",
            config.workspace().display()
        ),
    };
    Orchestration::new(EXAMPLES, aliases_of, Some(agents))
}

/// Our own agents.
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
        format!("{REPORT} You only read: look widely first, then read what matters, and name what you did not look at."),
    );
    explore.tools = ToolSelection::canonical(READING.iter().copied());
    vec![Arc::new(general), Arc::new(explore)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::policy::nameable;

    #[test]
    fn rules_and_the_choice_of_tools_may_name_each_of_them() {
        for tool in orchestration().definitions() {
            let names = std::iter::once(tool.name().as_str()).chain(tool.aliases.iter().map(|alias| alias.name));
            names.for_each(|name| assert!(nameable().contains(&name), "{name}"));
        }
    }
}
