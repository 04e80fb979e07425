//! Hooks that hear of a question before a person does.

use super::{answer::Decided, command_hooks::CommandHooks};
use async_trait::async_trait;
use std::sync::Arc;
use toolstead_domain::ports::{
    approver::{Approval, ApprovalRequest, Approver},
    tool_hook::HookVerdict,
};

/// Asks the hooks of `PermissionRequest` first, then whoever is asked without them.
///
/// A hook may say no to anything. Its yes counts where only a default asks: what a rule or another hook wants a person to
/// see, and what is sent to somebody, is for a person.
pub struct HookedApprover {
    hooks: Arc<CommandHooks>,
    person: Arc<dyn Approver>,
}

impl HookedApprover {
    /// The hooks before that person.
    pub fn new(hooks: Arc<CommandHooks>, person: Arc<dyn Approver>) -> Self {
        Self { hooks, person }
    }
}

#[async_trait]
impl Approver for HookedApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> Approval {
        match self.hooks.asked(request.call, request.accesses).await {
            Some((hook, Decided::Else(HookVerdict::Deny(reason) | HookVerdict::Defer(reason)))) => {
                Approval::denied(format!("the hook `{hook}` ({reason})"))
            }
            Some((hook, Decided::Allow)) if request.is_by_default() => Approval::once(format!("the hook `{hook}`")),
            _ => self.person.ask(request).await,
        }
    }
}

impl std::fmt::Debug for HookedApprover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookedApprover").field("hooks", &self.hooks).finish_non_exhaustive()
    }
}
