//! `toolstead mcp`.

mod rootless;

use super::{
    CommandResult,
    exit::{CommandError, Exit},
    global::GlobalFlags,
};
use crate::{
    app::App,
    event_file::EventTarget,
    mcp_server::stdio::{
        StdioSettings, first_message, process_streams::claim_process_streams, serve_stdio, serve_stdio_in,
    },
    shutdown::ShutdownListener,
    suggestions::McpSuggestions,
};
use clap::Args;
use rootless::ClientRootsAppLauncher;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Serves the tools over MCP on standard input and output.
#[derive(Debug, Args)]
pub struct McpCommand {
    /// The view to serve, by its name in `[views]`
    #[arg(long, value_name = "NAME")]
    view: Option<String>,
}

impl McpCommand {
    pub(super) async fn run(self, global: &GlobalFlags) -> CommandResult {
        if global.events == Some(EventTarget::Stdout) {
            let message = "standard output carries MCP here: give `--events` a file";
            return Err(CommandError::Usage(message.into()));
        }
        // Claimed before anything else can print: from here on, standard output carries only the protocol.
        let streams = claim_process_streams()?;
        let mut shutdown = ShutdownListener::listen()?;
        let config = global.load()?;
        if let Some(name) = &self.view {
            config.view(name).map_err(|error| CommandError::Usage(error.to_string()))?;
        }
        let stop = CancellationToken::new();
        let asked = tokio::spawn({
            let stop = stop.clone();
            async move {
                shutdown.requested().await;
                stop.cancel();
            }
        });
        let settings = StdioSettings { view: self.view, ..StdioSettings::default() };
        let outcome = if config.roots.start().is_some() {
            let (sender, receiver) = oneshot::channel();
            let hearing = async {
                let (client, input) = first_message::read_capabilities(streams.input, &stop).await;
                // The receiver is dropped if there are no servers.
                let _ = sender.send(client);
                Ok(input)
            };
            let client = async { receiver.await.unwrap_or_default() };
            let building = App::builder(config)
                .suggestions(Arc::new(McpSuggestions))
                .for_one_client(client)
                .starting_servers_when_used();
            let composing = async { global.watched(building.build().await?).await };
            let (composition, input) = tokio::try_join!(composing, hearing)?;
            let served = serve_stdio(composition.app.clone(), settings, input, streams.output, stop).await;
            composition.close().await;
            served.map_err(CommandError::from)
        } else {
            let patience = config.permissions.approval_timeout;
            let (client, input) = first_message::read_capabilities(streams.input, &stop).await;
            let workplace = ClientRootsAppLauncher::new(global.clone(), config, client);
            let served = serve_stdio_in(&workplace, settings, patience, input, streams.output, stop).await;
            workplace.close().await.and(served.map_err(CommandError::from))
        };
        asked.abort();
        outcome.map(|()| Exit::Done)
    }
}
