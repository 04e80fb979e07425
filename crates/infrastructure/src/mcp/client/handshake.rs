//! The first words with a server, in either generation.

use crate::mcp::client::{
    request::RequestWriter,
    request_error::RequestError,
    server_card::{ServerCard, initialize_params, lists_version, read_discover_result, read_initialize_result},
    transport::Transport,
};
use serde_json::Map;
use toolstead_domain::client_profile::ProtocolVersion;

/// Opens the conversation as servers up to 2025-11-25 expect it (MCP 2025-11-25, basic/lifecycle).
///
/// # Errors
/// [`RequestError`]; a server that wants to speak a revision that is not spoken here is
/// [`Malformed`](RequestError::Malformed).
pub(super) async fn initialize(
    transport: &dyn Transport,
    offered: ProtocolVersion,
) -> Result<ServerCard, RequestError> {
    let capabilities = &transport.peer().capabilities;
    let writer = RequestWriter::new(offered, capabilities);
    let answer = transport.request(&writer, "initialize", &initialize_params(offered, capabilities)).await?;
    let card = read_initialize_result(answer)?;
    let writer = RequestWriter::new(card.version, capabilities);
    match transport.notify(&writer, "notifications/initialized").await {
        // It has answered; that it cannot take a notification does not keep it from working.
        Ok(()) | Err(RequestError::Http { .. }) => Ok(card),
        Err(error) => Err(error),
    }
}

/// Asks a server of 2026-07-28 what it is (MCP 2026-07-28, server/discover).
///
/// # Errors
/// [`RequestError`]; what is no answer of a server of that generation is [`Malformed`](RequestError::Malformed).
pub(super) async fn discover(transport: &dyn Transport) -> Result<ServerCard, RequestError> {
    let writer = RequestWriter::new(ProtocolVersion::NEWEST, &transport.peer().capabilities);
    let mut answer = transport.request(&writer, "server/discover", &Map::new()).await?;
    if let Ok(Err(error)) = answer.result_text()
        && error.data.as_ref().is_some_and(|data| lists_version(data.get("supported"), ProtocolVersion::NEWEST))
    {
        // It refused and named the very version that it was asked in: once more (MCP 2026-07-28, basic/versioning).
        answer = transport.request(&writer, "server/discover", &Map::new()).await?;
    }
    read_discover_result(answer)
}
