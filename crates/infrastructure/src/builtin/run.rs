//! One run of a built-in tool.

use crate::{
    builtin::{blocking::on_blocking_thread, world::World},
    sandbox::workspace::{granted::GrantedWorkspace, stop::Stop},
};
use serde_json::Value;
use std::{path::PathBuf, time::Instant};
use toolstead_domain::{
    access::Access,
    error_kind::ErrorKind,
    labels::Labels,
    ports::{calls::NestedCall, tool_provider::CallContext},
    suggestion::Suggestion,
    tool::Tool,
    tool_call::ToolCall,
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// What a tool has while it runs.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    pub(super) world: &'a World,
    pub(super) tools: &'a [Tool],
    pub(super) explained: &'a [Tool],
    pub(super) call: &'a ToolCall,
    pub(super) context: &'a CallContext<'a>,
}

impl<'a> Run<'a> {
    /// The surroundings.
    pub fn world(&self) -> &'a World {
        self.world
    }

    /// All tools of the same provider, and those of others that stand beside them.
    pub fn tools(&self) -> impl Iterator<Item = &'a Tool> {
        self.tools.iter().chain(self.explained)
    }

    /// The call.
    pub fn call(&self) -> &'a ToolCall {
        self.call
    }

    /// What accompanies the call: principal, deadline, grant, the way back to the client.
    pub fn context(&self) -> &'a CallContext<'a> {
        self.context
    }

    /// Returns the labels of the call: those of its caller and those that hooks added, without secrets of its arguments.
    pub fn labels(&self) -> &'a Labels {
        self.context.labels
    }

    /// When the run is to be over, as it is by now: later by what was waited for answers.
    pub(crate) fn deadline(&self) -> Instant {
        self.context.deadline + self.context.caller.waited()
    }

    /// Calls another tool, by any of its names, within the scope of this call. It is judged, asked about, recorded and
    /// bounded as if it were called alone, has the time that is left of this call, and is cancelled with it.
    /// [`CallContext::calls`] lists and finds the tools that there are.
    ///
    /// # Errors
    /// Why it was refused, or failed. A failure that the tool reports in its own result is `Ok` with `isError`.
    pub async fn call_tool(&self, tool: &str, arguments: Value) -> Result<ToolResult, ToolFailure> {
        self.context.calls.call(NestedCall::new(tool, arguments)).await
    }

    /// The real path of a folder to run something in, judged as it is now.
    ///
    /// # Errors
    /// `permission_denied` when it may not be read.
    pub async fn permitted_folder(&self, folder: &str) -> Result<PathBuf, ToolFailure> {
        let access = self.world.access(folder).await?;
        if self.context.grant.permits(&Access::ReadPath(access.clone())) {
            return Ok(access.real);
        }
        let message = format!("nothing may be run in `{}`", access.lexical.display());
        Err(ToolFailure::new(ErrorKind::PermissionDenied, message))
    }

    /// Asks the grant of the call whether a host (lower case, without port) may be reached, as it is now. The judge of
    /// [`Reach`](crate::web::reach::Reach).
    ///
    /// # Errors
    /// `permission_denied`, with the rule that would allow it.
    pub fn may_reach(&self, host: &str) -> Result<(), ToolFailure> {
        if self.context.grant.permits(&Access::ReachHost(host.into())) {
            return Ok(());
        }
        let message = format!("the host `{host}` may not be reached");
        Err(ToolFailure::new(ErrorKind::PermissionDenied, message)
            .suggest(Suggestion::AllowRules(vec![format!("WebFetch(domain:{host})")])))
    }

    /// Works on files, on a thread where that holds up nobody. The workspace it gets knows what the call may touch and
    /// when to end; it ends also when this future is dropped.
    ///
    /// # Errors
    /// What the work fails with.
    pub async fn on_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&GrantedWorkspace) -> Result<T, ToolFailure> + Send + 'static,
    ) -> Result<T, ToolFailure> {
        let stop = Stop::at(self.deadline());
        let _abandon = stop.when_dropped();
        let granted = GrantedWorkspace::new(self.world.workspace().clone(), self.context.grant.clone(), stop);
        on_blocking_thread(move || work(&granted)).await
    }
}
