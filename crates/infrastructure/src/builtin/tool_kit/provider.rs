//! The provider of the built-in tools.

use crate::builtin::{
    dialects::aliases::aliases_of,
    files::read_state::SessionKey,
    tool_kit::{
        built_in_tool::{AnyTool, validate_name},
        tool_context::ToolContext,
        tool_environment::ToolEnvironment,
    },
};
use async_trait::async_trait;
use futures::future::BoxFuture;
use serde_json::Value;
use std::{collections::HashMap, sync::Arc, time::Duration};
use toolstead_domain::{
    Access, CallContext, CallOutcome, ChangeJournal, InvalidToolName, Principal, ProviderListError, QuestionStore,
    ReadState, ServerName, TodoStore, Tool, ToolCall, ToolFailure, ToolName, ToolProvider, ToolSource,
    error_kind::ErrorKind, tool::BUILT_IN, tool_result::text_block,
};

/// Name of the parameter with which a call changes nothing.
const DRY_RUN: &str = "dry_run";
/// Number of characters reserved for notifications of ended tasks.
const NOTIFICATION_CHARACTERS: usize = 1_000;

/// Tools that are written in Rust, as one provider.
#[derive(Debug)]
pub struct InProcessTools {
    name: String,
    environment: ToolEnvironment,
    tools: Vec<Arc<dyn AnyTool>>,
    definitions: Vec<Tool>,
    version: Option<String>,
    /// `true` if another provider owns the environment and what runs in it.
    shares_environment: bool,
    /// Tools of other providers that `help` explains as well.
    explained: Vec<Tool>,
    indices: HashMap<ToolName, usize>,
}

impl InProcessTools {
    /// Creates the provider `built-in`: its tools have their own names and the aliases of those names.
    ///
    /// # Errors
    /// [`InvalidInProcessTools`] when a name is not valid in MCP or not unique.
    pub fn new(
        tools: impl IntoIterator<Item = impl Into<Arc<dyn AnyTool>>>,
        environment: ToolEnvironment,
    ) -> Result<Self, InvalidInProcessTools> {
        let mut provider = Self::of(BUILT_IN.into(), tools, environment, |name| (name, ToolSource::BuiltIn))?;
        for tool in &mut provider.definitions {
            tool.aliases = aliases_of(tool.name().as_str());
        }
        Ok(provider)
    }

    /// Creates the provider of an embedding application, under a name of its own: its tools are called
    /// `mcp__{name}__{tool}`.
    ///
    /// # Errors
    /// [`InvalidInProcessTools`] when a name of a tool is not valid in MCP or not unique.
    pub fn named(
        name: &ServerName,
        tools: impl IntoIterator<Item = impl Into<Arc<dyn AnyTool>>>,
        environment: ToolEnvironment,
    ) -> Result<Self, InvalidInProcessTools> {
        Self::of(name.to_string(), tools, environment, |tool| {
            (ToolName::for_upstream(name, tool.as_str()), ToolSource::Embedded(name.clone()))
        })
    }

    /// Creates the provider of tools that an embedding application adds beside the built-in ones, under their own
    /// names. Their source is the application, so nothing in their definitions is trusted.
    ///
    /// # Errors
    /// As [`named`](Self::named).
    pub fn for_application(
        program: &ServerName,
        tools: impl IntoIterator<Item = impl Into<Arc<dyn AnyTool>>>,
        environment: ToolEnvironment,
    ) -> Result<Self, InvalidInProcessTools> {
        Self::of(program.to_string(), tools, environment, |name| (name, ToolSource::Embedded(program.clone())))
    }

    /// Adds tools of another provider that `help` explains as well.
    #[must_use]
    pub fn with_explained_tools(mut self, tools: &[Tool]) -> Self {
        self.explained.extend_from_slice(tools);
        self
    }

    fn of(
        name: String,
        tools: impl IntoIterator<Item = impl Into<Arc<dyn AnyTool>>>,
        world: ToolEnvironment,
        name_and_source: impl Fn(ToolName) -> (ToolName, ToolSource),
    ) -> Result<Self, InvalidInProcessTools> {
        let tools: Vec<Arc<dyn AnyTool>> = tools.into_iter().map(Into::into).collect();
        let mut definitions = Vec::with_capacity(tools.len());
        let mut places = HashMap::with_capacity(tools.len());
        for (place, tool) in tools.iter().enumerate() {
            let (name, source) = name_and_source(validate_name(&**tool)?);
            if places.insert(name.clone(), place).is_some() {
                return Err(InvalidInProcessTools::Duplicate(name));
            }
            definitions.push(tool.clone().definition(name, source, &world));
        }
        Ok(Self {
            name,
            environment: world,
            tools,
            definitions,
            version: None,
            shares_environment: false,
            explained: Vec::new(),
            indices: places,
        })
    }

    /// Sets the version that lists of providers show.
    #[must_use]
    pub fn with_version(self, version: &str) -> Self {
        Self { version: Some(version.to_owned()), ..self }
    }

    /// Leaves the environment, and what runs in it, to the provider that owns it: closing this provider ends nothing
    /// there, and only the owner handles the end of sessions.
    #[must_use]
    pub fn with_shared_environment(self) -> Self {
        Self { shares_environment: true, ..self }
    }

    /// Removes the aliases of the form `{server}__{tool}` that begin with the name of one of these MCP servers.
    #[must_use]
    pub fn without_aliases_of(mut self, is_server: impl Fn(&str) -> bool) -> Self {
        let is_theirs = |name: &str| name.split_once("__").is_some_and(|(server, _)| is_server(server));
        for tool in &mut self.definitions {
            tool.aliases.retain(|alias| !is_theirs(alias.name));
        }
        self
    }

    /// Records file changes in this journal. Determines the availability of the tools that depend on it again.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn ChangeJournal>) -> Self {
        self.environment = self.environment.with_journal(journal);
        for (definition, tool) in self.definitions.iter_mut().zip(&self.tools) {
            if !tool.depends_on_journal() {
                continue;
            }
            let anew =
                tool.clone().definition(definition.name().clone(), definition.source().clone(), &self.environment);
            definition.availability = anew.availability;
        }
        self
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

    /// Stores the read-state of sessions in this store, instead of in memory.
    #[must_use]
    pub fn with_read_state(mut self, seen: Arc<dyn ReadState>) -> Self {
        self.environment = self.environment.with_read_state(seen);
        self
    }

    /// Stores plans in this store, instead of in memory.
    #[must_use]
    pub fn with_todos(mut self, todos: Arc<dyn TodoStore>) -> Self {
        self.environment = self.environment.with_todos(todos);
        self
    }

    /// Stores questions that cannot be answered during the call in this store. Without a store such questions fail.
    #[must_use]
    pub fn with_questions(mut self, questions: Arc<dyn QuestionStore>) -> Self {
        self.environment = self.environment.with_questions(questions);
        self
    }

    /// Returns the definitions of the tools, in the order of the list.
    pub fn definitions(&self) -> &[Tool] {
        &self.definitions
    }

    /// Returns the arguments of a typical call of a tool, as JSON text; `None` if the tool is unknown or has no
    /// example.
    pub fn example(&self, tool: &str) -> Option<&str> {
        self.indices.get(tool).and_then(|place| self.tools[*place].example())
    }

    fn tool(&self, call: &ToolCall) -> Result<&dyn AnyTool, ToolFailure> {
        let name = call.tool.name();
        let place = self.indices.get(name);
        place.map(|place| &*self.tools[*place]).ok_or_else(|| {
            ToolFailure::new(ErrorKind::NotFound, format!("there is no tool `{name}` among those of `{}`", self.name))
        })
    }
}

#[async_trait]
impl ToolProvider for InProcessTools {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> Option<String> {
        self.version.clone()
    }

    async fn list(&self) -> Result<Vec<Tool>, ProviderListError> {
        let as_now = |(known, tool): (&Tool, &Arc<dyn AnyTool>)| {
            if !tool.is_live() {
                return known.clone();
            }
            let mut now = tool.clone().definition(known.name().clone(), known.source().clone(), &self.environment);
            now.aliases = known.aliases.clone();
            now
        };
        Ok(self.definitions.iter().zip(&self.tools).map(as_now).collect())
    }

    async fn changed(&self) {
        match self.tools.iter().any(|tool| tool.is_live()) {
            true => self.environment.agents().catalogue().changed().await,
            false => std::future::pending().await,
        }
    }

    /// Returns the future of the tool itself, without another box around it.
    fn accesses<'s, 'c, 'f>(&'s self, call: &'c ToolCall) -> BoxFuture<'f, Result<Vec<Access>, ToolFailure>>
    where
        's: 'f,
        'c: 'f,
        Self: 'f,
    {
        match self.tool(call) {
            Ok(tool) => tool.accesses(call, &self.environment),
            Err(failure) => Box::pin(std::future::ready(Err(failure))),
        }
    }

    fn requested_time(&self, call: &ToolCall) -> Option<Duration> {
        self.tool(call).ok()?.requested_time(&call.arguments)
    }

    async fn preview(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<Option<String>, ToolFailure> {
        let tool = self.tool(call)?;
        if !tool.supports_diff_preview() || call.arguments.get(DRY_RUN) == Some(&Value::Bool(true)) {
            return Ok(None);
        }
        let mut arguments = call.arguments.clone();
        arguments.insert(DRY_RUN.into(), Value::Bool(true));
        let trial = ToolCall { arguments, ..call.clone() };
        let run = ToolContext {
            environment: &self.environment,
            tools: &self.definitions,
            explained: &self.explained,
            call: &trial,
            context,
        };
        let result = tool.run(&trial.arguments, &run).await?;
        let mut diffs = Vec::new();
        result.as_object().get("structuredContent").into_iter().for_each(|content| diffs_in(content, &mut diffs));
        Ok(Some(diffs.concat()).filter(|diff| !diff.is_empty()))
    }

    async fn call(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
        let tasks = self.environment.processes().tasks();
        if call.tool.tags.iter().any(|tag| tag == "task") {
            // Boxed, because it is larger than the rest of the call, and most tools do not use tasks.
            Box::pin(self.environment.find_detached_tasks()).await?;
        }
        // The following lines would make a result that fills the budget too long.
        let has_notifications = !tasks.is_empty() && tasks.has_notifications(&SessionKey::of(context));
        let reserved = if has_notifications { NOTIFICATION_CHARACTERS } else { 0 };
        let shorter = CallContext { output_characters: context.output_characters.saturating_sub(reserved), ..*context };
        let run = ToolContext {
            environment: &self.environment,
            tools: &self.definitions,
            explained: &self.explained,
            call,
            context: &shorter,
        };
        let result = self.tool(call)?.run(&call.arguments, &run).await?.mark_tool_output();
        if tasks.is_empty() {
            return Ok(CallOutcome::Done(result));
        }
        let notifications = tasks.take_notifications(&SessionKey::of(context));
        Ok(CallOutcome::Done(if notifications.is_empty() {
            result
        } else {
            result.with_block(text_block(notifications.join("\n")))
        }))
    }

    async fn session_ended(&self, principal: &Principal, session: &str) {
        if self.shares_environment {
            return;
        }
        self.environment.processes().programs().end_session(principal, session);
        self.environment.web().browsers().end_session(principal, session);
        self.environment
            .processes()
            .tasks()
            .end_session(&SessionKey { principal: principal.clone(), session: session.to_owned() });
    }

    async fn close(&self) {
        if !self.shares_environment {
            self.environment.web().browsers().end_all();
            self.environment.processes().tasks().close().await;
        }
    }
}

/// Collects the diffs in a structured content, in their order.
fn diffs_in<'a>(content: &'a Value, diffs: &mut Vec<&'a str>) {
    match content {
        Value::Object(members) => members.iter().for_each(|(name, value)| match value {
            Value::String(diff) if name == "diff" => diffs.push(diff),
            value => diffs_in(value, diffs),
        }),
        Value::Array(items) => items.iter().for_each(|item| diffs_in(item, diffs)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Reasons why tools cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidInProcessTools {
    /// A name is not valid in MCP.
    #[error(transparent)]
    Name(#[from] InvalidToolName),
    /// The name of a tool is a name or alias of a built-in tool.
    #[error("the tool `{0}` cannot be added: a built-in tool answers to that name; choose another")]
    BuiltInName(String),
    /// Two tools have the same name.
    #[error("there are two tools named `{0}`")]
    Duplicate(ToolName),
}

#[cfg(test)]
mod tests {
    use crate::builtin::tests::Bench;
    use serde_json::json;
    use toolstead_domain::{Availability, error_kind::ErrorKind};

    #[test]
    fn invalid_arguments_are_rejected_as_invalid_input() {
        let bench = Bench::new();
        for (tool, arguments) in [
            ("read_file", json!({})),
            ("read_file", json!({"path": "a", "page": 1})),
            ("read_file", json!({"path": "a", "limit": 0})),
            ("grep", json!({"pattern": "x", "output_mode": "all"})),
            ("write_file", json!({"path": "a", "content": "", "mode": "rwx"})),
        ] {
            assert_eq!(bench.call(tool, arguments.clone()).unwrap_err().kind, ErrorKind::InvalidInput, "{arguments}");
        }
        assert_eq!(bench.call_unchecked("read_file", json!({"path": 1})).unwrap_err().kind, ErrorKind::InvalidInput);
    }

    #[test]
    fn tools_keep_their_aliases_when_they_get_a_journal() {
        let bench = Bench::new();
        let tools = bench.tools_with_journal();
        let read = tools.definitions().iter().find(|tool| tool.name().as_str() == "read_file").unwrap();
        assert!(read.aliases.iter().any(|alias| alias.name == "Read"));
        let undo = tools.definitions().iter().find(|tool| tool.name().as_str() == "undo").unwrap();
        assert_eq!(undo.availability, Availability::Available);
    }

    #[test]
    fn a_tool_of_another_provider_is_not_found() {
        assert_eq!(Bench::new().call_unchecked("elsewhere", json!({})).unwrap_err().kind, ErrorKind::NotFound);
    }
}
