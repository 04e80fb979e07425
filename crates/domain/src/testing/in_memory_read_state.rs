//! Known file versions of sessions in memory.

use super::lock;
use crate::{
    content_digest::ContentDigest,
    ports::{read_state::ReadState, tool_repository::StoreError},
    principal::Principal,
};
use async_trait::async_trait;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Mutex,
};

/// Key of a known version: principal, session and file.
type ReadStateKey = (Principal, String, PathBuf);

/// Store that holds every version until it is dropped: tests read few files.
#[derive(Debug, Default)]
pub struct InMemoryReadState {
    seen: Mutex<HashMap<ReadStateKey, ContentDigest>>,
}

impl InMemoryReadState {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

fn sight(principal: &Principal, session: &str, real: &Path) -> ReadStateKey {
    (principal.clone(), session.to_owned(), real.to_path_buf())
}

#[async_trait]
impl ReadState for InMemoryReadState {
    async fn record_version(
        &self,
        principal: &Principal,
        session: &str,
        real: &Path,
        digest: ContentDigest,
    ) -> Result<(), StoreError> {
        lock(&self.seen).insert(sight(principal, session, real), digest);
        Ok(())
    }

    async fn forget(&self, principal: &Principal, session: &str, real: &Path) -> Result<(), StoreError> {
        lock(&self.seen).remove(&sight(principal, session, real));
        Ok(())
    }

    async fn known(
        &self,
        principal: &Principal,
        session: &str,
        real: &Path,
    ) -> Result<Option<ContentDigest>, StoreError> {
        Ok(lock(&self.seen).get(&sight(principal, session, real)).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block_on::block_on, read_state_contract::read_state_contract};

    #[test]
    fn the_in_memory_read_state_fulfils_the_contract() {
        block_on(read_state_contract(&InMemoryReadState::new()));
    }
}
