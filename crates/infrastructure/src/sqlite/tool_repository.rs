//! Repository of tool catalogues and disabled tools.

use super::{
    fault::{Fault, store_error},
    tool_row::{self, CatalogueStatementParameters},
    writer::WriterHandle,
};
use async_trait::async_trait;
use sqlx::SqlitePool;
use toolstead_domain::{ProviderIdentity, StoreError, StoredToolCatalogue, Timestamp, ToolRepository};

/// Adapter that writes through the [`WriterHandle`] and reads from the pool.
#[derive(Debug)]
pub(super) struct SqliteToolRepository {
    writer: WriterHandle,
    readers: SqlitePool,
}

impl SqliteToolRepository {
    /// Creates the repository of this database.
    pub(super) fn new(writer: WriterHandle, readers: SqlitePool) -> Self {
        Self { writer, readers }
    }
}

#[async_trait]
impl ToolRepository for SqliteToolRepository {
    async fn catalogue(&self, provider: &ProviderIdentity) -> Result<StoredToolCatalogue, StoreError> {
        let ProviderIdentity { configured_in, name, start } = provider;
        let rows = sqlx::query(tool_row::CATALOGUE).bind(configured_in).bind(name).bind(start);
        let rows = rows.fetch_all(&self.readers).await;
        rows.map_err(Fault::from)
            .and_then(|rows| tool_row::catalogue(&rows))
            .map_err(|fault| store_error(format!("read the tools of `{name}`"), fault))
    }

    async fn save_catalogue(
        &self,
        provider: &ProviderIdentity,
        catalogue: &StoredToolCatalogue,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let saved = self.writer.save_catalogue(CatalogueStatementParameters::new(provider, catalogue, now)).await;
        saved.map_err(|fault| store_error(format!("save the tools of `{}`", provider.name), fault))
    }

    async fn set_enabled(&self, tool: &str, enabled: bool) -> Result<(), StoreError> {
        let switched = self.writer.set_enabled(tool.to_owned(), enabled).await;
        let way = if enabled { "on" } else { "off" };
        switched.map_err(|fault| store_error(format!("switch the tool `{tool}` {way}"), fault))
    }

    async fn disabled(&self) -> Result<Vec<String>, StoreError> {
        sqlx::query_scalar("SELECT name FROM disabled_tools ORDER BY name")
            .fetch_all(&self.readers)
            .await
            .map_err(|error| store_error("read which tools are switched off", Fault::from(error)))
    }
}
