//! Fetches a URL with the client of this program: `cargo run -p toolstead-infrastructure --example http -- https://example.com/`.
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use bytes::Bytes;
use http::Method;
use std::{error::Error, sync::Arc};
use toolstead_infrastructure::{
    egress::{
        connector::{Connector, SystemNetwork},
        host::HostPatterns,
    },
    http::client::{HttpClient, Request},
};
use url::Url;

/// The longest body that is taken, in bytes.
const LIMIT: usize = 1 << 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url: Url = std::env::args().nth(1).ok_or("usage: http URL")?.parse()?;
    // Only public addresses, whatever the name leads to.
    let connector = Connector::new(Arc::new(SystemNetwork::default()), HostPatterns::default());
    let endpoint = HttpClient::new(connector).endpoint(&url)?;
    let request = Request { method: Method::GET, headers: endpoint.headers(), body: Bytes::new() };
    let response = endpoint.send(request).await?;
    println!("{}", response.status());
    for (name, value) in response.headers() {
        println!("{name}: {}", value.to_str()?);
    }
    println!("\n{}", String::from_utf8_lossy(&response.bytes(LIMIT).await?));
    Ok(())
}
