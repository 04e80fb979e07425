//! A tool's definition.

use crate::{alias::Alias, category::Category, server_name::ServerName, tool_name::ToolName};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The provider whose tools may say that they are built in ([`ToolSource::BuiltIn`]), and the label of that source.
pub const BUILT_IN: &str = "built-in";

/// A tool as it is known here: MCP's definition as a JSON object, and what Toolstead adds to it.
///
/// The object is the one that goes on the wire (MCP 2025-11-25, server/tools, "Tool"), with every member that its
/// server sent; only `name` is ours. Accessors read it where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    name: ToolName,
    rule_name: ToolName,
    definition: Arc<Map<String, Value>>,
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
}

/// Who provides a tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolSource {
    /// One of Toolstead's own. Where a rule or a default trusts what a tool says of itself, it trusts these alone, so a
    /// tool of any other provider than [`BUILT_IN`] never has this source, whatever its author wrote.
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
pub enum Availability {
    /// It can.
    Available,
    /// It cannot; the sentence says what is missing. Such a tool is listed by the CLI and advertised to nobody.
    Unavailable(String),
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

impl Tool {
    /// A tool of this definition. `definition.name` is set to `name`, in place where it is there already.
    pub fn new(name: ToolName, mut definition: Map<String, Value>, category: Category, source: ToolSource) -> Self {
        definition.insert("name".into(), name.as_str().into());
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
            definition: Arc::new(definition),
            category,
            tags: Vec::new(),
            enabled: true,
            source,
            aliases: Vec::new(),
            availability: Availability::Available,
        }
    }

    /// The name under which it is offered.
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// MCP's definition, ready for the wire.
    pub fn definition(&self) -> &Map<String, Value> {
        &self.definition
    }

    /// The title for people: `title`, else `annotations.title`.
    pub fn title(&self) -> Option<&str> {
        let annotated = || self.definition.get("annotations")?.get("title")?.as_str();
        self.definition.get("title").and_then(Value::as_str).or_else(annotated)
    }

    /// The description for models; empty if there is none.
    pub fn description(&self) -> &str {
        self.definition.get("description").and_then(Value::as_str).unwrap_or("")
    }

    /// The input schema; `Null` where a server sent none.
    pub fn input_schema(&self) -> &Value {
        self.definition.get("inputSchema").unwrap_or(&Value::Null)
    }

    /// The schema of `structuredContent`, if the tool promises one.
    pub fn output_schema(&self) -> Option<&Value> {
        self.definition.get("outputSchema")
    }

    /// The hints.
    pub fn annotations(&self) -> ToolAnnotations {
        let hint = |name: &str| self.definition.get("annotations")?.get(name)?.as_bool();
        ToolAnnotations {
            read_only_hint: hint("readOnlyHint"),
            destructive_hint: hint("destructiveHint"),
            idempotent_hint: hint("idempotentHint"),
            open_world_hint: hint("openWorldHint"),
        }
    }

    /// The same tool as one of the provider of that name, unless it says already that it is not built in.
    #[must_use]
    pub fn owned_by(self, provider: &str) -> Self {
        if self.source != ToolSource::BuiltIn || provider == BUILT_IN {
            return self;
        }
        let source = ToolSource::Embedded(ServerName::parse(provider).unwrap_or_else(|_| ServerName::program()));
        let renamed = Self::new(self.name, Arc::unwrap_or_clone(self.definition), self.category, source);
        Self {
            tags: self.tags,
            enabled: self.enabled,
            aliases: self.aliases,
            availability: self.availability,
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

    /// Whether the tool may be called at all: switched on and able to work.
    pub fn is_callable(&self) -> bool {
        self.enabled && self.availability == Availability::Available
    }
}

impl ToolAnnotations {
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
    fn only_the_built_in_provider_has_built_in_tools() {
        for (provider, label, rule_name) in [
            ("built-in", "built-in", "t"),
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
