//! Keeps one server connected: connects, lists, waits for the end, tries again.

use crate::mcp::client::{
    catalogue::Catalogue,
    config::{McpServerConfig, RetryPolicy},
    connection::{Connection, McpServerDeps, Opening, loss_of, with_last_words},
    context::{keeping::keep, state::Beside},
    foreign_text::shown,
    peer::Loss,
    relay::or_never,
};
use arc_swap::ArcSwap;
use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use toolstead_domain::{
    client_profile::{Generation, ProtocolVersion},
    ports::tool_provider::ProviderState,
};

/// The least time between two lists that a server's own news cause.
const LISTING_INTERVAL: Duration = Duration::from_millis(200);

/// So much is told of why a server is down, in characters.
const REASON_CHARACTERS: usize = 2000;

/// What the supervisor and those who call the server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: McpServerConfig,
    deps: McpServerDeps,
    current: ArcSwap<Current>,
    /// Rises with every change of `current`.
    version: watch::Sender<u64>,
    /// Somebody wants the server, which is down.
    wanted: Notify,
    /// Somebody wants its tools listed anew.
    refresh: Notify,
    /// Rises with every list that was taken or tried.
    listed: watch::Sender<u64>,
    /// What is beside the tools.
    pub(super) beside: Beside,
    closing: Notify,
    /// Whether all is over.
    ended: watch::Sender<bool>,
}

/// How the server is now.
#[derive(Debug, Clone)]
pub(super) struct Current {
    pub(super) state: ProviderState,
    /// The connection while it is ready.
    pub(super) connection: Option<Arc<Connection>>,
    /// What it offered when it was asked last, also while it is down.
    pub(super) catalogue: Option<Arc<Catalogue>>,
    /// What else the operator should know.
    pub(super) notes: Vec<String>,
    /// The last words on standard error of a connection that is over.
    pub(super) stderr: Vec<String>,
    /// From when on somebody who wants it makes it be tried again.
    pub(super) retry_from: Option<Instant>,
}

impl Shared {
    pub(super) fn new(config: McpServerConfig, deps: McpServerDeps) -> Self {
        let current = Current {
            state: ProviderState::Connecting,
            connection: None,
            catalogue: None,
            notes: Vec::new(),
            stderr: Vec::new(),
            retry_from: None,
        };
        Self {
            config,
            deps,
            current: ArcSwap::from_pointee(current),
            version: watch::Sender::new(1),
            wanted: Notify::new(),
            refresh: Notify::new(),
            listed: watch::Sender::new(0),
            beside: Beside::new(),
            closing: Notify::new(),
            ended: watch::Sender::new(false),
        }
    }

    /// How the server is now.
    pub(super) fn current(&self) -> Arc<Current> {
        self.current.load_full()
    }

    /// Tells every change of [`current`](Self::current).
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Tells every list that was taken or tried.
    pub(super) fn lists(&self) -> watch::Receiver<u64> {
        self.listed.subscribe()
    }

    /// Wants a server that is down: it is tried again if it was left alone long enough. Says whether it is.
    pub(super) fn want(&self, current: &Current) -> bool {
        let due = current.retry_from.is_some_and(|from| from <= Instant::now());
        if due {
            self.wanted.notify_one();
        }
        due
    }

    /// Wants the tools listed anew.
    pub(super) fn want_list(&self) {
        self.refresh.notify_one();
    }

    /// Ends the connection; returns when it is gone.
    pub(super) async fn close(&self) {
        let mut ended = self.ended.subscribe();
        self.closing.notify_one();
        // The sender lives in `self`, so that waiting cannot fail.
        let _ = ended.wait_for(|ended| *ended).await;
    }

    fn publish(&self, change: impl FnOnce(&mut Current)) {
        // Only the supervisor publishes, so that nothing is lost between reading and writing.
        let mut current = Current::clone(&self.current.load());
        change(&mut current);
        self.current.store(Arc::new(current));
        self.version.send_modify(|version| *version += 1);
    }
}

/// Runs until [`Shared::close`], then closes the connection.
pub(super) async fn supervise(shared: Arc<Shared>) {
    tokio::select! {
        biased;
        () = shared.closing.notified() => {}
        () = keep_connected(&shared) => {}
    }
    let connection = shared.current().connection.clone();
    shared.publish(|current| {
        current.state = ProviderState::Closed;
        current.connection = None;
    });
    if let Some(connection) = connection {
        connection.transport.close(shared.config.timeouts.close).await;
    }
    shared.ended.send_replace(true);
}

async fn keep_connected(shared: &Arc<Shared>) {
    let mut opening = first_opening(shared.config.protocol);
    let mut failures = 0_u32;
    loop {
        if shared.current().state != ProviderState::Connecting {
            shared.publish(|current| current.state = ProviderState::Connecting);
        }
        let began = Instant::now();
        let loss = match timeout(shared.config.timeouts.connect, connect(shared, opening)).await {
            Ok(Ok((connection, catalogue))) => {
                opening = match connection.writer.version.generation() {
                    Generation::Modern => Opening::Discover,
                    Generation::Legacy => {
                        Opening::Initialize(shared.config.protocol.unwrap_or(ProtocolVersion::NEWEST_LEGACY))
                    }
                };
                let loss = serve(shared, Arc::new(connection), catalogue).await;
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
                Loss::Failed(format!("it was not ready within {} s", shared.config.timeouts.connect.as_secs_f32()))
            }
        };
        failures = failures.saturating_add(1);
        rest(shared, loss, failures).await;
    }
}

/// A server that did not say anything to the usual first message gets the other one the next time.
fn next_opening(silent_to: Opening, fixed: Option<ProtocolVersion>) -> Opening {
    match (fixed, silent_to) {
        (None, Opening::Probe) => Opening::Initialize(ProtocolVersion::NEWEST_LEGACY),
        (fixed, _) => first_opening(fixed),
    }
}

fn first_opening(fixed: Option<ProtocolVersion>) -> Opening {
    match fixed {
        None => Opening::Probe,
        Some(version) if version.generation() == Generation::Modern => Opening::Discover,
        Some(version) => Opening::Initialize(version),
    }
}

async fn connect(shared: &Shared, opening: Opening) -> Result<(Connection, Catalogue), Loss> {
    let connection = Connection::open(&shared.config, &shared.deps, opening).await?;
    match list(shared, &connection).await {
        Ok(catalogue) => Ok((connection, catalogue)),
        Err(loss) => {
            let last_words = connection.transport.abandon().await;
            Err(with_last_words(loss, last_words))
        }
    }
}

async fn list(shared: &Shared, connection: &Connection) -> Result<Catalogue, Loss> {
    let config = &shared.config;
    Catalogue::fetch(connection, &config.name, config.names, &config.limits).await.map_err(loss_of)
}

/// Stays with a connection until it is lost.
async fn serve(shared: &Arc<Shared>, connection: Arc<Connection>, catalogue: Catalogue) -> Loss {
    tracing::info!(
        server = %shared.config.name,
        version = %connection.card.version,
        tools = catalogue.tools.len(),
        "connected to the MCP server"
    );
    let (listener, of_all) = (connection.clone(), shared.clone());
    let _listening = AbortOnDropHandle::new(tokio::spawn(async move { listener.listen(&of_all.beside.watched).await }));
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
    let _keeping =
        AbortOnDropHandle::new(tokio::spawn(async move { keep(&of_all.beside, &of_all.config, &kept).await }));
    let peer = connection.transport.peer();
    let mut next_list = Instant::now() + LISTING_INTERVAL;
    let loss = loop {
        tokio::select! {
            biased;
            loss = peer.lost() => break loss,
            () = shared.refresh.notified() => peer.context_list_changed(true, true),
            // A storm of news is one piece of news.
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
    with_last_words(loss, last_words)
}

/// Takes the list anew. One that cannot be had leaves the old one, unless the connection is lost.
async fn relist(shared: &Shared, connection: &Connection) -> Result<(), Loss> {
    let peer = connection.transport.peer();
    let listing = tokio::select! {
        biased;
        loss = peer.lost() => return Err(loss),
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
        Ok(Err(loss @ Loss::Unauthorized(_))) => return Err(loss),
        Ok(Err(Loss::Failed(reason))) => Some(reason),
        Err(_) => Some("it took too long".into()),
    };
    if let Some(reason) = failed {
        tracing::warn!(server = %shared.config.name, reason, "could not list the tools anew; the old list is kept");
        shared.publish(|current| current.notes = vec![format!("the last list of tools could not be had: {reason}")]);
    }
    shared.listed.send_modify(|listed| *listed += 1);
    Ok(())
}

/// Leaves a server alone that is down.
async fn rest(shared: &Shared, loss: Loss, failures: u32) {
    let RetryPolicy { first, longest } = shared.config.retry;
    let now = Instant::now();
    let server = &shared.config.name;
    // Nothing here logs in, so that trying again by itself would only knock at a closed door.
    let (state, retry_from, retry_at) = match loss {
        Loss::Failed(reason) => {
            let pause = pause_after(failures, shared.config.retry);
            tracing::warn!(%server, reason, retry_seconds = pause.as_secs_f32(), "the MCP server is down");
            let reason = shown(&reason, REASON_CHARACTERS);
            (ProviderState::Failed { reason }, now + first, Some(now + pause))
        }
        Loss::Unauthorized(reason) => {
            tracing::warn!(%server, reason, "the MCP server wants a login");
            let reason = shown(&reason, REASON_CHARACTERS);
            (ProviderState::NeedsAuthorization { reason }, now + longest, None)
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
                // A wish from before the failure does not count.
                if Instant::now() >= retry_from {
                    return;
                }
            }
        }
    }
}

/// The pause after so many failures in a row, less up to a quarter, so that many servers do not come back in step.
fn pause_after(failures: u32, retry: RetryPolicy) -> Duration {
    let pause = retry.first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(retry.longest);
    // std seeds it anew for each one.
    let chance = RandomState::new().build_hasher().finish() % 1000;
    pause.mul_f64(1.0 - 0.25 * (chance as f64 / 1000.0)).max(retry.first.min(pause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_differ() {
        let retry = RetryPolicy { first: Duration::from_secs(1), longest: Duration::from_secs(60) };
        for (failures, seconds) in [(1, 1.0), (2, 2.0), (4, 8.0), (7, 60.0), (40, 60.0), (u32::MAX, 60.0)] {
            for _ in 0..50 {
                let pause = pause_after(failures, retry).as_secs_f64();
                assert!(pause <= seconds && pause >= (seconds * 0.75).max(1.0) - 1e-9, "{failures}: {pause}");
            }
        }
        let pauses: std::collections::BTreeSet<Duration> = (0..50).map(|_| pause_after(7, retry)).collect();
        assert!(pauses.len() > 10);
    }

    #[test]
    fn a_silent_server_gets_both_first_messages_in_turn() {
        let silent = next_opening(Opening::Probe, None);
        assert_eq!(silent, Opening::Initialize(ProtocolVersion::NEWEST_LEGACY));
        assert_eq!(next_opening(silent, None), Opening::Probe);
        let fixed = Some(ProtocolVersion::V20250618);
        assert_eq!(next_opening(first_opening(fixed), fixed), Opening::Initialize(ProtocolVersion::V20250618));
        assert_eq!(first_opening(Some(ProtocolVersion::NEWEST)), Opening::Discover);
    }
}
