//! Offers of servers beside tools: resources, templates of resources, and prompts (MCP 2025-11-25, server/resources and
//! server/prompts).

pub mod notice;
pub mod request;
pub mod server_uri;
pub mod uri_template;

use serde_json::{Map, Value};
use std::sync::Arc;
use uri_template::UriTemplate;

/// The name by which rules, hooks and the choice of tools know the reading of resources, and the completion of their URIs.
pub const READ_RESOURCE: &str = "read_resource";
/// Likewise of getting prompts.
pub const GET_PROMPT: &str = "get_prompt";
/// Both.
pub const RULE_NAMES: [&str; 2] = [READ_RESOURCE, GET_PROMPT];

/// Something that can be read by its URI: MCP's `Resource` as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource(Arc<Map<String, Value>>);

/// A family of resources: MCP's `ResourceTemplate` as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceTemplate {
    definition: Arc<Map<String, Value>>,
    template: UriTemplate,
}

/// A text with places for arguments: MCP's `Prompt` as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt(Arc<Map<String, Value>>);

/// Everything that one provider offers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ContextCatalogue {
    /// The resources.
    pub resources: Vec<Resource>,
    /// The templates of resources.
    pub templates: Vec<ResourceTemplate>,
    /// The prompts.
    pub prompts: Vec<Prompt>,
}

/// A definition that lacks what it is known by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDefinition {
    /// The member is missing, no text or empty.
    #[error("the member `{0}` must be a text that is not empty")]
    Lacks(&'static str),
    /// The URI template cannot be used.
    #[error(transparent)]
    Template(#[from] uri_template::InvalidUriTemplate),
}

impl Resource {
    /// A resource of this definition.
    ///
    /// # Errors
    /// [`InvalidDefinition`] without `uri` and `name`.
    pub fn new(definition: Map<String, Value>) -> Result<Self, InvalidDefinition> {
        demand(&definition, &["uri", "name"])?;
        Ok(Self(Arc::new(definition)))
    }

    /// Its address.
    pub fn uri(&self) -> &str {
        text(&self.0, "uri")
    }

    /// MCP's definition.
    pub fn definition(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The same under another URI.
    #[must_use]
    pub fn at(&self, uri: &str) -> Self {
        let mut definition = Map::clone(&self.0);
        definition.insert("uri".into(), uri.into());
        Self(Arc::new(definition))
    }
}

impl ResourceTemplate {
    /// A template of this definition.
    ///
    /// # Errors
    /// [`InvalidDefinition`] without `uriTemplate` and `name`, or where the template cannot be read.
    pub fn new(definition: Map<String, Value>) -> Result<Self, InvalidDefinition> {
        demand(&definition, &["uriTemplate", "name"])?;
        let template = UriTemplate::parse(text(&definition, "uriTemplate"))?;
        Ok(Self { definition: Arc::new(definition), template })
    }

    /// The same family under another template.
    ///
    /// # Errors
    /// [`InvalidDefinition`] where it cannot be read.
    pub fn at(&self, template: &str) -> Result<Self, InvalidDefinition> {
        let mut definition = Map::clone(&self.definition);
        definition.insert("uriTemplate".into(), template.into());
        Self::new(definition)
    }

    /// The URIs of the family.
    pub fn template(&self) -> &UriTemplate {
        &self.template
    }

    /// MCP's definition.
    pub fn definition(&self) -> &Map<String, Value> {
        &self.definition
    }
}

impl Prompt {
    /// A prompt of this definition.
    ///
    /// # Errors
    /// [`InvalidDefinition`] without `name`.
    pub fn new(definition: Map<String, Value>) -> Result<Self, InvalidDefinition> {
        demand(&definition, &["name"])?;
        Ok(Self(Arc::new(definition)))
    }

    /// The same under another name.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        let mut definition = Map::clone(&self.0);
        definition.insert("name".into(), name.into());
        Self(Arc::new(definition))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        text(&self.0, "name")
    }

    /// MCP's definition.
    pub fn definition(&self) -> &Map<String, Value> {
        &self.0
    }
}

fn demand(definition: &Map<String, Value>, members: &[&'static str]) -> Result<(), InvalidDefinition> {
    let is_missing = |member: &&&'static str| text(definition, member).is_empty();
    members.iter().find(is_missing).map_or(Ok(()), |member| Err(InvalidDefinition::Lacks(member)))
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
    fn a_definition_keeps_what_nobody_here_knows_and_needs_what_it_is_known_by() {
        let raw = json!({"x": [1], "uri": "a://b", "name": "b", "_meta": {"y": null}});
        let resource = Resource::new(members(raw.clone())).unwrap();
        assert_eq!((resource.uri(), Value::Object(resource.definition().clone())), ("a://b", raw));
        assert_eq!(Resource::new(members(json!({"uri": "a://b"}))).unwrap_err(), InvalidDefinition::Lacks("name"));
        assert_eq!(
            Resource::new(members(json!({"uri": 1, "name": "b"}))).unwrap_err(),
            InvalidDefinition::Lacks("uri")
        );
        assert_eq!(Prompt::new(members(json!({"name": ""}))).unwrap_err(), InvalidDefinition::Lacks("name"));
        assert!(ResourceTemplate::new(members(json!({"uriTemplate": "a://{b", "name": "b"}))).is_err());
    }
}
