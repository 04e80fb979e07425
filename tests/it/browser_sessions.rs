//! Browsers of sessions: each session has its own, which ends with the session, however that ends.

use crate::{
    binaries::{Home, Pipe, Server, kill},
    browser_shop::{Browsers, MAY_ENTER, Shop, Visitor, text},
};
use rustix::process::Signal;
use serde_json::json;
use std::{
    fs,
    time::{Duration, Instant},
};

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_have_each_their_own_browser_cookies_and_pages() {
    let shop = Shop::where_allowed(&[MAY_ENTER]).await;
    let server = Server::start(&shop.home, &shop.settings);
    for mode in ["legacy", "2026-07-28"] {
        let before = Browsers::below(server.child.id());
        let mut ann = Visitor::over_http(&shop.home, &server.url(), &format!("ann {mode}"), mode);
        ann.signs_in(&shop, "Ann");
        let of_ann = Browsers::below(server.child.id()).without(&before);
        let mut bob = Visitor::over_http(&shop.home, &server.url(), &format!("bob {mode}"), mode);
        assert_eq!(bob.fails("browser_get_page", json!({})).0, "not_found", "{mode}: no page of his is open");
        let page = bob.opens(&shop.url("/"));
        assert!(page.contains("heading \"Sign in\""), "{mode}: the shop does not know him: {page}");
        let page = bob.signs_in(&shop, "Bob");
        assert!(page.contains("Welcome, Bob"), "{mode}: {page}");
        let of_bob = Browsers::below(server.child.id()).without(&before).without(&of_ann);
        assert!(!of_ann.is_none() && !of_bob.is_none(), "{mode}: each has processes of their own");
        let page = ann.opens(&shop.url("/"));
        assert!(page.contains("Welcome, Ann"), "{mode}: {page}");
        let tabs = ann.does("browser_tabs", json!({}));
        assert_eq!(tabs.lines().count(), 1, "{mode}: {tabs}");
        if mode == "legacy" {
            // The client takes its leave with DELETE.
            let (rest, status) = ann.pipe.finish();
            assert!(status.success() && rest.is_empty(), "{status} {rest}");
        } else {
            ann.does("browser_close", json!({}));
        }
        of_ann.end();
        assert!(!of_bob.running().is_empty(), "{mode}: the other one runs on");
        let page = bob.does("browser_get_page", json!({}));
        assert!(page.contains("Welcome, Bob"), "{mode}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_session_closes_its_browser_and_removes_its_folder() {
    let shop = Shop::where_allowed(&[MAY_ENTER]).await;
    let server = Server::start(&shop.home, &format!("{}[server]\nsession_idle_seconds = 5\n", shop.settings));
    let mut ann = Visitor::over_http(&shop.home, &server.url(), "ann", "2026-07-28");
    ann.opens(&shop.url("/terms"));
    let browsers = Browsers::below(server.child.id());
    assert!(!browsers.is_none());
    browsers.end();
    // The server, which runs on, removes the folder of processes that have ended.
    let end = Instant::now() + Duration::from_secs(120);
    while folders(&shop.home) > 0 {
        assert!(Instant::now() < end, "its folder stays");
        std::thread::yield_now();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_browser_process_or_folder_remains_after_its_server_ends() {
    for signal in [Signal::TERM, Signal::KILL] {
        let shop = Shop::where_allowed(&[MAY_ENTER]).await;
        let server = Server::start(&shop.home, &shop.settings);
        let mut ann = Visitor::over_http(&shop.home, &server.url(), "ann", "legacy");
        ann.opens(&shop.url("/terms"));
        check_end(&shop, server.child.id(), signal == Signal::KILL, || {
            server.end(signal);
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_browser_process_or_folder_remains_after_the_stdio_server_of_a_client_ends() {
    for signal in [None, Some(Signal::TERM), Some(Signal::KILL)] {
        let shop = Shop::where_allowed(&[MAY_ENTER]).await;
        let mut program = mcp(&shop);
        let id = program.child.id();
        opens(&mut program, &shop.url("/terms"));
        check_end(&shop, id, signal == Some(Signal::KILL), || {
            if let Some(signal) = signal {
                kill(id, signal);
                program.child.wait().unwrap();
            }
            program.finish();
        });
    }
}

/// `toolstead mcp`, spoken with as it is.
fn mcp(shop: &Shop) -> Pipe {
    let mut program = Pipe::start(shop.home.toolstead(&["mcp", "--config", shop.config.to_str().unwrap()]));
    program.initialize();
    program
}

fn opens(program: &mut Pipe, url: &str) {
    let call = json!({"name": "browser_navigate", "arguments": {"url": url}});
    program.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).to_string());
    let answer = program.answer(1);
    assert!(text(&answer["result"]).contains("heading \"Terms\""), "{answer}");
}

/// The browser of a program ends with it, and so does its folder; that of a killed one goes when the next browser starts.
#[track_caller]
fn check_end(shop: &Shop, program: u32, is_killed: bool, ends: impl FnOnce()) {
    let browsers = Browsers::below(program);
    assert!(!browsers.running().is_empty() && folders(&shop.home) == 1);
    ends();
    browsers.end();
    if is_killed {
        let mut next = mcp(shop);
        opens(&mut next, &shop.url("/terms"));
        next.finish();
    }
    assert_eq!(folders(&shop.home), 0, "killed: {is_killed}");
}

/// The folders of browsers that lie beside the database.
fn folders(home: &Home) -> usize {
    let beside = fs::read_dir(home.data().join("toolstead")).unwrap();
    beside.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("browser-")).count()
}
