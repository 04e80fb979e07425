//! The contract of a tool that is written in Rust.

use crate::builtin::{
    run::Run,
    schema::{advertised_schema, input_schema},
    world::World,
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::{any::type_name, sync::Arc, time::Duration};
use toolstead_domain::{
    access::Access,
    category::Category,
    error_kind::ErrorKind,
    tool::{Availability, OutputReading, Tool, ToolAnnotations, ToolSource},
    tool_call::ToolCall,
    tool_failure::ToolFailure,
    tool_name::{InvalidToolName, ToolName},
    tool_result::ToolResult,
};

/// A tool: its definition and what it does, in one type.
///
/// A program writes less with [`TypedTool`](crate::builtin::typed_tool::TypedTool) and
/// [`tool_fn`](crate::builtin::added_tool::tool_fn), and is asked about what it forgets to say.
///
/// Arguments are validated against the schema of [`Input`](Self::Input) before a tool sees them. A tool touches nothing
/// beyond what [`accesses`](Self::accesses) said and the grant permits; files are reached through
/// [`Run::on_files`] alone.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolstead_domain::{
///     category::Category, tool::ToolAnnotations, tool_failure::ToolFailure, tool_result::ToolResult,
/// };
/// use toolstead_infrastructure::builtin::{built_in_tool::BuiltInTool, run::Run};
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
///     async fn run(&self, input: Input, _: &Run<'_>) -> Result<ToolResult, ToolFailure> {
///         Ok(ToolResult::text(format!("Hello, {}!", input.name)))
///     }
/// }
/// ```
pub trait BuiltInTool: Send + Sync + 'static {
    /// The canonical name, in lower snake case.
    const NAME: &'static str;
    /// The name for people.
    const TITLE: &'static str;
    /// What it does, when to use it and how, for a model. The first sentence stands alone in lists.
    const DESCRIPTION: &'static str;
    /// The same in a sentence or two, for the list that models carry along in every conversation; the tool `help` tells
    /// the rest.
    const BRIEF: &'static str = Self::DESCRIPTION;
    /// What it is for.
    const CATEGORY: Category;
    /// Free words to filter by, sorted.
    const TAGS: &'static [&'static str] = &[];
    /// Whether it runs a command line that it is given: then a command pattern stands in the parentheses of rules that
    /// name it.
    const TAKES_COMMAND_LINES: bool = false;
    /// See [`Tool::stands_alone`].
    const STANDS_ALONE: bool = false;
    /// See [`Tool::reads_outputs`].
    const READS_OUTPUTS: Option<OutputReading> = None;
    /// MCP's hints.
    const ANNOTATIONS: ToolAnnotations;
    /// Arguments of a typical call, as JSON text, for the documentation and the tool `help`.
    const EXAMPLE: &'static str;
    /// The arguments. Doc comments on its fields are what a model reads of them.
    type Input: DeserializeOwned + JsonSchema + Send + Sync;

    /// Whether a call with `dry_run` changes nothing, fails as the call itself would, and answers with a unified diff in
    /// members `diff` of its structured content: then whoever is asked about the call sees the change.
    const TELLS_CHANGE: bool = false;

    /// The schema of the structured content, if every success has one
    /// ([`output_schema`](crate::builtin::schema::output_schema)).
    fn output_schema(&self) -> Option<Value> {
        None
    }

    /// Tells whether its availability and [`told_here`](Self::told_here) may change while it stands in a list.
    const IS_LIVE: bool = false;

    /// The text that stands behind its description here, if there is one.
    fn told_here(&self, world: &World) -> Option<String> {
        let _ = world;
        None
    }

    /// Tells whether it can work here. Asked once, when its provider is made, unless it is live.
    fn availability(&self, world: &World) -> Availability {
        let _ = world;
        Availability::Available
    }

    /// What a call would touch. Nothing, unless it says so.
    ///
    /// # Errors
    /// A failure for the model when the arguments cannot be understood.
    fn accesses(
        &self,
        input: &Self::Input,
        world: &World,
    ) -> impl Future<Output = Result<Vec<Access>, ToolFailure>> + Send {
        let _ = (input, world);
        async { Ok(Vec::new()) }
    }

    /// The same, for a tool that has to know whose call it is.
    ///
    /// # Errors
    /// As [`accesses`](Self::accesses).
    fn accesses_of(
        &self,
        input: &Self::Input,
        call: &ToolCall,
        world: &World,
    ) -> impl Future<Output = Result<Vec<Access>, ToolFailure>> + Send {
        let _ = call;
        self.accesses(input, world)
    }

    /// How long the call asks to run; `None`: as long as calls of this tool do. [`CallContext::deadline`] says what it
    /// got.
    ///
    /// [`CallContext::deadline`]: toolstead_domain::ports::tool_provider::CallContext::deadline
    fn time_wanted(&self, input: &Self::Input) -> Option<Duration> {
        let _ = input;
        None
    }

    /// Does it.
    ///
    /// # Errors
    /// A failure for the model: what was wrong, and what to do next.
    fn run(&self, input: Self::Input, run: &Run<'_>) -> impl Future<Output = Result<ToolResult, ToolFailure>> + Send;
}

/// A [`BuiltInTool`] whose types are forgotten, so that unlike tools stand in one list. Every tool is one.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tool",
    note = "a `TypedTool` becomes one by `typed(..)`, a closure by `tool_fn(..)`; a `BuiltInTool` is one"
)]
pub trait AnyBuiltInTool: Send + Sync {
    /// Its canonical name.
    fn name(&self) -> &str;

    /// Arguments of a typical call, as JSON text, if its author gave some.
    fn example(&self) -> Option<&str>;

    /// See [`BuiltInTool::TELLS_CHANGE`].
    fn tells_change(&self) -> bool;

    /// See [`BuiltInTool::IS_LIVE`].
    fn is_live(&self) -> bool {
        false
    }

    /// Its definition under a name, from a source. That of a built-in tool is built when it is read first.
    fn definition(self: Arc<Self>, name: ToolName, source: ToolSource, world: &World) -> Tool;

    /// See [`BuiltInTool::accesses_of`].
    ///
    /// # Errors
    /// Also `invalid_input` when the arguments do not fit the input type.
    async fn accesses(&self, call: &ToolCall, world: &World) -> Result<Vec<Access>, ToolFailure>;

    /// See [`BuiltInTool::time_wanted`].
    fn time_wanted(&self, arguments: &Map<String, Value>) -> Option<Duration>;

    /// See [`BuiltInTool::run`].
    ///
    /// # Errors
    /// Also `invalid_input` when the arguments do not fit the input type.
    async fn run(&self, arguments: &Map<String, Value>, run: &Run<'_>) -> Result<ToolResult, ToolFailure>;
}

impl std::fmt::Debug for dyn AnyBuiltInTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[async_trait]
impl<T: BuiltInTool> AnyBuiltInTool for T {
    fn name(&self) -> &str {
        T::NAME
    }

    fn example(&self) -> Option<&str> {
        Some(T::EXAMPLE)
    }

    fn tells_change(&self) -> bool {
        T::TELLS_CHANGE
    }

    fn is_live(&self) -> bool {
        T::IS_LIVE
    }

    fn definition(self: Arc<Self>, name: ToolName, source: ToolSource, world: &World) -> Tool {
        let here = self.told_here(world).map_or(String::new(), |here| format!("\n{here}"));
        let availability = self.availability(world);
        let mut tool = match source {
            // Texts that depend on the environment, and those of other programs, are searched for hidden characters.
            ToolSource::BuiltIn if !T::IS_LIVE && here.is_empty() => {
                let own_name = name.clone();
                let whole = move || whole::<T>(&self, &own_name, "");
                Tool::deferred(name, whole, T::CATEGORY, source).advertised_by(|| brief::<T>(""))
            }
            source => {
                let whole = whole::<T>(&self, &name, &here);
                Tool::new(name, whole, T::CATEGORY, source).advertised_as(brief::<T>(&here))
            }
        };
        tool.tags = T::TAGS.iter().map(ToString::to_string).collect();
        tool.set_availability(availability);
        tool.takes_command_lines = T::TAKES_COMMAND_LINES;
        tool.reads_outputs = T::READS_OUTPUTS;
        tool.stands_alone = T::STANDS_ALONE;
        tool
    }

    async fn accesses(&self, call: &ToolCall, world: &World) -> Result<Vec<Access>, ToolFailure> {
        BuiltInTool::accesses_of(self, &parsed(&call.arguments)?, call, world).await
    }

    fn time_wanted(&self, arguments: &Map<String, Value>) -> Option<Duration> {
        BuiltInTool::time_wanted(self, &parsed(arguments).ok()?)
    }

    async fn run(&self, arguments: &Map<String, Value>, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        BuiltInTool::run(self, parsed(arguments)?, run).await
    }
}

/// The definition that calls are validated against.
fn whole<T: BuiltInTool>(tool: &T, name: &ToolName, here: &str) -> Map<String, Value> {
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

/// The definition for models, without the schema of the result: what a tool answers, its answers show.
fn brief<T: BuiltInTool>(here: &str) -> Map<String, Value> {
    let mut brief = Map::new();
    brief.insert("name".into(), T::NAME.into());
    brief.insert("title".into(), T::TITLE.into());
    brief.insert("description".into(), format!("{}{here}", T::BRIEF).into());
    brief.insert("inputSchema".into(), advertised_schema::<T::Input>());
    brief.insert("annotations".into(), T::ANNOTATIONS.beside_defaults());
    brief
}

/// The arguments as the type that the tool takes.
///
/// # Errors
/// `invalid_input` when they do not fit it.
pub(super) fn parsed<I: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<I, ToolFailure> {
    I::deserialize(arguments).map_err(|error| {
        ToolFailure::new(ErrorKind::InvalidInput, format!("the arguments cannot be used: {error}"))
            .caused_by(format!("arguments do not fit {}", type_name::<I>()))
    })
}

/// The name of a tool, checked.
///
/// # Errors
/// [`InvalidToolName`] when a program that embeds Toolstead named its tool against MCP's rule.
pub(super) fn checked_name(tool: &dyn AnyBuiltInTool) -> Result<ToolName, InvalidToolName> {
    ToolName::parse(tool.name())
}
