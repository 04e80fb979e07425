//! Headers that permit a browser to let pages of an allowed origin send requests and read the responses (WHATWG Fetch,
//! "CORS protocol").

use super::response::{Body, no_content};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, header, request::Parts};
use toolstead_infrastructure::mcp::wire::headers;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// Request headers of MCP clients that browsers do not allow by default.
const HEADERS: [HeaderName; 7] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    headers::SESSION_ID,
    headers::PROTOCOL_VERSION,
    headers::METHOD,
    headers::NAME,
    headers::LAST_EVENT_ID,
];
/// Response headers that a page may read.
const EXPOSED: HeaderValue = HeaderValue::from_static("mcp-session-id, www-authenticate");
/// Seconds for which a browser may cache the permission.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// Returns `true` for a preflight request of a browser. It carries no token.
pub(super) fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Returns the response to a preflight request: the methods and headers of both generations of MCP.
pub(super) fn preflight(asked: &HeaderMap) -> Response<Body> {
    let mut response = no_content();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    if let Ok(allowed) = HeaderValue::from_str(&allowed_headers(asked)) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, REMEMBERED);
    headers.append(header::VARY, HeaderValue::from_static("Access-Control-Request-Headers"));
    response
}

/// Adds the headers with which a browser lets pages of this origin read the response.
pub(super) fn share(response: &mut Response<Body>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}

/// Returns the headers of MCP and those requested ones that mirror parameters of a tool, whose names depend on the
/// tool.
fn allowed_headers(asked: &HeaderMap) -> String {
    let asked = asked.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let asked = asked.filter_map(|value| value.to_str().ok()).flat_map(|names| names.split(','));
    let mirrored = asked.filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok());
    let mirrored = mirrored.filter(|name| name.as_str().starts_with(headers::PARAM_PREFIX));
    let names: Vec<String> = HEADERS.into_iter().chain(mirrored).map(|name| name.to_string()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cors_allows_only_mcp_headers_and_headers_that_mirror_parameters() {
        let mut asked = HeaderMap::new();
        let names = HeaderValue::from_static("x-strange, Mcp-Param-Region,mcp-param-n, mcp-param- x, *");
        asked.insert(header::ACCESS_CONTROL_REQUEST_HEADERS, names);
        assert_eq!(
            allowed_headers(&asked),
            "authorization, content-type, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, last-event-id, \
             mcp-param-region, mcp-param-n"
        );
    }
}
