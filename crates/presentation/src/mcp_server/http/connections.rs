//! The connections of clients, bounded before and after they have shown a token.
//!
//! Whoever reaches the port may open connections, and a token is known only when the head of a request is there. So
//! connections that have shown none live in a room of their own: when it is full, the oldest one of the peer that holds
//! most of them makes place for the new one. A flood thus pushes out itself, other peers and the probes of `/healthz`
//! get in, and who has shown a token is left alone.

use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The leading bits of an IPv6 address that one holder has: within them it can take any.
const PEER_BITS_V6: u32 = 64;

/// All connections.
#[derive(Debug)]
pub(super) struct Connections {
    /// For those that have shown a token.
    places: Arc<Semaphore>,
    /// How many there may be that have not.
    max_strangers: usize,
    strangers: Mutex<Strangers>,
    ending: CancellationToken,
}

/// One connection; dropping it makes room.
#[derive(Debug)]
pub(super) struct Connection {
    connections: Arc<Connections>,
    address: IpAddr,
    peer: IpAddr,
    number: u64,
    end: CancellationToken,
    /// There once it has shown a token.
    place: OnceCell<Option<OwnedSemaphorePermit>>,
}

/// The connections that have shown no token, the oldest of each peer first.
#[derive(Debug, Default)]
struct Strangers {
    by_peer: HashMap<IpAddr, BTreeMap<u64, CancellationToken>>,
    open: usize,
    accepted: u64,
}

impl Connections {
    /// Room for so many that have shown a token, and for as many that have not. All of them end with `ending`.
    pub(super) fn new(limit: usize, ending: CancellationToken) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { places, max_strangers: limit.max(1), strangers: Mutex::default(), ending })
    }

    /// Takes a new connection in. Where there is no room, another one ends.
    pub(super) fn take_in(self: &Arc<Self>, from: IpAddr) -> Arc<Connection> {
        let (peer, end) = (peer(from), self.ending.child_token());
        let mut strangers = self.lock();
        let number = strangers.add(peer, end.clone());
        while strangers.open > self.max_strangers {
            strangers.end_one();
        }
        drop(strangers);
        Arc::new(Connection {
            connections: self.clone(),
            address: from.to_canonical(),
            peer,
            number,
            end,
            place: OnceCell::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Strangers> {
        // Nothing panics while it is held.
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// The client has shown a token. Returns when there is a place; until then it is a stranger like any other.
    pub(super) async fn admitted(&self) {
        self.place
            .get_or_init(|| async {
                // Never closed, so there is always one in the end.
                let place = self.connections.places.clone().acquire_owned().await.ok();
                self.connections.lock().remove(self.peer, self.number);
                place
            })
            .await;
    }

    /// Returns the address of the peer.
    pub(super) fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns when the connection is to end.
    pub(super) async fn ended(&self) {
        self.end.cancelled().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.lock().remove(self.peer, self.number);
    }
}

impl Strangers {
    fn add(&mut self, peer: IpAddr, end: CancellationToken) -> u64 {
        self.accepted += 1;
        self.by_peer.entry(peer).or_default().insert(self.accepted, end);
        self.open += 1;
        self.accepted
    }

    fn remove(&mut self, peer: IpAddr, number: u64) -> Option<CancellationToken> {
        let of_peer = self.by_peer.get_mut(&peer)?;
        let removed = of_peer.remove(&number)?;
        if of_peer.is_empty() {
            self.by_peer.remove(&peer);
        }
        self.open -= 1;
        Some(removed)
    }

    /// Ends the oldest one of the peer that holds most; among equals, of the one that has been here longest.
    fn end_one(&mut self) {
        let oldest = |of_peer: &BTreeMap<u64, _>| of_peer.keys().next().copied().unwrap_or(u64::MAX);
        let most = self.by_peer.iter().map(|(peer, held)| (held.len(), std::cmp::Reverse(oldest(held)), *peer)).max();
        let Some((held, std::cmp::Reverse(number), peer)) = most else { return };
        if let Some(end) = self.remove(peer, number) {
            tracing::debug!(%peer, held, "closed a connection that has shown no token: there are too many");
            end.cancel();
        }
    }
}

/// Where a connection comes from, as far as one holder can choose it.
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

    const ONE: &str = "192.0.2.1";
    const OTHER: &str = "192.0.2.2";

    fn connections(limit: usize) -> Arc<Connections> {
        Connections::new(limit, CancellationToken::new())
    }

    fn from(connections: &Arc<Connections>, address: &str) -> Arc<Connection> {
        connections.take_in(address.parse().unwrap())
    }

    fn is_over(connection: &Connection) -> bool {
        connection.ended().now_or_never().is_some()
    }

    #[track_caller]
    fn check_over(connections: &[Arc<Connection>], expected: &[usize]) {
        let over: Vec<usize> = (0..connections.len()).filter(|at| is_over(&connections[*at])).collect();
        assert_eq!(over, expected);
    }

    #[test]
    fn a_flood_pushes_out_itself_and_nobody_else() {
        let connections = connections(4);
        let mut open = vec![from(&connections, OTHER)];
        open.extend((0..5).map(|_| from(&connections, ONE)));
        check_over(&open, &[1, 2]);
        // The newcomer is a peer of few, so the flood makes room for it, too.
        open.push(from(&connections, OTHER));
        check_over(&open, &[1, 2, 3]);
        assert_eq!(connections.lock().open, 4);
    }

    #[test]
    fn among_peers_that_hold_the_same_the_oldest_connection_ends() {
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
    async fn who_has_shown_a_token_is_left_alone_and_waits_for_a_place() {
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
        let strangers = connections.lock();
        assert_eq!((strangers.open, strangers.by_peer.len()), (0, 0));
    }
}
