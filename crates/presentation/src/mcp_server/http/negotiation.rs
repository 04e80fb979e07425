//! Content types of requests and responses.

use http::{HeaderMap, header};

/// Content types that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accept {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accept {
    /// Parses `Accept`. Clients have to name both types (MCP 2025-11-25 and 2026-07-28, basic/transports). This server
    /// also accepts one of them, a wildcard, or no header.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        // The text is that of the specification, which most clients send.
        if headers.get(header::ACCEPT).is_none_or(|value| value == "application/json, text/event-stream") {
            return Self { json: true, events: true };
        }
        let mut accept = Self { json: false, events: false };
        let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for range in values.flat_map(|value| value.split(',')) {
            let (range, parameters) = range.split_once(';').unwrap_or((range, ""));
            if parameters.split(';').any(is_refusal) {
                continue;
            }
            let range = range.trim();
            let is_any_of = |names: [&str; 3]| names.iter().any(|name| range.eq_ignore_ascii_case(name));
            accept.json |= is_any_of(["application/json", "application/*", "*/*"]);
            accept.events |= is_any_of(["text/event-stream", "text/*", "*/*"]);
        }
        accept
    }
}

/// Returns `true` for `q=0`, with up to three zeros after the point (RFC 9110, 12.4.2).
fn is_refusal(parameter: &str) -> bool {
    let parameter = parameter.trim().as_bytes();
    parameter.len() > 2
        && parameter[..2].eq_ignore_ascii_case(b"q=")
        && parameter[2..].iter().all(|byte| matches!(byte, b'0' | b'.'))
}

/// Returns `true` if the content type is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case("application/json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[track_caller]
    fn check(values: &[&'static str], json: bool, events: bool) {
        let values = values.iter().map(|value| (header::ACCEPT, HeaderValue::from_static(value)));
        let mut headers = HeaderMap::new();
        headers.extend(values);
        assert_eq!(Accept::of(&headers), Accept { json, events });
    }

    #[test]
    fn the_accept_header_is_parsed_leniently() {
        check(&["application/json, text/event-stream"], true, true);
        check(&["application/json", "TEXT/Event-Stream;q=0.5"], true, true);
        check(&["*/*"], true, true);
        check(&[], true, true);
        check(&["application/json"], true, false);
        check(&["text/event-stream, application/json;q=0"], false, true);
        check(&["text/event-stream, application/json; q=0.000"], false, true);
        check(&["text/html"], false, false);
    }

    #[test]
    fn the_content_type_of_a_body_must_be_json() {
        let is = |value: &'static str| {
            is_json(&HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(value))]))
        };
        assert!(is("application/json") && is("Application/JSON ; charset=utf-8"));
        assert!(!is("text/plain") && !is("application/jsonx") && !is_json(&HeaderMap::new()));
    }
}
