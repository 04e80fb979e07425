//! Tools that embedding applications add: made of a closure, or of a type.

use crate::builtin::tool_kit::{
    built_in_tool::{AnyTool, parse_arguments},
    schema::{answer_schema, input_schema},
    tool_context::ToolContext,
    tool_environment::ToolEnvironment,
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};
use toolstead_domain::{
    Access, Availability, Category, Tool, ToolAnnotations, ToolCall, ToolFailure, ToolName, ToolResult, ToolSource,
    error_kind::ErrorKind,
};

/// Future of a call: the type of `Box::pin(async move { .. })`.
pub type ToolFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolFailure>> + Send + 'a>>;

type ToolFn = dyn for<'a> Fn(&'a Map<String, Value>, ToolContext<'a>) -> ToolFuture<'a, ToolResult> + Send + Sync;
type AccessesFn =
    dyn for<'a> Fn(&'a Map<String, Value>, &'a ToolEnvironment) -> ToolFuture<'a, DeclaredAccesses> + Send + Sync;

/// Accesses that a tool declares for a call.
///
/// A call without accesses is allowed by default, so a missing declaration must not count as "no accesses": calls of a
/// tool that declares nothing require approval, unless a rule allows the tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DeclaredAccesses {
    /// Not declared: each call requires approval, unless a rule allows the tool.
    #[default]
    Unknown,
    /// No access that a rule can match: no file, no command, no host.
    NoAccess,
    /// These accesses, each checked against the rules.
    Accesses(Vec<Access>),
}

impl From<Access> for DeclaredAccesses {
    fn from(access: Access) -> Self {
        Self::Accesses(vec![access])
    }
}

impl From<Vec<Access>> for DeclaredAccesses {
    fn from(accesses: Vec<Access>) -> Self {
        Self::Accesses(accesses)
    }
}

/// Type of a tool's result: any type that can be serialized as JSON and has a schema, or a [`UnstructuredResult`] result.
pub trait ToolOutput: Send {
    /// Returns the schema of the structured content of every result; `None` if there is no such guarantee.
    fn schema() -> Option<Value>;

    /// Converts the value into the result for client and model.
    ///
    /// # Errors
    /// `internal` when the value cannot be serialized as JSON.
    fn into_result(self) -> Result<ToolResult, ToolFailure>;
}

/// An object becomes structured content, with its JSON text for clients that read nothing else. A string becomes a
/// text, and every other value becomes its JSON.
impl<T: Serialize + JsonSchema + Send> ToolOutput for T {
    fn schema() -> Option<Value> {
        answer_schema::<T>()
    }

    fn into_result(self) -> Result<ToolResult, ToolFailure> {
        match serde_json::to_value(self) {
            Ok(Value::String(text)) => Ok(ToolResult::text(text)),
            Ok(Value::Null) => Ok(ToolResult::empty()),
            Ok(value) => Ok(ToolResult::json(value)),
            Err(error) => {
                let message = "the result could not be written as JSON";
                Err(ToolFailure::new(ErrorKind::Internal, message).caused_by(error))
            }
        }
    }
}

/// A result with content of its own, such as an image. It guarantees no structured content.
#[derive(Debug, Clone, PartialEq)]
pub struct UnstructuredResult(pub ToolResult);

impl ToolOutput for UnstructuredResult {
    fn schema() -> Option<Value> {
        None
    }

    fn into_result(self) -> Result<ToolResult, ToolFailure> {
        Ok(self.0)
    }
}

/// A tool that an embedding application adds. Cheap to clone.
#[derive(Clone)]
pub struct CustomTool {
    name: Arc<str>,
    title: String,
    description: String,
    category: Category,
    tags: Vec<String>,
    annotations: ToolAnnotations,
    example: String,
    input_schema: Value,
    output_schema: Option<Value>,
    accesses_fn: Arc<AccessesFn>,
    body: Arc<ToolFn>,
}

/// Makes a tool of a closure. The closure receives the deserialized arguments, and the run by which it reaches files
/// and programs.
///
/// Without [`touches`](CustomTool::touches) or [`touching_nothing`](CustomTool::touching_nothing), each call requires
/// approval. For arguments with a schema of their own, such as that of a definition from another source, use
/// `Map<String, Value>` as the type and add [`with_input_schema`](CustomTool::with_input_schema).
///
/// ```
/// use toolstead_infrastructure::builtin::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(crate = "toolstead_infrastructure::builtin::prelude::serde")]
/// struct Pair { a: i64, b: i64 }
///
/// let add = tool_fn("add", "Adds two numbers.", |pair: Pair, _| {
///     Box::pin(async move { Ok(format!("{}", pair.a + pair.b)) })
/// });
/// let add = add.touching_nothing().with_tags(["arithmetic"]);
/// ```
pub fn tool_fn<In, Out, F>(name: impl Into<Arc<str>>, description: impl Into<String>, run: F) -> CustomTool
where
    In: DeserializeOwned + JsonSchema + Send + 'static,
    Out: ToolOutput + 'static,
    F: for<'a> Fn(In, ToolContext<'a>) -> ToolFuture<'a, Out> + Send + Sync + 'static,
{
    let body: Arc<ToolFn> = Arc::new(move |arguments, context| match parse_arguments::<In>(arguments) {
        Ok(input) => {
            let running = run(input, context);
            Box::pin(async move { running.await?.into_result() })
        }
        Err(failure) => Box::pin(async move { Err(failure) }),
    });
    CustomTool {
        name: name.into(),
        title: String::new(),
        description: description.into(),
        category: Category::Utility,
        tags: Vec::new(),
        annotations: ToolAnnotations::UNSAID,
        example: String::new(),
        input_schema: input_schema::<In>(),
        output_schema: Out::schema(),
        accesses_fn: Arc::new(|_, _| Box::pin(async { Ok(DeclaredAccesses::Unknown) })),
        body,
    }
}

impl CustomTool {
    /// Declares what a call with these arguments would touch. The closure must not change anything.
    #[must_use]
    pub fn touches<In, F>(mut self, touches: F) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        F: for<'a> Fn(In, &'a ToolEnvironment) -> ToolFuture<'a, DeclaredAccesses> + Send + Sync + 'static,
    {
        self.accesses_fn = Arc::new(move |arguments, world| match parse_arguments::<In>(arguments) {
            Ok(input) => touches(input, world),
            Err(failure) => Box::pin(async move { Err(failure) }),
        });
        self
    }

    /// Declares that no call touches anything that a rule can match: no file, no command, no host.
    #[must_use]
    pub fn touching_nothing(mut self) -> Self {
        self.accesses_fn = Arc::new(|_, _| Box::pin(async { Ok(DeclaredAccesses::NoAccess) }));
        self
    }

    /// Sets the name for display.
    #[must_use]
    pub fn with_title(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// Sets the category instead of [`Category::Utility`].
    #[must_use]
    pub fn with_category(self, category: Category) -> Self {
        Self { category, ..self }
    }

    /// Sets free words to filter by.
    #[must_use]
    pub fn with_tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self.tags.sort();
        self
    }

    /// Sets the annotations of MCP, which inform users and grant nothing.
    #[must_use]
    pub fn with_annotations(self, annotations: ToolAnnotations) -> Self {
        Self { annotations, ..self }
    }

    /// Sets the arguments of a typical call, as JSON text, for `help`.
    #[must_use]
    pub fn with_example(self, example: impl Into<String>) -> Self {
        Self { example: example.into(), ..self }
    }

    /// Sets the schema of the arguments instead of that of their type. Arguments that it accepts must fit the type.
    #[must_use]
    pub fn with_input_schema(self, schema: Value) -> Self {
        Self { input_schema: schema, ..self }
    }

    /// Sets the schema of the structured content instead of that of its type. A result that does not fit it is a
    /// failure.
    #[must_use]
    pub fn with_output_schema(self, schema: Value) -> Self {
        Self { output_schema: Some(schema), ..self }
    }

    fn fault(&self) -> Option<String> {
        let kind = self.input_schema.get("type");
        (kind != Some(&"object".into()))
            .then(|| "the schema of its arguments is not an object schema: its input must be a struct or a map".into())
    }
}

#[async_trait]
impl AnyTool for CustomTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn example(&self) -> Option<&str> {
        Some(self.example.as_str()).filter(|example| !example.is_empty())
    }

    fn supports_diff_preview(&self) -> bool {
        false
    }

    fn definition(self: Arc<Self>, name: ToolName, source: ToolSource, _: &ToolEnvironment) -> Tool {
        let mut definition = Map::new();
        definition.insert("name".into(), name.as_str().into());
        if !self.title.is_empty() {
            definition.insert("title".into(), self.title.as_str().into());
        }
        definition.insert("description".into(), self.description.as_str().into());
        let mut schema = self.input_schema.clone();
        let example = self.example().and_then(|example| serde_json::from_str::<Value>(example).ok());
        if let (Some(example), Value::Object(members)) = (example, &mut schema) {
            members.insert("examples".into(), Value::Array(vec![example]));
        }
        definition.insert("inputSchema".into(), schema);
        if let Some(schema) = &self.output_schema {
            definition.insert("outputSchema".into(), schema.clone());
        }
        if self.annotations != ToolAnnotations::UNSAID {
            definition.insert("annotations".into(), self.annotations.to_json());
        }
        let mut tool = Tool::new(name, definition, self.category, source);
        tool.tags.clone_from(&self.tags);
        if let Some(fault) = self.fault() {
            tool.set_availability(Availability::Unavailable(fault));
        }
        tool
    }

    async fn accesses(&self, call: &ToolCall, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        Ok(match (self.accesses_fn)(&call.arguments, world).await? {
            DeclaredAccesses::NoAccess => Vec::new(),
            DeclaredAccesses::Accesses(accesses) => accesses,
            DeclaredAccesses::Unknown => vec![Access::Undeclared(self.name.clone())],
        })
    }

    fn requested_time(&self, _: &Map<String, Value>) -> Option<Duration> {
        None
    }

    async fn run(&self, arguments: &Map<String, Value>, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        (self.body)(arguments, *run).await
    }
}

impl fmt::Debug for CustomTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomTool").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        builtin::{
            prelude::*,
            tests::Bench,
            tool_kit::provider::{InProcessTools, InvalidInProcessTools},
        },
        sandbox::workspace::Workspace,
        system_clock::SystemClock,
    };
    use std::{collections::BTreeMap, future::Future, sync::Arc};
    use toolstead_domain::{
        Availability, Effect, FormatValidation, PatternContext, PermissionMode, PermissionPolicy, PermissionRule,
        ServerName, Tool, ToolInputSchema, ToolProvider, Verdict,
        permission::rule::RuleOrigin,
        testing::{samples, tool_provider_contract::tool_provider_contract},
    };

    #[derive(Deserialize, JsonSchema)]
    struct Sum {
        /// The numbers.
        numbers: Vec<i64>,
    }

    fn sum() -> CustomTool {
        tool_fn("sum", "Adds numbers.", |sum: Sum, _| Box::pin(async move { Ok(sum.numbers.iter().sum::<i64>()) }))
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
    }

    fn world() -> ToolEnvironment {
        ToolEnvironment::new(Arc::new(Workspace::closed()), Arc::new(SystemClock), String::new())
    }

    fn definition(tool: CustomTool) -> Tool {
        let server = ServerName::parse("s").unwrap();
        InProcessTools::for_application(&server, [Arc::new(tool) as Arc<_>], world()).unwrap().definitions()[0].clone()
    }

    #[test]
    fn a_closure_tool_is_defined_by_its_types_and_builder_settings() {
        let tool = sum().with_title("Sum").with_category(Category::Search).with_tags(["math", "add"]);
        let tool = definition(tool.with_example(r#"{"numbers": [1]}"#).with_annotations(ToolAnnotations::READ_ONLY));
        let schema = tool.input_schema();
        assert_eq!(schema["properties"]["numbers"]["description"], "The numbers.");
        assert_eq!((&schema["additionalProperties"], &schema["examples"]), (&json!(false), &json!([{"numbers": [1]}])));
        assert_eq!(
            (tool.title(), tool.category, tool.tags.join(" ")),
            (Some("Sum"), Category::Search, "add math".into())
        );
        assert_eq!((tool.source().label(), tool.output_schema()), ("embedded:s".into(), None));
        assert_eq!(tool.advertised(), tool.definition());
    }

    #[test]
    fn a_closure_tool_accepts_a_custom_input_schema() {
        let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]});
        let double = tool_fn("double", "Doubles a number.", |given: Map<String, Value>, _| {
            Box::pin(async move { Ok(json!({"twice": given["x"].as_i64().map(|x| 2 * x)})) })
        });
        let bench = Bench::new().adding(double.with_input_schema(schema).touching_nothing());
        let result = bench.call("double", json!({"x": 4})).unwrap();
        assert_eq!(result.structured_content(), Some(&json!({"twice": 8})));
        assert_eq!(bench.call("double", json!({})).unwrap_err().kind, ErrorKind::InvalidInput);
    }

    #[test]
    fn a_tool_that_declares_no_accesses_requires_approval() {
        let rule = |effect, text: &str| {
            Arc::new(PermissionRule::parse(effect, text, RuleOrigin::CommandLine, &PatternContext::default()).unwrap())
        };
        let verdict = |tool: CustomTool, rules: &[(Effect, &str)], mode| {
            let server = ServerName::parse("s").unwrap();
            let tools = InProcessTools::named(&server, [Arc::new(tool) as Arc<_>], world()).unwrap();
            let call = samples::call(1, tools.definitions()[0].clone(), json!({"numbers": []}));
            let rules = rules.iter().map(|(effect, text)| rule(*effect, text)).collect();
            let policy = PermissionPolicy { rules, mode, ..PermissionPolicy::default() };
            policy.decide(&call.tool, &call.arguments, &block_on(tools.accesses(&call)).unwrap()).verdict
        };
        let default = |tool| verdict(tool, &[], PermissionMode::Default);
        assert_eq!(default(sum()), Verdict::Ask);
        assert_eq!(default(sum().with_annotations(ToolAnnotations::READ_ONLY)), Verdict::Ask);
        assert_eq!(default(sum().touching_nothing()), Verdict::Allow);
        assert_eq!(
            default(sum().touches(|_: Sum, _| Box::pin(async { Ok(Access::Send("ada".into()).into()) }))),
            Verdict::Ask
        );
        assert_eq!(verdict(sum(), &[], PermissionMode::Plan), Verdict::Deny);
        assert_eq!(verdict(sum(), &[(Effect::Allow, "mcp__s__sum")], PermissionMode::Default), Verdict::Allow);
        assert_eq!(verdict(sum(), &[(Effect::Allow, "mcp__s")], PermissionMode::Default), Verdict::Allow);
        assert_eq!(verdict(sum(), &[(Effect::Allow, "mcp__other")], PermissionMode::Default), Verdict::Ask);
        assert_eq!(
            verdict(sum().touching_nothing(), &[(Effect::Deny, "mcp__s__sum")], PermissionMode::Default),
            Verdict::Deny
        );
    }

    #[derive(Serialize, JsonSchema)]
    struct Weather {
        degrees: f64,
        wind: Option<u8>,
        words: Vec<String>,
        by_hour: BTreeMap<String, Sky>,
    }

    #[derive(Serialize, JsonSchema)]
    #[serde(tag = "kind")]
    enum Sky {
        Clear,
        Clouds { oktas: u8 },
    }

    /// Checks a value against the schema of its type.
    #[track_caller]
    fn check<T: ToolOutput>(value: T, has_schema: bool, text: &str) {
        let (schema, result) = (T::schema(), value.into_result().unwrap());
        assert_eq!(schema.is_some(), has_schema);
        assert!(result.joined_text().contains(text), "{}", result.joined_text());
        if let Some(schema) = schema {
            assert_eq!(schema["type"], "object");
            let schema = ToolInputSchema::compile(&schema, FormatValidation::Asserted).unwrap();
            schema.validate(result.structured_content().unwrap()).unwrap();
        }
    }

    #[test]
    fn the_serialized_value_of_a_type_matches_its_generated_schema() {
        let by_hour = BTreeMap::from([("6".to_owned(), Sky::Clear), ("7".to_owned(), Sky::Clouds { oktas: 3 })]);
        check(Weather { degrees: 1.5, wind: None, words: vec![], by_hour }, true, "1.5");
        check(Weather { degrees: 1.0, wind: Some(1), words: vec!["a".into()], by_hour: BTreeMap::new() }, true, "wind");
        check(Sky::Clouds { oktas: 8 }, true, "oktas");
        check("a text".to_owned(), false, "a text");
        check(7, false, "7");
        check(vec![1, 2], false, "1");
        check(json!({"a": 1}), false, "a");
        check(UnstructuredResult(ToolResult::image("", "image/png")), false, "");
    }

    struct Greet;

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Whom {
        name: String,
    }

    #[derive(Serialize, JsonSchema)]
    struct Greeting {
        text: String,
    }

    impl TypedTool for Greet {
        const NAME: &str = "greet";
        const DESCRIPTION: &str = "Greets somebody.";
        const TOUCHES: DeclaredAccesses = DeclaredAccesses::NoAccess;
        type Input = Whom;
        type Output = Greeting;

        async fn run(&self, whom: Whom, _: &ToolContext<'_>) -> Result<Greeting, ToolFailure> {
            Ok(Greeting { text: format!("Hello, {}!", whom.name) })
        }
    }

    #[test]
    fn a_typed_tool_returns_structured_content_and_advertises_its_output_schema() {
        let bench = Bench::new().adding(typed(Greet));
        let result = bench.call("greet", json!({"name": "Ada"})).unwrap();
        assert_eq!(result.structured_content(), Some(&json!({"text": "Hello, Ada!"})));
        assert_eq!(bench.call_unchecked("greet", json!({"name": "Ada"})).unwrap(), []);
        let tool = definition(typed(Greet));
        assert_eq!(tool.output_schema().unwrap()["properties"]["text"]["type"], "string");
        assert!(tool.advertised().contains_key("outputSchema"));
    }

    #[test]
    fn uncallable_tools_report_the_reason_and_invalid_tool_names_are_rejected() {
        let number = tool_fn("n", "Takes a number.", |_: u8, _| Box::pin(async { Ok(()) }));
        let Availability::Unavailable(why) = definition(number).availability else { panic!() };
        assert!(why.contains("struct or a map"), "{why}");
        let server = tool_group("s", "1", [sum(), sum()]).unwrap();
        assert!(matches!(server.provider(world()), Err(InvalidInProcessTools::Duplicate(_))));
        let named = |name: &str| tool_fn(name, "x", |_: Sum, _| Box::pin(async { Ok(()) }));
        assert!(matches!(
            tool_group("s", "1", [named("a b")]).unwrap().provider(world()),
            Err(InvalidInProcessTools::Name(_))
        ));
        assert!(tool_group("a__b", "1", [sum()]).is_err());
        let program = |name| ToolGroup::for_application(ServerName::program(), Vec::new()).with(named(name));
        for name in ["Read", "read_file", "Bash"] {
            assert_eq!(program(name).provider(world()).unwrap_err(), InvalidInProcessTools::BuiltInName(name.into()));
        }
        assert!(tool_group("s", "1", [named("Read")]).unwrap().provider(world()).is_ok());
    }

    #[test]
    fn a_group_of_added_tools_satisfies_the_provider_contract() {
        let server = tool_group("s", "1.2", [sum(), typed(Greet)]).unwrap();
        let provider = server.provider(world()).unwrap();
        assert_eq!(provider.version().as_deref(), Some("1.2"));
        block_on(tool_provider_contract(&provider));
    }
}
