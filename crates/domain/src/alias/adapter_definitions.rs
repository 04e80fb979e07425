//! Descriptions and schemas of the tools of another tool system.

use serde_json::{Map, Value};
use std::sync::OnceLock;

/// Definitions of the tools of another tool system, by their names there. They are one JSON text, such as a file that is
/// included in the binary, and are parsed when the first of them is read.
///
/// ```
/// use toolstead_domain::DialectToolDefinitions;
///
/// static UNIX: DialectToolDefinitions = DialectToolDefinitions::new(
///     r#"{
///         "cat": {
///             "description": "Prints a file.",
///             "inputSchema": {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
///         }
///     }"#,
/// );
///
/// assert_eq!(UNIX.find("cat").unwrap()["description"], "Prints a file.");
/// assert!(UNIX.find("dog").is_none());
/// ```
#[derive(Debug)]
pub struct DialectToolDefinitions {
    json: &'static str,
    parsed: OnceLock<Map<String, Value>>,
}

impl DialectToolDefinitions {
    /// Takes the JSON text of an object. Each member is the definition of the tool of that name: an object with the
    /// `description` for models, the `inputSchema` and, if its answers have structured content there, the
    /// `outputSchema`.
    ///
    /// The text is not validated. A tool without a readable definition is not shown in its dialect.
    pub const fn new(json: &'static str) -> Self {
        Self { json, parsed: OnceLock::new() }
    }

    /// Returns the definition of the tool with this name in the other tool system; `None` if there is no readable one.
    pub fn find(&self, name: &str) -> Option<&Map<String, Value>> {
        self.all().get(name)?.as_object()
    }

    /// Returns the names of the defined tools, in the order of the text.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all().keys().map(String::as_str)
    }

    fn all(&self) -> &Map<String, Value> {
        self.parsed.get_or_init(|| serde_json::from_str(self.json).unwrap_or_default())
    }
}
