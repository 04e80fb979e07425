//! The store of rules that a person approved for longer than a session.

use crate::{permission::rule::RuleOrigin, ports::approver::ApprovalScope};
use async_trait::async_trait;

/// Keeps allow rules.
///
/// Implementers keep a rule whole or not at all, change nothing else in the place where it stands, and what they kept is
/// in force at the next start.
#[async_trait]
pub trait RuleStore: Send + Sync {
    /// Tells whether rules of this scope can be kept here. Never for those that end with a call, a run or a
    /// session.
    fn keeps(&self, scope: ApprovalScope) -> bool;

    /// Keeps the allow rule and says where it stands now. One that stands there already is no error.
    ///
    /// # Errors
    /// [`RuleNotKept`]; then nothing changed.
    async fn keep(&self, rule: &str, scope: ApprovalScope) -> Result<RuleOrigin, RuleNotKept>;
}

/// The reason why a rule is not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the rule cannot be kept: {0}")]
pub struct RuleNotKept(pub String);

/// The store that keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRuleStore;

#[async_trait]
impl RuleStore for NoRuleStore {
    fn keeps(&self, _: ApprovalScope) -> bool {
        false
    }
    async fn keep(&self, _: &str, _: ApprovalScope) -> Result<RuleOrigin, RuleNotKept> {
        Err(RuleNotKept("there is no place for it".into()))
    }
}
