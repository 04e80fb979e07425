//! Stores of an application, with one function per backend.

use super::StartupError;
use crate::config::{Config, sections::database_url::DatabaseUrl};
use futures::{FutureExt, future::BoxFuture};
use std::{fmt, path::Path, sync::Arc, time::Duration};
use toolstead_domain::{Clock, ExecutionLog, Stores};
use toolstead_infrastructure::sqlite::{self, ContentRetention, Database, DatabaseOptions, OpenError, Retention};

/// Stores of the workspace, and the function that closes them.
pub(super) struct OpenStores {
    pub(super) stores: Stores,
    close: Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send + Sync>,
}

impl OpenStores {
    /// Opens the configured stores.
    pub(super) async fn open(config: &Config, clock: Arc<dyn Clock>) -> Result<Self, StartupError> {
        match &config.database.url {
            DatabaseUrl::Sqlite(path) => Ok(in_sqlite(config, path, clock).await?),
        }
    }

    /// Writes pending data and closes the stores.
    pub(super) async fn close(self) {
        (self.close)().await;
    }
}

impl fmt::Debug for OpenStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenStores").field("stores", &self.stores).finish_non_exhaustive()
    }
}

/// Opens the audit log read-only, for stores that cannot be written because their disk is full or read-only.
///
/// # Errors
/// [`StartupError`].
pub async fn open_audit_log_read_only(config: &Config) -> Result<Arc<dyn ExecutionLog>, StartupError> {
    match &config.database.url {
        DatabaseUrl::Sqlite(path) => Ok(sqlite::open_audit_log_read_only(sqlite_options(config, path)).await?),
    }
}

async fn in_sqlite(config: &Config, path: &Path, clock: Arc<dyn Clock>) -> Result<OpenStores, OpenError> {
    let database = Database::open(sqlite_options(config, path), clock).await?;
    let stores = database.stores(config.workspace());
    Ok(OpenStores { stores, close: Box::new(|| database.close().boxed()) })
}

fn sqlite_options(config: &Config, path: &Path) -> DatabaseOptions {
    let unlimited = Duration::from_secs(u64::from(u32::MAX));
    let retention = Retention {
        max_age: config.audit.retention_days.map_or(unlimited, |days| Duration::from_secs(days.saturating_mul(86_400))),
        max_rows: config.audit.retention_rows.unwrap_or(u64::MAX),
    };
    let contents = ContentRetention {
        max_age: Duration::from_secs(config.outputs.retention_days.saturating_mul(86_400)),
        max_bytes: config.outputs.retention_bytes,
    };
    DatabaseOptions { power_safe: config.audit.power_safe, retention, contents, ..DatabaseOptions::at(path) }
}
