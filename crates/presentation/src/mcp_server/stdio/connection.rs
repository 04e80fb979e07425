//! One client on a pair of byte streams: handles each message according to the state of the connection.

use super::{
    StdioSettings,
    client_roots::{RootsEvent, RootsEventSender},
    server_handle::{CurrentServer, CurrentServerFeed},
};
use crate::mcp_server::{
    answer::SerializedResponse,
    call_request::ClientRequest,
    call_tool::ClientContext,
    client_caller::{ClientCaller, NotificationTarget},
    in_flight::{InFlightRequests, RunningRequest},
    log_threshold::LogThreshold,
    notification_feed::{Interests, NotificationFeed},
    protocol_error::{invalid_request, method_not_found, of_session, overloaded},
    questions::PendingQuestions,
    request_meta::{RequestMeta, log_level},
    server_identity::ServerIdentity,
    subscription::ChangeSubscription,
    watches::ResourceWatches,
};
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolstead_domain::{
    CancelReason, ClientCapability, ClientProfile, ProtocolGeneration, ProtocolVersion, RequestScope, Session,
    SessionState, error_kind::ErrorKind,
};
use toolstead_infrastructure::mcp::wire::{
    client_message::parse_message,
    cut_message::TruncatedMessage,
    lines::{LineSender, LinesClosed, MAX_MESSAGE_BYTES},
    message::{RequestId, RpcError, RpcMessage, error_response},
};
use uuid::Uuid;

/// Maximum time for the application to start once the input has ended.
const TIME_TO_START: Duration = Duration::from_secs(60);
/// Maximum number of subscriptions of a connection. A client needs only one.
const MAX_SUBSCRIPTIONS: usize = 16;
/// Minimum number of bytes that are counted for a waiting request, so that the number of requests is limited, too.
const LEAST_BYTES: usize = 4 << 10;

/// The state of one connection.
pub(super) struct Connection {
    server_handle: CurrentServer,
    identity: ServerIdentity,
    /// Sender of events about the client's folders, if the application depends on them.
    folders: Option<RootsEventSender>,
    lines: LineSender,
    session: Session,
    /// Generation of the client; `None` until its first request that shows it.
    generation: Option<ProtocolGeneration>,
    /// Profile of the client, set by `initialize`.
    profile: Arc<ClientProfile>,
    threshold: LogThreshold,
    in_flight: Arc<InFlightRequests>,
    questions: Arc<PendingQuestions>,
    /// Resources that a client with a session watches.
    watches: Arc<ResourceWatches>,
    turns: Arc<Semaphore>,
    room: Arc<Semaphore>,
    subscriptions: Arc<Semaphore>,
    /// Tasks that answer requests for lists and for resources to watch. They end on their own.
    lists: TaskTracker,
    /// All other tasks that run in parallel with reading messages.
    tasks: TaskTracker,
    /// Cancelled to end subscriptions.
    ending: CancellationToken,
}

/// A request between its arrival and its answer, with the bytes that it counts among those waiting.
struct PendingRequest {
    running: RunningRequest,
    _room: OwnedSemaphorePermit,
}

impl Connection {
    pub(super) fn new(server_handle: CurrentServer, settings: &StdioSettings, lines: LineSender) -> Self {
        Self {
            server_handle,
            identity: settings.identity.clone(),
            folders: None,
            lines,
            session: Session::created(Uuid::now_v7().to_string(), settings.principal.clone()),
            generation: None,
            profile: Arc::new(ClientProfile::without_protocol("")),
            threshold: LogThreshold::session(),
            in_flight: Arc::default(),
            questions: Arc::default(),
            watches: Arc::default(),
            turns: Arc::new(Semaphore::new(settings.max_in_flight)),
            room: Arc::new(Semaphore::new(settings.max_waiting_bytes.min(Semaphore::MAX_PERMITS))),
            subscriptions: Arc::new(Semaphore::new(MAX_SUBSCRIPTIONS)),
            lists: TaskTracker::new(),
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
        }
    }

    /// Sends events about the client's folders to `folders`. Returns the questions that are asked through this
    /// connection.
    pub(super) fn with_roots_events(mut self, folders: RootsEventSender) -> (Self, Arc<PendingQuestions>) {
        self.folders = Some(folders);
        let questions = self.questions.clone();
        (self, questions)
    }

    fn send_roots_event(&self, occasion: RootsEvent) {
        if let Some(folders) = &self.folders {
            folders.send(occasion);
        }
    }

    fn scope(&self) -> RequestScope {
        RequestScope::of(self.session.principal.clone(), self.session.id.clone())
    }

    /// Returns the client of a session.
    fn client(&self) -> ClientContext {
        ClientContext { scope: self.scope(), profile: self.profile.clone() }
    }

    /// Returns the guidance of upstream servers, if the application is already running.
    fn guidance(&self) -> Option<String> {
        let server = self.server_handle.now()?;
        server.app.provider_notifications.instructions(&server.in_view(self.scope()))
    }

    fn names_folders(&self) -> bool {
        ClientCapability::Roots.is_declared(&self.profile.capabilities)
    }

    /// Handles one line. Requests that take time continue in the background.
    ///
    /// # Errors
    /// [`LinesClosed`] if the client no longer reads.
    pub(super) async fn take(&mut self, bytes: &[u8]) -> Result<(), LinesClosed> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        match parse_message(bytes) {
            Ok(RpcMessage::Request { id, method, params }) => self.request(id, method, params, bytes.len()).await,
            Ok(RpcMessage::Notification { method, params }) => {
                self.notification(&method, &params);
                Ok(())
            }
            Ok(RpcMessage::Response { id, outcome }) => {
                self.questions.answer(&id, outcome);
                Ok(())
            }
            // A malformed answer or notification is not answered.
            Err(wrong) if wrong.is_response || (wrong.id.is_none() && wrong.error.code == RpcError::INVALID_PARAMS) => {
                tracing::debug!(error = %wrong.error, "the client sent a malformed message");
                Ok(())
            }
            Err(wrong) => self.lines.send(error_response(wrong.id.as_ref(), &wrong.error)).await,
        }
    }

    /// Answers a line that was too long, of which only `beginning` and `end` remain. Notifications and responses are
    /// only logged.
    ///
    /// # Errors
    /// [`LinesClosed`] if the client no longer reads.
    pub(super) async fn refuse(&self, beginning: &[u8], end: &[u8]) -> Result<(), LinesClosed> {
        match TruncatedMessage::read(beginning, end) {
            TruncatedMessage::Request(id) | TruncatedMessage::Unknown(id) => {
                let message = format!("the message is longer than {MAX_MESSAGE_BYTES} bytes");
                let error = invalid_request(ErrorKind::TooLarge, message);
                self.lines.send(error_response(id.as_ref(), &error)).await
            }
            TruncatedMessage::Answer(_) | TruncatedMessage::Notification => {
                tracing::debug!("the client sent a message that is too long");
                Ok(())
            }
        }
    }

    fn notification(&mut self, method: &str, params: &Map<String, Value>) {
        match method {
            "notifications/initialized" => {
                let first = self.session.state() == SessionState::Initializing;
                if self.session.initialized().is_ok() && first {
                    self.send_notifications();
                    self.send_roots_event(match self.names_folders() {
                        true => RootsEvent::RootsChanged(self.profile.clone()),
                        false => RootsEvent::WithoutRoots,
                    });
                }
            }
            "notifications/roots/list_changed"
                if self.session.state() == SessionState::Ready && self.names_folders() =>
            {
                self.send_roots_event(RootsEvent::RootsChanged(self.profile.clone()));
            }
            "notifications/cancelled" => {
                if let Some(id) = params.get("requestId").and_then(RequestId::from_value) {
                    self.in_flight.cancel(&id);
                }
            }
            _ => {}
        }
    }

    async fn request(
        &mut self,
        id: RequestId,
        method: String,
        mut params: Map<String, Value>,
        bytes: usize,
    ) -> Result<(), LinesClosed> {
        let answered = match self.in_flight.check_free(&id).and_then(|()| RequestMeta::take(&mut params)) {
            Err(error) => Err(error),
            Ok(meta) => match (self.generation_of(&method, &meta), meta.traced(|_| None)) {
                (Err(error), _) => Err(error),
                (Ok(ProtocolGeneration::Legacy), meta) => self.legacy_request(&id, &method, params, meta, bytes),
                (Ok(ProtocolGeneration::Modern), meta) => self.modern_request(&id, &method, params, meta, bytes),
            },
        };
        match answered {
            Ok(None) => Ok(()),
            Ok(Some(answer)) => self.lines.send(answer.json).await,
            Err(error) => self.lines.send(error_response(Some(&id), &error)).await,
        }
    }

    /// Returns the generation by whose rules the request is served. A connection stays with the generation of its first
    /// request (MCP 2026-07-28, basic/versioning, "Backward Compatibility").
    fn generation_of(&self, method: &str, meta: &RequestMeta) -> Result<ProtocolGeneration, RpcError> {
        let named = meta.named_version().map(|text| (text, ProtocolVersion::parse(text)));
        match (self.generation, named) {
            (None, Some((_, Some(version)))) if method != "server/discover" => Ok(version.generation()),
            (None, Some(_)) => Ok(ProtocolGeneration::Modern),
            (None, None) if matches!(method, "server/discover" | "subscriptions/listen") => {
                Ok(ProtocolGeneration::Modern)
            }
            (None, None) => Ok(ProtocolGeneration::Legacy),
            (Some(ProtocolGeneration::Legacy), Some((text, version)))
                if version.is_none_or(|version| version.generation() == ProtocolGeneration::Modern) =>
            {
                Err(mixed(format!("with `initialize`, so requests of {text} need a connection of their own")))
            }
            (Some(ProtocolGeneration::Legacy), _) => Ok(ProtocolGeneration::Legacy),
            (Some(ProtocolGeneration::Modern), None) if method == "initialize" => {
                Err(mixed(format!("in {}, so `initialize` needs a connection of its own", ProtocolVersion::NEWEST)))
            }
            (Some(ProtocolGeneration::Modern), Some((text, Some(version))))
                if version.generation() == ProtocolGeneration::Legacy =>
            {
                Err(mixed(format!(
                    "in {}, so requests of {text} need a connection of their own",
                    ProtocolVersion::NEWEST
                )))
            }
            (Some(ProtocolGeneration::Modern), _) => Ok(ProtocolGeneration::Modern),
        }
    }

    fn legacy_request(
        &mut self,
        id: &RequestId,
        method: &str,
        mut params: Map<String, Value>,
        meta: RequestMeta,
        bytes: usize,
    ) -> Result<Option<SerializedResponse>, RpcError> {
        match method {
            "initialize" => {
                let mut session = self.session.clone();
                session.initialize().map_err(of_session)?;
                let (answer, profile) = self.identity.initialize(id, &mut params, self.guidance())?;
                self.session = session;
                self.generation = Some(ProtocolGeneration::Legacy);
                self.profile = Arc::new(profile);
                return Ok(Some(answer));
            }
            "ping" => return Ok(Some(SerializedResponse::result(id, &json!({})))),
            _ => {}
        }
        self.session.check_ready().map_err(of_session)?;
        match method {
            "logging/setLevel" => {
                let level = log_level(params.get("level").unwrap_or(&Value::Null))?;
                self.threshold.set(level);
                self.profile = Arc::new(ClientProfile { log_level: Some(level), ..(*self.profile).clone() });
                Ok(Some(SerializedResponse::result(id, &json!({}))))
            }
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
                self.list(id, method, params, self.profile.clone(), bytes)
            }
            "resources/subscribe" | "resources/unsubscribe" => self.watch(id, method, params, bytes),
            _ => {
                let (profile, threshold) = (self.profile.clone(), self.threshold.clone());
                self.call(id, method, params, meta, profile, threshold, bytes)
            }
        }
    }

    fn modern_request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: Map<String, Value>,
        mut meta: RequestMeta,
        bytes: usize,
    ) -> Result<Option<SerializedResponse>, RpcError> {
        let profile = meta.take_profile()?;
        if method == "server/discover" {
            return Ok(Some(self.identity.discover(id, self.guidance())));
        }
        if method == "ping" {
            return Err(method_not_found(method));
        }
        if self.generation.replace(ProtocolGeneration::Modern).is_none() {
            self.send_roots_event(RootsEvent::WithoutRoots);
        }
        match method {
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
                self.list(id, method, params, Arc::new(profile), bytes)
            }
            "subscriptions/listen" => {
                let client = ClientContext { scope: self.scope(), profile: Arc::new(profile) };
                self.listen(id, &params, client)
            }
            _ => {
                let threshold = LogThreshold::Request(profile.log_level);
                self.call(id, method, params, meta, Arc::new(profile), threshold, bytes)
            }
        }
    }

    fn list(
        &self,
        id: &RequestId,
        method: &str,
        params: Map<String, Value>,
        profile: Arc<ClientProfile>,
        bytes: usize,
    ) -> Result<Option<SerializedResponse>, RpcError> {
        let (served, turns) = (self.server_handle.clone(), self.turns.clone());
        let (own_id, method, client) = (id.clone(), method.to_owned(), ClientContext { scope: self.scope(), profile });
        self.answer_in_background(id, bytes, async move {
            let _turn = turns.acquire().await;
            let server = served.server().await?;
            let client = ClientContext { scope: server.in_view(client.scope), ..client };
            Some(server.list(&own_id, &method, &params, client).await)
        })
    }

    /// Answers a request in the background, unless the client cancels it first. Returns no immediate answer.
    fn answer_in_background(
        &self,
        id: &RequestId,
        bytes: usize,
        answer: impl Future<Output = Option<SerializedResponse>> + Send + 'static,
    ) -> Result<Option<SerializedResponse>, RpcError> {
        let PendingRequest { running, _room } = self.begin(id, bytes)?;
        let lines = self.lines.clone();
        self.lists.spawn(async move {
            let _room = _room;
            tokio::select! {
                answer = answer => {
                    let Some(answer) = answer else { return };
                    // Sending fails only if the client is gone, which the connection detects itself.
                    let _ = lines.send(answer.json).await;
                }
                _ = running.cancel.cancelled() => {}
            }
        });
        Ok(None)
    }

    #[expect(clippy::too_many_arguments, reason = "a request, taken apart")]
    fn call(
        &self,
        id: &RequestId,
        method: &str,
        mut params: Map<String, Value>,
        meta: RequestMeta,
        profile: Arc<ClientProfile>,
        threshold: LogThreshold,
        bytes: usize,
    ) -> Result<Option<SerializedResponse>, RpcError> {
        let request = ClientRequest::parse(method, &mut params, meta.rest)?;
        let pending = self.begin(id, bytes)?;
        let caller = ClientCaller::new(
            meta.progress_token,
            threshold,
            pending.running.cancel.clone(),
            NotificationTarget::Lines(self.lines.clone()),
        );
        let caller = Arc::new(match self.generation {
            Some(ProtocolGeneration::Legacy) => caller.with_questions(self.questions.clone(), profile.clone()),
            Some(ProtocolGeneration::Modern) | None => caller.with_retry_answers(),
        });
        let client = ClientContext { scope: self.scope(), profile };
        let (served, lines, turns) = (self.server_handle.clone(), self.lines.clone(), self.turns.clone());
        let cancel = pending.running.cancel.clone();
        self.tasks.spawn(async move {
            let PendingRequest { running, _room } = pending;
            let server = tokio::select! {
                server = served.wait_until_callable() => server,
                _ = cancel.cancelled() => served.now(),
            };
            let Some(server) = server else { return };
            // A call that is cancelled while it waits still takes the call path, which records it and does not run it.
            let _turn = tokio::select! {
                turn = turns.acquire() => turn.ok(),
                _ = cancel.cancelled() => None,
            };
            let client = client.in_view_of(&server);
            let answer = server.call(&running.id, request, client, caller.clone(), cancel).await;
            let rest = caller.finish();
            let Some(answer) = answer else { return };
            for line in rest.into_iter().chain([answer.json]) {
                if lines.send(line).await.is_err() {
                    return;
                }
            }
        });
        Ok(None)
    }

    fn watch(
        &self,
        id: &RequestId,
        method: &str,
        params: Map<String, Value>,
        bytes: usize,
    ) -> Result<Option<SerializedResponse>, RpcError> {
        let (served, turns, watches) = (self.server_handle.clone(), self.turns.clone(), self.watches.clone());
        let (own_id, method, client) = (id.clone(), method.to_owned(), self.client());
        self.answer_in_background(id, bytes, async move {
            let server = served.wait_until_callable().await?;
            let _turn = turns.acquire().await;
            let client = client.in_view_of(&server);
            Some(server.watch(&own_id, &method, &params, &client, &watches).await)
        })
    }

    fn listen(
        &self,
        id: &RequestId,
        params: &Map<String, Value>,
        client: ClientContext,
    ) -> Result<Option<SerializedResponse>, RpcError> {
        let mut subscription = ChangeSubscription::parse(id.clone(), params)?;
        let place = self.subscriptions.clone().try_acquire_owned();
        let place = place.map_err(|_| overloaded(format!("{MAX_SUBSCRIPTIONS} subscriptions are open already")))?;
        let running = self.in_flight.begin(id.clone())?;
        let served = self.server_handle.clone();
        let (identity, lines, ending) = (self.identity.clone(), self.lines.clone(), self.ending.clone());
        self.tasks.spawn(async move {
            let _place = place;
            let mut is_open = false;
            let sending = async {
                let Some(server) = served.server().await else { return Ok(()) };
                let interests = subscription.agree(&server.app, client.in_view_of(&server)).await;
                let mut news = NotificationFeed::new(&server.app, &interests);
                lines.send(subscription.acknowledgement()).await?;
                is_open = true;
                loop {
                    let news = news.next().await;
                    lines.send(subscription.encode(news)).await?;
                }
            };
            let finished: Option<Result<(), LinesClosed>> = tokio::select! {
                biased;
                _ = running.cancel.cancelled() => None,
                finished = sending => Some(finished),
                () = ending.cancelled() => None,
            };
            if finished.is_some() || running.cancel.reason().is_some() {
                return;
            }
            // The specification's cancellation page requires the first, its subscriptions page the second; a client
            // that treats the first as the end ignores the second. Nothing is sent for a subscription that was not
            // acknowledged.
            let cancelled = is_open.then(|| subscription.cancelled());
            for line in cancelled.into_iter().chain([subscription.result(&identity)]) {
                if lines.send(line).await.is_err() {
                    return;
                }
            }
        });
        Ok(None)
    }

    /// Sends all notifications to a client with a session until the connection ends.
    fn send_notifications(&self) {
        let interests = Interests::of_session(self.client(), self.watches.clone(), self.threshold.chosen());
        let mut news = CurrentServerFeed::new(self.server_handle.clone(), interests);
        let (lines, ending) = (self.lines.clone(), self.ending.clone());
        let sending = async move {
            loop {
                let news = news.next().await;
                if lines.send(news.encode(None)).await.is_err() {
                    return;
                }
            }
        };
        self.tasks.spawn(async move { ending.run_until_cancelled(sending).await });
    }

    /// Registers a request. Rejects it if the limit of waiting bytes is reached.
    fn begin(&self, id: &RequestId, bytes: usize) -> Result<PendingRequest, RpcError> {
        let bytes = u32::try_from(bytes.max(LEAST_BYTES)).unwrap_or(u32::MAX);
        let room = self.room.clone().try_acquire_many_owned(bytes).map_err(|_| {
            overloaded("too many requests wait on this connection: send more when some of them are answered")
        })?;
        Ok(PendingRequest { running: self.in_flight.begin(id.clone())?, _room: room })
    }

    /// Reports that the input has ended, so the client will not answer any question.
    pub(super) fn input_ended(&self) {
        self.send_roots_event(RootsEvent::InputEnded);
    }

    /// Waits for the application if a request needs it, and then at most `time` for the answers to all lists.
    pub(super) async fn lists_answered(&self, time: Duration) {
        let started = async { timeout(TIME_TO_START, self.server_handle.server()).await.ok().flatten().is_some() };
        if self.in_flight.is_empty() || !started.await {
            return;
        }
        self.lists.close();
        let _ = timeout(time, self.lists.wait()).await;
    }

    /// Ends the session and every request: after `grace`, those that are still running are cancelled and have `records`
    /// to be recorded. Notifies the application of the end of the session.
    pub(super) async fn end(&mut self, grace: Duration, reason: CancelReason, records: Duration) {
        self.session.close();
        self.ending.cancel();
        self.tasks.close();
        self.lists.close();
        let all_ended = async || tokio::join!(self.tasks.wait(), self.lists.wait());
        if timeout(grace, all_ended()).await.is_err() {
            self.in_flight.cancel_all(reason);
            if timeout(records, all_ended()).await.is_err() {
                tracing::warn!("some calls are still being recorded");
            }
        }
        self.session.closed();
        if let Some(server) = self.server_handle.now() {
            server.app.session_ended(&self.session.principal, &self.session.id).await;
        }
    }
}

fn mixed(message: String) -> RpcError {
    invalid_request(ErrorKind::UnsupportedVersion, format!("this connection was opened {message}"))
}
