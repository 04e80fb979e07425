//! What would be decided of a call, without running it.

use super::{
    ExecuteToolCommand, ExecuteToolError, ExecuteToolHandler, arguments, record::Record, resolution, running,
    validation::Validation,
};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};
use toolstead_domain::{
    access::Access,
    client_profile::ClientProfile,
    error_kind::ErrorKind,
    permission::decision::Decision,
    ports::calls::ForeseenCall,
    scope::Scope,
    tool::Tool,
    tool_call::{CallId, ToolCall},
};
use uuid::Uuid;

/// So long a provider may take to say what a call would touch.
const TIME: Duration = Duration::from_secs(30);

/// Asks what would be decided of a call.
#[derive(Debug, Clone)]
pub struct ExplainCallQuery {
    /// The tool, in any spelling.
    pub tool: String,
    /// The arguments; `Null` is an empty object.
    pub arguments: Value,
    /// On whose behalf it would be made.
    pub scope: Scope,
}

/// What would be decided of a call.
#[derive(Debug, Clone)]
pub struct ExplainedCall {
    /// The tool.
    pub tool: Arc<Tool>,
    /// The arguments in the tool's own spelling.
    pub arguments: Map<String, Value>,
    /// The decision, with what was found on each part.
    pub decision: Decision,
}

/// A call as far as it is known before anything of it is done.
struct Foreseen {
    call: ToolCall,
    accesses: Result<Vec<Access>, ExecuteToolError>,
}

impl ExecuteToolHandler {
    /// Goes the way of a call as far as the decision: the tool is found, its arguments are put right and validated, its
    /// provider says what they would touch, and the policy judges that. Nothing runs, nobody is asked, and nothing is
    /// recorded. Hooks are not heard, since they may do things themselves.
    ///
    /// # Errors
    /// [`ExecuteToolError`] where a call would not even get as far as a decision.
    pub async fn explain(&self, query: ExplainCallQuery) -> Result<ExplainedCall, ExecuteToolError> {
        self.explain_command(ExecuteToolCommand::new(query.tool, query.arguments).within(query.scope)).await
    }

    /// Explains a call that is resolved already.
    pub(crate) async fn explain_command(&self, command: ExecuteToolCommand) -> Result<ExplainedCall, ExecuteToolError> {
        let client = Arc::new(ClientProfile::without_protocol("explain"));
        let command = ExecuteToolCommand { client, ..command };
        let policy = self.permissions.policy_of(&command.scope);
        let Foreseen { call, accesses } = self.foresee(command, TIME).await?;
        let decision = policy.decide(&call.tool, &call.arguments, &accesses?);
        Ok(ExplainedCall { tool: call.tool, arguments: call.arguments, decision })
    }

    /// Goes the way of a call as far as what it would touch. A call that is refused whatever it says is looked at
    /// no further: that is told when it is made.
    pub(crate) async fn foresee_call(
        &self,
        command: ExecuteToolCommand,
        time: Duration,
    ) -> Result<ForeseenCall, ExecuteToolError> {
        let registered = resolution::find(&self.registry, &command).await?;
        let policy = self.permissions.policy_of(&command.scope);
        if policy.refusal_of_every_call(&registered.tool).is_some() {
            return Ok(ForeseenCall::new(registered.tool.clone(), None));
        }
        let Foreseen { call, accesses } = self.foresee(command, time.min(TIME)).await?;
        match accesses {
            Ok(accesses) => Ok(ForeseenCall::new(call.tool, Some(accesses))),
            Err(error) if error.kind() == ErrorKind::InvalidInput => Err(error),
            // What it needs may be there once another call has run.
            Err(_) => Ok(ForeseenCall::new(call.tool, None)),
        }
    }

    async fn foresee(&self, mut command: ExecuteToolCommand, time: Duration) -> Result<Foreseen, ExecuteToolError> {
        let registered = resolution::find(&self.registry, &command).await?;
        // The steps of a call fill in a row; this one is never written.
        let mut record =
            Record::begin(CallId(Uuid::now_v7()), &command, self.settings.arguments, self.ports.clock.as_ref());
        let outputs = self.ports.outputs.as_ref();
        let arguments = std::mem::take(&mut command.arguments);
        let validation = Validation { beside: self.ports.schemas.as_ref(), cancel: &command.cancel, time };
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
        let accesses = running::accesses(registered.provider.as_ref(), &call, &command.cancel, time).await;
        Ok(Foreseen { call, accesses })
    }
}
