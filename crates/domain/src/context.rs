//! Resources, resource templates and prompts, which servers offer beside tools (MCP 2025-11-25, server/resources and
//! server/prompts).

pub mod notice;
pub mod request;
pub mod server_uri;
pub mod uri_template;

use serde_json::{Map, Value};
use std::sync::Arc;
use uri_template::UriTemplate;

/// Name by which rules, hooks and tool selections refer to the reading of resources and the completion of their URIs.
pub const READ_RESOURCE: &str = "read_resource";
/// Name by which rules, hooks and tool selections refer to the getting of prompts and the completion of their
/// arguments.
pub const GET_PROMPT: &str = "get_prompt";
/// Names that stand for requests other than tool calls: [`READ_RESOURCE`] and [`GET_PROMPT`].
pub const RULE_NAMES: [&str; 2] = [READ_RESOURCE, GET_PROMPT];

/// Content that can be read by its URI: `Resource` of MCP, as received.
///
/// ```
/// use serde_json::json;
/// use toolstead_domain::context::Resource;
///
/// let members = json!({"uri": "memo://today", "name": "today"}).as_object().unwrap().clone();
/// let resource = Resource::new(members)?;
/// assert_eq!(resource.uri(), "memo://today");
/// assert!(Resource::new(serde_json::Map::new()).is_err());
/// # Ok::<(), toolstead_domain::context::InvalidContextDefinition>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Resource(Arc<Map<String, Value>>);

/// Family of resources: `ResourceTemplate` of MCP, as received.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceTemplate {
    definition: Arc<Map<String, Value>>,
    template: UriTemplate,
}

/// Text with placeholders for arguments: `Prompt` of MCP, as received.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt(Arc<Map<String, Value>>);

/// Everything that one provider offers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ContextCatalogue {
    /// Resources.
    pub resources: Vec<Resource>,
    /// Resource templates.
    pub templates: Vec<ResourceTemplate>,
    /// Prompts.
    pub prompts: Vec<Prompt>,
}

/// Reason why a definition of a resource, a template or a prompt is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidContextDefinition {
    /// The member is missing, is not a text, or is empty.
    #[error("the member `{0}` must be a non-empty string")]
    Lacks(&'static str),
    /// The URI template is invalid.
    #[error(transparent)]
    Template(#[from] uri_template::InvalidUriTemplate),
}

impl Resource {
    /// Creates a resource with this definition.
    ///
    /// # Errors
    /// [`InvalidContextDefinition`] if `uri` or `name` is missing or empty.
    pub fn new(definition: Map<String, Value>) -> Result<Self, InvalidContextDefinition> {
        demand(&definition, &["uri", "name"])?;
        Ok(Self(Arc::new(definition)))
    }

    /// Returns its URI.
    pub fn uri(&self) -> &str {
        text(&self.0, "uri")
    }

    /// Returns the MCP definition.
    pub fn definition(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Returns the resource with another URI.
    #[must_use]
    pub fn at(&self, uri: &str) -> Self {
        let mut definition = Map::clone(&self.0);
        definition.insert("uri".into(), uri.into());
        Self(Arc::new(definition))
    }
}

impl ResourceTemplate {
    /// Creates a template with this definition.
    ///
    /// # Errors
    /// [`InvalidContextDefinition`] if `uriTemplate` or `name` is missing or empty, or if the template is invalid.
    pub fn new(definition: Map<String, Value>) -> Result<Self, InvalidContextDefinition> {
        demand(&definition, &["uriTemplate", "name"])?;
        let template = UriTemplate::parse(text(&definition, "uriTemplate"))?;
        Ok(Self { definition: Arc::new(definition), template })
    }

    /// Returns a copy of the resource template with this URI template.
    ///
    /// # Errors
    /// [`InvalidContextDefinition`] if the template is invalid.
    pub fn at(&self, template: &str) -> Result<Self, InvalidContextDefinition> {
        let mut definition = Map::clone(&self.definition);
        definition.insert("uriTemplate".into(), template.into());
        Self::new(definition)
    }

    /// Returns the template of the URIs.
    pub fn template(&self) -> &UriTemplate {
        &self.template
    }

    /// Returns the MCP definition.
    pub fn definition(&self) -> &Map<String, Value> {
        &self.definition
    }
}

impl Prompt {
    /// Creates a prompt with this definition.
    ///
    /// # Errors
    /// [`InvalidContextDefinition`] without `name`.
    pub fn new(definition: Map<String, Value>) -> Result<Self, InvalidContextDefinition> {
        demand(&definition, &["name"])?;
        Ok(Self(Arc::new(definition)))
    }

    /// Returns the prompt with another name.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        let mut definition = Map::clone(&self.0);
        definition.insert("name".into(), name.into());
        Self(Arc::new(definition))
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        text(&self.0, "name")
    }

    /// Returns the MCP definition.
    pub fn definition(&self) -> &Map<String, Value> {
        &self.0
    }
}

fn demand(definition: &Map<String, Value>, members: &[&'static str]) -> Result<(), InvalidContextDefinition> {
    let is_missing = |member: &&&'static str| text(definition, member).is_empty();
    members.iter().find(is_missing).map_or(Ok(()), |member| Err(InvalidContextDefinition::Lacks(member)))
}

fn text<'a>(definition: &'a Map<String, Value>, member: &str) -> &'a str {
    definition.get(member).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn members(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_definition_keeps_unknown_members_and_requires_its_identifying_members() {
        let raw = json!({"x": [1], "uri": "a://b", "name": "b", "_meta": {"y": null}});
        let resource = Resource::new(members(raw.clone())).unwrap();
        assert_eq!((resource.uri(), Value::Object(resource.definition().clone())), ("a://b", raw));
        assert_eq!(
            Resource::new(members(json!({"uri": "a://b"}))).unwrap_err(),
            InvalidContextDefinition::Lacks("name")
        );
        assert_eq!(
            Resource::new(members(json!({"uri": 1, "name": "b"}))).unwrap_err(),
            InvalidContextDefinition::Lacks("uri")
        );
        assert_eq!(Prompt::new(members(json!({"name": ""}))).unwrap_err(), InvalidContextDefinition::Lacks("name"));
        assert!(ResourceTemplate::new(members(json!({"uriTemplate": "a://{b", "name": "b"}))).is_err());
    }
}
