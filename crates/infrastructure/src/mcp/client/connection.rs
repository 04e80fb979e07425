//! One connection to a server, from the handshake to the end.

pub(super) mod foreign_text;
pub(super) mod handshake;
pub(super) mod handshake_result;
pub(super) mod in_flight;
pub(super) mod own_members;
pub(super) mod peer;
pub(super) mod profile_advice;
pub mod question_kind;
pub(super) mod relay;
pub(super) mod request;
pub(super) mod request_error;
mod subscription;

use crate::{
    http::client::HttpClient,
    mcp::client::{
        authorized_endpoint::PrincipalCredentials,
        catalogue::identity,
        config::{CredentialsOwner, McpTransport, UpstreamConfig},
        connection::{
            handshake_result::HandshakeResult,
            peer::{ConnectionLoss, UpstreamConnectionState},
            question_kind::ServedClients,
            request::ConnectionRequestSerializer,
            request_error::RequestError,
        },
        context::state::ResourceSubscriptions,
        routing::catalogue_connection_lock::CatalogueConnectionLock,
        transport::{
            Transport, http::HttpTransport, lines::LineTransport, server_launcher::ServerLauncher, sse::SseTransport,
        },
    },
};
use serde_json::{Map, Value};
use std::{path::PathBuf, pin::pin, sync::Arc, time::Duration};
use tokio::time::timeout;
use toolstead_domain::{Principal, ProtocolGeneration, ProtocolVersion, ProviderIdentity};

/// Reason for the failure of a child-process server in an application without a launcher.
const NO_LAUNCHER: &str = "this program cannot start servers: build `toolstead-infrastructure` with the feature \
                           `mcp-stdio` and set `UpstreamDeps::launcher`, or reach the server by HTTP";

/// Dependencies for connections to servers.
#[derive(Debug, Clone)]
pub struct UpstreamDeps {
    /// Launcher of child-process servers, such as `StdioLauncher`. `None` makes these servers unavailable.
    pub launcher: Option<Arc<dyn ServerLauncher>>,
    /// Client for servers over HTTP.
    pub http: HttpClient,
    /// Clients of this gateway. Some servers list more tools for clients that can answer questions.
    pub clients: ServedClients,
}

impl UpstreamDeps {
    /// Returns the identity of the server, which is stable across restarts.
    pub fn identity_of(&self, config: &UpstreamConfig) -> ProviderIdentity {
        let start = match &config.transport {
            McpTransport::Stdio(server) => match &self.launcher {
                Some(launcher) => launcher.folder(server, config),
                None => server.working_dir.clone().unwrap_or_default(),
            },
            McpTransport::Http(_)
            | McpTransport::StreamableHttp(_)
            | McpTransport::Sse(_)
            | McpTransport::Streams(_) => PathBuf::new(),
        };
        identity::of(config, &start, &self.declared(config))
    }

    /// Returns the capabilities to declare on the catalogue connection.
    pub(super) fn declared(&self, config: &UpstreamConfig) -> Map<String, Value> {
        question_kind::declared(self.clients.capabilities(), &config.may_ask)
    }
}

/// Connection to a server after the handshake.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) transport: Box<dyn Transport>,
    pub(super) writer: ConnectionRequestSerializer,
    pub(super) card: HandshakeResult,
    /// Lock that passes the questions of the catalogue connection to one caller at a time.
    pub(super) lock: Arc<CatalogueConnectionLock>,
}

/// First message of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandshakeMethod {
    /// `server/discover`, followed by `initialize` if the server does not answer with its description.
    Probe,
    /// `initialize` with this protocol version.
    Initialize(ProtocolVersion),
    /// `server/discover` only.
    Discover,
}

/// Reaction of a server of unknown generation to the first message.
enum ProbeOutcome {
    /// The server described itself.
    Card(HandshakeResult),
    /// The server refused the message, gave an invalid response or ended.
    Refused(RequestError),
    /// The server is of the modern generation but has also received `initialize`.
    Modern,
}

impl Connection {
    /// Connects to the server with the credentials of this principal, and declares these capabilities (MCP's
    /// `ClientCapabilities`). A connection without a principal, which several share, carries no principal's
    /// credentials. Dropping the future ends everything that was started.
    ///
    /// # Errors
    /// Returns the reason why the connection failed.
    pub(super) async fn open(
        config: &UpstreamConfig,
        deps: &UpstreamDeps,
        opening: HandshakeMethod,
        capabilities: Map<String, Value>,
        principal: Option<&Principal>,
    ) -> Result<Self, ConnectionLoss> {
        let credentials = config.credentials.clone().and_then(|source| {
            let owner = match source.owner {
                CredentialsOwner::Program => Principal::local(),
                CredentialsOwner::Principal => principal.cloned()?,
            };
            Some(Arc::new(PrincipalCredentials::new(source, owner)))
        });
        let connector = UpstreamConnector { config, deps, capabilities, credentials };
        let opened = match (opening, &config.transport) {
            (HandshakeMethod::Initialize(version), _) => connector.initialize(version).await,
            // The old transport predates every other first message.
            (_, McpTransport::Sse(_)) => connector.initialize(ProtocolVersion::NEWEST_LEGACY).await,
            (HandshakeMethod::Probe, _) => connector.probe().await,
            (HandshakeMethod::Discover, _) => connector.discover().await,
        };
        let (transport, card) = opened?;
        transport.agree_on(card.version);
        let writer = ConnectionRequestSerializer::new(card.version, &transport.peer().capabilities);
        Ok(Self { transport, writer, card, lock: Arc::default() })
    }

    /// Listens for messages that the server sends outside of requests, such as changes of lists and of the subscribed
    /// resources, if they need a stream of their own. Returns when there is nothing to listen to.
    pub(super) async fn listen(&self, watched: &ResourceSubscriptions) {
        match self.writer.version.generation() {
            ProtocolGeneration::Legacy => self.transport.listen(&self.writer).await,
            ProtocolGeneration::Modern => subscription::listen(self, watched).await,
        }
    }
}

struct UpstreamConnector<'a> {
    config: &'a UpstreamConfig,
    deps: &'a UpstreamDeps,
    capabilities: Map<String, Value>,
    credentials: Option<Arc<PrincipalCredentials>>,
}

type OpenResult = Result<(Box<dyn Transport>, HandshakeResult), ConnectionLoss>;

impl UpstreamConnector<'_> {
    async fn initialize(&self, version: ProtocolVersion) -> OpenResult {
        let transport = self.connect().await?;
        let card = handshake::initialize(&*transport, version).await;
        self.check_or_fall_back(transport, version, card).await
    }

    /// Completes a handshake. If the server rejected its first message with HTTP status 400, 404 or 405, tries the
    /// older HTTP+SSE transport before the failure is returned (MCP 2025-11-25, basic/transports, "Backwards
    /// Compatibility").
    async fn check_or_fall_back(
        &self,
        transport: Box<dyn Transport>,
        version: ProtocolVersion,
        card: Result<HandshakeResult, RequestError>,
    ) -> OpenResult {
        let (Err(RequestError::Http { status: 400 | 404 | 405, .. }), McpTransport::Http(server)) =
            (&card, &self.config.transport)
        else {
            return self.opened(transport, card).await;
        };
        let limit = self.config.limits.message_bytes;
        let opening = SseTransport::open(&self.deps.http, server, self.credentials.clone(), self.peer(), limit);
        match timeout(self.config.timeouts.probe, opening).await {
            Ok(Ok(old)) => {
                let card = handshake::initialize(&old, version).await;
                self.opened(Box::new(old), card).await
            }
            Ok(Err(error @ RequestError::Unauthorized(_))) => self.opened(transport, Err(error)).await,
            // The first error is reported, because it is the one that the operator can act on.
            Ok(Err(_)) | Err(_) => self.opened(transport, card).await,
        }
    }

    async fn discover(&self) -> OpenResult {
        let transport = self.connect().await?;
        let card = match handshake::discover(&*transport).await {
            // The configuration fixes the protocol version, so a server that does not describe itself is accepted.
            Err(RequestError::Malformed(_)) if self.config.protocol == Some(ProtocolVersion::NEWEST) => {
                Ok(HandshakeResult {
                    version: ProtocolVersion::NEWEST,
                    name: None,
                    capabilities: Map::new(),
                    instructions: None,
                })
            }
            card => card,
        };
        self.opened(transport, card).await
    }

    /// Connects to the server by `server/discover`, or by `initialize` if the server does not answer that request with
    /// its description (MCP 2026-07-28, basic/versioning, "Backward Compatibility").
    async fn probe(&self) -> OpenResult {
        let transport = self.connect().await?;
        let refused = match first_response(&*transport, self.config.timeouts.probe).await {
            ProbeOutcome::Card(card) => return Ok((transport, card)),
            ProbeOutcome::Refused(error) => error,
            // This server has received both first messages. A new connection sends it only one.
            ProbeOutcome::Modern => {
                drop(transport);
                return self.discover().await;
            }
        };
        match refused {
            error @ (RequestError::Unauthorized(_) | RequestError::Unreachable(_)) => {
                self.opened(transport, Err(error)).await
            }
            // Some servers exit at an unknown first request.
            RequestError::Lost(_) => self.initialize(ProtocolVersion::NEWEST_LEGACY).await,
            _ => match handshake::initialize(&*transport, ProtocolVersion::NEWEST_LEGACY).await {
                Ok(card) => Ok((transport, card)),
                // Some servers are bound to the generation of the first message they receive.
                Err(RequestError::Rpc(_) | RequestError::Lost(_)) => {
                    drop(transport);
                    self.initialize(ProtocolVersion::NEWEST_LEGACY).await
                }
                error => self.check_or_fall_back(transport, ProtocolVersion::NEWEST_LEGACY, error).await,
            },
        }
    }

    async fn opened(&self, transport: Box<dyn Transport>, card: Result<HandshakeResult, RequestError>) -> OpenResult {
        let fixed = self.config.protocol;
        let error = match card {
            Ok(card) if fixed.is_none_or(|fixed| fixed == card.version) => return Ok((transport, card)),
            Ok(card) => RequestError::Malformed(format!(
                "it speaks protocol version {} and not {}, which the configuration requires",
                card.version,
                fixed.unwrap_or(card.version)
            )),
            Err(error) => error,
        };
        let last_words = transport.abandon().await;
        let stderr = transport.stderr();
        let loss = with_last_words(loss_of(error), last_words);
        Err(match (loss, &self.config.transport) {
            (ConnectionLoss::Failed(reason), McpTransport::Stdio(_)) => {
                // The cause may be a few lines before the last one.
                let said = [vec![reason.clone()], stderr].concat().join("\n");
                let advice = profile_advice::of_start(self.config, &said);
                ConnectionLoss::Failed(advice.map_or_else(|| reason.clone(), |advice| format!("{reason}; {advice}")))
            }
            (loss, _) => loss,
        })
    }

    async fn connect(&self) -> Result<Box<dyn Transport>, ConnectionLoss> {
        let peer = self.peer();
        let limit = self.config.limits.message_bytes;
        match &self.config.transport {
            McpTransport::Stdio(server) => {
                let launcher = self.deps.launcher.as_ref().ok_or_else(|| ConnectionLoss::Failed(NO_LAUNCHER.into()))?;
                self.config.launch_check.passes().await.map_err(ConnectionLoss::Failed)?;
                let started = launcher.launch(server, self.config).await.map_err(ConnectionLoss::Failed)?;
                Ok(Box::new(LineTransport::to_child(started, peer, limit)))
            }
            McpTransport::Streams(server) => {
                let (reader, writer) = (server.open)();
                Ok(Box::new(LineTransport::over(reader, writer, peer, limit)))
            }
            McpTransport::Http(server) | McpTransport::StreamableHttp(server) => {
                let credentials = self.credentials.clone();
                Ok(Box::new(
                    HttpTransport::new(&self.deps.http, server, credentials, peer, limit)
                        .map_err(ConnectionLoss::Failed)?,
                ))
            }
            McpTransport::Sse(server) => {
                let opening = SseTransport::open(&self.deps.http, server, self.credentials.clone(), peer, limit);
                Ok(Box::new(opening.await.map_err(loss_of)?))
            }
        }
    }

    fn peer(&self) -> Arc<UpstreamConnectionState> {
        let mut peer = UpstreamConnectionState::new(self.config.name.clone(), self.capabilities.clone());
        peer.is_of_one_client = self.deps.clients.are_one();
        Arc::new(peer)
    }
}

/// Asks a server of unknown generation for its description. A silent server does not know the request or is slow to
/// start; it also receives `initialize`, and the first valid response counts.
async fn first_response(transport: &dyn Transport, patience: Duration) -> ProbeOutcome {
    let mut discovery = pin!(handshake::discover(transport));
    match timeout(patience, &mut discovery).await {
        Ok(Ok(card)) => return ProbeOutcome::Card(card),
        Ok(Err(error)) => return ProbeOutcome::Refused(error),
        Err(_) => {}
    }
    let mut initialization = pin!(handshake::initialize(transport, ProtocolVersion::NEWEST_LEGACY));
    let mut is_silent = true;
    loop {
        tokio::select! {
            biased;
            card = &mut discovery, if is_silent => match card {
                Ok(_) => return ProbeOutcome::Modern,
                Err(_) => is_silent = false,
            },
            card = &mut initialization => return match card {
                Ok(card) => ProbeOutcome::Card(card),
                Err(RequestError::Rpc(_)) if is_silent => ProbeOutcome::Modern,
                Err(error) => ProbeOutcome::Refused(error),
            },
        }
    }
}

/// Returns the loss with `last_words`, the reason of the server's end, appended to its text. A loss for lack of
/// authorization is returned unchanged.
pub(super) fn with_last_words(loss: ConnectionLoss, last_words: Option<String>) -> ConnectionLoss {
    match (loss, last_words) {
        (ConnectionLoss::Failed(reason), Some(words)) => ConnectionLoss::Failed(format!("{reason}; {words}")),
        (loss, _) => loss,
    }
}

/// Returns the loss of the connection that an error of a request implies.
pub(super) fn loss_of(error: RequestError) -> ConnectionLoss {
    match error {
        RequestError::Unauthorized(reason) => ConnectionLoss::Unauthorized(reason),
        RequestError::Http { status: 403, detail } => ConnectionLoss::Unauthorized(format!("HTTP status 403{detail}")),
        error => ConnectionLoss::Failed(error.to_string()),
    }
}
