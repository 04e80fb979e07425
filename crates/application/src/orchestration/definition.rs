//! The definition of a tool that calls others, in its full and its brief form.

use serde_json::{Map, Value};
use toolstead_domain::{Category, Tool, ToolAnnotations, ToolName, ToolSource};

/// The texts and schemas of such a tool. It may do anything, since its nested calls may.
pub(super) struct Definition<'a> {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'a str,
    /// Schema of its arguments.
    pub(super) input: Value,
    /// Schema of its structured result.
    pub(super) output: Value,
    /// Description in the list that is sent to models.
    pub(super) brief: &'a str,
    /// Schema of the arguments in that list.
    pub(super) brief_input: Value,
}

impl Definition<'_> {
    /// Returns the tool.
    pub(super) fn tool(self) -> Tool {
        let hints = ToolAnnotations {
            read_only_hint: Some(false),
            destructive_hint: Some(true),
            idempotent_hint: Some(false),
            open_world_hint: Some(true),
        };
        let members = |description: &str, schema: Value, hints: Value| {
            let mut members = Map::new();
            members.insert("name".into(), self.name.into());
            members.insert("title".into(), self.title.into());
            members.insert("description".into(), description.into());
            members.insert("inputSchema".into(), schema);
            members.insert("annotations".into(), hints);
            members
        };
        let brief = members(self.brief, self.brief_input, hints.beside_defaults());
        let mut whole = members(self.description, self.input, hints.to_json());
        whole.insert("outputSchema".into(), self.output);
        let name = ToolName::for_plain_upstream(self.name);
        Tool::new(name, whole, Category::Utility, ToolSource::BuiltIn).advertised_as(brief)
    }
}
