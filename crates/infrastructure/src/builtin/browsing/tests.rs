//! The tools with a real browser, on pages of the test server.
#![expect(clippy::disallowed_methods, reason = "tests lay out and look at files behind the tools' back")]

mod page_reports;

use crate::{
    browser::{
        browsers::{BrowserOwner, BrowserSettings, Browsers},
        tests::{PAGES, server},
    },
    builtin::tool_kit::testing::{ToolTestHarness, test_environment},
    egress::testing::FakeNetwork,
    sandbox::workspace::{UserPathAliases, Workspace},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;
use std::{fs, path::Path, sync::Arc, time::Duration};
use toolstead_domain::{
    PermissionPolicy, Principal, WorkspaceRoots, error_kind::ErrorKind,
    testing::in_memory_change_journal::InMemoryChangeJournal,
};

mod browser_failures;
mod egress_attempts;
mod hostile_pages;

async fn tools(folder: &Path, idle: Duration) -> (ToolTestHarness, Arc<Browsers>) {
    tools_showing(PAGES, folder, idle).await
}

/// Returns the tools, for which `shop.example` serves these pages.
async fn tools_showing(
    pages: &'static [(&'static str, &'static str)],
    folder: &Path,
    idle: Duration,
) -> (ToolTestHarness, Arc<Browsers>) {
    let network = Arc::new(FakeNetwork::default());
    network.name("shop.example", &[&["93.184.216.34"]]);
    network.name("pay.example", &[&["93.184.216.34"]]);
    network.server("93.184.216.34:80", server(pages).await);
    tools_on(network, folder, idle)
}

fn tools_on(network: Arc<FakeNetwork>, folder: &Path, idle: Duration) -> (ToolTestHarness, Arc<Browsers>) {
    tools_under(BrowserSettings { idle, network, ..BrowserSettings::default() }, folder)
}

fn tools_under(settings: BrowserSettings, folder: &Path) -> (ToolTestHarness, Arc<Browsers>) {
    let browsers = Arc::new(Browsers::new(BrowserSettings { folder: folder.join("browsers"), ..settings }));
    let root = folder.join("work");
    fs::create_dir(&root).unwrap();
    let roots = WorkspaceRoots { write: vec![root.canonicalize().unwrap()], ..Default::default() };
    let journal = Arc::new(InMemoryChangeJournal::new());
    let world = test_environment(Workspace::open(&roots, UserPathAliases::default()).unwrap())
        .with_journal(journal.clone())
        .with_browsers(browsers.clone());
    let policy = PermissionPolicy { roots, ..Default::default() };
    (ToolTestHarness::in_environment(crate::builtin::all(), world, policy, journal), browsers)
}

/// Returns the reference of the line with this text.
fn reference(page: &str, part: &str) -> String {
    let line = page
        .lines()
        .find(|line| line.contains(part) && line.contains("[e"))
        .unwrap_or_else(|| panic!("{part}: {page}"));
    line.split("[e").nth(1).unwrap().split(']').next().map(|number| format!("e{number}")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_uploaded_to_pages_and_downloads_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    let (tools, _) = tools(folder.path(), Duration::from_secs(300)).await;
    let work = folder.path().join("work");
    fs::write(work.join("paper.txt"), "12345").unwrap();
    let page = tools.call("browser_navigate", json!({"url": "http://shop.example/"})).await.unwrap().joined_text();
    let given = json!({"ref": reference(&page, "Paper"), "files": ["paper.txt"]});
    let answer = tools.call("browser_type", given).await.unwrap().joined_text();
    assert!(answer.contains("got paper.txt, 5"), "{answer}");
    let load = reference(&page, "\"Load\"");
    tools.call("browser_click", json!({"ref": load, "save_as": "saved.txt"})).await.unwrap();
    assert_eq!(fs::read_to_string(work.join("saved.txt")).unwrap(), "bytes: of a file");
    let asked = json!({"url": "http://shop.example/file", "save_as": "other.txt"});
    tools.call("browser_navigate", asked).await.unwrap();
    assert_eq!(fs::read_to_string(work.join("other.txt")).unwrap(), "bytes: of a file");
    let refused = tools.call("browser_navigate", json!({"url": "http://shop.example/file"})).await.unwrap_err();
    assert!(refused.message.contains("or is a download"), "{}", refused.message);
    assert_eq!(tools.call("browser_click", json!({"element_id": 99})).await.unwrap_err().kind, ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_browser_ends_and_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let (tools, browsers) = tools(folder.path(), Duration::from_secs(1)).await;
    tools.call("browser_navigate", json!({"url": "http://shop.example/"})).await.unwrap();
    let owner = BrowserOwner { principal: Principal::local(), session: "test".into() };
    let end = browsers.end_of(&owner).unwrap();
    tokio::time::timeout(Duration::from_secs(30), end.closed()).await.unwrap();
    assert_eq!(tools.call("browser_get_page", json!({})).await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(fs::read_dir(folder.path().join("browsers")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_screenshot_is_scaled_down_but_saved_in_full_and_a_pdf_requires_save_as() {
    let folder = tempfile::tempdir().unwrap();
    let (tools, _) = tools(folder.path(), Duration::from_secs(300)).await;
    tools.call("browser_navigate", json!({"url": "http://shop.example/long"})).await.unwrap();
    let shown = tools.call("browser_screenshot", json!({"full_page": true, "save_as": "long.png"})).await.unwrap();
    assert!(shown.joined_text().contains("The page continues beyond it"), "{}", shown.joined_text());
    let image = STANDARD.decode(shown.content()[0]["data"].as_str().unwrap()).unwrap();
    let fitted = image::load_from_memory(&image).unwrap();
    assert!(fitted.height() <= 2_000 && fitted.width() <= 2_000, "{}×{}", fitted.width(), fitted.height());
    let saved = image::open(folder.path().join("work/long.png")).unwrap();
    assert_eq!(saved.height(), 16_000);
    tools.call("browser_screenshot", json!({"format": "pdf", "save_as": "long.pdf"})).await.unwrap();
    assert!(fs::read(folder.path().join("work/long.pdf")).unwrap().starts_with(b"%PDF-"));
    let unsaved = tools.call("browser_screenshot", json!({"format": "pdf"})).await.unwrap_err();
    assert_eq!(unsaved.kind, ErrorKind::InvalidInput);
}
