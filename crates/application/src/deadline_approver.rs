//! An approver whose answers count until the deadline of the request.

use async_trait::async_trait;
use std::{fmt, sync::Arc};
use tokio::time::timeout_at;
use toolstead_domain::{ApprovalOutcome, ApprovalRequest, Approver};

/// Approver of the embedding application that has until [`ApprovalRequest::deadline`] to answer; afterwards the answer
/// is [`ApprovalOutcome::TimedOut`].
pub struct DeadlineApprover(Arc<dyn Approver>);

impl DeadlineApprover {
    /// Creates the limit for this approver.
    pub fn new(approver: Arc<dyn Approver>) -> Self {
        Self(approver)
    }
}

impl fmt::Debug for DeadlineApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineApprover").finish_non_exhaustive()
    }
}

#[async_trait]
impl Approver for DeadlineApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalOutcome {
        let deadline = request.deadline;
        timeout_at(deadline.into(), self.0.ask(request)).await.unwrap_or(ApprovalOutcome::TimedOut)
    }
}
