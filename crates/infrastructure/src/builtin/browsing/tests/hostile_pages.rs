//! Limits on hostile pages and callers: frames of other hosts, calls that hang, too many tabs and calls.

use super::{
    egress_attempts::{notes, notes_until},
    reference, tools_on,
};
use crate::{
    browser::{browsers::BrowserOwner, tests::server},
    egress::testing::FakeNetwork,
};
use serde_json::json;
use std::{fs, path::Path, sync::Arc, time::Duration};
use tokio::time::timeout;
use toolstead_domain::{Access, Effect, Principal, error_kind::ErrorKind};

const IDLE: Duration = Duration::from_secs(300);
const LONG: Duration = Duration::from_secs(60);

async fn network(pages: &'static [(&'static str, &'static str)]) -> Arc<FakeNetwork> {
    let network = Arc::new(FakeNetwork::default());
    network.name("shop.example", &[&["93.184.216.34"]]);
    network.name("ads.example", &[&["93.184.216.66"]]);
    let address = server(pages).await;
    network.server("93.184.216.34:80", address);
    network.server("93.184.216.66:80", address);
    network
}

const FRAMED: &[(&str, &str)] = &[
    (
        "/",
        "<title>Shop</title><a href='http://ads.example/'>Away</a><iframe src='http://ads.example/ad' title=Ad></iframe>",
    ),
    (
        "/ad",
        "<button>Win</button><select aria-label=Prize><option>Car<option>Boat</select><input aria-label=Mail>\
         <iframe srcdoc='<button>Deep</button>' title=Within></iframe>",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_call_on_an_element_also_accesses_the_host_of_its_frame() {
    let folder = tempfile::tempdir().unwrap();
    let (tools, _) = tools_on(network(FRAMED).await, folder.path(), IDLE);
    let page = tools.call("browser_navigate", json!({"url": "http://shop.example/"})).await.unwrap().joined_text();
    let hosts = ["shop.example", "ads.example"].map(|host| Access::ReachHost(host.into())).to_vec();
    for (tool, part, more) in [
        ("browser_click", "\"Win\"", json!({})),
        ("browser_click", "\"Deep\"", json!({})),
        ("browser_select", "\"Prize\"", json!({"values": ["Boat"]})),
        ("browser_type", "\"Mail\"", json!({"text": "a@b.example"})),
    ] {
        let mut arguments = more;
        arguments["ref"] = reference(&page, part).into();
        assert_eq!(tools.accesses(tool, arguments.clone()).await.unwrap(), hosts, "{tool} {part}");
        tools.call(tool, arguments).await.unwrap();
    }
    let away = json!({"ref": reference(&page, "\"Away\"")});
    assert_eq!(tools.accesses("browser_click", away).await.unwrap(), hosts[..1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_that_leads_to_a_disallowed_host_keeps_the_page_and_reports_the_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let (tools, _) = tools_on(network(FRAMED).await, folder.path(), IDLE);
    let page = tools.call("browser_navigate", json!({"url": "http://shop.example/"})).await.unwrap().joined_text();
    let away = reference(&page, "\"Away\"");
    let clicked = tools.call("browser_click", json!({"ref": away})).await.unwrap();
    let mut said = notes(&clicked.structured_content().cloned());
    let part = "A page of `ads.example` was not opened";
    if !said.contains(part) {
        said = notes_until(&tools, part, "a click").await;
    }
    assert!(said.contains("`browser_navigate` asks the user to allow it.") && !said.contains("WebFetch("), "{said}");
    assert_eq!(clicked.structured_content().unwrap()["url"], "http://shop.example/");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deny_rule_on_a_host_applies_to_frames_and_pages_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (tools, _) = tools_on(network(FRAMED).await, folder.path(), IDLE);
    let tools = tools.with_rule(Effect::Deny, "WebFetch(domain:ads.example)");
    let opened = tools.call("browser_navigate", json!({"url": "http://shop.example/"})).await.unwrap();
    let mut said = notes(&opened.structured_content().cloned());
    let refused = "The page was refused the host ads.example:80: the permission rules do not allow ads.example";
    if !said.contains(refused) {
        said = notes_until(&tools, refused, "a frame").await;
    }
    assert!(!said.contains("asks the user to allow it"), "{said}");
    let away = json!({"ref": reference(&opened.joined_text(), "\"Away\"")});
    let clicked = tools.call("browser_click", away).await.unwrap();
    let part = "a permission rule denies its host";
    if !notes(&clicked.structured_content().cloned()).contains(part) {
        notes_until(&tools, part, "a click").await;
    }
}

const STUCK: &[(&str, &str)] = &[
    ("/", "<title>Stuck</title><button onclick='for (;;);'>Stop</button>"),
    ("/debugger", "<title>Debugger</title><script>debugger; document.write('<h1>went on</h1>')</script>"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_page_with_an_endless_script_blocks_neither_calls_nor_close() {
    let folder = tempfile::tempdir().unwrap();
    let (tools, browsers) = tools_on(network(STUCK).await, folder.path(), IDLE);
    let debugger = tools.call("browser_navigate", json!({"url": "http://shop.example/debugger"})).await.unwrap();
    assert!(debugger.joined_text().contains("went on"), "{}", debugger.joined_text());
    let page = tools.call("browser_navigate", json!({"url": "http://shop.example/"})).await.unwrap().joined_text();
    let stop = json!({"ref": reference(&page, "\"Stop\""), "timeout_ms": 1_000});
    let late = tools.call("browser_click", stop).await.unwrap_err();
    assert!(late.kind == ErrorKind::Timeout && late.text().contains("It may be done all the same"), "{late:?}");
    // One call hangs in the page, and another one ends the browser under it.
    let owner = BrowserOwner { principal: Principal::local(), session: "test".into() };
    let ended = browsers.end_of(&owner).unwrap();
    let both =
        async { tokio::join!(tools.call("browser_get_page", json!({})), tools.call("browser_close", json!({}))) };
    let (hanging, closed) = timeout(Duration::from_secs(30), both).await.unwrap();
    assert!(hanging.is_err());
    assert_eq!(closed.unwrap().joined_text(), "The browser is closed.");
    timeout(LONG, ended.closed()).await.unwrap();
    assert_eq!(tools.call("browser_get_page", json!({})).await.unwrap_err().kind, ErrorKind::NotFound);
    nothing_is_left(folder.path()).await;
    tools.call("browser_navigate", json!({"url": "http://shop.example/"})).await.unwrap();
}

async fn nothing_is_left(folder: &Path) {
    let gone = async {
        while fs::read_dir(folder.join("browsers")).unwrap().count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, gone).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_closed_abruptly_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let (tools, browsers) = tools_on(network(STUCK).await, folder.path(), IDLE);
    tools.call("browser_navigate", json!({"url": "http://shop.example/"})).await.unwrap();
    let owner = BrowserOwner { principal: Principal::local(), session: "test".into() };
    browsers.end_of(&owner).unwrap().close();
    nothing_is_left(folder.path()).await;
    assert_eq!(tools.call("browser_close", json!({})).await.unwrap().joined_text(), "No browser was open.");
}

const CROWD: &[(&str, &str)] = &[(
    "/",
    "<title>Crowd</title><body><script>
        document.title = 'x'.repeat(1e6);
        for (let i = 0; i < 5000; i++) console.error('y'.repeat(1000) + i);
        for (let i = 0; i < 40; i++) open('about:blank');
        for (let i = 0; i < 600; i++) document.body.append(document.createElement('iframe'));
        for (let i = 0; i < 30; i++) alert('z'.repeat(10000));
        document.title = 'done';
        </script>",
)];

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_opens_many_tabs_and_frames_is_reported_briefly_and_can_be_closed() {
    let folder = tempfile::tempdir().unwrap();
    let (tools, browsers) = tools_on(network(CROWD).await, folder.path(), IDLE);
    let opened = json!({"url": "http://shop.example/", "timeout_ms": 120_000});
    let crowd = tools.call("browser_navigate", opened).await.unwrap();
    let facts = crowd.structured_content().unwrap();
    assert!(facts["notes"].as_array().unwrap().len() <= 31 && facts["tabs"].as_u64().unwrap() <= 16, "{facts}");
    assert!(crowd.joined_text().len() < 40_000, "{}", crowd.joined_text().len());
    let owner = BrowserOwner { principal: Principal::local(), session: "test".into() };
    let frames = |session: &crate::browser::session::BrowserSession| {
        session.state().tabs.values().map(|tab| tab.frames.len()).max().unwrap_or_default()
    };
    if !facts["notes"].to_string().contains("16 are already open") {
        notes_until(&tools, "16 are already open", "a crowd").await;
    }
    assert!(browsers.now(&owner, frames).unwrap() <= 200);
    tools.call("browser_close", json!({})).await.unwrap();
    nothing_is_left(folder.path()).await;
}
