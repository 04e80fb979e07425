//! Parameter names that request the context of the model or files with secrets.

use super::{ScanFinding, kinds::SECRETS};
use serde_json::Value;

/// Parts of names of files with secrets, without separators.
const SECRET_FILES: &[&str] = &["idrsa", "ided25519", "dotssh", "dotenv", "awscredentials", "bashhistory", "etcpasswd"];

/// Names of instructions, conversations and reasoning, without separators.
const CONTEXT_NAMES: &[&str] = &[
    "systemprompt",
    "systemmessage",
    "systeminstructions",
    "conversationhistory",
    "chathistory",
    "messagehistory",
    "fullconversation",
    "conversation",
    "previousmessages",
    "chainofthought",
    "reasoningtrace",
    "availabletools",
    "toolslist",
    "userprompt",
    "modelname",
];

/// Returns a finding if at least two parameters ask for the context of the model or for secret files.
pub(super) fn find(definition: &Value) -> Option<ScanFinding> {
    let parameters = definition.pointer("/inputSchema/properties")?.as_object()?;
    let is_context = |name: &&String| {
        let plain: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        CONTEXT_NAMES.iter().any(|known| plain.starts_with(known))
            || SECRET_FILES.iter().any(|part| plain.contains(part))
    };
    let count = parameters.keys().filter(is_context).count();
    (count >= 2).then(|| ScanFinding {
        is_hard: false,
        what: SECRETS.to_owned(),
        place: "inputSchema.properties".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parameters_that_request_the_context_of_a_model_or_secret_files_are_found() {
        let found = |names: &[&str]| {
            let properties: serde_json::Map<_, _> = names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
            find(&json!({"inputSchema": {"properties": properties}})).is_some()
        };
        assert!(found(&["expression", "systemPrompt", "chat_history"]));
        assert!(found(&["contents_of_id_rsa", "system_prompt_verbatim"]));
        assert!(!found(&["system_prompt", "messages", "temperature"]));
        assert!(!found(&[]));
    }
}
