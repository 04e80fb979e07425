//! The definition of a tool.

mod definition;
pub mod hidden_text;
pub mod overlay;

use crate::{
    access::AccessKind,
    alias::{Alias, Dialect, dialect_adapter::DialectAdapter},
    category::Category,
    pinning::PendingDefinitionChange,
    server_name::ServerName,
    tool_name::ToolName,
};
use definition::LazyDefinition;
use serde_json::{Map, Value};
use std::{borrow::Cow, sync::Arc};

/// Name of the provider whose tools may have the source [`ToolSource::BuiltIn`], and label of that source.
pub const BUILT_IN: &str = "built-in";

/// Name of the provider of Toolstead's own tools that call other tools. No server can have this name.
pub const ORCHESTRATION: &str = "built-in (orchestration)";

/// Tool: the MCP definition as a JSON object, and what Toolstead adds to it.
///
/// The object is sent on the wire unchanged (MCP 2025-11-25, server/tools, "Tool"), with every member that its server
/// sent; only `name` is set by Toolstead. Accessors read from this object.
///
/// ```
/// use serde_json::json;
/// use toolstead_domain::{
///     category::Category,
///     tool::{Tool, ToolSource},
///     tool_name::ToolName,
/// };
///
/// let definition = json!({"description": "Adds numbers.", "inputSchema": {"type": "object"}});
/// let members = definition.as_object().unwrap().clone();
/// let tool = Tool::new(ToolName::parse("add").unwrap(), members, Category::Utility, ToolSource::BuiltIn);
/// assert_eq!(tool.description(), "Adds numbers.");
/// assert_eq!(tool.definition()["name"], "add");
/// assert!(tool.is_callable());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    name: ToolName,
    rule_name: ToolName,
    definition: LazyDefinition,
    advertised: Option<LazyDefinition>,
    /// Purpose of the tool.
    pub category: Category,
    /// Free words for filtering, sorted.
    pub tags: Vec<String>,
    /// Words, separated by spaces, by which a search of tools also finds the tool. Models never receive them, and they
    /// are not stored.
    pub keywords: &'static str,
    /// `false` if an operator disabled the tool.
    pub enabled: bool,
    source: ToolSource,
    /// Other names of the tool, with their parameter renames.
    pub aliases: Vec<Alias>,
    /// Availability in the current environment.
    pub availability: Availability,
    /// `true` if the tool runs a command line from its arguments. The parentheses of rules that name it then contain a
    /// command pattern.
    pub takes_command_lines: bool,
    /// Parameters for reading stored outputs, if the tool can read them. Results with a handle mention the tool.
    pub reads_outputs: Option<OutputReaderParameters>,
    /// `true` if its arguments are those of other calls, so that references to stored outputs among them are resolved
    /// by these calls.
    pub passes_references_on: bool,
    /// `true` if the tool is meaningful only in a call of its own, so that no batch of calls may contain it.
    pub stands_alone: bool,
    /// Change of the definition that is not approved. Set by the registry, never stored.
    pub pending: Option<Arc<PendingDefinitionChange>>,
    stands_for: Option<AccessKind>,
}

/// Way in which a tool reads a stored output, with the names of its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum OutputReaderParameters {
    /// Reads lines of the output.
    Lines {
        /// Parameter for the handle.
        handle: Cow<'static, str>,
        /// Parameter for the number of the first line.
        first: Cow<'static, str>,
    },
    /// Reads the lines that match a pattern.
    Matches {
        /// Parameter for the handle.
        handle: Cow<'static, str>,
        /// Parameter for the pattern.
        pattern: Cow<'static, str>,
    },
}

/// Provider of a tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum ToolSource {
    /// One of Toolstead's own tools. Rules and defaults that trust the self-description of a tool trust only these, so
    /// a tool of a provider other than [`BUILT_IN`] and [`ORCHESTRATION`] never has this source, whatever its author
    /// sets.
    BuiltIn,
    /// Served by an MCP server.
    McpServer {
        /// Name of the server in the configuration.
        server: ServerName,
        /// Name of the tool on the server, unchanged.
        tool: Arc<str>,
    },
    /// Added by an embedding application; the name is that of its provider.
    Embedded(ServerName),
}

/// Availability of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Availability {
    /// The tool can be used.
    Available,
    /// The tool cannot be used; the sentence names what is missing. Such a tool is listed by the CLI and not
    /// advertised.
    Unavailable(String),
}

/// Part of a definition on which a model or a user relies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DefinitionPart {
    /// Title.
    Title,
    /// Description.
    Description,
    /// Schema of the arguments.
    InputSchema,
    /// Schema of the structured content.
    OutputSchema,
    /// Hints.
    Annotations,
}

/// Hints of MCP (2025-11-25, schema, `ToolAnnotations`). They are information for users; no rule trusts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolAnnotations {
    /// `true` if the tool changes nothing. If absent, it may.
    pub read_only_hint: Option<bool>,
    /// `true` if the tool may destroy something.
    pub destructive_hint: Option<bool>,
    /// `true` if repeating a call has no further effect.
    pub idempotent_hint: Option<bool>,
    /// `true` if the tool reaches beyond this machine.
    pub open_world_hint: Option<bool>,
}

impl OutputReaderParameters {
    /// Returns a reading by lines: `handle` and `first` are the parameters for the handle and the number of the first
    /// line.
    pub const fn lines(handle: &'static str, first: &'static str) -> Self {
        Self::Lines { handle: Cow::Borrowed(handle), first: Cow::Borrowed(first) }
    }

    /// Returns a reading by search: `handle` and `pattern` are the parameters for the handle and the pattern.
    pub const fn matches(handle: &'static str, pattern: &'static str) -> Self {
        Self::Matches { handle: Cow::Borrowed(handle), pattern: Cow::Borrowed(pattern) }
    }
}

impl Tool {
    /// Creates a tool with this definition. The member `name` is set to `name`, in its existing position if it has one.
    /// A definition with characters that hide or reorder text is stored unchanged, and the tool is unavailable.
    pub fn new(name: ToolName, mut definition: Map<String, Value>, category: Category, source: ToolSource) -> Self {
        let own_name = match &source {
            ToolSource::McpServer { tool, .. } => hidden_text::find_in_text("name", tool),
            ToolSource::BuiltIn | ToolSource::Embedded(_) => None,
        };
        let availability = match own_name.or_else(|| hidden_text::find(&definition)) {
            Some(hidden) => Availability::Unavailable(hidden.to_string()),
            None => Availability::Available,
        };
        definition.insert("name".into(), name.as_str().into());
        Self::with_definition(name, definition.into(), availability, category, source)
    }

    /// Creates a tool whose definition is built when it is first read. For in-process tools: `build` inserts the name,
    /// and its texts are not searched for characters that hide or reorder text.
    pub fn deferred(
        name: ToolName,
        build: impl FnOnce() -> Map<String, Value> + Send + 'static,
        category: Category,
        source: ToolSource,
    ) -> Self {
        Self::with_definition(name, LazyDefinition::deferred(build), Availability::Available, category, source)
    }

    fn with_definition(
        name: ToolName,
        definition: LazyDefinition,
        availability: Availability,
        category: Category,
        source: ToolSource,
    ) -> Self {
        let rule_name = match &source {
            ToolSource::McpServer { server, tool } => ToolName::for_upstream(server, tool),
            ToolSource::Embedded(provider) if !name.as_str().starts_with("mcp__") => {
                ToolName::for_upstream(provider, name.as_str())
            }
            ToolSource::BuiltIn | ToolSource::Embedded(_) => name.clone(),
        };
        Self {
            name,
            rule_name,
            definition,
            advertised: None,
            category,
            tags: Vec::new(),
            keywords: "",
            enabled: true,
            source,
            aliases: Vec::new(),
            availability,
            takes_command_lines: false,
            reads_outputs: None,
            passes_references_on: false,
            stands_alone: false,
            pending: None,
            stands_for: None,
        }
    }

    /// Returns the name under which the tool is offered.
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// Returns the name of a built-in tool itself, even if a dialect or view shows it under another name. For any other
    /// tool, returns the name under which it is shown.
    pub fn own_name(&self) -> &ToolName {
        match &self.source {
            ToolSource::BuiltIn => &self.rule_name,
            ToolSource::McpServer { .. } | ToolSource::Embedded(_) => &self.name,
        }
    }

    /// Returns the dialect adapter for a call with this name: that of the name, or, for the tool's own name, the first
    /// one in the caller's dialect. `None` if the name belongs to several other systems.
    pub fn adapter_for(&self, dialect: Option<Dialect>, called_as: &str) -> Option<&'static DialectAdapter> {
        let of_dialect = || self.aliases.iter().filter(|alias| Some(alias.dialect) == dialect);
        let named = of_dialect().find(|alias| alias.name == called_as);
        if called_as == self.own_name().as_str() {
            return named.and_then(|alias| alias.adapter).or_else(|| of_dialect().find_map(|alias| alias.adapter));
        }
        if let Some(alias) = named {
            return alias.adapter;
        }
        let mut named = self.aliases.iter().filter(|alias| alias.name == called_as);
        match (named.next(), named.next()) {
            (Some(alias), None) => alias.adapter,
            _ => None,
        }
    }

    /// Returns the tool as a dialect shows it: once for each of its adapters in this dialect, in their order; `None` if
    /// it has no adapter in it.
    pub fn shown_in(&self, dialect: Dialect) -> Option<Vec<Self>> {
        let of_dialect = self.aliases.iter().filter(|alias| alias.dialect == dialect);
        let shown: Vec<Self> = of_dialect.filter_map(|alias| self.adapt(alias.name, alias.adapter?)).collect();
        (!shown.is_empty()).then_some(shown)
    }

    /// Returns the tool with the name and the adapter of an alias; `None` if the name or the adapter's definition is
    /// unusable. Rules still match the tool by its own name.
    fn adapt(&self, name: &str, adapter: &DialectAdapter) -> Option<Self> {
        let name = ToolName::parse(name).ok()?;
        let adapted = adapter.definition()?;
        let mut definition = Map::new();
        definition.insert("name".into(), name.as_str().into());
        definition.insert("description".into(), adapted.get("description")?.clone());
        definition.insert("inputSchema".into(), adapted.get("inputSchema")?.clone());
        let output_schema = adapted.get("outputSchema");
        definition.extend(output_schema.map(|schema| ("outputSchema".to_owned(), schema.clone())));
        let annotations = self.advertised().get("annotations");
        definition.extend(annotations.map(|hints| ("annotations".to_owned(), hints.clone())));
        let category = adapter.category.unwrap_or(self.category);
        Some(Self { name, definition: definition.into(), advertised: None, category, ..self.clone() })
    }

    /// Advertises the tool to models with a shorter definition than the one that calls are validated against, because
    /// every conversation pays for each token of a tool list.
    #[must_use]
    pub fn advertised_as(mut self, mut definition: Map<String, Value>) -> Self {
        if let Some(hidden) = hidden_text::find(&definition) {
            self.set_availability(Availability::Unavailable(hidden.to_string()));
        }
        definition.insert("name".into(), self.name.as_str().into());
        self.advertised = Some(definition.into());
        self
    }

    /// Advertises a shorter definition, as [`advertised_as`](Self::advertised_as) does, that is built when it is first
    /// read. As in [`deferred`](Self::deferred), `build` inserts the name.
    #[must_use]
    pub fn advertised_by(mut self, build: impl FnOnce() -> Map<String, Value> + Send + 'static) -> Self {
        self.advertised = Some(LazyDefinition::deferred(build));
        self
    }

    /// Returns `true` if both definitions of this tool equal those of another. Builds neither for clones.
    pub fn has_definitions_of(&self, other: &Self) -> bool {
        self.definition == other.definition && self.advertised == other.advertised
    }

    /// Returns `true` if a definition of this tool was built.
    pub fn is_built(&self) -> bool {
        self.definition.is_built() || self.advertised.as_ref().is_some_and(LazyDefinition::is_built)
    }

    /// Marks the tool as the one that represents requests of this kind for rules: it is not a tool that can be called.
    #[must_use]
    pub fn standing_for(mut self, requests: AccessKind) -> Self {
        self.stands_for = Some(requests);
        self
    }

    /// Returns the kind of requests that the tool represents, if it is not a tool that can be called.
    pub fn stands_for(&self) -> Option<AccessKind> {
        self.stands_for
    }

    /// Returns the complete MCP definition.
    pub fn definition(&self) -> &Map<String, Value> {
        self.definition.get()
    }

    /// Returns the definition for tool lists of models: the complete one, unless a shorter one is set.
    pub fn advertised(&self) -> &Map<String, Value> {
        self.advertised.as_ref().unwrap_or(&self.definition).get()
    }

    /// Returns the definition of [`advertised_as`](Self::advertised_as), if there is one.
    #[cfg(feature = "serde")]
    pub(crate) fn short_definition(&self) -> Option<&Map<String, Value>> {
        self.advertised.as_ref().map(LazyDefinition::get)
    }

    /// Returns the title for users: `title`, else `annotations.title`.
    pub fn title(&self) -> Option<&str> {
        let annotated = || self.definition().get("annotations")?.get("title")?.as_str();
        self.definition().get("title").and_then(Value::as_str).or_else(annotated)
    }

    /// Returns the description for models; empty if there is none.
    pub fn description(&self) -> &str {
        self.definition().get("description").and_then(Value::as_str).unwrap_or("")
    }

    /// Returns the input schema; `Null` if the server sent none.
    pub fn input_schema(&self) -> &Value {
        self.definition().get("inputSchema").unwrap_or(&Value::Null)
    }

    /// Returns the schema of `structuredContent`, if the tool has one.
    pub fn output_schema(&self) -> Option<&Value> {
        self.definition().get("outputSchema")
    }

    /// Returns the hints.
    pub fn annotations(&self) -> ToolAnnotations {
        let hint = |name: &str| self.definition().get("annotations")?.get(name)?.as_bool();
        ToolAnnotations {
            read_only_hint: hint("readOnlyHint"),
            destructive_hint: hint("destructiveHint"),
            idempotent_hint: hint("idempotentHint"),
            open_world_hint: hint("openWorldHint"),
        }
    }

    /// Returns the parts in which the definitions of two tools differ. The order of members does not matter.
    pub fn differences(&self, other: &Self) -> Vec<DefinitionPart> {
        let differs =
            |part: &DefinitionPart| self.definition().get(part.member()) != other.definition().get(part.member());
        DefinitionPart::ALL.into_iter().filter(differs).collect()
    }

    /// Returns the tool with the embedding application's provider of this name as its source. Tools whose source is not
    /// built-in, and tools of Toolstead's own providers, are returned unchanged.
    #[must_use]
    pub fn owned_by(self, provider: &str) -> Self {
        if self.source != ToolSource::BuiltIn || provider == BUILT_IN || provider == ORCHESTRATION {
            return self;
        }
        let source = ToolSource::Embedded(ServerName::parse(provider).unwrap_or_else(|_| ServerName::program()));
        let renamed = Self::new(self.name, self.definition.into_map(), self.category, source);
        Self {
            tags: self.tags,
            keywords: self.keywords,
            enabled: self.enabled,
            aliases: self.aliases,
            availability: self.availability,
            advertised: self.advertised,
            takes_command_lines: self.takes_command_lines,
            reads_outputs: self.reads_outputs,
            passes_references_on: self.passes_references_on,
            stands_alone: self.stands_alone,
            pending: self.pending,
            stands_for: self.stands_for,
            ..renamed
        }
    }

    /// Returns the source.
    pub fn source(&self) -> &ToolSource {
        &self.source
    }

    /// Returns the name that rules match: `mcp__{server}__{tool}`, even where the names of a server or of an embedding
    /// application are advertised unchanged.
    pub fn rule_name(&self) -> &ToolName {
        &self.rule_name
    }

    /// Returns the MCP server of the tool, or the provider that the embedding application registered; `None` for a
    /// built-in tool.
    pub fn server(&self) -> Option<&ServerName> {
        match &self.source {
            ToolSource::McpServer { server, .. } | ToolSource::Embedded(server) => Some(server),
            ToolSource::BuiltIn => None,
        }
    }

    /// Sets the availability of a tool that is available so far.
    pub fn set_availability(&mut self, availability: Availability) {
        if self.availability == Availability::Available {
            self.availability = availability;
        }
    }

    /// Marks the tool as available although its definition may hide text, because a user approved it.
    #[must_use]
    pub fn approved_by_user(mut self) -> Self {
        self.availability = Availability::Available;
        self
    }

    /// Returns the other names of a server's tool: `{server}__{tool}`, `mcp_{server}_{tool}` and `mcp_{tool}`, which
    /// may also be that of another server's tool. Returns `None` for a tool of no server.
    pub fn upstream_aliases(&self) -> Option<[String; 3]> {
        let ToolSource::McpServer { server, tool } = &self.source else { return None };
        Some([format!("{server}__{tool}"), format!("mcp_{server}_{tool}"), format!("mcp_{tool}")])
    }

    /// Returns `true` if the tool may be called at all: enabled and available.
    pub fn is_callable(&self) -> bool {
        self.enabled && self.availability == Availability::Available
    }
}

impl DefinitionPart {
    /// All parts.
    pub const ALL: [Self; 5] =
        [Self::Title, Self::Description, Self::InputSchema, Self::OutputSchema, Self::Annotations];

    /// Returns the name of the member in MCP.
    pub fn member(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Description => "description",
            Self::InputSchema => "inputSchema",
            Self::OutputSchema => "outputSchema",
            Self::Annotations => "annotations",
        }
    }

    /// Returns the part with this member name.
    pub fn of_member(member: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.member() == member)
    }
}

impl std::fmt::Display for DefinitionPart {
    /// Writes the name of the part for users.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Title => "title",
            Self::Description => "description",
            Self::InputSchema => "input schema",
            Self::OutputSchema => "output schema",
            Self::Annotations => "hints",
        })
    }
}

impl ToolAnnotations {
    /// No hints.
    pub const UNSAID: Self =
        Self { read_only_hint: None, destructive_hint: None, idempotent_hint: None, open_world_hint: None };

    /// Hints of a tool that only reads.
    pub const READ_ONLY: Self = Self {
        read_only_hint: Some(true),
        destructive_hint: Some(false),
        idempotent_hint: Some(true),
        open_world_hint: Some(false),
    };

    /// Hints of a tool that may replace or remove existing data.
    pub const WRITING: Self = Self {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(false),
    };

    /// Returns the hints as JSON, without those that equal the defaults of MCP, and without those that have no meaning
    /// for a tool that only reads.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolstead_domain::tool::ToolAnnotations;
    ///
    /// assert_eq!(ToolAnnotations::READ_ONLY.beside_defaults(), json!({"readOnlyHint": true, "openWorldHint": false}));
    /// ```
    pub fn beside_defaults(self) -> Value {
        let reads = self.read_only_hint == Some(true);
        let beside = |hint: Option<bool>, usual: bool| hint.filter(|hint| *hint != usual);
        Self {
            read_only_hint: beside(self.read_only_hint, false),
            destructive_hint: beside(self.destructive_hint, true).filter(|_| !reads),
            idempotent_hint: beside(self.idempotent_hint, false).filter(|_| !reads),
            open_world_hint: beside(self.open_world_hint, true),
        }
        .to_json()
    }

    /// Returns the members that are set, with their names in MCP.
    pub fn to_json(self) -> Value {
        let hints = [
            ("readOnlyHint", self.read_only_hint),
            ("destructiveHint", self.destructive_hint),
            ("idempotentHint", self.idempotent_hint),
            ("openWorldHint", self.open_world_hint),
        ];
        hints
            .into_iter()
            .filter_map(|(name, hint)| Some((name.to_owned(), Value::Bool(hint?))))
            .collect::<Map<_, _>>()
            .into()
    }
}

impl ToolSource {
    /// Returns the source as one word, for lists and the audit log: `built-in`, `mcp:SERVER` or `embedded:NAME`.
    pub fn label(&self) -> String {
        match self {
            Self::BuiltIn => BUILT_IN.into(),
            Self::McpServer { server, .. } => format!("mcp:{server}"),
            Self::Embedded(name) => format!("embedded:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_with_hidden_text_keeps_its_definition_and_is_unavailable() {
        let server = ServerName::parse("s").unwrap();
        let tool = |own: &str, description: &str| {
            let raw = json!({"name": own, "description": description}).as_object().unwrap().clone();
            let source = ToolSource::McpServer { server: server.clone(), tool: own.into() };
            Tool::new(ToolName::for_upstream(&server, own), raw, Category::Mcp, source)
        };
        assert!(tool("a", "plain").is_callable());
        let mut hiding = tool("a", "x\u{202e}y");
        assert_eq!(hiding.description(), "x\u{202e}y");
        let Availability::Unavailable(reason) = hiding.availability.clone() else { panic!("{hiding:?}") };
        assert!(reason.contains("U+202E in `description`"), "{reason}");
        hiding.set_availability(Availability::Available);
        assert!(!hiding.is_callable(), "nothing else makes it available again");
        assert!(!tool("a\u{1b}b", "plain").is_callable());
    }

    #[test]
    fn a_definition_keeps_unknown_members_and_member_order() {
        let raw =
            json!({"x": 1, "name": "a b", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}});
        let server = ServerName::parse("s").unwrap();
        let source = ToolSource::McpServer { server: server.clone(), tool: "a b".into() };
        let tool =
            Tool::new(ToolName::for_upstream(&server, "ab"), raw.as_object().unwrap().clone(), Category::Mcp, source);
        let wire = Value::Object(tool.definition().clone()).to_string();
        assert_eq!(wire, raw.to_string().replace("a b", "mcp__s__ab"));
    }

    #[test]
    fn differences_list_changed_parts_and_ignore_member_order_and_meta() {
        let tool = |definition: &Value| {
            let definition = definition.as_object().unwrap().clone();
            Tool::new(ToolName::parse("t").unwrap(), definition, Category::Mcp, ToolSource::BuiltIn)
        };
        let base = json!({"description": "d", "inputSchema": {"type": "object", "required": []}});
        for (change, expected) in [
            (json!({}), vec![]),
            (json!({"inputSchema": {"required": [], "type": "object"}}), vec![]),
            (json!({"_meta": {"version": 2}}), vec![]),
            (json!({"description": "e"}), vec![DefinitionPart::Description]),
            (json!({"title": "T"}), vec![DefinitionPart::Title]),
            (
                json!({"inputSchema": {}, "outputSchema": {}}),
                vec![DefinitionPart::InputSchema, DefinitionPart::OutputSchema],
            ),
            (json!({"annotations": {"readOnlyHint": true}}), vec![DefinitionPart::Annotations]),
        ] {
            let mut changed = base.clone();
            changed.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            assert_eq!(tool(&base).differences(&tool(&changed)), expected, "{change}");
        }
    }

    #[test]
    fn only_the_built_in_provider_has_built_in_tools() {
        for (provider, label, rule_name) in [
            ("built-in", "built-in", "t"),
            (ORCHESTRATION, "built-in", "t"),
            ("deploys", "embedded:deploys", "mcp__deploys__t"),
            ("no name of a server!", "embedded:program", "mcp__program__t"),
        ] {
            let definition = json!({"name": "t", "annotations": {"readOnlyHint": true}}).as_object().unwrap().clone();
            let tool = Tool::new(ToolName::parse("t").unwrap(), definition, Category::Shell, ToolSource::BuiltIn);
            let owned = Tool { tags: vec!["x".into()], keywords: "y", ..tool }.owned_by(provider);
            assert_eq!((owned.source().label().as_str(), owned.rule_name().as_str()), (label, rule_name));
            assert_eq!((owned.name().as_str(), owned.tags.len(), owned.keywords), ("t", 1, "y"), "all else stays");
        }
    }
}
