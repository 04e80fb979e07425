//! Resolves a host once, checks every address in the answer, and connects only to checked addresses. A second answer,
//! which might differ, is never requested.

use crate::egress::{
    address::{self, NonPublicRange, NotGlobal},
    host::{Host, HostMatchResult, HostPatterns},
};
use async_trait::async_trait;
use futures::{StreamExt, stream::FuturesUnordered};
use std::{
    fmt, io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::TcpStream,
    sync::Semaphore,
    task::spawn_blocking,
    time::{sleep, timeout},
};

/// Timeout of resolving a name.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of connecting to any of the addresses.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Delay before the next address is tried in parallel (RFC 8305, section 5).
const HEAD_START: Duration = Duration::from_millis(250);
/// Maximum number of addresses of a name, because all of them are checked. A name with more is rejected.
const MAX_ADDRESSES: usize = 256;
/// Maximum number of addresses that are tried.
const MAX_TRIES: usize = 8;
/// Maximum number of names that are resolved at a time. Each takes a thread, even after its timeout.
const MAX_LOOKUPS: usize = 16;

/// Resolver and network of the machine.
#[async_trait]
pub trait Network: Send + Sync + fmt::Debug {
    /// Returns all addresses of a name.
    ///
    /// # Errors
    /// The error of the system.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;

    /// Connects to an address.
    ///
    /// # Errors
    /// The error of the system.
    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream>;
}

/// The machine's own network and resolver.
#[derive(Debug)]
pub struct SystemNetwork {
    lookups: Arc<Semaphore>,
}

impl Default for SystemNetwork {
    fn default() -> Self {
        Self { lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }
}

#[async_trait]
impl Network for SystemNetwork {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let permit = self.lookups.clone().acquire_owned().await.map_err(io::Error::other)?;
        let name = name.to_owned();
        let resolving = spawn_blocking(move || {
            let addresses = (name.as_str(), 0).to_socket_addrs()?;
            // Held until the thread is free, not only until the caller stops waiting.
            drop(permit);
            Ok(addresses.map(|address| address.ip()).collect())
        });
        resolving.await.map_err(io::Error::other)?
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }
}

/// Connects to hosts at public addresses, and at other addresses for hosts that the configuration names. Cloning is
/// cheap.
///
/// The caller must check beforehand that the host may be reached at all. No connector reaches link-local addresses,
/// where cloud machines find their metadata and credentials, or reserved addresses.
#[derive(Debug, Clone)]
pub struct Connector {
    network: Arc<dyn Network>,
    private: AllowedPrivateHosts,
}

/// Hosts that may have addresses that are not public.
#[derive(Debug, Clone)]
enum AllowedPrivateHosts {
    These(Arc<HostPatterns>),
    All,
}

impl AllowedPrivateHosts {
    /// Returns `true` if addresses of this range are permitted for the host.
    fn opens(&self, range: NonPublicRange, host: &Host, port: u16) -> bool {
        match self {
            Self::These(hosts) => match range {
                NonPublicRange::Private => hosts.match_host(host, port) == HostMatchResult::Yes,
                // The owner of any other name could otherwise redirect to services that listen only on this machine.
                NonPublicRange::Loopback => {
                    names_this_machine(host) && hosts.match_host(host, port) == HostMatchResult::Yes
                }
                NonPublicRange::LinkLocal | NonPublicRange::Metadata | NonPublicRange::Special => false,
            },
            Self::All => range.can_be_opened(),
        }
    }
}

/// Returns `true` if the host is a literal address or `localhost`.
fn names_this_machine(host: &Host) -> bool {
    match host {
        Host::Name(name) => &**name == "localhost",
        Host::Address(_) => true,
    }
}

impl Connector {
    /// Creates a connector for which the hosts of `private` may have private addresses, and loopback addresses if they
    /// are literal addresses or `localhost`.
    pub fn new(network: Arc<dyn Network>, private: HostPatterns) -> Self {
        Self { network, private: AllowedPrivateHosts::These(Arc::new(private)) }
    }

    /// Creates a connector for hosts from the user's own configuration. All of them may have loopback and private
    /// addresses.
    pub fn to_configured_hosts(network: Arc<dyn Network>) -> Self {
        Self { network, private: AllowedPrivateHosts::All }
    }

    /// Returns the addresses of a host, all of which may be connected to. There is at least one.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn addresses(&self, host: &Host, port: u16) -> Result<Vec<IpAddr>, ConnectError> {
        let addresses = match host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                let failed = |source| ConnectError::Resolve { host: host.clone(), source };
                let answer = timeout(RESOLVE_TIMEOUT, self.network.resolve(name)).await;
                let addresses = answer.map_err(|late| failed(late.into()))?.map_err(failed)?;
                match addresses.len() {
                    0 => return Err(failed(io::Error::other("the name has no address"))),
                    1..=MAX_ADDRESSES => addresses,
                    count => return Err(failed(io::Error::other(format!("the name has {count} addresses")))),
                }
            }
        };
        for address in &addresses {
            match address::check_public(*address) {
                Err(reason) if !self.private.opens(reason.range, host, port) => {
                    return Err(ConnectError::NotGlobal { host: host.clone(), reason });
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(addresses)
    }

    /// Connects to a host. Resolves it once and tries its addresses in order, the next one as soon as one fails or is
    /// slow. The first connection is used.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(&self, host: &Host, port: u16) -> Result<TcpStream, ConnectError> {
        let addresses = self.addresses(host, port).await?;
        let connecting = timeout(CONNECT_TIMEOUT, self.first_of(addresses, port)).await;
        match connecting.unwrap_or_else(|late| Err(late.into())) {
            Ok(stream) => {
                // Small writes should not be delayed. The connection works without this option as well.
                let _ = stream.set_nodelay(true);
                Ok(stream)
            }
            Err(source) => Err(ConnectError::Connect { host: host.clone(), port, source }),
        }
    }

    /// Returns the first established connection, or the error of the last attempt.
    async fn first_of(&self, addresses: Vec<IpAddr>, port: u16) -> io::Result<TcpStream> {
        let mut waiting = addresses.into_iter().take(MAX_TRIES);
        let mut tried = FuturesUnordered::new();
        let mut failure = io::ErrorKind::TimedOut.into();
        loop {
            match waiting.next() {
                Some(address) => tried.push(self.network.connect((address, port).into())),
                None if tried.is_empty() => return Err(failure),
                None => {}
            }
            let is_last = waiting.len() == 0;
            tokio::select! {
                biased;
                Some(connected) = tried.next() => match connected {
                    Ok(stream) => return Ok(stream),
                    Err(error) => failure = error,
                },
                () = sleep(HEAD_START), if !is_last => {}
            }
        }
    }
}

/// Reason why a host was not connected to.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The host has an address that is not public.
    #[error("{}: {reason}", named(.host))]
    NotGlobal {
        /// Host as requested.
        host: Host,
        /// Address with its range.
        reason: NotGlobal,
    },
    /// The name could not be resolved within the timeout, or it has no address or too many.
    #[error("the name {host} cannot be resolved: {source}")]
    Resolve {
        /// Host as requested.
        host: Host,
        /// Error of the resolver.
        source: io::Error,
    },
    /// No address accepted the connection within the timeout.
    #[error("{host}:{port} cannot be reached: {source}")]
    Connect {
        /// Host as requested.
        host: Host,
        /// Port as requested.
        port: u16,
        /// Error of the last address that was tried.
        source: io::Error,
    },
}

fn named(host: &Host) -> String {
    match host {
        Host::Name(name) => format!("{name} resolves to an address that is not public"),
        Host::Address(_) => "the address is closed".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::testing::FakeNetwork;
    use tokio::time::Instant;

    fn connector(network: &Arc<FakeNetwork>, private: &[&str]) -> Connector {
        Connector::new(network.clone(), HostPatterns::parse(private).unwrap())
    }

    #[tokio::test]
    async fn every_resolved_address_of_a_host_must_be_public() {
        let network = Arc::new(FakeNetwork::default());
        for (addresses, refused) in [
            (&["93.184.216.34"][..], None),
            (&["93.184.216.34", "2606:4700::1111"], None),
            (&["93.184.216.34", "10.0.0.1"], Some(NonPublicRange::Private)),
            (&["2606:4700::1111", "::1"], Some(NonPublicRange::Loopback)),
            (&["::ffff:169.254.169.254"], Some(NonPublicRange::LinkLocal)),
            (&["64:ff9b::7f00:1"], Some(NonPublicRange::Loopback)),
            (&["0.0.0.0"], Some(NonPublicRange::Special)),
        ] {
            network.name("example.com", &[addresses]);
            let answer = connector(&network, &[]).addresses(&Host::parse("example.com").unwrap(), 443).await;
            match (answer, refused) {
                (Ok(answer), None) => assert_eq!(answer.len(), addresses.len()),
                (Err(ConnectError::NotGlobal { reason, .. }), Some(range)) => assert_eq!(reason.range, range),
                (answer, _) => panic!("{addresses:?}: {answer:?}"),
            }
        }
    }

    #[tokio::test]
    async fn literal_addresses_are_checked_for_public_range_without_resolution() {
        let network = Arc::new(FakeNetwork::default());
        for (text, refused) in [("93.184.216.34", false), ("127.0.0.1", true), ("[::ffff:10.0.0.1]", true)] {
            let host = Host::parse(text).unwrap();
            let answer = connector(&network, &[]).connect(&host, 443).await.unwrap_err();
            assert_eq!(matches!(answer, ConnectError::NotGlobal { .. }), refused, "{answer}");
        }
        assert_eq!(network.connected(), ["93.184.216.34:443".parse().unwrap()]);
        assert!(network.resolved().is_empty());
    }

    #[tokio::test]
    async fn private_addresses_are_reachable_only_for_configured_hosts_and_ports() {
        let network = Arc::new(FakeNetwork::default());
        network.name("db.corp.example", &[&["10.1.2.3", "fd00::1"]]);
        network.name("here.corp.example", &[&["10.1.2.3", "127.0.0.1"]]);
        network.name("link.corp.example", &[&["10.1.2.3", "169.254.169.254"]]);
        network.name("cloud.corp.example", &[&["100.100.100.200"]]);
        network.name("localhost", &[&["::1", "127.0.0.1"]]);
        network.name("app.localhost", &[&["127.0.0.1"]]);
        let listed = [
            "db.corp.example:5432",
            "192.168.0.7",
            "here.corp.example",
            "link.corp.example",
            "cloud.corp.example",
            "localhost:3000",
            "127.0.0.2",
            "[::1]:3000",
            "app.localhost",
            "169.254.169.254",
            "100.100.100.200",
            "0.0.0.0",
        ];
        for (host, port, is_open) in [
            ("db.corp.example", 5432, true),
            ("db.corp.example", 443, false),
            ("10.1.2.3", 5432, false),
            ("192.168.0.7", 443, true),
            ("192.168.0.8", 443, false),
            // For this machine, the list must have its address or `localhost`, with the port.
            ("here.corp.example", 443, false),
            ("app.localhost", 443, false),
            ("localhost", 3000, true),
            ("localhost", 3001, false),
            ("localhost", 80, false),
            ("127.0.0.2", 80, true),
            ("127.0.0.1", 80, false),
            ("[::1]", 3000, true),
            ("[::ffff:127.0.0.2]", 80, false),
            // The configuration cannot permit these.
            ("link.corp.example", 443, false),
            ("cloud.corp.example", 443, false),
            ("169.254.169.254", 80, false),
            ("100.100.100.200", 80, false),
            ("0.0.0.0", 80, false),
        ] {
            let connector = connector(&network, &listed);
            let answer = connector.addresses(&Host::parse(host).unwrap(), port).await;
            assert_eq!(answer.is_ok(), is_open, "{host}:{port} {answer:?}");
        }
    }

    #[tokio::test]
    async fn a_configured_host_may_have_a_private_but_not_a_link_local_address() {
        let network = Arc::new(FakeNetwork::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        for (host, addresses, refused) in [
            ("mcp.example", &["93.184.216.34"][..], None),
            ("mcp.corp", &["10.1.2.3", "fd00::1"], None),
            ("localhost", &["127.0.0.1", "::1"], None),
            ("192.168.0.7", &[], None),
            ("[::1]", &[], None),
            // The owner of the name would otherwise receive the response of the metadata service.
            ("mcp.example", &["169.254.169.254"], Some(NonPublicRange::LinkLocal)),
            ("mcp.corp", &["10.1.2.3", "fe80::1"], Some(NonPublicRange::LinkLocal)),
            ("mcp.corp", &["::ffff:169.254.169.254"], Some(NonPublicRange::LinkLocal)),
            ("169.254.169.254", &[], Some(NonPublicRange::LinkLocal)),
            ("mcp.example", &["0.0.0.0"], Some(NonPublicRange::Special)),
        ] {
            network.name(host, &[addresses]);
            network.forget();
            for address in ["93.184.216.34:80", "10.1.2.3:80", "127.0.0.1:80", "192.168.0.7:80", "[::1]:80"] {
                network.server(address, listener.local_addr().unwrap());
            }
            let connector = Connector::to_configured_hosts(network.clone());
            match (connector.connect(&Host::parse(host).unwrap(), 80).await, refused) {
                (Ok(_), None) => {}
                (Err(ConnectError::NotGlobal { reason, .. }), Some(range)) => {
                    assert_eq!(reason.range, range);
                    assert!(network.connected().is_empty(), "{host}: nothing is dialled");
                }
                (answer, _) => panic!("{host} {addresses:?}: {answer:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_name_is_resolved_once_per_connection_and_its_addresses_are_tried_in_order() {
        let network = Arc::new(FakeNetwork::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        network.name("example.com", &[&["93.184.216.34", "93.184.216.35"], &["127.0.0.1"]]);
        network.server("93.184.216.35:443", listener.local_addr().unwrap());
        let host = Host::parse("example.com").unwrap();
        connector(&network, &[]).connect(&host, 443).await.unwrap();
        assert_eq!(network.resolved(), ["example.com"]);
        let tried = ["93.184.216.34:443", "93.184.216.35:443"].map(|address| address.parse().unwrap());
        assert_eq!(network.connected(), tried);
        // The name has another address now, which is checked as well.
        let again = connector(&network, &[]).connect(&host, 443).await.unwrap_err().to_string();
        assert_eq!(
            again,
            "example.com resolves to an address that is not public: 127.0.0.1 is not a public address but this \
             machine itself"
        );
    }

    #[tokio::test]
    async fn rejects_names_that_resolve_to_no_address_or_too_many() {
        let network = Arc::new(FakeNetwork::default());
        let many = vec!["93.184.216.34"; MAX_ADDRESSES + 1];
        network.name("none.example", &[&[]]);
        network.name("many.example", &[&many]);
        for (name, reason) in
            [("none.example", "no address"), ("many.example", "257 addresses"), ("unknown.example", "no such name")]
        {
            let error = connector(&network, &[]).connect(&Host::parse(name).unwrap(), 443).await.unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    /// A network whose server only answers at IPv4 addresses.
    #[derive(Debug)]
    struct Lame(SocketAddr);

    #[async_trait]
    impl Network for Lame {
        async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            Ok(["2606:4700::1111", "2606:4700::1112", "1.1.1.1"].map(|text| text.parse().unwrap()).to_vec())
        }

        async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
            if address.is_ipv6() { std::future::pending().await } else { TcpStream::connect(self.0).await }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_is_slow_does_not_hold_up_the_next() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let network = Arc::new(Lame(listener.local_addr().unwrap()));
        let start = Instant::now();
        Connector::new(network, HostPatterns::default())
            .connect(&Host::parse("a.example").unwrap(), 443)
            .await
            .unwrap();
        assert!(start.elapsed() < 3 * HEAD_START, "{:?}", start.elapsed());
    }

    /// A network that never answers.
    #[derive(Debug)]
    struct Silence;

    #[async_trait]
    impl Network for Silence {
        async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
            if name.starts_with("slow") { std::future::pending().await } else { Ok(vec![[1, 1, 1, 1].into(); 9]) }
        }

        async fn connect(&self, _: SocketAddr) -> io::Result<TcpStream> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn resolution_and_connection_attempts_time_out_without_a_response() {
        let connector = Connector::new(Arc::new(Silence), HostPatterns::default());
        for (name, seconds) in [("slow.example", RESOLVE_TIMEOUT), ("example.com", CONNECT_TIMEOUT)] {
            let start = Instant::now();
            let error = connector.connect(&Host::parse(name).unwrap(), 443).await.unwrap_err();
            assert!(!matches!(error, ConnectError::NotGlobal { .. }), "{error}");
            assert!(start.elapsed() < seconds + Duration::from_secs(1), "{:?}", start.elapsed());
        }
    }

    #[tokio::test]
    async fn the_system_resolver_resolves_localhost_and_the_loopback_address_is_rejected() {
        let connector = Connector::new(Arc::new(SystemNetwork::default()), HostPatterns::default());
        let error = connector.connect(&Host::parse("localhost").unwrap(), 443).await.unwrap_err();
        assert!(
            matches!(error, ConnectError::NotGlobal { reason, .. } if reason.range == NonPublicRange::Loopback),
            "{error}"
        );
    }
}
