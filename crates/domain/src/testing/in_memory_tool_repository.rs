//! A tool repository in memory.

use super::{failure_switch::FailureSwitch, lock};
use crate::{
    ports::{
        clock::Timestamp,
        tool_repository::{StoreError, StoredToolCatalogue, ToolRepository},
    },
    provider_identity::ProviderIdentity,
};
use async_trait::async_trait;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

/// Repository that stores catalogues and the names of disabled tools until it is dropped.
#[derive(Debug, Default)]
pub struct InMemoryToolRepository {
    kept: Mutex<RepositoryContents>,
    reads: FailureSwitch,
    writes: FailureSwitch,
}

#[derive(Debug, Default)]
struct RepositoryContents {
    catalogues: BTreeMap<ProviderIdentity, StoredToolCatalogue>,
    disabled: BTreeSet<String>,
}

impl InMemoryToolRepository {
    /// Creates an empty repository.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the next `catalogue` or `disabled` fail.
    pub fn fail_next_read(&self) {
        self.reads.fail_next(1);
    }

    /// Makes the next `save_catalogue` or `set_enabled` fail.
    pub fn fail_next_write(&self) {
        self.writes.fail_next(1);
    }
}

#[async_trait]
impl ToolRepository for InMemoryToolRepository {
    async fn catalogue(&self, provider: &ProviderIdentity) -> Result<StoredToolCatalogue, StoreError> {
        self.reads.check(&format!("read the tools of `{}`", provider.name))?;
        let kept = lock(&self.kept);
        let mut catalogue = kept.catalogues.get(provider).cloned().unwrap_or_default();
        for tool in &mut catalogue.tools {
            tool.enabled = !kept.disabled.contains(tool.name().as_str());
        }
        Ok(catalogue)
    }

    async fn save_catalogue(
        &self,
        provider: &ProviderIdentity,
        catalogue: &StoredToolCatalogue,
        _now: Timestamp,
    ) -> Result<(), StoreError> {
        self.writes.check(&format!("save the tools of `{}`", provider.name))?;
        let mut catalogue = catalogue.clone();
        catalogue.tools.iter_mut().for_each(|tool| tool.aliases.clear());
        catalogue.tools.sort_by(|a, b| a.name().cmp(b.name()));
        catalogue.changes.retain(|change| catalogue.tools.iter().any(|tool| tool.name().as_str() == change.tool));
        catalogue.changes.sort_by(|a, b| a.tool.cmp(&b.tool));
        lock(&self.kept).catalogues.insert(provider.clone(), catalogue);
        Ok(())
    }

    async fn set_enabled(&self, tool: &str, enabled: bool) -> Result<(), StoreError> {
        self.writes.check(&format!("switch `{tool}`"))?;
        let disabled = &mut lock(&self.kept).disabled;
        if enabled {
            disabled.remove(tool);
        } else {
            disabled.insert(tool.to_owned());
        }
        Ok(())
    }

    async fn disabled(&self) -> Result<Vec<String>, StoreError> {
        self.reads.check("read which tools are switched off")?;
        Ok(lock(&self.kept).disabled.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block_on::block_on, samples, tool_repository_contract::tool_repository_contract};

    #[test]
    fn the_repository_in_memory_keeps_the_contract() {
        block_on(tool_repository_contract(&InMemoryToolRepository::new()));
    }

    #[test]
    fn a_failed_write_leaves_the_catalogue_as_it_was() {
        let repository = InMemoryToolRepository::new();
        let p = ProviderIdentity::of_program("p");
        let catalogue = StoredToolCatalogue { tools: vec![samples::tool("a")], changes: Vec::new() };
        block_on(repository.save_catalogue(&p, &catalogue, samples::START)).unwrap();
        repository.fail_next_write();
        assert!(block_on(repository.save_catalogue(&p, &StoredToolCatalogue::default(), samples::START)).is_err());
        repository.fail_next_read();
        assert!(block_on(repository.catalogue(&p)).is_err());
        assert_eq!(block_on(repository.catalogue(&p)).unwrap(), catalogue);
    }
}
