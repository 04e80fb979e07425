//! The application behind a connection, which may come only when the client has spoken, and be replaced by another.

use crate::mcp_server::{McpServer, list_changes::ListChanges};
use std::sync::Arc;
use tokio::sync::watch;

/// What the application is by now.
#[derive(Debug, Clone, Default)]
pub(super) struct Stage {
    /// `None` until it is there.
    pub(super) server: Option<Arc<McpServer>>,
    /// Whether calls wait, because somebody is asked what they may work in.
    pub(super) is_asking: bool,
}

/// The application of a connection. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Served(watch::Receiver<Stage>);

impl Served {
    /// One that is there and stays.
    pub(super) fn fixed(server: Arc<McpServer>) -> Self {
        Self(watch::Sender::new(Stage { server: Some(server), is_asking: false }).subscribe())
    }

    /// One that the sender tells of.
    pub(super) fn told_by(stages: &watch::Sender<Stage>) -> Self {
        Self(stages.subscribe())
    }

    /// The application, if it is there.
    pub(super) fn now(&self) -> Option<Arc<McpServer>> {
        self.0.borrow().server.clone()
    }

    /// The application, once it is there; `None` where it never comes.
    pub(super) async fn server(&self) -> Option<Arc<McpServer>> {
        self.once(|stage| stage.server.is_some()).await
    }

    /// The application for a call, likewise, once it is known what the call may work in.
    pub(super) async fn for_calls(&self) -> Option<Arc<McpServer>> {
        self.once(|stage| stage.server.is_some() && !stage.is_asking).await
    }

    /// Another application than this one, once it is there; `None` where this one stays.
    async fn after(&self, known: &Arc<McpServer>) -> Option<Arc<McpServer>> {
        self.once(|stage| stage.server.as_ref().is_some_and(|server| !Arc::ptr_eq(server, known))).await
    }

    async fn once(&self, is_so: impl FnMut(&Stage) -> bool) -> Option<Arc<McpServer>> {
        let mut stages = self.0.clone();
        stages.wait_for(is_so).await.ok()?.server.clone()
    }
}

/// The changes of the list of tools as one client hears of them, whichever application it is of.
#[derive(Debug)]
pub(super) struct ServedChanges {
    served: Served,
    of: Option<(Arc<McpServer>, ListChanges)>,
}

impl ServedChanges {
    /// Changes from now on.
    pub(super) fn new(served: Served) -> Self {
        let of = served.now().map(with_changes);
        Self { served, of }
    }

    /// Returns when the client is to be told; `None` once nothing can change any more. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<()> {
        let Some((server, changes)) = &mut self.of else {
            self.of = Some(with_changes(self.served.server().await?));
            // The list may have been asked for meanwhile, and answered by another application.
            return Some(());
        };
        let replaced = self.served.after(server);
        let new = tokio::select! {
            replaced = replaced => replaced,
            changed = changes.next() => match changed {
                Some(()) => return Some(()),
                None => self.served.after(server).await,
            },
        };
        match new {
            Some(server) => self.of = Some(with_changes(server)),
            // It stays for good, and only its own changes are left.
            None => changes.next().await?,
        }
        Some(())
    }
}

fn with_changes(server: Arc<McpServer>) -> (Arc<McpServer>, ListChanges) {
    let changes = ListChanges::new(server.app.registry.changes());
    (server, changes)
}
