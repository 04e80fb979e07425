//! Fetches a page as a tool does: `cargo run -p toolstead-infrastructure --example web -- https://example.com/`.
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use bytes::Bytes;
use http::{HeaderMap, Method, header};
use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};
use toolstead_infrastructure::{
    egress::{connector::SystemNetwork, host::HostPatterns},
    web::{
        address, charset,
        web_client::{RedirectPolicy, RetryPolicy, UrlSource, WebClient, WebRequest},
    },
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = address::read(&std::env::args().nth(1).ok_or("usage: web URL")?)?;
    let reach = WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default());
    let asked = WebRequest {
        method: Method::GET,
        url: &url,
        headers: HeaderMap::new(),
        body: Bytes::new(),
        url_source: UrlSource::Untrusted,
        redirects: RedirectPolicy::SameHost(5),
        retry: RetryPolicy::OnTransientFailure,
        body_bytes: 5 << 20,
        deadline: Instant::now() + Duration::from_secs(30),
    };
    // Asked for the host of each hop. In a tool this is `Run::may_reach`.
    let judge = |host: &str| match host.ends_with(".invalid") {
        true => Err(ToolFailure::new(ErrorKind::PermissionDenied, format!("nobody fetches {host}"))),
        false => Ok(()),
    };
    let answer = reach.send(asked, &judge).await.map_err(|error| error.into_failure(url.as_str()))?;
    println!("{} {}", answer.status, answer.url);
    if let Some(elsewhere) = &answer.redirect_target {
        println!("it leads to {elsewhere}, which was not followed");
    }
    let content_type = answer.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let decoded = charset::decode(&answer.body, content_type.and_then(charset::charset_of));
    println!("{} bytes of {}\n\n{}", answer.body.len(), decoded.charset, decoded.text);
    Ok(())
}
