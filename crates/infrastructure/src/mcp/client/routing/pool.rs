//! Connections to one server in addition to the one that serves its catalogue.
//!
//! A server of a version up to 2025-11-25 learns the capabilities of the client once, in `initialize`, and keeps its
//! state per connection. Calls therefore share a connection only if the declared capabilities are right for all of
//! them, if no question can reach the wrong caller, and if they share no state that belongs to one of them.

use crate::mcp::client::{
    connection::{Connection, peer::ConnectionLoss, request_error::RequestError},
    context::background_work::{PooledWorkDeps, run_pooled_work},
};
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use std::{
    collections::{BTreeSet, HashMap},
    future::pending,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{Mutex as AsyncMutex, Notify, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use toolstead_domain::{Principal, ProtocolGeneration};

/// Maximum number of connections of one server that carry one call at a time. Each may be a process, and a call that
/// asks the user may occupy it for minutes. Also the maximum number of such connections that idle until the next call.
const LEASED: usize = 10;
/// Maximum number of concurrent calls of one principal over connections that carry one call at a time. Keeps one
/// principal from blocking all others.
const LEASED_BY_ONE: usize = 8;
/// Maximum number of connections of one server that several calls share or that belong to one principal.
const OTHERS: usize = 64;
/// Maximum number of connections of one server that belong to one principal. A connection depends on the capabilities
/// that the client declares, and a client may change them with every call.
const OF_ONE_PRINCIPAL: usize = 16;

/// Minimum pause between two searches for idle connections.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(in crate::mcp::client) struct ConnectionPool {
    slots: Mutex<PoolState>,
    /// Permits for connections with one call at a time. Waiting calls are served in order.
    leases: Arc<Semaphore>,
    /// Permits of each principal whose calls use or wait for a connection with one call at a time.
    of_principals: Mutex<HashMap<Principal, Arc<Semaphore>>>,
    /// Notified when a connection is added.
    reserved: Notify,
    /// Tasks that close connections.
    ending: TaskTracker,
    /// Grace period for a server to exit.
    grace: Duration,
    /// Shared state for the background work of the connections.
    company: Arc<PooledWorkDeps>,
}

#[derive(Debug, Default)]
struct PoolState {
    entries: Vec<Entry>,
    is_closed: bool,
}

#[derive(Debug)]
struct Entry {
    slot: Arc<Slot>,
    users: usize,
    /// Time of the last change of `users`.
    since: Instant,
    /// Sessions that have used the connection, if it belongs to one principal.
    sessions: BTreeSet<String>,
}

/// Slot for one connection.
#[derive(Debug)]
struct Slot {
    key: ConnectionKey,
    /// Locked while the connection is being opened.
    connection: AsyncMutex<Option<Arc<SlotConnection>>>,
    turn: Arc<AsyncMutex<()>>,
}

/// Properties of the connection that a call needs.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::mcp::client) struct ConnectionKey {
    /// Declared capabilities of the client (MCP's `ClientCapabilities`).
    pub(in crate::mcp::client) capabilities: Map<String, Value>,
    /// Principal that owns the connection; `None` if all principals share it.
    pub(in crate::mcp::client) principal: Option<Principal>,
    /// `true` if the server keeps state of the principal in this connection.
    pub(in crate::mcp::client) is_stateful: bool,
    /// `true` if the connection carries one call at a time.
    pub(in crate::mcp::client) is_exclusive: bool,
}

#[derive(Debug)]
struct SlotConnection {
    connection: Arc<Connection>,
    _listening: Option<AbortOnDropHandle<()>>,
    _keeping: AbortOnDropHandle<()>,
}

/// Connection in use by a call until dropped.
#[derive(Debug)]
pub(in crate::mcp::client) struct Lease {
    pool: Arc<ConnectionPool>,
    slot: Arc<Slot>,
    pooled: Option<Arc<SlotConnection>>,
    /// `true` once the call has its response. Otherwise messages for it may still arrive.
    answered: AtomicBool,
    _turn: Option<OwnedMutexGuard<()>>,
    /// Permits of a call that uses the connection alone. Released when the connection can be reused or has ended.
    permits: Option<LeasePermits>,
}

/// Permits for one call that uses a connection alone: one of its principal's, one of all.
#[derive(Debug)]
struct LeasePermits(#[expect(dead_code, reason = "held")] [OwnedSemaphorePermit; 2]);

impl ConnectionKey {
    /// Returns `true` for the connection that all callers without capabilities share.
    fn is_plain(&self) -> bool {
        self.capabilities.is_empty() && self.principal.is_none() && !self.is_exclusive
    }

    fn is_leased(&self) -> bool {
        self.is_exclusive && !self.is_stateful
    }
}

impl Entry {
    /// Counts one more call that uses the connection, and returns the slot of the connection. Records the session if
    /// the connection belongs to one principal.
    fn begin(&mut self, session: &str) -> Arc<Slot> {
        self.users += 1;
        self.since = Instant::now();
        if self.slot.key.principal.is_some() && !self.sessions.contains(session) {
            self.sessions.insert(session.to_owned());
        }
        self.slot.clone()
    }
}

impl ConnectionPool {
    /// Creates an empty pool.
    pub(in crate::mcp::client) fn new(company: PooledWorkDeps) -> Arc<Self> {
        Arc::new(Self {
            slots: Mutex::default(),
            leases: Arc::new(Semaphore::new(LEASED)),
            of_principals: Mutex::default(),
            reserved: Notify::new(),
            ending: TaskTracker::new(),
            grace: company.config.timeouts.close,
            company: Arc::new(company),
        })
    }

    /// Returns an open shared connection with this key. `None` if [`take`](Self::take) has to wait for one or open one.
    pub(in crate::mcp::client) fn take_open(self: &Arc<Self>, key: &ConnectionKey, session: &str) -> Option<Lease> {
        if key.is_exclusive {
            return None;
        }
        let mut slots = self.slots();
        let entry = slots.entries.iter_mut().find(|entry| entry.slot.key == *key)?;
        let pooled = entry.slot.connection.try_lock().ok()?.as_ref().filter(|pooled| !pooled.is_lost())?.clone();
        let slot = entry.begin(session);
        Some(Lease {
            pool: self.clone(),
            slot,
            pooled: Some(pooled),
            answered: AtomicBool::new(false),
            _turn: None,
            permits: None,
        })
    }

    /// Returns a connection with this key: an open one, or a new one from `open`. Waits while all connections for one
    /// call at a time are in use.
    ///
    /// # Errors
    /// Returns [`RequestError::Unreachable`] or [`Unauthorized`](RequestError::Unauthorized) if no connection is
    /// available.
    pub(in crate::mcp::client) async fn take<'a>(
        self: &Arc<Self>,
        key: ConnectionKey,
        (principal, session): (&Principal, &str),
        open: impl FnOnce() -> BoxFuture<'a, Result<Connection, ConnectionLoss>>,
    ) -> Result<Lease, RequestError> {
        let closed = || RequestError::Unreachable("it was closed".into());
        let room = match key.is_leased() {
            true => Some(self.acquire_permits(principal).await.ok_or_else(closed)?),
            false => None,
        };
        let slot = self.reserve(key, session)?;
        // From here on, dropping the lease releases the slot.
        let mut lease = Lease {
            pool: self.clone(),
            slot: slot.clone(),
            pooled: None,
            answered: AtomicBool::new(true),
            _turn: None,
            permits: room,
        };
        if slot.key.is_exclusive {
            lease._turn = Some(slot.turn.clone().lock_owned().await);
        }
        let mut place = slot.connection.lock().await;
        let pooled = match place.as_ref().filter(|pooled| !pooled.is_lost()) {
            Some(pooled) => pooled.clone(),
            None => {
                *place = None;
                let connection = open().await.map_err(|loss| match loss {
                    ConnectionLoss::Failed(reason) => RequestError::Unreachable(reason),
                    ConnectionLoss::Unauthorized(reason) => RequestError::Unauthorized(reason),
                })?;
                if self.slots().is_closed {
                    return Err(closed());
                }
                place.insert(Arc::new(SlotConnection::new(connection, &slot.key, self.company.clone()))).clone()
            }
        };
        drop(place);
        lease.pooled = Some(pooled);
        lease.answered = AtomicBool::new(false);
        Ok(lease)
    }

    /// Waits for permits for a call of this principal. `None` if the pool is closed.
    async fn acquire_permits(&self, principal: &Principal) -> Option<LeasePermits> {
        let share = {
            let mut shares = self.of_principals.lock().unwrap_or_else(PoisonError::into_inner);
            // Removes the semaphores that no call holds or waits for.
            shares.retain(|_, share| Arc::strong_count(share) > 1);
            shares.entry(principal.clone()).or_insert_with(|| Arc::new(Semaphore::new(LEASED_BY_ONE))).clone()
        };
        let own = share.acquire_owned().await.ok()?;
        let of_all = self.leases.clone().acquire_owned().await.ok()?;
        Some(LeasePermits([own, of_all]))
    }

    /// Returns the number of open connections.
    pub(in crate::mcp::client) fn count(&self) -> usize {
        self.connections().len()
    }

    /// Returns the open connections.
    pub(in crate::mcp::client) fn connections(&self) -> Vec<Arc<Connection>> {
        let slots = self.slots();
        let open = slots.entries.iter().filter_map(|entry| entry.slot.connection.try_lock().ok()?.clone());
        open.filter(|pooled| !pooled.is_lost()).map(|pooled| pooled.connection.clone()).collect()
    }

    /// Returns the connection shared by callers without capabilities, if there is one. Waits while it is being opened.
    pub(in crate::mcp::client) async fn plain(&self) -> Option<Arc<Connection>> {
        let slot = self.slots().entries.iter().find(|entry| entry.slot.key.is_plain())?.slot.clone();
        let pooled = slot.connection.lock().await.clone()?;
        (!pooled.is_lost()).then(|| pooled.connection.clone())
    }

    /// Closes connections that have been idle for `unused`. Never returns. `None` closes none.
    pub(in crate::mcp::client) async fn end_unused(&self, unused: Option<Duration>) {
        let Some(unused) = unused else { return pending().await };
        loop {
            let now = Instant::now();
            self.end_all(|entry| entry.users == 0 && entry.since + unused <= now);
            // The idle time of a connection in use begins now at the earliest.
            let begins = |entry: &Entry| if entry.users == 0 { entry.since } else { now };
            let next = self.slots().entries.iter().map(begins).min();
            match next {
                None => self.reserved.notified().await,
                Some(begins) => sleep_until((begins + unused).max(now + SHORTEST_SLEEP)).await,
            }
        }
    }

    /// Records the end of a session. Closes each connection of its principal that none of the principal's other
    /// sessions has used.
    pub(in crate::mcp::client) fn session_ended(&self, principal: &Principal, session: &str) {
        {
            let mut slots = self.slots();
            for entry in slots.entries.iter_mut().filter(|entry| entry.slot.key.principal.as_ref() == Some(principal)) {
                entry.sessions.remove(session);
            }
        }
        self.end_all(|entry| entry.slot.key.principal.as_ref() == Some(principal) && entry.sessions.is_empty());
    }

    /// Closes a connection in the background.
    pub(in crate::mcp::client) fn end(&self, connection: Arc<Connection>) {
        let grace = self.grace;
        // Without a tokio runtime nothing can wait for the end; the connection ends at once when dropped.
        if let Ok(runtime) = Handle::try_current() {
            self.ending.spawn_on(async move { connection.transport.close(grace).await }, &runtime);
        }
    }

    /// Closes all connections and waits until they have ended.
    pub(in crate::mcp::client) async fn close(&self) {
        self.leases.close();
        self.slots().is_closed = true;
        self.end_all(|_| true);
        self.ending.close();
        self.ending.wait().await;
    }

    /// Returns a slot with this key that the call may use, or adds one.
    fn reserve(&self, key: ConnectionKey, session: &str) -> Result<Arc<Slot>, RequestError> {
        let mut slots = self.slots();
        if slots.is_closed {
            return Err(RequestError::Unreachable("it was closed".into()));
        }
        let fits = |entry: &Entry| entry.slot.key == key && (entry.users == 0 || !key.is_leased());
        let at = match slots.entries.iter().position(fits) {
            Some(at) => at,
            None => {
                if let Some(principal) = &key.principal {
                    let of_the_same = |entry: &Entry| entry.slot.key.principal.as_ref() == Some(principal);
                    self.make_room(&mut slots, OF_ONE_PRINCIPAL, " for one principal", of_the_same)?;
                }
                let is_leased = key.is_leased();
                let bound = if is_leased { LEASED } else { OTHERS };
                self.make_room(&mut slots, bound, "", |entry| entry.slot.key.is_leased() == is_leased)?;
                let slot = Slot { key, connection: AsyncMutex::default(), turn: Arc::default() };
                let sessions = BTreeSet::new();
                slots.entries.push(Entry { slot: Arc::new(slot), users: 0, since: Instant::now(), sessions });
                self.reserved.notify_one();
                slots.entries.len() - 1
            }
        };
        Ok(slots.entries[at].begin(session))
    }

    /// Makes space for one more connection of the kind that `among` selects: if there are `bound` already, closes the
    /// one that has been idle longest. A connection with state of a principal is not closed.
    ///
    /// # Errors
    /// Returns [`RequestError::Unreachable`] if none of them can be closed.
    fn make_room(
        &self,
        slots: &mut PoolState,
        bound: usize,
        whose: &str,
        among: impl Fn(&Entry) -> bool,
    ) -> Result<(), RequestError> {
        if slots.entries.iter().filter(|entry| among(entry)).count() < bound {
            return Ok(());
        }
        // A connection with state of a principal is not closed; all others can be opened again.
        let may_go = |entry: &&Entry| among(entry) && entry.users == 0 && !entry.slot.key.is_stateful;
        let oldest = slots.entries.iter().filter(may_go).min_by_key(|entry| entry.since);
        let oldest = oldest.map(|entry| entry.slot.clone()).ok_or_else(|| {
            RequestError::Unreachable(format!("its {bound} connections{whose} are in use; try again later"))
        })?;
        slots.entries.retain(|entry| !Arc::ptr_eq(&entry.slot, &oldest));
        self.end_slot(oldest);
        Ok(())
    }

    /// Releases a slot. With `gone` the slot is removed if no other call uses it.
    fn give_back(&self, slot: &Arc<Slot>, gone: bool) {
        let mut slots = self.slots();
        let Some(at) = slots.entries.iter().position(|entry| Arc::ptr_eq(&entry.slot, slot)) else { return };
        let entry = &mut slots.entries[at];
        entry.users = entry.users.saturating_sub(1);
        entry.since = Instant::now();
        if gone && entry.users == 0 {
            slots.entries.swap_remove(at);
        }
    }

    fn end_all(&self, which: impl Fn(&Entry) -> bool) {
        let ended: Vec<Entry> = self.slots().entries.extract_if(.., |entry| which(entry)).collect();
        for entry in ended {
            self.end_slot(entry.slot);
        }
    }

    fn end_slot(&self, slot: Arc<Slot>) {
        let grace = self.grace;
        if let Ok(runtime) = Handle::try_current() {
            let ending = async move {
                let pooled = slot.connection.lock().await.take();
                if let Some(pooled) = pooled {
                    pooled.connection.transport.close(grace).await;
                }
            };
            self.ending.spawn_on(ending, &runtime);
        }
    }

    fn slots(&self) -> MutexGuard<'_, PoolState> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotConnection {
    fn new(connection: Connection, key: &ConnectionKey, company: Arc<PooledWorkDeps>) -> Self {
        let connection = Arc::new(connection);
        // A legacy server may send questions and change notifications on the stream that belongs to no call.
        let listens = !key.is_exclusive && connection.writer.version.generation() == ProtocolGeneration::Legacy;
        let listener = connection.clone();
        let listening = listens.then(|| {
            AbortOnDropHandle::new(tokio::spawn(async move { listener.transport.listen(&listener.writer).await }))
        });
        let (kept, of, plain) = (connection.clone(), key.principal.clone(), key.is_plain());
        let keeping = tokio::spawn(async move { run_pooled_work(&company, &kept, of.as_ref(), plain).await });
        Self { connection, _listening: listening, _keeping: AbortOnDropHandle::new(keeping) }
    }

    fn is_lost(&self) -> bool {
        self.connection.transport.peer().is_lost()
    }
}

impl Lease {
    pub(in crate::mcp::client) fn connection(&self) -> Option<&Arc<Connection>> {
        self.pooled.as_ref().map(|pooled| &pooled.connection)
    }

    /// Records that the call has its response, so that no further message can arrive for it.
    pub(in crate::mcp::client) fn answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let is_lost = self.pooled.as_ref().is_none_or(|pooled| pooled.is_lost());
        // A question for an abandoned call must not reach the next call.
        let is_tainted = !self.answered.load(Ordering::Relaxed) && self.slot.key.is_leased();
        self.pool.give_back(&self.slot, is_lost || is_tainted);
        if let (true, false, Some(pooled), Ok(runtime)) =
            (is_tainted, is_lost, self.pooled.take(), Handle::try_current())
        {
            let (grace, room) = (self.pool.grace, self.permits.take());
            let ending = async move {
                let Connection { transport, writer, .. } = &*pooled.connection;
                // The response to a ping shows that the server has read the cancellation.
                drop(timeout(grace, transport.request(writer, "ping", &Map::new())).await);
                transport.close(grace).await;
                // The permits are held until here, so that calls made and abandoned in turn cannot pile up exiting
                // children.
                drop(room);
            };
            self.pool.ending.spawn_on(ending, &runtime);
        }
    }
}
