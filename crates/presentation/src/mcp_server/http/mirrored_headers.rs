//! Checks that the headers of a request match its body (MCP 2026-07-28, basic/transports/streamable-http, "Server
//! Validation"). A proxy that routes or refuses by the headers must not be deceived by another body.

use crate::mcp_server::protocol_error::of_kind;
use http::HeaderMap;
use serde_json::{Map, Value};
use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use toolstead_application::{RegisteredTool, ToolRegistry};
use toolstead_domain::{View, error_kind::ErrorKind};
use toolstead_infrastructure::mcp::wire::{
    headers::{self, InvalidHeader, ParamHeaders},
    message::RpcError,
};

/// Comparison of headers with bodies. The mirrored parameters of a tool are read from its schema once.
#[derive(Debug)]
pub(super) struct MirroredHeaderValidator {
    registry: Arc<ToolRegistry>,
    known: Mutex<ParamHeaderCache>,
}

/// Mirrored parameters of the tools of one snapshot.
#[derive(Debug, Default)]
struct ParamHeaderCache {
    version: u64,
    by_tool: HashMap<String, Arc<ParamHeaders>>,
}

impl MirroredHeaderValidator {
    pub(super) fn new(registry: Arc<ToolRegistry>) -> Self {
        Self { registry, known: Mutex::default() }
    }

    /// Checks `MCP-Protocol-Version` against the version in the body.
    ///
    /// # Errors
    /// -32020 if the header is missing, invalid or different.
    pub(super) fn check_version(&self, headers: &HeaderMap, named: &str) -> Result<(), RpcError> {
        check(headers::text_of(headers, &headers::PROTOCOL_VERSION), "MCP-Protocol-Version", named)
    }

    /// Checks `Mcp-Method` and `Mcp-Name`, and `Mcp-Param-*` of a `tools/call`.
    ///
    /// # Errors
    /// -32020 if a header is missing, invalid or different from the body.
    pub(super) fn check_request(
        &self,
        headers: &HeaderMap,
        view: Option<&View>,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<(), RpcError> {
        match headers::mirrored_name(method, params) {
            Some(name) if method == "tools/call" => {
                self.check_call(headers, view, name, params.get("arguments").and_then(Value::as_object))
            }
            name => check_names(headers, method, name),
        }
    }

    /// Checks `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` of a `tools/call`. An unknown tool has no mirrored parameters.
    ///
    /// # Errors
    /// -32020 if a header is missing, invalid or different from the body.
    pub(super) fn check_call(
        &self,
        headers: &HeaderMap,
        view: Option<&View>,
        tool: &str,
        arguments: Option<&Map<String, Value>>,
    ) -> Result<(), RpcError> {
        check_names(headers, "tools/call", Some(tool))?;
        // An unknown tool, and arguments other than an object, are refused later by the call itself.
        let own = view.and_then(|view| view.content.as_ref()?.tool_named(tool)).unwrap_or(tool);
        let Some(mirrored) = self.of_tool(own) else { return Ok(()) };
        let none = Map::new();
        mirrored.check(headers, arguments.unwrap_or(&none)).map_err(|error| mismatch(&error))
    }

    /// Returns the mirrored parameters of the tool; `None` if it has none or is unknown.
    fn of_tool(&self, name: &str) -> Option<Arc<ParamHeaders>> {
        let snapshot = self.registry.snapshot();
        let tool = snapshot.resolve(name).ok()?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.version != snapshot.version() {
            *known = ParamHeaderCache { version: snapshot.version(), ..ParamHeaderCache::default() };
        }
        let canonical = tool.tool.name().as_str();
        let mirrored = match known.by_tool.get(canonical) {
            Some(mirrored) => mirrored.clone(),
            None => {
                let mirrored = Arc::new(read(tool));
                known.by_tool.insert(canonical.to_owned(), mirrored.clone());
                mirrored
            }
        };
        (!mirrored.is_empty()).then_some(mirrored)
    }
}

/// Reads the mirrored parameters of the tool. Invalid annotations yield none, with a warning, because clients ignore
/// such a tool.
fn read(tool: &RegisteredTool) -> ParamHeaders {
    ParamHeaders::of_schema(tool.tool.input_schema()).unwrap_or_else(|error| {
        tracing::warn!(tool = %tool.tool.name(), %error, "clients over HTTP will not use the tool");
        ParamHeaders::default()
    })
}

fn check_names(headers: &HeaderMap, method: &str, name: Option<&str>) -> Result<(), RpcError> {
    check(headers::text_of(headers, &headers::METHOD), "Mcp-Method", method)?;
    name.map_or(Ok(()), |name| check(headers::text_of(headers, &headers::NAME), "Mcp-Name", name))
}

fn check(header: Result<Option<Cow<'_, str>>, InvalidHeader>, name: &str, body: &str) -> Result<(), RpcError> {
    match header.map_err(|error| mismatch(&error))? {
        Some(text) if text == body => Ok(()),
        Some(_) => Err(mismatch(&InvalidHeader(format!("the header `{name}` does not say what the body says")))),
        None => Err(mismatch(&InvalidHeader(format!("the header `{name}` is missing")))),
    }
}

fn mismatch(error: &InvalidHeader) -> RpcError {
    of_kind(RpcError::HEADER_MISMATCH, ErrorKind::InvalidInput, format!("Header mismatch: {error}"))
}
