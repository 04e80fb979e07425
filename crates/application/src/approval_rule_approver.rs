//! The approval rules of an embedding application. They answer before an approver that asks the user.

use crate::execute_tool::report_panic;
use async_trait::async_trait;
use futures::FutureExt;
use std::{fmt, panic::AssertUnwindSafe, sync::Arc};
use tokio::time::timeout_at;
use toolstead_domain::{
    ApprovalOutcome, ApprovalRequest, ApprovalRuleDecision, ApprovalScope, Approver, AutoApprovalRule,
};

/// Approver that applies each rule of the embedding application, and asks the user if none decides. The answer names
/// the rule that decided. A rule can refuse any call, but can grant only a call that needs approval by default.
///
/// ```
/// use async_trait::async_trait;
/// use std::sync::Arc;
/// use toolstead_application::approval_rule_approver::ApprovalRuleApprover;
/// use toolstead_domain::{
///     ports::{
///         approval_rule::{AutoApprovalRule, ApprovalRuleDecision},
///         approver::ApprovalRequest,
///     },
///     testing::scripted_approver::ScriptedApprover,
/// };
///
/// struct Planned;
///
/// #[async_trait]
/// impl AutoApprovalRule for Planned {
///     fn name(&self) -> &str {
///         "planned"
///     }
///
///     async fn judge(&self, request: &ApprovalRequest<'_>) -> ApprovalRuleDecision {
///         let is_planned = request.call.tool.name().as_str() == "restart";
///         if is_planned { ApprovalRuleDecision::Once } else { ApprovalRuleDecision::Pass }
///     }
/// }
///
/// let rules: Vec<Arc<dyn AutoApprovalRule>> = vec![Arc::new(Planned)];
/// let approver = ApprovalRuleApprover::new(rules, Arc::new(ScriptedApprover::granting(1)));
/// assert!(format!("{approver:?}").contains("planned"));
/// ```
pub struct ApprovalRuleApprover {
    rules: Vec<Arc<dyn AutoApprovalRule>>,
    person: Arc<dyn Approver>,
}

impl ApprovalRuleApprover {
    /// Creates an approver with these rules, in this order, before `person`.
    pub fn new(rules: Vec<Arc<dyn AutoApprovalRule>>, person: Arc<dyn Approver>) -> Self {
        Self { rules, person }
    }
}

impl fmt::Debug for ApprovalRuleApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<&str> = self.rules.iter().map(|rule| rule.name()).collect();
        f.debug_struct("ApprovalRuleApprover").field("rules", &rules).finish_non_exhaustive()
    }
}

#[async_trait]
impl Approver for ApprovalRuleApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalOutcome {
        for rule in &self.rules {
            let by = || format!("the program's rule `{}`", rule.name());
            let judging = AssertUnwindSafe(rule.judge(&request)).catch_unwind();
            let answer = match timeout_at(request.deadline.into(), judging).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(panic)) => {
                    report_panic(&by(), panic.as_ref());
                    return ApprovalOutcome::denied(format!("{}, which panicked", by()));
                }
                Err(_) => return ApprovalOutcome::TimedOut,
            };
            match answer {
                ApprovalRuleDecision::Refuse => return ApprovalOutcome::denied(by()),
                ApprovalRuleDecision::Once if request.is_by_default() => return ApprovalOutcome::once(by()),
                ApprovalRuleDecision::Session if request.is_by_default() => {
                    // An approval for the session counts once where that scope was not offered.
                    let scopes = vec![ApprovalScope::Session; request.parts.len()];
                    return ApprovalOutcome::Granted { by: by(), scopes };
                }
                _ => {}
            }
        }
        self.person.ask(request).await
    }
}
