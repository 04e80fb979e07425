//! Large outputs in memory.

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
use std::{io::Cursor, num::NonZeroU64, sync::Mutex};

/// Keeps every output until it is dropped. Handles are numbers over all principals, so that a test sees who sees what.
#[derive(Debug, Default)]
pub struct InMemoryOutputStore {
    outputs: Mutex<Vec<Kept>>,
    stores: FailureSwitch,
}

#[derive(Debug)]
struct Kept {
    principal: Principal,
    stored: StoredOutput,
    content: Vec<u8>,
}

impl InMemoryOutputStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the next `store` fail.
    pub fn fail_next_store(&self) {
        self.stores.fail_next(1);
    }

    /// As many outputs are kept.
    pub fn len(&self) -> usize {
        lock(&self.outputs).len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn kept<T>(&self, principal: &Principal, handle: OutputHandle, read: impl FnOnce(&Kept) -> T) -> Option<T> {
        let outputs = lock(&self.outputs);
        outputs.iter().find(|kept| kept.principal == *principal && kept.stored.handle == handle).map(read)
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
        let same = outputs.iter().find(|kept| {
            kept.principal == *principal && kept.stored.media_type == media_type && kept.content == content
        });
        if let Some(kept) = same {
            return Ok(kept.stored.clone());
        }
        let handle = OutputHandle(NonZeroU64::MIN.saturating_add(outputs.len() as u64));
        // Nothing here needs a real hash: equal contents share one entry, so the number stands for the content.
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&handle.0.get().to_be_bytes());
        let stored = StoredOutput {
            handle,
            bytes: content.len() as u64,
            media_type: media_type.to_owned(),
            digest: ContentDigest(digest),
        };
        outputs.push(Kept { principal: principal.clone(), stored: stored.clone(), content: content.to_vec() });
        Ok(stored)
    }

    async fn find(&self, principal: &Principal, handle: OutputHandle) -> Result<Option<StoredOutput>, StoreError> {
        Ok(self.kept(principal, handle, |kept| kept.stored.clone()))
    }

    async fn open(
        &self,
        principal: &Principal,
        handle: OutputHandle,
    ) -> Result<Option<Box<dyn StoredContent>>, StoreError> {
        let content = self.kept(principal, handle, |kept| kept.content.clone());
        Ok(content.map(|content| Box::new(Cursor::new(content)) as Box<dyn StoredContent>))
    }
}
