//! A compromised browser may send anything: its messages are read without a panic, in bounded memory, and no page is
//! let through that no rule allows.

use crate::browser::{
    devtools::{CommandTarget, DevTools},
    state::{BrowserState, DialogAnswer, HostJudge, MAX_ID_BYTES},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use toolstead_domain::Verdict;

/// The one host that may be shown.
const ALLOWED: &str = "shop.example";

/// A message of a browser, or bytes that are not a message.
#[derive(Debug, Clone)]
enum Said {
    Message(Value),
    Bytes(Vec<u8>),
}

/// An id of a tab, a frame or a document: few different ones, so that they collide; some are far too long.
fn name() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => (0..4_u8).prop_map(|number| json!(format!("n{number}"))),
        1 => Just(json!("n".repeat(5_000))),
        1 => Just(json!("")),
        1 => any::<i64>().prop_map(|number| json!(number)),
        1 => Just(Value::Null),
    ]
}

fn address() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(json!("http://shop.example/a")),
        4 => Just(json!("http://evil.example/")),
        1 => Just(json!("about:blank")),
        1 => Just(json!("blob:http://evil.example/1")),
        1 => Just(json!("file:///etc/passwd")),
        1 => Just(json!(format!("http://{}.example/", "e".repeat(10_000)))),
        1 => "\\PC{0,40}".prop_map(|text| json!(text)),
        1 => Just(Value::Null),
    ]
}

fn deep() -> Value {
    (0..500).fold(json!(1), |inner, _| json!([inner]))
}

fn message() -> impl Strategy<Value = Value> {
    let params = (name(), name(), name(), address(), any::<bool>());
    let method = prop_oneof![
        6 => Just("Target.attachedToTarget"),
        1 => Just("Target.detachedFromTarget"),
        1 => Just("Target.targetInfoChanged"),
        8 => Just("Fetch.requestPaused"),
        4 => Just("Page.frameAttached"),
        4 => Just("Page.frameNavigated"),
        1 => Just("Page.frameDetached"),
        1 => Just("Page.frameStartedLoading"),
        1 => Just("Page.navigatedWithinDocument"),
        1 => Just("Page.javascriptDialogOpening"),
        1 => Just("Page.fileChooserOpened"),
        1 => Just("Browser.downloadWillBegin"),
        1 => Just("Browser.downloadProgress"),
        1 => Just("Network.requestWillBeSent"),
        1 => Just("Runtime.consoleAPICalled"),
        1 => Just("Runtime.exceptionThrown"),
        1 => Just("Log.entryAdded"),
        1 => Just("Nobody.knowsIt"),
    ];
    (method, name(), params).prop_map(|(method, session, (a, b, c, url, odd))| {
        let parts = json!({
            "sessionId": a, "frameId": b, "parentFrameId": c, "requestId": c, "guid": a, "url": url,
            "targetInfo": {"type": if odd { "worker" } else { "page" }, "targetId": b, "openerId": c, "title": "t".repeat(3_000)},
            "request": {"url": url}, "reason": c, "suggestedFilename": "f".repeat(3_000), "message": "m".repeat(3_000),
            "frame": {"id": b, "loaderId": c, "parentId": if odd { c.clone() } else { Value::Null }, "url": url},
            "type": "error", "args": [{"value": "v".repeat(3_000)}], "backendNodeId": 1,
            "entry": {"level": "error", "text": "x".repeat(3_000)}, "receivedBytes": f64::MAX, "state": "completed",
        });
        json!({"method": method, "sessionId": session, "params": parts})
    })
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        30 => message().prop_map(Said::Message),
        2 => any::<u64>().prop_map(|id| Said::Message(json!({"id": id, "result": {}}))),
        1 => any::<i8>().prop_map(|error| Said::Message(json!({"id": 1, "error": error}))),
        1 => Just(Said::Message(json!({"method": "Fetch.requestPaused", "params": {"requestId": deep()}}))),
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Said::Bytes),
        1 => Just(Said::Bytes([&b"{\"id\":2,\"result\":"[..], &[b'['; 100_000], b"\0"].concat())),
        1 => Just(Said::Bytes(b"{\"method\":\"a\",\"method\":\"b\"}\0".to_vec())),
    ]
}

/// Sends the messages, and returns the resulting state with the commands that the browser received.
fn played(all: Vec<Said>) -> (BrowserState, Vec<Value>) {
    played_in(BrowserState::default(), all)
}

/// Sends the messages to an existing state.
fn played_in(state: BrowserState, all: Vec<Said>) -> (BrowserState, Vec<Value>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (ours, mut output) = duplex(1 << 20);
        let (theirs, mut input) = duplex(1 << 20);
        let state = Arc::new(Mutex::new(state));
        let judge: HostJudge = Arc::new(|host| if host == ALLOWED { Verdict::Allow } else { Verdict::Ask });
        state.lock().unwrap().set_judge(judge);
        let hearing = state.clone();
        let devtools = DevTools::over(ours, theirs, None, move |heard| hearing.lock().unwrap().apply_event(&heard));
        let end = devtools.close_handle();
        let target = CommandTarget(None);
        let asking = devtools.call(&target, "A.a", json!({}));
        let saying = async {
            for said in all {
                let bytes = match said {
                    Said::Message(message) => format!("{message}\0").into_bytes(),
                    Said::Bytes(bytes) => bytes,
                };
                // A protocol violation ends the connection.
                if output.write_all(&bytes).await.is_err() {
                    break;
                }
            }
            drop(output);
            end.closed().await;
        };
        let hearing = async {
            let mut commands = Vec::new();
            // Ends with the connection.
            let _ = input.read_to_end(&mut commands).await;
            commands
        };
        let (_, (), commands) = tokio::join!(asking, saying, hearing);
        drop(devtools);
        let commands = commands.split(|byte| *byte == 0).filter(|command| !command.is_empty());
        let commands = commands.filter_map(|command| serde_json::from_slice(command).ok()).collect();
        let state = std::mem::take(&mut *state.lock().unwrap());
        (state, commands)
    })
}

/// Returns the requests that may continue: those of an allowed host, and those of inner frames.
fn may_go_on(all: &[Said]) -> HashSet<String> {
    let (mut allowed, mut children) = (HashSet::new(), HashMap::<String, bool>::new());
    for said in all {
        let Said::Message(message) = said else { continue };
        let text = |part: &Value| part.as_str().unwrap_or_default().to_owned();
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Page.frameAttached") => _ = children.insert(text(&params["frameId"]), true),
            Some("Page.frameNavigated") if params["frame"]["parentId"].is_string() => {
                children.insert(text(&params["frame"]["id"]), true);
            }
            Some("Fetch.requestPaused") => {
                let is_allowed =
                    params["request"]["url"].as_str().is_some_and(|url| url.starts_with("http://shop.example/"));
                if is_allowed || children.contains_key(&text(&params["frameId"])) {
                    allowed.insert(text(&params["requestId"]));
                }
            }
            _ => {}
        }
    }
    allowed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_forged_browser_cannot_exceed_memory_limits_or_load_disallowed_pages(all in prop::collection::vec(said(), 0..120)) {
        let allowed = may_go_on(&all);
        let (mut state, commands) = played(all);
        prop_assert!(state.tabs.len() <= 16 && state.downloads.is_empty());
        for tab in state.tabs.values() {
            prop_assert!(tab.frames.len() <= 200 && tab.open_requests.len() <= 2_000);
            prop_assert!(tab.id.len() <= MAX_ID_BYTES && tab.url.chars().count() <= 2_000 && tab.title.chars().count() <= 301);
            for (id, frame) in &tab.frames {
                prop_assert!(id.len() <= MAX_ID_BYTES && frame.document.len() <= MAX_ID_BYTES);
            }
        }
        let notes = state.take_notes();
        prop_assert!(notes.len() <= 31 && notes.iter().all(|note| note.chars().count() <= 2_000), "{notes:?}");
        for command in &commands {
            if command["method"] == "Fetch.continueRequest" {
                let request = command["params"]["requestId"].as_str().unwrap_or_default();
                prop_assert!(allowed.contains(request), "{command}");
            }
            prop_assert!(command.to_string().len() < 4_000, "{command}");
        }
    }
}

#[test]
fn only_requests_of_known_child_frames_may_continue_to_a_disallowed_host() {
    let event =
        |method: &str, params: Value| Said::Message(json!({"method": method, "sessionId": "s", "params": params}));
    let asks = |request: &str, frame: &str| {
        event(
            "Fetch.requestPaused",
            json!({"requestId": request, "frameId": frame, "request": {"url": "http://evil.example/"}}),
        )
    };
    let (state, commands) = played(vec![
        Said::Message(json!({"method": "Target.attachedToTarget", "params":
            {"sessionId": "s", "targetInfo": {"type": "page", "targetId": "t"}}})),
        asks("before", "main"),
        event("Page.frameNavigated", json!({"frame": {"id": "main", "loaderId": "d", "url": "http://shop.example/"}})),
        asks("unknown", "child"),
        event("Page.frameAttached", json!({"frameId": "child", "parentFrameId": "main"})),
        asks("child", "child"),
        asks("main", "main"),
    ]);
    let answers: Vec<(&str, &str)> = commands
        .iter()
        .filter_map(|command| Some((command["params"]["requestId"].as_str()?, command["method"].as_str()?)))
        .collect();
    let refused = "Fetch.failRequest";
    let expected = [("before", refused), ("unknown", refused), ("child", "Fetch.continueRequest"), ("main", refused)];
    assert_eq!(answers, expected);
    assert_eq!(state.tabs.len(), 1);
}

fn event(session: &str, method: &str, params: Value) -> Said {
    Said::Message(json!({"method": method, "sessionId": session, "params": params}))
}

fn attached(session: &str, tab: &str, opener: Option<(&str, &str)>) -> Said {
    let (opener, frame) = opener.unzip();
    let info = json!({"type": "page", "targetId": tab, "openerId": opener, "openerFrameId": frame});
    Said::Message(json!({"method": "Target.attachedToTarget", "params": {"sessionId": session, "targetInfo": info}}))
}

#[test]
fn a_tab_with_an_address_outside_the_web_is_not_shown() {
    for (url, shown) in [
        ("http://shop.example/", Some("http://shop.example/")),
        ("about:blank", Some("about:blank")),
        ("file:///etc/passwd", None),
        ("data:text/html,x", None),
        ("\u{1b}]0;x\u{7}", None),
    ] {
        let (mut state, _) = played(vec![
            attached("s", "t", None),
            event("s", "Page.frameNavigated", json!({"frame": {"id": "t", "loaderId": "d", "url": url}})),
        ]);
        let address = state.current().unwrap().shown_address().to_owned();
        assert_eq!(address, shown.unwrap_or("an address that is not on the web"), "{url:?}");
        let judged = state.may_be_shown(&CommandTarget(Some("s".into())));
        assert_eq!(judged.is_ok(), shown.is_some(), "{url:?}");
        let message = judged.err().map(|why| why.to_string()).unwrap_or_default();
        assert!(!message.chars().any(char::is_control), "{message:?}");
    }
}

#[test]
fn an_empty_tab_inherits_the_host_of_the_frame_that_opened_it() {
    let navigated = |frame: Value| event("s", "Page.frameNavigated", json!({"frame": frame}));
    let (state, _) = played(vec![
        attached("s", "t", None),
        navigated(json!({"id": "t", "loaderId": "d", "url": "http://shop.example/"})),
        navigated(json!({"id": "ad", "parentId": "t", "loaderId": "e", "url": "http://ads.example/"})),
        attached("of-page", "u", Some(("t", "t"))),
        attached("of-ad", "v", Some(("t", "ad"))),
        attached("of-nobody", "w", Some(("t", "gone"))),
    ]);
    let hosts: Vec<Option<String>> = state.tabs.values().map(|tab| tab.host()).collect();
    assert_eq!(
        hosts,
        ["shop.example", "shop.example", "ads.example", "shop.example"].map(|host| Some(host.to_owned()))
    );
}

#[test]
fn only_the_current_tab_and_its_popups_receive_dialog_answers_and_downloads() {
    let begun = |id: &str, frame: &str| {
        let file = json!({"guid": id, "frameId": frame, "suggestedFilename": "a.txt", "url": "http://shop.example/a"});
        Said::Message(json!({"method": "Browser.downloadWillBegin", "params": file}))
    };
    let asks =
        |session: &str| event(session, "Page.javascriptDialogOpening", json!({"type": "prompt", "message": "?"}));
    let (mut state, _) = played(vec![attached("s1", "t1", None), attached("s2", "t2", None)]);
    state.expects(Some(DialogAnswer::Accept(Some("secret".into()))), true);
    let (state, commands) = played_in(
        state,
        vec![
            asks("s1"),
            attached("s3", "t3", Some(("t1", "t1"))),
            asks("s3"),
            begun("d1", "t1"),
            attached("s4", "t4", Some(("t2", "t2"))),
            asks("s4"),
            begun("d2", "t4"),
        ],
    );
    let of = |method: &str| commands.iter().filter(|command| command["method"] == method).cloned().collect::<Vec<_>>();
    let answers: Vec<(Value, Value)> = of("Page.handleJavaScriptDialog")
        .iter()
        .map(|command| (command["sessionId"].clone(), command["params"]["promptText"].clone()))
        .collect();
    assert_eq!(answers, [("s1", ""), ("s3", ""), ("s4", "secret")].map(|(tab, text)| (json!(tab), json!(text))));
    let taken: Vec<&str> = state.downloads.iter().map(|download| download.id.as_str()).collect();
    assert_eq!((taken, &of("Browser.cancelDownload")[0]["params"]["guid"]), (vec!["d2"], &json!("d1")));
}

#[test]
fn an_unexpected_download_is_cancelled_on_each_progress_report_until_it_ends() {
    let goes_on = |state: &str| {
        Said::Message(json!({"method": "Browser.downloadProgress", "params": {"guid": "d", "state": state}}))
    };
    let (_, commands) = played(vec![goes_on("inProgress"), goes_on("inProgress"), goes_on("canceled")]);
    assert_eq!(commands.iter().filter(|command| command["method"] == "Browser.cancelDownload").count(), 2);
}
