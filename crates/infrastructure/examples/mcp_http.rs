//! Lists the tools of an MCP server that is reached by HTTP:
//!
//! `cargo run -p toolstead-infrastructure --no-default-features --features mcp --example mcp_http -- https://example.com/mcp`
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::{env, error::Error};
use toolstead_infrastructure::mcp::mcp_client::McpClient;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = McpClient::at(&env::args().nth(1).ok_or("usage: mcp_http URL")?).await?;
    println!("{}", client.status().server.unwrap_or_default());
    for tool in client.tools().await.map_err(|failure| failure.text())? {
        println!("{}: {}", tool.name(), tool.description());
    }
    client.close().await;
    Ok(())
}
