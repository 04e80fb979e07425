//! Lists the public addresses of a host, or prints the reason why it must not be reached:
//!
//! `cargo run -p toolstead-infrastructure --example egress -- example.com`
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::{error::Error, sync::Arc};
use toolstead_infrastructure::egress::{
    connector::{Connector, SystemNetwork},
    host::{Host, HostPatterns},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let host = Host::parse(&std::env::args().nth(1).ok_or("usage: egress HOST")?)?;
    let connector = Connector::new(Arc::new(SystemNetwork::default()), HostPatterns::default());
    for address in connector.addresses(&host, 443).await? {
        println!("{address}");
    }
    Ok(())
}
