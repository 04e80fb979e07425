//! Endpoint of a server, with the credentials of the connection's principal.

use crate::{
    http::{
        client::{EndpointClient, Request},
        http_error::HttpError,
        response::Response,
    },
    mcp::client::{config::UpstreamCredentials, connection::foreign_text::shown},
};
use futures::{
    FutureExt, TryFutureExt,
    future::{Either, ready},
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use toolstead_domain::{CredentialHeaders, CredentialsError, Principal, ports::credentials::Challenge};

/// Maximum number of times that one request is sent again with other credentials.
const MAX_REPETITIONS: u32 = 2;
/// Maximum number of characters of a challenge to read.
const MAX_CHALLENGE_CHARS: usize = 4096;

/// Reason why a request has no response.
pub(super) enum SendError {
    /// The request failed.
    Http(HttpError),
    /// The principal has no credentials that the server accepts. The text names the reason.
    NoCredentials(String),
    /// The credentials of the principal do not suffice for this request. The text names the reason.
    InsufficientScope(String),
}

impl From<HttpError> for SendError {
    fn from(error: HttpError) -> Self {
        Self::Http(error)
    }
}

/// Credentials of one principal for one server.
pub(super) struct PrincipalCredentials {
    source: UpstreamCredentials,
    principal: Principal,
    /// `true` once a request was sent with credentials.
    is_used: AtomicBool,
    /// `true` once a request was sent without credentials, because none were available and the server may require none.
    /// Reset if a challenge is answered with credentials.
    is_open: AtomicBool,
}

/// Endpoint whose requests carry the credentials of one principal, if the server requires credentials.
#[derive(Debug, Clone)]
pub(super) struct AuthorizedEndpoint {
    endpoint: EndpointClient,
    credentials: Option<Arc<PrincipalCredentials>>,
}

impl PrincipalCredentials {
    pub(super) fn new(source: UpstreamCredentials, principal: Principal) -> Self {
        Self { source, principal, is_used: AtomicBool::new(false), is_open: AtomicBool::new(false) }
    }

    /// Returns `true` if requests need no credentials, as far as is known.
    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Returns the headers with the credentials. If there are none and the server may require none, returns no headers
    /// and records that requests need no credentials.
    async fn headers(&self) -> Result<CredentialHeaders, CredentialsError> {
        let UpstreamCredentials { source, resource, is_optional, .. } = &self.source;
        match source.headers(&self.principal, resource).await {
            Err(_) if *is_optional => {
                self.is_open.store(true, Ordering::Relaxed);
                Ok(CredentialHeaders::new())
            }
            headers => headers,
        }
    }

    /// Returns other credentials after the server refused `refused`.
    async fn challenged(
        &self,
        refused: &CredentialHeaders,
        challenge: &Challenge,
    ) -> Result<CredentialHeaders, CredentialsError> {
        self.source.source.challenged(&self.principal, &self.source.resource, refused, challenge).await
    }
}

impl AuthorizedEndpoint {
    pub(super) fn new(endpoint: EndpointClient, credentials: Option<Arc<PrincipalCredentials>>) -> Self {
        Self { endpoint, credentials }
    }

    /// Returns `true` if requests were sent with credentials of the connection's principal.
    pub(super) fn has_credentials(&self) -> bool {
        self.credentials.as_ref().is_some_and(|credentials| credentials.is_used.load(Ordering::Relaxed))
    }

    /// Sends a request. A request that the server refused unprocessed is sent again with renewed credentials.
    ///
    /// # Errors
    /// Returns [`SendError`].
    pub(super) fn send(&self, request: Request) -> impl Future<Output = Result<Response, SendError>> + Send {
        // Combinators, because an async function would hold the request twice.
        match self.credentials.as_ref().filter(|credentials| !credentials.is_open()) {
            Some(credentials) => Either::Left(self.send_authorized(credentials, request).boxed()),
            None => Either::Right(self.endpoint.send(request).err_into().and_then(|response| self.checked(response))),
        }
    }

    /// Returns the response to a request without credentials, or handles the refusal of a server that requires
    /// credentials.
    fn checked(&self, response: Response) -> impl Future<Output = Result<Response, SendError>> + Send {
        match self.credentials.as_ref().and_then(|credentials| Some((credentials, challenge_of(&response)?))) {
            None => Either::Left(ready(Ok(response))),
            Some((credentials, challenge)) => Either::Right(handle_refusal(credentials, challenge).boxed()),
        }
    }

    async fn send_authorized(
        &self,
        credentials: &PrincipalCredentials,
        request: Request,
    ) -> Result<Response, SendError> {
        let mut sent = credentials.headers().await.map_err(|none| SendError::NoCredentials(none.to_string()))?;
        let mut repetitions = 0;
        loop {
            let mut authorized = request.clone();
            insert(&mut authorized.headers, &sent)?;
            if !sent.is_empty() {
                credentials.is_used.store(true, Ordering::Relaxed);
            }
            let response = self.endpoint.send(authorized).await?;
            let Some(challenge) = challenge_of(&response) else { return Ok(response) };
            if repetitions == MAX_REPETITIONS {
                return Ok(response);
            }
            repetitions += 1;
            match credentials.challenged(&sent, &challenge).await {
                Ok(other) if other != sent => {
                    credentials.is_open.store(false, Ordering::Relaxed);
                    sent = other;
                }
                Ok(_) => return Ok(response),
                Err(none) => return Err(error_of(&challenge, &none)),
            }
        }
    }
}

/// Returns the challenge of a response that refuses the credentials: status 401, or 403 for an insufficient scope.
/// `None` for any other response.
fn challenge_of(response: &Response) -> Option<Challenge> {
    let status = response.status();
    // Nearly all responses end here.
    if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return None;
    }
    let values = response.headers().get_all(header::WWW_AUTHENTICATE);
    let values: Vec<String> =
        values.iter().map(|value| shown(&String::from_utf8_lossy(value.as_bytes()), MAX_CHALLENGE_CHARS)).collect();
    let bearer =
        values.iter().position(|value| value.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer")));
    let header = values.into_iter().nth(bearer.unwrap_or(0));
    let challenge = Challenge { status: status.as_u16(), header };
    (status == StatusCode::UNAUTHORIZED || challenge.is_insufficient_scope()).then_some(challenge)
}

/// Handles the first refusal of a request without credentials. Always returns an error, which makes the connection
/// unusable; the next connection has the principal's credentials, if there are any.
async fn handle_refusal(credentials: &PrincipalCredentials, challenge: Challenge) -> Result<Response, SendError> {
    match credentials.challenged(&CredentialHeaders::new(), &challenge).await {
        // An open connection may be shared by principals, so it never begins to carry the credentials of one.
        Ok(_) => {
            let status = challenge.status;
            Err(SendError::NoCredentials(format!("HTTP status {status}: the connection is reopened with the sign-in")))
        }
        Err(none) => Err(error_of(&challenge, &none)),
    }
}

/// Returns the error of a refused request, with the status and the challenge of the server.
fn error_of(challenge: &Challenge, none: &CredentialsError) -> SendError {
    let header = challenge.header.as_ref().map_or(String::new(), |header| format!(", `{}`", shown(header, 200)));
    let reason = format!("HTTP status {}{header}: {none}", challenge.status);
    match challenge.is_insufficient_scope() {
        true => SendError::InsufficientScope(reason),
        false => SendError::NoCredentials(reason),
    }
}

fn insert(headers: &mut HeaderMap, credentials: &CredentialHeaders) -> Result<(), SendError> {
    for (name, value) in credentials {
        let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.expose()))
        else {
            return Err(SendError::NoCredentials("the credentials are not valid in a header".into()));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(())
}

impl fmt::Debug for PrincipalCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrincipalCredentials").field("principal", &self.principal).finish_non_exhaustive()
    }
}
