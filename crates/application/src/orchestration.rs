//! The tools that find and call other tools. They only use [`Calls`](toolstead_domain::ports::calls::Calls), so each of
//! their calls takes the whole call path.

mod batch;
mod call_tool;
mod definition;
mod subagent;
mod tool_search;

use crate::tool_search::ToolSearch;
use async_trait::async_trait;
use batch::BatchTool;
use call_tool::CallTool;
use serde_json::Value;
use std::time::Duration;
pub use subagent::SubagentPorts;
use subagent::SubagentTool;
use tool_search::ToolSearchTool;
use toolstead_domain::{
    Access, Alias, CallContext, CallOutcome, ProviderListError, Tool, ToolCall, ToolFailure, ToolProvider, ToolResult,
    error_kind::ErrorKind, tool::ORCHESTRATION,
};

/// Names of the tools that find and call other tools.
pub const NAMES: &[&str] = &[batch::NAME, subagent::NAME, tool_search::NAME, call_tool::NAME];

/// Arguments of typical calls, as JSON text, for the documentation and for models. They name other tools, which are
/// unknown in this crate.
#[derive(Debug, Clone, Copy)]
pub struct OrchestrationToolExamples {
    /// Arguments of `batch`.
    pub batch: &'static str,
    /// Arguments of `subagent`.
    pub subagent: &'static str,
    /// Arguments of `tool_search`.
    pub tool_search: &'static str,
    /// Arguments of `call_tool`.
    pub call_tool: &'static str,
}

/// A tool that finds or calls other tools.
#[async_trait]
trait OrchestratingTool: Send + Sync {
    /// Returns the definition of the tool.
    fn definition(&self) -> Tool;

    /// Returns the arguments of a typical call, as JSON text.
    fn example(&self) -> &'static str;

    /// Returns the accesses of a call itself. The nested calls are checked separately.
    ///
    /// # Errors
    /// [`ToolFailure`] if the arguments name something unknown.
    async fn accesses(&self, call: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        let _ = call;
        Ok(Vec::new())
    }

    /// Runs a call.
    async fn run(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<ToolResult, ToolFailure>;
}

/// Creates the tools that find and call other tools, in the order of [`NAMES`].
fn all(
    examples: OrchestrationToolExamples,
    agents: Option<SubagentPorts>,
    search: ToolSearch,
) -> Vec<Box<dyn OrchestratingTool>> {
    vec![
        Box::new(BatchTool { example: examples.batch }),
        Box::new(SubagentTool::new(examples.subagent, agents)),
        Box::new(ToolSearchTool { example: examples.tool_search, search }),
        Box::new(CallTool { example: examples.call_tool }),
    ]
}

/// The tools that call other tools, as one provider.
pub struct OrchestrationTools {
    tools: Vec<Box<dyn OrchestratingTool>>,
    definitions: Vec<Tool>,
}

impl std::fmt::Debug for OrchestrationTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.definitions.iter().map(Tool::name)).finish()
    }
}

impl OrchestrationTools {
    /// Creates the provider, with these examples in its definitions. `aliases` returns the aliases of a tool. Without
    /// agents, no work can be delegated.
    pub fn new(
        examples: OrchestrationToolExamples,
        aliases: impl Fn(&str) -> Vec<Alias>,
        agents: Option<SubagentPorts>,
    ) -> Self {
        Self::with_search(examples, aliases, agents, ToolSearch::default())
    }

    /// Creates the provider like [`new`](Self::new); `tool_search` finds tools with `search`.
    pub fn with_search(
        examples: OrchestrationToolExamples,
        aliases: impl Fn(&str) -> Vec<Alias>,
        agents: Option<SubagentPorts>,
        search: ToolSearch,
    ) -> Self {
        let tools = all(examples, agents, search);
        let definitions = tools.iter().map(|tool| {
            let mut definition = tool.definition();
            definition.aliases = aliases(definition.name().as_str());
            definition
        });
        let definitions = definitions.collect();
        Self { tools, definitions }
    }

    /// Also advertises the output schemas of the tools.
    #[must_use]
    pub fn with_output_schemas(mut self) -> Self {
        for tool in &mut self.definitions {
            if let Some(schema) = tool.output_schema().cloned() {
                let mut advertised = tool.advertised().clone();
                advertised.insert("outputSchema".into(), schema);
                *tool = tool.clone().advertised_as(advertised);
            }
        }
        self
    }

    /// Returns the definitions of the tools, in the order of [`NAMES`].
    pub fn definitions(&self) -> &[Tool] {
        &self.definitions
    }

    /// Returns the arguments of a typical call of a tool, as JSON text; `None` for an unknown tool.
    pub fn example(&self, tool: &str) -> Option<&'static str> {
        self.tool(tool).map(|tool| tool.example())
    }

    fn tool(&self, name: &str) -> Option<&dyn OrchestratingTool> {
        let at = self.definitions.iter().position(|tool| tool.name().as_str() == name)?;
        self.tools.get(at).map(|tool| &**tool)
    }
}

#[async_trait]
impl ToolProvider for OrchestrationTools {
    fn name(&self) -> &str {
        ORCHESTRATION
    }

    async fn list(&self) -> Result<Vec<Tool>, ProviderListError> {
        Ok(self.definitions.clone())
    }

    async fn accesses(&self, call: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        match self.tool(call.tool.name().as_str()) {
            Some(tool) => tool.accesses(call).await,
            None => Ok(Vec::new()),
        }
    }

    /// Requests no time limit: the nested calls have limits of their own.
    fn requested_time(&self, _: &ToolCall) -> Option<Duration> {
        Some(Duration::MAX)
    }

    async fn call(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
        let name = call.tool.name();
        let tool = self.tool(name.as_str());
        let tool =
            tool.ok_or_else(|| ToolFailure::new(ErrorKind::NotFound, format!("there is no tool `{name}` here")))?;
        tool.run(call, context).await.map(CallOutcome::Done)
    }
}

/// Returns the example as a value, for a schema.
fn example_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
