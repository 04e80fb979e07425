//! Approval requests, and the port that answers them.

use crate::{
    access::{Access, AccessKind},
    client_profile::ClientProfile,
    permission::decision::{Cause, Decision, Verdict},
    ports::caller::Caller,
    principal::Principal,
    tool::Tool,
    tool_call::ToolCall,
};
use async_trait::async_trait;
use std::time::Instant;

/// Key of the approval request to a client, where such requests have keys.
pub const APPROVAL_KEY: &str = "toolstead/approval";

/// Request to approve one call with these accesses.
pub struct ApprovalRequest<'a> {
    /// Call to approve. An answer is bound to its tool and the digest of its arguments, and is used once.
    pub call: &'a ToolCall,
    /// Descriptions of the arguments that are stored outputs, for the approver: "`/content` is the stored output `o17`
    /// (300000 bytes of text/plain)".
    pub references: &'a [String],
    /// Tool whose call makes this call; `None` for a call from outside.
    pub within: Option<&'a Tool>,
    /// Name of the agent that makes the call, if work was delegated to one.
    pub agent: Option<&'a str>,
    /// Principal that makes the call.
    pub principal: &'a Principal,
    /// Change that the call would make, as a unified diff.
    pub preview: Option<&'a str>,
    /// All accesses of the call.
    pub accesses: &'a [Access],
    /// Decision that requires the approval, with its rule.
    pub decision: &'a Decision,
    /// Parts that need approval, each by itself. Never empty.
    pub parts: &'a [ApprovalPart],
    /// Capabilities of the client.
    pub client: &'a ClientProfile,
    /// Channel to the client. A question for the approval that is sent over it has the key [`APPROVAL_KEY`].
    pub caller: &'a dyn Caller,
    /// End of the time for an answer (`[permissions] approval_timeout`). A later answer has no effect.
    pub deadline: Instant,
}

impl ApprovalRequest<'_> {
    /// Returns `true` if only defaults require the approval. Otherwise a rule or a hook requires it or the call sends
    /// something to others, and only the user can approve.
    pub fn is_by_default(&self) -> bool {
        let mut asking = self.decision.trace.iter().filter(|finding| finding.verdict == Verdict::Ask);
        asking.all(|finding| matches!(finding.cause, Cause::Default(_)))
            && matches!(self.decision.decisive.cause, Cause::Default(_))
            && !self.accesses.iter().any(|access| access.kind() == AccessKind::Send)
    }
}

impl std::fmt::Debug for ApprovalRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApprovalRequest")
            .field("call", &self.call.id)
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

/// One part of a call that needs approval.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalPart {
    /// Access that needs approval; `None` for the call as a whole.
    pub access: Option<Access>,
    /// Reason why it needs approval.
    pub cause: Cause,
    /// Rule that is offered for remembering an approval, if there is one. It covers exactly what its text says, and
    /// must be shown where more than a single approval is offered.
    pub rule: Option<String>,
    /// Scopes that an approval may have; the first is always [`ApprovalScope::Once`].
    pub scopes: Vec<ApprovalScope>,
}

/// Scope of an approval.
///
/// ```
/// use toolstead_domain::ports::approver::ApprovalScope;
///
/// assert_eq!(ApprovalScope::parse("session"), Some(ApprovalScope::Session));
/// assert_eq!(ApprovalScope::Always.as_str(), "always");
/// assert!(ApprovalScope::Once < ApprovalScope::Project);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum ApprovalScope {
    /// This call only.
    Once,
    /// This run only, until it ends, for calls through its restricted view: by the part's rule, or without a rule for
    /// the same tool with the same arguments.
    Run,
    /// Until the session ends: by the part's rule, or without a rule for the same tool with the same arguments.
    Session,
    /// As [`Session`](Self::Session), with an allow rule for each of the [commands that only
    /// read](crate::permission::read_only_commands::ReadOnlyCommands).
    ReadOnlyCommands,
    /// In this project, by the part's rule.
    Project,
    /// Everywhere, by the part's rule.
    Always,
}

impl ApprovalScope {
    /// All scopes, the narrowest first.
    pub const ALL: &[Self] =
        &[Self::Once, Self::Run, Self::Session, Self::ReadOnlyCommands, Self::Project, Self::Always];

    /// Returns the scope as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Run => "run",
            Self::Session => "session",
            Self::ReadOnlyCommands => "read_only_commands",
            Self::Project => "project",
            Self::Always => "always",
        }
    }

    /// Returns the scope with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|scope| scope.as_str() == text)
    }
}

/// Answer to an approval request.
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalOutcome {
    /// The call may run.
    Granted {
        /// Name of the approver, for the audit log.
        by: String,
        /// Scope of each part, in the order of [`ApprovalRequest::parts`]. A scope that is missing or was not offered
        /// counts as [`ApprovalScope::Once`].
        scopes: Vec<ApprovalScope>,
    },
    /// The call may run, and rules that the user wrote are stored instead of the offered ones.
    GrantedWithRules {
        /// Name of the user who approved, for the audit log.
        by: String,
        /// As in [`Granted`](Self::Granted).
        scopes: Vec<ApprovalScope>,
        /// Rule for each part, in the order of the parts; `None` for the offered one. A rule that does not pass
        /// [`check_written_rule`](crate::permission::offered_rule::check_written_rule) is not stored, and its part is
        /// approved once.
        rules: Vec<Option<String>>,
    },
    /// The call does not run.
    Denied {
        /// Name of the approver, for the audit log.
        by: String,
        /// Reason, or an alternative to try, in the approver's words. The model reads it.
        message: Option<String>,
    },
    /// The user interrupted the question, and with it the call.
    Cancelled,
    /// No approver is available. The call is refused.
    Unattended,
    /// The approver did not answer in time. The call is refused.
    TimedOut,
}

impl ApprovalOutcome {
    /// Returns an approval of every part for this call only.
    pub fn once(by: impl Into<String>) -> Self {
        Self::Granted { by: by.into(), scopes: Vec::new() }
    }

    /// Returns a denial without a message.
    pub fn denied(by: impl Into<String>) -> Self {
        Self::Denied { by: by.into(), message: None }
    }
}

/// Presents approval requests to the user.
///
/// A decision that the embedding application makes by itself belongs in an
/// [`AutoApprovalRule`](crate::ports::approval_rule::AutoApprovalRule). Implementers never answer in the user's stead
/// (without a user to ask, the answer is [`ApprovalOutcome::Unattended`]) and do not wait past
/// [`ApprovalRequest::deadline`]. Dropping the future withdraws the request. A panic denies the call.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Presents the request, and waits for the answer.
    async fn ask<'s, 'r>(&'s self, request: ApprovalRequest<'r>) -> ApprovalOutcome;
}

/// Approver for use without a user: no approver is available.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoApprover;

#[async_trait]
impl Approver for NoApprover {
    async fn ask(&self, _: ApprovalRequest<'_>) -> ApprovalOutcome {
        ApprovalOutcome::Unattended
    }
}
