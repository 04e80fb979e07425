//! The only connection of a sandboxed command to the outside: an HTTP and SOCKS5 proxy on a listener that the sandbox
//! created in the command's network.
//!
//! Only the proxy resolves names. Each connection is checked separately. This includes redirects, because the client
//! follows them with a new request.

mod client_stream;
mod http;
mod page_request_hosts;
mod refusal;
mod socks;

use crate::egress::{
    connector::Connector,
    host::{Host, HostMatchResult, HostPatterns},
    proxy::client_stream::TrafficMeterStream,
};
pub use page_request_hosts::PageRequestHosts;
use refusal::Refusal;
use std::{
    fmt, io,
    net::{SocketAddr, TcpListener as StdListener},
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use toolstead_domain::{Suggestion, Verdict};

/// Maximum number of refused hosts that are stored for the report.
const MAX_REFUSED: usize = 32;
/// Pause after an error of accept(2), for example if no descriptor is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Verdict of the permission rules about a host.
pub type HostVerdictFn = dyn Fn(&Host) -> Verdict + Send + Sync;

/// Permissions of the client of a proxy.
#[derive(Clone)]
pub struct ProxyPolicy {
    /// Id of the call, for the log.
    pub call: Arc<str>,
    /// Hosts and ports that may be reached: `sandbox.network`.
    pub hosts: HostPatterns,
    /// Permission rules. A host must be on the list, and the rules must allow it.
    pub rules: Arc<HostVerdictFn>,
    /// Hosts that pages requested, if the client is a browser: all other hosts are refused. `None` for any other
    /// client.
    pub announced: Option<Arc<PageRequestHosts>>,
    /// Limits of the proxy.
    pub limits: ProxyLimits,
}

/// Limits of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Maximum number of concurrent connections. Further ones wait.
    pub connections: usize,
    /// Maximum size of the head of a request, in bytes.
    pub head_bytes: usize,
    /// Timeout for the client to name its target.
    pub head_time: Duration,
    /// Time after which a connection without traffic is closed.
    pub idle_time: Duration,
    /// Maximum number of bytes that are forwarded, on all connections and in both directions. All connections are
    /// closed beyond it.
    pub bytes: Option<u64>,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connections: 128,
            head_bytes: 64 << 10,
            head_time: Duration::from_secs(15),
            idle_time: Duration::from_secs(300),
            bytes: None,
        }
    }
}

impl fmt::Debug for ProxyPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, hosts, limits, rules: _, announced: _ } = self;
        f.debug_struct("ProxyPolicy")
            .field("call", call)
            .field("hosts", hosts)
            .field("limits", limits)
            .finish_non_exhaustive()
    }
}

/// A running proxy. Dropping it closes all of its connections.
#[derive(Debug)]
pub struct EgressProxy {
    gate: Arc<TargetConnector>,
    address: SocketAddr,
    _serving: AbortOnDropHandle<()>,
}

impl EgressProxy {
    /// Serves on a listening TCP socket, in any network namespace. Requires a tokio runtime.
    ///
    /// # Errors
    /// If the descriptor is not a listening socket.
    pub fn start(listener: OwnedFd, connector: Connector, policy: ProxyPolicy) -> io::Result<Self> {
        let listener = StdListener::from(listener);
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let gate = Arc::new(TargetConnector { connector, policy, report: Mutex::default(), bytes: AtomicU64::new(0) });
        let serving = tokio::spawn(serve(listener, gate.clone()));
        Ok(Self { gate, address, _serving: AbortOnDropHandle::new(serving) })
    }

    /// Returns the environment variables that make programs use the proxy.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let proxy = format!("http://{}", self.address);
        let this_machine = "localhost,127.0.0.1,::1";
        let mut variables: Vec<_> =
            ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
                .map(|name| (name, proxy.clone()))
                .into();
        variables.extend(["no_proxy", "NO_PROXY"].map(|name| (name, this_machine.to_owned())));
        variables.push(("NODE_USE_ENV_PROXY", "1".into()));
        variables
    }

    /// Returns the report since the last call of this function. Only its `bytes` count from the start of the proxy.
    pub fn take_report(&self) -> ProxyReport {
        let bytes = self.gate.bytes.load(Ordering::Relaxed);
        ProxyReport { bytes, ..std::mem::take(&mut *self.gate.report()) }
    }

    /// Returns the report since the last call of [`take_report`](Self::take_report), and does not reset it. Only its
    /// `bytes` count from the start of the proxy.
    pub fn report(&self) -> ProxyReport {
        ProxyReport { bytes: self.gate.bytes.load(Ordering::Relaxed), ..self.gate.report().clone() }
    }
}

/// Report of the traffic and the refusals of a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyReport {
    /// Number of connections that were established to hosts.
    pub connections: u64,
    /// Number of bytes forwarded between client and proxy, in both directions, since the proxy started.
    pub bytes: u64,
    /// Refused hosts, one entry per host and reason, in the order of the first refusal, at most 32.
    pub refused: Vec<RefusedHost>,
    /// Number of all refusals, including those of hosts beyond the maximum number of entries.
    pub refusals: u64,
}

/// A host that was refused for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedHost {
    /// Host and port. For an invalid host, the text of the client, escaped and truncated.
    pub host: String,
    /// Reason, for the caller of the command.
    pub reason: String,
    /// Suggested change that would allow the host, for users.
    pub suggestion: Option<Suggestion>,
    /// Number of refusals for this reason.
    pub times: u64,
    /// `true` if the browser itself requested the host, and no page.
    pub is_unannounced: bool,
}

impl ProxyReport {
    /// Returns the number of refusals of a host with its port (an IPv6 address without brackets) for any reason, and
    /// the entry of the newest reason.
    pub fn refusals_of(&self, host: &str) -> Option<(u64, &RefusedHost)> {
        let of_host = || self.refused.iter().filter(move |refused| refused.host.replace(['[', ']'], "") == host);
        let newest = of_host().next_back()?;
        Some((of_host().map(|refused| refused.times).sum(), newest))
    }

    /// Returns the suggested changes that would allow the refused hosts, for users.
    pub fn suggestions(&self) -> impl Iterator<Item = &Suggestion> {
        self.refused.iter().filter_map(|refused| refused.suggestion.as_ref())
    }

    /// Returns a text with the refused hosts and reasons, for the caller of the command. Returns `None` if there are
    /// none.
    pub fn refusals_text(&self) -> Option<String> {
        let lines = self.refused.iter().map(|refused| {
            let times = if refused.times > 1 { format!(" ({} times)", refused.times) } else { String::new() };
            format!("The command was refused the host {}{times}: {}.", refused.host, refused.reason)
        });
        let mut lines: Vec<String> = lines.collect();
        let others = self.refusals - self.refused.iter().map(|refused| refused.times).sum::<u64>();
        if others > 0 {
            lines.push(format!("{others} more refusals are not listed."));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// Checks and connects the targets of all connections of one proxy.
struct TargetConnector {
    connector: Connector,
    policy: ProxyPolicy,
    report: Mutex<ProxyReport>,
    bytes: AtomicU64,
}

impl TargetConnector {
    /// Checks a target by the list, the rules and the announced hosts, and connects to it. Counts and logs the
    /// connection.
    async fn open(&self, host: &Host, port: u16) -> Result<TcpStream, Refusal> {
        let policy = &self.policy;
        let target = || (host.clone(), port);
        match policy.hosts.match_host(host, port) {
            HostMatchResult::Yes => {}
            HostMatchResult::OtherPort => return Err(Refusal::Port(target())),
            HostMatchResult::No => return Err(Refusal::NotListed(target())),
        }
        match (policy.rules)(host) {
            Verdict::Allow => {}
            verdict @ (Verdict::Ask | Verdict::Deny) => return Err(Refusal::Rule(target(), verdict)),
        }
        if let Some(announced) = &policy.announced
            && !announced.includes(host, port).await
        {
            return Err(Refusal::Unannounced(target()));
        }
        let stream = self.connector.connect(host, port).await.map_err(|error| Refusal::Connect(target(), error))?;
        self.report().connections += 1;
        tracing::info!(call = %policy.call, %host, port, "connected a sandboxed command");
        Ok(stream)
    }

    /// Logs a refusal, and adds it to the report if the proxy itself refused the host.
    fn refused(&self, refusal: &Refusal) {
        tracing::info!(call = %self.policy.call, %refusal, "refused to connect a sandboxed command");
        let Some((host, reason)) = refusal.report_entry() else { return };
        let mut report = self.report();
        report.refusals += 1;
        if let Some(known) = report.refused.iter_mut().find(|known| known.host == host && known.reason == reason) {
            known.times += 1;
        } else if report.refused.len() < MAX_REFUSED {
            let is_unannounced = matches!(refusal, Refusal::Unannounced(_));
            report.refused.push(RefusedHost {
                host,
                reason,
                suggestion: refusal.suggestion(),
                times: 1,
                is_unannounced,
            });
        }
    }

    /// Counts forwarded bytes. Returns `false` if the limit was already reached before them.
    fn passes(&self, bytes: usize) -> bool {
        let before = self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.policy.limits.bytes.is_none_or(|limit| before < limit)
    }

    fn report(&self) -> MutexGuard<'_, ProxyReport> {
        // No code panics while it holds the lock.
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TargetConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TargetConnector").field("policy", &self.policy).finish_non_exhaustive()
    }
}

async fn serve(listener: TcpListener, gate: Arc<TargetConnector>) {
    // Dropping this set ends the connections with this task.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= gate.policy.limits.connections {
            connections.join_next().await;
            continue;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(attend(stream, gate.clone()));
            }
            Err(error) => {
                tracing::warn!(call = %gate.policy.call, %error, "the proxy of a command cannot accept connections");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection until it ends or is idle for too long.
async fn attend(stream: TcpStream, gate: Arc<TargetConnector>) {
    let (client, traffic) = TrafficMeterStream::new(stream, gate.clone());
    tokio::select! {
        () = converse(client, &gate) => {}
        () = traffic.idle(gate.policy.limits.idle_time) => {
            tracing::debug!(call = %gate.policy.call, "closed an idle connection of a sandboxed command");
        }
    }
}

/// Selects SOCKS5 or HTTP by the first byte that the client sends, and serves the connection. Ends it if no byte
/// arrives within the timeout.
async fn converse(client: TrafficMeterStream, gate: &TargetConnector) {
    let mut first = [0];
    match timeout(gate.policy.limits.head_time, client.peek(&mut first)).await {
        Ok(Ok(1)) if first[0] == socks::VERSION => socks::serve(client, gate).await,
        Ok(Ok(1)) => http::serve(client, gate).await,
        Ok(Ok(_) | Err(_)) | Err(_) => {}
    }
}

#[cfg(test)]
mod tests;
