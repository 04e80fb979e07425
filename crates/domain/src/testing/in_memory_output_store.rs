//! A store of large outputs in memory.

use super::{failure_switch::FailureSwitch, lock};
use crate::{
    content_digest::ContentDigest,
    ports::{
        output_store::{OutputHandle, OutputStore, StoredContent, StoredOutput},
        tool_repository::StoreError,
    },
    principal::Principal,
    tool_call::CallId,
};
use async_trait::async_trait;
use std::{collections::BTreeMap, io::Cursor, num::NonZeroU64, sync::Mutex};

/// Store that holds every output until it is dropped, or until a test expires it. Handles are numbered over all
/// principals, so that tests can detect access to outputs of other principals.
#[derive(Debug, Default)]
pub struct InMemoryOutputStore {
    outputs: Mutex<Outputs>,
    stores: FailureSwitch,
}

#[derive(Debug, Default)]
struct Outputs {
    kept: Vec<OutputEntry>,
    /// Number of the last handle. Never decreases.
    last: u64,
    /// Every content so far, with a number in place of a hash.
    contents: BTreeMap<Vec<u8>, u64>,
}

#[derive(Debug)]
struct OutputEntry {
    principal: Principal,
    stored: StoredOutput,
    content: Vec<u8>,
}

impl InMemoryOutputStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the next `store` fail.
    pub fn fail_next_store(&self) {
        self.stores.fail_next(1);
    }

    /// Returns the number of stored outputs.
    pub fn len(&self) -> usize {
        lock(&self.outputs).kept.len()
    }

    /// Returns `true` if no output is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Expires all stored outputs.
    pub fn expire_all(&self) {
        lock(&self.outputs).kept.clear();
    }

    fn read_output<T>(
        &self,
        principal: &Principal,
        handle: OutputHandle,
        read: impl FnOnce(&OutputEntry) -> T,
    ) -> Option<T> {
        let outputs = lock(&self.outputs);
        outputs.kept.iter().find(|kept| kept.principal == *principal && kept.stored.handle == handle).map(read)
    }
}

#[async_trait]
impl OutputStore for InMemoryOutputStore {
    async fn store(
        &self,
        principal: &Principal,
        _: CallId,
        media_type: &str,
        content: &[u8],
    ) -> Result<StoredOutput, StoreError> {
        self.stores.check("store the output")?;
        let mut outputs = lock(&self.outputs);
        let same = outputs.kept.iter().find(|kept| {
            kept.principal == *principal && kept.stored.media_type == media_type && kept.content == content
        });
        if let Some(kept) = same {
            return Ok(kept.stored.clone());
        }
        let handle = OutputHandle(NonZeroU64::MIN.saturating_add(outputs.last));
        outputs.last += 1;
        // No real hash is needed: a number for each content identifies it as well.
        let next = outputs.contents.len() as u64;
        let number = *outputs.contents.entry(content.to_vec()).or_insert(next);
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&number.to_be_bytes());
        let stored = StoredOutput {
            handle,
            bytes: content.len() as u64,
            media_type: media_type.to_owned(),
            digest: ContentDigest(digest),
        };
        outputs.kept.push(OutputEntry {
            principal: principal.clone(),
            stored: stored.clone(),
            content: content.to_vec(),
        });
        Ok(stored)
    }

    async fn find(&self, principal: &Principal, handle: OutputHandle) -> Result<Option<StoredOutput>, StoreError> {
        Ok(self.read_output(principal, handle, |kept| kept.stored.clone()))
    }

    async fn open(
        &self,
        principal: &Principal,
        handle: OutputHandle,
    ) -> Result<Option<Box<dyn StoredContent>>, StoreError> {
        let content = self.read_output(principal, handle, |kept| kept.content.clone());
        Ok(content.map(|content| Box::new(Cursor::new(content)) as Box<dyn StoredContent>))
    }

    async fn latest(&self, principal: &Principal, limit: usize) -> Result<Vec<StoredOutput>, StoreError> {
        let outputs = lock(&self.outputs);
        let own = outputs.kept.iter().rev().filter(|kept| kept.principal == *principal);
        Ok(own.take(limit).map(|kept| kept.stored.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block_on::block_on, output_store_contract::output_store_contract, samples};

    #[test]
    fn the_store_in_memory_keeps_the_contract() {
        block_on(output_store_contract(&InMemoryOutputStore::new()));
    }

    #[test]
    fn a_failed_store_keeps_nothing_and_a_handle_is_not_used_again() {
        let store = InMemoryOutputStore::new();
        let keep =
            |content: &[u8]| block_on(store.store(&Principal::local(), samples::call_id(1), "text/plain", content));
        store.fail_next_store();
        assert!(keep(b"a").is_err() && store.is_empty());
        let first = keep(b"a").unwrap();
        store.expire_all();
        assert_eq!(block_on(store.find(&Principal::local(), first.handle)).unwrap(), None);
        assert!(keep(b"a").unwrap().handle > first.handle);
    }
}
