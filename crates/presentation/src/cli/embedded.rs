//! The `main` of a program that is an MCP server with tools of its own.

use super::{
    Outcome,
    exit::{Exit, conclude},
    output::note,
};
use crate::{
    app::App,
    composition_root::{AppBuilder, StartupError},
    config::{Config, request::Request},
    mcp_server::stdio::{StdioSettings, process_streams::claim_process_streams, serve_stdio},
    runtime,
    shutdown::Shutdown,
};
use std::{pin::pin, process::ExitCode};
use tokio_util::sync::CancellationToken;

/// Serves an application over MCP on standard input and output, until the client ends or a signal comes. It is built of
/// the configuration that a `toolstead` which is started here would have, and what `add` adds to it. What goes wrong is
/// told on standard error.
///
/// It makes the runtime and is the last call of `main`; the first one is
/// [`enter_if_helper`](toolstead_infrastructure::helper::enter_if_helper).
pub fn mcp_server(add: impl FnOnce(AppBuilder) -> AppBuilder) -> ExitCode {
    runtime::run(async { conclude(served(add).await, false) }, || {})
}

async fn served(add: impl FnOnce(AppBuilder) -> AppBuilder) -> Outcome {
    // Before anything else can print: from here on standard output carries the protocol alone.
    let streams = claim_process_streams()?;
    let mut shutdown = Shutdown::listen()?;
    let config = Config::load(&Request::of_process()?).map_err(StartupError::from)?;
    for problem in &config.notes {
        note(&format!("note: {problem}"));
    }
    let composition = add(App::builder(config)).build().await?;
    let (app, stop) = (composition.app.clone(), CancellationToken::new());
    let mut served = pin!(serve_stdio(app, StdioSettings::default(), streams.input, streams.output, stop.clone()));
    let served = tokio::select! {
        served = &mut served => served,
        () = shutdown.requested() => {
            stop.cancel();
            served.await
        }
    };
    composition.close().await;
    served?;
    Ok(Exit::Done)
}
