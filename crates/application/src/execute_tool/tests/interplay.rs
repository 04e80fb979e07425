//! The order of steps: the approval requests and tool calls before each write to the log.

use super::*;
use mockall::{Sequence, mock};
use toolstead_domain::{CallId, ExecutionFilter};

mock! {
    Log {}
    #[async_trait]
    impl ExecutionLog for Log {
        async fn record(&self, execution: ToolExecution) -> Result<(), StoreError>;
        async fn find(&self, id: CallId) -> Result<Option<ToolExecution>, StoreError>;
        async fn beginning_with(&self, digits: &str, at_most: u32) -> Result<Vec<CallId>, StoreError>;
        async fn list(&self, filter: &ExecutionFilter) -> Result<Vec<ToolExecution>, StoreError>;
        async fn check(&self) -> Result<(), StoreError>;
    }
}

/// Approver and provider that count their calls.
struct Met {
    approver: Arc<ScriptedApprover>,
    provider: Arc<ScriptedProvider>,
}

impl Met {
    fn by(answer: ApprovalOutcome) -> Arc<Self> {
        Arc::new(Self { approver: Arc::new(ScriptedApprover::answering([answer])), provider: Arc::new(provider()) })
    }

    /// Returns the number of approval requests and of tool calls so far.
    fn so_far(&self) -> (usize, usize) {
        (self.approver.questions().len(), self.provider.calls().len())
    }

    /// Expects the next record: with this outcome, after this number of approval requests and tool calls.
    fn expect(self: &Arc<Self>, log: &mut MockLog, order: &mut Sequence, row: Row, met: (usize, usize)) {
        let this = self.clone();
        let expected = log.expect_record().once().in_sequence(order);
        expected.withf(move |given| row.fits(given) && this.so_far() == met).returning(move |_| row.kept());
    }

    async fn call(&self, log: MockLog) -> Result<CallOutcome, ExecuteToolError> {
        let plan = Plan { approver: self.approver.clone(), ..Default::default() };
        let built = plan.built(self.provider.clone(), Arc::new(log)).await;
        built.handler.handle(command("write", json!({}))).await
    }
}

/// Record that the log receives, and its result.
#[derive(Clone, Copy)]
enum Row {
    Start,
    StartThatIsLost,
    End,
}

impl Row {
    fn fits(self, row: &ToolExecution) -> bool {
        row.outcome.is_final() == matches!(self, Self::End)
    }

    fn kept(self) -> Result<(), StoreError> {
        match self {
            Self::Start | Self::End => Ok(()),
            Self::StartThatIsLost => {
                Err(StoreError { operation: "record the call".into(), source: "the disk is full".into() })
            }
        }
    }
}

/// Calls a tool that changes something, and returns its error. The log expects exactly these records.
async fn check(answer: ApprovalOutcome, rows: &[(Row, (usize, usize))], ran: usize) -> Option<ExecuteToolError> {
    let (met, mut log, mut order) = (Met::by(answer), MockLog::new(), Sequence::new());
    for (row, so_far) in rows {
        met.expect(&mut log, &mut order, *row, *so_far);
    }
    let outcome = met.call(log).await;
    assert_eq!(met.so_far(), (1, ran));
    outcome.err()
}

#[tokio::test]
async fn a_change_is_approved_then_recorded_then_run_then_recorded_again() {
    let rows = [(Row::Start, (1, 0)), (Row::End, (1, 1))];
    assert!(check(ApprovalOutcome::once("somebody"), &rows, 1).await.is_none());
}

#[tokio::test]
async fn a_change_that_an_approver_denies_is_recorded_once_and_never_reaches_its_provider() {
    let error = check(ApprovalOutcome::denied("somebody"), &[(Row::End, (1, 0))], 0).await;
    assert!(matches!(error, Some(ExecuteToolError::Refused(_))), "{error:?}");
}

#[tokio::test]
async fn a_change_whose_start_cannot_be_recorded_never_reaches_its_provider() {
    let rows = [(Row::StartThatIsLost, (1, 0)), (Row::End, (1, 0))];
    let error = check(ApprovalOutcome::once("somebody"), &rows, 0).await;
    assert!(matches!(error, Some(ExecuteToolError::AuditFailure { what: AuditFailure::Start, .. })), "{error:?}");
}
