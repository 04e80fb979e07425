//! The decision on a call, determined without running it.

use super::{
    arguments, command::ExecuteToolCommand, error::ExecuteToolError, pending_definition, permitted_call,
    ports::ExecuteToolPorts, record::CallRecord, resolution, settings::CallSettings, validation::ArgumentValidator,
};
use crate::{permission_book::PermissionBook, tool_registry::ToolRegistry};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};
use toolstead_domain::{
    Access, CallId, CallPreview, ClientProfile, Decision, RequestScope, Tool, ToolCall, error_kind::ErrorKind,
};
use uuid::Uuid;

/// Maximum time for a provider to determine the accesses of a call.
const TIME: Duration = Duration::from_secs(30);

/// Query for the decision on a call.
#[derive(Debug, Clone)]
pub struct ExplainCallQuery {
    /// Name or alias of the tool.
    pub tool: String,
    /// Arguments of the call; `Null` is an empty object.
    pub arguments: Value,
    /// Principal, session and view of the call.
    pub scope: RequestScope,
}

/// Decision on a call that was not run.
#[derive(Debug, Clone)]
pub struct ExplainedCall {
    /// Resolved tool.
    pub tool: Arc<Tool>,
    /// Arguments under the tool's own parameter names.
    pub arguments: Map<String, Value>,
    /// Decision, with the findings on each access.
    pub decision: Decision,
}

/// Prepared call with its accesses.
struct CallWithAccesses {
    call: ToolCall,
    accesses: Result<Vec<Access>, ExecuteToolError>,
}

/// Steps of a call up to the decision.
pub(super) struct CallExplainer<'a> {
    pub(super) registry: &'a ToolRegistry,
    pub(super) permissions: &'a PermissionBook,
    pub(super) ports: &'a ExecuteToolPorts,
    pub(super) settings: &'a CallSettings,
}

impl CallExplainer<'_> {
    /// Returns the decision on the call of this command.
    pub(super) async fn explain(&self, command: ExecuteToolCommand) -> Result<ExplainedCall, ExecuteToolError> {
        let client = Arc::new(ClientProfile::without_protocol("explain"));
        let command = ExecuteToolCommand { client, ..command };
        let policy = self.permissions.policy_of(&command.scope);
        let CallWithAccesses { call, accesses } = self.prepare_call(command, TIME).await?;
        let decision = policy.decide(&call.tool, &call.arguments, &accesses?);
        let decision = pending_definition::apply_to(&call.tool, decision, policy.denies_instead_of_asking());
        Ok(ExplainedCall { tool: call.tool, arguments: call.arguments, decision })
    }

    /// Runs the steps of a call up to its accesses. The preview has no accesses if every call of the tool is denied, or
    /// if they cannot be determined yet: both are reported when the call is made.
    pub(super) async fn preview(
        &self,
        command: ExecuteToolCommand,
        time: Duration,
    ) -> Result<CallPreview, ExecuteToolError> {
        let registered = resolution::find(self.registry, &command).await?;
        let policy = self.permissions.policy_of(&command.scope);
        if policy.refusal_of_every_call(&registered.tool).is_some() {
            return Ok(CallPreview::new(registered.tool.clone(), None));
        }
        let CallWithAccesses { call, accesses } = self.prepare_call(command, time.min(TIME)).await?;
        match accesses {
            Ok(accesses) => Ok(CallPreview::new(call.tool, Some(accesses))),
            Err(error) if error.kind() == ErrorKind::InvalidInput => Err(error),
            // The accesses may depend on the effects of an earlier call.
            Err(_) => Ok(CallPreview::new(call.tool, None)),
        }
    }

    async fn prepare_call(
        &self,
        mut command: ExecuteToolCommand,
        time: Duration,
    ) -> Result<CallWithAccesses, ExecuteToolError> {
        let registered = resolution::find(self.registry, &command).await?;
        // The steps of a call require a record; this one is not stored.
        let mut record =
            CallRecord::begin(CallId(Uuid::now_v7()), &command, self.settings.arguments, self.ports.clock.as_ref());
        let outputs = self.ports.outputs.as_ref();
        let arguments = std::mem::take(&mut command.arguments);
        let validation = ArgumentValidator { beside: self.ports.schemas.as_ref(), cancel: &command.cancel, time };
        let prepared = arguments::prepare(&registered, &command, arguments, outputs, &mut record, validation).await?;
        let mut call = ToolCall {
            id: CallId(Uuid::now_v7()),
            principal: command.scope.principal,
            session: command.scope.session,
            tool: registered.tool.clone(),
            called_as: command.tool,
            arguments: prepared.arguments,
            meta: command.meta,
        };
        arguments::complete(&registered, &mut call, validation).await?;
        let accesses = permitted_call::accesses(registered.provider.as_ref(), &call, &command.cancel, time).await;
        Ok(CallWithAccesses { call, accesses })
    }
}
