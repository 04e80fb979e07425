//! The runs that go on, as the calls made in them may know them: what they may still use up, and who hears of it.

use super::spending::Purse;
use crate::{cancel_signal::CancelSignal, run_agent::Compaction};
use async_trait::async_trait;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::mpsc::UnboundedSender;
use toolstead_domain::{
    agent::event::AgentEvent,
    ports::{
        caller::{Caller, InputRequest, InputResponse, LogMessage, NotAnswered, Progress},
        model_provider::ModelProvider,
    },
    principal::Principal,
    tool_execution::CancelReason,
};

/// One run that goes on.
pub(crate) struct Ongoing {
    /// All that it may use up, with all that it hands over.
    pub(super) purse: Arc<Purse>,
    /// 0 for one that a person began, and one more for each that work was handed on to.
    pub(crate) depth: u32,
    pub(crate) model: Arc<dyn ModelProvider>,
    pub(crate) summarizer: Option<Arc<dyn ModelProvider>>,
    pub(crate) compaction: Compaction,
    /// Those who watch the run that a person began, which is this one or one above it.
    pub(super) telling: UnboundedSender<AgentEvent>,
    pub(super) caller: Arc<dyn Caller>,
    /// Takes it back.
    pub(crate) cancel: CancelSignal,
    /// Given once it is over.
    pub(super) over: CancelSignal,
}

impl Ongoing {
    /// Tells those who watch what happens in work that is handed over here.
    pub(crate) fn tell(&self, event: AgentEvent) {
        // Fails where nobody reads any more; the run is being taken back then.
        let _ = self.telling.send(event);
    }

    /// Tells whether something bounds the costs of work that it hands over.
    pub(crate) fn bounds_costs(&self) -> bool {
        self.purse.bounds_costs()
    }

    /// The way to the one who asked the run, for work that may go on after it.
    pub(crate) fn caller_while_it_lasts(&self) -> Arc<dyn Caller> {
        Arc::new(WhileItLasts { caller: self.caller.clone(), over: self.over.clone() })
    }
}

/// All runs that go on, by the principal and the session of their calls.
#[derive(Clone, Default)]
pub(super) struct OngoingRuns {
    runs: Arc<Mutex<HashMap<Key, Arc<Ongoing>>>>,
}

type Key = (Principal, Arc<str>);

impl OngoingRuns {
    pub(super) fn find(&self, principal: &Principal, session: &str) -> Option<Arc<Ongoing>> {
        self.lock().get(&(principal.clone(), session.into())).cloned()
    }

    /// The run goes on until what this returns is dropped. Of two in one session the first is known.
    pub(super) fn begin(&self, key: Key, run: Ongoing) -> Entry {
        let run = Arc::new(run);
        self.lock().entry(key.clone()).or_insert_with(|| run.clone());
        Entry { runs: self.clone(), key, run }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Ongoing>>> {
        // Nothing panics while it is held.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run among those that go on.
pub(super) struct Entry {
    runs: OngoingRuns,
    key: Key,
    run: Arc<Ongoing>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.run.over.cancel(CancelReason::Client);
        let mut runs = self.runs.lock();
        if runs.get(&self.key).is_some_and(|run| Arc::ptr_eq(run, &self.run)) {
            runs.remove(&self.key);
        }
    }
}

/// The caller of a run, who is there as long as that.
struct WhileItLasts {
    caller: Arc<dyn Caller>,
    over: CancelSignal,
}

impl WhileItLasts {
    async fn answer(
        &self,
        answer: impl Future<Output = Result<InputResponse, NotAnswered>> + Send,
    ) -> Result<InputResponse, NotAnswered> {
        tokio::select! {
            biased;
            _ = self.over.cancelled() => Err(NotAnswered::Gone),
            answer = answer => answer,
        }
    }
}

#[async_trait]
impl Caller for WhileItLasts {
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
    use toolstead_domain::ports::caller::SilentCaller;

    #[test]
    fn the_caller_of_a_run_is_gone_with_it_and_with_the_one_above() {
        for ends_above in [false, true] {
            let (own, above) = (CancelSignal::new(), CancelSignal::new());
            let caller = Arc::new(WhileItLasts { caller: Arc::new(SilentCaller), over: above.clone() });
            let below = WhileItLasts { caller, over: own.clone() };
            assert_eq!(below.disconnected().now_or_never(), None);
            if ends_above { above } else { own }.cancel(CancelReason::Client);
            assert_eq!(below.disconnected().now_or_never(), Some(()));
        }
    }
}
