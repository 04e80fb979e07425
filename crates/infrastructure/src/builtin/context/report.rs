//! Reports on Toolstead itself, which the composition root supplies.

use super::{InvalidBuiltInContext, members};
use serde_json::{Value, json};
use std::{fmt, pin::Pin};
use toolstead_domain::context::Resource;

/// A resource that is generated for each request: JSON without secrets.
pub struct ReportResource {
    /// URI of the resource.
    pub uri: &'static str,
    /// Name for clients.
    pub name: &'static str,
    /// Name for display.
    pub title: &'static str,
    /// Description of the content.
    pub description: &'static str,
    /// Generates the content.
    pub make: Box<dyn Fn() -> Pin<Box<dyn Future<Output = Value> + Send>> + Send + Sync>,
}

impl fmt::Debug for ReportResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReportResource").field("uri", &self.uri).finish_non_exhaustive()
    }
}

impl ReportResource {
    pub(super) fn definition(&self) -> Result<Resource, InvalidBuiltInContext> {
        let Self { uri, name, title, description, .. } = self;
        let definition = json!({"uri": uri, "name": name, "title": title, "description": description,
            "mimeType": "application/json"});
        let wrong = |error: toolstead_domain::context::InvalidContextDefinition| InvalidBuiltInContext {
            what: format!("resource `{uri}`"),
            reason: error.to_string(),
        };
        Resource::new(members(definition)).map_err(wrong)
    }

    pub(super) async fn content(&self) -> Value {
        let text = serde_json::to_string_pretty(&(self.make)().await).unwrap_or_default();
        json!({"uri": self.uri, "mimeType": "application/json", "text": text})
    }
}
