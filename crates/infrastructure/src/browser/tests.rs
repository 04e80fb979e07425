//! A real browser, confined, on local pages.
#![expect(clippy::disallowed_methods, reason = "tests look at what the browser has put down")]

mod form_controls;
mod measured;
mod page_request_hosts;
mod pages;
mod programs;

use crate::{
    browser::{
        actions::PageCondition,
        program::{self, BrowserLaunch},
        session::{BrowserSession, BrowserSessionError, PageLoadCondition},
        snapshot::SnapshotDiff,
        state::{DialogAnswer, DownloadState, HostJudge, PageRefusal},
    },
    child_environment,
    egress::{
        connector::Connector,
        host::HostPatterns,
        proxy::{ProxyLimits, ProxyPolicy},
        testing::FakeNetwork,
    },
    sandbox::{launcher::Launcher, writable_roots::WritableRoots},
};
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use toolstead_domain::{SandboxPolicy, Verdict};

mod compromised_browser;

const SHOP: &str = r#"<!doctype html><title>Shop</title><h1>Shop</h1>
<label>Name <input id=name></label>
<select aria-label="Size"><option value=s>Small<option value=m>Medium</select>
<button onclick="done.textContent = 'Thanks, ' + document.getElementById('name').value">Buy</button>
<p id=done role=status></p><a href="http://evil.example/">Away</a><a href="/two">Two</a>
<iframe srcdoc="<button onclick='this.textContent=`pressed`'>Inner</button>" title=Pay></iframe><div id=host></div>
<script>
  document.getElementById('host').attachShadow({mode: 'closed'}).innerHTML = '<button>Shadow</button>';
  window.done = document.getElementById('done');
</script>"#;

/// Serves these pages, by path. `-> ADDRESS` redirects, and a text that begins with `bytes: ` is a download.
pub(crate) async fn server(pages: &'static [(&'static str, &'static str)]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let target = head.split(' ').nth(1).unwrap_or("/");
                let path = target.strip_prefix("http://").map_or(target, |rest| &rest[rest.find('/').unwrap_or(0)..]);
                let page = pages.iter().find(|(known, _)| *known == path);
                let (status, body) = page.map_or(("404 Not Found", ""), |(_, body)| ("200 OK", *body));
                let kind = if body.starts_with("bytes: ") { "application/octet-stream" } else { "text/html" };
                let (status, location) = match body.strip_prefix("-> ") {
                    Some(address) => ("302 Found", format!("location: {address}\r\n")),
                    None => (status, String::new()),
                };
                let answer = format!(
                    "HTTP/1.1 {status}\r\n{location}content-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    address
}

struct Rig {
    network: Arc<FakeNetwork>,
    session: BrowserSession,
    folder: TempDir,
}

fn end() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// Returns a rig with a browser that may load `shop.example`, which is served.
async fn rig(pages: &'static [(&'static str, &'static str)]) -> Rig {
    let path = toolstead_domain::sandbox_policy::SYSTEM_PATH;
    rig_with(program::find(None, path, &WritableRoots::default()).unwrap(), pages).await
}

/// Returns a rig whose browser is this program.
async fn rig_with(program: PathBuf, pages: &'static [(&'static str, &'static str)]) -> Rig {
    let network = Arc::new(FakeNetwork::default());
    network.name("shop.example", &[&["93.184.216.34"]]);
    network.name("evil.example", &[&["93.184.216.66"]]);
    network.server("93.184.216.34:80", server(pages).await);
    let folder = tempfile::tempdir().unwrap();
    let program = BrowserLaunch {
        launcher: Launcher::start().unwrap(),
        file: program,
        policy: SandboxPolicy::closed(child_environment::base(|_| None)),
        folder: folder.path().canonicalize().unwrap(),
        connector: Connector::new(network.clone(), HostPatterns::default()),
        proxy: ProxyPolicy {
            call: "test".into(),
            hosts: HostPatterns::all(),
            rules: Arc::new(|_| Verdict::Allow),
            announced: Some(Arc::default()),
            limits: ProxyLimits::default(),
        },
    };
    let judge: HostJudge = Arc::new(|host| match host {
        "shop.example" => Verdict::Allow,
        _ => Verdict::Ask,
    });
    let session = BrowserSession::start(program, judge, Duration::from_secs(60)).await;
    Rig { network, session: session.unwrap(), folder }
}

impl Rig {
    /// Returns the reference of the line that contains this text.
    async fn reference(&self, part: &str) -> crate::browser::references::ElementReference {
        let (snapshot, _) = self.session.look().await.unwrap();
        let line = snapshot.lines.iter().find(|line| line.text.contains(part));
        line.unwrap_or_else(|| panic!("{part}: {}", snapshot.text(5_000).0)).reference.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filling_in_and_clicking_a_page_reports_only_the_changed_lines() {
    let rig = rig(&[("/", SHOP), ("/two", "<title>Two</title><h1>Second</h1>")]).await;
    let session = &rig.session;
    session.open("http://shop.example/", false, end()).await.unwrap();
    let name = rig.reference("textbox \"Name\"").await;
    session.type_text(name, "Ann", true, false).await.unwrap();
    session.select(rig.reference("combobox").await, &["Medium".into()]).await.unwrap();
    let missing = session.select(rig.reference("combobox").await, &["Huge".into()]).await.unwrap_err();
    assert!(missing.to_string().contains("it has no \"Huge\"; there are Small, Medium"), "{missing}");
    session.click(rig.reference("button \"Buy\"").await, false).await.unwrap();
    session.wait_for(&PageCondition::Text("Thanks, Ann".into()), end()).await.unwrap();
    let Some(SnapshotDiff::Lines(outcome)) = session.look().await.unwrap().1 else { panic!("a change is told") };
    assert!(outcome.contains("Thanks, Ann") && !outcome.contains("Small"), "{outcome}");
    session.click(rig.reference("button \"Inner\"").await, false).await.unwrap();
    rig.reference("button \"pressed\"").await;
    session.click(rig.reference("button \"Shadow\"").await, false).await.unwrap();
    session.click(rig.reference("link \"Two\"").await, false).await.unwrap();
    session.wait_for(&PageCondition::Selector("h1".into()), end()).await.unwrap();
    session.wait_for(&PageCondition::Text("Second".into()), end()).await.unwrap();
    assert_eq!(session.click(name, false).await, Err(BrowserSessionError::Stale(name)));
    session.wait(PageLoadCondition::Quiet(Duration::from_millis(200)), end()).await.unwrap();
    assert!(!rig.network.resolved().contains(&"evil.example".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_host_without_permission_is_not_opened() {
    let rig = rig(&[("/", SHOP)]).await;
    let session = &rig.session;
    for (address, message) in [
        ("http://evil.example/", "a page of `evil.example` was not opened"),
        ("file:///etc/passwd", "only http and https addresses are supported"),
        ("view-source:http://shop.example/", "only http and https addresses are supported"),
        ("data:text/html,x", "only http and https addresses are supported"),
        ("nothing", "is not an address"),
    ] {
        let error = session.open(address, false, end()).await.unwrap_err();
        assert!(error.to_string().contains(message), "{address}: {error}");
    }
    session.open("http://shop.example/", false, end()).await.unwrap();
    session.click(rig.reference("link \"Away\"").await, false).await.unwrap();
    session.when(end(), |state| state.has_notes().then_some(())).await.unwrap();
    let message = "A page of `evil.example` was not opened: its host is not allowed. `browser_navigate` asks the \
                user to allow it.";
    assert_eq!(session.take_notes(), [message]);
    // The page is still shown, and its state is unchanged.
    rig.reference("link \"Away\"").await;
    let tab = session.state().current().map(|tab| (tab.url.clone(), tab.title.clone(), tab.host())).unwrap();
    assert_eq!(tab, ("http://shop.example/".to_owned(), "Shop".to_owned(), Some("shop.example".to_owned())));
    assert_eq!(rig.network.resolved().iter().filter(|name| *name == "evil.example").count(), 0);
}

const TRAPPED: &[(&str, &str)] = &[
    ("/", "<title>Shop</title><input aria-label=Word><iframe src='http://evil.example/trap' title=Trap></iframe>"),
    ("/trap", "<input id=trap aria-label=Trapped><script>setInterval(() => trap.focus(), 1)</script>"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_grabs_the_focus_receives_no_text_typed_into_other_elements() {
    let rig = rig(TRAPPED).await;
    rig.network.server("93.184.216.66:80", server(TRAPPED).await);
    let session = &rig.session;
    session.open("http://shop.example/", false, end()).await.unwrap();
    let is_trapped = async || {
        let (snapshot, _) = session.look().await.unwrap();
        snapshot.lines.iter().any(|line| line.text.contains("Trapped"))
    };
    let last = end();
    while !is_trapped().await {
        assert!(Instant::now() < last, "the frame comes");
    }
    let (word, trapped) = (rig.reference("textbox \"Word\"").await, rig.reference("textbox \"Trapped\"").await);
    for number in 0..20 {
        session.type_text(word, &format!("secret{number}"), true, false).await.unwrap();
    }
    session.type_text(word, "!", false, false).await.unwrap();
    let line = async |part: &str| {
        let (snapshot, _) = session.look().await.unwrap();
        snapshot.lines.iter().find(|line| line.text.contains(part)).unwrap().text.clone()
    };
    assert!(line("textbox \"Word\"").await.contains("secret19!"), "{}", line("Word").await);
    assert!(!line("\"Trapped\"").await.contains("secret"), "{}", line("\"Trapped\"").await);
    // A text for the frame reaches it.
    session.type_text(trapped, "for you", true, false).await.unwrap();
    assert!(line("\"Trapped\"").await.contains("for you"), "{}", line("\"Trapped\"").await);
    session.type_text(word, "", true, false).await.unwrap();
    assert!(!line("textbox \"Word\"").await.contains("secret"), "{}", line("Word").await);
}

const HOSTILE: &str = r#"<title>Hostile</title><body><script>
  const at = 'LISTENER', away = what => new Promise(done => what(done));
  const image = new Image(), frame = document.createElement('iframe'), file = document.createElement('iframe');
  file.src = 'file:///etc/passwd';
  Promise.allSettled([
    fetch('http://' + at + '/', {mode: 'no-cors'}),
    fetch('http://inner.example:' + at.split(':')[1] + '/', {mode: 'no-cors'}),
    fetch('/redirect', {mode: 'no-cors'}),
    fetch('file:///etc/passwd'),
    away(done => { const socket = new WebSocket('ws://' + at + '/'); socket.onerror = socket.onopen = done; }),
    away(done => { image.onload = image.onerror = done; image.src = 'http://' + at + '/image'; }),
    away(done => { frame.onload = frame.onerror = done; frame.src = 'http://' + at + '/frame'; document.body.append(frame, file); }),
    navigator.serviceWorker ? navigator.serviceWorker.register('/worker.js') : Promise.reject(),
  ]).then(() => document.body.append('tried all'));
</script>"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_page_reaches_no_listener_of_the_host() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let at = listener.local_addr().unwrap();
    let pages: &'static [(&str, &str)] = Box::leak(Box::new([
        ("/", &*HOSTILE.replace("LISTENER", &at.to_string()).leak()),
        ("/redirect", &*format!("-> http://{at}/redirected").leak()),
        ("/away", "-> http://evil.example/"),
        ("/worker.js", "fetch('http://inner.example/')"),
    ]));
    let rig = rig(pages).await;
    rig.network.name("inner.example", &[&["127.0.0.1"]]);
    // Connections through the proxy reach the listener.
    rig.network.server(&at.to_string(), at);
    let session = &rig.session;
    session.open("http://shop.example/", false, end()).await.unwrap();
    session.wait_for(&PageCondition::Text("tried all".into()), end()).await.unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let elsewhere = rig.network.connected().into_iter().find(|address| address.to_string() != "93.184.216.34:80");
    assert_eq!(elsewhere, None);
    let (snapshot, _) = session.look().await.unwrap();
    assert!(!snapshot.text(100_000).0.contains("root:"), "{snapshot:?}");
    let refused = session.open("http://shop.example/away", false, end()).await.unwrap_err();
    assert_eq!(refused, BrowserSessionError::NotShown(PageRefusal::NotAllowed("evil.example".into())));
    assert!(!rig.network.resolved().contains(&"evil.example".to_owned()));
}

const HANDS: &str = r#"<title>Hands</title>
<button onclick="window.open('/two')">Popup</button><button onclick="window.open('about:blank')">Blank</button>
<button onclick="window.open('http://evil.example/')">Evil</button>
<button onclick="this.textContent = confirm('Sure?') ? 'sure' : 'unsure'">Ask</button>
<a href="/file" download="file.txt">Load</a>
<label>Paper <input type=file onchange="done.textContent = 'got ' + this.files[0].name + ', ' + this.files[0].size"></label>
<p id=done role=status></p><script>window.done = document.getElementById('done');</script>"#;

/// Pages with controls to use.
pub(crate) const PAGES: &[(&str, &str)] =
    &[("/", HANDS), ("/two", "<title>Two</title><h1>Second</h1>"), ("/file", "bytes: of a file"), ("/long", LONG)];

const LONG: &str = "<title>Long</title><div style='height: 30000px; background: linear-gradient(red, blue)'></div>";

#[tokio::test(flavor = "multi_thread")]
async fn a_popup_is_checked_like_any_page_and_a_blank_popup_inherits_its_openers_host() {
    let rig = rig(PAGES).await;
    let session = &rig.session;
    session.open("http://shop.example/", false, end()).await.unwrap();
    let first = session.state().current.unwrap();
    let is_another = |state: &crate::browser::state::BrowserState| (state.current != Some(first)).then_some(());
    session.click(rig.reference("button \"Popup\"").await, false).await.unwrap();
    session.when(end(), is_another).await.unwrap();
    session.wait_for(&PageCondition::Text("Second".into()), end()).await.unwrap();
    session.choose(first).await.unwrap();
    session.click(rig.reference("button \"Blank\"").await, false).await.unwrap();
    session.when(end(), is_another).await.unwrap();
    assert_eq!(session.state().current().unwrap().host().as_deref(), Some("shop.example"));
    session.choose(first).await.unwrap();
    session.state().take_notes();
    session.click(rig.reference("button \"Evil\"").await, false).await.unwrap();
    session.when(end(), |state| state.refused().next().cloned()).await.unwrap();
    assert!(!rig.network.resolved().contains(&"evil.example".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dialog_answer_is_used_once_and_only_an_expected_download_is_saved() {
    let rig = rig(PAGES).await;
    let session = &rig.session;
    session.open("http://shop.example/", false, end()).await.unwrap();
    session.state().expects(Some(DialogAnswer::Accept(None)), false);
    session.click(rig.reference("button \"Ask\"").await, false).await.unwrap();
    session.click(rig.reference("button \"sure\"").await, false).await.unwrap();
    rig.reference("button \"unsure\"").await;
    session.state().take_notes();
    let load = rig.reference("link \"Load\"").await;
    session.click(load, false).await.unwrap();
    session.when(end(), |state| state.has_notes().then_some(())).await.unwrap();
    let note = session.state().take_notes().join(" ");
    assert!(note.contains("which was not saved") && session.state().downloads.is_empty(), "{note}");
    session.state().expects(None, true);
    session.click(load, false).await.unwrap();
    let is_done = |state: &crate::browser::state::BrowserState| {
        state.downloads.first().filter(|download| download.state == DownloadState::Done).cloned()
    };
    let download = session.when(end(), is_done).await.unwrap();
    assert_eq!(std::fs::read_to_string(rig.folder.path().join(download.id)).unwrap(), "bytes: of a file");
}
