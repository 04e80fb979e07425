//! Known file versions of sessions in memory.

use super::lock;
use crate::{
    content_digest::ContentDigest,
    ports::{seen_files::SeenFiles, tool_repository::StoreError},
    principal::Principal,
};
use async_trait::async_trait;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Mutex,
};

/// Key of a known version: principal, session and file.
type Sight = (Principal, String, PathBuf);

/// Store that holds every version until it is dropped: tests read few files.
#[derive(Debug, Default)]
pub struct InMemorySeenFiles {
    seen: Mutex<HashMap<Sight, ContentDigest>>,
}

impl InMemorySeenFiles {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

fn sight(principal: &Principal, session: &str, real: &Path) -> Sight {
    (principal.clone(), session.to_owned(), real.to_path_buf())
}

#[async_trait]
impl SeenFiles for InMemorySeenFiles {
    async fn saw(
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
    use crate::testing::{block_on::block_on, seen_files_contract::seen_files_contract};

    #[test]
    fn the_memory_keeps_the_contract() {
        block_on(seen_files_contract(&InMemorySeenFiles::new()));
    }
}
