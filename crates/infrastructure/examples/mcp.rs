//! Lists the tools of an MCP server that is started by a command:
//!
//! `cargo run -p toolstead-infrastructure --example mcp -- npx -y SERVER`
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::{collections::BTreeMap, env, error::Error, sync::Arc};
use toolstead_domain::{ports::tool_provider::ToolProvider, server_name::ServerName, workspace_roots::WorkspaceRoots};
use toolstead_infrastructure::{
    helper,
    http::client::HttpClient,
    mcp::client::{
        McpServer,
        config::{McpServerConfig, McpTransport, StdioServer},
        connection::McpServerDeps,
    },
    sandbox::{
        child_environment,
        egress::connector::{Connector, SystemNetwork},
        launcher::Launcher,
    },
};

fn main() -> Result<(), Box<dyn Error>> {
    helper::enter_if_helper();
    let listed = tokio::runtime::Runtime::new()?.block_on(list());
    helper::end_helpers();
    listed
}

async fn list() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1);
    let command = words.next().ok_or("usage: mcp COMMAND [ARGUMENTS]")?;
    let stdio = StdioServer { command, args: words.collect(), env: BTreeMap::new(), working_dir: None };
    let deps = McpServerDeps {
        launcher: Launcher::start()?,
        http: HttpClient::new(Connector::to_configured_hosts(Arc::new(SystemNetwork::default()))),
        environment: child_environment::base(|name| env::var(name).ok()),
        working_dir: env::current_dir()?,
        roots: WorkspaceRoots::default(),
        sealed: Vec::new(),
        homes: None,
    };
    let config = McpServerConfig::new(ServerName::parse("example")?, McpTransport::Stdio(stdio));
    let server = McpServer::start(config, deps);
    server.refresh().await;
    let status = server.status();
    println!("{}: {:?}", status.server.unwrap_or_default(), status.state);
    for tool in server.list().await? {
        println!("{}: {}", tool.name(), tool.description());
    }
    server.close().await;
    Ok(())
}
