//! Sends notifications and questions to an MCP client while its call runs.

use super::{
    log_threshold::LogThreshold,
    questions::{OpenQuestion, PendingQuestions},
};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::Notify;
use toolstead_application::CancelSignal;
use toolstead_domain::{
    Caller, ClientCapability, ClientProfile, InputRequest, InputResponse, LogMessage, NotAnswered, Progress,
};
use toolstead_infrastructure::mcp::wire::lines::LineSender;

/// Maximum number of notifications of one call that wait for a slow HTTP client.
const WAITING_NOTIFICATIONS: usize = 64;
/// Maximum number of questions of one call, including its nested calls, each of which has a smaller limit of its own.
const MAX_QUESTIONS: usize = 64;
/// Maximum length of a client's error that is passed on, in characters.
const REFUSAL_CHARACTERS: usize = 2000;

/// Converts the progress and logs of a call to notifications. It never blocks the call: for a slow client, only the
/// latest progress is retained and logs are dropped.
#[derive(Debug)]
pub(super) struct ClientCaller {
    /// `None` if the client did not request progress.
    progress_token: Option<Value>,
    threshold: LogThreshold,
    cancel: CancelSignal,
    outlet: NotificationTarget,
    /// `None` if the client accepts no requests.
    asking: Option<QuestionChannel>,
    answers_by_retry: bool,
    state: Mutex<CallNotificationState>,
}

#[derive(Debug)]
struct QuestionChannel {
    questions: Arc<PendingQuestions>,
    client: Arc<ClientProfile>,
    asked: AtomicUsize,
}

/// Destination of notifications.
#[derive(Debug)]
pub(super) enum NotificationTarget {
    /// The single stream of a connection.
    Lines(LineSender),
    /// The response of this call, for which [`ClientCaller::next_notification`] returns the notifications.
    Response(Notify),
    /// No destination: the client accepts only the answer.
    Nowhere,
}

#[derive(Debug)]
struct CallNotificationState {
    open: bool,
    reported: f64,
    /// Progress that could not be sent yet.
    unsent: Option<Progress>,
    waiting: VecDeque<Vec<u8>>,
    /// Ids of the pages that the client was asked to open.
    pages: Vec<String>,
}

impl ClientCaller {
    pub(super) fn new(
        progress_token: Option<Value>,
        threshold: LogThreshold,
        cancel: CancelSignal,
        outlet: NotificationTarget,
    ) -> Self {
        let state = CallNotificationState {
            open: true,
            reported: f64::NEG_INFINITY,
            unsent: None,
            waiting: VecDeque::new(),
            pages: Vec::new(),
        };
        Self {
            progress_token,
            threshold,
            cancel,
            outlet,
            asking: None,
            answers_by_retry: false,
            state: Mutex::new(state),
        }
    }

    /// Allows the call to ask the client questions of the kinds that it declared. For clients up to MCP 2025-11-25;
    /// later ones accept no requests.
    pub(super) fn with_questions(mut self, questions: Arc<PendingQuestions>, client: Arc<ClientProfile>) -> Self {
        self.asking = Some(QuestionChannel { questions, client, asked: AtomicUsize::new(0) });
        self
    }

    /// Declares that the client answers questions with a retry. For clients since MCP 2026-07-28.
    pub(super) fn with_retry_answers(self) -> Self {
        Self { answers_by_retry: true, ..self }
    }

    /// Returns the next notification or question of this call, for [`NotificationTarget::Response`]. Never returns if
    /// there cannot be another one. Cancel-safe.
    pub(super) async fn next_notification(&self) -> Vec<u8> {
        let NotificationTarget::Response(news) = &self.outlet else { return std::future::pending().await };
        loop {
            if let Some(notification) = self.take(&mut self.lock()) {
                return notification;
            }
            news.notified().await;
        }
    }

    /// Ends sending: later notifications of the call are discarded. Returns the notifications and questions that must
    /// be sent before the answer.
    pub(super) fn finish(&self) -> Vec<Vec<u8>> {
        let mut state = self.lock();
        state.open = false;
        std::iter::from_fn(|| self.take(&mut state)).collect()
    }

    fn take(&self, state: &mut CallNotificationState) -> Option<Vec<u8>> {
        state.waiting.pop_front().or_else(|| state.unsent.take().and_then(|progress| self.progress_line(&progress)))
    }

    /// Queues the notification. Returns `false` if the queue is full.
    fn offer(&self, state: &mut CallNotificationState, notification: Vec<u8>) -> bool {
        match &self.outlet {
            NotificationTarget::Lines(lines) => lines.try_send(notification),
            NotificationTarget::Response(news) => {
                let room = state.waiting.len() < WAITING_NOTIFICATIONS;
                if room {
                    state.waiting.push_back(notification);
                }
                news.notify_one();
                room
            }
            NotificationTarget::Nowhere => true,
        }
    }

    fn progress_line(&self, progress: &Progress) -> Option<Vec<u8>> {
        let params = progress.clone().into_params(self.progress_token.clone()?);
        Some(notification("notifications/progress", params))
    }

    /// Returns the state, unless the call was cancelled or has finished.
    fn listening(&self) -> Option<MutexGuard<'_, CallNotificationState>> {
        if self.cancel.reason().is_some() {
            return None;
        }
        Some(self.lock()).filter(|state| state.open)
    }

    fn lock(&self) -> MutexGuard<'_, CallNotificationState> {
        // Nothing panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Caller for ClientCaller {
    fn wants_progress(&self) -> bool {
        self.progress_token.is_some() && !matches!(self.outlet, NotificationTarget::Nowhere)
    }

    fn answers_by_retry(&self) -> bool {
        self.answers_by_retry
    }

    fn progress(&self, progress: Progress) {
        if self.progress_token.is_none() || !progress.progress.is_finite() {
            return;
        }
        let Some(mut state) = self.listening() else { return };
        // "The progress value MUST increase with each notification" (MCP 2025-11-25, basic/utilities/progress).
        if progress.progress <= state.reported {
            return;
        }
        state.reported = progress.progress;
        let Some(line) = self.progress_line(&progress) else { return };
        state.unsent = if self.offer(&mut state, line) { None } else { Some(progress) };
    }

    fn log(&self, message: LogMessage) {
        if !self.threshold.passes(message.level) {
            return;
        }
        let Some(mut state) = self.listening() else { return };
        self.offer(&mut state, notification("notifications/message", message.into_params()));
    }

    fn elicitation_completed(&self, elicitation_id: &str) {
        let Some(mut state) = self.listening() else { return };
        // Only the client that was asked to open the page knows the id.
        if let Some(at) = state.pages.iter().position(|page| page == elicitation_id) {
            state.pages.swap_remove(at);
            let params = Map::from_iter([("elicitationId".to_owned(), elicitation_id.into())]);
            self.offer(&mut state, notification("notifications/elicitation/complete", params));
        }
    }

    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        let asking = self.asking.as_ref().ok_or(NotAnswered::Unsupported)?;
        let capability = ClientCapability::of(&request).ok_or(NotAnswered::Unsupported)?;
        if !capability.is_declared(&asking.client.capabilities) {
            return Err(NotAnswered::Unsupported);
        }
        if asking.asked.fetch_add(1, Ordering::Relaxed) >= MAX_QUESTIONS {
            return Err(NotAnswered::Exhausted);
        }
        let open = asking.questions.open().ok_or(NotAnswered::TooMany)?;
        if let (ClientCapability::UrlElicitation, Some(id)) = (capability, request.params["elicitationId"].as_str()) {
            self.lock().pages.push(id.to_owned());
        }
        let mut message = json!({"jsonrpc": "2.0", "id": open.id.to_value(), "method": request.method});
        if !request.params.is_null() {
            message["params"] = request.params;
        }
        let message = message.to_string().into_bytes();
        let mut question = SentQuestionGuard { caller: self, open, answered: false };
        match &self.outlet {
            NotificationTarget::Lines(lines) => lines.send(message).await.map_err(|_| NotAnswered::Disconnected)?,
            NotificationTarget::Response(news) => {
                self.listening().ok_or(NotAnswered::Disconnected)?.waiting.push_back(message);
                news.notify_one();
            }
            NotificationTarget::Nowhere => return Err(NotAnswered::Unsupported),
        }
        let outcome = question.open.answered().await.ok_or(NotAnswered::Disconnected)?;
        question.answered = true;
        outcome.map(InputResponse).map_err(|error| {
            tracing::debug!(%error, "the client did not take a question");
            let message = error.message.chars().take(REFUSAL_CHARACTERS).collect();
            NotAnswered::Refused { code: error.code, message }
        })
    }
}

/// A question that was sent.
struct SentQuestionGuard<'a> {
    caller: &'a ClientCaller,
    open: OpenQuestion,
    answered: bool,
}

impl Drop for SentQuestionGuard<'_> {
    /// Informs the client that the question is cancelled, unless it was answered or the call has finished.
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let mut state = self.caller.lock();
        if state.open {
            let params = [
                ("requestId", self.open.id.to_value()),
                ("reason", "the call is no longer waiting for the answer".into()),
            ];
            let params = params.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
            self.caller.offer(&mut state, notification("notifications/cancelled", params));
        }
    }
}

fn notification(method: &str, params: Map<String, Value>) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::LogLevel;

    fn caller(progress_token: Option<Value>, outlet: NotificationTarget) -> ClientCaller {
        ClientCaller::new(progress_token, LogThreshold::Request(Some(LogLevel::Info)), CancelSignal::new(), outlet)
    }

    fn progress(progress: f64) -> Progress {
        Progress::at(progress)
    }

    fn log(level: LogLevel) -> LogMessage {
        LogMessage::new(level, "x")
    }

    fn sent(caller: &ClientCaller) -> Vec<Value> {
        caller.finish().iter().map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    #[test]
    fn progress_is_sent_only_with_a_token_and_only_if_it_increases() {
        let silent = caller(None, NotificationTarget::Response(Notify::new()));
        silent.progress(progress(1.0));
        assert_eq!(sent(&silent), Vec::<Value>::new());

        let asked = caller(Some(json!("t")), NotificationTarget::Response(Notify::new()));
        for value in [1.0, 0.5, 1.0, f64::NAN, f64::INFINITY, 2.5] {
            asked.progress(progress(value));
        }
        let values: Vec<Value> = sent(&asked).into_iter().map(|message| message["params"].clone()).collect();
        assert_eq!(
            values,
            [json!({"progressToken": "t", "progress": 1}), json!({"progressToken": "t", "progress": 2.5})]
        );
    }

    #[test]
    fn nothing_is_sent_after_the_end_or_a_cancellation() {
        let ended = caller(Some(json!(1)), NotificationTarget::Response(Notify::new()));
        ended.finish();
        ended.progress(progress(1.0));
        ended.log(log(LogLevel::Error));
        assert_eq!(sent(&ended), Vec::<Value>::new());

        let cancelled = caller(Some(json!(1)), NotificationTarget::Response(Notify::new()));
        cancelled.cancel.cancel(toolstead_domain::tool_execution::CancelReason::Client);
        cancelled.progress(progress(1.0));
        cancelled.log(log(LogLevel::Error));
        assert_eq!(sent(&cancelled), Vec::<Value>::new());
    }

    #[test]
    fn a_slow_client_gets_the_latest_progress_and_memory_stays_bounded() {
        let slow = caller(Some(json!(1)), NotificationTarget::Response(Notify::new()));
        for value in 0..10_000 {
            slow.progress(progress(f64::from(value)));
            slow.log(log(LogLevel::Error));
        }
        let sent = sent(&slow);
        assert_eq!(sent.len(), WAITING_NOTIFICATIONS + 1);
        assert_eq!(sent.last().unwrap()["params"]["progress"], 9_999);
    }

    #[test]
    fn logs_below_the_clients_level_are_not_sent() {
        let caller = caller(None, NotificationTarget::Response(Notify::new()));
        caller.log(log(LogLevel::Debug));
        caller.log(log(LogLevel::Notice));
        let sent = sent(&caller);
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0]["params"], json!({"level": "notice", "data": "x"}));
    }

    #[tokio::test]
    async fn notifications_are_delivered_to_the_response_as_they_occur() {
        let caller = caller(Some(json!(1)), NotificationTarget::Response(Notify::new()));
        caller.progress(progress(1.0));
        assert!(caller.next_notification().await.ends_with(br#""progress":1}}"#));
        let (next, ()) = tokio::join!(caller.next_notification(), async { caller.progress(progress(2.0)) });
        assert!(next.ends_with(br#""progress":2}}"#));
    }

    #[tokio::test]
    async fn returns_the_clients_error_and_reports_completion_of_its_elicitation_once() {
        let questions = Arc::new(PendingQuestions::default());
        let capabilities = json!({"elicitation": {"url": {}}}).as_object().unwrap().clone();
        let client = ClientProfile { capabilities, ..ClientProfile::without_protocol("test") };
        let caller = caller(None, NotificationTarget::Response(Notify::new()))
            .with_questions(questions.clone(), Arc::new(client));
        let params = json!({"mode": "url", "url": "https://a.org", "elicitationId": "e", "message": "m"});
        let ask = caller.ask(InputRequest { method: "elicitation/create".into(), params });
        let answering = async {
            let asked: Value = serde_json::from_slice(&caller.next_notification().await).unwrap();
            let id = toolstead_infrastructure::mcp::wire::message::RequestId::from_value(&asked["id"]).unwrap();
            let error = toolstead_infrastructure::mcp::wire::message::RpcError::new(-1, "the user rejected it");
            questions.answer(&id, Err(error));
        };
        let (said, ()) = tokio::join!(ask, answering);
        assert_eq!(said, Err(NotAnswered::Refused { code: -1, message: "the user rejected it".into() }));
        for page in ["other", "e", "e"] {
            caller.elicitation_completed(page);
        }
        let answer =
            json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": "e"}});
        assert_eq!(sent(&caller), [answer]);
    }
}
