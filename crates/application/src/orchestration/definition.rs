//! The definition of a tool that finds or calls others, in its full and its brief form.

use serde_json::{Map, Value};
use toolstead_domain::{Category, Tool, ToolAnnotations, ToolName, ToolSource};

/// Hints of a tool that may do anything, since its nested calls may.
pub(super) const ANYTHING: ToolAnnotations = ToolAnnotations {
    read_only_hint: Some(false),
    destructive_hint: Some(true),
    idempotent_hint: Some(false),
    open_world_hint: Some(true),
};

/// Texts, schemas and hints of a tool that calls or finds other tools.
pub(super) struct ToolDefinition<'a> {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'a str,
    /// Schema of its arguments.
    pub(super) input: Value,
    /// Schema of the structured result; `None` if the tool returns the result of another tool.
    pub(super) output: Option<Value>,
    /// Description in the list that is sent to models.
    pub(super) brief: &'a str,
    /// Schema of the arguments in the list that is sent to models.
    pub(super) brief_input: Value,
    pub(super) hints: ToolAnnotations,
}

impl ToolDefinition<'_> {
    /// Returns the tool.
    pub(super) fn tool(self) -> Tool {
        let members = |description: &str, schema: Value, hints: Value| {
            let mut members = Map::new();
            members.insert("name".into(), self.name.into());
            members.insert("title".into(), self.title.into());
            members.insert("description".into(), description.into());
            members.insert("inputSchema".into(), schema);
            members.insert("annotations".into(), hints);
            members
        };
        let brief = members(self.brief, self.brief_input, self.hints.beside_defaults());
        let mut whole = members(self.description, self.input, self.hints.to_json());
        whole.extend(self.output.map(|output| ("outputSchema".to_owned(), output)));
        let name = ToolName::for_plain_upstream(self.name);
        Tool::new(name, whole, Category::Utility, ToolSource::BuiltIn).advertised_as(brief)
    }
}
