//! Capabilities that a client must have declared to receive a question.

use crate::ports::caller::InputRequest;
use serde_json::{Map, Value, json};

/// Capability of a client to answer questions of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCapability {
    /// Shows forms to the user.
    Elicitation,
    /// Asks the user to open a URL.
    UrlElicitation,
    /// Requests answers from its model.
    Sampling,
    /// Requests answers from its model, which may use tools of the requester.
    SamplingWithTools,
    /// Lists its folders.
    Roots,
}

impl ClientCapability {
    /// Returns the capability that the question requires; `None` if MCP does not define the method.
    pub fn of(question: &InputRequest) -> Option<Self> {
        match question.method.as_str() {
            "elicitation/create" if question.params["mode"] == "url" => Some(Self::UrlElicitation),
            "elicitation/create" => Some(Self::Elicitation),
            "sampling/createMessage"
                if ["tools", "toolChoice"].iter().any(|member| question.params.get(member).is_some()) =>
            {
                Some(Self::SamplingWithTools)
            }
            "sampling/createMessage" => Some(Self::Sampling),
            "roots/list" => Some(Self::Roots),
            _ => None,
        }
    }

    /// Returns `true` if a client with this declaration (MCP `ClientCapabilities`) has the capability.
    pub fn is_declared(self, declared: &Map<String, Value>) -> bool {
        let elicitation = || declared.get("elicitation").and_then(Value::as_object);
        match self {
            // "An empty capabilities object is equivalent to declaring support for form mode only" (MCP 2025-11-25,
            // client/elicitation, "Capabilities").
            Self::Elicitation => {
                elicitation().is_some_and(|modes| modes.contains_key("form") || !modes.contains_key("url"))
            }
            Self::UrlElicitation => elicitation().is_some_and(|modes| modes.contains_key("url")),
            Self::Sampling => declared.contains_key("sampling"),
            Self::SamplingWithTools => declared.get("sampling").is_some_and(|sampling| sampling.get("tools").is_some()),
            Self::Roots => declared.contains_key("roots"),
        }
    }

    /// Returns the name of the member of MCP's `ClientCapabilities` that declares the capability.
    pub fn name(self) -> &'static str {
        match self {
            Self::Elicitation | Self::UrlElicitation => "elicitation",
            Self::Sampling | Self::SamplingWithTools => "sampling",
            Self::Roots => "roots",
        }
    }

    /// Returns MCP's `ClientCapabilities` that declare this capability only.
    pub fn as_object(self) -> Map<String, Value> {
        let value = match self {
            Self::Elicitation | Self::Sampling | Self::Roots => json!({}),
            Self::UrlElicitation => json!({"url": {}}),
            Self::SamplingWithTools => json!({"tools": {}}),
        };
        Map::from_iter([(self.name().to_owned(), value)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, params: Value, declared: Value, expected: bool) {
        let capability = ClientCapability::of(&InputRequest { method: method.into(), params }).unwrap();
        assert_eq!(capability.is_declared(declared.as_object().unwrap()), expected, "{capability:?}");
        assert!(capability.is_declared(&capability.as_object()));
    }

    #[test]
    fn each_question_requires_the_client_capabilities_of_its_mode_and_members() {
        let (form, url) = (json!({"mode": "form"}), json!({"mode": "url"}));
        check("elicitation/create", form.clone(), json!({"elicitation": {}}), true);
        check("elicitation/create", form, json!({"elicitation": {"url": {}}}), false);
        check("elicitation/create", url.clone(), json!({"elicitation": {}}), false);
        check("elicitation/create", url, json!({"elicitation": {"form": {}, "url": {}}}), true);
        check("sampling/createMessage", json!({"messages": []}), json!({"sampling": {}}), true);
        check("sampling/createMessage", json!({"tools": []}), json!({"sampling": {}}), false);
        check("sampling/createMessage", json!({"toolChoice": {}}), json!({"sampling": {"tools": {}}}), true);
        check("roots/list", Value::Null, json!({}), false);
    }
}
