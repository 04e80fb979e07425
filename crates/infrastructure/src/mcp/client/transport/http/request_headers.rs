//! Headers of requests to the server.

use super::HttpTransport;
use crate::mcp::{
    client::connection::{request::ConnectionRequestSerializer, request_error::RequestError},
    wire::headers::{self, ParamHeaders, encode_value},
};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use toolstead_domain::{ProtocolGeneration, ProtocolVersion};

/// Names of headers that cannot be configured: those that the protocol sets, and those of a single HTTP connection.
const RESERVED: [&str; 6] = ["accept", "content-type", "content-length", "transfer-encoding", "connection", "host"];

/// Returns the headers of every message: `headers`, the configured ones and those of the protocol.
///
/// # Errors
/// Returns the reason why a header is invalid, without its value, which may be a secret.
pub(in crate::mcp::client) fn configured_headers(
    mut headers: HeaderMap,
    configured: &BTreeMap<String, String>,
) -> Result<HeaderMap, String> {
    for (name, value) in configured {
        let header =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is not a valid name of a header"))?;
        let of_the_protocol = header.as_str().starts_with("mcp-") || header == headers::LAST_EVENT_ID;
        if of_the_protocol || RESERVED.contains(&header.as_str()) {
            return Err(format!("the header `{name}` is set by the protocol and cannot be configured"));
        }
        let mut value =
            HeaderValue::from_str(value).map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(headers)
}

/// Method of nearly all requests; preset in the prepared headers.
const CALL: &str = "tools/call";

/// Parts of the body that the headers of a request to a modern server repeat.
pub(super) struct MirroredParts<'a> {
    pub(super) method: &'a str,
    /// Name of the tool, or the subject of another request.
    pub(super) name: Option<&'a str>,
    /// Parameters of the tool that have headers of their own, with the arguments of the call.
    pub(super) params: Option<(&'a ParamHeaders, &'a Map<String, Value>)>,
}

impl<'a> MirroredParts<'a> {
    /// Returns the method alone.
    pub(super) fn method(method: &'a str) -> Self {
        Self { method, name: None, params: None }
    }
}

impl HttpTransport {
    /// Returns the headers of a request in the current session.
    ///
    /// # Errors
    /// Returns [`RequestError::Malformed`] if a value cannot be sent in a header.
    pub(super) fn headers_of(
        &self,
        writer: &ConnectionRequestSerializer,
        mirrored: &MirroredParts<'_>,
    ) -> Result<HeaderMap, RequestError> {
        let MirroredParts { method, name, params } = *mirrored;
        match writer.version.generation() {
            // `initialize` begins a session. Its version is negotiated only with the response.
            ProtocolGeneration::Legacy if method == "initialize" => {
                let mut headers = self.headers.clone();
                headers.remove(headers::PROTOCOL_VERSION);
                Ok(headers)
            }
            ProtocolGeneration::Legacy => Ok(self.message_headers(Some(writer.version))),
            ProtocolGeneration::Modern => {
                let mut headers = self.modern_headers.get_or_init(|| modern_headers(&self.headers)).clone();
                headers.insert(headers::PROTOCOL_VERSION, HeaderValue::from_static(writer.version.as_str()));
                if method != CALL {
                    headers.insert(headers::METHOD, header_value(method)?);
                }
                match name {
                    Some(name) => headers.insert(headers::NAME, header_value(name)?),
                    None => headers.remove(headers::NAME),
                };
                for (name, text) in params.into_iter().flat_map(|(params, arguments)| params.texts(arguments)) {
                    if let Some(text) = text {
                        headers.insert(name.clone(), header_value(&text)?);
                    }
                }
                Ok(headers)
            }
        }
    }

    /// Returns the headers of a message up to 2025-11-25, with this version and the session, if there is one.
    pub(super) fn message_headers(&self, version: Option<ProtocolVersion>) -> HeaderMap {
        let mut headers = match &*self.session.load() {
            Some(session) => session.headers.clone(),
            None => self.headers.clone(),
        };
        match version {
            Some(version) => headers.insert(headers::PROTOCOL_VERSION, HeaderValue::from_static(version.as_str())),
            None => headers.remove(headers::PROTOCOL_VERSION),
        };
        headers
    }
}

/// Prepares the headers of every message. Version and content length are preset, so that setting them in a copy does
/// not make its table grow.
pub(super) fn prepared_headers(mut headers: HeaderMap) -> HeaderMap {
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    headers.insert(headers::PROTOCOL_VERSION, HeaderValue::from_static(ProtocolVersion::NEWEST.as_str()));
    headers
}

fn modern_headers(prepared: &HeaderMap) -> HeaderMap {
    let mut headers = prepared.clone();
    headers.insert(headers::METHOD, HeaderValue::from_static(CALL));
    headers.insert(headers::NAME, HeaderValue::from_static(""));
    headers
}

fn header_value(text: &str) -> Result<HeaderValue, RequestError> {
    HeaderValue::from_str(&encode_value(text))
        .map_err(|_| RequestError::Malformed("a part of the request cannot be sent as a header".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_protocol_and_invalid_headers_without_revealing_their_values() {
        let configured = |name: &str, value: &str| {
            configured_headers(HeaderMap::new(), &BTreeMap::from([(name.into(), value.into())]))
        };
        assert_eq!(configured("Authorization", "Bearer x").unwrap()[header::AUTHORIZATION], "Bearer x");
        for (name, value) in
            [("Mcp-Session-Id", "1"), ("accept", "x"), ("Mcp-Param-A", "x"), ("a b", "x"), ("a", "secret\n")]
        {
            assert!(!configured(name, value).unwrap_err().contains("secret"), "{name}");
        }
    }
}
