//! HTTP/1: `CONNECT`, and plain requests with a complete URL. One request per connection.

use crate::egress::{
    host::{Host, parse_authority},
    proxy::{
        TargetConnector,
        client_stream::TrafficMeterStream,
        refusal::{Refusal, RefusalClass},
    },
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{
        CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
        TRANSFER_ENCODING, UPGRADE,
    },
    uri::Scheme,
};
use http_body_util::{Either, Full};
use hyper::{
    body::Incoming,
    client::conn::http1 as client,
    server::conn::http1 as server,
    service::service_fn,
    upgrade::{OnUpgrade, on},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    sync::{Mutex, PoisonError},
};
use tokio::{io::copy_bidirectional, net::TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// Maximum number of headers in a request.
const MAX_HEADERS: usize = 128;
/// Default port of a URL.
const HTTP_PORT: u16 = 80;

/// Headers that apply to a single connection and are not forwarded (RFC 9110, 7.6.1).
const HOP_BY_HOP: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    EXPECT,
];

type Body = Either<Full<Bytes>, Incoming>;

/// Upstream connection that a request leaves open.
enum OpenUpstreamConnection {
    /// A tunnel in both directions.
    Tunnel(OnUpgrade, Box<TcpStream>),
    /// An exchange whose response is still being read.
    Exchange { _driver: AbortOnDropHandle<()> },
}

/// Serves one client until the connection ends.
pub(super) async fn serve(client: TrafficMeterStream, gate: &TargetConnector) {
    let limits = &gate.policy.limits;
    let upstream = Mutex::new(None);
    let service = service_fn(async |request| Ok::<_, Infallible>(answer(request, gate, &upstream).await));
    let served = server::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(limits.head_bytes.max(8 << 10))
        .max_header_size(limits.head_bytes)
        .max_headers(MAX_HEADERS)
        .keep_alive(false)
        .half_close(true)
        .serve_connection(TokioIo::new(client), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(call = %gate.policy.call, %error, "a connection of a sandboxed command failed");
        return;
    }
    let upstream = upstream.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(OpenUpstreamConnection::Tunnel(client, mut upstream)) = upstream
        && let Ok(client) = client.await
    {
        // Either side may close the connection. The error is not reported to either.
        let _ = copy_bidirectional(&mut TokioIo::new(client), &mut upstream).await;
    }
}

async fn answer(
    request: Request<Incoming>,
    gate: &TargetConnector,
    upstream: &Mutex<Option<OpenUpstreamConnection>>,
) -> Response<Body> {
    let answered =
        if request.method() == Method::CONNECT { tunnel(request, gate).await } else { forward(request, gate).await };
    match answered {
        Ok((response, kept)) => {
            *upstream.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
            response
        }
        Err(refusal) => {
            gate.refused(&refusal);
            response_to(&refusal)
        }
    }
}

async fn tunnel(
    mut request: Request<Incoming>,
    gate: &TargetConnector,
) -> Result<(Response<Body>, OpenUpstreamConnection), Refusal> {
    let authority = request.uri().authority().ok_or(Refusal::Request("CONNECT requires a host and a port"))?;
    let (host, port) = parse_authority(authority.as_str(), None)?;
    agrees(request.headers(), &host, port)?;
    let stream = gate.open(&host, port).await?;
    let upstream = OpenUpstreamConnection::Tunnel(on(&mut request), Box::new(stream));
    Ok((Response::new(Either::Left(Full::default())), upstream))
}

async fn forward(
    request: Request<Incoming>,
    gate: &TargetConnector,
) -> Result<(Response<Body>, OpenUpstreamConnection), Refusal> {
    let (mut head, body) = request.into_parts();
    let Some(authority) = head.uri.authority() else {
        return Err(Refusal::Request("this is a proxy: the request must have an absolute URL, or be CONNECT"));
    };
    if head.uri.scheme() != Some(&Scheme::HTTP) {
        return Err(Refusal::Request("this proxy supports plain HTTP only; use CONNECT for anything else"));
    }
    let (host, port) = parse_authority(authority.as_str(), Some(HTTP_PORT))?;
    agrees(&head.headers, &host, port)?;
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    head.uri = target.parse::<Uri>().map_err(|_| Refusal::Request("the path of the URL cannot be forwarded"))?;
    remove_hop_by_hop(&mut head.headers);
    let named = if port == HTTP_PORT { host.to_string() } else { format!("{host}:{port}") };
    let named = HeaderValue::try_from(named).map_err(|_| Refusal::Request("the host cannot be forwarded"))?;
    head.headers.insert(HOST, named);
    head.version = http::Version::HTTP_11;
    head.extensions.clear();

    let stream = gate.open(&host, port).await?;
    let broken = |reason: String| Refusal::Answer { target: (host.clone(), port), reason };
    let limits = &gate.policy.limits;
    let (mut sender, connection) = client::Builder::new()
        .max_buf_size(limits.head_bytes.max(8 << 10))
        .handshake::<_, Incoming>(TokioIo::new(stream))
        .await
        .map_err(|error| broken(error.to_string()))?;
    let driver = tokio::spawn(async move {
        // An error of the connection is reported with the response.
        let _ = connection.await;
    });
    let kept = OpenUpstreamConnection::Exchange { _driver: AbortOnDropHandle::new(driver) };
    let mut response =
        sender.send_request(Request::from_parts(head, body)).await.map_err(|error| broken(error.to_string()))?;
    if response.status().is_informational() {
        return Err(broken(format!("the status is {}", response.status())));
    }
    remove_hop_by_hop(response.headers_mut());
    response.extensions_mut().clear();
    *response.version_mut() = http::Version::HTTP_11;
    Ok((response.map(Either::Right), kept))
}

/// Checks that `Host` is missing or names the target of the request line.
fn agrees(headers: &HeaderMap, host: &Host, port: u16) -> Result<(), Refusal> {
    let mut values = headers.get_all(HOST).iter();
    let named = match (values.next(), values.next()) {
        (None, _) => return Ok(()),
        (Some(value), None) => value.to_str().ok().and_then(|text| parse_authority(text, Some(port)).ok()),
        (Some(_), Some(_)) => None,
    };
    match named {
        Some((named, its_port)) if named == *host && its_port == port => Ok(()),
        Some(_) | None => Err(Refusal::Request("the header Host does not match the request line")),
    }
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // These headers determine the end of the body.
        .filter(|name| *name != CONTENT_LENGTH && *name != HOST)
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

fn response_to(refusal: &Refusal) -> Response<Body> {
    let status = match refusal.class() {
        RefusalClass::Malformed => StatusCode::BAD_REQUEST,
        RefusalClass::Forbidden => StatusCode::FORBIDDEN,
        RefusalClass::Unreachable => StatusCode::BAD_GATEWAY,
    };
    let text = format!("The network of sandboxed commands: {}.\n", refusal.reason());
    let mut response = Response::new(Either::Left(Full::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
