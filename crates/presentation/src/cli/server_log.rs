//! Log lines about the start of the server.

use crate::{
    config::{Config, sections::SandboxSettings},
    telemetry::SERVER,
};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use toolstead_application::ToolRegistry;
use toolstead_infrastructure::sandbox::{launcher::Launcher, self_test};

/// Delay before the sandbox is tested. The test needs about 50 milliseconds of processor time, and clients that wait
/// for the server come first.
const BEFORE_TRIAL: Duration = Duration::from_millis(200);
/// Time to wait for the first lists of MCP servers before tools are counted.
const FIRST_LISTS: Duration = Duration::from_secs(30);

/// Logs version, address and configuration files of the server.
pub(super) fn started(config: &Config, address: SocketAddr) {
    let files: Vec<String> = config.files.iter().map(|file| file.path.display().to_string()).collect();
    let configuration = if files.is_empty() { "defaults".to_owned() } else { files.join(", ") };
    tracing::info!(target: SERVER, version = env!("CARGO_PKG_VERSION"), %address, configuration, "started");
}

/// Logs the number of tools and the tier of the sandbox, once both are known.
pub(super) async fn ready(registry: Arc<ToolRegistry>, sandbox: SandboxSettings) {
    if !tracing::enabled!(target: SERVER, tracing::Level::INFO) {
        return;
    }
    let ((), sandbox) = tokio::join!(registry.settled(FIRST_LISTS), tier(&sandbox));
    tracing::info!(target: SERVER, tools = registry.snapshot().tools().len(), sandbox, "ready");
}

/// Tests the sandbox after a delay and describes its tier or the error. It uses a separate launcher, because the
/// launcher of commands starts with the first command.
async fn tier(settings: &SandboxSettings) -> String {
    tokio::time::sleep(BEFORE_TRIAL).await;
    match Launcher::start() {
        Ok(launcher) => {
            let launcher =
                launcher.requiring_landlock(settings.requires_landlock).allowing_tier_2(settings.allows_tier_2());
            self_test::tier(&launcher).await.to_string()
        }
        Err(error) => format!("the launcher of child processes cannot be started: {error}"),
    }
}
