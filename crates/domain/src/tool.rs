//! A tool's definition.

mod definition;
pub mod hidden_text;

use crate::{
    access::AccessKind,
    alias::{Alias, Dialect, face::Face},
    category::Category,
    server_name::ServerName,
    tool_name::ToolName,
};
use definition::Definition;
use serde_json::{Map, Value};
use std::{borrow::Cow, sync::Arc};

/// The provider whose tools may say that they are built in ([`ToolSource::BuiltIn`]), and the label of that source.
pub const BUILT_IN: &str = "built-in";

/// The provider of Toolstead's own tools that call other tools. No server can bear this name.
pub const ORCHESTRATION: &str = "built-in (orchestration)";

/// A tool as it is known here: MCP's definition as a JSON object, and what Toolstead adds to it.
///
/// The object is the one that goes on the wire (MCP 2025-11-25, server/tools, "Tool"), with every member that its
/// server sent; only `name` is ours. Accessors read it where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    name: ToolName,
    rule_name: ToolName,
    definition: Definition,
    advertised: Option<Definition>,
    /// What the tool is for.
    pub category: Category,
    /// Free words to filter by, sorted.
    pub tags: Vec<String>,
    /// Whether an operator left it switched on.
    pub enabled: bool,
    source: ToolSource,
    /// Other spellings that reach it, with their parameter renames.
    pub aliases: Vec<Alias>,
    /// Whether it can work here and now.
    pub availability: Availability,
    /// Whether it runs a command line that it is given: then a command pattern stands in the parentheses of rules that
    /// name it.
    pub takes_command_lines: bool,
    /// How it reads stored outputs, if it does: who gets a handle is told of it.
    pub reads_outputs: Option<OutputReading>,
    /// Whether its arguments are those of other calls, so that references to stored outputs among them are followed by
    /// these and not by its own.
    pub passes_references_on: bool,
    /// Tells whether it means something only in a call of its own, so that no batch of calls holds it.
    pub stands_alone: bool,
    stands_for: Option<AccessKind>,
}

/// How a tool reads a stored output, by the names of its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum OutputReading {
    /// Lines of it.
    Lines {
        /// Takes the handle.
        handle: Cow<'static, str>,
        /// Takes the number of the first line.
        first: Cow<'static, str>,
    },
    /// The lines that fit a pattern.
    Matches {
        /// Takes the handle.
        handle: Cow<'static, str>,
        /// Takes the pattern.
        pattern: Cow<'static, str>,
    },
}

/// Who provides a tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum ToolSource {
    /// One of Toolstead's own. Where a rule or a default trusts what a tool says of itself, it trusts these alone, so a
    /// tool of any other provider than [`BUILT_IN`] and [`ORCHESTRATION`] never has this source, whatever its author wrote.
    BuiltIn,
    /// Served by an MCP server.
    McpServer {
        /// The server, as the configuration names it.
        server: ServerName,
        /// The tool's name over there, character by character.
        tool: Arc<str>,
    },
    /// Added by a program that embeds Toolstead; the name is its provider's.
    Embedded(ServerName),
}

/// Whether a tool can work here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Availability {
    /// It can.
    Available,
    /// It cannot; the sentence says what is missing. Such a tool is listed by the CLI and advertised to nobody.
    Unavailable(String),
}

/// A part of a definition that a model or a person decides by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DefinitionPart {
    /// Its title.
    Title,
    /// Its description.
    Description,
    /// The schema of its arguments.
    InputSchema,
    /// The schema of its structured content.
    OutputSchema,
    /// Its hints.
    Annotations,
}

/// MCP's hints (2025-11-25, schema, `ToolAnnotations`). They inform people; no rule trusts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolAnnotations {
    /// The tool changes nothing. Absent means it may.
    pub read_only_hint: Option<bool>,
    /// The tool may destroy something.
    pub destructive_hint: Option<bool>,
    /// Calling it twice does no more than calling it once.
    pub idempotent_hint: Option<bool>,
    /// The tool reaches beyond this machine.
    pub open_world_hint: Option<bool>,
}

impl OutputReading {
    /// Reads lines: `handle` and `first` are the parameters for the handle and the number of the first line.
    pub const fn lines(handle: &'static str, first: &'static str) -> Self {
        Self::Lines { handle: Cow::Borrowed(handle), first: Cow::Borrowed(first) }
    }

    /// Searches: `handle` and `pattern` are the parameters for the handle and the pattern.
    pub const fn matches(handle: &'static str, pattern: &'static str) -> Self {
        Self::Matches { handle: Cow::Borrowed(handle), pattern: Cow::Borrowed(pattern) }
    }
}

impl Tool {
    /// A tool of this definition. `definition.name` is set to `name`, in place where it is there already. A definition
    /// with characters that hide or turn around what is read is kept as it is, and the tool is unavailable.
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

    /// Creates a tool whose definition is built when it is read first. For tools of this program: `build` inserts the name,
    /// and its texts are not searched for characters that hide or reorder text.
    pub fn deferred(
        name: ToolName,
        build: impl FnOnce() -> Map<String, Value> + Send + 'static,
        category: Category,
        source: ToolSource,
    ) -> Self {
        Self::with_definition(name, Definition::deferred(build), Availability::Available, category, source)
    }

    fn with_definition(
        name: ToolName,
        definition: Definition,
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
            enabled: true,
            source,
            aliases: Vec::new(),
            availability,
            takes_command_lines: false,
            reads_outputs: None,
            passes_references_on: false,
            stands_alone: false,
            stands_for: None,
        }
    }

    /// The name under which it is offered.
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// The name that is its own, whatever name it is shown under.
    pub fn own_name(&self) -> &ToolName {
        match &self.source {
            ToolSource::BuiltIn => &self.rule_name,
            ToolSource::McpServer { .. } | ToolSource::Embedded(_) => &self.name,
        }
    }

    /// The face in which a call under this name is answered: that of the name, else, under the tool's own name, the first
    /// that it has in the caller's dialect. A name of several other systems says nothing.
    pub fn face_for(&self, dialect: Option<Dialect>, called_as: &str) -> Option<&'static Face> {
        let of_dialect = || self.aliases.iter().filter(|alias| Some(alias.dialect) == dialect);
        let named = of_dialect().find(|alias| alias.name == called_as);
        if called_as == self.own_name().as_str() {
            return named.and_then(|alias| alias.face).or_else(|| of_dialect().find_map(|alias| alias.face));
        }
        if let Some(alias) = named {
            return alias.face;
        }
        let mut named = self.aliases.iter().filter(|alias| alias.name == called_as);
        match (named.next(), named.next()) {
            (Some(alias), None) => alias.face,
            _ => None,
        }
    }

    /// The tool as a dialect shows it: once for each of its faces there, in their order; `None` where it has none.
    pub fn shown_in(&self, dialect: Dialect) -> Option<Vec<Self>> {
        let of_dialect = self.aliases.iter().filter(|alias| alias.dialect == dialect);
        let shown: Vec<Self> = of_dialect.filter_map(|alias| self.as_face(alias.name, alias.face?)).collect();
        (!shown.is_empty()).then_some(shown)
    }

    /// Rules know it by its own name all the same.
    fn as_face(&self, name: &str, face: &Face) -> Option<Self> {
        let name = ToolName::parse(name).ok()?;
        let json = |text: &str| serde_json::from_str::<Value>(text).ok();
        let mut definition = Map::new();
        definition.insert("name".into(), name.as_str().into());
        definition.insert("description".into(), face.description.into());
        definition.insert("inputSchema".into(), json(face.input_schema)?);
        if let Some(schema) = face.output_schema {
            definition.insert("outputSchema".into(), json(schema)?);
        }
        let annotations = self.advertised().get("annotations");
        definition.extend(annotations.map(|hints| ("annotations".to_owned(), hints.clone())));
        let category = face.category.unwrap_or(self.category);
        Some(Self { name, definition: definition.into(), advertised: None, category, ..self.clone() })
    }

    /// The same tool, advertised to models by a shorter definition than the one that calls are validated against: every
    /// token of a list is paid for in each conversation.
    #[must_use]
    pub fn advertised_as(mut self, mut definition: Map<String, Value>) -> Self {
        if let Some(hidden) = hidden_text::find(&definition) {
            self.set_availability(Availability::Unavailable(hidden.to_string()));
        }
        definition.insert("name".into(), self.name.as_str().into());
        self.advertised = Some(definition.into());
        self
    }

    /// Advertises a shorter definition, as [`advertised_as`](Self::advertised_as) does, that is built when it is read first.
    /// As in [`deferred`](Self::deferred), `build` inserts the name.
    #[must_use]
    pub fn advertised_by(mut self, build: impl FnOnce() -> Map<String, Value> + Send + 'static) -> Self {
        self.advertised = Some(Definition::deferred(build));
        self
    }

    /// Returns `true` if both definitions of this tool equal those of another. Builds neither for clones.
    pub fn has_definitions_of(&self, other: &Self) -> bool {
        self.definition == other.definition && self.advertised == other.advertised
    }

    /// Returns `true` if a definition of this tool was built.
    pub fn is_built(&self) -> bool {
        self.definition.is_built() || self.advertised.as_ref().is_some_and(Definition::is_built)
    }

    /// Marks it as the tool by which requests of this kind are judged: it is not a tool that can be called.
    #[must_use]
    pub fn standing_for(mut self, requests: AccessKind) -> Self {
        self.stands_for = Some(requests);
        self
    }

    /// The kind of requests that are judged as this tool, if it is not a tool that can be called.
    pub fn stands_for(&self) -> Option<AccessKind> {
        self.stands_for
    }

    /// MCP's definition, whole.
    pub fn definition(&self) -> &Map<String, Value> {
        self.definition.get()
    }

    /// The definition that a list for models carries: the whole one, unless a shorter one was written.
    pub fn advertised(&self) -> &Map<String, Value> {
        self.advertised.as_ref().unwrap_or(&self.definition).get()
    }

    /// Returns the definition of [`advertised_as`](Self::advertised_as), if there is one.
    #[cfg(feature = "serde")]
    pub(crate) fn short_definition(&self) -> Option<&Map<String, Value>> {
        self.advertised.as_ref().map(Definition::get)
    }

    /// The title for people: `title`, else `annotations.title`.
    pub fn title(&self) -> Option<&str> {
        let annotated = || self.definition().get("annotations")?.get("title")?.as_str();
        self.definition().get("title").and_then(Value::as_str).or_else(annotated)
    }

    /// The description for models; empty if there is none.
    pub fn description(&self) -> &str {
        self.definition().get("description").and_then(Value::as_str).unwrap_or("")
    }

    /// The input schema; `Null` where a server sent none.
    pub fn input_schema(&self) -> &Value {
        self.definition().get("inputSchema").unwrap_or(&Value::Null)
    }

    /// The schema of `structuredContent`, if the tool promises one.
    pub fn output_schema(&self) -> Option<&Value> {
        self.definition().get("outputSchema")
    }

    /// The hints.
    pub fn annotations(&self) -> ToolAnnotations {
        let hint = |name: &str| self.definition().get("annotations")?.get(name)?.as_bool();
        ToolAnnotations {
            read_only_hint: hint("readOnlyHint"),
            destructive_hint: hint("destructiveHint"),
            idempotent_hint: hint("idempotentHint"),
            open_world_hint: hint("openWorldHint"),
        }
    }

    /// The parts in which another definition of the tool differs. The order of members does not count.
    pub fn differences(&self, other: &Self) -> Vec<DefinitionPart> {
        let differs =
            |part: &DefinitionPart| self.definition().get(part.member()) != other.definition().get(part.member());
        DefinitionPart::ALL.into_iter().filter(differs).collect()
    }

    /// The same tool as one of the provider of that name, unless it says already that it is not built in.
    #[must_use]
    pub fn owned_by(self, provider: &str) -> Self {
        if self.source != ToolSource::BuiltIn || provider == BUILT_IN || provider == ORCHESTRATION {
            return self;
        }
        let source = ToolSource::Embedded(ServerName::parse(provider).unwrap_or_else(|_| ServerName::program()));
        let renamed = Self::new(self.name, self.definition.into_map(), self.category, source);
        Self {
            tags: self.tags,
            enabled: self.enabled,
            aliases: self.aliases,
            availability: self.availability,
            advertised: self.advertised,
            takes_command_lines: self.takes_command_lines,
            reads_outputs: self.reads_outputs,
            passes_references_on: self.passes_references_on,
            stands_alone: self.stands_alone,
            stands_for: self.stands_for,
            ..renamed
        }
    }

    /// Where it comes from.
    pub fn source(&self) -> &ToolSource {
        &self.source
    }

    /// The name by which rules know it: `mcp__{server}__{tool}` also where the names of a server or of an embedding
    /// program are advertised unchanged.
    pub fn rule_name(&self) -> &ToolName {
        &self.rule_name
    }

    /// The MCP server that serves it, or the provider that an embedding program registered.
    pub fn server(&self) -> Option<&ServerName> {
        match &self.source {
            ToolSource::McpServer { server, .. } | ToolSource::Embedded(server) => Some(server),
            ToolSource::BuiltIn => None,
        }
    }

    /// Makes a tool unavailable that could be called otherwise.
    pub fn set_availability(&mut self, availability: Availability) {
        if self.availability == Availability::Available {
            self.availability = availability;
        }
    }

    /// The other spellings of a server's tool: `{server}__{tool}`, `mcp_{server}_{tool}` and, where the name alone says
    /// which tool it is, `mcp_{tool}`.
    pub fn upstream_spellings(&self) -> Option<[String; 3]> {
        let ToolSource::McpServer { server, tool } = &self.source else { return None };
        Some([format!("{server}__{tool}"), format!("mcp_{server}_{tool}"), format!("mcp_{tool}")])
    }

    /// Whether the tool may be called at all: switched on and able to work.
    pub fn is_callable(&self) -> bool {
        self.enabled && self.availability == Availability::Available
    }
}

impl DefinitionPart {
    /// All parts.
    pub const ALL: [Self; 5] =
        [Self::Title, Self::Description, Self::InputSchema, Self::OutputSchema, Self::Annotations];

    /// MCP's name of the member.
    pub fn member(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Description => "description",
            Self::InputSchema => "inputSchema",
            Self::OutputSchema => "outputSchema",
            Self::Annotations => "annotations",
        }
    }

    /// The part of this member.
    pub fn of_member(member: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.member() == member)
    }
}

impl std::fmt::Display for DefinitionPart {
    /// As people say it.
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

    /// The hints of a tool that only reads.
    pub const READ_ONLY: Self = Self {
        read_only_hint: Some(true),
        destructive_hint: Some(false),
        idempotent_hint: Some(true),
        open_world_hint: Some(false),
    };

    /// The hints of a tool that may replace or remove what is there.
    pub const WRITING: Self = Self {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(false),
    };

    /// The hints as JSON without those that say what MCP takes for granted of a tool that says nothing, and without
    /// those that mean nothing of a tool that only reads.
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

    /// The members that are set, with MCP's names.
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
    /// The source as one word, for lists and the audit trail: `built-in`, `mcp:SERVER` or `embedded:NAME`.
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
    fn a_definition_that_hides_text_is_kept_as_it_is_and_its_tool_unavailable() {
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
    fn a_definition_keeps_members_that_nobody_here_knows_and_their_order() {
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
    fn a_definition_differs_in_what_somebody_decides_by() {
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
            let owned = Tool { tags: vec!["x".into()], ..tool }.owned_by(provider);
            assert_eq!((owned.source().label().as_str(), owned.rule_name().as_str()), (label, rule_name));
            assert_eq!((owned.name().as_str(), owned.tags.len()), ("t", 1), "all else stays");
        }
    }
}
