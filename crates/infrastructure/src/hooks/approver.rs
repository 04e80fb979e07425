//! Approver that runs hooks before it asks the user.

use super::{answer::HookDecision, command_hooks::CommandHooks};
use async_trait::async_trait;
use std::sync::Arc;
use toolstead_domain::{ApprovalOutcome, ApprovalRequest, Approver, HookVerdict};

/// Approver that first runs the `PermissionRequest` hooks, then asks the wrapped approver.
///
/// A hook may deny anything. Its approval counts only for calls that require approval by default. If a rule or another
/// hook requires approval, or the call sends something to a third party, the user must decide.
pub struct HookedApprover {
    hooks: Arc<CommandHooks>,
    person: Arc<dyn Approver>,
}

impl HookedApprover {
    /// Creates an approver that runs these hooks before it asks `person`.
    pub fn new(hooks: Arc<CommandHooks>, person: Arc<dyn Approver>) -> Self {
        Self { hooks, person }
    }
}

#[async_trait]
impl Approver for HookedApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalOutcome {
        match self.hooks.decide_permission(request.call, request.accesses).await {
            Some((hook, HookDecision::Verdict(HookVerdict::Deny(reason) | HookVerdict::Defer(reason)))) => {
                ApprovalOutcome::denied(format!("the hook `{hook}` ({reason})"))
            }
            Some((hook, HookDecision::Allow)) if request.is_by_default() => {
                ApprovalOutcome::once(format!("the hook `{hook}`"))
            }
            _ => self.person.ask(request).await,
        }
    }
}

impl std::fmt::Debug for HookedApprover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookedApprover").field("hooks", &self.hooks).finish_non_exhaustive()
    }
}
