//! Supervisor of one server's catalogue connection: connects, lists the tools, and reconnects after a loss.

use crate::mcp::client::{
    catalogue::{ToolCatalogue, pooled_tools::PooledTools},
    config::{Backoff, UpstreamConfig},
    connection::{
        Connection, HandshakeMethod, UpstreamDeps, foreign_text::shown, loss_of, peer::ConnectionLoss, relay::or_never,
        with_last_words,
    },
    context::{
        background_work::{PooledWorkDeps, run_catalogue_work},
        state::ContextState,
    },
    routing::{circuit::Circuit, pause::pause_after, pool::ConnectionPool, usage::ServerUsageCounter},
};
use arc_swap::ArcSwap;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use toolstead_domain::{Principal, ProtocolGeneration, ProtocolVersion, ProviderState};

/// Minimum time between two listings that the server's notifications cause.
const LISTING_INTERVAL: Duration = Duration::from_millis(200);

/// Target of log lines about the state of servers.
const UPSTREAM: &str = "toolstead::upstream";

/// Maximum length of the reason why a server is down, in its state and in the log, in characters.
const REASON_CHARACTERS: usize = 2000;

/// State shared by the supervisor and the callers of the server.
#[derive(Debug)]
pub(in crate::mcp::client) struct SharedUpstreamState {
    pub(in crate::mcp::client) config: UpstreamConfig,
    pub(in crate::mcp::client) deps: UpstreamDeps,
    /// Number and time of uses of the server.
    pub(in crate::mcp::client) usage: Arc<ServerUsageCounter>,
    /// Connections in addition to the catalogue connection.
    pub(in crate::mcp::client) pool: Arc<ConnectionPool>,
    pub(in crate::mcp::client) circuit: Circuit,
    current: ArcSwap<UpstreamSnapshot>,
    /// Incremented with every change of `current`, of the circuit and of the tools of pooled connections.
    version: watch::Sender<u64>,
    /// Notified when a caller needs the server while it is down.
    wanted: Notify,
    /// Notified when a caller requests a new list of tools.
    refresh: Notify,
    /// Incremented after every listing and every attempt to connect, successful or not.
    listed: watch::Sender<u64>,
    /// State of everything that the server offers apart from tools.
    pub(in crate::mcp::client) context_state: Arc<ContextState>,
    /// Tools and list changes of pooled connections.
    pub(in crate::mcp::client) pooled_tools: Arc<PooledTools>,
    closing: Notify,
    /// `true` once the supervisor has ended.
    ended: watch::Sender<bool>,
}

/// Current state of the server.
#[derive(Debug, Clone)]
pub(in crate::mcp::client) struct UpstreamSnapshot {
    pub(in crate::mcp::client) state: ProviderState,
    /// Catalogue connection while the server is ready.
    pub(in crate::mcp::client) connection: Option<Arc<Connection>>,
    /// Last known catalogue, also while the server is down.
    pub(in crate::mcp::client) catalogue: Option<Arc<ToolCatalogue>>,
    /// Further notes for the operator.
    pub(in crate::mcp::client) notes: Vec<String>,
    /// Last lines on standard error of an ended connection.
    pub(in crate::mcp::client) stderr: Vec<String>,
    /// Time from which a caller's need for the server triggers a new attempt.
    pub(in crate::mcp::client) retry_from: Option<Instant>,
}

impl SharedUpstreamState {
    pub(in crate::mcp::client) fn new(config: UpstreamConfig, deps: UpstreamDeps, state: ProviderState) -> Self {
        let current = UpstreamSnapshot {
            state,
            connection: None,
            catalogue: None,
            notes: Vec::new(),
            stderr: Vec::new(),
            retry_from: None,
        };
        let (beside, elsewhere) = (Arc::new(ContextState::new()), Arc::<PooledTools>::default());
        let company =
            PooledWorkDeps { config: config.clone(), context_state: beside.clone(), pooled_tools: elsewhere.clone() };
        Self {
            usage: ServerUsageCounter::new(),
            pool: ConnectionPool::new(company),
            circuit: Circuit::new(config.retry),
            config,
            deps,
            current: ArcSwap::from_pointee(current),
            version: watch::Sender::new(1),
            wanted: Notify::new(),
            refresh: Notify::new(),
            listed: watch::Sender::new(0),
            context_state: beside,
            pooled_tools: elsewhere,
            closing: Notify::new(),
            ended: watch::Sender::new(false),
        }
    }

    /// Returns the current state of the server.
    pub(in crate::mcp::client) fn current(&self) -> Arc<UpstreamSnapshot> {
        self.current.load_full()
    }

    /// Returns a receiver that is notified of every change of [`current`](Self::current), of the circuit and of the
    /// tools of pooled connections.
    pub(in crate::mcp::client) fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Returns a receiver that is notified after every listing and every attempt to connect, successful or not.
    pub(in crate::mcp::client) fn lists(&self) -> watch::Receiver<u64> {
        self.listed.subscribe()
    }

    /// Requests a new attempt to connect if the pause after the last failure is over. Returns `true` if it requested
    /// one; `false` during the pause, and if there was no failure.
    pub(in crate::mcp::client) fn request_connection(&self, current: &UpstreamSnapshot) -> bool {
        let due = current.retry_from.is_some_and(|from| from <= Instant::now());
        if due {
            self.wanted.notify_one();
        }
        due
    }

    /// Requests a new list of tools.
    pub(in crate::mcp::client) fn request_list(&self) {
        self.refresh.notify_one();
    }

    /// Ends the supervisor, which closes all connections to the server, and waits until it has ended.
    pub(in crate::mcp::client) async fn close(&self) {
        let mut ended = self.ended.subscribe();
        self.closing.notify_one();
        // The sender is a field of `self`, so waiting cannot fail.
        let _ = ended.wait_for(|ended| *ended).await;
    }

    /// Notifies the receivers of [`changes`](Self::changes).
    pub(in crate::mcp::client) fn notify_changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    fn publish(&self, change: impl FnOnce(&mut UpstreamSnapshot)) {
        // Only the supervisor publishes, so no change is lost between the load and the store.
        let mut current = UpstreamSnapshot::clone(&self.current.load());
        change(&mut current);
        self.current.store(Arc::new(current));
        self.notify_changed();
    }
}

/// Keeps the server connected and closes idle connections until [`SharedUpstreamState::close`], then closes all
/// connections to the server.
pub(in crate::mcp::client) async fn supervise(shared: Arc<SharedUpstreamState>) {
    tokio::select! {
        biased;
        () = shared.closing.notified() => {}
        () = keep_connected(&shared) => {}
        () = shared.pool.end_unused(shared.config.ends_unused_after) => {}
        () = publish_pooled_tools(&shared) => {}
    }
    let connection = shared.current().connection.clone();
    shared.publish(|current| {
        current.state = ProviderState::Closed;
        current.connection = None;
    });
    if let Some(connection) = connection {
        shared.pool.end(connection);
    }
    shared.pool.close().await;
    shared.ended.send_replace(true);
}

/// Notifies the receivers of [`SharedUpstreamState::changes`] when the set of tools offered over pooled connections
/// changes. Never returns.
async fn publish_pooled_tools(shared: &SharedUpstreamState) {
    loop {
        shared.pooled_tools.changed.notified().await;
        shared.notify_changed();
    }
}

async fn keep_connected(shared: &Arc<SharedUpstreamState>) {
    let mut opening = first_opening(shared.config.protocol);
    let mut failures = 0_u32;
    loop {
        if shared.current().state == ProviderState::Idle {
            shared.usage.used().await;
        }
        if shared.current().state != ProviderState::Connecting {
            shared.publish(|current| current.state = ProviderState::Connecting);
        }
        let began = Instant::now();
        let loss = match timeout(shared.config.timeouts.connect, connect(shared, opening)).await {
            Ok(Ok((connection, catalogue))) => {
                opening = match connection.writer.version.generation() {
                    ProtocolGeneration::Modern => HandshakeMethod::Discover,
                    ProtocolGeneration::Legacy => {
                        HandshakeMethod::Initialize(shared.config.protocol.unwrap_or(ProtocolVersion::NEWEST_LEGACY))
                    }
                };
                let Some(loss) = serve(shared, Arc::new(connection), catalogue).await else {
                    failures = 0;
                    continue;
                };
                if began.elapsed() >= shared.config.retry.longest {
                    failures = 0;
                }
                loss
            }
            Ok(Err(loss)) => {
                opening = first_opening(shared.config.protocol);
                loss
            }
            Err(_) => {
                opening = next_opening(opening, shared.config.protocol);
                ConnectionLoss::Failed(format!(
                    "it was not ready within {} s",
                    shared.config.timeouts.connect.as_secs_f32()
                ))
            }
        };
        failures = failures.saturating_add(1);
        wait_for_retry(shared, loss, failures).await;
    }
}

/// Returns the first message of the next attempt. A server that did not answer the probe gets `initialize` next.
fn next_opening(silent_to: HandshakeMethod, fixed: Option<ProtocolVersion>) -> HandshakeMethod {
    match (fixed, silent_to) {
        (None, HandshakeMethod::Probe) => HandshakeMethod::Initialize(ProtocolVersion::NEWEST_LEGACY),
        (fixed, _) => first_opening(fixed),
    }
}

fn first_opening(fixed: Option<ProtocolVersion>) -> HandshakeMethod {
    match fixed {
        None => HandshakeMethod::Probe,
        Some(version) if version.generation() == ProtocolGeneration::Modern => HandshakeMethod::Discover,
        Some(version) => HandshakeMethod::Initialize(version),
    }
}

async fn connect(
    shared: &SharedUpstreamState,
    opening: HandshakeMethod,
) -> Result<(Connection, ToolCatalogue), ConnectionLoss> {
    let declared = shared.deps.declared(&shared.config);
    let connection =
        Connection::open(&shared.config, &shared.deps, opening, declared, Some(&Principal::local())).await?;
    match list(shared, &connection).await {
        Ok(catalogue) => Ok((connection, catalogue)),
        Err(loss) => {
            let last_words = connection.transport.abandon().await;
            Err(with_last_words(loss, last_words))
        }
    }
}

async fn list(shared: &SharedUpstreamState, connection: &Connection) -> Result<ToolCatalogue, ConnectionLoss> {
    ToolCatalogue::fetch(connection, &shared.config).await.map_err(loss_of)
}

/// Serves a connection until it is lost. Returns `None` if it was closed because it was idle.
async fn serve(
    shared: &Arc<SharedUpstreamState>,
    connection: Arc<Connection>,
    catalogue: ToolCatalogue,
) -> Option<ConnectionLoss> {
    tracing::info!(
        target: UPSTREAM,
        server = %shared.config.name,
        version = %connection.card.version,
        tools = catalogue.tools.len(),
        "connected to the MCP server"
    );
    let (listener, of_all) = (connection.clone(), shared.clone());
    let _listening =
        AbortOnDropHandle::new(tokio::spawn(async move { listener.listen(&of_all.context_state.subscriptions).await }));
    // The server works again.
    shared.circuit.answered();
    shared.publish(|current| {
        current.state = ProviderState::Ready;
        current.connection = Some(connection.clone());
        current.notes = Vec::new();
        current.stderr = Vec::new();
        current.retry_from = None;
        current.catalogue = Some(Arc::new(catalogue));
    });
    shared.listed.send_modify(|listed| *listed += 1);
    let (kept, of_all) = (connection.clone(), shared.clone());
    let _keeping = AbortOnDropHandle::new(tokio::spawn(async move {
        run_catalogue_work(&of_all.context_state, &of_all.config, &kept).await
    }));
    let peer = connection.transport.peer();
    let mut next_list = Instant::now() + LISTING_INTERVAL;
    let loss = loop {
        tokio::select! {
            biased;
            loss = peer.wait_for_loss() => break loss,
            () = shared.refresh.notified() => peer.context_list_changed(true, true),
            // A change seen by another connection may also affect this one.
            () = shared.pooled_tools.list_changed.notified() => {
                peer.everything_changed();
                continue;
            }
            () = unused(shared) => match close_if_idle(shared, &connection) {
                true => return None,
                false => continue,
            },
            // Several notifications within the interval cause one listing.
            () = async { peer.list_changed.notified().await; sleep_until(next_list).await } => {}
        }
        if let Err(loss) = relist(shared, &connection).await {
            break loss;
        }
        next_list = Instant::now() + LISTING_INTERVAL;
    };
    let last_words = connection.transport.abandon().await;
    let stderr = connection.transport.stderr();
    shared.publish(|current| {
        current.connection = None;
        current.stderr = stderr;
    });
    Some(with_last_words(loss, last_words))
}

/// Waits until the server has been unused for the configured idle time. Never returns if none is configured.
async fn unused(shared: &SharedUpstreamState) {
    or_never(shared.config.ends_unused_after.map(|time| shared.usage.unused_for(time))).await;
}

/// Closes an idle connection and retains its catalogue. Returns `false` if a caller has just begun to use it.
fn close_if_idle(shared: &SharedUpstreamState, connection: &Arc<Connection>) -> bool {
    shared.publish(|current| {
        current.state = ProviderState::Idle;
        current.connection = None;
    });
    // A caller that began before the change may have got the connection. One that begins after it sees that there is
    // none.
    if shared.usage.is_used() {
        shared.publish(|current| {
            current.state = ProviderState::Ready;
            current.connection = Some(connection.clone());
        });
        return false;
    }
    tracing::info!(target: UPSTREAM, server = %shared.config.name, "ended the idle MCP server until its next use");
    shared.pool.end(connection.clone());
    true
}

/// Lists the tools again. If the listing fails, the old list remains in use. Returns an error only if the connection
/// must be replaced: it is lost, it requires a login, or the server answers nothing at all on it.
async fn relist(shared: &SharedUpstreamState, connection: &Connection) -> Result<(), ConnectionLoss> {
    let peer = connection.transport.peer();
    let listing = tokio::select! {
        biased;
        loss = peer.wait_for_loss() => return Err(loss),
        listing = timeout(shared.config.timeouts.connect, list(shared, connection)) => listing,
    };
    let failed = match listing {
        Ok(Ok(catalogue)) => {
            if shared.current().catalogue.as_deref() != Some(&catalogue) {
                shared.publish(|current| {
                    current.catalogue = Some(Arc::new(catalogue));
                    current.notes = Vec::new();
                });
            }
            None
        }
        Ok(Err(loss @ ConnectionLoss::Unauthorized(_))) => return Err(loss),
        Ok(Err(ConnectionLoss::Failed(reason))) => Some(reason),
        // Earlier calls may still be answered: a server that handles one request at a time is silent meanwhile.
        Err(_) if shared.circuit.tries_in_silence().is_some_and(|tries| peer.in_flight.call_count() <= tries) => {
            return Err(ConnectionLoss::Failed("it answered neither its calls nor the request for its tools".into()));
        }
        Err(_) => Some("it took too long".into()),
    };
    if let Some(reason) = failed {
        tracing::warn!(server = %shared.config.name, reason, "could not list the tools again; the old list remains");
        shared
            .publish(|current| current.notes = vec![format!("the last list of tools could not be fetched: {reason}")]);
    }
    shared.listed.send_modify(|listed| *listed += 1);
    Ok(())
}

/// Publishes the failure and waits until the next attempt is due, or until a caller needs the server after the minimum
/// pause. After a missing sign-in, only a caller ends the wait.
async fn wait_for_retry(shared: &SharedUpstreamState, loss: ConnectionLoss, failures: u32) {
    let Backoff { first, longest } = shared.config.retry;
    let now = Instant::now();
    let server = &shared.config.name;
    // After a missing sign-in there is no automatic attempt: the next use after the pause makes one.
    let (state, retry_from, retry_at) = match loss {
        ConnectionLoss::Failed(reason) => {
            let pause = pause_after(failures, shared.config.retry);
            let reason = shown(&reason, REASON_CHARACTERS);
            tracing::warn!(target: UPSTREAM, %server, reason, retry_seconds = pause.as_secs_f32(), "the MCP server is down");
            (ProviderState::Failed { reason }, now + first, Some(now + pause))
        }
        ConnectionLoss::Unauthorized(reason) => {
            let reason = shown(&reason, REASON_CHARACTERS);
            tracing::warn!(target: UPSTREAM, %server, reason, "the MCP server requires a login");
            // With a source of credentials the pause is short, because it sends no request to the server to look for a
            // sign-in by another process.
            let pause = if shared.config.credentials.is_some() { first } else { longest };
            (ProviderState::NeedsAuthorization { reason }, now + pause, None)
        }
    };
    shared.publish(|current| {
        current.state = state;
        current.connection = None;
        current.retry_from = Some(retry_from);
    });
    shared.listed.send_modify(|listed| *listed += 1);
    loop {
        tokio::select! {
            () = or_never(retry_at.map(sleep_until)) => return,
            () = shared.wanted.notified() => {
                // A request from before the failure does not count.
                if Instant::now() >= retry_from {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_server_receives_probe_and_initialize_in_turn() {
        let silent = next_opening(HandshakeMethod::Probe, None);
        assert_eq!(silent, HandshakeMethod::Initialize(ProtocolVersion::NEWEST_LEGACY));
        assert_eq!(next_opening(silent, None), HandshakeMethod::Probe);
        let fixed = Some(ProtocolVersion::V20250618);
        assert_eq!(next_opening(first_opening(fixed), fixed), HandshakeMethod::Initialize(ProtocolVersion::V20250618));
        assert_eq!(first_opening(Some(ProtocolVersion::NEWEST)), HandshakeMethod::Discover);
    }
}
