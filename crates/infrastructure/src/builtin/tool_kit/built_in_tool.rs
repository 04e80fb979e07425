//! The contract of a tool that is written in Rust.

use crate::builtin::tool_kit::{
    schema::{advertised_schema, input_schema},
    tool_context::ToolContext,
    tool_environment::ToolEnvironment,
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::{any::type_name, sync::Arc, time::Duration};
use toolstead_domain::{
    Access, Availability, Category, InvalidToolName, OutputReaderParameters, Tool, ToolAnnotations, ToolCall,
    ToolFailure, ToolName, ToolResult, ToolSource, error_kind::ErrorKind,
};

/// A tool: its definition and its implementation, in one type.
///
/// [`TypedTool`](crate::builtin::tool_kit::typed_tool::TypedTool) and
/// [`tool_fn`](crate::builtin::tool_kit::custom_tool::tool_fn) need less code in an embedding application. Calls of
/// such a tool that declares no accesses require approval.
///
/// Arguments are validated against the schema of [`Input`](Self::Input) before a tool receives them. A tool touches
/// nothing beyond what [`accesses`](Self::accesses) returned and the grant permits; it reaches files through
/// [`ToolContext::on_files`] alone.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolstead_domain::{
///     category::Category, tool::ToolAnnotations, tool_failure::ToolFailure, tool_result::ToolResult,
/// };
/// use toolstead_infrastructure::builtin::tool_kit::{built_in_tool::BuiltInTool, tool_context::ToolContext};
///
/// struct Greet;
///
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Input {
///     /// Whom to greet.
///     name: String,
/// }
///
/// impl BuiltInTool for Greet {
///     const NAME: &str = "greet";
///     const TITLE: &str = "Greet";
///     const DESCRIPTION: &str = "Greets somebody by name.";
///     const CATEGORY: Category = Category::Utility;
///     const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
///     const EXAMPLE: &str = r#"{"name": "Ada"}"#;
///     type Input = Input;
///
///     async fn run(&self, input: Input, _: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
///         Ok(ToolResult::text(format!("Hello, {}!", input.name)))
///     }
/// }
/// ```
pub trait BuiltInTool: Send + Sync + 'static {
    /// Canonical name, in lower snake case.
    const NAME: &'static str;
    /// Name for display.
    const TITLE: &'static str;
    /// Description for a model: what the tool does, when and how to use it. Lists show the first sentence alone.
    const DESCRIPTION: &'static str;
    /// Description in a sentence or two, for the list that models carry along in every conversation. The tool `help`
    /// shows the full description.
    const BRIEF: &'static str = Self::DESCRIPTION;
    /// Category of the tool.
    const CATEGORY: Category;
    /// Free words to filter by, sorted.
    const TAGS: &'static [&'static str] = &[];
    /// Words, separated by spaces, that a person may use for what the tool does, beside those of its definition. See
    /// [`Tool::keywords`].
    const KEYWORDS: &'static str = "";
    /// `true` if the tool runs a command line from its arguments. Permission rules for it then take a command pattern
    /// in parentheses.
    const TAKES_COMMAND_LINES: bool = false;
    /// See [`Tool::stands_alone`].
    const STANDS_ALONE: bool = false;
    /// See [`Tool::reads_outputs`].
    const READS_OUTPUTS: Option<OutputReaderParameters> = None;
    /// Annotations of MCP.
    const ANNOTATIONS: ToolAnnotations;
    /// Arguments of a typical call, as JSON text, for the documentation and the tool `help`.
    const EXAMPLE: &'static str;
    /// Type of the arguments. Models read the doc comments on its fields.
    type Input: DeserializeOwned + JsonSchema + Send + Sync;

    /// `true` if a call with `dry_run` changes nothing, fails as the call itself would, and returns a unified diff in
    /// members `diff` of its structured content. The approver of the call then sees the change.
    const SUPPORTS_DIFF_PREVIEW: bool = false;

    /// Returns the schema of the structured content, if every success has one
    /// ([`output_schema`](crate::builtin::tool_kit::schema::output_schema)).
    fn output_schema(&self) -> Option<Value> {
        None
    }

    /// `true` if the availability and [`dynamic_description`](Self::dynamic_description) may change after the provider is created.
    const IS_LIVE: bool = false;

    /// `true` if the availability depends on the journal of file changes, which the provider may receive later.
    const DEPENDS_ON_JOURNAL: bool = false;

    /// Returns a text that depends on the environment and is appended to the description, if there is one.
    fn dynamic_description(&self, world: &ToolEnvironment) -> Option<String> {
        let _ = world;
        None
    }

    /// Returns the availability of the tool in this environment. Called once, when its provider is created, unless the
    /// tool is live.
    fn availability(&self, world: &ToolEnvironment) -> Availability {
        let _ = world;
        Availability::Available
    }

    /// Returns what a call would touch. By default nothing.
    ///
    /// # Errors
    /// A failure for the model when the arguments cannot be understood.
    fn accesses(
        &self,
        input: &Self::Input,
        world: &ToolEnvironment,
    ) -> impl Future<Output = Result<Vec<Access>, ToolFailure>> + Send {
        let _ = (input, world);
        async { Ok(Vec::new()) }
    }

    /// Returns what a call would touch, for a tool whose accesses depend on the principal or session of the call.
    ///
    /// # Errors
    /// As [`accesses`](Self::accesses).
    fn accesses_of(
        &self,
        input: &Self::Input,
        call: &ToolCall,
        world: &ToolEnvironment,
    ) -> impl Future<Output = Result<Vec<Access>, ToolFailure>> + Send {
        let _ = call;
        self.accesses(input, world)
    }

    /// Returns the time that the call requests; `None` for the default of the tool. [`CallContext::deadline`] is the
    /// time that it received.
    ///
    /// [`CallContext::deadline`]: toolstead_domain::ports::tool_provider::CallContext::deadline
    fn requested_time(&self, input: &Self::Input) -> Option<Duration> {
        let _ = input;
        None
    }

    /// Runs a call.
    ///
    /// # Errors
    /// A failure for the model: what was wrong, and what to do next.
    fn run(
        &self,
        input: Self::Input,
        run: &ToolContext<'_>,
    ) -> impl Future<Output = Result<ToolResult, ToolFailure>> + Send;
}

/// A [`BuiltInTool`] without its types, so that different tools fit into one list. Every tool implements it.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "wrap a `TypedTool` in `typed(..)`, a closure in `tool_fn(..)`; every `BuiltInTool` is a tool"
)]
pub trait AnyTool: Send + Sync {
    /// Returns the canonical name.
    fn name(&self) -> &str;

    /// Returns the arguments of a typical call, as JSON text, if its author gave some.
    fn example(&self) -> Option<&str>;

    /// See [`BuiltInTool::SUPPORTS_DIFF_PREVIEW`].
    fn supports_diff_preview(&self) -> bool;

    /// See [`BuiltInTool::IS_LIVE`].
    fn is_live(&self) -> bool {
        false
    }

    /// See [`BuiltInTool::DEPENDS_ON_JOURNAL`].
    fn depends_on_journal(&self) -> bool {
        false
    }

    /// Returns its definition under a name, from a source. The definition of a built-in tool is built on first use.
    fn definition(self: Arc<Self>, name: ToolName, source: ToolSource, world: &ToolEnvironment) -> Tool;

    /// See [`BuiltInTool::accesses_of`].
    ///
    /// # Errors
    /// Also `invalid_input` when the arguments do not fit the input type.
    async fn accesses(&self, call: &ToolCall, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure>;

    /// See [`BuiltInTool::requested_time`].
    fn requested_time(&self, arguments: &Map<String, Value>) -> Option<Duration>;

    /// See [`BuiltInTool::run`].
    ///
    /// # Errors
    /// Also `invalid_input` when the arguments do not fit the input type.
    async fn run(&self, arguments: &Map<String, Value>, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure>;
}

impl std::fmt::Debug for dyn AnyTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[async_trait]
impl<T: BuiltInTool> AnyTool for T {
    fn name(&self) -> &str {
        T::NAME
    }

    fn example(&self) -> Option<&str> {
        Some(T::EXAMPLE)
    }

    fn supports_diff_preview(&self) -> bool {
        T::SUPPORTS_DIFF_PREVIEW
    }

    fn is_live(&self) -> bool {
        T::IS_LIVE
    }

    fn depends_on_journal(&self) -> bool {
        T::DEPENDS_ON_JOURNAL
    }

    fn definition(self: Arc<Self>, name: ToolName, source: ToolSource, world: &ToolEnvironment) -> Tool {
        let here = self.dynamic_description(world).map_or(String::new(), |here| format!("\n{here}"));
        let availability = self.availability(world);
        let mut tool = match source {
            // Texts that depend on the environment, and those of embedding applications, are searched for hidden
            // characters.
            ToolSource::BuiltIn if !T::IS_LIVE && here.is_empty() => {
                let own_name = name.clone();
                let whole = move || full_definition::<T>(&self, &own_name, "");
                Tool::deferred(name, whole, T::CATEGORY, source).advertised_by(|| brief::<T>(""))
            }
            source => {
                let whole = full_definition::<T>(&self, &name, &here);
                Tool::new(name, whole, T::CATEGORY, source).advertised_as(brief::<T>(&here))
            }
        };
        tool.tags = T::TAGS.iter().map(ToString::to_string).collect();
        tool.set_availability(availability);
        tool.keywords = T::KEYWORDS;
        tool.takes_command_lines = T::TAKES_COMMAND_LINES;
        tool.reads_outputs = T::READS_OUTPUTS;
        tool.stands_alone = T::STANDS_ALONE;
        tool
    }

    async fn accesses(&self, call: &ToolCall, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        BuiltInTool::accesses_of(self, &parse_arguments(&call.arguments)?, call, world).await
    }

    fn requested_time(&self, arguments: &Map<String, Value>) -> Option<Duration> {
        BuiltInTool::requested_time(self, &parse_arguments(arguments).ok()?)
    }

    async fn run(&self, arguments: &Map<String, Value>, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        BuiltInTool::run(self, parse_arguments(arguments)?, run).await
    }
}

/// Returns the definition that calls are validated against.
fn full_definition<T: BuiltInTool>(tool: &T, name: &ToolName, here: &str) -> Map<String, Value> {
    let mut definition = Map::new();
    definition.insert("name".into(), name.as_str().into());
    definition.insert("title".into(), T::TITLE.into());
    definition.insert("description".into(), format!("{}{here}", T::DESCRIPTION).into());
    let mut schema = input_schema::<T::Input>();
    if let Ok(example) = serde_json::from_str::<Value>(T::EXAMPLE) {
        schema["examples"] = Value::Array(vec![example]);
    }
    definition.insert("inputSchema".into(), schema);
    if let Some(schema) = tool.output_schema() {
        definition.insert("outputSchema".into(), schema);
    }
    definition.insert("annotations".into(), T::ANNOTATIONS.to_json());
    definition
}

/// Returns the definition for models. It omits the schema of the result, because each result shows its own structure.
fn brief<T: BuiltInTool>(here: &str) -> Map<String, Value> {
    let mut brief = Map::new();
    brief.insert("name".into(), T::NAME.into());
    brief.insert("title".into(), T::TITLE.into());
    brief.insert("description".into(), format!("{}{here}", T::BRIEF).into());
    brief.insert("inputSchema".into(), advertised_schema::<T::Input>());
    brief.insert("annotations".into(), T::ANNOTATIONS.beside_defaults());
    brief
}

/// Deserializes the arguments into the input type of the tool.
///
/// # Errors
/// `invalid_input` when they do not fit it.
pub(in crate::builtin) fn parse_arguments<I: DeserializeOwned>(
    arguments: &Map<String, Value>,
) -> Result<I, ToolFailure> {
    I::deserialize(arguments).map_err(|error| {
        ToolFailure::new(ErrorKind::InvalidInput, format!("the arguments cannot be used: {error}"))
            .caused_by(format!("arguments do not fit {}", type_name::<I>()))
    })
}

/// Returns the name of a tool after validation.
///
/// # Errors
/// [`InvalidToolName`] when an embedding application gave its tool a name that MCP does not allow.
pub(in crate::builtin) fn validate_name(tool: &dyn AnyTool) -> Result<ToolName, InvalidToolName> {
    ToolName::parse(tool.name())
}
