//! Requests under public names, to servers on this machine: which are sent, which are refused, and what is reported.

use super::*;
use crate::{
    egress::testing::FakeNetwork,
    web::testing::{ReceivedRequest, Reply, TestServer, authority, gzip},
};
use std::sync::atomic::{AtomicUsize, Ordering};
use toolstead_domain::error_kind::ErrorKind;

/// Address of the test servers, as everything but the fake network sees it.
const PUBLIC: &str = "93.184.216.34";
/// Longer than any request here takes.
const PATIENCE: Duration = Duration::from_secs(60);

struct Rig {
    network: Arc<FakeNetwork>,
    reach: WebClient,
}

fn rig(private: &[&str]) -> Rig {
    let network = Arc::new(FakeNetwork::default());
    for name in ["docs.example", "other.example"] {
        network.name(name, &[&[PUBLIC]]);
    }
    let reach = WebClient::trusting(network.clone(), HostPatterns::parse(private).unwrap(), &authority());
    Rig { network, reach }
}

impl Rig {
    /// Starts a server behind port 80 of the public address.
    async fn plain(&self, answers: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> TestServer {
        let server = TestServer::plain(answers).await;
        self.network.server(&format!("{PUBLIC}:80"), server.address());
        server
    }

    /// Starts a server behind port 443 of the public address.
    async fn tls(&self, answers: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> TestServer {
        let server = TestServer::tls(answers).await;
        self.network.server(&format!("{PUBLIC}:443"), server.address());
        server
    }

    async fn get(&self, url: &str) -> Result<WebResponse, WebError> {
        let url = url.parse().unwrap();
        self.reach.send(get(&url), &everybody).await
    }
}

/// Returns a request for a page, with an untrusted address.
fn get(url: &Url) -> WebRequest<'_> {
    WebRequest {
        method: Method::GET,
        url,
        headers: HeaderMap::new(),
        body: Bytes::new(),
        url_source: UrlSource::Untrusted,
        redirects: RedirectPolicy::SameHost(5),
        retry: RetryPolicy::Never,
        body_bytes: 5 << 20,
        deadline: Instant::now() + PATIENCE,
    }
}

fn everybody(_: &str) -> Result<(), ToolFailure> {
    Ok(())
}

#[tokio::test]
async fn rejects_unsupported_urls_before_any_permission_check_or_connection() {
    let rig = rig(&[]);
    let judged = AtomicUsize::new(0);
    let judge = |_: &str| {
        judged.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };
    for url in [
        "file:///etc/passwd",
        "data:text/html,hello",
        "ftp://docs.example/",
        "javascript:alert(1)",
        "https://user:secret@docs.example/",
        "https://user@docs.example/",
        "https://docs.example./",
        "https://docs.example:8443/",
        "http://docs.example:22/",
    ] {
        let url = url.parse().unwrap();
        let error = rig.reach.send(get(&url), &judge).await.unwrap_err();
        let is_address = matches!(error, WebError::Address(_) | WebError::Port { .. });
        assert!(is_address && !error.to_string().contains("secret"), "{url}: {error}");
        assert_eq!(error.into_failure("x").kind, ErrorKind::PermissionDenied);
    }
    assert!(judged.into_inner() == 0 && rig.network.resolved().is_empty() && rig.network.connected().is_empty());
}

#[tokio::test]
async fn private_addresses_are_refused_in_every_notation_without_a_connection() {
    let rig = rig(&[]);
    rig.network.name("localhost", &[&["127.0.0.1", "::1"]]);
    rig.network.name("inside.example", &[&[PUBLIC, "10.0.0.1"]]);
    rig.network.name("mapped.example", &[&["::ffff:127.0.0.1"]]);
    rig.network.name("far.example", &[&["64:ff9b::a9fe:a9fe"]]);
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "１２７.0.0.1",
        "%31%32%37.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "[fd00::1]",
        "169.254.169.254",
        "0xa9fea9fe",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
        "100.100.100.200",
        "[fd00:ec2::254]",
        "0.0.0.0",
        "0",
        "[::]",
        "255.255.255.255",
        "224.0.0.1",
        "localhost",
        "inside.example",
        "mapped.example",
        "far.example",
    ] {
        // A parser may make an address of it, which the one for strangers' texts does not: it is judged as such.
        let error = rig.get(&format!("http://{host}/")).await.unwrap_err();
        assert!(matches!(error, WebError::Address(_)), "{host}: {error}");
    }
    assert!(rig.network.connected().is_empty(), "{:?}", rig.network.connected());
}

#[tokio::test]
async fn a_name_that_later_resolves_to_a_private_address_is_refused() {
    let rig = rig(&[]);
    let server = rig.plain(|_| Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")).await;
    rig.network.name("docs.example", &[&[PUBLIC], &["127.0.0.1"]]);
    assert_eq!(rig.get("http://docs.example/").await.unwrap().body, "hi");
    assert!(matches!(rig.get("http://docs.example/").await, Err(WebError::Address(_))));
    assert_eq!(rig.network.resolved(), ["docs.example"; 2]);
    assert_eq!((rig.network.connected().len(), server.requests().len()), (1, 1));
}

#[tokio::test]
async fn redirects_on_the_same_host_are_followed_and_others_are_returned_or_refused() {
    #[derive(Debug)]
    enum Then {
        Followed(&'static str),
        Told,
        Refused,
    }
    let rig = rig(&[]);
    let answers = |seen: &ReceivedRequest| match seen.query("to") {
        Some(to) => Reply::redirect(302, &to),
        None => Reply::html(format!("arrived at {}", seen.target)),
    };
    let (plain, tls) = (rig.plain(answers).await, rig.tls(answers).await);
    let elsewhere = TestServer::plain(answers).await;
    for address in ["10.0.0.1:80", "127.0.0.1:80", "169.254.169.254:80", "93.184.216.34:8080"] {
        rig.network.server(address, elsewhere.address());
    }
    for (scheme, to, then) in [
        ("http", "/b?c", Then::Followed("http://docs.example/b?c")),
        ("http", "b", Then::Followed("http://docs.example/b")),
        ("http", "//docs.example/b", Then::Followed("http://docs.example/b")),
        ("http", "http://DOCS.example:80/b", Then::Followed("http://docs.example/b")),
        ("http", "https://docs.example/b", Then::Followed("https://docs.example/b")),
        ("https", "/b", Then::Followed("https://docs.example/b")),
        // An eavesdropper could read it.
        ("https", "http://docs.example/b", Then::Told),
        ("http", "http://other.example/b", Then::Told),
        ("http", "https://other.example/b", Then::Told),
        ("http", "//www.docs.example/b", Then::Told),
        ("http", "http://docs.example:8080/b", Then::Told),
        ("http", "https://docs.example:80/b", Then::Told),
        ("http", "http://10.0.0.1/", Then::Told),
        ("http", "http://127.0.0.1/", Then::Told),
        ("http", "http://169.254.169.254/latest/meta-data/", Then::Told),
        ("http", "http://[::ffff:127.0.0.1]/", Then::Told),
        ("http", "file:///etc/passwd", Then::Refused),
        ("http", "data:text/html,hello", Then::Refused),
        ("http", "http://user:secret@docs.example/", Then::Refused),
        ("http", "/\\other.example/b", Then::Refused),
        ("http", "http://docs.example\\@10.0.0.1/", Then::Refused),
        ("http", "http://2130706433/", Then::Refused),
        ("http", "http://docs.example./b", Then::Refused),
        ("http", "http://%64ocs.example/b", Then::Refused),
    ] {
        let mut url = Url::parse(&format!("{scheme}://docs.example/a")).unwrap();
        url.query_pairs_mut().append_pair("to", to);
        let answer = rig.reach.send(get(&url), &everybody).await;
        match (answer, then) {
            (Ok(answer), Then::Followed(expected)) => {
                assert_eq!((answer.url.as_str(), answer.redirect_target), (expected, None), "{to}");
                assert!(answer.body.starts_with(b"arrived at /b"), "{to}: {:?}", answer.body);
            }
            (Ok(answer), Then::Told) => {
                // One notation stands for each address.
                let expected = url.join(&to.replace("[::ffff:127.0.0.1]", "127.0.0.1")).unwrap();
                assert_eq!((answer.status.as_u16(), answer.redirect_target), (302, Some(expected)), "{to}");
            }
            (Err(WebError::Address(text)), Then::Refused) => {
                assert!(
                    text.contains("it redirects to an invalid address") && !text.contains("secret"),
                    "{to}: {text}"
                );
            }
            (answer, then) => panic!("{to}: {answer:?} is not {then:?}"),
        }
    }
    assert!(rig.network.connected().iter().all(|address| address.ip().to_string() == PUBLIC));
    assert_eq!((elsewhere.connections(), plain.connections(), tls.connections()), (0, 1, 1));
}

#[tokio::test]
async fn permission_is_checked_before_each_request_of_a_redirect_chain() {
    let rig = rig(&[]);
    let server = rig.plain(|seen| if seen.path() == "/" { Reply::redirect(308, "/b") } else { Reply::html("b") }).await;
    let url = "http://docs.example/".parse().unwrap();
    for (allowed, seen) in [(0, 0), (1, 1), (2, 2)] {
        let before = server.requests().len();
        let asked = AtomicUsize::new(0);
        let judge = |host: &str| {
            assert_eq!(host, "docs.example");
            match asked.fetch_add(1, Ordering::Relaxed) {
                times if times < allowed => Ok(()),
                _ => Err(ToolFailure::new(ErrorKind::PermissionDenied, "a rule is against it")),
            }
        };
        let answer = rig.reach.send(get(&url), &judge).await;
        assert_eq!((answer.is_ok(), server.requests().len() - before), (allowed == 2, seen), "{answer:?}");
        if let Err(error) = answer {
            assert_eq!(error.into_failure("x").text(), "a rule is against it");
        }
    }
}

#[tokio::test]
async fn secret_headers_are_not_sent_to_another_origin_after_a_redirect() {
    let rig = rig(&[]);
    let next = |seen: &ReceivedRequest| if seen.path() == "/a" { Reply::redirect(301, "/b") } else { Reply::html("b") };
    let leaving = move |seen: &ReceivedRequest| match seen.path() {
        "/a" => next(seen),
        _ => Reply::redirect(301, "https://docs.example/c"),
    };
    let (plain, tls) = (rig.plain(leaving).await, rig.tls(next).await);
    let url = "http://docs.example/a".parse().unwrap();
    let mut asked = get(&url);
    for (name, value) in
        [("authorization", "Bearer k"), ("cookie", "a=b"), ("x-api-key", "k"), ("accept", "text/markdown")]
    {
        asked.headers.insert(name, value.parse().unwrap());
    }
    assert_eq!(rig.reach.send(asked, &everybody).await.unwrap().url.as_str(), "https://docs.example/c");
    let secrets =
        |seen: &ReceivedRequest| ["authorization", "cookie", "x-api-key"].map(|name| !seen.header(name).is_empty());
    assert_eq!(plain.requests().iter().map(secrets).collect::<Vec<_>>(), [[true; 3]; 2]);
    assert_eq!(tls.requests().iter().map(secrets).collect::<Vec<_>>(), [[false; 3]]);
    assert!(
        tls.requests()[0].header("accept") == "text/markdown" && tls.requests()[0].header("host") == "docs.example"
    );
}

#[tokio::test]
async fn a_redirected_post_follows_the_status_and_is_never_sent_to_another_origin() {
    let rig = rig(&[]);
    let server = rig
        .plain(|seen| match seen.query("then") {
            Some(status) => Reply::redirect(status.parse().unwrap(), "/end"),
            None if seen.path() == "/secure" => Reply::redirect(308, "https://docs.example/end"),
            None => Reply::html("end"),
        })
        .await;
    for (path, method, body) in [
        ("/?then=301", "GET", ""),
        ("/?then=302", "GET", ""),
        ("/?then=303", "GET", ""),
        ("/?then=307", "POST", "sent"),
        ("/?then=308", "POST", "sent"),
    ] {
        let url = format!("http://docs.example{path}").parse().unwrap();
        rig.reach
            .send(WebRequest { method: Method::POST, body: "sent".into(), ..get(&url) }, &everybody)
            .await
            .unwrap();
        let last = server.requests().pop().unwrap();
        assert_eq!((&*last.target, &*last.method, &*last.body), ("/end", method, body.as_bytes()), "{path}");
    }
    let url = "http://docs.example/secure".parse().unwrap();
    let asked = WebRequest { method: Method::POST, body: "sent".into(), ..get(&url) };
    let outcome = rig.reach.send(asked, &everybody).await.unwrap().redirect_target;
    assert_eq!(outcome.as_ref().map(Url::as_str), Some("https://docs.example/end"));
    let asked = WebRequest { redirects: RedirectPolicy::None, ..get(&url) };
    assert_eq!(rig.reach.send(asked, &everybody).await.unwrap().redirect_target, outcome);
}

#[tokio::test]
async fn an_endless_redirect_chain_fails_after_five_redirects() {
    let rig = rig(&[]);
    let server = rig.plain(|seen| Reply::redirect(302, &format!("{}x", seen.target))).await;
    let error = rig.get("http://docs.example/").await.unwrap_err();
    assert!(matches!(error, WebError::Redirects(5)), "{error}");
    assert_eq!(server.requests().len(), 6);
}

/// Sends a request whose reply is `reply`.
async fn saying(reply: Reply, body_bytes: usize) -> Result<WebResponse, WebError> {
    let rig = rig(&[]);
    let _server = rig.plain(move |_| reply.clone()).await;
    let url = "http://docs.example/".parse().unwrap();
    rig.reach.send(WebRequest { body_bytes, ..get(&url) }, &everybody).await
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_cut_in_every_transfer_form() {
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let zeros = gzip(&vec![0; 1 << 20]).await;
    let packed = |members: usize| Reply::new(200, zeros.repeat(members)).header("Content-Encoding", "gzip");
    for (reply, limit, length, is_cut) in [
        (Reply::html(*b"12345"), 5, 5, false),
        (Reply::html(*b"12345"), 4, 4, true),
        (Reply::html(*b""), 0, 0, false),
        (Reply::endless(CHUNKED, "5\r\nhello\r\n"), 200_000, 200_000, true),
        (Reply::endless("HTTP/1.1 200 OK\r\n\r\n", "without a length"), 200_000, 200_000, true),
        (Reply::endless("HTTP/1.1 200 OK\r\nContent-Length: 999999999999999\r\n\r\n", "much"), 9, 9, true),
    ] {
        let answer = saying(reply, limit).await.unwrap();
        assert_eq!((answer.body.len(), answer.is_cut), (length, is_cut));
    }
    // A hundred megabytes of zeros, in a hundred kilobytes. How soon it shows depends on the pieces that it comes in.
    for limit in [5 << 20, 64 << 20] {
        match saying(packed(100), limit).await {
            Ok(answer) => assert_eq!((answer.body.len(), answer.is_cut), (5 << 20, true)),
            Err(error) => assert!(error.to_string().contains("200 times"), "{error}"),
        }
    }
}

#[tokio::test]
async fn gzip_bodies_are_decompressed_once_and_unsupported_encodings_are_rejected() {
    let packed = gzip(b"hello").await;
    let twice = gzip(&packed).await;
    for (coding, body, expected) in [
        ("gzip", &packed, Some(b"hello".to_vec())),
        ("GZip", &packed, Some(b"hello".to_vec())),
        ("x-gzip", &packed, Some(b"hello".to_vec())),
        ("identity", &packed, Some(packed.clone())),
        ("gzip", &twice, Some(packed.clone())),
        ("gzip, gzip", &twice, None),
        ("br", &packed, None),
        ("deflate", &packed, None),
        ("gzip, br", &packed, None),
        ("gzip, , GZIP", &packed, None),
        ("gzip", &b"no gzip".to_vec(), None),
        ("gzip", &packed[..packed.len() - 5].to_vec(), None),
    ] {
        let answer = saying(Reply::new(200, body.clone()).header("Content-Encoding", coding), 5 << 20).await;
        assert_eq!(answer.as_ref().ok().map(|answer| answer.body.to_vec()), expected, "{coding}: {answer:?}");
    }
    let two = Reply::new(200, twice).header("Content-Encoding", "gzip").header("Content-Encoding", "gzip");
    assert!(matches!(saying(two, 5 << 20).await, Err(WebError::Packing(_))));
}

#[tokio::test]
async fn malformed_or_endless_http_responses_are_errors() {
    let said = |head: &str, body: &str| Reply::raw(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}"));
    for (what, reply) in [
        ("a length that does not come", said("Content-Length: 10", "short")),
        ("a negative length", said("Content-Length: -1", "x")),
        ("a length that is none", said("Content-Length: +1", "x")),
        ("a length beyond all", said("Content-Length: 18446744073709551616", "x")),
        ("two lengths", said("Content-Length: 1\r\nContent-Length: 2", "xx")),
        ("a chunk that does not come", said("Transfer-Encoding: chunked", "10\r\nshort")),
        ("a chunk without a size", said("Transfer-Encoding: chunked", "x\r\nshort\r\n0\r\n\r\n")),
        ("a chunk of all sizes", said("Transfer-Encoding: chunked", "fffffffffffffffff\r\nshort")),
        ("chunks without an end", said("Transfer-Encoding: chunked", "1\r\nx\r\n")),
        ("more headers than anybody has", said(&"X: y\r\n".repeat(200), "")),
        ("a header without an end", Reply::endless("HTTP/1.1 200 OK\r\nX: ", [b'x'; 4096])),
        ("headers without an end", Reply::endless("HTTP/1.1 200 OK\r\n", "X: y\r\n".repeat(500))),
        ("another protocol", Reply::raw("SSH-2.0-OpenSSH_9.2\r\n")),
        ("nothing", Reply::raw("")),
    ] {
        let answer = saying(reply, 5 << 20).await;
        assert!(matches!(answer, Err(WebError::Http(_))), "{what}: {answer:?}");
    }
}

#[tokio::test]
async fn bytes_after_a_response_are_never_read_as_the_next_response() {
    let rig = rig(&[]);
    let server = rig
        .plain(|seen| match seen.path() {
            "/first" => Reply::raw(
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
            ),
            _ => Reply::html("own"),
        })
        .await;
    assert_eq!(rig.get("http://docs.example/first").await.unwrap().body, "1");
    assert_eq!(rig.get("http://docs.example/second").await.unwrap().body, "own");
    assert_eq!(server.connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_times_out_and_the_deadline_covers_all_redirects() {
    let rig = rig(&[]);
    let _server = rig
        .plain(|seen| match seen.path() {
            "/far" => Reply::redirect(302, "/silent"),
            _ => Reply::silence(),
        })
        .await;
    let start = tokio::time::Instant::now();
    let error = rig.get("http://docs.example/far").await.unwrap_err();
    assert!(matches!(error, WebError::Silent(10)) && start.elapsed() < FIRST_BYTE + PAUSES.0, "{error}");
    let url = "http://docs.example/far".parse().unwrap();
    for named_by in [UrlSource::Untrusted, UrlSource::Configuration] {
        let start = tokio::time::Instant::now();
        let deadline = start.into_std() + Duration::from_secs(3);
        let error =
            rig.reach.send(WebRequest { url_source: named_by, deadline, ..get(&url) }, &everybody).await.unwrap_err();
        assert!(matches!(error, WebError::TimedOut) && start.elapsed() < Duration::from_secs(4), "{error}");
        assert_eq!(error.into_failure("x").kind, ErrorKind::Timeout);
    }
}

#[tokio::test(start_paused = true)]
async fn transient_failures_are_retried_and_requests_without_retry_are_sent_once() {
    let busy = |header: &str, value: &str| Reply::new(503, "busy").header(header, value);
    let date = busy("Date", "Wed, 21 Oct 2026 07:28:00 GMT").header("Retry-After", "Wed, 21 Oct 2026 07:28:02 GMT");
    for (reply, again, times, status) in [
        (Reply::new(500, ""), RetryPolicy::OnTransientFailure, 5, Some(500)),
        (Reply::new(408, ""), RetryPolicy::OnTransientFailure, 5, Some(408)),
        (busy("Retry-After", "1"), RetryPolicy::OnTransientFailure, 5, Some(503)),
        (date, RetryPolicy::OnTransientFailure, 5, Some(503)),
        // Longer than the time left: returned at once.
        (Reply::new(429, "").header("Retry-After", "3600"), RetryPolicy::OnTransientFailure, 1, Some(429)),
        (Reply::new(404, ""), RetryPolicy::OnTransientFailure, 1, Some(404)),
        (Reply::raw(""), RetryPolicy::OnTransientFailure, 5, None),
        (Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbroken"), RetryPolicy::OnTransientFailure, 5, None),
        (Reply::raw("no HTTP at all\r\n\r\n"), RetryPolicy::OnTransientFailure, 1, None),
        (Reply::new(500, ""), RetryPolicy::Never, 1, Some(500)),
        (busy("Retry-After", "0"), RetryPolicy::Never, 1, Some(503)),
        (Reply::raw(""), RetryPolicy::Never, 1, None),
    ] {
        let rig = rig(&[]);
        let message = format!("{reply:?} {again:?}");
        let server = rig.plain(move |_| reply.clone()).await;
        let url = "http://docs.example/".parse().unwrap();
        let deadline = tokio::time::Instant::now().into_std() + PATIENCE;
        let answer = rig.reach.send(WebRequest { retry: again, deadline, ..get(&url) }, &everybody).await;
        assert_eq!(answer.as_ref().ok().map(|answer| answer.status.as_u16()), status, "{message}");
        assert_eq!(server.requests().len(), times, "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn retries_wait_for_the_requested_delay_and_stop_at_the_first_success() {
    let rig = rig(&[]);
    let asked = AtomicUsize::new(0);
    let server = rig
        .plain(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::new(429, "").header("Retry-After", "7"),
            1 => Reply::raw(""),
            _ => Reply::html("at last"),
        })
        .await;
    let url = "http://docs.example/".parse().unwrap();
    let start = tokio::time::Instant::now();
    let deadline = start.into_std() + PATIENCE;
    let asked = WebRequest { retry: RetryPolicy::OnTransientFailure, deadline, ..get(&url) };
    assert_eq!(rig.reach.send(asked, &everybody).await.unwrap().body, "at last");
    let elapsed = start.elapsed();
    assert!(elapsed >= Duration::from_secs(7) && elapsed < Duration::from_secs(10), "{elapsed:?}");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn an_unresolvable_host_name_is_resolved_only_once() {
    let rig = rig(&[]);
    let url = "http://nobody.example/".parse().unwrap();
    let error = rig
        .reach
        .send(WebRequest { retry: RetryPolicy::OnTransientFailure, ..get(&url) }, &everybody)
        .await
        .unwrap_err();
    assert_eq!(rig.network.resolved(), ["nobody.example"]);
    assert_eq!(error.into_failure("x").kind, ErrorKind::Unavailable);
}

#[tokio::test]
async fn connections_are_reused_between_calls_and_never_shared_between_hosts() {
    let rig = rig(&[]);
    let server = rig.tls(|_| Reply::html("hi")).await;
    // Same address, same certificate, HTTP/2 offered: a client that reused the connection would send requests for one
    // host to the other.
    for (round, url) in
        ["https://docs.example/a", "https://other.example/", "https://docs.example/b"].iter().enumerate()
    {
        let url = url.parse().unwrap();
        // A clone, as each call has it.
        rig.reach.clone().send(get(&url), &everybody).await.unwrap();
        let seen = server.requests();
        assert_eq!((seen[round].header("host"), seen.len()), (url.host_str().unwrap(), round + 1));
    }
    assert_eq!(server.requests().iter().map(|seen| seen.connection).collect::<Vec<_>>(), [0, 1, 0]);
}

#[tokio::test]
async fn a_configured_name_opens_private_networks_but_not_the_loopback_address() {
    let rig =
        rig(&["wiki.corp.example", "db.corp.example:5984", "here.corp.example", "127.0.0.1:3000", "docs.example:8443"]);
    let server = TestServer::plain(|_| Reply::html("inside")).await;
    for address in
        ["10.1.2.3:80", "10.1.2.3:5984", "10.1.2.3:8080", "127.0.0.1:80", "127.0.0.1:3000", "93.184.216.34:8443"]
    {
        rig.network.server(address, server.address());
    }
    for name in ["wiki.corp.example", "db.corp.example", "secret.corp.example"] {
        rig.network.name(name, &[&["10.1.2.3"]]);
    }
    rig.network.name("here.corp.example", &[&["127.0.0.1"]]);
    rig.network.name("localhost", &[&["127.0.0.1"]]);
    for (url, is_open) in [
        ("http://wiki.corp.example/", true),
        ("http://wiki.corp.example:8080/", false),
        ("http://db.corp.example:5984/", true),
        ("http://db.corp.example/", false),
        ("http://10.1.2.3/", false),
        ("http://secret.corp.example/", false),
        ("http://here.corp.example/", false),
        ("http://127.0.0.1:3000/", true),
        ("http://127.0.0.1/", false),
        ("http://localhost:3000/", false),
        ("http://docs.example:8443/", true),
    ] {
        let answer = rig.get(url).await;
        assert_eq!(answer.is_ok(), is_open, "{url}: {answer:?}");
    }
    // Whom a person names in the configuration may be anywhere but on the local link.
    for url in
        ["http://wiki.corp.example:8080/", "http://127.0.0.1/", "http://localhost:3000/", "http://docs.example:8443/"]
    {
        let url = url.parse().unwrap();
        let answer = rig.reach.send(WebRequest { url_source: UrlSource::Configuration, ..get(&url) }, &everybody).await;
        assert!(answer.is_ok(), "{url}: {answer:?}");
    }
    let url = "http://169.254.169.254/".parse().unwrap();
    let answer = rig.reach.send(WebRequest { url_source: UrlSource::Configuration, ..get(&url) }, &everybody).await;
    assert!(matches!(answer, Err(WebError::Address(_))), "{answer:?}");
}

#[tokio::test]
async fn this_machine_is_reached_without_the_proxy() {
    let rig = rig(&["127.0.0.1:3000", "localhost:3000"]);
    rig.network.name("localhost", &[&["127.0.0.1"]]);
    let direct = TestServer::plain(|seen| Reply::html(format!("direct {}", seen.target))).await;
    rig.network.server("127.0.0.1:3000", direct.address());
    rig.network.name("proxy.corp.example", &[&["10.9.9.9"]]);
    let proxy = TestServer::plain(|_| Reply::html("by the proxy")).await;
    rig.network.server("10.9.9.9:3128", proxy.address());
    let reach = rig.reach.clone().with_proxy(&"http://proxy.corp.example:3128".parse().unwrap()).unwrap();
    let rig = Rig { reach, ..rig };
    for url in ["http://127.0.0.1:3000/a", "http://localhost:3000/a"] {
        assert_eq!(rig.get(url).await.unwrap().body, "direct /a", "{url}");
    }
    assert!(proxy.requests().is_empty());
}

#[tokio::test]
async fn a_proxy_receives_only_public_page_requests_and_invalid_proxies_are_rejected() {
    let rig = rig(&[]);
    rig.network.name("proxy.corp.example", &[&["10.9.9.9"]]);
    rig.network.name("inside.example", &[&["10.0.0.1"]]);
    rig.network.name("refused.example", &[&[PUBLIC]]);
    let tls = TestServer::tls(|seen| Reply::html(format!("by TLS {}", seen.target))).await;
    let direct = rig.plain(|_| Reply::html("direct")).await;
    let behind = tls.address();
    let proxy = TestServer::plain(move |seen| match (&*seen.method, &*seen.target) {
        ("CONNECT", "docs.example:443") => Reply::tunnel(behind),
        ("CONNECT", _) => Reply::new(403, "not this one"),
        _ => Reply::html(format!("by the proxy {}", seen.target)),
    })
    .await;
    rig.network.server("10.9.9.9:3128", proxy.address());
    let reach = rig.reach.clone().with_proxy(&"http://proxy.corp.example:3128".parse().unwrap()).unwrap();
    let rig = Rig { reach, ..rig };
    let body = async |url| String::from_utf8(rig.get(url).await.unwrap().body.to_vec()).unwrap();
    assert_eq!(body("http://docs.example/a?b#c").await, "by the proxy http://docs.example/a?b");
    assert_eq!(proxy.requests()[0].header("host"), "docs.example");
    assert_eq!(body("https://docs.example/a").await, "by TLS /a");
    let error = rig.get("https://refused.example/").await.unwrap_err().into_failure("x");
    assert!(error.text().contains("403"), "{}", error.text());
    let asked = proxy.requests().len();
    for url in ["http://inside.example/", "https://inside.example/", "http://127.0.0.1/", "http://docs.example:8080/"] {
        assert!(matches!(rig.get(url).await, Err(WebError::Address(_) | WebError::Port { .. })), "{url}");
    }
    assert_eq!(proxy.requests().len(), asked);
    let url = "http://docs.example/".parse().unwrap();
    let asked = WebRequest { url_source: UrlSource::Configuration, ..get(&url) };
    assert_eq!(rig.reach.send(asked, &everybody).await.unwrap().body, "direct");
    assert_eq!(direct.requests().len(), 1);
    for wrong in [
        "https://proxy.example:3128",
        "http://u:p@proxy.example",
        "http://proxy.example/path",
        "socks5://proxy.example",
    ] {
        assert!(rig.reach.clone().with_proxy(&wrong.parse().unwrap()).is_err(), "{wrong}");
    }
}
