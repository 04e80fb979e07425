//! Mounts MCP in a server of axum: the team's own page beside it, the team's own way of knowing who calls.

mod team;

use axum::{Router, routing::get};
use std::{net::SocketAddr, path::Path, sync::Arc};
use team::Team;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};
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
    mcp_server::http::settings::HttpSettings,
};

fn main() -> anyhow::Result<()> {
    // Must be first, before any thread.
    enter_if_helper();
    serve()
}

#[tokio::main]
async fn serve() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let composition = App::builder(config(folder.path())?).build().await?;

    let service = composition.app.mcp_service(HttpSettings::default().authenticated_by(Arc::new(Team)));
    let router = Router::new()
        .route("/", get(|| async { "the team's own page\n" }))
        .route_service("/agents/mcp", service.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let ending = async move {
        let _ = stopped.await;
        service.drain();
    };
    let serving = tokio::spawn(axum::serve(listener, router).with_graceful_shutdown(ending).into_future());

    for (key, expected) in [("ada's-long-key", "HTTP/1.1 200 OK"), ("somebody's", "HTTP/1.1 401 Unauthorized")] {
        let status = initialize(address, key).await?;
        println!("with the key `{key}`: {status}");
        anyhow::ensure!(status == expected, "it should have been {expected}");
    }

    drop(stop);
    serving.await??;
    composition.close().await;
    Ok(())
}

/// Opens a session as a client does, and returns the status of the answer.
async fn initialize(address: SocketAddr, key: &str) -> anyhow::Result<String> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"example","version":"1"}}}"#;
    let request = format!(
        "POST /agents/mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\
         Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
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
