//! Rules by which the embedding application answers approval requests before the user is asked.

use crate::ports::approver::ApprovalRequest;
use async_trait::async_trait;

/// Answer of a rule to an approval request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalRuleDecision {
    /// No answer: the next rule is asked, and after the last rule the approver.
    Pass,
    /// The call may run once.
    Once,
    /// The call may run, and its accesses are allowed until the session ends, as far as an approver could grant that.
    Session,
    /// The call does not run, and no approver is asked.
    Refuse,
}

/// Approval rule of the embedding application. The audit log names this rule as the approver.
///
/// A rule is asked where an approver would be; calls that the policy denies never reach it. Its approval
/// counts only where a default requires approval ([`ApprovalRequest::is_by_default`]): where a permission rule or a
/// hook requires it, or the call sends something to others, only the user can approve. A rule that has not answered by
/// [`ApprovalRequest::deadline`] is dropped and the call refused (`approval_timeout`). A panic denies the call.
///
/// ```
/// use async_trait::async_trait;
/// use toolstead_domain::ports::{
///     approval_rule::{AutoApprovalRule, ApprovalRuleDecision},
///     approver::ApprovalRequest,
/// };
///
/// struct TrustedAgents;
///
/// #[async_trait]
/// impl AutoApprovalRule for TrustedAgents {
///     fn name(&self) -> &str {
///         "trusted agents"
///     }
///
///     async fn judge<'s, 'q, 'r>(&'s self, request: &'q ApprovalRequest<'r>) -> ApprovalRuleDecision {
///         if request.agent == Some("reviewer") { ApprovalRuleDecision::Once } else { ApprovalRuleDecision::Pass }
///     }
/// }
///
/// assert_eq!(TrustedAgents.name(), "trusted agents");
/// ```
#[async_trait]
pub trait AutoApprovalRule: Send + Sync {
    /// Returns the name of the rule for the audit log and for refusals.
    fn name(&self) -> &str;

    /// Answers the request.
    async fn judge<'s, 'q, 'r>(&'s self, request: &'q ApprovalRequest<'r>) -> ApprovalRuleDecision;
}
