//! Registry of the runs in progress. A call in a run looks its run up for the remaining budget and the event channel.

use super::spending::BudgetLedger;
use crate::{cancel_signal::CancelSignal, run_agent::CompactionThreshold};
use async_trait::async_trait;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::mpsc::UnboundedSender;
use toolstead_domain::{
    AgentEvent, Caller, CancelReason, InputRequest, InputResponse, LogMessage, ModelProvider, NotAnswered, Principal,
    Progress,
};

/// One run in progress.
pub(crate) struct RunInProgress {
    /// Budget of the run and of all work that it delegates.
    pub(super) ledger: Arc<BudgetLedger>,
    /// Depth of delegation: 0 for a run that a user started, and one more for each delegation.
    pub(crate) depth: u32,
    pub(crate) model: Arc<dyn ModelProvider>,
    pub(crate) summarizer: Option<Arc<dyn ModelProvider>>,
    pub(crate) compaction: CompactionThreshold,
    /// Channel for the events of the run that a user started, which is this run or an ancestor.
    pub(super) events: UnboundedSender<AgentEvent>,
    pub(super) caller: Arc<dyn Caller>,
    /// Cancels the run.
    pub(crate) cancel: CancelSignal,
    /// Cancelled once the run has ended.
    pub(super) over: CancelSignal,
}

impl RunInProgress {
    /// Publishes an event of work that the run delegates.
    pub(crate) fn publish(&self, event: AgentEvent) {
        // Fails if the events are no longer read; the run is being cancelled then.
        let _ = self.events.send(event);
    }

    /// Returns `true` if a budget limits the costs of work that the run delegates.
    pub(crate) fn bounds_costs(&self) -> bool {
        self.ledger.bounds_costs()
    }

    /// Returns the caller of the run, for work that may outlive the run. Once the run has ended, the caller answers no
    /// questions and drops log messages. It never passes on progress.
    pub(crate) fn caller_until_end(&self) -> Arc<dyn Caller> {
        Arc::new(RunScopedCaller { caller: self.caller.clone(), over: self.over.clone() })
    }
}

/// All runs in progress, by the principal and session of their calls.
#[derive(Clone, Default)]
pub(super) struct RunRegistry {
    runs: Arc<Mutex<HashMap<RunKey, Arc<RunInProgress>>>>,
}

type RunKey = (Principal, Arc<str>);

impl RunRegistry {
    pub(super) fn find(&self, principal: &Principal, session: &str) -> Option<Arc<RunInProgress>> {
        self.lock().get(&(principal.clone(), session.into())).cloned()
    }

    /// Registers the run. Dropping the returned registration ends the run's entry and cancels [`RunInProgress::over`].
    /// Of two runs in one session, only the first can be found.
    pub(super) fn begin(&self, key: RunKey, run: RunInProgress) -> RunRegistration {
        let run = Arc::new(run);
        self.lock().entry(key.clone()).or_insert_with(|| run.clone());
        RunRegistration { runs: self.clone(), key, run }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunKey, Arc<RunInProgress>>> {
        // Nothing panics while the lock is held.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registration of a run, which ends when the value is dropped.
pub(super) struct RunRegistration {
    runs: RunRegistry,
    key: RunKey,
    run: Arc<RunInProgress>,
}

impl Drop for RunRegistration {
    fn drop(&mut self) {
        self.run.over.cancel(CancelReason::Client);
        let mut runs = self.runs.lock();
        if runs.get(&self.key).is_some_and(|run| Arc::ptr_eq(run, &self.run)) {
            runs.remove(&self.key);
        }
    }
}

/// The caller of a run, available until the run ends.
struct RunScopedCaller {
    caller: Arc<dyn Caller>,
    over: CancelSignal,
}

impl RunScopedCaller {
    async fn answer(
        &self,
        answer: impl Future<Output = Result<InputResponse, NotAnswered>> + Send,
    ) -> Result<InputResponse, NotAnswered> {
        tokio::select! {
            biased;
            _ = self.over.cancelled() => Err(NotAnswered::Disconnected),
            answer = answer => answer,
        }
    }
}

#[async_trait]
impl Caller for RunScopedCaller {
    fn wants_progress(&self) -> bool {
        false
    }

    async fn disconnected(&self) {
        tokio::select! {
            _ = self.over.cancelled() => {}
            () = self.caller.disconnected() => {}
        }
    }

    fn waited(&self) -> Duration {
        self.caller.waited()
    }

    fn progress(&self, _: Progress) {}

    fn log(&self, message: LogMessage) {
        if self.over.reason().is_none() {
            self.caller.log(message);
        }
    }

    fn elicitation_completed(&self, elicitation_id: &str) {
        self.caller.elicitation_completed(elicitation_id);
    }

    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.answer(self.caller.ask(request)).await
    }

    async fn ask_as(&self, key: &str, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.answer(self.caller.ask_as(key, request)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use toolstead_domain::SilentCaller;

    #[test]
    fn the_caller_of_a_run_disconnects_when_the_run_or_its_parent_is_cancelled() {
        for ends_above in [false, true] {
            let (own, above) = (CancelSignal::new(), CancelSignal::new());
            let caller = Arc::new(RunScopedCaller { caller: Arc::new(SilentCaller), over: above.clone() });
            let below = RunScopedCaller { caller, over: own.clone() };
            assert_eq!(below.disconnected().now_or_never(), None);
            if ends_above { above } else { own }.cancel(CancelReason::Client);
            assert_eq!(below.disconnected().now_or_never(), Some(()));
        }
    }
}
