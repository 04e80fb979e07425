//! Sessions of clients up to MCP 2025-11-25 (basic/transports, "Session Management").

use super::{
    session_log::{SessionEndReason, log_start},
    settings::HttpSettings,
};
use crate::mcp_server::{
    call_tool::ClientContext, in_flight::InFlightRequests, log_threshold::LogThreshold, notification_feed::Interests,
    questions::PendingQuestions, watches::ResourceWatches,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::rand::{SecureRandom, SystemRandom};
use std::{
    collections::HashMap,
    fmt,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use toolstead_application::CancelSignal;
use toolstead_domain::{CancelReason, ClientProfile, LogLevel, Principal, RequestScope, View};

/// Number of random bytes in a session's id. It cannot be guessed, and does not replace the token.
const ID_BYTES: usize = 24;

/// Callback for the end of each session.
pub(super) type SessionEndCallback = Box<dyn Fn(&Principal, &Arc<str>) + Send + Sync>;

/// Open sessions, limited in number.
pub(super) struct Sessions {
    by_id: Mutex<HashMap<Arc<str>, Arc<HttpSession>>>,
    limit: usize,
    idle: Duration,
    turns: usize,
    ending: CancellationToken,
    random: SystemRandom,
    ended: SessionEndCallback,
}

#[derive(Debug)]
pub(super) struct HttpSession {
    pub(super) id: Arc<str>,
    principal: Principal,
    /// View that the path of the first request names.
    view: Option<Arc<View>>,
    pub(super) threshold: LogThreshold,
    pub(super) in_flight: Arc<InFlightRequests>,
    pub(super) questions: Arc<PendingQuestions>,
    pub(super) watches: Arc<ResourceWatches>,
    /// Limits the running requests of the session.
    pub(super) turns: Semaphore,
    /// Cancelled when the session ends.
    closed: CancellationToken,
    state: Mutex<HttpSessionState>,
}

#[derive(Debug)]
struct HttpSessionState {
    profile: Arc<ClientProfile>,
    /// Ends the most recently opened stream of notifications.
    stream: Option<CancellationToken>,
    /// Number of open requests and streams.
    users: usize,
    last_used: Instant,
}

/// Session in use, which cannot expire.
#[derive(Debug)]
pub(super) struct SessionUseGuard(Arc<HttpSession>);

/// Error of opening a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SessionOpenError {
    #[error("{0} sessions are open and in use: end one first, or raise `limits.sessions`")]
    TooMany(usize),
    #[error("the system gives no random numbers")]
    NoRandomness,
}

impl Sessions {
    /// Creates a store without sessions. All streams of sessions end when `ending` is cancelled.
    pub(super) fn new(settings: &HttpSettings, ending: CancellationToken, ended: SessionEndCallback) -> Self {
        Self {
            by_id: Mutex::default(),
            limit: settings.max_sessions,
            idle: settings.session_idle,
            turns: settings.max_in_flight_per_session,
            ending,
            random: SystemRandom::new(),
            ended,
        }
    }

    /// Opens a session. If the limit is reached, the session that was idle for longest ends; an error if all are in
    /// use.
    pub(super) fn open(
        &self,
        principal: Principal,
        view: Option<Arc<View>>,
        profile: ClientProfile,
        now: Instant,
    ) -> Result<Arc<HttpSession>, SessionOpenError> {
        let mut bytes = [0; ID_BYTES];
        self.random.fill(&mut bytes).map_err(|_| SessionOpenError::NoRandomness)?;
        let id: Arc<str> = URL_SAFE_NO_PAD.encode(bytes).into();
        let state = HttpSessionState { profile: Arc::new(profile), stream: None, users: 0, last_used: now };
        let session = Arc::new(HttpSession {
            id: id.clone(),
            principal,
            view,
            threshold: LogThreshold::session(),
            in_flight: Arc::default(),
            questions: Arc::default(),
            watches: Arc::default(),
            turns: Semaphore::new(self.turns),
            closed: self.ending.child_token(),
            state: Mutex::new(state),
        });
        let mut by_id = self.lock();
        if by_id.len() >= self.limit {
            self.drop_idle(&mut by_id, now);
        }
        while by_id.len() >= self.limit {
            let unused = by_id.iter().filter_map(|(id, session)| Some((session.unused_since()?, id.clone())));
            let (_, longest) = unused.min().ok_or(SessionOpenError::TooMany(self.limit))?;
            if let Some(session) = by_id.remove(&longest) {
                self.over(&session, SessionEndReason::Replaced);
            }
        }
        by_id.insert(id, session.clone());
        drop(by_id);
        log_start(&session.id, &session.principal, &session.lock().profile);
        Ok(session)
    }

    /// Returns the principal's session with this id in this view. Sessions of other principals and other views are not
    /// found.
    pub(super) fn find(&self, id: &str, principal: &Principal, view: Option<&Arc<View>>) -> Option<SessionUseGuard> {
        // Marked as in use under the lock, so that the session cannot be replaced meanwhile.
        let by_id = self.lock();
        Some(by_id.get(id).filter(|session| session.belongs_to(principal, view))?.clone().in_use())
    }

    /// Ends a session: cancels its requests and ends its stream. Returns `false` if the principal has no such session
    /// in this view.
    pub(super) fn close(&self, id: &str, principal: &Principal, view: Option<&Arc<View>>) -> bool {
        let closed = {
            let mut by_id = self.lock();
            let is_theirs = by_id.get(id).is_some_and(|session| session.belongs_to(principal, view));
            if is_theirs { by_id.remove(id) } else { None }
        };
        let was_there = closed.is_some();
        if let Some(session) = closed {
            self.over(&session, SessionEndReason::Client);
        }
        was_there
    }

    /// Ends idle sessions.
    pub(super) fn expire(&self, now: Instant) {
        self.drop_idle(&mut self.lock(), now);
    }

    fn drop_idle(&self, by_id: &mut HashMap<Arc<str>, Arc<HttpSession>>, now: Instant) {
        by_id.retain(|_, session| {
            let idle = session.unused_since().is_some_and(|since| now.saturating_duration_since(since) >= self.idle);
            if idle {
                self.over(session, SessionEndReason::Idle);
            }
            !idle
        });
    }

    fn over(&self, session: &HttpSession, end: SessionEndReason) {
        session.close();
        end.log(&session.id, &session.principal);
        (self.ended)(&session.principal, &session.id);
    }

    /// Returns the number of open sessions.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<HttpSession>>> {
        // No code panics while the lock is held.
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("open", &self.lock().len()).finish_non_exhaustive()
    }
}

impl HttpSession {
    fn belongs_to(&self, principal: &Principal, view: Option<&Arc<View>>) -> bool {
        let name = |view: &Arc<View>| view.name.clone();
        self.principal == *principal && self.view.as_ref().map(name) == view.map(name)
    }

    fn in_use(self: Arc<Self>) -> SessionUseGuard {
        self.lock().users += 1;
        SessionUseGuard(self)
    }

    /// Returns the time since which the session is idle; `None` while it is in use.
    fn unused_since(&self) -> Option<Instant> {
        let state = self.lock();
        (state.users == 0).then_some(state.last_used)
    }

    fn close(&self) {
        self.closed.cancel();
        self.in_flight.cancel_all(CancelReason::Client);
        self.watches.clear();
    }

    /// Returns the client of a request in this session.
    pub(super) fn client(&self) -> ClientContext {
        let profile = self.lock().profile.clone();
        let scope = RequestScope::of(self.principal.clone(), self.id.clone());
        let scope = match &self.view {
            Some(view) => scope.through(view.clone()),
            None => scope,
        };
        ClientContext { scope, profile }
    }

    /// Waits until the request may run; `None` if it is cancelled before.
    pub(super) async fn turn(&self, cancel: &CancelSignal) -> Option<SemaphorePermit<'_>> {
        tokio::select! {
            biased;
            turn = self.turns.acquire() => turn.ok(),
            _ = cancel.cancelled() => None,
        }
    }

    /// Returns the interests of the client for its stream.
    pub(super) fn interests(&self) -> Interests {
        Interests::of_session(self.client(), self.watches.clone(), self.threshold.chosen())
    }

    /// Sets the minimum level of log messages for the client.
    pub(super) fn set_log_level(&self, level: LogLevel) {
        self.threshold.set(level);
        let mut state = self.lock();
        state.profile = Arc::new(ClientProfile { log_level: Some(level), ..(*state.profile).clone() });
    }

    /// Opens the stream of notifications. Each message is sent on one stream only, so an open stream ends; its
    /// connection may be broken without the server's knowledge. The returned token is cancelled when the new stream
    /// must end.
    pub(super) fn open_stream(&self) -> CancellationToken {
        let stream = self.closed.child_token();
        if let Some(before) = self.lock().stream.replace(stream.clone()) {
            before.cancel();
        }
        stream
    }

    fn lock(&self) -> MutexGuard<'_, HttpSessionState> {
        // No code panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for SessionUseGuard {
    type Target = Arc<HttpSession>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Drop for SessionUseGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.users -= 1;
        state.last_used = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_infrastructure::mcp::wire::message::RequestId;

    const IDLE: Duration = Duration::from_secs(60);

    fn sessions(max_sessions: usize) -> Sessions {
        let settings = HttpSettings { max_sessions, session_idle: IDLE, ..HttpSettings::default() };
        Sessions::new(&settings, CancellationToken::new(), Box::new(|_, _| {}))
    }

    fn profile() -> ClientProfile {
        ClientProfile::without_protocol("test")
    }

    #[test]
    fn a_session_belongs_to_its_principal() {
        let (ours, theirs) = (Principal::token("a"), Principal::token("b"));
        let sessions = sessions(10);
        let session = sessions.open(ours.clone(), None, profile(), Instant::now()).unwrap();
        assert!(session.id.len() * 6 >= 128 && session.id.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(sessions.find(&session.id, &theirs, None).is_none() && !sessions.close(&session.id, &theirs, None));
        let running = sessions.find(&session.id, &ours, None).unwrap().in_flight.begin_beside(RequestId::Number(1));
        let stream = session.open_stream();
        assert!(sessions.close(&session.id, &ours, None) && !sessions.close(&session.id, &ours, None));
        assert!(sessions.find(&session.id, &ours, None).is_none() && stream.is_cancelled());
        assert_eq!(running.cancel.reason(), Some(CancelReason::Client));
    }

    #[test]
    fn an_idle_session_is_evicted_and_a_session_in_use_is_not() {
        let principal = Principal::token("a");
        let sessions = sessions(2);
        let start = Instant::now();
        let open = |at: Instant| sessions.open(principal.clone(), None, profile(), at);
        let (first, second) = (open(start).unwrap(), open(start).unwrap());
        let in_use = sessions.find(&first.id, &principal, None).unwrap();
        let third = open(start + IDLE).unwrap();
        assert!(sessions.find(&second.id, &principal, None).is_none());
        drop(in_use);
        sessions.expire(start + IDLE);
        assert!(sessions.find(&first.id, &principal, None).is_some(), "it was used just now");
        sessions.expire(start + 3 * IDLE);
        assert!(sessions.find(&third.id, &principal, None).is_none());
    }

    #[test]
    fn a_new_session_replaces_the_longest_idle_one_at_the_limit() {
        let principal = Principal::token("a");
        let sessions = sessions(3);
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let open = |at: Instant| sessions.open(principal.clone(), None, profile(), at);
        let busy = open(start).unwrap();
        let in_use = sessions.find(&busy.id, &principal, None).unwrap();
        let (later, earlier) = (open(start + 2 * second).unwrap(), open(start + second).unwrap());
        let stream = earlier.open_stream();
        let new = open(start + 3 * second).unwrap();
        assert!(stream.is_cancelled() && sessions.lock().get(&earlier.id).is_none());
        assert_eq!(sessions.lock().len(), 3);
        let all = [&later, &new].map(|session| sessions.find(&session.id, &principal, None).unwrap());
        assert_eq!(open(start + 4 * second).unwrap_err(), SessionOpenError::TooMany(3));
        drop((all, in_use));
        open(start + 4 * second).unwrap();
    }

    #[test]
    fn the_end_of_a_session_is_reported_exactly_once() {
        let output = Arc::new(Mutex::new(Vec::new()));
        let ended = {
            let output = output.clone();
            Box::new(move |_: &Principal, id: &Arc<str>| output.lock().unwrap().push(id.clone()))
        };
        let settings = HttpSettings { max_sessions: 2, session_idle: IDLE, ..HttpSettings::default() };
        let sessions = Sessions::new(&settings, CancellationToken::new(), ended);
        let (principal, start) = (Principal::token("a"), Instant::now());
        let ids = [0, 1].map(|_| sessions.open(principal.clone(), None, profile(), start).unwrap().id.clone());
        assert!(sessions.close(&ids[0], &principal, None) && !sessions.close(&ids[0], &principal, None));
        sessions.expire(start + IDLE);
        sessions.expire(start + IDLE);
        let open = |at: Instant| sessions.open(principal.clone(), None, profile(), at).unwrap().id.clone();
        let (third, _, _) = (open(start), open(start + IDLE / 2), open(start + IDLE / 2));
        assert_eq!(*output.lock().unwrap(), [&ids[..], &[third]].concat());
    }

    #[test]
    fn a_new_stream_ends_the_one_before() {
        let sessions = sessions(1);
        let session = sessions.open(Principal::token("a"), None, profile(), Instant::now()).unwrap();
        let (one, two) = (session.open_stream(), session.open_stream());
        assert!(one.is_cancelled() && !two.is_cancelled());
    }
}
