//! A page of 200 KB is fetched, judged and bounded, and beside it by a bare HTTP client that does nothing else.

use crate::Outcome;
use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::net::TcpStream;
use toolstead_infrastructure::{
    egress::{host::HostPatterns, testing::FakeNetwork},
    web::{
        testing::{Reply, TestServer},
        web_client::{RedirectPolicy, RetryPolicy, UrlSource, WebClient, WebRequest},
    },
};
use url::Url;

const PAGE: usize = 200 << 10;
const ROUNDS: usize = 11;
const FETCHES: u32 = 200;

/// The median round of each, in turn, and the share of the bare client's speed that is left.
pub(crate) async fn run() -> Outcome<()> {
    let page = "<p>A line of a page, as pages have them.</p>\n".repeat(PAGE / 45);
    let bytes = page.len();
    let server = TestServer::plain(move |_| Reply::html(page.clone())).await;
    let network = Arc::new(FakeNetwork::default());
    network.name("docs.example", &[&["93.184.216.34"]]);
    network.server("93.184.216.34:80", server.address());
    let reach = WebClient::new(network, HostPatterns::default());
    let url: Url = "http://docs.example/page".parse()?;
    let (mut bare, connection) = http1::handshake(TokioIo::new(TcpStream::connect(server.address()).await?)).await?;
    let driving = tokio::spawn(connection);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..FETCHES {
            let fetched = reach.send(asked(&url), &|_| Ok(())).await?.body.len();
            is_whole(fetched, bytes)?;
        }
        ours.push(begun.elapsed());
        let begun = Instant::now();
        for _ in 0..FETCHES {
            is_whole(fetch(&mut bare).await?, bytes)?;
        }
        theirs.push(begun.elapsed());
    }
    driving.abort();
    let (ours, theirs) = (a_second(ours), a_second(theirs));
    println!(
        "{:<34} {ours:>10.0}/s {theirs:>10.0}/s {:>8.2} {:>8}  a bare hyper client, one connection, the same server",
        "fetch, 200 KB",
        ours / theirs,
        ""
    );
    Ok(())
}

fn asked(url: &Url) -> WebRequest<'_> {
    WebRequest {
        method: Method::GET,
        url,
        headers: HeaderMap::new(),
        body: Bytes::new(),
        url_source: UrlSource::Untrusted,
        redirects: RedirectPolicy::SameHost(5),
        retry: RetryPolicy::OnTransientFailure,
        body_bytes: 5 << 20,
        deadline: Instant::now() + Duration::from_secs(30),
    }
}

async fn fetch(client: &mut SendRequest<Empty<Bytes>>) -> Outcome<usize> {
    client.ready().await?;
    let request = Request::get("/page").header("Host", "docs.example").body(Empty::new())?;
    Ok(client.send_request(request).await?.into_body().collect().await?.to_bytes().len())
}

fn is_whole(fetched: usize, bytes: usize) -> Outcome<()> {
    if fetched == bytes { Ok(()) } else { Err(format!("{fetched} of {bytes} bytes came").into()) }
}

fn a_second(mut rounds: Vec<Duration>) -> f64 {
    rounds.sort();
    f64::from(FETCHES) / rounds[rounds.len() / 2].as_secs_f64()
}
