//! The context of one call of a built-in tool.

use crate::{
    builtin::tool_kit::{blocking::on_blocking_thread, tool_environment::ToolEnvironment},
    sandbox::workspace::{granted_workspace::GrantedWorkspace, stop::StopCondition},
};
use serde_json::Value;
use std::{path::PathBuf, time::Instant};
use toolstead_domain::{
    Access, CallContext, CallLabels, NestedCall, Suggestion, Tool, ToolCall, ToolFailure, ToolResult,
    error_kind::ErrorKind,
};

/// Context of a running call.
#[derive(Debug, Clone, Copy)]
pub struct ToolContext<'a> {
    pub(in crate::builtin) environment: &'a ToolEnvironment,
    pub(in crate::builtin) tools: &'a [Tool],
    pub(in crate::builtin) explained: &'a [Tool],
    pub(in crate::builtin) call: &'a ToolCall,
    pub(in crate::builtin) context: &'a CallContext<'a>,
}

impl<'a> ToolContext<'a> {
    /// Returns the tool environment.
    pub fn environment(&self) -> &'a ToolEnvironment {
        self.environment
    }

    /// Returns all tools of the same provider, and the tools of other providers that `help` explains.
    pub fn tools(&self) -> impl Iterator<Item = &'a Tool> {
        self.tools.iter().chain(self.explained)
    }

    /// Returns the call.
    pub fn call(&self) -> &'a ToolCall {
        self.call
    }

    /// Returns the context of the call: principal, deadline, grant, the connection to the client.
    pub fn context(&self) -> &'a CallContext<'a> {
        self.context
    }

    /// Returns the labels of the call: those of its caller and those that hooks added, without secrets in its
    /// arguments.
    pub fn labels(&self) -> &'a CallLabels {
        self.context.labels
    }

    /// Returns the current deadline of the run: time in which the call waited for answers extends it.
    pub(crate) fn deadline(&self) -> Instant {
        self.context.deadline + self.context.caller.waited()
    }

    /// Calls another tool, by any of its names, within the scope of this call. Validation, the permission decision,
    /// approval, the audit record and limits are those of a separate call. It has the time that is left of this call,
    /// and is cancelled with it. [`CallContext::calls`] lists and finds the available tools.
    ///
    /// # Errors
    /// The reason why it was refused, or failed. A failure that the tool reports in its own result is `Ok` with
    /// `isError`.
    pub async fn call_tool(&self, tool: &str, arguments: Value) -> Result<ToolResult, ToolFailure> {
        self.context.calls.call(NestedCall::new(tool, arguments)).await
    }

    /// Returns the real path of a folder to run something in, after a check against the grant.
    ///
    /// # Errors
    /// `permission_denied` when it may not be read.
    pub async fn permitted_folder(&self, folder: &str) -> Result<PathBuf, ToolFailure> {
        let access = self.environment.access(folder).await?;
        if self.context.grant.permits(&Access::ReadPath(access.clone())) {
            return Ok(access.real);
        }
        let message = format!("nothing may be run in `{}`", access.lexical.display());
        Err(ToolFailure::new(ErrorKind::PermissionDenied, message))
    }

    /// Checks against the grant of the call that a host (lower case, without port) may be reached. This is the check of
    /// [`WebClient`](crate::web::web_client::WebClient).
    ///
    /// # Errors
    /// `permission_denied`, with the rule that would allow it.
    pub fn check_host(&self, host: &str) -> Result<(), ToolFailure> {
        if self.context.grant.permits(&Access::ReachHost(host.into())) {
            return Ok(());
        }
        let message = format!("the host `{host}` may not be reached");
        Err(ToolFailure::new(ErrorKind::PermissionDenied, message)
            .suggest(Suggestion::AllowRules(vec![format!("WebFetch(domain:{host})")])))
    }

    /// Works on files, on a blocking thread. The workspace enforces the grant and the deadline of the call. Dropping
    /// this future also ends the work.
    ///
    /// # Errors
    /// The failure of the work.
    pub async fn on_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&GrantedWorkspace) -> Result<T, ToolFailure> + Send + 'static,
    ) -> Result<T, ToolFailure> {
        let stop = StopCondition::at(self.deadline());
        let _abandon = stop.when_dropped();
        let granted = GrantedWorkspace::new(self.environment.workspace().clone(), self.context.grant.clone(), stop);
        on_blocking_thread(move || work(&granted)).await
    }
}
