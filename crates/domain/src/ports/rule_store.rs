//! The store of rules that a user approved beyond a session.

use crate::{permission::rule::RuleOrigin, ports::approver::ApprovalScope};
use async_trait::async_trait;

/// Stores allow rules.
///
/// Implementers store a rule completely or not at all, change nothing else in the file that holds it, and apply stored
/// rules at the next start.
///
/// A test of an implementation runs the contract:
///
/// ```
/// use toolstead_domain::testing::{in_memory_rule_store::InMemoryRuleStore, rule_store_contract::rule_store_contract};
///
/// # async fn test() {
/// rule_store_contract(&InMemoryRuleStore::new()).await;
/// # }
/// ```
#[async_trait]
pub trait RuleStore: Send + Sync {
    /// Returns `true` if this store can store rules of this scope. Always `false` for scopes that end with a call, a
    /// run or a session.
    fn keeps(&self, scope: ApprovalScope) -> bool;

    /// Stores the allow rule and returns its origin. Storing a rule that already exists succeeds.
    ///
    /// # Errors
    /// [`RuleNotSaved`]; nothing has then changed.
    async fn keep(&self, rule: &str, scope: ApprovalScope) -> Result<RuleOrigin, RuleNotSaved>;
}

/// Reason why a rule is not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the rule cannot be stored: {0}")]
pub struct RuleNotSaved(pub String);

/// Store that stores no rules.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRuleStore;

#[async_trait]
impl RuleStore for NoRuleStore {
    fn keeps(&self, _: ApprovalScope) -> bool {
        false
    }
    async fn keep(&self, _: &str, _: ApprovalScope) -> Result<RuleOrigin, RuleNotSaved> {
        Err(RuleNotSaved("there is no store for rules".into()))
    }
}
