//! Resources that one client watches.

use super::call_tool::ClientContext;
use crate::app::App;
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use toolstead_application::{ResourceWatchGuard, WatchResourceCommand};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Maximum number of resources that a session or subscription watches.
pub(super) const MAX_WATCHED: usize = 256;

/// Watched resources. Dropping an entry ends its watch.
#[derive(Debug, Default)]
pub(super) struct ResourceWatches {
    by_uri: Mutex<BTreeMap<String, ResourceWatchGuard>>,
}

impl ResourceWatches {
    /// Starts watching a resource. A resource that is already watched is watched anew, if that is still permitted.
    ///
    /// # Errors
    /// The failure of the application, or `rate_limited` if there are too many resources.
    pub(super) async fn add(&self, app: &App, client: &ClientContext, uri: String) -> Result<(), ToolFailure> {
        self.check_room(&uri)?;
        let (scope, client) = (client.scope.clone().in_dialect(app.dialect), client.profile.client.clone());
        let watched = app.watch_resource.handle(WatchResourceCommand { uri: uri.clone(), scope, client }).await?;
        // Another request may have reached the limit in the meantime.
        self.check_room(&uri)?;
        // The previous watch is dropped only after the lock has been released.
        let _before = self.lock().insert(uri, watched);
        Ok(())
    }

    /// Watches the same resources in another application. Removes those that it does not permit.
    pub(super) async fn renew(&self, app: &App, client: &ClientContext) {
        for uri in self.uris() {
            if let Err(failure) = self.add(app, client, uri.clone()).await {
                tracing::info!(uri, reason = failure.message, "a resource is no longer watched");
                self.remove(&uri);
            }
        }
    }

    /// Stops watching a resource.
    pub(super) fn remove(&self, uri: &str) {
        let _removed = self.lock().remove(uri);
    }

    /// Stops watching all resources.
    pub(super) fn clear(&self) {
        let _removed = std::mem::take(&mut *self.lock());
    }

    /// Returns the URIs of the watched resources.
    pub(super) fn uris(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Returns the watched resources that are affected by a change of this one. A provider may report a change of a
    /// resource below a watched one (MCP 2026-07-28, schema, `ResourceUpdatedNotificationParams`). Its URI is not
    /// passed on, because rules may deny it to this client. Changes are only accepted from the provider of the watched
    /// resource.
    pub(super) fn changed_with(&self, provider: &str, uri: &str) -> Vec<String> {
        let is_meant = |watched: &str| {
            uri.strip_prefix(watched.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let watched = self.lock();
        let changed = watched.iter().filter(|(watched, by)| by.provider() == provider && is_meant(watched));
        changed.map(|(uri, _)| uri.clone()).collect()
    }

    fn check_room(&self, uri: &str) -> Result<(), ToolFailure> {
        let watched = self.lock();
        if watched.len() < MAX_WATCHED || watched.contains_key(uri) {
            return Ok(());
        }
        let message = format!("{MAX_WATCHED} resources are watched already.");
        Err(ToolFailure::new(ErrorKind::RateLimited, message).next("Watch one less first."))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ResourceWatchGuard>> {
        // Nothing panics while the lock is held.
        self.by_uri.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
