//! Requests to a provider of resources and prompts.

use crate::{error_kind::ErrorKind, tool_execution::AuditedRequestKind, tool_failure::ToolFailure};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Request other than a tool call, parsed from the parameters of its MCP method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextRequest {
    /// `resources/read`.
    Read {
        /// URI of the resource.
        uri: String,
    },
    /// `prompts/get`.
    Get {
        /// Name of the prompt.
        name: String,
        /// Arguments of the prompt.
        arguments: BTreeMap<String, String>,
    },
    /// `completion/complete`.
    Complete(CompletionRequest),
}

/// Request to complete the value of a prompt's argument or of a template's variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionRequest {
    /// Prompt or template that the value belongs to.
    pub of: CompletionReference,
    /// Name of the argument or variable.
    pub argument: String,
    /// Value so far.
    pub value: String,
    /// Arguments that are already known.
    pub known: BTreeMap<String, String>,
}

/// Prompt or template that a value to complete belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionReference {
    /// Name of a prompt.
    Prompt(String),
    /// Text of a resource template.
    Template(String),
}

impl ContextRequest {
    /// Parses the parameters of a request of this kind.
    ///
    /// # Errors
    /// `invalid_input`, with the invalid parameter and the expected value, or if the kind is not one of these requests.
    pub fn parse(kind: AuditedRequestKind, params: &Map<String, Value>) -> Result<Self, ToolFailure> {
        match kind {
            AuditedRequestKind::Resource => Ok(Self::Read { uri: text(params, "uri", "the URI of a resource")? }),
            AuditedRequestKind::Prompt => Ok(Self::Get {
                name: text(params, "name", "the name of a prompt")?,
                arguments: texts(params.get("arguments"), "arguments")?,
            }),
            AuditedRequestKind::Completion => Ok(Self::Complete(CompletionRequest::parse(params)?)),
            AuditedRequestKind::Tool | AuditedRequestKind::Task | AuditedRequestKind::Question => {
                Err(wrong("a tool call is not a request for a resource or prompt"))
            }
        }
    }

    /// Returns the kind.
    pub fn kind(&self) -> AuditedRequestKind {
        match self {
            Self::Read { .. } => AuditedRequestKind::Resource,
            Self::Get { .. } => AuditedRequestKind::Prompt,
            Self::Complete(_) => AuditedRequestKind::Completion,
        }
    }

    /// Returns the subject of the request: a URI, a prompt or a template.
    pub fn subject(&self) -> &str {
        match self {
            Self::Read { uri } => uri,
            Self::Get { name, .. } => name,
            Self::Complete(CompletionRequest {
                of: CompletionReference::Prompt(name) | CompletionReference::Template(name),
                ..
            }) => name,
        }
    }

    /// Returns the parameters for MCP.
    pub fn to_params(&self) -> Value {
        match self {
            Self::Read { uri } => json!({"uri": uri}),
            Self::Get { name, arguments } => json!({"name": name, "arguments": arguments}),
            Self::Complete(CompletionRequest { of, argument, value, known }) => {
                let of = match of {
                    CompletionReference::Prompt(name) => json!({"type": "ref/prompt", "name": name}),
                    CompletionReference::Template(uri) => json!({"type": "ref/resource", "uri": uri}),
                };
                let argument = json!({"name": argument, "value": value});
                json!({"ref": of, "argument": argument, "context": {"arguments": known}})
            }
        }
    }
}

impl CompletionRequest {
    /// Returns the template that the value belongs to, if it is one.
    pub fn of_template(&self) -> Option<&str> {
        match &self.of {
            CompletionReference::Template(template) => Some(template),
            CompletionReference::Prompt(_) => None,
        }
    }

    fn parse(params: &Map<String, Value>) -> Result<Self, ToolFailure> {
        let object = |name: &str| {
            let member = params.get(name).and_then(Value::as_object);
            member.ok_or_else(|| wrong(format!("`{name}` must be an object")))
        };
        let (of, argument) = (object("ref")?, object("argument")?);
        let of = match of.get("type").and_then(Value::as_str) {
            Some("ref/prompt") => CompletionReference::Prompt(text(of, "name", "the name of a prompt")?),
            Some("ref/resource") => CompletionReference::Template(text(of, "uri", "the URI template of a resource")?),
            _ => return Err(wrong("`ref.type` must be `ref/prompt` or `ref/resource`")),
        };
        let known = params.get("context").and_then(|context| context.get("arguments"));
        Ok(Self {
            of,
            argument: text(argument, "name", "the name of an argument")?,
            value: match argument.get("value") {
                Some(Value::String(value)) => value.clone(),
                _ => return Err(wrong("`argument.value` must be a string: the text to complete")),
            },
            known: texts(known, "context.arguments")?,
        })
    }
}

fn text(params: &Map<String, Value>, name: &str, what: &str) -> Result<String, ToolFailure> {
    match params.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        _ => Err(wrong(format!("`{name}` must be {what}, as a string"))),
    }
}

fn texts(value: Option<&Value>, name: &str) -> Result<BTreeMap<String, String>, ToolFailure> {
    let members = match value {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(members)) => members,
        Some(_) => return Err(wrong(format!("`{name}` must be an object of strings"))),
    };
    let text = |(argument, value): (&String, &Value)| match value {
        Value::String(text) => Ok((argument.clone(), text.clone())),
        _ => Err(wrong(format!("`{name}.{argument}` must be a string"))),
    };
    members.iter().map(text).collect()
}

fn wrong(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_round_trips_through_its_parameters() {
        for (kind, params) in [
            (AuditedRequestKind::Resource, json!({"uri": "a://b"})),
            (AuditedRequestKind::Prompt, json!({"name": "p", "arguments": {"code": "x"}})),
            (
                AuditedRequestKind::Completion,
                json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""},
                    "context": {"arguments": {"b": "c"}}}),
            ),
            (
                AuditedRequestKind::Completion,
                json!({"ref": {"type": "ref/resource", "uri": "a://{b}"}, "argument": {"name": "b", "value": "x"},
                    "context": {"arguments": {}}}),
            ),
        ] {
            let request = ContextRequest::parse(kind, params.as_object().unwrap()).unwrap();
            assert_eq!((request.kind(), request.to_params()), (kind, params));
        }
    }

    #[test]
    fn an_invalid_request_parameter_is_named_in_the_error() {
        for (kind, params, named) in [
            (AuditedRequestKind::Resource, json!({}), "`uri`"),
            (AuditedRequestKind::Resource, json!({"uri": 1}), "`uri`"),
            (AuditedRequestKind::Prompt, json!({"name": "p", "arguments": {"code": 1}}), "`arguments.code`"),
            (AuditedRequestKind::Prompt, json!({"name": "p", "arguments": []}), "`arguments`"),
            (AuditedRequestKind::Completion, json!({"argument": {}}), "`ref`"),
            (AuditedRequestKind::Completion, json!({"ref": {"type": "ref/x"}, "argument": {}}), "`ref.type`"),
            (
                AuditedRequestKind::Completion,
                json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a"}}),
                "`argument.value`",
            ),
        ] {
            let failure = ContextRequest::parse(kind, params.as_object().unwrap()).unwrap_err();
            assert_eq!(failure.kind, ErrorKind::InvalidInput);
            assert!(failure.message.contains(named), "{failure}");
        }
    }
}
