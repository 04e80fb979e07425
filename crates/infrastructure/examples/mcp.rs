//! Lists the tools of an MCP server that is started by a command:
//!
//! `cargo run -p toolstead-infrastructure --example mcp -- npx -y SERVER`
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::{env, error::Error};
use toolstead_infrastructure::{helper, mcp::mcp_client::McpClient};

fn main() -> Result<(), Box<dyn Error>> {
    helper::enter_if_helper();
    let listed = tokio::runtime::Runtime::new()?.block_on(list());
    helper::end_helpers();
    listed
}

async fn list() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1);
    let command = words.next().ok_or("usage: mcp COMMAND [ARGUMENTS]")?;
    let client = McpClient::start(command, words).await?;
    println!("{}", client.status().server.unwrap_or_default());
    for tool in client.tools().await.map_err(|failure| failure.text())? {
        println!("{}: {}", tool.name(), tool.description());
    }
    client.close().await;
    Ok(())
}
