//! `toolstead mcp`.

use super::{
    Outcome,
    exit::{Exit, Failed},
    global::Global,
};
use crate::{
    composition_root::Servers,
    event_file::EventTarget,
    mcp_server::stdio::{StdioSettings, process_streams::claim_process_streams, serve_stdio},
    shutdown::Shutdown,
};
use clap::Args;
use tokio_util::sync::CancellationToken;

/// Serves the tools over MCP on standard input and output.
#[derive(Debug, Args)]
pub struct Mcp {}

impl Mcp {
    pub(super) async fn run(self, global: &Global) -> Outcome {
        if global.events == Some(EventTarget::Stdout) {
            let message = "standard output carries MCP here: give `--events` a file";
            return Err(Failed::Usage(message.into()));
        }
        // Before anything else can print: from here on standard output carries the protocol alone.
        let streams = claim_process_streams()?;
        let mut shutdown = Shutdown::listen()?;
        let composition = global.compose(Servers::All).await?;
        let stop = CancellationToken::new();
        let asked = tokio::spawn({
            let stop = stop.clone();
            async move {
                shutdown.requested().await;
                stop.cancel();
            }
        });
        let served =
            serve_stdio(composition.app.clone(), StdioSettings::default(), streams.input, streams.output, stop).await;
        asked.abort();
        composition.close().await;
        served?;
        Ok(Exit::Done)
    }
}
