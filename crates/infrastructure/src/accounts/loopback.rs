//! Redirect target of a sign-in on this machine (RFC 8252, section 7.3).
//!
//! Any process on this machine and any page in the browser can send requests to it. Only one is accepted: a GET of `/`
//! with this exact host and the state of the attempt.

use super::{
    attempt::{AuthorizationCode, MAX_ANSWER, RedirectError, SignInAttempt},
    sign_in_error::SignInError,
};
use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Maximum number of open connections. One more closes the oldest. Browsers and other programs may open connections
/// without sending a request; any number of them must not delay the one that does.
const MAX_CONNECTIONS: usize = 64;
/// Timeout for the head of a request to arrive.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Maximum size of a request's head, in bytes.
const MAX_HEAD: usize = 8 << 10;
const MAX_HEADERS: usize = 100;

/// Listening port on the loopback interface.
#[derive(Debug)]
pub(crate) struct LoopbackListener {
    listener: TcpListener,
    address: SocketAddr,
}

/// Outcome of one connection, after its response was sent; `None` if its request was not the redirect of the sign-in.
type RedirectOutcome = Option<Result<AuthorizationCode, SignInError>>;

impl LoopbackListener {
    /// Listens on a free port.
    pub(crate) fn listen() -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        Ok(Self { address: listener.local_addr()?, listener })
    }

    /// Returns the redirect URL to send to the issuer.
    pub(crate) fn redirect_uri(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits for the redirect of this attempt. Dropping the listener refuses all later connections.
    pub(crate) async fn wait_for_code(&self, attempt: &SignInAttempt) -> Result<AuthorizationCode, SignInError> {
        let mut open = FuturesUnordered::new();
        // Ordered by number, so that the first one is the oldest.
        let mut closers: BTreeMap<u64, CancellationToken> = BTreeMap::new();
        let mut numbers = 0..;
        loop {
            tokio::select! {
                biased;
                Some((number, received)) = open.next() => {
                    closers.remove(&number);
                    if let Some(outcome) = received {
                        return outcome;
                    }
                }
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        if closers.len() >= MAX_CONNECTIONS
                            && let Some((_, oldest)) = closers.pop_first()
                        {
                            oldest.cancel();
                        }
                        let (number, closer) = (numbers.next().unwrap_or_default(), CancellationToken::new());
                        closers.insert(number, closer.clone());
                        open.push(async move { (number, self.serve(stream, attempt, closer).await) });
                    }
                    // This may be a shortage of descriptors; the client will retry.
                    Err(error) => {
                        tracing::debug!(%error, "could not accept a connection to the sign-in");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        }
    }

    async fn serve(&self, stream: TcpStream, attempt: &SignInAttempt, closer: CancellationToken) -> RedirectOutcome {
        let received = Mutex::new(None);
        let service = service_fn(async |request: Request<Incoming>| {
            let (response, outcome) = self.respond(&request, attempt);
            if outcome.is_some() {
                *received.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
            }
            Ok::<_, Infallible>(response)
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(MAX_HEAD.max(MAX_ANSWER))
            .max_headers(MAX_HEADERS)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        if let Some(Err(error)) = closer.run_until_cancelled(serving).await {
            tracing::debug!(%error, "a connection to the sign-in failed");
        }
        received.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn respond<B>(&self, request: &Request<B>, attempt: &SignInAttempt) -> (Response<Full<Bytes>>, RedirectOutcome) {
        let refused = |status, why| (page(status, "This is not the response to a sign-in.", why), None);
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        // A host name that resolves to this address would let a foreign web page send requests to this port.
        if host != Some(self.address.to_string().as_str()) {
            return refused(StatusCode::MISDIRECTED_REQUEST, "It was sent to another host.");
        }
        if request.uri().path() != "/" {
            return refused(StatusCode::NOT_FOUND, "There is nothing at this address.");
        }
        if request.method() != Method::GET {
            return refused(StatusCode::METHOD_NOT_ALLOWED, "Only GET is supported.");
        }
        match attempt.parse_redirect(request.uri().query().unwrap_or_default()) {
            Ok(code) => {
                let done =
                    page(StatusCode::OK, "You may close this page.", "The sign-in continues where you started it.");
                (done, Some(Ok(code)))
            }
            Err(RedirectError::Foreign(why)) => {
                tracing::debug!(why, "ignored the response to another sign-in");
                refused(StatusCode::BAD_REQUEST, "It belongs to another sign-in. Start the sign-in again.")
            }
            Err(RedirectError::Over(why)) => {
                let response = page(StatusCode::OK, "You are not signed in.", "You may close this page.");
                (response, Some(Err(why)))
            }
        }
    }
}

/// Returns a page of fixed text. Nothing from the request is displayed.
fn page(status: StatusCode, title: &str, text: &str) -> Response<Full<Bytes>> {
    let body = format!(
        "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>Toolstead</title><h1>{title}</h1><p>{text}</p></html>\n"
    );
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, header::HeaderValue::from_static(value));
    }
    response
}
