//! The application behind a connection, which may come only when the client has spoken, and be replaced by another.

use crate::mcp_server::{
    McpServer,
    news::News,
    newsfeed::{Interests, Newsfeed},
};
use std::{future::pending, sync::Arc};
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

/// The news of the application as one client hears them, whichever application it is.
#[derive(Debug)]
pub(super) struct ServedNews {
    served: Served,
    interests: Interests,
    of: Option<(Arc<McpServer>, Newsfeed)>,
}

impl ServedNews {
    /// The news from now on.
    pub(super) fn new(served: Served, interests: Interests) -> Self {
        let of = served.now().map(|server| {
            let feed = Newsfeed::new(&server.app, &interests);
            (server, feed)
        });
        Self { served, interests, of }
    }

    /// What the client is to be told next; never, once there can be nothing.
    pub(super) async fn next(&mut self) -> News {
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
                // It stays for good, and only its own news are left.
                None => return feed.next().await,
            }
        }
    }

    /// Lists may have been asked for meanwhile, and answered by another application.
    async fn begin_anew(&mut self, server: Arc<McpServer>) {
        self.interests.watches.renew(&server.app, &self.interests.client).await;
        let feed = Newsfeed::new(&server.app, &self.interests).beginning_anew();
        self.of = Some((server, feed));
    }
}
