//! One call that may be parked: its open questions, and the current round of its client.

use super::{
    sealed_state::{Digest, RequestStateContent, RequestStateKey},
    waiting_room::ParkedCallTable,
};
use crate::{
    cancel_signal::CancelSignal,
    execute_tool::error::ExecuteToolError,
    open_calls::{NotAdmitted, OpenCalls},
};
use async_trait::async_trait;
use futures::task::AtomicWaker;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{
    sync::{Notify, oneshot, watch},
    time::{Instant, sleep_until},
};
use toolstead_domain::{
    CallId, CallOutcome, Caller, CancelReason, ClientCapability, ClientProfile, InputRequest, InputRequired,
    InputResponse, InputResponses, LogMessage, NotAnswered, Principal, Progress,
};

/// Maximum number of questions per call, over all rounds. More would exhaust the user's patience.
const MAX_QUESTIONS: usize = 64;

/// Outcome of a call or of one of its rounds.
pub(in crate::execute_tool) type CallResult = Result<CallOutcome, ExecuteToolError>;

/// Call of a client that answers with retries. The call's path uses it as its caller. Its questions are sent when the
/// path can make no progress without answers; its progress and log messages go to the attached round.
pub(in crate::execute_tool) struct ParkedCall {
    pub(super) terms: CallProperties,
    /// Wakes the path: another task of its tool may ask a question.
    pub(super) waker: AtomicWaker,
    /// Notified when the attached round may end.
    changed: Notify,
    /// Time until which the call waits for a round; `None` while a round is attached.
    until: watch::Sender<Option<Instant>>,
    state: Mutex<State>,
    me: Weak<ParkedCall>,
}

/// Properties of a call that do not change.
pub(super) struct CallProperties {
    pub(super) id: CallId,
    pub(super) principal: Principal,
    pub(super) session: Arc<str>,
    pub(super) owner: Digest,
    pub(super) request: Digest,
    pub(super) client: Arc<ClientProfile>,
    pub(super) cancel: CancelSignal,
    /// Maximum time to wait for a round.
    pub(super) retry_timeout: Duration,
    pub(super) seal: Arc<RequestStateKey>,
    pub(super) room: Arc<ParkedCallTable<ParkedCall>>,
    pub(super) open_calls: Arc<OpenCalls>,
}

struct State {
    round: u32,
    is_waiting: bool,
    /// `true` once no further round is admitted.
    is_over: bool,
    /// Caller of the attached round.
    caller: Option<Arc<dyn Caller>>,
    questions: BTreeMap<String, ParkedQuestion>,
    asked: usize,
    /// `true` if questions arrived since the last check.
    has_new_questions: bool,
    /// `true` if the questions are to be sent.
    is_due: bool,
    outcome: Option<CallResult>,
}

struct ParkedQuestion {
    number: usize,
    request: InputRequest,
    /// `true` once the question was sent to the client.
    is_out: bool,
    answer: oneshot::Sender<Result<InputResponse, NotAnswered>>,
}

/// Reason why a parked call is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AbandonReason {
    /// The client did not retry in time.
    Late,
    /// The runtime shuts down.
    Shutdown,
}

/// Reason why a retry is not attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttachError {
    /// The call does not wait for this round.
    Used,
    /// The limit of open calls is reached, or the runtime shuts down.
    NotAdmitted(NotAdmitted),
}

impl ParkedCall {
    pub(super) fn new(terms: CallProperties, caller: Arc<dyn Caller>) -> Arc<Self> {
        let state = State {
            round: 0,
            is_waiting: false,
            is_over: false,
            caller: Some(caller),
            questions: BTreeMap::new(),
            asked: 0,
            has_new_questions: false,
            is_due: false,
            outcome: None,
        };
        Arc::new_cyclic(|me| Self {
            terms,
            waker: AtomicWaker::new(),
            changed: Notify::new(),
            until: watch::Sender::new(None),
            state: Mutex::new(state),
            me: me.clone(),
        })
    }

    /// Attaches a retry of the current round, with its answers.
    pub(super) fn attach(
        &self,
        round: u32,
        caller: Arc<dyn Caller>,
        answers: Option<&InputResponses>,
    ) -> Result<(), AttachError> {
        let mut state = self.lock();
        if !state.is_waiting || state.round != round {
            return Err(AttachError::Used);
        }
        self.terms.open_calls.resume(self.terms.id).map_err(AttachError::NotAdmitted)?;
        state.is_waiting = false;
        state.caller = Some(caller);
        self.until.send_replace(None);
        for (key, answer) in answers.into_iter().flatten() {
            // A question that arrived while the client was disconnected was not sent. An answer under its key belongs
            // to an earlier question.
            if state.questions.get(key).is_some_and(|question| question.is_out)
                && let Some(question) = state.questions.remove(key)
            {
                // The asking task may have ended meanwhile.
                let _ = question.answer.send(Ok(answer.clone()));
            }
        }
        // Unanswered questions are sent again at once.
        state.is_due = !state.questions.is_empty();
        Ok(())
    }

    /// Waits for the outcome of the attached round.
    pub(super) async fn round(&self) -> CallResult {
        loop {
            let changed = self.changed.notified();
            if let Some(outcome) = self.take_outcome() {
                return outcome;
            }
            changed.await;
        }
    }

    fn take_outcome(&self) -> Option<CallResult> {
        let mut state = self.lock();
        match state.outcome.take() {
            Some(outcome) => {
                state.is_over = true;
                self.until.send_replace(None);
                Some(outcome)
            }
            None => self.take_due_questions(&mut state).map(|questions| Ok(CallOutcome::InputRequired(questions))),
        }
    }

    /// Ends the round if questions are to be sent, and returns them: the call then waits for a retry. `None` if none
    /// are to be sent.
    pub(super) fn due(&self) -> Option<InputRequired> {
        self.take_due_questions(&mut self.lock())
    }

    fn take_due_questions(&self, state: &mut State) -> Option<InputRequired> {
        if !std::mem::take(&mut state.is_due) || state.questions.is_empty() || state.is_over {
            return None;
        }
        let terms = &self.terms;
        let until = Instant::now() + terms.retry_timeout;
        state.round += 1;
        state.is_waiting = true;
        state.caller = None;
        terms.open_calls.wait(terms.id);
        self.until.send_replace(Some(until));
        let sealed = RequestStateContent {
            call: terms.id,
            round: state.round,
            until,
            owner: terms.owner,
            request: terms.request,
        };
        let to_request = |(key, question): (&String, &mut ParkedQuestion)| {
            question.is_out = true;
            (key.clone(), question.request.clone())
        };
        let requests = state.questions.iter_mut().map(to_request).collect();
        Some(InputRequired { requests, state: Some(terms.seal.seal(&sealed)) })
    }

    /// Returns `true` if questions arrived since the last call of this method.
    pub(super) fn has_new_questions(&self) -> bool {
        std::mem::take(&mut self.lock().has_new_questions)
    }

    /// Lets the attached round end with the pending questions. Called when the path can make no progress without
    /// answers.
    pub(super) fn send_questions(&self) {
        self.lock().is_due = true;
        self.changed.notify_one();
    }

    /// Stores the outcome of the path. Returns `true` if a round is attached or may still be.
    pub(super) fn finish(&self, outcome: CallResult) -> bool {
        let mut state = self.lock();
        state.outcome = Some(outcome);
        self.changed.notify_one();
        !state.is_over
    }

    /// Waits until the call is given up: its client did not retry in time, or the runtime shuts down.
    pub(super) async fn abandoned(&self) -> AbandonReason {
        let mut until = self.until.subscribe();
        loop {
            let at = *until.borrow_and_update();
            let why = match at {
                None => {
                    // The sender lives as long as `self`.
                    let _ = until.changed().await;
                    continue;
                }
                Some(at) => tokio::select! {
                    biased;
                    _ = until.changed() => continue,
                    () = sleep_until(at) => AbandonReason::Late,
                    () = self.terms.open_calls.ended() => AbandonReason::Shutdown,
                },
            };
            let mut state = self.lock();
            if state.is_waiting && *self.until.borrow() == at {
                self.end(
                    &mut state,
                    if why == AbandonReason::Late { &NotAnswered::TimedOut } else { &NotAnswered::Disconnected },
                );
                return why;
            }
        }
    }

    /// Waits until a round has received the outcome.
    pub(super) async fn outcome_taken(&self) {
        let mut until = self.until.subscribe();
        while self.lock().outcome.is_some() {
            let _ = until.changed().await;
        }
    }

    /// Cancels the call: its client cancelled it or its session ended, or another call needs its place.
    pub(super) fn cancel(&self) {
        self.end(&mut self.lock(), &NotAnswered::Disconnected);
        self.terms.cancel.cancel(CancelReason::Client);
    }

    /// Returns `true` if the call waits for a retry.
    pub(super) fn is_waiting(&self) -> bool {
        self.lock().is_waiting
    }

    fn end(&self, state: &mut State, why: &NotAnswered) {
        state.is_over = true;
        state.is_waiting = false;
        state.is_due = false;
        state.caller = None;
        state.outcome = None;
        // Wakes the tasks that retain the outcome or watch the time limit.
        self.until.send_replace(None);
        for (_, question) in std::mem::take(&mut state.questions) {
            let _ = question.answer.send(Err(why.clone()));
        }
    }

    async fn put(&self, key: Option<&str>, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        let is_declared = |capability: ClientCapability| capability.is_declared(&self.terms.client.capabilities);
        if !ClientCapability::of(&request).is_some_and(is_declared) {
            return Err(NotAnswered::Unsupported);
        }
        let me = self.me.upgrade().ok_or(NotAnswered::Disconnected)?;
        let terms = &self.terms;
        let made_room = terms.room.enter(terms.id, &terms.principal, &me, Self::is_waiting);
        if let Some(oldest) = made_room.map_err(|_| NotAnswered::TooMany)? {
            oldest.cancel();
        }
        let (answer, answered) = oneshot::channel();
        let open = {
            let mut state = self.lock();
            if state.is_over {
                return Err(NotAnswered::Disconnected);
            }
            if state.asked >= MAX_QUESTIONS {
                return Err(NotAnswered::Exhausted);
            }
            state.asked += 1;
            let number = state.asked;
            let mut key = key.map_or_else(|| format!("toolstead/question-{number}"), str::to_owned);
            while state.questions.contains_key(&key) {
                key = format!("{key}-{number}");
            }
            state.questions.insert(key.clone(), ParkedQuestion { number, request, is_out: false, answer });
            state.has_new_questions = true;
            QuestionGuard { call: self, key, number }
        };
        self.waker.wake();
        let said = answered.await.unwrap_or(Err(NotAnswered::Disconnected));
        drop(open);
        said
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attached(&self) -> Option<Arc<dyn Caller>> {
        self.lock().caller.clone()
    }
}

/// Question with a waiting asker. Dropping it withdraws the question.
struct QuestionGuard<'a> {
    call: &'a ParkedCall,
    key: String,
    number: usize,
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.call.lock();
        if state.questions.get(&self.key).is_some_and(|question| question.number == self.number) {
            state.questions.remove(&self.key);
        }
    }
}

#[async_trait]
impl Caller for ParkedCall {
    fn wants_progress(&self) -> bool {
        self.attached().is_some_and(|caller| caller.wants_progress())
    }

    async fn hurried(&self) {
        match self.attached() {
            Some(caller) => caller.hurried().await,
            None => std::future::pending().await,
        }
    }

    fn progress(&self, progress: Progress) {
        if let Some(caller) = self.attached() {
            caller.progress(progress);
        }
    }

    fn log(&self, message: LogMessage) {
        if let Some(caller) = self.attached() {
            caller.log(message);
        }
    }

    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.put(None, request).await
    }

    async fn ask_as(&self, key: &str, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.put(Some(key), request).await
    }
}

impl std::fmt::Debug for ParkedCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParkedCall").field("id", &self.terms.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use serde_json::json;
    use toolstead_domain::{SilentCaller, testing::samples::call_id};

    fn held() -> Arc<ParkedCall> {
        let capabilities = json!({"elicitation": {}}).as_object().unwrap().clone();
        let terms = CallProperties {
            id: call_id(1),
            principal: Principal::local(),
            session: "s".into(),
            owner: [0; 32],
            request: [0; 32],
            client: Arc::new(ClientProfile { capabilities, ..ClientProfile::without_protocol("test") }),
            cancel: CancelSignal::new(),
            retry_timeout: Duration::from_secs(60),
            seal: Arc::new(RequestStateKey::new()),
            room: Arc::new(ParkedCallTable::new()),
            open_calls: OpenCalls::new(1),
        };
        ParkedCall::new(terms, Arc::new(SilentCaller))
    }

    #[tokio::test]
    async fn an_answer_resolves_the_question_that_the_client_received_under_its_key() {
        let call = held();
        let question = || InputRequest { method: "elicitation/create".into(), params: json!({"message": "m"}) };
        // The key of the third question is used already, and so is its first alternative.
        let mut asked: Vec<_> = ["q", "q-3", "q"].iter().map(|key| call.ask_as(key, question())).collect();
        assert!(asked.iter_mut().all(|one| one.now_or_never().is_none()));
        call.send_questions();
        let required = call.due().unwrap();
        assert_eq!(required.requests.keys().collect::<Vec<_>>(), ["q", "q-3", "q-3-3"]);
        // The question that the client answers has been withdrawn, and another server asks under its key.
        drop(asked.remove(0));
        let mut late = call.ask_as("q", question());
        assert!((&mut late).now_or_never().is_none());
        let answers = ["q", "q-3", "q-3-3"].map(|key| (key.to_owned(), InputResponse(key.into())));
        call.attach(1, Arc::new(SilentCaller), Some(&answers.into())).unwrap();
        assert_eq!((&mut late).now_or_never(), None, "nobody answered this one");
        for (one, key) in asked.iter_mut().zip(["q-3", "q-3-3"]) {
            assert_eq!(one.now_or_never(), Some(Ok(InputResponse(key.into()))));
        }
        assert_eq!(call.due().unwrap().requests.into_keys().collect::<Vec<_>>(), ["q"]);
    }
}
