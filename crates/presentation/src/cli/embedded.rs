//! The `main` function of an embedding application that is an MCP server.

use super::{
    CommandResult,
    exit::{Exit, conclude},
    output::note,
};
use crate::{
    app::App,
    composition_root::{AppBuilder, StartupError},
    config::{Config, layers::request::ConfigRequest},
    mcp_server::stdio::{StdioSettings, process_streams::claim_process_streams, serve_stdio},
    runtime,
    shutdown::ShutdownListener,
};
use std::{pin::pin, process::ExitCode};
use tokio_util::sync::CancellationToken;

/// Serves an application over MCP on standard input and output until the client disconnects or a signal arrives. The
/// configuration is the one that `toolstead` would load in the current folder; `add` adds to the application. Errors
/// are printed to standard error.
///
/// Creates the runtime. Must be the last call in `main`; the first one must be
/// [`enter_if_helper`](toolstead_infrastructure::helper::enter_if_helper).
pub fn mcp_server(add: impl FnOnce(AppBuilder) -> AppBuilder) -> ExitCode {
    runtime::run(async { conclude(served(add).await, false) }, || {})
}

async fn served(add: impl FnOnce(AppBuilder) -> AppBuilder) -> CommandResult {
    // Claimed before anything else can print: from here on, standard output carries only the protocol.
    let streams = claim_process_streams()?;
    let mut shutdown = ShutdownListener::listen()?;
    let config = Config::load(&ConfigRequest::of_process()?).map_err(StartupError::from)?;
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
