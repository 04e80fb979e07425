//! One request to an API of Google, on behalf of a principal. Gmail and Google Calendar are based on it.
//!
//! If there are no credentials and the caller supports it, the user signs in during the call. Refused credentials are
//! renewed once. Only reading is repeated automatically.

use crate::{
    services::{error_message::without_keys, one_line::one_line},
    web::web_client::{HostCheck, RedirectPolicy, RetryPolicy, UrlSource, WebClient, WebRequest, WebResponse},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout_at};
use toolstead_domain::{
    Caller, CredentialHeaders, Credentials, CredentialsError, Principal, Suggestion, ToolFailure,
    error_kind::ErrorKind, ports::credentials::ProtectedResource,
};
use url::Url;

/// Maximum number of retries of a reading that Google refused with 403 as too many requests. [`WebClient`] handles all
/// other retries.
const TRIES_AGAIN: u32 = 4;
/// Pause before the first retry of a reading that Google refused as too many requests. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Maximum length of an error message of Google, in characters.
const SAID_CHARACTERS: usize = 300;
/// Message of `serde_json` for an answer that exceeds its limit of nesting.
const TOO_DEEP: &str = "recursion limit exceeded";

/// Client of one of Google's APIs with the account of a principal, for one call.
#[derive(Clone)]
pub struct GoogleApiClient<'a> {
    /// Name of the service for people: `Gmail`.
    pub service: &'static str,
    /// HTTP client.
    pub reach: &'a WebClient,
    /// Source of credentials.
    pub credentials: &'a dyn Credentials,
    /// Owner of the account.
    pub principal: &'a Principal,
    /// Grant and origin of the credentials.
    pub resource: ProtectedResource,
    /// Check, made before each request, that the host may be reached.
    pub judge: HostCheck<'a>,
    /// Caller that is asked to sign in if necessary. Its waiting time is added to the deadline.
    pub caller: &'a dyn Caller,
    /// Deadline of the call.
    pub deadline: Instant,
}

impl std::fmt::Debug for GoogleApiClient<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GoogleApiClient").field("resource", &self.resource).finish_non_exhaustive()
    }
}

/// One request.
#[derive(Debug, Clone)]
pub struct GoogleRequest {
    /// Address with its query.
    pub url: Url,
    /// Effect of the request.
    pub effect: RequestEffect,
    /// Maximum size of the answer, in bytes.
    pub answer_bytes: usize,
}

/// The effect of a request.
#[derive(Debug, Clone)]
pub enum RequestEffect {
    /// Reads (GET), and may be retried.
    Reads,
    /// Changes something (POST), and is never retried.
    Changes {
        /// Body of the request.
        body: Value,
        /// Advice before a further request, for a failure of a request that may have taken effect.
        doubt: &'static str,
    },
}

/// Returns the resource of a grant at the service with this address: its origin, without path or query.
pub fn resource(grant: &str, base_url: &Url) -> ProtectedResource {
    ProtectedResource { grant: grant.into(), origin: base_url.origin().ascii_serialization().into() }
}

/// Returns an address below that of a service. Segments are escaped.
pub fn address(base_url: &Url, segments: &[&str], query: &[(&str, &str)]) -> Url {
    let mut url = base_url.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url.set_query(None);
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    url
}

impl GoogleApiClient<'_> {
    /// Makes the request. Asks the caller to sign in if there are no credentials, and renews refused ones once. The
    /// answer is JSON, or null if it is empty.
    ///
    /// # Errors
    /// `auth_required` if no one could sign in, and Google's refusals by kind: `invalid_input` (400), `not_found`
    /// (404), `auth_required` (401, a scope that was not granted), `permission_denied` (another 403), `rate_limited`,
    /// `upstream_http`; `too_large` for an answer above the limit.
    pub async fn call(&self, request: &GoogleRequest) -> Result<Value, ToolFailure> {
        let mut headers = match self.credentials.headers(self.principal, &self.resource).await {
            Err(CredentialsError::SignIn(_)) => self.sign_in().await?,
            found => found.map_err(|none| self.without(none))?,
        };
        let mut was_renewed = false;
        let mut tries_left = TRIES_AGAIN;
        let mut pause = FIRST_PAUSE;
        loop {
            let answer = self.send(request, &headers).await?;
            if answer.status == StatusCode::UNAUTHORIZED && !was_renewed {
                was_renewed = true;
                headers = match self.credentials.renewed(self.principal, &self.resource, &headers).await {
                    Err(CredentialsError::SignIn(_)) => self.sign_in().await?,
                    found => found.map_err(|none| self.without(none))?,
                };
                continue;
            }
            let refusal = match answer.status.is_success() {
                true => return self.read(&answer, request),
                false => GoogleApiError::of(&answer, &headers),
            };
            let reads = matches!(request.effect, RequestEffect::Reads);
            if reads && refusal.is_too_many() && answer.status == StatusCode::FORBIDDEN && tries_left > 0 {
                tries_left -= 1;
                if timeout_at(self.end().into(), sleep(pause)).await.is_ok() {
                    pause *= 2;
                    continue;
                }
            }
            return Err(self.refused(&refusal, request));
        }
    }

    fn end(&self) -> Instant {
        self.deadline + self.caller.waited()
    }

    async fn sign_in(&self) -> Result<CredentialHeaders, ToolFailure> {
        let signed_in = self.credentials.sign_in(self.principal, &self.resource, self.caller).await;
        signed_in.map_err(|none| self.without(none))?;
        self.credentials.headers(self.principal, &self.resource).await.map_err(|none| self.without(none))
    }

    fn without(&self, none: CredentialsError) -> ToolFailure {
        let kind = match &none {
            CredentialsError::SignIn(_) => ErrorKind::AuthRequired,
            CredentialsError::Unavailable(_) => ErrorKind::Unavailable,
            CredentialsError::Failed(_) => ErrorKind::UpstreamProtocol,
        };
        let failure = ToolFailure::new(kind, format!("{}: {none}", self.service));
        match none {
            CredentialsError::SignIn(_) => failure.suggest(self.signing_in()),
            CredentialsError::Unavailable(_) | CredentialsError::Failed(_) => failure,
        }
    }

    fn signing_in(&self) -> Suggestion {
        let principal = Some(self.principal).filter(|principal| **principal != Principal::local());
        Suggestion::SignIn { grant: self.resource.grant.to_string(), principal: principal.map(ToString::to_string) }
    }

    async fn send(&self, request: &GoogleRequest, credentials: &CredentialHeaders) -> Result<WebResponse, ToolFailure> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        for (name, value) in credentials {
            let name = HeaderName::try_from(name.as_str());
            let value = HeaderValue::try_from(value.expose());
            let (Ok(name), Ok(mut value)) = (name, value) else {
                return Err(self.without(CredentialsError::Failed("the credentials are not valid in a header".into())));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let (method, body, again, doubt) = match &request.effect {
            RequestEffect::Reads => (Method::GET, Bytes::new(), RetryPolicy::OnTransientFailure, None),
            RequestEffect::Changes { body, doubt } => {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                (Method::POST, body.to_string().into(), RetryPolicy::Never, Some(*doubt))
            }
        };
        let web_request = WebRequest {
            method,
            url: &request.url,
            headers,
            body,
            url_source: UrlSource::Configuration,
            redirects: RedirectPolicy::None,
            retry: again,
            body_bytes: request.answer_bytes,
            deadline: self.end(),
        };
        self.reach.send(web_request, self.judge).await.map_err(|error| {
            let failure = error.into_failure(self.service);
            match (doubt, failure.kind) {
                // A request that was refused, or was never sent, had no effect.
                (Some(_), ErrorKind::PermissionDenied | ErrorKind::Unavailable) | (None, _) => failure,
                (Some(doubt), _) => failure.next(doubt),
            }
        })
    }

    fn read(&self, answer: &WebResponse, request: &GoogleRequest) -> Result<Value, ToolFailure> {
        let doubted = |failure: ToolFailure| match &request.effect {
            RequestEffect::Reads => failure,
            RequestEffect::Changes { .. } => failure.next("The request was carried out anyway."),
        };
        if answer.is_cut {
            let message = format!("{}: the answer is longer than {} bytes", self.service, request.answer_bytes);
            return Err(doubted(ToolFailure::new(ErrorKind::TooLarge, message)));
        }
        if answer.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&answer.body).map_err(|error| {
            let what = match error.to_string().starts_with(TOO_DEEP) {
                true => "the answer is nested too deeply",
                false => "the answer is not valid JSON",
            };
            let message = format!("{}: {what}", self.service);
            doubted(ToolFailure::new(ErrorKind::UpstreamProtocol, message).caused_by(error))
        })
    }

    fn refused(&self, refusal: &GoogleApiError, request: &GoogleRequest) -> ToolFailure {
        let status = refusal.status;
        let kind = match status.as_u16() {
            400 => ErrorKind::InvalidInput,
            401 => ErrorKind::AuthRequired,
            403 if refusal.is_too_many() => ErrorKind::RateLimited,
            403 if refusal.reason == "insufficientPermissions" => ErrorKind::AuthRequired,
            403 => ErrorKind::PermissionDenied,
            404 => ErrorKind::NotFound,
            429 => ErrorKind::RateLimited,
            _ => ErrorKind::UpstreamHttp,
        };
        let failure = ToolFailure::new(kind, format!("{} says {refusal}", self.service));
        let grant = &self.resource.grant;
        match (kind, &request.effect) {
            (ErrorKind::AuthRequired, _) if status == StatusCode::FORBIDDEN => failure
                .next(format!(
                    "The user has not granted all of `{grant}`. Ask your user to sign in again and to grant it."
                ))
                .suggest(self.signing_in()),
            (ErrorKind::AuthRequired, _) => failure.suggest(self.signing_in()),
            (ErrorKind::RateLimited, _) => match &refusal.wait {
                Some(wait) => failure.next(format!("Try again after `Retry-After: {wait}`.")),
                None => failure.next("Try again in a minute."),
            },
            (_, RequestEffect::Changes { doubt, .. }) if leaves_doubt(status) => failure.next(*doubt),
            _ => failure,
        }
    }
}

/// Returns `true` if the request may have taken effect: the service broke off, timed out, or redirects, as some
/// services do after a change.
fn leaves_doubt(status: StatusCode) -> bool {
    status.is_server_error() || status.is_redirection() || status == StatusCode::REQUEST_TIMEOUT
}

/// An error of Google.
#[derive(Debug)]
struct GoogleApiError {
    status: StatusCode,
    reason: String,
    message: String,
    wait: Option<String>,
}

impl GoogleApiError {
    /// Parses an error. A service may repeat the refused credentials, so they are removed.
    fn of(answer: &WebResponse, credentials: &CredentialHeaders) -> Self {
        let said = |text: &str| clean_message(text, credentials);
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(said).unwrap_or_default();
        let wait = answer.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        Self {
            status: answer.status,
            reason: text("/error/errors/0/reason"),
            message: text("/error/message"),
            wait: wait.map(said).filter(|wait| !wait.is_empty()),
        }
    }

    fn is_too_many(&self) -> bool {
        matches!(self.reason.as_str(), "rateLimitExceeded" | "userRateLimitExceeded")
    }
}

impl std::fmt::Display for GoogleApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.status)?;
        match (self.message.as_str(), self.reason.as_str()) {
            ("", "") => Ok(()),
            (message, "") => write!(f, ": `{message}`"),
            ("", reason) => write!(f, " (`{reason}`)"),
            (message, reason) => write!(f, " (`{reason}`): `{message}`"),
        }
    }
}

/// Returns a text of the service in a form that cannot leave its line or its backticks.
fn clean_message(text: &str, credentials: &CredentialHeaders) -> String {
    // Only the token of `Bearer TOKEN`.
    let tokens = credentials.iter().filter_map(|(_, value)| value.expose().split_whitespace().next_back());
    one_line(&without_keys(text, tokens).replace('`', " "), SAID_CHARACTERS)
}

#[cfg(test)]
mod tests;
