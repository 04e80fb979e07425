//! The one who answers when a rule says *ask*.

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

/// The key under which a client is asked about a call, where questions have keys.
pub const APPROVAL_KEY: &str = "toolstead/approval";

/// One question: may this call, with these accesses, run?
pub struct ApprovalRequest<'a> {
    /// The call. An answer is bound to its tool and the digest of its arguments, and is used once.
    pub call: &'a ToolCall,
    /// Which of its arguments are stored outputs, for the one who is asked: "`/content` is the stored output `o17`
    /// (300000 bytes of text/plain)".
    pub references: &'a [String],
    /// The tool whose call makes this one; `None`: it comes from outside.
    pub within: Option<&'a Tool>,
    /// The agent that was handed the work in which it is called, by name.
    pub agent: Option<&'a str>,
    /// The one who asks for it.
    pub principal: &'a Principal,
    /// The change that it would make, as a unified diff.
    pub preview: Option<&'a str>,
    /// All that it would touch.
    pub accesses: &'a [Access],
    /// The decision that led here, with its rule.
    pub decision: &'a Decision,
    /// The parts that somebody must say yes to, each for itself; never empty.
    pub parts: &'a [ApprovalPart],
    /// The abilities of the client.
    pub client: &'a ClientProfile,
    /// The way to the client. [`APPROVAL_KEY`] is the key of such a question.
    pub caller: &'a dyn Caller,
    /// End of the time for an answer (`[permissions] approval_timeout`). A later answer has no effect.
    pub deadline: Instant,
}

impl ApprovalRequest<'_> {
    /// Tells whether only defaults ask. What a rule or a hook wants a person to see, and what is sent to somebody, is for
    /// a person.
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

/// One part of a call that somebody must say yes to.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalPart {
    /// The access that is asked about; `None`: the call as a whole.
    pub access: Option<Access>,
    /// The reason why it is asked about.
    pub cause: Cause,
    /// The rule that is offered for remembering an approval, where there is one. It covers exactly what its text says,
    /// which is to be shown where more than this once is offered.
    pub rule: Option<String>,
    /// For how long a yes may hold; the first is always [`ApprovalScope::Once`].
    pub scopes: Vec<ApprovalScope>,
}

/// For how long a yes holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum ApprovalScope {
    /// For this call.
    Once,
    /// Until the run ends through whose window the call is made, and in that run alone: by the part's rule, or without one
    /// for the same tool with the same arguments.
    Run,
    /// Until the session ends: by the part's rule, or without one for the same tool with the same arguments.
    Session,
    /// As [`Session`](Self::Session), with an allow rule for each of the
    /// [commands that only read](crate::permission::read_only_commands::ReadOnlyCommands).
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

    /// The scope as one word.
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

    /// The scope of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|scope| scope.as_str() == text)
    }
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Approval {
    /// Run it.
    Granted {
        /// The one who said so, for the audit trail.
        by: String,
        /// For how long each part holds, in the order of [`ApprovalRequest::parts`]. What is missing, or was not offered,
        /// is [`ApprovalScope::Once`].
        scopes: Vec<ApprovalScope>,
    },
    /// Run it, and remember rules that the user wrote in place of those that were offered.
    GrantedWithRules {
        /// The user who approved, for the audit log.
        by: String,
        /// As in [`Granted`](Self::Granted).
        scopes: Vec<ApprovalScope>,
        /// The rule for each part, in the order of the parts; `None` for the offered one. A rule that does not pass
        /// [`check_written_rule`](crate::permission::offered_rule::check_written_rule) is not stored, and its part is
        /// approved once.
        rules: Vec<Option<String>>,
    },
    /// The call does not run.
    Denied {
        /// The approver's name, for the audit log.
        by: String,
        /// A reason, or what to do instead, in the approver's words. The model reads it.
        message: Option<String>,
    },
    /// The user interrupted the question, and with it the call.
    Cancelled,
    /// Nobody is there who could answer. The call is refused.
    Unattended,
    /// Somebody was asked and did not answer in time. The call is refused.
    TimedOut,
}

impl Approval {
    /// A yes to every part, this once.
    pub fn once(by: impl Into<String>) -> Self {
        Self::Granted { by: by.into(), scopes: Vec::new() }
    }

    /// Returns a denial without a message.
    pub fn denied(by: impl Into<String>) -> Self {
        Self::Denied { by: by.into(), message: None }
    }
}

/// Puts the question to a person.
///
/// A decision that a program makes by itself is no approver's to say but an
/// [`ApprovalRule`](crate::ports::approval_rule::ApprovalRule)'s. Implementers never answer in a person's stead (a question that nobody can answer is [`Approval::Unattended`]) and
/// do not wait past [`ApprovalRequest::deadline`]. Dropping the future takes the question back. A panic denies the call.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks, and waits for the answer.
    async fn ask<'s, 'r>(&'s self, request: ApprovalRequest<'r>) -> Approval;
}

/// The approver where nobody is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unattended;

#[async_trait]
impl Approver for Unattended {
    async fn ask(&self, _: ApprovalRequest<'_>) -> Approval {
        Approval::Unattended
    }
}
