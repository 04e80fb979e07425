//! The client against servers on this machine.

use super::*;
use crate::{
    egress::{connector::SystemNetwork, host::HostPatterns},
    http::event_stream::EventStream,
    http::origin::IDLE_TIMEOUT,
};
use async_compression::tokio::write::GzipEncoder;
use base64::{Engine, prelude::BASE64_STANDARD};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::yield_now,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use toolstead_domain::error_chain::with_causes;

/// For `localhost` and 127.0.0.1, from 2020 to 2120; self-signed.
const CERTIFICATE: &str = "MIIBYzCCAQqgAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMMCWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABKZbE4RYL4j+yvJ2OAxMeB3+/y0nEzGqE6Mh+esNTglhK2N/w5qwyDhXkQx2qqj9ktS4Lo/ZYEDo7/USndhcJkujSzBJMAwGA1UdEwEB/wQCMAAwGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMB0GA1UdDgQWBBRSsRXHxuXc8SC1v33YJKClF4QldTAKBggqhkjOPQQDAgNHADBEAiBoa/WCkUvXlTbTgHtUABRBcd6DNxoK2gImtvy9fm7SpgIgPFuXNSxJCJIkW9lf4nyybOYWstIcOjRfwhg2bL2A7uE=";
const KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgTHAbjniiRzJxshp8+aX2YzmnaGIApAeVlNyEAon+tgqhRANCAASmWxOEWC+I/srydjgMTHgd/v8tJxMxqhOjIfnrDU4JYStjf8OasMg4V5EMdqqo/ZLUuC6P2WBA6O/1Ep3YXCZL";

/// Another certificate.
const OTHER: &str = "MIIBdDCCARqgAwIBAgIURzI3G9qOUqabkdNCIZ5pv419MPwwCgYIKoZIzj0EAwIwEDEOMAwGA1UEAwwFb3RoZXIwIBcNMjYxMTIyMjEyNDMwWhgPMjEyNjEwMjkyMTI0MzBaMBAxDjAMBgNVBAMMBW90aGVyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEa8oYEN1aPBs5uKxSIe3M3ys7psZi5ohFOfNpf0bW2iPgnUHfx7NoO5AFvhYiVuFECn+6tITMgHwEW9Ew6TnxQ6NQME4wHQYDVR0OBBYEFIrSoTIkTyD8WTGGqeGo3DYs74OiMB8GA1UdIwQYMBaAFIrSoTIkTyD8WTGGqeGo3DYs74OiMAwGA1UdEwEB/wQCMAAwCgYIKoZIzj0EAwIDSAAwRQIgZ0BPVn71W857wpic56WloAUva1f8gsRuyaRIl/L6cYECIQDts9UQ5Le9POUqATekaLP3l7U+kV4x9OcIsdhv5c6T7A==";

fn certificate(text: &str) -> CertificateDer<'static> {
    BASE64_STANDARD.decode(text).unwrap().into()
}

/// Accepts TLS as a server with the certificate, and offers HTTP/2 before HTTP/1.1.
fn acceptor() -> TlsAcceptor {
    let key = PrivateKeyDer::Pkcs8(BASE64_STANDARD.decode(KEY).unwrap().into());
    let builder = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = builder.with_single_cert(vec![certificate(CERTIFICATE)], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

fn everywhere() -> Connector {
    Connector::to_configured_hosts(Arc::new(SystemNetwork::default()))
}

fn endpoint(url: &str) -> EndpointClient {
    HttpClient::new(everywhere()).endpoint(&url.parse().unwrap()).unwrap()
}

async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp?a=b#c", listener.local_addr().unwrap());
    (listener, url)
}

fn post(endpoint: &EndpointClient) -> Request {
    Request { method: Method::POST, headers: endpoint.headers(), body: "body".into() }
}

/// Reads one request of [`post`] and returns its head.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\nbody") {
        assert!(stream.read_buf(&mut request).await.unwrap() > 0, "the client went away");
    }
    String::from_utf8(request).unwrap()
}

/// Answers this number of requests on one connection, each with the number of the connection.
async fn answer_on<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, connection: u8, requests: usize) -> S {
    for _ in 0..requests {
        assert!(read(&mut stream).await.starts_with("POST /mcp?a=b HTTP/1.1\r\n"));
        let chunked = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{connection}\r\n0\r\n\r\n");
        stream.write_all(chunked.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
    stream
}

async fn answer(listener: &TcpListener, connection: u8, requests: usize) -> TcpStream {
    let (stream, _) = listener.accept().await.unwrap();
    answer_on(stream, connection, requests).await
}

#[tokio::test]
async fn a_connection_is_used_again_until_its_server_closes_it() {
    let (listener, url) = listener().await;
    let (closed, first_is_closed) = oneshot::channel();
    let server = tokio::spawn(async move {
        drop(answer(&listener, 1, 3).await);
        closed.send(()).unwrap();
        answer(&listener, 2, 1).await
    });
    let endpoint = endpoint(&url);
    let send = async || endpoint.send(post(&endpoint)).await.unwrap();
    for _ in 0..2 {
        let mut response = send().await;
        assert_eq!(response.chunk().await.unwrap().unwrap(), "1");
        assert_eq!(response.chunk().await.unwrap(), None);
    }
    // The client stops before the end of the body, which has arrived nevertheless.
    assert_eq!(send().await.chunk().await.unwrap().unwrap(), "1");
    first_is_closed.await.unwrap();
    // The runtime detects it before the test continues.
    yield_now().await;
    assert_eq!(send().await.chunk().await.unwrap().unwrap(), "2");
    drop(server.await.unwrap());
    assert!(endpoint.origin().idle_count() <= 1);
}

#[tokio::test]
async fn a_request_on_a_just_closed_connection_is_returned_unsent() {
    let (listener, url) = listener().await;
    let endpoint = endpoint(&url);
    let (response, server) = tokio::join!(endpoint.send(post(&endpoint)), answer(&listener, 1, 1));
    drop(response.unwrap());
    let mut connection = endpoint.origin().take_idle().await.unwrap();
    drop(server);
    // The runtime detects the close; the connection is not polled in between.
    yield_now().await;
    let sending = connection.send(http::Request::new(Full::new("again".into())));
    let (_, unsent) = timeout(IDLE_TIMEOUT, sending).await.expect("it hangs").unwrap_err();
    assert!(unsent.is_some() && !connection.is_open());
}

#[tokio::test]
async fn an_idle_connection_is_used_again_only_on_its_own_runtime() {
    let (listener, url) = listener().await;
    let endpoint = Arc::new(endpoint(&url));
    let (response, _server) = tokio::join!(endpoint.send(post(&endpoint)), answer(&listener, 1, 1));
    drop(response.unwrap());
    let other = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let there = other.spawn({
        let endpoint = endpoint.clone();
        async move { endpoint.origin().take_idle().await.is_some() }
    });
    assert!(!there.await.unwrap());
    assert!(endpoint.origin().take_idle().await.is_some());
    other.shutdown_background();
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_timeout() {
    let (listener, url) = listener().await;
    let endpoint = endpoint(&url);
    let (response, mut server) = tokio::join!(endpoint.send(post(&endpoint)), answer(&listener, 1, 1));
    drop(response.unwrap());
    assert_eq!(endpoint.origin().idle_count(), 1);
    tokio::time::pause();
    // The task that closes idle connections starts its timer.
    yield_now().await;
    tokio::time::advance(2 * IDLE_TIMEOUT).await;
    // A paused clock would not wait for the socket.
    tokio::time::resume();
    let closed = timeout(Duration::from_secs(30), server.read_u8()).await.expect("it stays open");
    assert_eq!(closed.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(endpoint.origin().idle_count(), 0);
}

#[tokio::test]
async fn connections_use_tcp_keepalive_and_no_delay() {
    use rustix::net::sockopt;
    let (_listener, url) = listener().await;
    let connection = endpoint(&url).origin().connect().await.unwrap();
    let tokio_util::either::Either::Left(stream) = connection.into_stream() else { panic!("it has TLS") };
    assert!(stream.nodelay().unwrap() && sockopt::socket_keepalive(&stream).unwrap());
    assert_eq!(sockopt::tcp_keepidle(&stream), Ok(Duration::from_secs(15)));
    assert_eq!(sockopt::tcp_keepintvl(&stream), Ok(Duration::from_secs(15)));
    assert_eq!(sockopt::tcp_keepcnt(&stream), Ok(3));
}

#[tokio::test]
async fn an_unreachable_server_is_distinguished_from_a_broken_connection() {
    let (listener, url) = listener().await;
    let endpoint = endpoint(&url);
    let send = async || endpoint.send(post(&endpoint)).await.unwrap_err();
    let (broken, ()) = tokio::join!(send(), async { drop(listener.accept().await.unwrap()) });
    assert!(!broken.is_unsent() && with_causes(&broken).starts_with("the connection failed: "), "{broken:?}");
    drop(listener);
    let nobody = send().await;
    assert!(nobody.is_unsent() && with_causes(&nobody).starts_with("it cannot be reached: "), "{nobody:?}");
}

#[tokio::test]
async fn a_tls_connection_requires_a_trusted_certificate_for_the_host_and_is_reused() {
    let (listener, _) = listener().await;
    let port = listener.local_addr().unwrap().port();
    let acceptor = acceptor();
    let server = tokio::spawn(async move {
        for (connection, requests) in [(1, 2), (2, 1)] {
            let (stream, _) = listener.accept().await.unwrap();
            let stream = acceptor.accept(stream).await.unwrap();
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
            answer_on(stream, connection, requests).await.shutdown().await.unwrap();
        }
        // Clients that do not trust the certificate abort the handshake.
        for _ in 0..2 {
            let (stream, _) = listener.accept().await.unwrap();
            acceptor.accept(stream).await.unwrap_err();
        }
    });
    let known = HttpClient::trusting(everywhere(), &certificate(CERTIFICATE));
    for (host, answers) in [("localhost", vec![b"1", b"1"]), ("127.0.0.1", vec![b"2"])] {
        let endpoint = known.endpoint(&format!("https://{host}:{port}/mcp?a=b").parse().unwrap()).unwrap();
        for expected in answers {
            let response = endpoint.send(post(&endpoint)).await.unwrap();
            assert_eq!(response.bytes(1).await.unwrap(), expected);
        }
    }
    let strange = [
        (HttpClient::trusting(everywhere(), &certificate(OTHER)), "localhost", "UnknownIssuer"),
        (known, "localhost.localdomain", "not valid for name"),
    ];
    for (client, name, reason) in strange {
        let client = HttpClient { connector: Connector::to_configured_hosts(Arc::new(Here)), ..client };
        let endpoint = client.endpoint(&format!("https://{name}:{port}/").parse().unwrap()).unwrap();
        let error = endpoint.send(post(&endpoint)).await.unwrap_err();
        assert!(error.is_unsent() && with_causes(&error).contains(reason), "{}", with_causes(&error));
    }
    server.await.unwrap();
}

/// Resolves every name to this machine.
#[derive(Debug)]
struct Here;

#[async_trait::async_trait]
impl crate::egress::connector::Network for Here {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec![[127, 0, 0, 1].into()])
    }

    async fn connect(&self, address: std::net::SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }
}

#[tokio::test]
async fn a_client_with_an_address_policy_rejects_non_public_addresses() {
    let (_listener, url) = listener().await;
    let judging = Connector::new(Arc::new(SystemNetwork::default()), HostPatterns::default());
    let endpoint = HttpClient::new(judging).endpoint(&url.parse().unwrap()).unwrap();
    let error = endpoint.send(post(&endpoint)).await.unwrap_err();
    assert!(matches!(error, HttpError::NotPublic(_)), "{error:?}");
}

#[test]
fn only_http_and_https_urls_have_endpoints_and_errors_contain_no_secrets() {
    let client = HttpClient::new(everywhere());
    for url in ["ftp://u:secret@example.com/", "file:///etc/passwd", "data:text/plain,secret?secret"] {
        let error = client.endpoint(&url.parse().unwrap()).unwrap_err();
        assert!(matches!(error, HttpError::Address(_)), "{error:?}");
    }
    let error = client.endpoint(&"ftp://u:secret@example.com/?k=secret".parse().unwrap()).unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
    for (url, host) in [
        ("http://example.com:80/", "example.com"),
        ("https://example.com:8443/", "example.com:8443"),
        ("http://[::1]:81/", "[::1]:81"),
    ] {
        assert_eq!(client.endpoint(&url.parse().unwrap()).unwrap().headers()[header::HOST], host, "{url}");
    }
}

/// Returns the response of a server that sends this head and body at once.
async fn saying(head: &str, body: &[u8]) -> Response {
    let (listener, url) = listener().await;
    let said = [format!("HTTP/1.1 200 OK\r\n{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat();
    let endpoint = endpoint(&url);
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = read(&mut stream).await.to_ascii_lowercase();
        assert!(
            request.contains("accept-encoding: gzip\r\n") && request.contains("user-agent: toolstead/"),
            "{request}"
        );
        stream.write_all(&said).await.unwrap();
        stream
    };
    tokio::join!(endpoint.send(post(&endpoint)), server).0.unwrap()
}

#[tokio::test]
async fn a_body_is_decompressed_and_its_decompressed_size_is_limited() {
    let mut encoder = GzipEncoder::new(Vec::new());
    encoder.write_all(&[b'x'; 100_000]).await.unwrap();
    encoder.shutdown().await.unwrap();
    let packed = encoder.into_inner();
    assert!(packed.len() < 1000);
    let gzip = "Content-Encoding: gzip\r\n";
    assert_eq!(saying(gzip, &packed).await.bytes(100_000).await.unwrap(), [b'x'; 100_000]);
    for (head, body, limit) in [(gzip, packed.as_slice(), 99_999), ("", b"four", 3)] {
        let error = saying(head, body).await.bytes(limit).await.unwrap_err();
        assert!(matches!(error, HttpError::TooLong { limit: outcome } if outcome == limit), "{error:?}");
    }
    assert_eq!(saying("", b"four").await.bytes(4).await.unwrap(), b"four");
    // As other clients do: a body of several members is one, and an empty one is not packed.
    assert_eq!(saying(gzip, &packed.repeat(2)).await.bytes(200_000).await.unwrap().len(), 200_000);
    assert_eq!(saying(gzip, b"").await.bytes(0).await.unwrap(), b"");
}

#[tokio::test]
async fn the_content_length_of_a_request_is_that_of_its_body_despite_given_headers() {
    for (name, value) in [(header::CONTENT_LENGTH, "1"), (header::TRANSFER_ENCODING, "chunked")] {
        let (listener, url) = listener().await;
        let endpoint = endpoint(&url);
        let mut request = post(&endpoint);
        request.headers.insert(name.clone(), value.parse().unwrap());
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let head = read(&mut stream).await.to_ascii_lowercase();
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            head
        };
        let (response, head) = tokio::join!(timeout(IDLE_TIMEOUT, endpoint.send(request)), server);
        assert_eq!(response.unwrap().unwrap().status(), 204);
        assert!(head.contains("content-length: 4\r\n") && !head.contains("transfer-encoding"), "{name}: {head}");
    }
}

#[tokio::test]
async fn events_are_read_one_by_one_and_an_oversized_event_fails_the_stream() {
    let mut events = EventStream::new(saying("", b"id: 7\ndata: a\n\ndata: b\n\ndata: cut").await, 20);
    for expected in [Some(&b"a"[..]), Some(b"b"), None] {
        assert_eq!(events.next().await.unwrap().as_ref().map(|event| &*event.data), expected);
    }
    assert_eq!(events.last_event_id(), Some("7"));
    let mut events = EventStream::new(saying("", b"data: much too long an event\n\n").await, 20);
    assert!(matches!(events.next().await.unwrap_err(), HttpError::Event(_)));
}
