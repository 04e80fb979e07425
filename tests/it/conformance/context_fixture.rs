//! The resources and prompts that the conformance suite asks for, as a provider that only tests have.

use super::fixture::PNG;
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use toolstead_domain::{
    access::Access,
    context::{ContextCatalogue, Prompt, Resource, ResourceTemplate, request::ContextRequest},
    error_kind::ErrorKind,
    ports::{
        context_provider::ContextProvider,
        tool_provider::{CallContext, ProviderError},
    },
    tool_failure::ToolFailure,
};

pub(super) struct ContextFixture;

fn members(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn prompt(name: &str, arguments: &[&str]) -> Prompt {
    let arguments: Vec<Value> = arguments.iter().map(|name| json!({"name": name, "required": true})).collect();
    Prompt::new(members(json!({"name": name, "description": "For the suite", "arguments": arguments}))).unwrap()
}

#[async_trait]
impl ContextProvider for ContextFixture {
    fn name(&self) -> &str {
        "fixture"
    }

    async fn list(&self) -> Result<ContextCatalogue, ProviderError> {
        let resource = |uri: &str, kind: &str| {
            Resource::new(members(json!({"uri": uri, "name": uri, "description": "Static", "mimeType": kind}))).unwrap()
        };
        let template = json!({"uriTemplate": "test://template/{id}/data", "name": "data", "description": "By id"});
        Ok(ContextCatalogue {
            resources: vec![
                resource("test://static-text", "text/plain"),
                resource("test://static-binary", "image/png"),
            ],
            templates: vec![ResourceTemplate::new(members(template)).unwrap()],
            prompts: vec![
                prompt("test_simple_prompt", &[]),
                prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
                prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
                prompt("test_prompt_with_image", &[]),
            ],
        })
    }

    async fn accesses(&self, _: &ContextRequest) -> Result<Vec<Access>, ToolFailure> {
        Ok(Vec::new())
    }

    async fn answer(&self, request: &ContextRequest, _: &CallContext<'_>) -> Result<Map<String, Value>, ToolFailure> {
        let said = |content: Value| json!({"role": "user", "content": content});
        let text = |text: String| said(json!({"type": "text", "text": text}));
        Ok(members(match request {
            ContextRequest::Read { uri } => {
                let content = match uri.as_str() {
                    "test://static-text" => json!({"uri": uri, "mimeType": "text/plain", "text": "Static text."}),
                    "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
                    other => {
                        let id = other.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
                        let id = id.ok_or_else(|| ToolFailure::new(ErrorKind::NotFound, "no such resource"))?;
                        json!({"uri": uri, "mimeType": "application/json", "text": json!({"id": id}).to_string()})
                    }
                };
                json!({"contents": [content]})
            }
            ContextRequest::Get { name, arguments } => {
                let argument = |name: &str| arguments.get(name).map_or("", String::as_str);
                let messages = match name.as_str() {
                    "test_prompt_with_arguments" => {
                        let (one, two) = (argument("arg1"), argument("arg2"));
                        vec![text(format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
                    }
                    "test_prompt_with_embedded_resource" => {
                        let content =
                            json!({"uri": argument("resourceUri"), "mimeType": "text/plain", "text": "Embedded."});
                        vec![said(json!({"type": "resource", "resource": content})), text("Read it.".into())]
                    }
                    "test_prompt_with_image" => {
                        let image = said(json!({"type": "image", "data": PNG, "mimeType": "image/png"}));
                        vec![image, text("Look at it.".into())]
                    }
                    _ => vec![text("This is a simple prompt for testing.".into())],
                };
                json!({"messages": messages})
            }
            ContextRequest::Complete(completion) => {
                json!({"completion": {"values": [format!("{}ing", completion.value)], "total": 1, "hasMore": false}})
            }
        }))
    }
}
