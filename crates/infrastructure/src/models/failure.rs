//! Errors reported by a provider, and whether a retry may succeed.

use crate::http::{http_error::HttpError, pause::wanted_pause};
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use std::time::Duration;
use toolstead_domain::{ModelError, error_chain::with_causes};

/// Maximum pause that a provider may request. After a longer one the request is not retried.
const LONGEST_WISH: Duration = Duration::from_secs(120);
/// Parts of providers' error codes and messages for a request that is too long, in lower case.
const TOO_LONG: [&str; 9] = [
    "prompt is too long",
    "context_length_exceeded",
    "request_too_large",
    "maximum context length",
    "exceeds the maximum number of tokens",
    "exceed context limit",
    "exceeds the context window",
    "exceed_context_size",
    "input is too long",
];

/// Failure of one attempt.
#[derive(Debug)]
pub(super) struct AttemptFailure {
    pub(super) error: ModelError,
    /// `true` if a retry may succeed.
    pub(super) is_temporary: bool,
    /// Pause that the provider requests.
    pub(super) retry_after: Option<Duration>,
}

/// Error as reported by a provider.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ReportedError {
    /// Code, status or type of the error, as the provider names it; empty if it names none.
    pub(super) kind: String,
    /// Error message.
    pub(super) message: String,
}

impl ReportedError {
    /// Parses `{"error": {"type"|"code"|"status", "message"}}`, `{"error": "…"}`, `{"message"|"detail": "…"}`, or a
    /// list that begins with one of these. Returns `None` without a message.
    pub(super) fn of(document: &Value) -> Option<Self> {
        let document = document.get(0).unwrap_or(document);
        let error = document.get("error").filter(|error| !error.is_null()).unwrap_or(document);
        let text = |value: &Value, names: &[&str]| {
            let found = names.iter().find_map(|name| value.get(name)?.as_str().filter(|text| !text.is_empty()));
            found.map(str::to_owned)
        };
        let message = match error {
            Value::String(text) => Some(text.clone()),
            _ => text(error, &["message", "detail"]),
        };
        // A code is more specific than a type: `context_length_exceeded` has the type `invalid_request_error`.
        let kind = text(error, &["code", "status", "type"]).unwrap_or_default();
        Some(Self { kind, message: message? })
    }
}

impl AttemptFailure {
    /// Creates a permanent fault.
    pub(super) fn lasting(error: ModelError) -> Self {
        Self { error, is_temporary: false, retry_after: None }
    }

    /// Creates a temporary fault, after which a retry may succeed.
    pub(super) fn passing(error: ModelError) -> Self {
        let retry_after = match &error {
            ModelError::RateLimited { retry_after, .. } => *retry_after,
            _ => None,
        };
        Self { error, is_temporary: true, retry_after }
    }

    /// Returns the fault for an error response. `body` is the beginning of its body.
    pub(super) fn of_response(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let reported = match serde_json::from_slice(body) {
            Ok(document) => ReportedError::of(&document).unwrap_or_default(),
            Err(_) => ReportedError { kind: String::new(), message: text_of(body) },
        };
        let retry_after = wanted_pause(headers);
        let error = error_of(Some(status.as_u16()), &reported, retry_after);
        let by_status = matches!(status.as_u16(), 408 | 409 | 429) || status.is_server_error();
        let by_header = headers.get("x-should-retry").and_then(|value| value.to_str().ok());
        let is_passing = match (&error, by_header) {
            (ModelError::ContextTooLong(_) | ModelError::Unauthorized(_), _) => false,
            _ if reported.kind == "insufficient_quota" => false,
            (_, Some("true")) => true,
            (_, Some("false")) => false,
            _ => by_status,
        };
        let is_soon = retry_after.is_none_or(|wish| wish <= LONGEST_WISH);
        Self { error, is_temporary: is_passing && is_soon, retry_after }
    }
}

impl From<HttpError> for AttemptFailure {
    fn from(error: HttpError) -> Self {
        let text = with_causes(&error);
        match error {
            HttpError::Unreachable(_) | HttpError::Broken(_) => Self::passing(ModelError::Unreachable(text)),
            HttpError::NotPublic(_) | HttpError::Certificates(_) | HttpError::Address(_) => {
                Self::lasting(ModelError::Unreachable(text))
            }
            HttpError::TooLong { .. } | HttpError::Event(_) => Self::lasting(ModelError::Protocol(text)),
        }
    }
}

/// Returns the error for a provider's status code and error.
pub(super) fn error_of(status: Option<u16>, reported: &ReportedError, retry_after: Option<Duration>) -> ModelError {
    let ReportedError { kind, message } = reported;
    let words = match (status, kind.as_str(), message.as_str()) {
        (Some(status), "", "") => format!("the provider answered with HTTP status {status}"),
        (Some(status), "", message) => format!("the provider answered with HTTP status {status}: {message}"),
        (Some(status), kind, message) => {
            format!("the provider answered with HTTP status {status}, {kind}: {message}")
        }
        (None, "", message) => format!("the provider answered with an error: {message}"),
        (None, kind, message) => format!("the provider answered with an error, {kind}: {message}"),
    };
    let is_too_long = || {
        let (kind, message) = (kind.to_lowercase(), message.to_lowercase());
        TOO_LONG.iter().any(|words| kind.contains(words) || message.contains(words))
    };
    match (status, kind.as_str()) {
        (Some(401 | 403), _)
        | (
            _,
            "authentication_error" | "permission_error" | "invalid_api_key" | "UNAUTHENTICATED" | "PERMISSION_DENIED",
        ) => ModelError::Unauthorized(format!("{words}; check the model's key, and that it may use this model")),
        (Some(413), _) => ModelError::ContextTooLong(words),
        (None | Some(400..=499), _) if is_too_long() => ModelError::ContextTooLong(words),
        (Some(429 | 529), _)
        | (
            _,
            "rate_limit_error"
            | "rate_limit_exceeded"
            | "overloaded_error"
            | "RESOURCE_EXHAUSTED"
            | "insufficient_quota",
        ) => ModelError::RateLimited { message: words, retry_after },
        // With these kinds, providers report in the stream what would be a 500 status before it.
        (
            None,
            "api_error" | "timeout_error" | "server_error" | "internal_server_error" | "INTERNAL" | "UNAVAILABLE",
        ) => ModelError::Refused { status: Some(500), message: words },
        _ => ModelError::Refused { status, message: words },
    }
}

/// Returns the text of a body that is not JSON; empty for HTML pages.
fn text_of(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    if text.trim_start().starts_with('<') { String::new() } else { text.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use toolstead_domain::error_kind::ErrorKind;

    #[track_caller]
    fn check(status: u16, body: &str, kind: ErrorKind, is_passing: bool) {
        let fault =
            AttemptFailure::of_response(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body.as_bytes());
        assert_eq!((fault.error.kind(), fault.is_temporary), (kind, is_passing), "{status} {body}: {:?}", fault.error);
    }

    #[test]
    fn provider_errors_are_classified_by_their_status_and_body() {
        let anthropic = |kind: &str, message: &str| {
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_1"}}"#)
        };
        check(401, &anthropic("authentication_error", "invalid x-api-key"), ErrorKind::AuthRequired, false);
        check(403, &anthropic("permission_error", "no"), ErrorKind::AuthRequired, false);
        let long = anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum");
        check(400, &long, ErrorKind::TooLarge, false);
        check(413, &anthropic("request_too_large", "Request exceeds the maximum size"), ErrorKind::TooLarge, false);
        check(413, "<html>", ErrorKind::TooLarge, false);
        check(429, &anthropic("rate_limit_error", "slow down"), ErrorKind::RateLimited, true);
        check(529, &anthropic("overloaded_error", "Overloaded"), ErrorKind::RateLimited, true);
        check(400, &anthropic("invalid_request_error", "tools.0: wrong"), ErrorKind::UpstreamHttp, false);
        check(500, &anthropic("api_error", "Internal server error"), ErrorKind::UpstreamHttp, true);
        check(503, "", ErrorKind::UpstreamHttp, true);
        check(408, "", ErrorKind::UpstreamHttp, true);
        check(409, "", ErrorKind::UpstreamHttp, true);
        check(404, &anthropic("not_found_error", "model: x"), ErrorKind::UpstreamHttp, false);
        check(302, "", ErrorKind::UpstreamHttp, false);
        let openai = r#"{"error":{"message":"This model's maximum context length is 1","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#;
        check(400, openai, ErrorKind::TooLarge, false);
        let quota = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        check(429, quota, ErrorKind::RateLimited, false);
        let gemini = r#"[{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED"}}]"#;
        check(429, gemini, ErrorKind::RateLimited, true);
        let gemini = r#"{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}"#;
        check(400, gemini, ErrorKind::TooLarge, false);
        check(404, r#"{"error":"model 'x' not found"}"#, ErrorKind::UpstreamHttp, false);
    }

    #[test]
    fn response_headers_determine_whether_a_failure_is_temporary() {
        let with = |status: u16, name: &'static str, value: &'static str| {
            let headers =
                HeaderMap::from_iter([(http::HeaderName::from_static(name), HeaderValue::from_static(value))]);
            AttemptFailure::of_response(StatusCode::from_u16(status).unwrap(), &headers, b"")
        };
        assert!(!with(500, "x-should-retry", "false").is_temporary);
        assert!(with(400, "x-should-retry", "true").is_temporary);
        assert!(with(429, "retry-after", "120").is_temporary);
        let late = with(429, "retry-after", "3600");
        assert!(!late.is_temporary);
        let ModelError::RateLimited { retry_after, .. } = late.error else { panic!("{late:?}") };
        assert_eq!(retry_after, Some(Duration::from_secs(3600)));
    }
}
