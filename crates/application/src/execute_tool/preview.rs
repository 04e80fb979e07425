//! Preview of the changes of a call for its approver, determined without changing anything.

use super::{
    command::ExecuteToolCommand, error::ExecuteToolError, permitted_call, ports::ExecuteToolPorts,
    settings::CallSettings,
};
use std::{sync::Arc, time::Duration};
use toolstead_domain::{
    Access, CallPermissions, PermissionPolicy, ToolCall, ToolFailure, ToolProvider, Verdict, error_kind::ErrorKind,
};

/// Maximum time for a preview: the approver waits for it.
const AT_MOST: Duration = Duration::from_secs(5);

/// Context of previews.
#[derive(Clone, Copy)]
pub(super) struct PreviewContext<'a> {
    pub(super) provider: &'a dyn ToolProvider,
    pub(super) ports: &'a ExecuteToolPorts,
    pub(super) settings: &'a CallSettings,
    pub(super) policy: &'a Arc<PermissionPolicy>,
}

impl PreviewContext<'_> {
    /// Returns a preview of the call's changes, or the diff of the tool's definition if that is not approved; `None` if
    /// the preview cannot be determined, or would itself require approval.
    ///
    /// # Errors
    /// The failure that the call would end in. No approval is requested for a call that cannot succeed.
    pub(super) async fn of(
        self,
        command: &ExecuteToolCommand,
        call: &ToolCall,
        accesses: &[Access],
    ) -> Result<Option<String>, ExecuteToolError> {
        if let Some(pending) = &call.tool.pending {
            return Ok(Some(pending.diff.clone()));
        }
        if !self.may_look(call, accesses) {
            return Ok(None);
        }
        let grant = CallPermissions::new(self.policy.clone(), call.tool.clone(), accesses.to_vec());
        match permitted_call::preview(self.provider, call, command, &grant, self.ports, self.settings, AT_MOST).await {
            Ok(preview) => Ok(preview),
            Err(ExecuteToolError::Failed(failure)) if is_final(&failure) => Err(ExecuteToolError::Refused(failure)),
            Err(ExecuteToolError::Failed(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Returns `true` if the call accesses only files, and each may be read without approval. A preview then reveals
    /// nothing that the caller could not read.
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

/// Returns `true` if the call itself would fail, and not only its preview.
fn is_final(failure: &ToolFailure) -> bool {
    !matches!(
        failure.kind,
        ErrorKind::Timeout | ErrorKind::Internal | ErrorKind::Cancelled | ErrorKind::PermissionDenied
    )
}
