//! Connections of clients, limited in number before and after they have presented a token.
//!
//! Anyone who reaches the port can open connections, and a token is known only after the head of a request. Connections
//! without a token therefore have a limit of their own. When it is reached, a new connection replaces the oldest one of
//! the peer with most of them. A flood thus replaces its own connections, while other peers and the probes of
//! `/healthz` are accepted, and connections with a token are unaffected.

use futures::task::AtomicWaker;
use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    task::Context,
};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};

/// Number of leading bits of an IPv6 address that identify a peer. A peer can use any address with the same prefix.
const PEER_BITS_V6: u32 = 64;

/// Connections of a server.
#[derive(Debug)]
pub(super) struct Connections {
    /// Permits of connections that have presented a token.
    places: Arc<Semaphore>,
    /// Maximum number of connections that have presented none.
    max_strangers: usize,
    register: Mutex<ConnectionTable>,
}

/// Open connection. Dropping it frees its place.
#[derive(Debug)]
pub(super) struct ConnectionRegistration {
    connections: Arc<Connections>,
    address: IpAddr,
    peer: IpAddr,
    number: u64,
    signal: Arc<ConnectionCloseSignal>,
    /// Permit, set once the connection has presented a token and a permit was free.
    place: OnceCell<Option<OwnedSemaphorePermit>>,
}

/// Request to end a connection. A later variant ends it sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CloseTiming {
    /// Closed by its client only.
    Open,
    AfterResponse,
    AtOnce,
}

/// Signal to end a connection, set by other tasks. The task of the connection polls it whenever it is woken, which
/// takes no lock.
#[derive(Debug, Default)]
struct ConnectionCloseSignal {
    end: AtomicU8,
    task: AtomicWaker,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    /// Connections that have presented no token, the oldest of each peer first.
    by_peer: HashMap<IpAddr, BTreeMap<u64, Arc<ConnectionCloseSignal>>>,
    strangers: usize,
    open: HashMap<u64, Arc<ConnectionCloseSignal>>,
    accepted: u64,
    /// Set once all connections are to end, including later ones.
    end: Option<CloseTiming>,
}

impl ConnectionCloseSignal {
    fn give(&self, end: CloseTiming) {
        self.end.fetch_max(end as u8, Ordering::AcqRel);
        self.task.wake();
    }

    fn get(&self) -> CloseTiming {
        match self.end.load(Ordering::Acquire) {
            0 => CloseTiming::Open,
            1 => CloseTiming::AfterResponse,
            _ => CloseTiming::AtOnce,
        }
    }
}

impl Connections {
    /// Creates a register for `limit` connections with a token, and as many without.
    pub(super) fn new(limit: usize) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { places, max_strangers: limit.max(1), register: Mutex::default() })
    }

    /// Registers a new connection. If there are too many without a token, one of them is closed.
    pub(super) fn take_in(self: &Arc<Self>, from: IpAddr) -> Arc<ConnectionRegistration> {
        let (peer, signal) = (peer(from), Arc::<ConnectionCloseSignal>::default());
        let mut register = self.lock();
        let number = register.add(peer, &signal);
        while register.strangers > self.max_strangers {
            register.end_one();
        }
        drop(register);
        Arc::new(ConnectionRegistration {
            connections: self.clone(),
            address: from.to_canonical(),
            peer,
            number,
            signal,
            place: OnceCell::new(),
        })
    }

    /// Ends all connections, including later ones.
    pub(super) fn end(&self, end: CloseTiming) {
        let mut register = self.lock();
        register.end = register.end.max(Some(end));
        for signal in register.open.values() {
            signal.give(end);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionTable> {
        // No code panics while the lock is held.
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionRegistration {
    /// Admits a connection that presented a token. Waits for a permit; until then the connection counts as one without
    /// a token.
    pub(super) async fn admitted(&self) {
        if self.place.initialized() {
            return;
        }
        let place = self.place.get_or_init(|| async {
            // The semaphore is never closed, so this succeeds eventually.
            let place = self.connections.places.clone().acquire_owned().await.ok();
            self.connections.lock().remove_stranger(self.peer, self.number);
            place
        });
        // Boxed: the future is large, and runs once per connection.
        Box::pin(place).await;
    }

    pub(super) fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the time at which the connection is to end. Wakes the task of `context` when that changes.
    pub(super) fn poll_end(&self, context: &Context<'_>) -> CloseTiming {
        self.signal.task.register(context.waker());
        self.signal.get()
    }
}

impl Drop for ConnectionRegistration {
    fn drop(&mut self) {
        let mut register = self.connections.lock();
        register.open.remove(&self.number);
        register.remove_stranger(self.peer, self.number);
    }
}

impl ConnectionTable {
    fn add(&mut self, peer: IpAddr, signal: &Arc<ConnectionCloseSignal>) -> u64 {
        self.accepted += 1;
        if let Some(end) = self.end {
            signal.give(end);
        }
        self.open.insert(self.accepted, signal.clone());
        self.by_peer.entry(peer).or_default().insert(self.accepted, signal.clone());
        self.strangers += 1;
        self.accepted
    }

    fn remove_stranger(&mut self, peer: IpAddr, number: u64) -> Option<Arc<ConnectionCloseSignal>> {
        let of_peer = self.by_peer.get_mut(&peer)?;
        let removed = of_peer.remove(&number)?;
        if of_peer.is_empty() {
            self.by_peer.remove(&peer);
        }
        self.strangers -= 1;
        Some(removed)
    }

    /// Closes the oldest connection without a token of the peer with most of them. If several peers have the same
    /// number, closes the oldest of all theirs.
    fn end_one(&mut self) {
        let oldest = |of_peer: &BTreeMap<u64, _>| of_peer.keys().next().copied().unwrap_or(u64::MAX);
        let most = self.by_peer.iter().map(|(peer, held)| (held.len(), std::cmp::Reverse(oldest(held)), *peer)).max();
        let Some((held, std::cmp::Reverse(number), peer)) = most else { return };
        if let Some(signal) = self.remove_stranger(peer, number) {
            tracing::debug!(%peer, held, "closed a connection that sent no token: too many are open");
            signal.give(CloseTiming::AtOnce);
        }
    }
}

/// Returns the part of the address that identifies the peer.
fn peer(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - PEER_BITS_V6))).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::task::{Wake, Waker};

    const ONE: &str = "192.0.2.1";
    const OTHER: &str = "192.0.2.2";

    fn connections(limit: usize) -> Arc<Connections> {
        Connections::new(limit)
    }

    fn from(connections: &Arc<Connections>, address: &str) -> Arc<ConnectionRegistration> {
        connections.take_in(address.parse().unwrap())
    }

    fn is_over(connection: &ConnectionRegistration) -> bool {
        connection.signal.get() == CloseTiming::AtOnce
    }

    #[track_caller]
    fn check_over(connections: &[Arc<ConnectionRegistration>], expected: &[usize]) {
        let over: Vec<usize> = (0..connections.len()).filter(|at| is_over(&connections[*at])).collect();
        assert_eq!(over, expected);
    }

    #[test]
    fn a_connection_flood_closes_only_connections_of_the_same_peer() {
        let connections = connections(4);
        let mut open = vec![from(&connections, OTHER)];
        open.extend((0..5).map(|_| from(&connections, ONE)));
        check_over(&open, &[1, 2]);
        // The new connection is from a peer with few of them, so one of the flood is closed for it.
        open.push(from(&connections, OTHER));
        check_over(&open, &[1, 2, 3]);
        assert_eq!(connections.lock().strangers, 4);
    }

    #[test]
    fn the_oldest_connection_closes_if_all_peers_have_equally_many() {
        let connections = connections(2);
        let open: Vec<_> = [ONE, OTHER, "192.0.2.3"].iter().map(|address| from(&connections, address)).collect();
        check_over(&open, &[0]);
    }

    #[test]
    fn one_network_of_ipv6_is_one_peer() {
        let connections = connections(3);
        let open: Vec<_> = ["2001:db8::1", "2001:db8::ffff:1", "192.0.2.1", "2001:db8:0:1::1", "::ffff:192.0.2.1"]
            .iter()
            .map(|address| from(&connections, address))
            .collect();
        check_over(&open, &[0, 2]);
    }

    #[tokio::test]
    async fn an_authenticated_connection_waits_for_a_slot_and_is_not_closed_by_a_flood() {
        let connections = connections(1);
        let first = from(&connections, ONE);
        first.admitted().await;
        first.admitted().await;
        let waiting = from(&connections, ONE);
        assert!(waiting.admitted().now_or_never().is_none(), "there is no second place");
        drop(first.clone());
        assert!(waiting.admitted().now_or_never().is_none(), "it is still open");
        drop(first);
        waiting.admitted().await;
        let flood: Vec<_> = (0..3).map(|_| from(&connections, ONE)).collect();
        check_over(&flood, &[0, 1]);
        assert!(!is_over(&waiting));
        drop((flood, waiting));
        let register = connections.lock();
        assert_eq!((register.strangers, register.by_peer.len(), register.open.len()), (0, 0, 0));
    }

    #[test]
    fn ending_all_connections_closes_open_and_later_ones_and_wakes_their_tasks() {
        let connections = connections(2);
        let open = from(&connections, ONE);
        let (wakes, waker) = counted_waker();
        assert_eq!(open.poll_end(&Context::from_waker(&waker)), CloseTiming::Open);
        connections.end(CloseTiming::AfterResponse);
        assert_eq!((wakes.load(Ordering::Relaxed), open.signal.get()), (1, CloseTiming::AfterResponse));
        connections.end(CloseTiming::AtOnce);
        connections.end(CloseTiming::AfterResponse);
        assert_eq!(open.poll_end(&Context::from_waker(&waker)), CloseTiming::AtOnce);
        assert_eq!(from(&connections, OTHER).signal.get(), CloseTiming::AtOnce);
    }

    /// Returns a waker with the number of its wake-ups.
    fn counted_waker() -> (Arc<AtomicU8>, Waker) {
        struct Counted(Arc<AtomicU8>);
        impl Wake for Counted {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let wakes = Arc::<AtomicU8>::default();
        (wakes.clone(), Waker::from(Arc::new(Counted(wakes))))
    }
}
