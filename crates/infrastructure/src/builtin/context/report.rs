//! Reports on Toolstead itself, which whoever puts it together makes.

use super::{InvalidBuiltInContext, members};
use serde_json::{Value, json};
use std::{fmt, pin::Pin};
use toolstead_domain::context::Resource;

/// A resource that is made anew whenever it is read: JSON without secrets.
pub struct Report {
    /// Where it is read.
    pub uri: &'static str,
    /// What programs call it.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// What it tells.
    pub description: &'static str,
    /// Makes it.
    pub make: Box<dyn Fn() -> Pin<Box<dyn Future<Output = Value> + Send>> + Send + Sync>,
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report").field("uri", &self.uri).finish_non_exhaustive()
    }
}

impl Report {
    pub(super) fn definition(&self) -> Result<Resource, InvalidBuiltInContext> {
        let Self { uri, name, title, description, .. } = self;
        let definition = json!({"uri": uri, "name": name, "title": title, "description": description,
            "mimeType": "application/json"});
        let wrong = |error: toolstead_domain::context::InvalidDefinition| InvalidBuiltInContext {
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
