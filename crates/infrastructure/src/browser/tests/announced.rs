//! Connections that a browser opens by itself, beside those that its pages request.

use super::{end, rig};
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
    let rig = rig(&[("/", PRECONNECTS)]).await;
    rig.session.open("http://shop.example/", false, end()).await.unwrap();
    let refusing = async {
        loop {
            let notes = rig.session.take_notes().join("\n");
            if notes.contains("no page requested") {
                return notes;
            }
            tokio::task::yield_now().await;
        }
    };
    let notes = timeout(Duration::from_secs(60), refusing).await.unwrap();
    assert!(notes.contains("Connections to hosts that no page requested were refused: "), "{notes}");
    assert_eq!(rig.network.resolved(), ["shop.example"]);
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
