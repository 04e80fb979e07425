//! Words of a definition, counted by field.

use super::stems::stems;
use serde_json::Value;
use std::collections::HashMap;
use toolstead_domain::{Tool, ToolSource};

/// Number of fields.
pub(super) const FIELDS: usize = 5;
/// Weights of the fields: name, [labels](labels), names of parameters, description, texts of the schema.
pub(super) const WEIGHTS: [f64; FIELDS] = [3.0, 2.0, 1.0, 1.0, 0.5];
/// Influences of the lengths of the fields, from 0 to 1. A tool is not less relevant if it has more labels.
pub(super) const LENGTH_INFLUENCES: [f64; FIELDS] = [0.5, 0.0, 0.75, 0.75, 0.75];
/// Index of the field of labels.
const LABELS: usize = 1;
/// Maximum depth to which a schema is read.
const MAX_DEPTH: usize = 8;
/// Prefix of the names of upstream tools, which distinguishes none of them.
const PREFIX: &str = "mcp__";

/// Occurrences of stems in the fields of one definition.
#[derive(Debug, Default, PartialEq)]
pub(super) struct DefinitionWords {
    /// Number of occurrences of each stem, by field.
    pub(super) occurrences: HashMap<String, [u32; FIELDS]>,
    /// Number of words of each field.
    pub(super) lengths: [u32; FIELDS],
}

impl DefinitionWords {
    /// Counts the stems in the definition of a tool by field. In the field of labels, each stem counts once.
    pub(super) fn of(tool: &Tool) -> Self {
        let (mut parameters, mut texts) = (Vec::new(), Vec::new());
        read_schema(tool.input_schema(), 0, &mut parameters, &mut texts);
        let name = tool.name().as_str();
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        let fields = [name, &labels(tool), &parameters.join(" "), tool.description(), &texts.join(" ")];
        let mut words = Self::default();
        for (field, text) in fields.into_iter().enumerate() {
            for stem in stems(text) {
                let occurrences = &mut words.occurrences.entry(stem).or_default()[field];
                // Aliases often differ in one part only.
                if field != LABELS || *occurrences == 0 {
                    *occurrences += 1;
                    words.lengths[field] += 1;
                }
            }
        }
        words
    }
}

/// Returns what a tool is called besides its name: title, keywords, names in other systems, tags and category.
fn labels(tool: &Tool) -> String {
    let mut labels: Vec<&str> = tool.title().into_iter().chain([tool.keywords]).collect();
    labels.extend(tool.aliases.iter().map(|alias| alias.name));
    labels.extend(tool.tags.iter().map(String::as_str));
    labels.extend(matches!(tool.source(), ToolSource::BuiltIn).then(|| tool.category.as_str()));
    labels.join(" ")
}

/// Collects the names of parameters, and the texts of a schema: descriptions, titles, constants and values of
/// enumerations.
fn read_schema<'a>(schema: &'a Value, depth: usize, parameters: &mut Vec<&'a str>, texts: &mut Vec<&'a str>) {
    if depth > MAX_DEPTH {
        return;
    }
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member) {
                    ("description" | "title" | "const", Value::String(text)) => texts.push(text),
                    ("enum", Value::Array(words)) => texts.extend(words.iter().filter_map(Value::as_str)),
                    ("properties", Value::Object(properties)) => {
                        for (name, property) in properties {
                            parameters.push(name);
                            read_schema(property, depth + 1, parameters, texts);
                        }
                    }
                    // Examples are data, and defaults are mostly numbers.
                    ("examples" | "default" | "required", _) => {}
                    (_, member) => read_schema(member, depth + 1, parameters, texts),
                }
            }
        }
        Value::Array(members) => members.iter().for_each(|one| read_schema(one, depth + 1, parameters, texts)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolstead_domain::{Alias, Category, Dialect, ServerName, ToolName};

    #[test]
    fn each_field_of_a_definition_is_indexed_with_its_own_words() {
        let definition = json!({
            "title": "Issues",
            "description": "Finds issues.",
            "inputSchema": {"type": "object", "examples": [{"state": "unrelated"}], "properties": {
                "state": {"enum": ["open", "closed"]},
                "filter": {"type": "object", "properties": {"label": {"type": "string", "description": "Its label."}}},
            }},
        });
        let server = ServerName::parse("hub").unwrap();
        let name = ToolName::for_upstream(&server, "find");
        let source = ToolSource::McpServer { server, tool: "find".into() };
        let mut tool = Tool::new(name, definition.as_object().unwrap().clone(), Category::Mcp, source);
        tool.keywords = "ticket tickets bug";
        let words = DefinitionWords::of(&tool);
        assert_eq!(words.lengths, [2, 3, 3, 2, 3]);
        let of = |stem: &str| words.occurrences.get(stem).copied();
        assert_eq!(of("find"), Some([1, 0, 0, 1, 0]));
        assert_eq!(of("issu"), Some([0, 1, 0, 1, 0]));
        assert_eq!(of("ticket"), Some([0, 1, 0, 0, 0]), "once for each tool");
        assert_eq!(of("label"), Some([0, 0, 1, 0, 1]));
        assert_eq!((of("open"), of("mcp"), of("unrel")), (Some([0, 0, 0, 0, 1]), None, None));
    }

    #[test]
    fn aliases_category_and_tags_are_indexed_as_labels() {
        let name = ToolName::parse("run").unwrap();
        let mut tool = Tool::new(name, Default::default(), Category::Shell, ToolSource::BuiltIn);
        tool.aliases = ["ExecuteCommand", "execute_line"].map(|name| Alias::new(name, Dialect("other"), &[])).into();
        tool.tags = vec!["host".into()];
        let words = DefinitionWords::of(&tool);
        let labels = words.occurrences.iter().filter(|(_, fields)| fields[LABELS] == 1).map(|(stem, _)| stem.as_str());
        let mut labels: Vec<&str> = labels.collect();
        labels.sort_unstable();
        assert_eq!(labels, ["command", "execut", "host", "line", "shell"]);
    }
}
