//! The change that a person is asked about, seen before anything is changed.

use super::{CallSettings, ExecuteToolCommand, ExecuteToolError, ExecuteToolPorts, running};
use std::{sync::Arc, time::Duration};
use toolstead_domain::{
    access::Access,
    error_kind::ErrorKind,
    permission::{decision::Verdict, grant::Grant, policy::PermissionPolicy},
    ports::tool_provider::ToolProvider,
    tool_call::ToolCall,
    tool_failure::ToolFailure,
};

/// The most time that a look takes: a person waits for the question.
const AT_MOST: Duration = Duration::from_secs(5);

/// Looks at what a call would do.
#[derive(Clone, Copy)]
pub(super) struct Previews<'a> {
    pub(super) provider: &'a dyn ToolProvider,
    pub(super) ports: &'a ExecuteToolPorts,
    pub(super) settings: &'a CallSettings,
    pub(super) policy: &'a Arc<PermissionPolicy>,
}

impl Previews<'_> {
    /// Tells what the call would change; `None` where that cannot be told, or somebody would have to be asked about the
    /// look.
    ///
    /// # Errors
    /// The failure that the call would end in: nobody is asked about what cannot work.
    pub(super) async fn of(
        self,
        command: &ExecuteToolCommand,
        call: &ToolCall,
        accesses: &[Access],
    ) -> Result<Option<String>, ExecuteToolError> {
        if !self.may_look(call, accesses) {
            return Ok(None);
        }
        let grant = Grant::new(self.policy.clone(), call.tool.clone(), accesses.to_vec());
        match running::preview(self.provider, call, command, &grant, self.ports, self.settings, AT_MOST).await {
            Ok(preview) => Ok(preview),
            Err(ExecuteToolError::Failed(failure)) if is_final(&failure) => Err(ExecuteToolError::Refused(failure)),
            Err(ExecuteToolError::Failed(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Says whether the call touches files alone, and each may be read without asking: then a look tells its caller
    /// nothing that reading would not.
    fn may_look(self, call: &ToolCall, accesses: &[Access]) -> bool {
        let may_read = |access: &Access| match access {
            Access::ReadPath(_) => self.policy.judge(&call.tool, access).verdict == Verdict::Allow,
            Access::WritePath(path) => {
                self.policy.judge(&call.tool, &Access::ReadPath(path.clone())).verdict == Verdict::Allow
            }
            Access::RunCommand(_)
            | Access::ReachHost(_)
            | Access::Send(_)
            | Access::CallUpstream { .. }
            | Access::Undeclared(_)
            | Access::ReadResource { .. }
            | Access::GetPrompt { .. }
            | Access::RunAgent(_)
            | Access::OfferTools(_) => false,
        };
        !accesses.is_empty() && accesses.iter().all(may_read)
    }
}

/// Tells a failure of the call itself from one of the look alone.
fn is_final(failure: &ToolFailure) -> bool {
    !matches!(
        failure.kind,
        ErrorKind::Timeout | ErrorKind::Internal | ErrorKind::Cancelled | ErrorKind::PermissionDenied
    )
}
