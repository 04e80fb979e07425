//! Tools of one request with the provider's names, and conversion of the calls in its answer.

use super::{
    names::{ToolNameCharacterCheck, ToolNameMap},
    schema::ArgumentNameMapping,
    settings::ProviderKind,
};
use serde_json::{Map, Value, json};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};
use toolstead_domain::{ModelRequest, OfferedTool, SealedBlock, ToolArguments, ToolUse};

/// Member for arguments that are not a JSON object, when a call is sent back to a provider.
const MALFORMED: &str = "malformed_arguments";

/// Conversion of the names of tools and of their arguments' properties.
#[derive(Debug)]
pub(super) struct ToolMapping {
    names: ToolNameMap,
    members: BTreeMap<String, ArgumentNameMapping>,
}

impl ToolMapping {
    /// Creates the conversion of these tools for a provider whose names have at most `max` bytes of allowed characters.
    pub(super) fn of(kind: ProviderKind, tools: &[OfferedTool], allowed: ToolNameCharacterCheck, max: usize) -> Self {
        let members = tools.iter().filter_map(|tool| {
            ArgumentNameMapping::of(kind, &tool.input_schema).map(|names| (tool.name.clone(), names))
        });
        Self { members: members.collect(), names: ToolNameMap::of(tools, allowed, max) }
    }

    /// Returns the provider's name of the tool.
    pub(super) fn name<'n>(&'n self, name: &'n str) -> Cow<'n, str> {
        self.names.provider_name(name)
    }

    /// Returns the name of the tool for the provider's name.
    pub(super) fn tool(&self, theirs: &str) -> String {
        self.names.tool_name(theirs).to_owned()
    }

    /// Returns the arguments of an earlier call with the provider's names. Always an object.
    pub(super) fn arguments<'a>(&self, call: &'a ToolUse) -> Cow<'a, Map<String, Value>> {
        match (&call.arguments, self.members.get(&call.name)) {
            (ToolArguments::Object(arguments), None) => Cow::Borrowed(arguments),
            (ToolArguments::Object(arguments), Some(names)) => Cow::Owned(names.to_provider(arguments)),
            (ToolArguments::Malformed(text), _) => Cow::Owned(Map::from_iter([(MALFORMED.to_owned(), json!(text))])),
        }
    }

    /// Returns a tool call of the provider's answer with the names of the tool and its arguments converted back.
    pub(super) fn call(
        &self,
        id: String,
        theirs: &str,
        arguments: ToolArguments,
        sealed: Option<SealedBlock>,
    ) -> ToolUse {
        let name = self.tool(theirs);
        let arguments = match (arguments, self.members.get(&name)) {
            (ToolArguments::Object(arguments), Some(names)) => ToolArguments::Object(names.to_tool(&arguments)),
            (arguments, _) => arguments,
        };
        ToolUse { id, name, arguments, sealed }
    }
}

/// Ids for the calls of one answer: the provider's ids if they are usable, otherwise generated ones. They are unique in
/// the conversation, so that it can continue with another provider.
#[derive(Debug)]
pub(super) struct CallIdAllocator {
    used: BTreeSet<String>,
    answer: usize,
    made: usize,
}

impl CallIdAllocator {
    /// Maximum length of an id that every provider accepts.
    const MAX: usize = 40;

    /// Creates ids for the answer to a request.
    pub(super) fn after(request: &ModelRequest) -> Self {
        let calls = request.messages.iter().flat_map(|message| message.tool_uses());
        Self { used: calls.map(|call| call.id.clone()).collect(), answer: request.messages.len(), made: 0 }
    }

    /// Returns the id of the next call, to which the provider gave the id `theirs`.
    pub(super) fn take(&mut self, theirs: &str) -> String {
        let is_fit = (1..=Self::MAX).contains(&theirs.len())
            && theirs.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if is_fit && self.used.insert(theirs.to_owned()) {
            return theirs.to_owned();
        }
        loop {
            self.made += 1;
            let made = format!("call_{}_{}", self.answer, self.made);
            if self.used.insert(made.clone()) {
                return made;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use toolstead_domain::{Block, Message, Role};

    fn call(id: &str) -> Block {
        let arguments = ToolArguments::Object(Map::new());
        Block::ToolUse(ToolUse { id: id.into(), name: "echo".into(), arguments, sealed: None })
    }

    #[test]
    fn a_call_keeps_its_provider_id_unless_the_id_is_invalid_or_already_used() {
        let earlier = Message { role: Role::Assistant, blocks: vec![call("call_0"), call("call_1_2")] };
        let mut ids = CallIdAllocator::after(&ModelRequest::of(vec![earlier]));
        let taken: Vec<String> =
            ["toolu_1", "call_0", "", "toolu_1", "a b", &"x".repeat(41)].map(|id| ids.take(id)).into();
        assert_eq!(taken, ["toolu_1", "call_1_1", "call_1_3", "call_1_4", "call_1_5", "call_1_6"]);
    }

    #[test]
    fn argument_names_are_mapped_to_the_provider_and_back() {
        let schema = json!({"type": "object", "properties": {"-A": {"type": "integer"}}});
        let tools = [OfferedTool { name: "Grep".into(), description: String::new(), input_schema: Arc::new(schema) }];
        let offer = ToolMapping::of(ProviderKind::Gemini, &tools, |_, _| true, 64);
        let theirs = Map::from_iter([("_A".to_owned(), json!(3))]);
        let call = offer.call("c".into(), "Grep", ToolArguments::Object(theirs.clone()), None);
        assert_eq!(call.arguments, ToolArguments::Object(Map::from_iter([("-A".to_owned(), json!(3))])));
        assert_eq!(*offer.arguments(&call), theirs);
        let malformed = ToolUse { arguments: ToolArguments::Malformed("{".into()), ..call };
        assert_eq!(Value::from(offer.arguments(&malformed).into_owned()), json!({MALFORMED: "{"}));
    }
}
