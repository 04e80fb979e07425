//! The application of a connection, which may start only after the first message of the client, and may be replaced.

use crate::mcp_server::{
    McpServer,
    notification_feed::{Interests, NotificationFeed},
    server_notification::ServerNotification,
};
use std::{future::pending, sync::Arc};
use tokio::sync::watch;

/// Current state of the application.
#[derive(Debug, Clone, Default)]
pub(super) struct CurrentServerState {
    /// `None` until the application is running.
    pub(super) server: Option<Arc<McpServer>>,
    /// `true` while calls wait because the folders of the client may change, or the user is being asked to approve
    /// them.
    pub(super) is_asking: bool,
}

/// Handle of a connection's application. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct CurrentServer(watch::Receiver<CurrentServerState>);

impl CurrentServer {
    /// Creates the handle of an application that is running and is never replaced.
    pub(super) fn fixed(server: Arc<McpServer>) -> Self {
        Self(watch::Sender::new(CurrentServerState { server: Some(server), is_asking: false }).subscribe())
    }

    /// Creates a handle that follows the states of the sender.
    pub(super) fn from_stages(stages: &watch::Sender<CurrentServerState>) -> Self {
        Self(stages.subscribe())
    }

    /// Returns the application, if it is running.
    pub(super) fn now(&self) -> Option<Arc<McpServer>> {
        self.0.borrow().server.clone()
    }

    /// Waits until the application is running. Returns `None` if it will never be.
    pub(super) async fn server(&self) -> Option<Arc<McpServer>> {
        self.once(|stage| stage.server.is_some()).await
    }

    /// Waits until the application is running and its roots are known, as calls require. Returns `None` if that will
    /// never be.
    pub(super) async fn wait_until_callable(&self) -> Option<Arc<McpServer>> {
        self.once(|stage| stage.server.is_some() && !stage.is_asking).await
    }

    /// Waits until another application has replaced this one. Returns `None` if that will never happen.
    async fn after(&self, known: &Arc<McpServer>) -> Option<Arc<McpServer>> {
        self.once(|stage| stage.server.as_ref().is_some_and(|server| !Arc::ptr_eq(server, known))).await
    }

    async fn once(&self, is_so: impl FnMut(&CurrentServerState) -> bool) -> Option<Arc<McpServer>> {
        let mut stages = self.0.clone();
        stages.wait_for(is_so).await.ok()?.server.clone()
    }
}

/// Notifications of the application for one client, across replacements of the application.
#[derive(Debug)]
pub(super) struct CurrentServerFeed {
    served: CurrentServer,
    interests: Interests,
    of: Option<(Arc<McpServer>, NotificationFeed)>,
}

impl CurrentServerFeed {
    /// Subscribes to all further notifications.
    pub(super) fn new(served: CurrentServer, interests: Interests) -> Self {
        let of = served.now().map(|server| {
            let feed = NotificationFeed::new(&server.app, &interests.in_view_of(&server));
            (server, feed)
        });
        Self { served, interests, of }
    }

    /// Returns the next notification. Never returns if there cannot be another one.
    pub(super) async fn next(&mut self) -> ServerNotification {
        loop {
            let Some((server, feed)) = &mut self.of else {
                match self.served.server().await {
                    Some(server) => self.begin_anew(server).await,
                    None => pending().await,
                }
                continue;
            };
            let replaced = self.served.after(server);
            let new = tokio::select! {
                replaced = replaced => replaced,
                news = feed.next() => return news,
            };
            match new {
                Some(server) => self.begin_anew(server).await,
                // The application will not be replaced, so only its own notifications remain.
                None => return feed.next().await,
            }
        }
    }

    /// Subscribes to a new application. The client may have received lists from another application, so all are
    /// reported as changed.
    async fn begin_anew(&mut self, server: Arc<McpServer>) {
        let interests = self.interests.in_view_of(&server);
        interests.watches.renew(&server.app, &interests.client).await;
        let feed = NotificationFeed::new(&server.app, &interests).beginning_anew();
        self.of = Some((server, feed));
    }
}
