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
    scope::Scope, tool_failure::ToolFailure,
};

/// The whole list.
pub(super) fn listed(app: &App, of: ContextList) -> Result<Vec<Map<String, Value>>, Failed> {
    let scope = Scope::of(Principal::local(), "cli");
    let query = ListContextQuery { of, scope, cursor: None, page_bytes: usize::MAX };
    let page = app.list_context.handle(&query).map_err(|error| Failed::Usage(error.to_string()))?;
    Ok(page.definitions)
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
