//! Identity and protocol version of a server, from the handshake.

use crate::mcp::{
    client::connection::{foreign_text::shown, request::client_info, request_error::RequestError},
    wire::{incoming::RawResponse, meta},
};
use serde_json::{Map, Value, json};
use toolstead_domain::{ProtocolGeneration, ProtocolVersion};

/// Description that a server gave of itself in the handshake.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::mcp::client) struct HandshakeResult {
    /// Negotiated protocol version.
    pub(in crate::mcp::client) version: ProtocolVersion,
    /// Name and version in displayable form. Not trustworthy.
    pub(in crate::mcp::client) name: Option<String>,
    /// Capabilities (MCP's `ServerCapabilities`).
    pub(in crate::mcp::client) capabilities: Map<String, Value>,
    /// Instructions for models, unchanged.
    pub(in crate::mcp::client) instructions: Option<String>,
}

impl HandshakeResult {
    /// Returns `true` if the server declares the member `what` of this capability with the value `true`.
    pub(in crate::mcp::client) fn can(&self, capability: &str, what: &str) -> bool {
        self.capabilities.get(capability).and_then(|one| one.get(what)) == Some(&Value::Bool(true))
    }
}

/// Returns the parameters of `initialize`.
pub(in crate::mcp::client) fn initialize_params(
    offered: ProtocolVersion,
    capabilities: &Map<String, Value>,
) -> Map<String, Value> {
    Map::from_iter([
        ("protocolVersion".to_owned(), offered.as_str().into()),
        ("capabilities".to_owned(), capabilities.clone().into()),
        ("clientInfo".to_owned(), client_info()),
    ])
}

/// Reads the response to `initialize`.
///
/// # Errors
/// Returns [`RequestError::Rpc`] for an error of the server, and [`RequestError::Malformed`] unless the result names a
/// supported protocol version of the legacy generation.
pub(in crate::mcp::client) fn read_initialize_result(answer: RawResponse) -> Result<HandshakeResult, RequestError> {
    let result = read_object(answer)?;
    let said = result.get("protocolVersion").and_then(Value::as_str).unwrap_or("");
    let version = ProtocolVersion::parse(said).filter(|version| version.generation() == ProtocolGeneration::Legacy);
    let Some(version) = version else {
        let spoken = ProtocolVersion::ALL.iter().filter(|version| version.generation() == ProtocolGeneration::Legacy);
        let spoken: Vec<_> = spoken.map(|version| version.as_str()).collect();
        let reason = format!("it requests protocol version `{}`; supported are {}", shown(said, 40), spoken.join(", "));
        return Err(RequestError::Malformed(reason));
    };
    Ok(HandshakeResult {
        version,
        name: shown_name(result.get("serverInfo")),
        capabilities: capabilities_of(&result),
        instructions: instructions_of(&result),
    })
}

/// Reads the response to `server/discover`.
///
/// # Errors
/// Returns [`RequestError::Rpc`] for an error of the server, and [`RequestError::Malformed`] unless the result lists
/// the newest protocol version.
pub(in crate::mcp::client) fn read_discover_result(answer: RawResponse) -> Result<HandshakeResult, RequestError> {
    let result = read_object(answer)?;
    if !lists_version(result.get("supportedVersions"), ProtocolVersion::NEWEST) {
        return Err(RequestError::Malformed(format!("it does not support {}", ProtocolVersion::NEWEST)));
    }
    let server_info = result.get("_meta").and_then(|meta| meta.get(meta::SERVER_INFO));
    let server_info = server_info.or_else(|| result.get("serverInfo"));
    let (name, capabilities) = (shown_name(server_info), capabilities_of(&result));
    Ok(HandshakeResult { version: ProtocolVersion::NEWEST, name, capabilities, instructions: instructions_of(&result) })
}

fn read_object(answer: RawResponse) -> Result<Map<String, Value>, RequestError> {
    match answer.into_outcome() {
        Ok(Ok(Value::Object(result))) => Ok(result),
        Ok(Ok(_)) => Err(RequestError::Malformed("its answer to the handshake is not an object".into())),
        Ok(Err(error)) => Err(RequestError::Rpc(error)),
        Err(malformed) => Err(RequestError::Malformed(malformed.to_string())),
    }
}

/// Returns `true` if a list of protocol versions contains this one.
pub(in crate::mcp::client) fn lists_version(list: Option<&Value>, version: ProtocolVersion) -> bool {
    list.and_then(Value::as_array).is_some_and(|versions| versions.contains(&json!(version.as_str())))
}

fn capabilities_of(result: &Map<String, Value>) -> Map<String, Value> {
    result.get("capabilities").and_then(Value::as_object).cloned().unwrap_or_default()
}

fn instructions_of(result: &Map<String, Value>) -> Option<String> {
    result.get("instructions").and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// Returns the name of an `Implementation`, with its version if it has one, shortened for display; `None` without a
/// name.
fn shown_name(info: Option<&Value>) -> Option<String> {
    let member = |name: &str| info?.get(name)?.as_str().map(|text| shown(text, 80)).filter(|text| !text.is_empty());
    let name = member("name")?;
    Some(match member("version") {
        Some(version) => format!("{name} {version}"),
        None => name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::wire::incoming::IncomingMessage;

    fn answer(result: Value) -> RawResponse {
        let text = json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string();
        match IncomingMessage::read(text.into()) {
            Ok(IncomingMessage::Answer(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn initialize_accepts_every_legacy_revision_and_rejects_other_versions() {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let result = json!({"protocolVersion": version, "serverInfo": {"name": "a\u{1b}b", "version": "1"}});
            let card = read_initialize_result(answer(result)).unwrap();
            assert_eq!((card.version.as_str(), card.name.as_deref()), (version, Some("ab 1")));
        }
        for version in [json!("2026-07-28"), json!("1999-01-01"), json!(7), json!(null)] {
            let refused = read_initialize_result(answer(json!({"protocolVersion": version})));
            assert!(
                matches!(refused, Err(RequestError::Malformed(reason)) if reason.contains("2025-11-25")),
                "{version}"
            );
        }
        assert!(read_initialize_result(answer(json!([]))).is_err());
    }

    #[test]
    fn discover_accepts_only_a_server_that_lists_the_modern_revision() {
        let result = json!({
            "supportedVersions": ["2026-07-28", "2030-01-01"],
            "capabilities": {"tools": {"listChanged": true}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n"}},
        });
        let card = read_discover_result(answer(result)).unwrap();
        assert_eq!((card.version, card.name.as_deref()), (ProtocolVersion::V20260728, Some("n")));
        assert_eq!(card.capabilities["tools"]["listChanged"], true);
        for result in
            [json!({}), json!({"supportedVersions": ["2025-11-25"]}), json!({"supportedVersions": "2026-07-28"})]
        {
            assert!(read_discover_result(answer(result.clone())).is_err(), "{result}");
        }
    }
}
