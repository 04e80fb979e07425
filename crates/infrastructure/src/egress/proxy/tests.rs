use super::*;
use crate::egress::testing::FakeNetwork;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::tcp::OwnedWriteHalf,
    sync::mpsc,
};

/// Public address of the test server, for everything but the fake network.
const PUBLIC: &str = "93.184.216.34";
/// Longer than any step of these tests takes.
const PATIENCE: Duration = Duration::from_secs(120);

struct Rig {
    proxy: EgressProxy,
    network: Arc<FakeNetwork>,
}

fn allow_all(_: &Host) -> Verdict {
    Verdict::Allow
}

async fn rig_with(
    hosts: &[&str],
    rules: impl Fn(&Host) -> Verdict + Send + Sync + 'static,
    limits: ProxyLimits,
) -> Rig {
    rig_on(StdListener::bind("127.0.0.1:0").unwrap(), hosts, rules, limits)
}

fn rig_on(
    listener: StdListener,
    hosts: &[&str],
    rules: impl Fn(&Host) -> Verdict + Send + Sync + 'static,
    limits: ProxyLimits,
) -> Rig {
    let network = Arc::new(FakeNetwork::default());
    for name in ["example.com", "www.example.com", "other.example", "denied.example", "asked.example"] {
        network.name(name, &[&[PUBLIC, "2606:4700::1111"]]);
    }
    network.name("inside.example", &[&[PUBLIC, "10.0.0.1"]]);
    let connector = Connector::new(network.clone(), HostPatterns::default());
    let policy = ProxyPolicy {
        call: "call-1".into(),
        hosts: HostPatterns::parse(hosts).unwrap(),
        rules: Arc::new(rules),
        announced: None,
        limits,
    };
    Rig { proxy: EgressProxy::start(listener.into(), connector, policy).unwrap(), network }
}

async fn rig(hosts: &[&str]) -> Rig {
    rig_with(hosts, allow_all, ProxyLimits::default()).await
}

impl Rig {
    /// Starts a server at the public address and port.
    async fn server(&self, port: u16) -> TcpListener {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap();
        self.network.server(&format!("{PUBLIC}:{port}"), here);
        self.network.server(&format!("[2606:4700::1111]:{port}"), here);
        listener
    }

    async fn client(&self) -> TcpStream {
        TcpStream::connect(self.proxy.address).await.unwrap()
    }

    /// Returns the response to these bytes until the proxy closes the connection.
    async fn ask(&self, bytes: &[u8]) -> Vec<u8> {
        let mut client = self.client().await;
        client.write_all(bytes).await.unwrap();
        rest(&mut client).await
    }
}

/// Reads to the end. A reset counts as an end.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the connection stays open");
    bytes
}

/// Reads up to this mark.
async fn until(stream: &mut TcpStream, mark: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(mark) {
        let byte = timeout(PATIENCE, stream.read_u8()).await.expect("nothing comes");
        bytes.push(byte.unwrap_or_else(|error| panic!("{error} after {:?}", String::from_utf8_lossy(&bytes))));
    }
    bytes
}

async fn exactly<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    timeout(PATIENCE, stream.read_exact(&mut bytes)).await.expect("nothing comes").unwrap();
    bytes
}

fn socks_name(name: &[u8], port: u16) -> Vec<u8> {
    [&[5, 1, 0, 5, 1, 0, 3, name.len() as u8], name, &port.to_be_bytes()].concat()
}

/// Returns bytes that do not look like text.
fn noise() -> Vec<u8> {
    let hello = [0x16, 0x03, 0x01, 0x00, 0x05, 0, b'\r', b'\n', b'\r', b'\n', 5, 1, 0];
    hello.into_iter().chain((0..=255).cycle().take(200_000)).collect()
}

/// Checks that an open tunnel forwards all bytes, and the end of one direction while the other continues.
async fn check_tunnel(mut client: TcpStream, server: &TcpListener, sent_early: &[u8]) {
    let (mut upstream, _) = timeout(PATIENCE, server.accept()).await.expect("nobody comes").unwrap();
    let (mut reader, mut writer) = upstream.split();
    let noise = noise();
    let send = async {
        client.write_all(&noise).await.unwrap();
        client.shutdown().await.unwrap();
    };
    let receive = async {
        let mut received = Vec::new();
        reader.read_to_end(&mut received).await.unwrap();
        received
    };
    let ((), received) = timeout(PATIENCE, async { tokio::join!(send, receive) }).await.expect("it hangs");
    assert!(received == [sent_early, &noise].concat(), "bytes were changed on the way up");
    // The client has closed its half of the connection, and the server still answers.
    let answer = async {
        writer.write_all(&noise).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let ((), back) = tokio::join!(answer, rest(&mut client));
    assert!(back == noise, "bytes were changed on the way down");
}

#[tokio::test]
async fn a_connect_tunnel_passes_everything_unchanged() {
    let rig = rig(&["example.com"]).await;
    let server = rig.server(443).await;
    let mut client = rig.client().await;
    // Some clients do not wait for the response.
    let early = b"\x16\x03\x01early";
    let head = b"CONNECT EXAMPLE.com:443 HTTP/1.1\r\nHost: example.com:443\r\nUser-Agent: x\r\n\r\n";
    client.write_all(&[&head[..], early].concat()).await.unwrap();
    let answer = until(&mut client, b"\r\n\r\n").await;
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    check_tunnel(client, &server, early).await;
    let report = rig.proxy.report();
    assert_eq!((report.connections, report.refusals), (1, 0));
    assert!(report.bytes > 400_000, "{}", report.bytes);
    assert_eq!(report.refusals_text(), None);
}

#[tokio::test]
async fn a_socks_tunnel_passes_everything_unchanged_to_a_name_and_to_addresses() {
    let rig = rig(&["example.com", PUBLIC, "[2606:4700::1111]"]).await;
    let server = rig.server(80).await;
    let name = socks_name(b"example.com", 80);
    let v4 = [5, 1, 0, 5, 1, 0, 1, 93, 184, 216, 34, 0, 80].to_vec();
    let v6 = [&[5, 2, 0, 2, 5, 1, 0, 4, 0x26, 0x06, 0x47, 0][..], &[0; 10], &[0x11, 0x11, 0, 80]].concat();
    for request in [name, v4, v6] {
        let mut client = rig.client().await;
        client.write_all(&request).await.unwrap();
        assert_eq!(exactly(&mut client).await, [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        check_tunnel(client, &server, b"").await;
    }
    assert_eq!(rig.network.resolved(), ["example.com"]);
}

#[tokio::test]
async fn a_plain_request_is_forwarded_without_hop_by_hop_headers() {
    let rig = rig(&["example.com:8080"]).await;
    let server = rig.server(8080).await;
    let mut client = rig.client().await;
    let request = b"POST http://example.com:8080/a?b=http://x HTTP/1.1\r\nHost: example.com:8080\r\n\
        Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\nConnection: keep-alive, X-Own\r\nX-Own: 1\r\n\
        Upgrade: websocket\r\nX-Kept: 2\r\nContent-Length: 4\r\n\r\nbody";
    client.write_all(request).await.unwrap();
    let (mut upstream, _) = server.accept().await.unwrap();
    let seen = String::from_utf8(until(&mut upstream, b"body").await).unwrap().to_ascii_lowercase();
    assert!(seen.starts_with("post /a?b=http://x http/1.1\r\n"), "{seen}");
    assert!(seen.contains("\r\nhost: example.com:8080\r\n") && seen.contains("\r\nx-kept: 2\r\n"), "{seen}");
    assert!(seen.contains("\r\ncontent-length: 4\r\n"), "{seen}");
    for gone in ["proxy-", "x-own", "upgrade", "keep-alive"] {
        assert!(!seen.contains(gone), "{gone} in {seen}");
    }
    upstream
        .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Answer: 3\r\n\r\n6\r\nanswer\r\n0\r\n\r\n")
        .await
        .unwrap();
    let answer = String::from_utf8(rest(&mut client).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("x-answer: 3\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n") && answer.ends_with("6\r\nanswer\r\n0\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn a_chunked_body_is_forwarded_chunked_despite_a_content_length_header() {
    let rig = rig(&["example.com"]).await;
    let server = rig.server(80).await;
    let mut client = rig.client().await;
    let request =
        b"PUT http://example.com HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n3\r\nabc\r\n";
    client.write_all(request).await.unwrap();
    let (mut upstream, _) = server.accept().await.unwrap();
    let seen = String::from_utf8(until(&mut upstream, b"3\r\nabc\r\n").await).unwrap();
    assert!(seen.starts_with("PUT / HTTP/1.1\r\n") && seen.contains("host: example.com\r\n"), "{seen}");
    assert!(!seen.contains("content-length"), "{seen}");
    client.write_all(b"0\r\n\r\n").await.unwrap();
    until(&mut upstream, b"0\r\n\r\n").await;
    // A response that ends with its connection.
    upstream.write_all(b"HTTP/1.0 404 Not Found\r\n\r\ngone").await.unwrap();
    drop(upstream);
    let answer = String::from_utf8(rest(&mut client).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains("gone"), "{answer}");
}

#[tokio::test]
async fn data_after_the_first_request_on_a_connection_is_not_forwarded() {
    let rig = rig(&["example.com"]).await;
    let server = rig.server(80).await;
    let mut client = rig.client().await;
    let first = b"GET http://example.com/1 HTTP/1.1\r\nHost: example.com\r\n\r\n";
    let more = b"GET http://example.com/2 HTTP/1.1\r\nHost: evil.example\r\n\r\n\0\x01garbage";
    client.write_all(&[&first[..], more].concat()).await.unwrap();
    let (mut upstream, _) = server.accept().await.unwrap();
    until(&mut upstream, b"\r\n\r\n").await;
    upstream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
    let answer = String::from_utf8(rest(&mut client).await).unwrap();
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert_eq!(rest(&mut upstream).await, b"", "something followed the first request");
    assert_eq!(rig.proxy.report().connections, 1);
}

#[tokio::test]
async fn http_requests_to_forbidden_or_unreachable_hosts_are_refused_with_a_reason() {
    let rules = |host: &Host| match host.to_string().as_str() {
        "denied.example" => Verdict::Deny,
        "asked.example" => Verdict::Ask,
        _ => Verdict::Allow,
    };
    let hosts = ["example.com", "*.example", "127.0.0.1", "localhost", "169.254.169.254", "[::1]"];
    let rig = rig_with(&hosts, rules, ProxyLimits::default()).await;
    let own = rig.proxy.address.port();
    let to_itself = format!("CONNECT 127.0.0.1:{own} HTTP/1.1\r\n\r\n");
    let listed = rig_with(&[&format!("127.0.0.1:{own}")], allow_all, ProxyLimits::default()).await;
    for (rig, request, status, text) in [
        (&rig, "CONNECT evil.net:443 HTTP/1.1\r\n\r\n", 403, "ask your user whether to allow it"),
        (&rig, "CONNECT example.com.evil.net:443 HTTP/1.1\r\n\r\n", 403, "not among the hosts"),
        (&rig, "CONNECT example.com:22 HTTP/1.1\r\n\r\n", 403, "but not its port 22; ask your user"),
        (&rig, "CONNECT denied.example:443 HTTP/1.1\r\n\r\n", 403, "do not allow denied.example; ask your user"),
        (&rig, "CONNECT asked.example:443 HTTP/1.1\r\n\r\n", 403, "ask your user whether to allow it"),
        (&rig, "CONNECT inside.example:443 HTTP/1.1\r\n\r\n", 403, "10.0.0.1 is not a public address"),
        (&rig, "GET http://inside.example/ HTTP/1.1\r\n\r\n", 403, "10.0.0.1 is not a public address"),
        (&rig, "CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n", 403, "this machine itself"),
        (&rig, "CONNECT [::1]:443 HTTP/1.1\r\n\r\n", 403, "this machine itself"),
        (&rig, "CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n", 403, "a link-local one.\n"),
        (&rig, "CONNECT 2130706433:443 HTTP/1.1\r\n\r\n", 403, "did you mean 127.0.0.1?"),
        (&rig, "CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n", 403, "did you mean 127.0.0.1?"),
        (&rig, to_itself.as_str(), 403, "its port"),
        (&listed, to_itself.as_str(), 403, "this machine itself"),
        (&rig, "CONNECT example.com.:443 HTTP/1.1\r\n\r\n", 403, "remove the dot"),
        (&rig, "CONNECT example.com HTTP/1.1\r\n\r\n", 403, "write `host:port`"),
        (&rig, "CONNECT user:pw@example.com:443 HTTP/1.1\r\n\r\n", 403, "invalid in a host name"),
        (&rig, "GET http://example.com@evil.net/ HTTP/1.1\r\n\r\n", 403, "invalid in a host name"),
        (&rig, "GET http://example.com%00.evil.net/ HTTP/1.1\r\n\r\n", 400, ""),
        (&rig, "CONNECT exam\0ple.com:443 HTTP/1.1\r\n\r\n", 400, ""),
        (&rig, "CONNECT example.com:443 HTTP/1.1\r\nHost: evil.net:443\r\n\r\n", 400, "Host does not match"),
        (&rig, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:80\r\n\r\n", 400, "Host does not match"),
        (&rig, "GET http://example.com/ HTTP/1.1\r\nHost: evil.net\r\n\r\n", 400, "Host does not match"),
        (&rig, "GET http://example.com/ HTTP/1.1\r\nHost: \r\n\r\n", 400, "Host does not match"),
        (
            &rig,
            "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nHost: evil.net\r\n\r\n",
            400,
            "Host does not match",
        ),
        (&rig, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", 400, "must have an absolute URL"),
        (&rig, "GET https://example.com/ HTTP/1.1\r\n\r\n", 400, "use CONNECT"),
        (&rig, "GET ftp://example.com/ HTTP/1.1\r\n\r\n", 400, "use CONNECT"),
        (&rig, "nonsense\r\n\r\n", 400, ""),
        (&rig, "CONNECT www.example:443 HTTP/1.1\r\n\r\n", 502, "cannot be resolved"),
        (&rig, "CONNECT example.com:443 HTTP/1.1\r\n\r\n", 502, "cannot be reached"),
        (&rig, "GET http://example.com/ HTTP/1.1\r\n\r\n", 502, "cannot be reached"),
    ] {
        let answer = String::from_utf8(rig.ask(request.as_bytes()).await).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(text), "{request:?}: {answer}");
    }
    assert_eq!(rig.proxy.report().connections + listed.proxy.report().connections, 0);
    // Only public hosts on the list were tried at all.
    let tried = rig.network.connected();
    assert!(tried.iter().all(|address| matches!(address.port(), 80 | 443) && !address.ip().is_loopback()), "{tried:?}");
    assert_eq!(tried.len(), 4);
}

#[tokio::test]
async fn an_empty_host_list_permits_no_host_and_no_name_resolution() {
    let rig = rig(&[]).await;
    let _server = rig.server(443).await;
    let answer = rig.ask(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with(b"HTTP/1.1 403 "));
    assert!(rig.network.resolved().is_empty(), "a name that is not listed was looked up");
}

#[tokio::test]
async fn refused_socks_clients_receive_the_matching_reply_code() {
    let rig = rig(&["example.com", "*.example", "127.0.0.1"]).await;
    for (request, reply) in [
        (socks_name(b"evil.net", 443), 2),
        (socks_name(b"example.com", 22), 2),
        (socks_name(b"evil.net\0.example.com", 443), 2),
        (socks_name(b"evil.net\0.example", 443), 2),
        (socks_name(b"example.com\0", 443), 2),
        (socks_name(b"example.com\n", 443), 2),
        (socks_name(b"\xff\xfe.example", 443), 2),
        (socks_name(b"", 443), 2),
        (socks_name(b"127.0.0.1", 443), 2),
        (socks_name(b"2130706433", 443), 2),
        (socks_name(b"inside.example", 443), 2),
        (socks_name(b"nobody.example", 443), 4),
        (socks_name(b"example.com", 443), 5),
        (vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 1, 0xbb], 2),
        (vec![5, 1, 0, 5, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1, 1, 0xbb], 2),
        (vec![5, 1, 0, 5, 2, 0, 1, 1, 1, 1, 1, 0, 80], 7),
        (vec![5, 1, 0, 5, 3, 0, 1, 1, 1, 1, 1, 0, 80], 7),
        (vec![5, 1, 0, 5, 1, 0, 9, 1, 1, 1, 1, 0, 80], 8),
    ] {
        let answer = rig.ask(&request).await;
        assert_eq!(answer, [5, 0, 5, reply, 0, 1, 0, 0, 0, 0, 0, 0], "{request:?}");
    }
    // Invalid before there is anything to reply to.
    assert_eq!(rig.ask(&[5, 2, 1, 2]).await, [5, 0xff]);
    assert_eq!(rig.ask(&[5, 1, 0, 4, 1, 0, 1]).await, [5, 0]);
    assert_eq!(rig.proxy.report().connections, 0);
}

#[tokio::test]
async fn the_report_lists_each_refused_host_once_with_reason_and_count() {
    let rig = rig(&["example.com", "inside.example"]).await;
    for _ in 0..3 {
        rig.ask(b"CONNECT evil.net:443 HTTP/1.1\r\n\r\n").await;
    }
    rig.ask(&socks_name(b"a\0b", 443)).await;
    rig.ask(b"GET http://inside.example/ HTTP/1.1\r\n\r\n").await;
    // An unreachable host and an invalid request are only reported to the command.
    rig.ask(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n").await;
    rig.ask(b"GET / HTTP/1.1\r\n\r\n").await;
    let report = rig.proxy.report();
    let hosts: Vec<_> = report.refused.iter().map(|refused| (refused.host.as_str(), refused.times)).collect();
    assert_eq!(hosts, [("evil.net:443", 3), ("a\\0b", 1), ("inside.example:80", 1)]);
    assert_eq!(report.refusals, 5);
    let outcome = report.refusals_text().unwrap();
    assert!(
        outcome.starts_with(
            "The command was refused the host evil.net:443 (3 times): evil.net:443 is not among the hosts that \
             commands may reach; ask your user whether to allow it.\n"
        ),
        "{outcome}"
    );
    let suggested = Suggestion::ChangeSettings("add `evil.net` to `sandbox.network`".into());
    assert!(report.suggestions().any(|one| *one == suggested), "{report:?}");
    for number in 0..100 {
        rig.ask(&socks_name(format!("host{number}.net").as_bytes(), 443)).await;
    }
    let report = rig.proxy.report();
    assert_eq!((report.refused.len(), report.refusals), (MAX_REFUSED, 105));
    assert!(report.refusals_text().unwrap().ends_with("\n71 more refusals are not listed."));
}

#[tokio::test]
async fn a_browser_reaches_only_hosts_that_a_page_requested() {
    let announced = Arc::<PageRequestHosts>::default();
    let network = Arc::new(FakeNetwork::default());
    for name in ["example.com", "other.example", "denied.example"] {
        network.name(name, &[&[PUBLIC]]);
    }
    let policy = ProxyPolicy {
        call: "call-1".into(),
        hosts: HostPatterns::all(),
        rules: Arc::new(|host| match host.to_string().as_str() {
            "denied.example" => Verdict::Deny,
            _ => Verdict::Allow,
        }),
        announced: Some(announced.clone()),
        limits: ProxyLimits::default(),
    };
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let connector = Connector::new(network.clone(), HostPatterns::default());
    let rig = Rig { proxy: EgressProxy::start(listener.into(), connector, policy).unwrap(), network };
    let _server = rig.server(443).await;
    announced.announce("https://example.com/");
    announced.announce("https://denied.example/");
    let mut client = rig.client().await;
    client.write_all(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(until(&mut client, b"\r\n\r\n").await.starts_with(b"HTTP/1.1 200"));
    for head in [
        "CONNECT other.example:443 HTTP/1.1\r\n\r\n",
        "GET http://other.example/ HTTP/1.1\r\nhost: other.example\r\n\r\n",
        "CONNECT example.com:8443 HTTP/1.1\r\n\r\n",
        "CONNECT denied.example:443 HTTP/1.1\r\n\r\n",
    ] {
        assert!(rig.ask(head.as_bytes()).await.starts_with(b"HTTP/1.1 403"), "{head}");
    }
    // A connection before its announcement waits for it.
    let mut early = rig.client().await;
    early.write_all(b"CONNECT other.example:443 HTTP/1.1\r\n\r\n").await.unwrap();
    announced.announce("https://other.example/");
    assert!(until(&mut early, b"\r\n\r\n").await.starts_with(b"HTTP/1.1 200"));
    let report = rig.proxy.report();
    let refused = report.refused.iter().map(|refused| (refused.host.as_str(), refused.is_unannounced));
    let expected = [
        ("other.example:443", true),
        ("other.example:80", true),
        ("example.com:8443", true),
        ("denied.example:443", false),
    ];
    assert_eq!(refused.collect::<Vec<_>>(), expected);
}

#[test]
fn refusals_of_a_host_are_counted_whatever_their_reasons() {
    let refused = |host: &str, reason: &str, times| RefusedHost {
        host: host.into(),
        reason: reason.into(),
        suggestion: None,
        times,
        is_unannounced: false,
    };
    let refused = vec![refused("[::1]:80", "x", 2), refused("b.example:80", "x", 1), refused("[::1]:80", "y", 1)];
    let report = ProxyReport { refused, ..ProxyReport::default() };
    let of = |host| report.refusals_of(host).map(|(times, newest)| (times, newest.reason.as_str()));
    assert_eq!((of("::1:80"), of("b.example:80"), of("c.example:80")), (Some((3, "y")), Some((1, "x")), None));
}

#[tokio::test]
async fn a_name_rebound_to_a_loopback_address_is_refused_on_the_next_connection() {
    let rig = rig(&["rebinding.example"]).await;
    let server = rig.server(443).await;
    rig.network.name("rebinding.example", &[&[PUBLIC], &["127.0.0.1"]]);
    let request = b"CONNECT rebinding.example:443 HTTP/1.1\r\n\r\n";
    let mut client = rig.client().await;
    client.write_all(request).await.unwrap();
    until(&mut client, b"\r\n\r\n").await;
    check_tunnel(client, &server, b"").await;
    assert!(rig.ask(request).await.starts_with(b"HTTP/1.1 403 "));
    assert_eq!(rig.network.connected(), [format!("{PUBLIC}:443").parse().unwrap()]);
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let limits = ProxyLimits { head_bytes: 16 << 10, ..ProxyLimits::default() };
    let rig = rig_with(&["example.com"], allow_all, limits).await;
    let long_value = format!("GET http://example.com/ HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(20_000));
    let many = format!("GET http://example.com/ HTTP/1.1\r\n{}\r\n", "X: 1\r\n".repeat(200));
    let long_target = format!("GET http://example.com/{} HTTP/1.1\r\n\r\n", "a".repeat(70_000));
    for request in [long_value, many, long_target] {
        let mut client = rig.client().await;
        // The connection may be closed before everything is sent.
        let _ = client.write_all(request.as_bytes()).await;
        let answer = String::from_utf8(rest(&mut client).await).unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert!(rig.network.resolved().is_empty());
}

/// Sends one byte after another until the other side has closed the connection.
async fn drip(mut writer: OwnedWriteHalf, byte: u8, closed: &mut mpsc::Receiver<()>) {
    let mut pause = tokio::time::interval(Duration::from_millis(5));
    loop {
        tokio::select! {
            _ = closed.recv() => return,
            _ = pause.tick() => if writer.write_all(&[byte]).await.is_err() { return },
        }
    }
}

#[tokio::test]
async fn a_client_without_a_complete_request_is_disconnected_after_a_timeout() {
    let limits = ProxyLimits { head_time: Duration::from_millis(100), ..ProxyLimits::default() };
    let rig = rig_with(&["example.com"], allow_all, limits).await;
    for beginning in [&b""[..], b"GET http://example.com/ HTTP/1.1\r\nX: ", b"CONN", b"\x05", b"\x05\xff"] {
        let (mut reader, mut writer) = rig.client().await.into_split();
        writer.write_all(beginning).await.unwrap();
        let (close, mut closed) = mpsc::channel(1);
        let read = async {
            let mut bytes = Vec::new();
            let _ = reader.read_to_end(&mut bytes).await;
            drop(close);
        };
        // A client that sends nothing at all, and clients that never stop sending.
        let dripping = async {
            if !beginning.is_empty() {
                drip(writer, b'a', &mut closed).await;
            }
        };
        timeout(PATIENCE, async { tokio::join!(read, dripping) }).await.expect("it is kept open");
    }
    assert_eq!(rig.proxy.report().connections, 0);
}

#[tokio::test]
async fn an_idle_tunnel_is_closed_on_both_sides() {
    let limits = ProxyLimits { idle_time: Duration::from_millis(100), ..ProxyLimits::default() };
    let rig = rig_with(&["example.com"], allow_all, limits).await;
    let server = rig.server(443).await;
    let mut client = rig.client().await;
    client.write_all(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n").await.unwrap();
    until(&mut client, b"\r\n\r\n").await;
    let (mut upstream, _) = server.accept().await.unwrap();
    assert_eq!(rest(&mut client).await, b"");
    assert_eq!(rest(&mut upstream).await, b"");
}

#[tokio::test]
async fn the_proxy_stops_forwarding_at_its_byte_limit() {
    let limits = ProxyLimits { bytes: Some(100_000), ..ProxyLimits::default() };
    let rig = rig_with(&["example.com"], allow_all, limits).await;
    let server = rig.server(443).await;
    let mut client = rig.client().await;
    client.write_all(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n").await.unwrap();
    until(&mut client, b"\r\n\r\n").await;
    let (mut upstream, _) = server.accept().await.unwrap();
    let send = async { while upstream.write_all(&[0; 1000]).await.is_ok() {} };
    let (bytes, ()) = timeout(PATIENCE, async { tokio::join!(rest(&mut client), send) }).await.expect("it goes on");
    assert!((50_000..200_000).contains(&bytes.len()), "{}", bytes.len());
    assert_eq!(rig.ask(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n").await, b"");
}

#[tokio::test]
async fn connections_above_the_limit_wait_for_one_that_ends() {
    let limits = ProxyLimits { connections: 1, ..ProxyLimits::default() };
    let rig = rig_with(&["example.com"], allow_all, limits).await;
    let _server = rig.server(443).await;
    let request = b"CONNECT example.com:443 HTTP/1.1\r\n\r\n";
    let (mut first, mut second) = (rig.client().await, rig.client().await);
    first.write_all(request).await.unwrap();
    until(&mut first, b"\r\n\r\n").await;
    second.write_all(request).await.unwrap();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(rig.proxy.report().connections, 1);
    drop((first, _server));
    let answer = until(&mut second, b"\r\n\r\n").await;
    assert!(answer.starts_with(b"HTTP/1.1 "));
}

#[tokio::test]
async fn dropping_the_proxy_closes_its_tunnels_and_listener() {
    let rig = rig(&["example.com"]).await;
    let server = rig.server(443).await;
    let mut tunnel = rig.client().await;
    tunnel.write_all(&socks_name(b"example.com", 443)).await.unwrap();
    exactly::<12>(&mut tunnel).await;
    let (mut upstream, _) = server.accept().await.unwrap();
    let address = rig.proxy.address;
    drop(rig);
    assert_eq!(rest(&mut tunnel).await, b"");
    assert_eq!(rest(&mut upstream).await, b"");
    // The listener closes with its task, which the runtime ends eventually.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn environment_variables_route_all_but_local_addresses_through_the_proxy() {
    let rig = rig(&[]).await;
    let proxy = format!("http://127.0.0.1:{}", rig.proxy.address.port());
    let environment: std::collections::BTreeMap<_, _> = rig.proxy.environment().into_iter().collect();
    for name in ["http_proxy", "HTTPS_PROXY", "all_proxy"] {
        assert_eq!(environment[name], proxy);
    }
    assert_eq!(environment["NO_PROXY"], "localhost,127.0.0.1,::1");
}

#[cfg(feature = "sandbox")]
#[tokio::test]
async fn a_confined_command_reaches_a_listed_host_and_no_other() {
    use crate::{
        child_environment,
        sandbox::launcher::{ChildInput, LaunchSpec, Launcher},
    };
    use toolstead_domain::{Confinement, NetworkPolicy, SandboxLimits, SandboxPolicy};

    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let ask = r#"ask() { exec 3<>"/dev/tcp/${proxy%:*}/${proxy##*:}"
        printf 'GET http://%s/hello HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$1" "$1" >&3; cat <&3; }"#;
    let script =
        format!("proxy=${{HTTP_PROXY#http://}}; proxy=${{proxy%/}}; {ask}; ask example.com; ask other.example");
    let policy = SandboxPolicy {
        confinement: Confinement::Sealed,
        session: None,
        hidden: Vec::new(),
        sealed: Vec::new(),
        write_roots: vec![folder.path().to_path_buf()],
        read_roots: Vec::new(),
        lasting_home: None,
        network: NetworkPolicy::Hosts(vec!["example.com".into()]),
        offers_tools: false,
        environment: child_environment::base(|_| None),
        limits: SandboxLimits::default(),
    };
    let (args, working_dir) = (vec!["-c".to_owned(), script], folder.path().to_path_buf());
    let spec = LaunchSpec { program: "bash".into(), args, working_dir, input: ChildInput::Nothing, policy };
    let mut child = Launcher::start().unwrap().launch(spec).await.unwrap();
    let rig = rig_on(child.proxy.take().unwrap(), &["example.com"], allow_all, ProxyLimits::default());
    let server = rig.server(80).await;
    let serve = async {
        let (mut client, _) = timeout(PATIENCE, server.accept()).await.expect("nobody comes").unwrap();
        let request = until(&mut client, b"\r\n\r\n").await;
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
        client.write_all(answer).await.unwrap();
        String::from_utf8(request).unwrap()
    };
    let mut outcome = String::new();
    let mut stdout = child.stdout.take().unwrap();
    let (request, read) = tokio::join!(serve, timeout(PATIENCE, stdout.read_to_string(&mut outcome)));
    read.expect("it goes on").unwrap();
    assert!(request.starts_with("GET /hello HTTP/1.1\r\n") && request.contains("example.com"), "{request}");
    let (hello, refusal) = outcome.split_once("hello").unwrap_or_else(|| panic!("{outcome}"));
    assert!(hello.starts_with("HTTP/1.1 200 "), "{outcome}");
    assert!(refusal.starts_with("HTTP/1.1 403 ") && refusal.contains("other.example"), "{outcome}");
    assert_eq!(rig.network.connected(), [format!("{PUBLIC}:80").parse().unwrap()]);
    assert!(rig.proxy.report().refusals_text().is_some_and(|outcome| outcome.contains("other.example")));
}
