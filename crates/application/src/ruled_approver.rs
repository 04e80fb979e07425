//! The rules of a program before the person whom they spare a question.

use crate::execute_tool::report_panic;
use async_trait::async_trait;
use futures::FutureExt;
use std::{fmt, panic::AssertUnwindSafe, sync::Arc};
use tokio::time::timeout_at;
use toolstead_domain::ports::{
    approval_rule::{ApprovalRule, RuleAnswer},
    approver::{Approval, ApprovalRequest, ApprovalScope, Approver},
};

/// Asks each rule of the program, then a person. A rule answers as itself.
pub struct RuledApprover {
    rules: Vec<Arc<dyn ApprovalRule>>,
    person: Arc<dyn Approver>,
}

impl RuledApprover {
    /// The rules, in this order, before that person.
    pub fn new(rules: Vec<Arc<dyn ApprovalRule>>, person: Arc<dyn Approver>) -> Self {
        Self { rules, person }
    }
}

impl fmt::Debug for RuledApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<&str> = self.rules.iter().map(|rule| rule.name()).collect();
        f.debug_struct("RuledApprover").field("rules", &rules).finish_non_exhaustive()
    }
}

#[async_trait]
impl Approver for RuledApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> Approval {
        for rule in &self.rules {
            let by = || format!("the program's rule `{}`", rule.name());
            let judging = AssertUnwindSafe(rule.judge(&request)).catch_unwind();
            let answer = match timeout_at(request.deadline.into(), judging).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(panic)) => {
                    report_panic(&by(), panic.as_ref());
                    return Approval::denied(format!("{}, which panicked", by()));
                }
                Err(_) => return Approval::TimedOut,
            };
            match answer {
                RuleAnswer::Refuse => return Approval::denied(by()),
                RuleAnswer::Once if request.is_by_default() => return Approval::once(by()),
                RuleAnswer::Session if request.is_by_default() => {
                    // A yes that was not offered for a session holds once.
                    let scopes = vec![ApprovalScope::Session; request.parts.len()];
                    return Approval::Granted { by: by(), scopes };
                }
                _ => {}
            }
        }
        self.person.ask(request).await
    }
}
