//! Selection of the connection for a call: the catalogue connection or one of the pool. Waits while the server is not
//! connected.

use crate::mcp::client::{
    Upstream,
    connection::{
        Connection, HandshakeMethod,
        peer::ConnectionLoss,
        question_kind::{QuestionKind, declared, declared_members},
        request_error::RequestError,
    },
    routing::{
        catalogue_connection_lock::CatalogueConnectionGuard,
        pool::{ConnectionKey, Lease},
        supervisor::UpstreamSnapshot,
    },
};
use futures::FutureExt;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::time::{Instant, sleep_until, timeout};
use toolstead_domain::{CallContext, Principal, ProtocolGeneration, ProviderState};

/// Connection of one request.
pub(in crate::mcp::client) enum SelectedConnection {
    /// Catalogue connection, locked if only one client may receive questions over it.
    Catalogue(Arc<Connection>, Option<CatalogueConnectionGuard>),
    /// Connection of the pool.
    Pooled(Lease),
}

impl Upstream {
    /// Selects the connection for a request of a caller with these capabilities; the catalogue connection if possible.
    /// Modern servers receive the capabilities with each request, legacy servers when the connection is opened.
    ///
    /// # Errors
    /// Returns [`RequestError`] if a connection of the pool is needed and cannot be opened.
    pub(in crate::mcp::client) async fn select_connection(
        &self,
        catalogue_connection: Arc<Connection>,
        capabilities: &Map<String, Value>,
        context: &CallContext<'_>,
    ) -> Result<SelectedConnection, RequestError> {
        let is_old = catalogue_connection.writer.version.generation() == ProtocolGeneration::Legacy;
        let asks = is_old && answered(capabilities).next().is_some();
        let owner = self.owner_of_connections(&catalogue_connection, context.principal);
        let is_own = owner.as_ref().is_none_or(|owner| *owner == Principal::local());
        let fits = is_own && (!is_old || is_declared(capabilities, &catalogue_connection));
        // A single client is a single principal, so every question is for it.
        let is_one = self.shared.deps.clients.are_one();
        if fits && (is_one || !self.shared.config.stateful) {
            if is_one || !asks {
                return Ok(SelectedConnection::Catalogue(catalogue_connection, None));
            }
            let caller = (context.principal, context.session);
            let separates_calls = catalogue_connection.transport.isolates_calls();
            if let Some(guard) = catalogue_connection.lock.take(caller, separates_calls) {
                return Ok(SelectedConnection::Catalogue(catalogue_connection, Some(guard)));
            }
        }
        let is_stateful = self.shared.config.stateful;
        let separates_calls = catalogue_connection.transport.isolates_calls();
        let key = ConnectionKey {
            capabilities: if asks { declared(capabilities, QuestionKind::ALL) } else { Map::new() },
            // Questions may also arrive on a stream that belongs to no call.
            principal: owner.or_else(|| (is_stateful || asks && separates_calls).then(|| context.principal.clone())),
            is_stateful,
            is_exclusive: asks && !separates_calls,
        };
        if let Some(lease) = self.shared.pool.take_open(&key, context.session) {
            return Ok(SelectedConnection::Pooled(lease));
        }
        // Boxed, because few calls need it.
        Box::pin(self.take_pooled(&catalogue_connection, key, context)).await.map(SelectedConnection::Pooled)
    }

    /// Returns a connection of the pool. Waits for one or opens one.
    async fn take_pooled(
        &self,
        catalogue_connection: &Connection,
        key: ConnectionKey,
        context: &CallContext<'_>,
    ) -> Result<Lease, RequestError> {
        let opening = match catalogue_connection.writer.version.generation() {
            ProtocolGeneration::Modern => HandshakeMethod::Discover,
            ProtocolGeneration::Legacy => HandshakeMethod::Initialize(catalogue_connection.writer.version),
        };
        let capabilities = key.capabilities.clone();
        let principal = key.principal.clone();
        let open = move || self.open_pooled(opening, capabilities, principal).boxed();
        self.shared.pool.take(key, (context.principal, context.session), open).await
    }

    /// Returns the principal whose credentials the connections for calls of `caller` carry. `None` if all principals
    /// share them.
    fn owner_of_connections(&self, catalogue_connection: &Connection, caller: &Principal) -> Option<Principal> {
        let credentials = self.shared.config.credentials.as_ref()?;
        // A server that has never asked for credentials is the same for all principals.
        if credentials.is_optional && !catalogue_connection.transport.has_credentials() {
            return None;
        }
        self.shared.config.owner_for(caller)
    }

    async fn open_pooled(
        &self,
        opening: HandshakeMethod,
        capabilities: Map<String, Value>,
        principal: Option<Principal>,
    ) -> Result<Connection, ConnectionLoss> {
        let time = self.shared.config.timeouts.connect;
        let opening =
            Connection::open(&self.shared.config, &self.shared.deps, opening, capabilities, principal.as_ref());
        let opened = timeout(time, opening).await.unwrap_or_else(|_| {
            Err(ConnectionLoss::Failed(format!(
                "another connection to it was not ready within {} s",
                time.as_secs_f32()
            )))
        });
        // The missing sign-in of one principal says nothing about the server.
        opened.inspect_err(|loss| {
            if let ConnectionLoss::Failed(reason) = loss {
                self.note_failure(&RequestError::Unreachable(reason.clone()));
            }
        })
    }

    /// Returns the server once it is ready. While it is not connected, waits for one attempt to connect: the current
    /// one, or the next one if that begins before `until`.
    pub(in crate::mcp::client) async fn ready(
        &self,
        until: Instant,
    ) -> Result<(Arc<UpstreamSnapshot>, Arc<Connection>), RequestError> {
        let current = self.shared.current();
        if let Some(connection) = current.connection.clone() {
            return Ok((current, connection));
        }
        // Boxed, because it is rare and larger than the rest of a call.
        Box::pin(self.wait_for_connection(until)).await
    }

    async fn wait_for_connection(
        &self,
        until: Instant,
    ) -> Result<(Arc<UpstreamSnapshot>, Arc<Connection>), RequestError> {
        let closed = || RequestError::Unreachable("it was closed".into());
        let mut changes = self.shared.changes();
        let mut has_tried = false;
        loop {
            changes.mark_unchanged();
            let current = self.shared.current();
            if let Some(connection) = current.connection.clone() {
                return Ok((current, connection));
            }
            match &current.state {
                ProviderState::Ready | ProviderState::Idle => {}
                ProviderState::Connecting => has_tried = true,
                ProviderState::Failed { reason } => {
                    let Some(retry_from) = current.retry_from.filter(|from| !has_tried && *from < until) else {
                        return Err(RequestError::Unreachable(reason.clone()));
                    };
                    tokio::select! {
                        biased;
                        changed = changes.changed() => match changed {
                            Ok(()) => continue,
                            Err(_) => return Err(closed()),
                        },
                        () = sleep_until(retry_from) => has_tried = self.shared.request_connection(&current),
                    }
                }
                ProviderState::NeedsAuthorization { .. }
                    if !std::mem::replace(&mut has_tried, true) && self.shared.request_connection(&current) => {}
                ProviderState::NeedsAuthorization { reason } => return Err(RequestError::Unauthorized(reason.clone())),
                ProviderState::Closed => return Err(closed()),
            }
            if changes.changed().await.is_err() {
                return Err(closed());
            }
        }
    }
}

impl SelectedConnection {
    /// Returns the connection.
    ///
    /// # Errors
    /// Returns [`RequestError::Unreachable`] if a connection of the pool has ended meanwhile.
    pub(in crate::mcp::client) fn connection(&self) -> Result<&Arc<Connection>, RequestError> {
        match self {
            Self::Catalogue(connection, _) => Ok(connection),
            Self::Pooled(lease) => {
                lease.connection().ok_or_else(|| RequestError::Unreachable("its connection has ended".into()))
            }
        }
    }

    /// Records that the call has its response, so that no further message can arrive for it.
    pub(in crate::mcp::client) fn answered(&self) {
        match self {
            Self::Catalogue(_, guard) => guard.iter().for_each(CatalogueConnectionGuard::answered),
            Self::Pooled(lease) => lease.answered(),
        }
    }
}

/// Returns those of a caller's capabilities by which it can answer questions of a server. Extensions are left out,
/// because they are for modern servers only.
fn answered(capabilities: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    declared_members(capabilities, QuestionKind::ALL)
}

/// Returns `true` if the capabilities declared over this connection are exactly those by which the caller can answer
/// questions.
fn is_declared(capabilities: &Map<String, Value>, connection: &Connection) -> bool {
    let declared = &connection.transport.peer().capabilities;
    let mut count = 0;
    answered(capabilities).all(|(name, value)| {
        count += 1;
        declared.get(name) == Some(value)
    }) && count == declared.len()
}
