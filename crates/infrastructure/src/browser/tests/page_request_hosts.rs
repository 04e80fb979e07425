//! Connections that a browser opens by itself, beside those that its pages request.

use super::{
    end,
    programs::{REQUIRED, installed},
    rig, rig_with,
};
use std::time::Duration;
use tokio::time::timeout;

/// A page for which the browser connects to a host that no page requests. It sends `CONNECT` as for a request.
const PRECONNECTS: &str =
    r#"<!doctype html><title>Ahead</title><link rel=preconnect href="https://evil.example:8443"><p>Ready</p>"#;
/// A page whose worker requests a host that the page does not.
const WORKER: &str = r#"<!doctype html><title>Worker</title><script>
new Worker(URL.createObjectURL(new Blob([`
    const inner = URL.createObjectURL(new Blob(["fetch('http://inner.example/', {mode: 'no-cors'})"]));
    fetch('http://outer.example/', {mode: 'no-cors'}).finally(() => new Worker(inner));
`])));
</script>"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_no_page_requested_is_not_even_resolved() {
    // The headless shell opens no connections ahead of requests.
    let program = match installed("chromium") {
        Ok(program) => program,
        Err(reason) => {
            let required = std::env::var(REQUIRED).unwrap_or_default();
            return assert!(!required.split_whitespace().any(|name| name == "chromium"), "{reason}");
        }
    };
    let rig = rig_with(program, &[("/", PRECONNECTS)]).await;
    rig.session.open("http://shop.example/", false, end()).await.unwrap();
    let mut notes = String::new();
    let refusing = async {
        while !notes.contains("no page requested") {
            notes.push_str(&rig.session.take_notes().join("\n"));
            tokio::task::yield_now().await;
        }
    };
    let refused = timeout(Duration::from_secs(60), refusing).await;
    assert!(refused.is_ok(), "{notes} {:?}", rig.network.resolved());
    assert!(notes.contains("Connections to hosts that no page requested were refused: "), "{notes}");
    assert_eq!(rig.network.resolved().into_iter().find(|name| name != "shop.example"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_a_worker_of_a_worker_requested_is_reached() {
    let rig = rig(&[("/", WORKER)]).await;
    for name in ["outer.example", "inner.example"] {
        rig.network.name(name, &[&["93.184.216.34"]]);
    }
    rig.session.open("http://shop.example/", false, end()).await.unwrap();
    let reaching = async {
        while !rig.network.resolved().contains(&"inner.example".to_owned()) {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), reaching).await.unwrap();
    assert!(rig.network.resolved().contains(&"outer.example".to_owned()));
}
