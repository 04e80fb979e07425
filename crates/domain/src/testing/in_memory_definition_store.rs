//! A store of definitions in memory.

use super::lock;
use crate::{
    pinning::item::{DefinitionVersion, ItemKey, PinnedServerKey, VersionApproval},
    ports::{definition_store::PinnedDefinitionStore, tool_repository::StoreError},
};
use async_trait::async_trait;
use std::{collections::BTreeMap, sync::Mutex};

type Versions = BTreeMap<(PinnedServerKey, ItemKey, u32), DefinitionVersion>;

/// Store that holds versions until it is dropped.
#[derive(Debug, Default)]
pub struct InMemoryDefinitionStore {
    versions: Mutex<Versions>,
}

#[async_trait]
impl PinnedDefinitionStore for InMemoryDefinitionStore {
    async fn versions(&self, server: &PinnedServerKey) -> Result<Vec<DefinitionVersion>, StoreError> {
        let versions = lock(&self.versions);
        Ok(versions.iter().filter(|((of, ..), _)| of == server).map(|(_, version)| version.clone()).collect())
    }

    async fn add(&self, server: &PinnedServerKey, versions: &[DefinitionVersion]) -> Result<(), StoreError> {
        let mut stored = lock(&self.versions);
        for version in versions {
            let key = (server.clone(), version.key.clone(), version.number);
            stored.entry(key).or_insert_with(|| version.clone());
        }
        Ok(())
    }

    async fn approve(
        &self,
        server: &PinnedServerKey,
        versions: &[(ItemKey, u32)],
        approval: &VersionApproval,
    ) -> Result<(), StoreError> {
        let mut stored = lock(&self.versions);
        for (key, number) in versions {
            if let Some(version) = stored.get_mut(&(server.clone(), key.clone(), *number)) {
                version.approval.get_or_insert_with(|| approval.clone());
            }
        }
        Ok(())
    }
}
