//! A hostile page tries each way by which a browser could reach listeners of this machine. The listeners record all
//! connections, the network of the test records those of the connector, and the results of the calls report what was
//! refused.

use super::tools_on;
use crate::{builtin::tool_kit::testing::ToolTestHarness, egress::testing::FakeNetwork};
use serde_json::{Value, json};
use std::{
    io::ErrorKind as IoErrorKind,
    net::{IpAddr, TcpListener as StdListener, UdpSocket},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::watch,
    time::timeout,
};
use toolstead_domain::error_kind::ErrorKind;

/// The page's own host. The browser trusts names below `localhost` as it does TLS, so that service workers run.
const PAGE: &str = "http://shop.localhost";

/// Component that reports the refusal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// The proxy: the note names host and port.
    Host,
    /// The judge of pages: the note names the host, and the page stays.
    Page,
    /// None: the browser itself rejects the address, or the run has no network for it.
    Nothing,
}
use Told::{Host, Nothing, Page};

/// Each way out as a function of an address: its name, the reporting component, `true` if the same way reaches an
/// allowed host, headers of the page, the body of the function.
const WAYS: &[(&str, Told, bool, &str, &str)] = &[
    ("fetch", Host, true, "", "return reach(url)"),
    (
        "fetch that outlives",
        Host,
        true,
        "",
        "return fetch(url, {mode: 'no-cors', keepalive: true, method: 'POST', body: 'x'})",
    ),
    ("xhr", Host, true, "", "const x = new XMLHttpRequest(); x.open('GET', url); x.send()"),
    ("image", Host, true, "", "new Image().src = url"),
    ("stylesheet", Host, true, "", "add('link', {rel: 'stylesheet', href: url})"),
    ("import of a stylesheet", Host, true, "", "add('style', {textContent: `@import url(\"${url}\")`})"),
    ("background", Host, true, "", "add('p', {style: `background: url(${url}); height: 9px`})"),
    ("font", Host, true, "", "return new FontFace('f', `url(\"${url}\")`).load()"),
    ("script", Host, true, "", "add('script', {src: url})"),
    ("module", Host, true, "", "return import(url)"),
    ("frame", Host, true, "", "add('iframe', {src: url})"),
    ("frame that moves on", Host, true, "", "add('iframe', {src: `/to?${url}`})"),
    ("object", Host, true, "", "add('object', {data: url})"),
    ("embed", Host, true, "", "add('embed', {src: url})"),
    ("video", Host, true, "", "add('video', {src: url, preload: 'auto'})"),
    (
        "form in a frame",
        Host,
        true,
        "",
        "const name = 'f' + Math.random(); add('iframe', {name}); add('form', {action: url, target: name}).submit()",
    ),
    ("redirect", Host, true, "", "return reach(`/to?${url}`)"),
    ("beacon", Host, true, "", "navigator.sendBeacon(url, 'x')"),
    ("ping", Host, true, "", "const a = add('a', {href: '#'}); a.ping = url; a.click()"),
    ("prefetch", Host, true, "", "add('link', {rel: 'prefetch', href: url})"),
    ("preload", Host, true, "", "add('link', {rel: 'preload', as: 'image', href: url})"),
    ("web socket", Host, true, "", "new WebSocket(url.replace('http', 'ws'))"),
    ("event source", Host, true, "", "new EventSource(url)"),
    ("worker", Host, true, "", "new Worker(`/worker.js?${url}`)"),
    ("shared worker", Host, true, "", "new SharedWorker(`/worker.js?${url}`)"),
    (
        "service worker",
        Host,
        true,
        "",
        "navigator.serviceWorker.register(`/worker.js?${url}`, {scope: '/scope' + Math.random()})",
    ),
    ("frame of data", Host, true, "", "add('iframe', {src: `data:text/html,<img src='${url}'>`})"),
    (
        "frame of a blob",
        Host,
        true,
        "",
        "add('iframe', {src: URL.createObjectURL(new Blob([`<img src='${url}'>`], {type: 'text/html'}))})",
    ),
    ("frame of a script", Host, true, "", "add('iframe', {src: `javascript:\"<img src='${url}'>\"`})"),
    (
        "report of a policy",
        Host,
        false,
        "content-security-policy: img-src 'none'; report-uri LISTENER\r\n",
        "new Image().src = '/x'",
    ),
    ("header that loads", Host, false, "link: <LISTENER>; rel=preload; as=image\r\n", ""),
    ("WebRTC over TCP", Nothing, false, "", "return rtc(url, 'tcp')"),
    ("WebRTC over UDP", Nothing, false, "", "return rtc(url, 'udp')"),
    ("WebTransport", Nothing, false, "", "return new WebTransport(url.replace('http:', 'https:')).ready"),
    ("alternative service", Nothing, false, "alt-svc: h3=\"UDP\"; ma=60\r\n", ""),
    (
        "connection ahead",
        Nothing,
        false,
        "",
        "add('link', {rel: 'preconnect', href: url}); add('link', {rel: 'dns-prefetch', href: url})",
    ),
    (
        "page ahead",
        Nothing,
        false,
        "",
        "add('script', {type: 'speculationrules', textContent: JSON.stringify({prerender: [{source: 'list', urls: [url]}], prefetch: [{source: 'list', urls: [url]}]})})",
    ),
    (
        "reports",
        Nothing,
        false,
        "reporting-endpoints: a=\"LISTENER\"\r\nreport-to: {\"group\": \"a\", \"max_age\": 9, \"endpoints\": [{\"url\": \"LISTENER\"}]}\r\nnel: {\"report_to\": \"a\", \"max_age\": 9, \"success_fraction\": 1}\r\naccept-ch: sec-ch-ua-full\r\n",
        "",
    ),
    (
        "files in frames",
        Nothing,
        false,
        "",
        "for (const src of ['file:///etc/passwd', 'view-source:' + url, 'chrome://version', 'ftp://127.0.0.1/', 'filesystem:' + url, 'mailto:a@b.example']) add('iframe', {src}); return fetch('file:///etc/passwd')",
    ),
    ("file", Nothing, false, "", "location = 'file:///etc/passwd'"),
    ("source", Nothing, false, "", "location = 'view-source:' + url"),
    ("page of the browser", Nothing, false, "", "location = 'chrome://version'"),
    (
        "other protocols",
        Nothing,
        false,
        "",
        "for (const to of ['ftp://127.0.0.1/', 'mailto:a@b.example', 'ssh://127.0.0.1/', 'filesystem:' + url]) location = to",
    ),
    ("location", Page, false, "", "location = url"),
    ("replacement", Page, false, "", "location.replace(`/to?${url}`)"),
    ("refresh", Page, false, "", "add('meta', {httpEquiv: 'refresh', content: `0; url=${url}`})"),
    ("header that refreshes", Page, false, "refresh: 0; url=LISTENER\r\n", ""),
    ("form", Page, false, "", "add('form', {action: url, method: 'post'}).submit()"),
    ("page around a frame", Page, false, "", "add('iframe', {srcdoc: `<script>top.location = '${url}'<\\/script>`})"),
    (
        "popup of a blob",
        Host,
        false,
        "",
        "window.open(URL.createObjectURL(new Blob([`<img src='${url}'>`], {type: 'text/html'})))",
    ),
    ("popup", Page, false, "", "window.open(url)"),
    ("popup without an opener", Page, false, "", "window.open(url, '_blank', 'noopener')"),
    ("form in a popup", Page, false, "", "add('form', {action: url, target: '_blank'}).submit()"),
    (
        "popup that moves on",
        Page,
        false,
        "",
        "window.open('').document.write(`<script>location = '${url}'<\\/script>`)",
    ),
    ("popup of a script", Page, false, "", "window.open(`javascript:location = '${url}'`)"),
    ("download", Page, false, "", "add('a', {href: url, download: 'x'}).click()"),
];

const SCRIPT: &str = r"
const reach = url => fetch(url, {mode: 'no-cors'});
const add = (name, with_) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(with_)) made[key] = value;
    (document.body || document.documentElement).append(made);
    return made;
};
const rtc = async (url, transport) => {
    const at = transport === 'tcp' ? new URL(url).host : 'UDP';
    const peer = new RTCPeerConnection({iceServers: [
        {urls: [`turn:${at}?transport=${transport}`], username: 'a', credential: 'b'},
        ...(transport === 'udp' ? [{urls: `stun:${at}`}] : []),
    ]});
    peer.createDataChannel('x');
    await peer.setLocalDescription(await peer.createOffer());
    // Without a network the search for candidates never ends.
    await new Promise(go => { peer.onicecandidate = peer.onicecandidateerror = go; setTimeout(go, 1000); });
};
const trying = async url => { try { await way(url); } catch {} };
";

/// Listeners of this machine that must not be reached.
struct Listeners {
    tcp: Vec<StdListener>,
    udp: Vec<UdpSocket>,
}

impl Listeners {
    /// Listens on each local address of this machine, and on a public one if there is one.
    fn new() -> Self {
        let mut addresses: Vec<IpAddr> = vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()];
        // The address that a route outside would have: nothing is sent.
        let outside = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
            socket.connect("192.0.2.1:9")?;
            socket.local_addr()
        });
        addresses.extend(outside.ok().map(|address| address.ip()).filter(|address| !address.is_loopback()));
        let tcp = addresses.iter().filter_map(|address| StdListener::bind((*address, 0)).ok()).collect::<Vec<_>>();
        let udp = addresses.iter().filter_map(|address| UdpSocket::bind((*address, 0)).ok()).collect::<Vec<_>>();
        tcp.iter().for_each(|listener| listener.set_nonblocking(true).unwrap());
        udp.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        Self { tcp, udp }
    }

    /// Returns the address of the first TCP listener.
    fn tcp(&self) -> String {
        self.tcp[0].local_addr().unwrap().to_string()
    }

    fn udp(&self) -> String {
        self.udp[0].local_addr().unwrap().to_string()
    }

    /// Returns all addresses of a listener, under every name and in every notation.
    fn addresses(&self) -> Vec<String> {
        let port = self.tcp[0].local_addr().unwrap().port();
        let own = self.tcp.iter().map(|listener| listener.local_addr().unwrap().to_string());
        let others =
            ["inner.example", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0.0.0.0", "[::ffff:7f00:1]"];
        own.chain(others.iter().map(|host| format!("{host}:{port}"))).map(|at| format!("http://{at}/")).collect()
    }

    #[track_caller]
    fn were_not_reached(&self, way: &str) {
        for listener in &self.tcp {
            assert_eq!(listener.accept().unwrap_err().kind(), IoErrorKind::WouldBlock, "{way}");
        }
        for socket in &self.udp {
            assert_eq!(socket.recv(&mut [0; 9]).unwrap_err().kind(), IoErrorKind::WouldBlock, "{way}");
        }
    }
}

/// The site of the hostile page, and the requested paths.
struct Site {
    asked: watch::Receiver<Vec<String>>,
    address: std::net::SocketAddr,
    /// Headers and body of the page.
    page: Arc<Mutex<(String, String)>>,
}

impl Site {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (asking, asked) = watch::channel(Vec::new());
        let page = Arc::new(Mutex::new((String::new(), String::new())));
        let (shown, asking) = (page.clone(), Arc::new(asking));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (shown, asking) = (shown.clone(), asking.clone());
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let head = String::from_utf8_lossy(&head).into_owned();
                    let target = head.split(' ').nth(1).unwrap_or("/").trim_start_matches(PAGE).to_owned();
                    asking.send_modify(|asked| asked.push(target.clone()));
                    let path = target.split('?').next().unwrap_or_default();
                    let (status, kind, headers, body) = match (path, target.split_once('?')) {
                        ("/page", _) => {
                            let (headers, body) = shown.lock().unwrap().clone();
                            ("200 OK", "text/html", headers, body)
                        }
                        ("/to", Some((_, to))) => {
                            ("302 Found", "text/html", format!("location: {to}\r\n"), String::new())
                        }
                        ("/worker.js", Some((_, url))) => {
                            let body = format!(
                                "try {{ importScripts('{url}'); }} catch {{}} fetch('{url}', {{mode: 'no-cors'}}).catch(() => {{}});"
                            );
                            ("200 OK", "text/javascript", String::new(), body)
                        }
                        _ => ("404 Not Found", "text/html", String::new(), String::new()),
                    };
                    let answer = format!(
                        "HTTP/1.1 {status}\r\n{headers}content-type: {kind}\r\ncache-control: no-store\r\n\
                         content-length: {}\r\nconnection: close\r\n\r\n{body}",
                        body.len()
                    );
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { asked, address, page }
    }

    fn shows(&self, headers: &str, body: String) {
        *self.page.lock().unwrap() = (headers.to_owned(), body);
    }

    async fn is_asked(&self, path: &str, way: &str) {
        let mut asked = self.asked.clone();
        let is_it = |target: &String| target.split('?').next() == Some(path);
        let waiting = asked.wait_for(|asked| asked.iter().any(is_it));
        timeout(Duration::from_secs(60), waiting).await.unwrap_or_else(|_| panic!("{way}: {path} came")).unwrap();
    }
}

/// Returns the results of calls until one contains this text.
pub(super) async fn notes_until(tools: &ToolTestHarness, part: &str, way: &str) -> String {
    let mut notes_until = String::new();
    let looking = async {
        while !notes_until.contains(part) {
            notes_until
                .push_str(&notes(&tools.call("browser_tabs", json!({})).await.unwrap().structured_content().cloned()));
        }
    };
    timeout(Duration::from_secs(60), looking).await.unwrap_or_else(|_| panic!("{way}: {part} is told"));
    notes_until
}

/// Returns the notes of a result.
pub(super) fn notes(metadata: &Option<Value>) -> String {
    metadata.as_ref().map_or(String::new(), |metadata| metadata["notes"].to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_reaches_no_local_listener_by_any_route_and_refused_hosts_are_reported() {
    let listeners = Listeners::new();
    let (tcp, udp) = (listeners.tcp(), listeners.udp());
    let site = Site::new().await;
    let network = Arc::new(FakeNetwork::default());
    network.name("shop.localhost", &[&["93.184.216.34"]]);
    network.name("inner.example", &[&["127.0.0.1"]]);
    network.name("localhost", &[&["127.0.0.1", "::1"]]);
    network.server("93.184.216.34:80", site.address);
    // A connection that passes all checks reaches the listener.
    for listener in &listeners.tcp {
        let address = listener.local_addr().unwrap();
        network.server(&address.to_string(), address);
    }
    let folder = tempfile::tempdir().unwrap();
    let (tools, _) = tools_on(network.clone(), folder.path(), Duration::from_secs(300));
    let listener = format!("http://{tcp}/");
    for (number, (way, told_by, arrives, headers, body)) in WAYS.iter().enumerate() {
        let control = format!("/control/{number}");
        let last = match (told_by, arrives) {
            (Page, _) => String::new(),
            (_, true) => format!("trying('{PAGE}{control}')"),
            // By then a delayed request would have arrived.
            (_, false) => format!("reach('{PAGE}{control}')"),
        };
        let script = SCRIPT.replace("UDP", &udp);
        let fill = |text: &str| text.replace("LISTENER", &listener).replace("UDP", &udp);
        site.shows(
            &fill(headers),
            format!(
                "<!doctype html><title>Way</title><body><script>const way = async url => {{ {body} }};{script}\
                 trying('{listener}').then(() => {{ {last} }})</script>"
            ),
        );
        let opened = tools
            .call("browser_navigate", json!({"url": format!("{PAGE}/page?{number}"), "timeout_ms": 60_000}))
            .await
            .unwrap();
        let mut said = notes(&opened.structured_content().cloned());
        let part = match told_by {
            Host => format!("refused the host {tcp}"),
            Page => "A page of `127.0.0.1` was not opened".into(),
            Nothing => String::new(),
        };
        if !said.contains(&part) {
            said.push_str(&notes_until(&tools, &part, way).await);
        }
        if *told_by != Page {
            site.is_asked(&control, way).await;
        }
        listeners.were_not_reached(way);
        let page = tools.call("browser_get_page", json!({})).await.unwrap().joined_text();
        assert!(!page.contains("root:"), "{way}: {page}");
        if *told_by == Page && !way.contains("popup") {
            assert!(page.contains(&format!("{PAGE}/page?{number}")), "{way}: the page stays: {page}");
        }
        if way.contains("popup") {
            tools.call("browser_close", json!({})).await.unwrap();
        }
    }

    // Every name and notation of this machine, and where machines of a cloud have their credentials.
    let names = [&listeners.addresses()[..], &["http://169.254.169.254/".into(), "http://[fe80::1]/".into()]].concat();
    let list = serde_json::to_string(&names).unwrap();
    let script = format!(
        "Promise.allSettled({list}.map(url => fetch(url, {{mode: 'no-cors'}}))).then(() => fetch('/control/names'))"
    );
    site.shows("", format!("<script>{script}</script>"));
    let opened = tools.call("browser_navigate", json!({"url": format!("{PAGE}/page?names")})).await.unwrap();
    site.is_asked("/control/names", "names").await;
    let said = notes(&opened.structured_content().cloned())
        + &notes(&tools.call("browser_get_page", json!({})).await.unwrap().structured_content().cloned());
    let port = listeners.tcp[0].local_addr().unwrap().port();
    for part in [format!("{tcp} ("), format!("inner.example:{port}"), "169.254.169.254:80".into()] {
        assert!(said.contains(&part), "{part}: {said}");
    }
    listeners.were_not_reached("names");

    // Addresses of pages: directly, by a redirect, and one that is not a page.
    for (to, kind, part) in [
        (listener.as_str(), ErrorKind::PermissionDenied, "Ask your user, who can change the configuration."),
        (format!("{PAGE}/to?{listener}").as_str(), ErrorKind::PermissionDenied, "a page of `127.0.0.1` was not opened"),
        (
            format!("{PAGE}/to?http://elsewhere.example/").as_str(),
            ErrorKind::PermissionDenied,
            "a page of `elsewhere.example` was not opened",
        ),
        (format!("{PAGE}/to?file:///etc/passwd").as_str(), ErrorKind::UpstreamHttp, "ERR_UNSAFE_REDIRECT"),
        ("file:///etc/passwd", ErrorKind::InvalidInput, "only http and https"),
    ] {
        let failure = tools.call("browser_navigate", json!({"url": to})).await.unwrap_err();
        assert_eq!(failure.kind, kind, "{to}: {failure:?}");
        assert!(failure.text().contains(part), "{to}: {}", failure.text());
    }
    listeners.were_not_reached("addresses");

    // A name that leads elsewhere when it is asked for again.
    network.name("moving.example", &[&["93.184.216.34"], &["127.0.0.1"]]);
    let twice = "fetch('http://moving.example/', {mode: 'no-cors'}).then(() => fetch('http://moving.example/two', {mode: 'no-cors'}))";
    site.shows("", format!("<script>{twice}.finally(() => fetch('/control/moved'))</script>"));
    let opened = tools.call("browser_navigate", json!({"url": format!("{PAGE}/page?moving")})).await.unwrap();
    let part = "refused the host moving.example:80";
    if !notes(&opened.structured_content().cloned()).contains(part) {
        notes_until(&tools, part, "moving").await;
    }

    let elsewhere = network.connected().into_iter().find(|address| address.to_string() != "93.184.216.34:80");
    assert_eq!(elsewhere, None);
    // No proxy of another origin, and no connection to the browser's vendor.
    let known = ["shop.localhost", "inner.example", "localhost", "moving.example"];
    assert_eq!(network.resolved().into_iter().find(|name| !known.contains(&name.as_str())), None);
}
