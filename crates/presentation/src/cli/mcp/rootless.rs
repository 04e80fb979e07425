//! `toolstead mcp` if no root is configured: the folders of the client become roots.

use super::super::{exit::CommandError, global::GlobalFlags};
use crate::{
    app::App,
    composition_root::RunningApp,
    config::{Config, sections::client_roots::ClientRootChecker},
    mcp_server::stdio::client_roots::{AppLauncher, FoldersByTrust},
};
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::{path::PathBuf, time::Duration};
use tokio::{sync::Mutex, task::spawn_blocking, time::timeout};
use tokio_util::task::TaskTracker;

/// Maximum time to wait at the end until the calls of replaced applications are recorded.
const LAST_CALLS: Duration = Duration::from_millis(300);

/// Launcher of the successive applications of one MCP client, one for each set of root folders of that client.
pub(super) struct ClientRootsAppLauncher {
    global: GlobalFlags,
    roots: ClientRootChecker,
    /// Capabilities of the client.
    client: Map<String, Value>,
    state: Mutex<LaunchedApps>,
    /// Tasks that close replaced applications once their calls have ended.
    retiring: TaskTracker,
}

#[derive(Default)]
struct LaunchedApps {
    newest: Option<RunningApp>,
    older: Vec<RunningApp>,
    /// Error of the last application that could not be built.
    failed: Option<CommandError>,
}

impl ClientRootsAppLauncher {
    /// Creates the launcher. It has no application until the first call of [`open`](AppLauncher::open).
    pub(super) fn new(global: GlobalFlags, config: Config, client: Map<String, Value>) -> Self {
        let roots = ClientRootChecker::new(config.folders);
        Self { global, roots, client, state: Mutex::default(), retiring: TaskTracker::new() }
    }

    /// Closes every application. Waits at most [`LAST_CALLS`] for replaced ones whose calls are still running.
    ///
    /// # Errors
    /// The reason why an application could not be built before.
    pub(super) async fn close(&self) -> Result<(), CommandError> {
        self.close_all().await;
        self.retiring.close();
        if timeout(LAST_CALLS, self.retiring.wait()).await.is_err() {
            tracing::warn!("some calls are still being recorded");
        }
        self.state.lock().await.failed.take().map_or(Ok(()), Err)
    }
}

#[async_trait(?Send)]
impl AppLauncher for ClientRootsAppLauncher {
    async fn sort(&self, folders: Vec<PathBuf>) -> FoldersByTrust {
        let roots = self.roots.clone();
        let sort = move || {
            let mut sorted = FoldersByTrust::default();
            for folder in folders {
                match roots.judge(&folder) {
                    Ok(root) if sorted.trusted.contains(&root) || sorted.new.contains(&root) => {}
                    Ok(root) if roots.is_trusted(&root) => sorted.trusted.push(root),
                    Ok(root) => sorted.new.push(root),
                    Err(reason) => tracing::warn!(?folder, %reason, "a folder of the client is not used as a root"),
                }
            }
            sorted
        };
        spawn_blocking(sort).await.unwrap_or_default()
    }

    async fn trust(&self, folder: PathBuf) {
        let roots = self.roots.clone();
        let kept = spawn_blocking(move || roots.set_trust(&folder, true).map_err(|problem| (folder, problem))).await;
        if let Ok(Err((folder, problem))) = kept {
            tracing::warn!(?folder, %problem, "the approval of a folder is valid until the client ends");
        }
    }

    async fn open(&self, roots: Vec<PathBuf>) -> Option<App> {
        // Only folders with displayable names are accepted as roots, so their paths are UTF-8.
        let roots = roots.iter().filter_map(|root| root.to_str().map(str::to_owned)).collect::<Vec<_>>();
        let composed = self.global.compose_in(roots, self.client.clone()).await;
        let mut state = self.state.lock().await;
        match composed {
            Ok(composition) => {
                let app = composition.app.clone();
                let before = state.newest.replace(composition);
                state.older.extend(before);
                Some(app)
            }
            Err(failed) => {
                state.failed = Some(failed);
                None
            }
        }
    }

    async fn close_all(&self) {
        let all = {
            let mut state = self.state.lock().await;
            std::mem::take(&mut state.older).into_iter().chain(state.newest.take()).collect::<Vec<_>>()
        };
        for composition in all {
            composition.close().await;
        }
    }

    async fn retire(&self) {
        for composition in std::mem::take(&mut self.state.lock().await.older) {
            self.retiring.spawn(async move {
                composition.app.open_calls.drained().await;
                composition.close().await;
            });
        }
    }
}
