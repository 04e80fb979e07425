//! Resources and prompts on the command line.

use super::{call::session_of, exit::CommandError};
use crate::{app::App, composition_root::RunningApp};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolstead_application::{
    ContextListKind, ContextRequestOutcome, ExecuteToolCommand, ExecuteToolError, ForwardContextRequestCommand,
    ListContextQuery,
};
use toolstead_domain::{
    ClientProfile, ContextRequest, Principal, RequestScope, ToolFailure, error_kind::ErrorKind, tool::BUILT_IN,
};

/// Member of a definition's `_meta` that names the MCP server or other provider of a resource or prompt.
const SERVER: &str = "toolstead/server";

/// Returns the whole list of resources, resource templates or prompts. Definitions that are not built in name their
/// provider in `_meta`.
pub(super) fn listed(app: &App, of: ContextListKind) -> Result<Vec<Map<String, Value>>, CommandError> {
    let scope = RequestScope::of(Principal::local(), "cli");
    let query = ListContextQuery { of, scope, cursor: None, page_bytes: usize::MAX };
    let page = app.list_context.handle(&query).map_err(|error| CommandError::Usage(error.to_string()))?;
    Ok(page.definitions.into_iter().zip(page.providers).map(|(one, provider)| named(one, provider)).collect())
}

/// Adds the provider to the `_meta` of a definition, unless the definition is built in. Replaces an existing provider,
/// and a `_meta` that is not an object.
fn named(mut definition: Map<String, Value>, provider: String) -> Map<String, Value> {
    if provider != BUILT_IN {
        match definition.get_mut("_meta") {
            Some(Value::Object(meta)) => drop(meta.insert(SERVER.into(), provider.into())),
            _ => drop(definition.insert("_meta".into(), json!({SERVER: provider}))),
        }
    }
    definition
}

/// Returns `[PROVIDER] ` with the provider that the definition names, or an empty string for a built-in definition.
pub(super) fn offered_by(definition: &Map<String, Value>) -> String {
    let server = definition.get("_meta").and_then(|meta| meta.get(SERVER)).and_then(Value::as_str);
    server.map_or_else(String::new, |server| format!("[{server}] "))
}

/// Sends a request about resources or prompts to its provider and returns the members of the result. Fails if the
/// provider asks for input.
pub(super) async fn answered(
    composition: &RunningApp,
    request: ContextRequest,
) -> Result<Map<String, Value>, CommandError> {
    let session = session_of(&Principal::local(), composition.config.workspace());
    let client = ClientProfile::without_protocol(concat!("toolstead-cli ", env!("CARGO_PKG_VERSION")));
    let command = ForwardContextRequestCommand::new(request);
    let call = ExecuteToolCommand { client: Arc::new(client), ..command.call };
    let call = call.within(RequestScope::of(Principal::local(), session));
    match composition.app.forward_request.handle(ForwardContextRequestCommand { call, ..command }).await {
        Ok(ContextRequestOutcome::Answer(members)) => Ok(members),
        Ok(ContextRequestOutcome::InputRequired(_)) => Err(CommandError::Call(ExecuteToolError::Failed(
            ToolFailure::new(ErrorKind::Unavailable, "it asks for input, which cannot be given on the command line"),
        ))),
        Err(error) => Err(CommandError::Call(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_receives_the_server_name_as_metadata_unless_it_is_built_in() {
        for (meta, expected) in
            [(json!({"a": 1}), json!({"a": 1, SERVER: "git"})), (json!("x"), json!({SERVER: "git"}))]
        {
            let definition = Map::from_iter([("_meta".to_owned(), meta)]);
            let named = named(definition, "git".into());
            assert_eq!((&named["_meta"], offered_by(&named)), (&expected, "[git] ".to_owned()));
        }
        let own = named(Map::new(), BUILT_IN.into());
        assert_eq!((own.len(), offered_by(&own)), (0, String::new()));
    }
}
