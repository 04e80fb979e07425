//! A network for tests (feature `testing`): names and servers that a test defines, and a record of the requests.

use crate::egress::connector::Network;
use async_trait::async_trait;
use std::{
    collections::{HashMap, VecDeque},
    io,
    net::{IpAddr, SocketAddr},
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::net::TcpStream;

/// Names and servers of a test. Each server listens on this machine and is reached only at the address that the test
/// assigned. No other address is connected, so no test leaves the machine.
///
/// ```
/// # use toolstead_infrastructure::egress::testing::FakeNetwork;
/// let network = FakeNetwork::default();
/// network.name("docs.example", &[&["93.184.216.34"]]);
/// network.server("93.184.216.34:443", "127.0.0.1:8443".parse().unwrap());
/// ```
#[derive(Debug, Default)]
pub struct FakeNetwork {
    names: Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>,
    servers: Mutex<HashMap<SocketAddr, SocketAddr>>,
    resolved: Mutex<Vec<String>>,
    connected: Mutex<Vec<SocketAddr>>,
}

impl FakeNetwork {
    /// Defines the successive answers for a name. The last one is repeated.
    ///
    /// # Panics
    /// If an answer contains an invalid address.
    pub fn name(&self, name: &str, answers: &[&[&str]]) {
        let answer = |addresses: &&[&str]| addresses.iter().map(|text| text.parse().expect("an address")).collect();
        lock(&self.names).insert(name.into(), answers.iter().map(answer).collect());
    }

    /// Redirects connections to `address` to `server`.
    ///
    /// # Panics
    /// If `address` is not a valid address with a port.
    pub fn server(&self, address: &str, server: SocketAddr) {
        lock(&self.servers).insert(address.parse().expect("an address with a port"), server);
    }

    /// Returns the names whose resolution was requested, in order, including unknown ones.
    pub fn resolved(&self) -> Vec<String> {
        lock(&self.resolved).clone()
    }

    /// Returns the addresses to which a connection was requested, in order, including refused ones.
    pub fn connected(&self) -> Vec<SocketAddr> {
        lock(&self.connected).clone()
    }

    /// Clears the record of resolved names and connections.
    pub fn forget(&self) {
        lock(&self.resolved).clear();
        lock(&self.connected).clear();
    }
}

#[async_trait]
impl Network for FakeNetwork {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        lock(&self.resolved).push(name.into());
        let mut names = lock(&self.names);
        let answers = names.get_mut(name).ok_or_else(|| io::Error::other("no such name"))?;
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Ok(answer.unwrap_or_default())
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        lock(&self.connected).push(address);
        let server = lock(&self.servers).get(&address).copied();
        match server {
            Some(server) => TcpStream::connect(server).await,
            None => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}

/// Locks a mutex. Ignores poisoning, because the test that panicked reports it.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
