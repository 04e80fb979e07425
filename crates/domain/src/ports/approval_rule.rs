//! Rules by which a program answers questions before a person is asked.

use crate::ports::approver::ApprovalRequest;
use async_trait::async_trait;

/// The answer of a rule to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleAnswer {
    /// Nothing: the next rule is asked, and after the last one a person.
    Pass,
    /// The call may run, this once.
    Once,
    /// The call may run, and what it touches may be touched until the session ends, as far as a person could say so.
    Session,
    /// The call does not run, and nobody is asked.
    Refuse,
}

/// A rule of the program, which answers in its own name: the audit trail says that this rule did, and no person.
///
/// A rule is asked where somebody would be; what the policy denies never comes to it. Its yes counts where only a default
/// asks ([`ApprovalRequest::is_by_default`]): what a permission rule or a hook wants a person to see, and what is sent to
/// somebody, is for a person. A rule that has not answered by
/// [`ApprovalRequest::deadline`] is dropped and the call refused (`approval_timeout`); one that panics denies the call.
#[async_trait]
pub trait ApprovalRule: Send + Sync {
    /// The name of the rule, as the audit trail and refusals tell it.
    fn name(&self) -> &str;

    /// Answers the question.
    async fn judge<'s, 'q, 'r>(&'s self, request: &'q ApprovalRequest<'r>) -> RuleAnswer;
}
