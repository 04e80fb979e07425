//! Contract of every store of approved rules.

use crate::ports::{approver::ApprovalScope, rule_store::RuleStore};

/// Checks the guarantees of [`RuleStore`] about its answers. Applying a rule at the next start is up to the reader of
/// its file, which is not part of this port.
///
/// # Panics
/// If a guarantee is violated; the message names it.
pub async fn rule_store_contract(store: &dyn RuleStore) {
    for scope in [ApprovalScope::Once, ApprovalScope::Run, ApprovalScope::Session, ApprovalScope::ReadOnlyCommands] {
        assert!(!store.keeps(scope), "no rule is kept for `{}`", scope.as_str());
    }
    for scope in ApprovalScope::ALL.iter().copied() {
        let first = store.keep("Bash(git status)", scope).await;
        if !store.keeps(scope) {
            assert!(first.is_err(), "a rule of the scope `{}` is not kept", scope.as_str());
            continue;
        }
        let first = first.expect("a scope that is offered is kept");
        let again = store.keep("Bash(git status)", scope).await;
        assert_eq!(again.as_ref().ok(), Some(&first), "a rule that stands there already is no error");
        store.keep("Bash(git log)", scope).await.expect("there is room for two rules");
    }
}
