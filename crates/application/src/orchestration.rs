//! The tools that call other tools. They stand on [`Calls`](toolstead_domain::ports::calls::Calls) alone: each call that
//! they make takes the whole path, and they touch nothing of their own.

mod batch;

use async_trait::async_trait;
use batch::Batch;
use serde_json::Value;
use std::time::Duration;
use toolstead_domain::{
    access::Access,
    error_kind::ErrorKind,
    ports::tool_provider::{CallContext, CallOutcome, ProviderError, ToolProvider},
    tool::{ORCHESTRATION, Tool},
    tool_call::ToolCall,
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// What they are called.
pub const NAMES: &[&str] = &[batch::NAME];

/// Arguments of typical calls, as JSON text, for the documentation and for models. They name tools, which nothing here
/// does.
#[derive(Debug, Clone, Copy)]
pub struct Examples {
    /// Of `batch`.
    pub batch: &'static str,
}

/// A tool that calls others.
#[async_trait]
trait OrchestratingTool: Send + Sync {
    /// Its definition.
    fn definition(&self) -> Tool;

    /// Arguments of a typical call, as JSON text.
    fn example(&self) -> &'static str;

    /// Does it.
    async fn run(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<ToolResult, ToolFailure>;
}

/// Every tool.
fn all(examples: Examples) -> Vec<Box<dyn OrchestratingTool>> {
    vec![Box::new(Batch { example: examples.batch })]
}

/// The tools that call other tools, as one provider.
pub struct Orchestration {
    tools: Vec<Box<dyn OrchestratingTool>>,
    definitions: Vec<Tool>,
}

impl std::fmt::Debug for Orchestration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.definitions.iter().map(Tool::name)).finish()
    }
}

impl Orchestration {
    /// The provider, with these examples in its definitions.
    pub fn new(examples: Examples) -> Self {
        let tools = all(examples);
        let definitions = tools.iter().map(|tool| tool.definition()).collect();
        Self { tools, definitions }
    }

    /// Advertises also the schemas of the tools' results.
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

    /// The tools' definitions, in the order of the list.
    pub fn definitions(&self) -> &[Tool] {
        &self.definitions
    }

    /// Arguments of a typical call of a tool, as JSON text; `None` if it is not among these.
    pub fn example(&self, tool: &str) -> Option<&'static str> {
        self.tool(tool).map(|tool| tool.example())
    }

    fn tool(&self, name: &str) -> Option<&dyn OrchestratingTool> {
        let at = self.definitions.iter().position(|tool| tool.name().as_str() == name)?;
        self.tools.get(at).map(|tool| &**tool)
    }
}

#[async_trait]
impl ToolProvider for Orchestration {
    fn name(&self) -> &str {
        ORCHESTRATION
    }

    async fn list(&self) -> Result<Vec<Tool>, ProviderError> {
        Ok(self.definitions.clone())
    }

    /// Nothing: what the calls touch that such a tool makes is judged with them.
    async fn accesses(&self, _: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        Ok(Vec::new())
    }

    /// As long as it may: the calls that it makes have their own bounds.
    fn time_wanted(&self, _: &ToolCall) -> Option<Duration> {
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

/// The example as a value, for a schema.
fn example_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
