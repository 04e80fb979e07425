//! Embeds Toolstead: a tool of its own, a provider of its own, calls under the policy and the audit log, and an MCP
//! server, all in one program.

mod forecast;
mod stations;

use forecast::Forecast;
use serde_json::{Value, json};
use stations::Stations;
use std::{path::Path, sync::Arc, time::Duration};
use tokio::net::TcpListener;
use toolstead_application::ExecuteToolCommand;
use toolstead_domain::{CallOutcome, ExecutionFilter};
use toolstead_infrastructure::helper::enter_if_helper;
use toolstead_presentation::{
    app::App,
    config::{
        Config,
        layers::{
            environment::EnvironmentVariables,
            request::{ConfigFlags, ConfigRequest},
        },
    },
    mcp_server::http::{
        HttpServer,
        settings::{BearerToken, HttpSettings},
    },
};

fn main() -> anyhow::Result<()> {
    // Must be first, before any thread: this program, started again, reads documents.
    enter_if_helper();
    embed()
}

#[tokio::main]
async fn embed() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let config = config(folder.path())?;
    let composition = App::builder(config).tool(Forecast).provider(Arc::new(Stations)).build().await?;
    let app = &composition.app;

    println!("{}", call(app, "forecast", json!({"city": "Bern"})).await?);
    println!("{}", call(app, "mcp__stations__nearest", json!({"city": "Bern"})).await?);
    println!("refused as it should be: {}", call(app, "forecast", json!({"town": "Bern"})).await.unwrap_err());

    // Providers can be added and removed at run time.
    app.registry.unregister("stations").await?;
    println!(
        "refused as it should be: {}",
        call(app, "mcp__stations__nearest", json!({"city": "Bern"})).await.unwrap_err()
    );

    let rows = app.list_executions.list(&ExecutionFilter::default()).await?;
    anyhow::ensure!(rows.len() == 4, "every call is on record, the refused ones too");

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let token = BearerToken { name: "weather".into(), secret: "a-token-for-the-example".into() };
    let settings = HttpSettings { tokens: vec![token], ..HttpSettings::default() };
    let server = HttpServer::start(listener, app.clone(), settings)?;
    println!("an MCP server listens at http://{}/mcp", server.address());
    server.stop(Duration::from_secs(1)).await;

    composition.close().await;
    Ok(())
}

/// A configuration that depends on nothing outside of the folder.
fn config(folder: &Path) -> anyhow::Result<Config> {
    let variables = [("HOME", folder), ("XDG_DATA_HOME", folder), ("XDG_CONFIG_HOME", folder)];
    let environment = EnvironmentVariables::new(variables.map(|(name, path)| (name, path.display().to_string())));
    let start = folder.join("work");
    std::fs::create_dir(&start)?;
    let request = ConfigRequest {
        environment,
        start,
        administrator: folder.join("none"),
        file: None,
        flags: ConfigFlags::default(),
    };
    Ok(Config::load(&request)?)
}

/// Takes the path of every call: validated, judged, recorded.
async fn call(app: &App, tool: &str, arguments: Value) -> anyhow::Result<String> {
    let command = ExecuteToolCommand::new(tool, arguments);
    match app.execute_tool.handle(command).await? {
        CallOutcome::Done(result) => Ok(result.joined_text()),
        CallOutcome::InputRequired(_) => anyhow::bail!("`{tool}` asks for input"),
    }
}
