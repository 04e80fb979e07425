//! First messages of a connection, in both generations.

use crate::mcp::client::{
    connection::{
        handshake_result::{
            HandshakeResult, initialize_params, lists_version, read_discover_result, read_initialize_result,
        },
        request::ConnectionRequestSerializer,
        request_error::RequestError,
    },
    transport::Transport,
};
use serde_json::Map;
use toolstead_domain::ProtocolVersion;

/// Initializes the connection to a legacy server (MCP 2025-11-25, basic/lifecycle).
///
/// # Errors
/// Returns [`RequestError`]; [`Malformed`](RequestError::Malformed) if the server requires an unsupported protocol
/// version.
pub(in crate::mcp::client) async fn initialize(
    transport: &dyn Transport,
    offered: ProtocolVersion,
) -> Result<HandshakeResult, RequestError> {
    let capabilities = &transport.peer().capabilities;
    let writer = ConnectionRequestSerializer::new(offered, capabilities);
    let answer = transport.request(&writer, "initialize", &initialize_params(offered, capabilities)).await?;
    let card = read_initialize_result(answer)?;
    let writer = ConnectionRequestSerializer::new(card.version, capabilities);
    match transport.notify(&writer, "notifications/initialized").await {
        // The server has responded, so it works even if it rejects the notification.
        Ok(()) | Err(RequestError::Http { .. }) => Ok(card),
        Err(error) => Err(error),
    }
}

/// Requests the description of a modern server (MCP 2026-07-28, server/discover).
///
/// # Errors
/// Returns [`RequestError`]; [`Malformed`](RequestError::Malformed) if the response is not that of a modern server.
pub(in crate::mcp::client) async fn discover(transport: &dyn Transport) -> Result<HandshakeResult, RequestError> {
    let writer = ConnectionRequestSerializer::new(ProtocolVersion::NEWEST, &transport.peer().capabilities);
    let mut answer = transport.request(&writer, "server/discover", &Map::new()).await?;
    if let Ok(Err(error)) = answer.result_text()
        && error.data.as_ref().is_some_and(|data| lists_version(data.get("supported"), ProtocolVersion::NEWEST))
    {
        // The error lists the requested version as supported, so the request is sent again (MCP 2026-07-28,
        // basic/versioning).
        answer = transport.request(&writer, "server/discover", &Map::new()).await?;
    }
    read_discover_result(answer)
}
