//! Who answers when a rule says *ask*.

use crate::{access::Access, permission::decision::Decision, principal::Principal, tool_call::ToolCall};
use async_trait::async_trait;

/// One question: may this call, with these accesses, run?
#[derive(Debug)]
pub struct ApprovalRequest<'a> {
    /// The call. An answer is bound to its tool and the digest of its arguments, and is used once.
    pub call: &'a ToolCall,
    /// Which of its arguments are stored outputs, for the one who is asked: "`/content` is the stored output `o17`
    /// (300000 bytes of text/plain)".
    pub references: &'a [String],
    /// Who asks for it.
    pub principal: &'a Principal,
    /// What it would touch.
    pub accesses: &'a [Access],
    /// The decision that led here, with its rule.
    pub decision: &'a Decision,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// Run it, this once.
    Granted {
        /// Who said so, for the audit trail.
        by: String,
    },
    /// Do not.
    Denied {
        /// Who said so, for the audit trail.
        by: String,
    },
    /// Nobody is there who could answer. The call is refused.
    Unattended,
    /// Somebody was asked and did not answer in time. The call is refused.
    TimedOut,
}

/// Puts the question to a person.
///
/// Implementers never answer in a person's stead (a question that nobody can answer is [`Approval::Unattended`]) and
/// never wait for ever. Dropping the future takes the question back.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks, and waits for the answer.
    async fn ask(&self, request: ApprovalRequest<'_>) -> Approval;
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
