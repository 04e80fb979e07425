//! Sessions of clients without sessions of their own (MCP 2026-07-28): one per principal and client name, until it is
//! idle for too long.

use super::{
    authenticator::AuthenticatedClient,
    session_log::{SessionEndReason, log_start_of},
    sessions::SessionEndCallback,
    settings::HttpSettings,
};
use sha2::{Digest, Sha256};
use std::{
    cmp::Reverse,
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use toolstead_domain::Principal;
use uuid::Uuid;

/// Maximum length in bytes of a client's name that is stored unchanged.
const SHORT_NAME: usize = 32;

/// Open sessions, limited in number.
pub(super) struct ImplicitSessions {
    by_client: Mutex<HashMap<StatelessSessionKey, SessionEntry>>,
    limit: usize,
    idle: Duration,
    ended: SessionEndCallback,
}

/// Key of a session: the principal and the name of the session.
type StatelessSessionKey = (Principal, SessionName);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum SessionName {
    /// Name from the authenticator.
    Given(Arc<str>),
    /// Name from the client, and its length.
    OfClient([u8; SHORT_NAME], usize),
    /// Digest of a longer name.
    OfClientWithLongName([u8; 32]),
}

impl SessionName {
    fn of(client: &str) -> Self {
        let mut name = [0; SHORT_NAME];
        match name.get_mut(..client.len()) {
            Some(part) => {
                part.copy_from_slice(client.as_bytes());
                Self::OfClient(name, client.len())
            }
            None => Self::OfClientWithLongName(Sha256::digest(client).into()),
        }
    }
}

#[derive(Debug)]
struct SessionEntry {
    id: Arc<str>,
    /// Number of running calls.
    users: usize,
    last_used: Instant,
}

/// Session in use, which cannot expire.
#[derive(Debug)]
pub(super) struct StatelessSessionUseGuard {
    pub(super) id: Arc<str>,
    client: StatelessSessionKey,
    sessions: Arc<ImplicitSessions>,
}

impl ImplicitSessions {
    /// Creates a store without sessions.
    pub(super) fn new(settings: &HttpSettings, ended: SessionEndCallback) -> Arc<Self> {
        let (limit, idle) = (settings.max_sessions, settings.session_idle);
        Arc::new(Self { by_client: Mutex::default(), limit, idle, ended })
    }

    /// Returns the session of this client, and opens it if necessary. If the limit is reached, it replaces the session
    /// that was idle for longest, of the principal with most sessions: a client that invents names replaces its own
    /// sessions.
    pub(super) fn enter(
        self: &Arc<Self>,
        holder: &AuthenticatedClient,
        client: &str,
        now: Instant,
    ) -> StatelessSessionUseGuard {
        let name = match &holder.session {
            Some(name) => SessionName::Given(name.clone()),
            None => SessionName::of(client),
        };
        let shown = client;
        let client = (holder.principal.clone(), name);
        let mut by_client = self.lock();
        if let Some(kept) = by_client.get_mut(&client).filter(|kept| !self.is_over(kept, now)) {
            kept.users += 1;
            return StatelessSessionUseGuard { id: kept.id.clone(), client, sessions: self.clone() };
        }
        self.end_idle(&mut by_client, now);
        if by_client.len() >= self.limit && !by_client.contains_key(&client) {
            let mut counts: HashMap<&Principal, usize> = HashMap::new();
            for (principal, _) in by_client.keys().chain([&client]) {
                *counts.entry(principal).or_default() += 1;
            }
            let idle = by_client.iter().filter(|(_, kept)| kept.users == 0);
            let longest = idle.min_by_key(|((principal, _), kept)| (Reverse(counts[principal]), kept.last_used));
            let longest = longest.map(|(client, _)| client.clone());
            // If all are in use, their number is limited by that of concurrent calls.
            if let Some(longest) = longest
                && let Some(kept) = by_client.remove(&longest)
            {
                SessionEndReason::Replaced.log(&kept.id, &longest.0);
                (self.ended)(&longest.0, &kept.id);
            }
        }
        // A new id each time, so that the end of the previous session does not affect this one.
        let begin = || {
            let id: Arc<str> = format!("stateless:{}", Uuid::new_v4().simple()).into();
            log_start_of(&id, &holder.principal, shown);
            SessionEntry { id, users: 0, last_used: now }
        };
        let kept = by_client.entry(client.clone()).or_insert_with(begin);
        kept.users += 1;
        StatelessSessionUseGuard { id: kept.id.clone(), client, sessions: self.clone() }
    }

    /// Ends idle sessions.
    pub(super) fn expire(&self, now: Instant) {
        self.end_idle(&mut self.lock(), now);
    }

    fn end_idle(&self, by_client: &mut HashMap<StatelessSessionKey, SessionEntry>, now: Instant) {
        by_client.retain(|(principal, _), kept| {
            let is_over = self.is_over(kept, now);
            if is_over {
                SessionEndReason::Idle.log(&kept.id, principal);
                (self.ended)(principal, &kept.id);
            }
            !is_over
        });
    }

    fn is_over(&self, kept: &SessionEntry, now: Instant) -> bool {
        kept.users == 0 && now.saturating_duration_since(kept.last_used) >= self.idle
    }

    /// Returns the number of open sessions.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn leave(&self, client: &StatelessSessionKey, now: Instant) {
        if let Some(kept) = self.lock().get_mut(client) {
            kept.users -= 1;
            kept.last_used = now;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StatelessSessionKey, SessionEntry>> {
        // No code panics while the lock is held.
        self.by_client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ImplicitSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImplicitSessions").field("open", &self.lock().len()).finish_non_exhaustive()
    }
}

impl Drop for StatelessSessionUseGuard {
    fn drop(&mut self) {
        self.sessions.leave(&self.client, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(30 * 60);

    /// Sessions, with the ids of those that ended.
    struct Register {
        sessions: Arc<ImplicitSessions>,
        ended: Arc<Mutex<Vec<Arc<str>>>>,
        start: Instant,
    }

    impl Register {
        fn new(max_sessions: usize) -> Self {
            let settings = HttpSettings { max_sessions, ..HttpSettings::default() };
            assert_eq!(settings.session_idle, IDLE);
            let ended = Arc::new(Mutex::new(Vec::new()));
            let outcome = ended.clone();
            let sessions =
                ImplicitSessions::new(&settings, Box::new(move |_, id| outcome.lock().unwrap().push(id.clone())));
            Self { sessions, ended, start: Instant::now() }
        }

        fn enter(&self, token: &str, client: &str, after: Duration) -> StatelessSessionUseGuard {
            self.sessions.enter(&AuthenticatedClient::new(Principal::token(token)), client, self.start + after)
        }

        /// Makes a call that ends at once. Returns the id of its session.
        fn used(&self, token: &str, client: &str, after: Duration) -> Arc<str> {
            let session = self.enter(token, client, after);
            self.sessions.leave(&session.client, self.start + after);
            let id = session.id.clone();
            std::mem::forget(session);
            id
        }

        fn ended(&self) -> Vec<Arc<str>> {
            self.ended.lock().unwrap().clone()
        }
    }

    #[test]
    fn calls_of_the_same_principal_and_client_share_a_session() {
        let register = Register::new(10);
        let first = register.used("a", "agent", Duration::ZERO);
        assert_eq!(register.used("a", "agent", IDLE / 2), first);
        let others = [("a", "other"), ("b", "agent"), ("a", "")];
        let others = others.map(|(token, client)| register.used(token, client, IDLE / 2));
        assert!(!others.contains(&first) && others[0] != others[1] && others[1] != others[2]);
        // The idle time starts with the last call, not with the first.
        assert_eq!(register.used("a", "agent", IDLE + IDLE / 4), first);
        assert!(register.ended().is_empty());
    }

    #[test]
    fn long_client_names_and_names_with_nul_characters_have_separate_sessions() {
        let register = Register::new(10);
        let names = ["a", "a\0", &"a".repeat(SHORT_NAME), &"a".repeat(SHORT_NAME + 1), &"a".repeat(SHORT_NAME + 2)];
        let enter = || names.map(|name| register.used("a", name, Duration::ZERO));
        let sessions = enter();
        assert_eq!(enter(), sessions);
        assert!(sessions.iter().enumerate().all(|(at, one)| !sessions[..at].contains(one)));
    }

    #[test]
    fn a_session_named_by_the_authenticator_is_shared_by_all_clients_of_its_principal() {
        let register = Register::new(10);
        let enter = |principal: &str, session: &str, client: &str| {
            let holder = AuthenticatedClient::new(Principal::token(principal)).in_session(session);
            register.sessions.enter(&holder, client, register.start).id.clone()
        };
        let first = enter("a", "chat-1", "agent");
        assert_eq!(enter("a", "chat-1", "other"), first);
        let others = [enter("a", "chat-2", "agent"), enter("b", "chat-1", "agent")];
        assert!(!others.contains(&first) && others[0] != others[1]);
        assert_ne!(register.used("a", "chat-1", Duration::ZERO), first, "a client cannot name itself into a session");
    }

    #[test]
    fn a_session_ends_after_its_idle_time_and_the_next_call_opens_a_new_one() {
        let register = Register::new(10);
        let first = register.used("a", "agent", Duration::ZERO);
        let next = register.used("a", "agent", IDLE);
        assert_ne!(next, first);
        assert_eq!(register.ended(), std::slice::from_ref(&first));
        register.sessions.expire(register.start + IDLE + IDLE);
        assert_eq!(register.ended(), [first, next]);
    }

    #[test]
    fn a_session_with_an_open_call_is_not_idle() {
        let register = Register::new(1);
        let open = register.enter("a", "agent", Duration::ZERO);
        register.sessions.expire(register.start + IDLE * 3);
        assert_eq!(register.used("b", "agent", IDLE * 3), register.used("b", "agent", IDLE * 3));
        assert!(!register.ended().contains(&open.id));
        assert_eq!(register.used("a", "agent", IDLE * 3), open.id);
    }

    #[test]
    fn a_principal_with_many_client_names_evicts_only_its_own_sessions() {
        let register = Register::new(3);
        let second = Duration::from_secs(1);
        let other = register.used("b", "agent", Duration::ZERO);
        for number in 1..=10 {
            register.used("a", &number.to_string(), second * number);
        }
        assert_eq!(register.used("b", "agent", second * 20), other);
        assert_eq!(register.ended().len(), 8);
    }

    #[test]
    fn a_session_above_the_limit_ends_the_longest_idle_session() {
        let register = Register::new(2);
        let second = Duration::from_secs(1);
        let (one, two) = (register.used("a", "1", Duration::ZERO), register.used("a", "2", second));
        assert_eq!(register.used("a", "1", second * 2), one);
        register.used("a", "3", second * 3);
        assert_eq!(register.ended(), [two]);
        assert_eq!(register.used("a", "1", second * 4), one);
    }
}
