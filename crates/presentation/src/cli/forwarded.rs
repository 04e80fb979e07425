//! Resources and prompts from the command line.

use super::{call::session_of, exit::Failed};
use crate::{app::App, composition_root::Composition};
use serde_json::{Map, Value};
use std::sync::Arc;
use toolstead_application::{
    execute_tool::{ExecuteToolCommand, ExecuteToolError},
    forward_request::{ForwardRequestCommand, Forwarded},
    list_context::{ContextList, ListContextQuery},
};
use toolstead_domain::{
    client_profile::ClientProfile, context::request::ContextRequest, error_kind::ErrorKind, principal::Principal,
    scope::Scope, tool::BUILT_IN, tool_failure::ToolFailure,
};

/// The member of `_meta` that names who offers it.
const SERVER: &str = "toolstead/server";

/// The whole list. What others than Toolstead offer says so in `_meta`.
pub(super) fn listed(app: &App, of: ContextList) -> Result<Vec<Map<String, Value>>, Failed> {
    let scope = Scope::of(Principal::local(), "cli");
    let query = ListContextQuery { of, scope, cursor: None, page_bytes: usize::MAX };
    let page = app.list_context.handle(&query).map_err(|error| Failed::Usage(error.to_string()))?;
    let named = |(mut definition, provider): (Map<String, Value>, String)| {
        let meta = definition.entry("_meta").or_insert_with(|| Map::new().into());
        if let Some(meta) = meta.as_object_mut().filter(|_| provider != BUILT_IN) {
            meta.insert(SERVER.into(), provider.into());
        } else if meta.as_object().is_some_and(Map::is_empty) {
            definition.shift_remove("_meta");
        }
        definition
    };
    Ok(page.definitions.into_iter().zip(page.providers).map(named).collect())
}

/// The one who offers what is defined, in brackets; empty where Toolstead does.
pub(super) fn offered_by(definition: &Map<String, Value>) -> String {
    let server = definition.get("_meta").and_then(|meta| meta.get(SERVER)).and_then(Value::as_str);
    server.map_or_else(String::new, |server| format!("[{server}] "))
}

/// The members of the answer.
pub(super) async fn answered(composition: &Composition, request: ContextRequest) -> Result<Map<String, Value>, Failed> {
    let session = session_of(&Principal::local(), composition.config.workspace());
    let client = ClientProfile::without_protocol(concat!("toolstead-cli ", env!("CARGO_PKG_VERSION")));
    let command = ForwardRequestCommand::new(request);
    let call = ExecuteToolCommand { client: Arc::new(client), ..command.call };
    let call = call.within(Scope::of(Principal::local(), session));
    match composition.app.forward_request.handle(ForwardRequestCommand { call, ..command }).await {
        Ok(Forwarded::Answer(members)) => Ok(members),
        Ok(Forwarded::InputRequired(_)) => Err(Failed::Call(ExecuteToolError::Failed(ToolFailure::new(
            ErrorKind::Unavailable,
            "it asks for input, which cannot be given on the command line",
        )))),
        Err(error) => Err(Failed::Call(error)),
    }
}
