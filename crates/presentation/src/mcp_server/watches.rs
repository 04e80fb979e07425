//! The resources that one client watches.

use super::call_tool::Client;
use crate::app::App;
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use toolstead_application::watch_resource::{WatchResourceCommand, Watched};
use toolstead_domain::{error_kind::ErrorKind, tool_failure::ToolFailure};

/// So many resources one session or subscription watches.
pub(super) const MAX_WATCHED: usize = 256;

/// Each with what keeps it watched.
#[derive(Debug, Default)]
pub(super) struct Watches {
    by_uri: Mutex<BTreeMap<String, Watched>>,
}

impl Watches {
    /// Watches a resource from now on. One that is watched already is watched as before, as far as it may be now.
    ///
    /// # Errors
    /// The application's; `rate_limited` for one too many.
    pub(super) async fn add(&self, app: &App, client: &Client, uri: String) -> Result<(), ToolFailure> {
        self.check_room(&uri)?;
        let (scope, client) = (client.scope.clone().in_dialect(app.dialect), client.profile.client.clone());
        let watched = app.watch_resource.handle(WatchResourceCommand { uri: uri.clone(), scope, client }).await?;
        // Another request may have taken the last place meanwhile.
        self.check_room(&uri)?;
        // The one before ends when its place is given away and the lock is open again.
        let _before = self.lock().insert(uri, watched);
        Ok(())
    }

    /// Watches the same in another application, as far as that lets it.
    pub(super) async fn renew(&self, app: &App, client: &Client) {
        for uri in self.uris() {
            if let Err(failure) = self.add(app, client, uri.clone()).await {
                tracing::info!(uri, reason = failure.message, "a resource is watched no longer");
                self.remove(&uri);
            }
        }
    }

    /// Watches it no longer.
    pub(super) fn remove(&self, uri: &str) {
        let _removed = self.lock().remove(uri);
    }

    /// Watches nothing any more.
    pub(super) fn clear(&self) {
        let _removed = std::mem::take(&mut *self.lock());
    }

    /// Those that are watched.
    pub(super) fn uris(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// The watched resources that changed with this one. A provider may tell of one below a resource that is watched (MCP
    /// 2026-07-28, schema, `ResourceUpdatedNotificationParams`); it is not named, since rules may close it to this client.
    /// Nobody but its own provider tells of a resource.
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

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Watched>> {
        // Nothing panics while it is held.
        self.by_uri.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
