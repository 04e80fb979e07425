//! A rule store in memory.

use super::lock;
use crate::{
    permission::rule::RuleOrigin,
    ports::{
        approver::ApprovalScope,
        rule_store::{RuleNotSaved, RuleStore},
    },
};
use async_trait::async_trait;
use std::sync::Mutex;

/// Store that holds rules of both lasting scopes in memory, or refuses all of them.
#[derive(Debug, Default)]
pub struct InMemoryRuleStore {
    kept: Mutex<Vec<(ApprovalScope, String)>>,
    broken: bool,
}

impl InMemoryRuleStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a store that offers to store rules and then fails.
    pub fn broken() -> Self {
        Self { broken: true, ..Self::default() }
    }

    /// Returns the stored rules, in order.
    pub fn stored_rules(&self) -> Vec<(ApprovalScope, String)> {
        lock(&self.kept).clone()
    }
}

#[async_trait]
impl RuleStore for InMemoryRuleStore {
    fn keeps(&self, scope: ApprovalScope) -> bool {
        matches!(scope, ApprovalScope::Project | ApprovalScope::Always)
    }

    async fn keep(&self, rule: &str, scope: ApprovalScope) -> Result<RuleOrigin, RuleNotSaved> {
        if self.broken {
            return Err(RuleNotSaved("the disk is full".into()));
        }
        if !self.keeps(scope) {
            return Err(RuleNotSaved(format!("there is no place for rules of the scope `{}`", scope.as_str())));
        }
        let mut kept = lock(&self.kept);
        let rule = (scope, rule.to_owned());
        let place = kept.iter().position(|other| *other == rule).unwrap_or_else(|| {
            kept.push(rule);
            kept.len() - 1
        });
        Ok(RuleOrigin::File(format!("/memory/{}.toml", scope.as_str()).into(), place + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ports::rule_store::NoRuleStore,
        testing::{block_on::block_on, rule_store_contract::rule_store_contract},
    };

    #[test]
    fn stores_of_rules_keep_the_contract() {
        block_on(rule_store_contract(&InMemoryRuleStore::new()));
        block_on(rule_store_contract(&NoRuleStore));
    }
}
