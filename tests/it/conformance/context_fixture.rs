//! The resources and prompts that the conformance suite asks for, as a provider that only tests have.

use super::fixture::PNG;
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;
use toolstead_domain::{
    Access, CallContext, ContextCatalogue, ContextProvider, ContextRequest, InputRequest, Prompt, ProviderListError,
    ResourceTemplate, ToolFailure, context::Resource, error_kind::ErrorKind,
};

/// Has one prompt that comes and goes.
#[derive(Default)]
pub(super) struct ContextFixture {
    has_dynamic: AtomicBool,
    changed: Notify,
}

impl ContextFixture {
    /// Adds the prompt that comes and goes, or takes it away.
    pub(super) fn change_prompts(&self) {
        self.has_dynamic.fetch_xor(true, Ordering::SeqCst);
        self.changed.notify_one();
    }
}

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

    async fn list(&self) -> Result<ContextCatalogue, ProviderListError> {
        let resource = |uri: &str, kind: &str| {
            Resource::new(members(json!({"uri": uri, "name": uri, "description": "Static", "mimeType": kind}))).unwrap()
        };
        let dynamic = self.has_dynamic.load(Ordering::SeqCst).then(|| prompt("test_dynamic_prompt", &[]));
        let template = json!({"uriTemplate": "test://template/{id}/data", "name": "data", "description": "By id"});
        Ok(ContextCatalogue {
            resources: vec![
                resource("test://static-text", "text/plain"),
                resource("test://static-binary", "image/png"),
                resource("test://watched-resource", "text/plain"),
            ],
            templates: vec![ResourceTemplate::new(members(template)).unwrap()],
            prompts: vec![
                prompt("test_simple_prompt", &[]),
                prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
                prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
                prompt("test_prompt_with_image", &[]),
                prompt("test_input_required_result_prompt", &[]),
            ]
            .into_iter()
            .chain(dynamic)
            .collect(),
        })
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }

    async fn subscribe(&self, uri: &str) -> Result<(), ToolFailure> {
        let no_such = || ToolFailure::new(ErrorKind::NotFound, "nobody can watch this");
        if uri == "test://watched-resource" { Ok(()) } else { Err(no_such()) }
    }

    async fn accesses(&self, _: &ContextRequest) -> Result<Vec<Access>, ToolFailure> {
        Ok(Vec::new())
    }

    async fn answer(
        &self,
        request: &ContextRequest,
        context: &CallContext<'_>,
    ) -> Result<Map<String, Value>, ToolFailure> {
        let said = |content: Value| json!({"role": "user", "content": content});
        let text = |text: String| said(json!({"type": "text", "text": text}));
        Ok(members(match request {
            ContextRequest::Read { uri } => {
                let content = match uri.as_str() {
                    "test://static-text" => {
                        json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
                    }
                    "test://watched-resource" => {
                        json!({"uri": uri, "mimeType": "text/plain", "text": "Watched content"})
                    }
                    "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
                    other => {
                        let id = other.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
                        let id = id.ok_or_else(|| ToolFailure::new(ErrorKind::NotFound, "no such resource"))?;
                        let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                        json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
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
                        let content = json!({"uri": argument("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource content for testing."});
                        vec![
                            said(json!({"type": "resource", "resource": content})),
                            text("Please process the embedded resource above.".into()),
                        ]
                    }
                    "test_prompt_with_image" => {
                        let image = said(json!({"type": "image", "data": PNG, "mimeType": "image/png"}));
                        vec![image, text("Please analyze the image above.".into())]
                    }
                    "test_input_required_result_prompt" => {
                        let schema = json!({"type": "object", "required": ["context"], "properties": {"context": {"type": "string"}}});
                        let question =
                            json!({"message": "What context should the prompt use?", "requestedSchema": schema});
                        let question = InputRequest { method: "elicitation/create".into(), params: question };
                        let answer = context.caller.ask_as("user_context", question).await;
                        let answer =
                            answer.map_err(|why| ToolFailure::new(ErrorKind::MissingCapability, why.to_string()))?;
                        vec![text(format!("Use the following context: {}", answer.0["content"]["context"]))]
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
