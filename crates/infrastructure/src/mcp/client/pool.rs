//! The connections to one server beside the one that its catalogue comes from.
//!
//! A server up to 2025-11-25 hears once, with `initialize`, what can be asked of a client, and keeps its state by the
//! connection. So calls share a connection only where they may: where what was declared holds for each of them, where no
//! question can reach the wrong one, and where the state of one is not another's.

use crate::mcp::client::{
    connection::Connection,
    context::keeping::{Company, keep_beside},
    peer::Loss,
    request_error::RequestError,
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
use toolstead_domain::{client_profile::Generation, principal::Principal};

/// So many calls of one server have a connection for themselves: each may be a process, and a call that asks a person may
/// keep it for minutes. As many connections wait for the next such call.
const LEASED: usize = 10;
/// So many of these calls may be of the same principal, so that it cannot keep all others out.
const LEASED_BY_ONE: usize = 8;
/// So many connections of one server several calls share, or belong to one principal each.
const OTHERS: usize = 64;
/// So many of them belong to the same principal: with each connection goes what its client declares, which a client may
/// change with every call.
const OF_ONE_PRINCIPAL: usize = 16;

/// Minimum time between two searches for unused connections.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);

/// The connections of one server.
#[derive(Debug)]
pub(super) struct Pool {
    slots: Mutex<Slots>,
    /// Room for those that one call has for itself. Who waits for it is served in order.
    leases: Arc<Semaphore>,
    /// The same for each principal that has or wants any of them.
    of_principals: Mutex<HashMap<Principal, Arc<Semaphore>>>,
    /// Notified when there is a connection more.
    reserved: Notify,
    /// Connections that end.
    ending: TaskTracker,
    /// How long a server may take to end.
    grace: Duration,
    /// What they are kept with.
    company: Arc<Company>,
}

#[derive(Debug, Default)]
struct Slots {
    entries: Vec<Entry>,
    is_closed: bool,
}

#[derive(Debug)]
struct Entry {
    slot: Arc<Slot>,
    users: usize,
    /// When the number of users changed last.
    since: Instant,
    /// The sessions that have used it, where it belongs to a principal.
    sessions: BTreeSet<String>,
}

/// The place of one connection.
#[derive(Debug)]
struct Slot {
    key: Key,
    /// Held while it is opened.
    connection: AsyncMutex<Option<Arc<Pooled>>>,
    turn: Arc<AsyncMutex<()>>,
}

/// Which connection a call needs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    /// What is declared of the client (MCP's `ClientCapabilities`).
    pub(super) capabilities: Map<String, Value>,
    /// Whose calls alone it carries; `None`: everybody's.
    pub(super) principal: Option<Principal>,
    /// Whether the server keeps the principal's state by it.
    pub(super) is_stateful: bool,
    /// Whether it carries one call at a time.
    pub(super) is_exclusive: bool,
}

#[derive(Debug)]
struct Pooled {
    connection: Arc<Connection>,
    _listening: Option<AbortOnDropHandle<()>>,
    _keeping: AbortOnDropHandle<()>,
}

/// A connection for a call, until it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    pool: Arc<Pool>,
    slot: Arc<Slot>,
    pooled: Option<Arc<Pooled>>,
    /// Whether the call got its answer: else something may still come for it.
    answered: AtomicBool,
    _turn: Option<OwnedMutexGuard<()>>,
    /// Where the call has it for itself: given back when the connection may be used again, or has ended.
    room: Option<Room>,
}

/// Room for one call that has a connection for itself: in its principal's share, and in all.
#[derive(Debug)]
struct Room(#[expect(dead_code, reason = "held")] [OwnedSemaphorePermit; 2]);

impl Key {
    /// True where everybody shares it who cannot be asked.
    fn is_plain(&self) -> bool {
        self.capabilities.is_empty() && self.principal.is_none() && !self.is_exclusive
    }

    fn is_leased(&self) -> bool {
        self.is_exclusive && !self.is_stateful
    }
}

impl Entry {
    /// Begins a use by a call of this session.
    fn begin(&mut self, session: &str) -> Arc<Slot> {
        self.users += 1;
        self.since = Instant::now();
        if self.slot.key.principal.is_some() && !self.sessions.contains(session) {
            self.sessions.insert(session.to_owned());
        }
        self.slot.clone()
    }
}

impl Pool {
    /// No connection yet.
    pub(super) fn new(company: Company) -> Arc<Self> {
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

    /// Takes a connection of this key that is open already and that calls share. `None` where [`take`](Self::take) has to
    /// wait for one or to open one.
    pub(super) fn take_open(self: &Arc<Self>, key: &Key, session: &str) -> Option<Lease> {
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
            room: None,
        })
    }

    /// A connection of this key: one that is there, or what `open` gives. Waits while all those are in use that one call
    /// has for itself.
    ///
    /// # Errors
    /// [`RequestError::Unreachable`] and [`Unauthorized`](RequestError::Unauthorized) where none can be had.
    pub(super) async fn take<'a>(
        self: &Arc<Self>,
        key: Key,
        (principal, session): (&Principal, &str),
        open: impl FnOnce() -> BoxFuture<'a, Result<Connection, Loss>>,
    ) -> Result<Lease, RequestError> {
        let closed = || RequestError::Unreachable("it was closed".into());
        let room = match key.is_leased() {
            true => Some(self.room(principal).await.ok_or_else(closed)?),
            false => None,
        };
        let slot = self.reserve(key, session)?;
        // From here on the place is given back however this ends.
        let mut lease = Lease {
            pool: self.clone(),
            slot: slot.clone(),
            pooled: None,
            answered: AtomicBool::new(true),
            _turn: None,
            room,
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
                    Loss::Failed(reason) => RequestError::Unreachable(reason),
                    Loss::Unauthorized(reason) => RequestError::Unauthorized(reason),
                })?;
                if self.slots().is_closed {
                    return Err(closed());
                }
                place.insert(Arc::new(Pooled::new(connection, &slot.key, self.company.clone()))).clone()
            }
        };
        drop(place);
        lease.pooled = Some(pooled);
        lease.answered = AtomicBool::new(false);
        Ok(lease)
    }

    /// Room for a call of this principal; `None` once all is over.
    async fn room(&self, principal: &Principal) -> Option<Room> {
        let share = {
            let mut shares = self.of_principals.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that nobody holds or waits for.
            shares.retain(|_, share| Arc::strong_count(share) > 1);
            shares.entry(principal.clone()).or_insert_with(|| Arc::new(Semaphore::new(LEASED_BY_ONE))).clone()
        };
        let own = share.acquire_owned().await.ok()?;
        let of_all = self.leases.clone().acquire_owned().await.ok()?;
        Some(Room([own, of_all]))
    }

    /// How many connections there are.
    pub(super) fn count(&self) -> usize {
        self.connections().len()
    }

    /// The connections that there are.
    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        let slots = self.slots();
        let open = slots.entries.iter().filter_map(|entry| entry.slot.connection.try_lock().ok()?.clone());
        open.filter(|pooled| !pooled.is_lost()).map(|pooled| pooled.connection.clone()).collect()
    }

    /// The connection that calls share which cannot be asked, if there is one. One that is being opened is waited for.
    pub(super) async fn plain(&self) -> Option<Arc<Connection>> {
        let slot = self.slots().entries.iter().find(|entry| entry.slot.key.is_plain())?.slot.clone();
        let pooled = slot.connection.lock().await.clone()?;
        (!pooled.is_lost()).then(|| pooled.connection.clone())
    }

    /// Ends connections that nobody has used for so long; for ever. `None`: never.
    pub(super) async fn end_unused(&self, unused: Option<Duration>) {
        let Some(unused) = unused else { return pending().await };
        loop {
            let now = Instant::now();
            self.end_all(|entry| entry.users == 0 && entry.since + unused <= now);
            // The time of a connection that is used begins no sooner than now.
            let begins = |entry: &Entry| if entry.users == 0 { entry.since } else { now };
            let next = self.slots().entries.iter().map(begins).min();
            match next {
                None => self.reserved.notified().await,
                Some(begins) => sleep_until((begins + unused).max(now + SHORTEST_SLEEP)).await,
            }
        }
    }

    /// A session is over: the connections of its principal end with the last one.
    pub(super) fn session_ended(&self, principal: &Principal, session: &str) {
        {
            let mut slots = self.slots();
            for entry in slots.entries.iter_mut().filter(|entry| entry.slot.key.principal.as_ref() == Some(principal)) {
                entry.sessions.remove(session);
            }
        }
        self.end_all(|entry| entry.slot.key.principal.as_ref() == Some(principal) && entry.sessions.is_empty());
    }

    /// Ends the connection beside whatever else goes on.
    pub(super) fn end(&self, connection: Arc<Connection>) {
        let grace = self.grace;
        // Without a runtime there is nothing to wait with, and what is dropped ends at once.
        if let Ok(runtime) = Handle::try_current() {
            self.ending.spawn_on(async move { connection.transport.close(grace).await }, &runtime);
        }
    }

    /// Ends all connections; returns when they are gone.
    pub(super) async fn close(&self) {
        self.leases.close();
        self.slots().is_closed = true;
        self.end_all(|_| true);
        self.ending.close();
        self.ending.wait().await;
    }

    /// The place for a call: one that is there and may be used, or a new one.
    fn reserve(&self, key: Key, session: &str) -> Result<Arc<Slot>, RequestError> {
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

    /// Room for one more among these, if need be in the place of one that nobody uses.
    fn make_room(
        &self,
        slots: &mut Slots,
        bound: usize,
        whose: &str,
        among: impl Fn(&Entry) -> bool,
    ) -> Result<(), RequestError> {
        if slots.entries.iter().filter(|entry| among(entry)).count() < bound {
            return Ok(());
        }
        // The state of a principal lasts; anything else can be had again.
        let may_go = |entry: &&Entry| among(entry) && entry.users == 0 && !entry.slot.key.is_stateful;
        let oldest = slots.entries.iter().filter(may_go).min_by_key(|entry| entry.since);
        let oldest = oldest.map(|entry| entry.slot.clone()).ok_or_else(|| {
            RequestError::Unreachable(format!("its {bound} connections{whose} are in use; try again later"))
        })?;
        slots.entries.retain(|entry| !Arc::ptr_eq(&entry.slot, &oldest));
        self.end_slot(oldest);
        Ok(())
    }

    /// Gives a place back; with `gone` it is given up where nobody else uses it.
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

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pooled {
    fn new(connection: Connection, key: &Key, company: Arc<Company>) -> Self {
        let connection = Arc::new(connection);
        // Servers may put their questions, and what changed, on the stream that belongs to no call.
        let listens = !key.is_exclusive && connection.writer.version.generation() == Generation::Legacy;
        let listener = connection.clone();
        let listening = listens.then(|| {
            AbortOnDropHandle::new(tokio::spawn(async move { listener.transport.listen(&listener.writer).await }))
        });
        let (kept, of, plain) = (connection.clone(), key.principal.clone(), key.is_plain());
        let keeping = tokio::spawn(async move { keep_beside(&company, &kept, of.as_ref(), plain).await });
        Self { connection, _listening: listening, _keeping: AbortOnDropHandle::new(keeping) }
    }

    fn is_lost(&self) -> bool {
        self.connection.transport.peer().is_lost()
    }
}

impl Lease {
    /// The connection.
    pub(super) fn connection(&self) -> Option<&Arc<Connection>> {
        self.pooled.as_ref().map(|pooled| &pooled.connection)
    }

    /// The call has its answer, so that nothing more comes for it.
    pub(super) fn answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let is_lost = self.pooled.as_ref().is_none_or(|pooled| pooled.is_lost());
        // A question of a call that was given up must not reach the next one.
        let is_tainted = !self.answered.load(Ordering::Relaxed) && self.slot.key.is_leased();
        self.pool.give_back(&self.slot, is_lost || is_tainted);
        if let (true, false, Some(pooled), Ok(runtime)) =
            (is_tainted, is_lost, self.pooled.take(), Handle::try_current())
        {
            let (grace, room) = (self.pool.grace, self.room.take());
            let ending = async move {
                let Connection { transport, writer, .. } = &*pooled.connection;
                // Its answer says that the server has read that the call was taken back.
                drop(timeout(grace, transport.request(writer, "ping", &Map::new())).await);
                transport.close(grace).await;
                // Calls that are made and given up in turn leave no crowd of children that end.
                drop(room);
            };
            self.pool.ending.spawn_on(ending, &runtime);
        }
    }
}
