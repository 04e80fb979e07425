//! Pending requests of one connection.

use crate::mcp::{
    client::connection::request_error::RequestError,
    wire::{incoming::RawResponse, message::RequestId},
};
use std::{
    collections::{HashMap, VecDeque},
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::time::Instant;
use toolstead_domain::{InputRequest, LogMessage, Principal, Progress};

/// Maximum number of pending progress reports and log messages of a call, and of all its questions. Further notices
/// replace the oldest; further questions are refused.
const WAITING_NOTICES: usize = 64;
/// Time for which messages of the server may still refer to a cancelled call.
const LATE_MESSAGE_TIME: Duration = Duration::from_secs(60);
/// Maximum number of cancelled calls to remember.
const TAKEN_BACK: usize = 64;
/// Maximum length of the id of a web page (`elicitationId`) to remember, in bytes.
const MAX_PAGE_ID: usize = 512;

/// Pending requests by id. Ids are never reused on one connection.
#[derive(Debug, Default)]
pub(in crate::mcp::client) struct PendingRequests {
    last_id: AtomicI64,
    table: Mutex<RequestTable>,
}

#[derive(Debug, Default)]
struct RequestTable {
    waiting: HashMap<i64, Arc<PendingRequest>>,
    /// Number of pending calls.
    calls: usize,
    /// Principals of recently cancelled calls with the time of cancellation, newest last.
    cancelled: VecDeque<(Option<Principal>, Instant)>,
    /// Reason why the connection has ended. No request can be made afterwards.
    ended: Option<String>,
}

/// One pending request.
#[derive(Debug)]
pub(in crate::mcp::client) struct PendingRequest {
    /// Id of the request, which is also its progress token if it has one.
    pub(in crate::mcp::client) id: i64,
    purpose: RequestPurpose,
    principal: OnceLock<Principal>,
    state: Mutex<RequestState>,
}

/// Principals whose calls are pending.
#[derive(Debug, PartialEq)]
pub(in crate::mcp::client) enum PendingPrincipals {
    /// No call is pending.
    None,
    /// All calls belong to this principal.
    One(Principal),
    /// The calls belong to several principals, or the principal of a call is unknown.
    Several,
}

/// Purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mcp::client) enum RequestPurpose {
    /// Tool call, which may receive progress, log messages and questions.
    Call {
        /// `true` if the call requested progress.
        progress: bool,
    },
    /// Any other request.
    Exchange,
}

#[derive(Debug, Default)]
struct RequestState {
    outcome: Option<Result<RawResponse, RequestError>>,
    /// `None` until a message for the request arrives before its response, which is rare.
    notices: Option<Box<PendingRequestMessages>>,
    waker: Option<Waker>,
}

/// Messages that arrived for a request before its response.
#[derive(Debug, Default)]
struct PendingRequestMessages {
    /// Value of the last progress report.
    reached: Option<f64>,
    /// Progress and log messages not yet delivered, in order. A progress report replaces the one before it when the
    /// queue is full.
    undelivered: VecDeque<CallNotice>,
    questions: VecDeque<(RequestId, InputRequest)>,
    /// Number of questions received for the request, including cancelled ones.
    questions_taken: usize,
    /// Ids of the questions received for the request and not cancelled.
    asked: Vec<RequestId>,
    /// Ids of questions that were cancelled after they were delivered.
    withdrawn: VecDeque<RequestId>,
    /// Ids (`elicitationId`) of the web pages to which questions sent the user, until they are completed.
    pages: Vec<String>,
    completed: VecDeque<String>,
}

/// Message that arrives for a call before its response.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::mcp::client) enum CallNotice {
    /// Progress report.
    Progress(Progress),
    /// Log message.
    Log(LogMessage),
    /// Question, with the id to use in its response.
    Question(RequestId, InputRequest),
    /// Cancellation of a question.
    Withdrawn(RequestId),
    /// Completion of the user's work on a web page, with its `elicitationId`.
    Completed(String),
}

impl PendingRequests {
    /// Registers a request before it is sent.
    ///
    /// # Errors
    /// Returns [`RequestError::Lost`] if the connection has ended.
    pub(in crate::mcp::client) fn begin(&self, purpose: RequestPurpose) -> Result<Arc<PendingRequest>, RequestError> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let waiting = Arc::new(PendingRequest { id, purpose, principal: OnceLock::new(), state: Mutex::default() });
        let mut table = self.table();
        if let Some(reason) = &table.ended {
            return Err(RequestError::Lost(reason.clone()));
        }
        table.calls += usize::from(purpose.is_call());
        table.waiting.insert(id, waiting.clone());
        Ok(waiting)
    }

    /// Sets the outcome of a request. Returns `false` if no request with this id is pending: it was never made, already
    /// has its outcome, or was cancelled.
    pub(in crate::mcp::client) fn settle(&self, id: &RequestId, outcome: Result<RawResponse, RequestError>) -> bool {
        let Some(waiting) = number(id).and_then(|id| self.table().remove(id)) else { return false };
        waiting.update(|state| state.outcome = Some(outcome));
        true
    }

    /// Removes a pending request. Returns `false` if it already has its outcome.
    pub(in crate::mcp::client) fn forget(&self, id: i64) -> bool {
        self.table().remove(id).is_some()
    }

    /// Cancels a request that the server may still process. Later messages that name no call may be about this one.
    /// Returns `false` if the request is no longer pending.
    pub(in crate::mcp::client) fn cancel(&self, id: i64) -> bool {
        let mut table = self.table();
        let Some(waiting) = table.remove(id) else { return false };
        if waiting.is_call() {
            if table.cancelled.len() == TAKEN_BACK {
                table.cancelled.pop_front();
            }
            table.cancelled.push_back((waiting.principal.get().cloned(), Instant::now()));
        }
        true
    }

    /// Delivers progress to the call that requested it with this token. Returns `false` if the token is unknown, the
    /// call requested no progress, or the progress does not increase.
    pub(in crate::mcp::client) fn progress(&self, token: &RequestId, progress: Progress) -> bool {
        let waiting = number(token).and_then(|id| self.table().waiting.get(&id).cloned());
        waiting.is_some_and(|waiting| waiting.push_progress(progress))
    }

    /// Cancels a question of any pending call. Returns `false` if no call has received this question.
    pub(in crate::mcp::client) fn withdraw(&self, question: &RequestId) -> bool {
        self.calls().any(|call| call.withdraw(question))
    }

    /// Reports to the call that sent the user to this web page (`elicitationId`) that the page is completed. Returns
    /// `false` if no call did.
    pub(in crate::mcp::client) fn completed(&self, page: &str) -> bool {
        self.calls().any(|call| call.completed(page))
    }

    fn calls(&self) -> impl Iterator<Item = Arc<PendingRequest>> + use<> {
        let calls: Vec<_> = self.table().waiting.values().filter(|one| one.purpose.is_call()).cloned().collect();
        calls.into_iter()
    }

    /// Returns the number of pending calls.
    pub(in crate::mcp::client) fn call_count(&self) -> usize {
        self.table().calls
    }

    /// Returns the only pending call. `None` if there is none or more than one, or if a call of another principal was
    /// just cancelled.
    pub(in crate::mcp::client) fn sole_call(&self) -> Option<Arc<PendingRequest>> {
        let table = self.table();
        if table.calls != 1 {
            return None;
        }
        let call = table.waiting.values().find(|waiting| waiting.purpose.is_call())?;
        table.recently_cancelled().all(|principal| principal == call.principal.get()).then(|| call.clone())
    }

    /// Returns the most recent pending call other than `other_than`.
    pub(in crate::mcp::client) fn newest_call(&self, other_than: Option<i64>) -> Option<Arc<PendingRequest>> {
        let calls = self.calls().filter(|call| Some(call.id) != other_than);
        calls.max_by_key(|call| call.id)
    }

    /// Returns the principals of the calls that are pending or were just cancelled.
    pub(in crate::mcp::client) fn callers(&self) -> PendingPrincipals {
        let table = self.table();
        let calls = table.waiting.values().filter(|waiting| waiting.purpose.is_call());
        let principals = calls.map(|call| call.principal.get()).chain(table.recently_cancelled());
        principals.fold(PendingPrincipals::None, |callers, principal| match (callers, principal) {
            (PendingPrincipals::None, Some(principal)) => PendingPrincipals::One(principal.clone()),
            (PendingPrincipals::One(one), Some(principal)) if one == *principal => PendingPrincipals::One(one),
            _ => PendingPrincipals::Several,
        })
    }

    /// Returns the id of the only pending request; `None` if there is none or more than one.
    pub(in crate::mcp::client) fn sole_id(&self) -> Option<i64> {
        let table = self.table();
        if table.waiting.len() == 1 { table.waiting.keys().next().copied() } else { None }
    }

    /// Ends every pending request and rejects new ones.
    pub(in crate::mcp::client) fn end(&self, reason: &str) {
        let waiting = {
            let mut table = self.table();
            table.ended.get_or_insert_with(|| reason.to_owned());
            table.calls = 0;
            std::mem::take(&mut table.waiting)
        };
        for waiting in waiting.into_values() {
            waiting.update(|state| state.outcome = Some(Err(RequestError::Lost(reason.to_owned()))));
        }
    }

    fn table(&self) -> MutexGuard<'_, RequestTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestTable {
    fn remove(&mut self, id: i64) -> Option<Arc<PendingRequest>> {
        let waiting = self.waiting.remove(&id)?;
        self.calls -= usize::from(waiting.purpose.is_call());
        Some(waiting)
    }

    fn recently_cancelled(&self) -> impl Iterator<Item = Option<&Principal>> {
        let recent = self.cancelled.iter().rev().take_while(|(_, at)| at.elapsed() < LATE_MESSAGE_TIME);
        recent.map(|(principal, _)| principal.as_ref())
    }
}

impl PendingRequest {
    /// Records the principal of the request. Does nothing for `None`, or if a principal is recorded already.
    pub(in crate::mcp::client) fn belongs_to(&self, principal: Option<&Principal>) {
        if let Some(principal) = principal {
            self.principal.get_or_init(|| principal.clone());
        }
    }

    /// Returns `true` if the request is a tool call.
    pub(in crate::mcp::client) fn is_call(&self) -> bool {
        self.purpose.is_call()
    }

    /// Waits for the outcome. It can be taken once.
    pub(in crate::mcp::client) async fn outcome(&self) -> Result<RawResponse, RequestError> {
        poll_fn(|cx| self.poll(cx, |state| state.outcome.take())).await
    }

    /// Waits for the next notice of the call; questions only if `with_questions`. Waits forever if none arrives. Must
    /// run in the same task as [`outcome`](Self::outcome), because there is one waker.
    pub(in crate::mcp::client) async fn notice(&self, with_questions: bool) -> CallNotice {
        poll_fn(|cx| self.poll(cx, |state| state.take_notice(with_questions))).await
    }

    /// Returns the next notice without waiting, other than a question.
    pub(in crate::mcp::client) fn ready_notice(&self) -> Option<CallNotice> {
        self.state().take_notice(false)
    }

    /// Removes and returns the questions that have not been delivered.
    pub(in crate::mcp::client) fn untaken_questions(&self) -> Vec<(RequestId, InputRequest)> {
        self.state().notices.as_mut().map_or(Vec::new(), |notices| notices.questions.drain(..).collect())
    }

    /// Queues a log message for the call. Drops the oldest notice if the queue is full.
    pub(in crate::mcp::client) fn push_log(&self, message: LogMessage) {
        self.notify(|notices| notices.push(CallNotice::Log(message)));
    }

    /// Queues a question for the call. Returns `false` if the call has received too many.
    pub(in crate::mcp::client) fn push_question(&self, id: RequestId, request: InputRequest) -> bool {
        self.notify(|notices| {
            if notices.questions_taken == WAITING_NOTICES {
                return false;
            }
            notices.questions_taken += 1;
            notices.asked.push(id.clone());
            let page = request.params.get("elicitationId").and_then(serde_json::Value::as_str);
            notices.pages.extend(page.filter(|page| page.len() <= MAX_PAGE_ID).map(str::to_owned));
            notices.questions.push_back((id, request));
            true
        })
    }

    fn withdraw(&self, question: &RequestId) -> bool {
        self.notify(|notices| {
            let asked = notices.asked.len();
            notices.asked.retain(|id| id != question);
            let is_ours = notices.asked.len() < asked;
            let waiting = notices.questions.len();
            notices.questions.retain(|(id, _)| id != question);
            if is_ours && notices.questions.len() == waiting {
                notices.withdrawn.push_back(question.clone());
            }
            is_ours
        })
    }

    fn completed(&self, page: &str) -> bool {
        self.notify(|notices| {
            let is_ours = notices.pages.iter().any(|one| one == page);
            if is_ours {
                // Reported once.
                notices.pages.retain(|one| one != page);
                notices.completed.push_back(page.to_owned());
            }
            is_ours
        })
    }

    fn push_progress(&self, progress: Progress) -> bool {
        self.notify(|notices| {
            let is_taken = self.purpose == (RequestPurpose::Call { progress: true })
                && progress.progress.is_finite()
                && notices.reached.is_none_or(|reached| progress.progress > reached);
            if is_taken {
                notices.reached = Some(progress.progress);
                let is_full = notices.undelivered.len() == WAITING_NOTICES;
                notices.undelivered.pop_back_if(|last| is_full && matches!(last, CallNotice::Progress(_)));
                notices.push(CallNotice::Progress(progress));
            }
            is_taken
        })
    }

    fn notify<T>(&self, change: impl FnOnce(&mut PendingRequestMessages) -> T) -> T {
        self.update(|state| change(state.notices.get_or_insert_default()))
    }

    fn update<T>(&self, change: impl FnOnce(&mut RequestState) -> T) -> T {
        let (changed, waker) = {
            let mut state = self.state();
            (change(&mut state), state.waker.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        changed
    }

    fn poll<T>(&self, cx: &Context<'_>, take: impl FnOnce(&mut RequestState) -> Option<T>) -> Poll<T> {
        let mut state = self.state();
        if let Some(taken) = take(&mut state) {
            return Poll::Ready(taken);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    fn state(&self) -> MutexGuard<'_, RequestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestState {
    fn take_notice(&mut self, with_questions: bool) -> Option<CallNotice> {
        self.notices.as_mut()?.take(with_questions)
    }
}

impl PendingRequestMessages {
    fn push(&mut self, notice: CallNotice) {
        if self.undelivered.len() == WAITING_NOTICES {
            self.undelivered.pop_front();
        }
        self.undelivered.push_back(notice);
    }

    fn take(&mut self, with_questions: bool) -> Option<CallNotice> {
        if let Some(notice) = self.undelivered.pop_front() {
            return Some(notice);
        }
        if let Some(id) = self.withdrawn.pop_front() {
            return Some(CallNotice::Withdrawn(id));
        }
        // A completion is delivered after the question that it belongs to.
        if self.questions.is_empty()
            && let Some(page) = self.completed.pop_front()
        {
            return Some(CallNotice::Completed(page));
        }
        let (id, request) = if with_questions { self.questions.pop_front()? } else { return None };
        Some(CallNotice::Question(id, request))
    }
}

impl RequestPurpose {
    fn is_call(self) -> bool {
        matches!(self, Self::Call { .. })
    }
}

/// Returns the number of one of our ids. Our ids are numbers, so a string that looks like one is not ours.
fn number(id: &RequestId) -> Option<i64> {
    match id {
        RequestId::Number(number) => Some(*number),
        RequestId::Text(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::wire::incoming::IncomingMessage;
    use toolstead_domain::LogLevel;

    const CALL: RequestPurpose = RequestPurpose::Call { progress: true };

    fn answer(id: i64) -> RawResponse {
        match IncomingMessage::read(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{id}}}"#).into()) {
            Ok(IncomingMessage::Answer(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn progress(progress: f64) -> Progress {
        Progress::at(progress)
    }

    fn log(text: &str) -> LogMessage {
        LogMessage::new(LogLevel::Info, text)
    }

    #[tokio::test]
    async fn each_request_gets_its_own_answer_once() {
        let in_flight = PendingRequests::default();
        let (one, two) = (in_flight.begin(CALL).unwrap(), in_flight.begin(RequestPurpose::Exchange).unwrap());
        assert!(in_flight.settle(&RequestId::Number(two.id), Ok(answer(two.id))));
        assert!(in_flight.settle(&RequestId::Number(one.id), Ok(answer(one.id))));
        for id in [RequestId::Number(one.id), RequestId::Number(99), RequestId::Text(two.id.to_string().into())] {
            assert!(!in_flight.settle(&id, Ok(answer(1))), "{id}");
        }
        assert_eq!((one.outcome().await, two.outcome().await), (Ok(answer(one.id)), Ok(answer(two.id))));
    }

    #[tokio::test]
    async fn a_forgotten_request_receives_no_answer_or_progress() {
        let in_flight = PendingRequests::default();
        let one = in_flight.begin(CALL).unwrap();
        assert!(in_flight.forget(one.id) && !in_flight.forget(one.id));
        assert!(!in_flight.settle(&RequestId::Number(one.id), Ok(answer(1))));
        assert!(!in_flight.progress(&RequestId::Number(one.id), progress(1.0)));
    }

    #[tokio::test]
    async fn the_end_of_the_connection_fails_pending_and_later_requests() {
        let in_flight = PendingRequests::default();
        let one = in_flight.begin(CALL).unwrap();
        in_flight.end("gone");
        in_flight.end("closed");
        assert_eq!(one.outcome().await, Err(RequestError::Lost("gone".into())));
        assert_eq!(in_flight.begin(CALL).unwrap_err(), RequestError::Lost("gone".into()));
    }

    #[tokio::test]
    async fn only_increasing_progress_reaches_calls_that_requested_progress() {
        let in_flight = PendingRequests::default();
        let asked = in_flight.begin(CALL).unwrap();
        let silent = in_flight.begin(RequestPurpose::Call { progress: false }).unwrap();
        let report = |id: i64, at: f64| in_flight.progress(&RequestId::Number(id), progress(at));
        let taken = [0.0, 0.0, 2.0, 1.0, f64::NAN, 3.0].map(|at| report(asked.id, at));
        assert_eq!(taken, [true, false, true, false, false, true]);
        assert!(!report(silent.id, 1.0) && !report(77, 1.0));
        for at in [0.0, 2.0, 3.0] {
            assert_eq!(
                asked.notice(true).await,
                CallNotice::Progress(progress(at)),
                "nothing is left out while there is room"
            );
        }
        assert_eq!(asked.ready_notice(), None);
    }

    #[tokio::test]
    async fn logs_and_progress_before_the_answer_keep_their_order() {
        let in_flight = PendingRequests::default();
        let call = in_flight.begin(CALL).unwrap();
        let report = |at: f64| assert!(in_flight.progress(&RequestId::Number(call.id), progress(at)));
        call.push_log(log("one"));
        report(1.0);
        report(2.0);
        call.push_log(log("two"));
        report(3.0);
        let message = [
            CallNotice::Log(log("one")),
            CallNotice::Progress(progress(1.0)),
            CallNotice::Progress(progress(2.0)),
            CallNotice::Log(log("two")),
            CallNotice::Progress(progress(3.0)),
        ];
        for expected in message {
            assert_eq!(call.notice(false).await, expected);
        }
        assert_eq!(call.ready_notice(), None);
    }

    #[tokio::test]
    async fn unread_progress_never_displaces_other_notices() {
        let in_flight = PendingRequests::default();
        let call = in_flight.begin(CALL).unwrap();
        call.push_log(log("first"));
        for at in 1..=1000_u32 {
            assert!(in_flight.progress(&RequestId::Number(call.id), progress(at.into())));
        }
        assert_eq!(call.notice(false).await, CallNotice::Log(log("first")));
        let output: Vec<CallNotice> = std::iter::from_fn(|| call.ready_notice()).collect();
        assert_eq!((output.len(), output.last()), (WAITING_NOTICES - 1, Some(&CallNotice::Progress(progress(1000.0)))));
    }

    #[test]
    fn the_sole_call_is_returned_only_while_exactly_one_call_is_pending() {
        let in_flight = PendingRequests::default();
        let other = in_flight.begin(RequestPurpose::Exchange).unwrap();
        assert!(in_flight.sole_call().is_none() && in_flight.sole_id() == Some(other.id));
        let one = in_flight.begin(CALL).unwrap();
        assert_eq!(in_flight.sole_call().map(|call| call.id), Some(one.id));
        let two = in_flight.begin(CALL).unwrap();
        assert!(in_flight.sole_call().is_none() && in_flight.sole_id().is_none());
        in_flight.forget(one.id);
        assert_eq!(in_flight.sole_call().map(|call| call.id), Some(two.id));
    }

    #[tokio::test(start_paused = true)]
    async fn late_messages_of_a_cancelled_call_reach_no_call_of_another_principal() {
        let in_flight = PendingRequests::default();
        let principal = |name: &str| Principal::token(name);
        let call = |name: &str| {
            let call = in_flight.begin(CALL).unwrap();
            call.belongs_to(Some(&principal(name)));
            call
        };
        let first = call("a");
        assert!(in_flight.cancel(first.id) && !in_flight.cancel(first.id));
        assert_eq!(in_flight.callers(), PendingPrincipals::One(principal("a")));
        let own = call("a");
        assert_eq!(in_flight.sole_call().map(|call| call.id), Some(own.id));
        in_flight.forget(own.id);
        let other = call("b");
        assert_eq!((in_flight.sole_call().is_none(), in_flight.callers()), (true, PendingPrincipals::Several));
        tokio::time::advance(LATE_MESSAGE_TIME).await;
        assert_eq!(in_flight.sole_call().map(|call| call.id), Some(other.id));
        assert_eq!(in_flight.callers(), PendingPrincipals::One(principal("b")));
    }

    #[test]
    fn the_newest_call_is_the_last_begun_among_pending_calls() {
        let in_flight = PendingRequests::default();
        let newest = |other_than| in_flight.newest_call(other_than).map(|call| call.id);
        assert_eq!(newest(None), None);
        let (one, two) = (in_flight.begin(CALL).unwrap(), in_flight.begin(CALL).unwrap());
        let _list = in_flight.begin(RequestPurpose::Exchange).unwrap();
        assert_eq!((newest(None), newest(Some(two.id))), (Some(two.id), Some(one.id)));
        in_flight.forget(two.id);
        assert_eq!((newest(None), newest(Some(one.id))), (Some(one.id), None));
    }

    #[test]
    fn a_question_can_be_withdrawn_before_or_after_its_delivery() {
        let in_flight = PendingRequests::default();
        let (one, two) = (in_flight.begin(CALL).unwrap(), in_flight.begin(CALL).unwrap());
        let question = || InputRequest { method: "elicitation/create".into(), params: ().into() };
        for id in [1, 2] {
            assert!(two.push_question(RequestId::Number(id), question()));
        }
        assert!(matches!(two.state().take_notice(true), Some(CallNotice::Question(RequestId::Number(1), _))));
        assert!(in_flight.withdraw(&RequestId::Number(1)) && in_flight.withdraw(&RequestId::Number(2)));
        assert!(!in_flight.withdraw(&RequestId::Number(1)) && !in_flight.withdraw(&RequestId::Number(3)));
        assert_eq!(two.state().take_notice(true), Some(CallNotice::Withdrawn(RequestId::Number(1))));
        assert_eq!((two.state().take_notice(true), one.state().take_notice(true)), (None, None));
    }

    #[test]
    fn a_withdrawn_question_frees_no_place_for_another_question() {
        let in_flight = PendingRequests::default();
        let call = in_flight.begin(CALL).unwrap();
        let question = || InputRequest { method: "elicitation/create".into(), params: ().into() };
        let taken = (0..1000).map(RequestId::Number).filter(|id| {
            let is_taken = call.push_question(id.clone(), question());
            in_flight.withdraw(id);
            is_taken
        });
        assert_eq!(taken.count(), WAITING_NOTICES);
    }

    #[test]
    fn completion_of_a_url_elicitation_reaches_only_the_call_that_requested_it() {
        let in_flight = PendingRequests::default();
        let (one, two) = (in_flight.begin(CALL).unwrap(), in_flight.begin(CALL).unwrap());
        let params = serde_json::json!({"mode": "url", "elicitationId": "e1"});
        two.push_question(RequestId::Number(1), InputRequest { method: "elicitation/create".into(), params });
        assert!(!in_flight.completed("e2") && in_flight.completed("e1") && !in_flight.completed("e1"));
        assert!(matches!(two.state().take_notice(true), Some(CallNotice::Question(..))));
        assert_eq!(two.state().take_notice(true), Some(CallNotice::Completed("e1".into())));
        assert_eq!(one.state().take_notice(true), None);
    }

    #[test]
    fn questions_and_logs_waiting_for_a_call_are_limited() {
        let in_flight = PendingRequests::default();
        let call = in_flight.begin(CALL).unwrap();
        let question = || InputRequest { method: "elicitation/create".into(), params: ().into() };
        // A cancelled question frees no slot: the pages it named are remembered until the call ends.
        let asked = (0..1000).filter(|n| {
            let is_taken = call.push_question(RequestId::Number(*n), question());
            in_flight.withdraw(&RequestId::Number(*n));
            is_taken
        });
        let asked = asked.count();
        for n in 0..1000 {
            call.push_log(log(&n.to_string()));
        }
        let logged: Vec<_> = std::iter::from_fn(|| call.ready_notice()).collect();
        assert_eq!(
            (asked, logged.len(), logged.last()),
            (WAITING_NOTICES, WAITING_NOTICES, Some(&CallNotice::Log(log("999"))))
        );
    }
}
