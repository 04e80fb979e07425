//! What a browser must hear before it lets a page of an allowed origin call, and read the answer (WHATWG Fetch, "CORS
//! protocol").

use super::response::{Body, no_content};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, header, request::Parts};
use toolstead_infrastructure::mcp::wire::headers;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// What clients of MCP send beyond what any page may.
const HEADERS: [HeaderName; 7] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    headers::SESSION_ID,
    headers::PROTOCOL_VERSION,
    headers::METHOD,
    headers::NAME,
    headers::LAST_EVENT_ID,
];
/// What a page may read of an answer beyond its body.
const EXPOSED: HeaderValue = HeaderValue::from_static("mcp-session-id, www-authenticate");
/// Seconds for which a browser need not ask again.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// Whether a browser asks with this request what it may send. It bears no token.
pub(super) fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to the question of a browser: what clients send in both generations of MCP.
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

/// Lets the page read the answer.
pub(super) fn share(response: &mut Response<Body>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}

/// Those of MCP, and of those that are asked for the ones that mirror parameters of a tool: their names are the tool's.
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
    fn headers_of_mcp_are_allowed_and_of_others_those_that_mirror_parameters() {
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
