//! A journal of file changes in memory.

use super::{failure_switch::FailureSwitch, lock};
use crate::{
    content_digest::ContentDigest,
    ports::{
        change_journal::{ChangeJournal, JournalEntry, StoredBlob},
        tool_repository::StoreError,
    },
    principal::Principal,
    tool_call::CallId,
};
use async_trait::async_trait;
use std::{collections::BTreeMap, sync::Mutex};

/// Journal that stores every entry until it is dropped.
#[derive(Debug, Default)]
pub struct InMemoryChangeJournal {
    kept: Mutex<JournalContents>,
    records: FailureSwitch,
}

#[derive(Debug, Default)]
struct JournalContents {
    entries: Vec<JournalEntry>,
    contents: BTreeMap<ContentDigest, Vec<u8>>,
}

impl InMemoryChangeJournal {
    /// Creates an empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the next `record` fail.
    pub fn fail_next_record(&self) {
        self.records.fail_next(1);
    }

    /// Returns all entries, oldest first.
    pub fn entries(&self) -> Vec<JournalEntry> {
        lock(&self.kept).entries.clone()
    }
}

#[async_trait]
impl ChangeJournal for InMemoryChangeJournal {
    async fn record(&self, entry: JournalEntry, contents: Vec<StoredBlob>) -> Result<(), StoreError> {
        self.records.check("record the change")?;
        let mut kept = lock(&self.kept);
        kept.contents.extend(contents.into_iter().map(|content| (content.digest, content.bytes)));
        match kept.entries.iter_mut().find(|other| other.call == entry.call && other.principal == entry.principal) {
            Some(first) => first.changes.extend(entry.changes),
            None => kept.entries.push(entry),
        }
        Ok(())
    }

    async fn find(&self, principal: &Principal, call: CallId) -> Result<Option<JournalEntry>, StoreError> {
        let kept = lock(&self.kept);
        Ok(kept.entries.iter().find(|entry| entry.call == call && entry.principal == *principal).cloned())
    }

    async fn of_session(
        &self,
        principal: &Principal,
        session: &str,
        limit: usize,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        let kept = lock(&self.kept);
        let fits = |entry: &&JournalEntry| entry.principal == *principal && entry.session == session;
        Ok(kept.entries.iter().rev().filter(fits).take(limit).cloned().collect())
    }

    async fn content(&self, digest: ContentDigest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(lock(&self.kept).contents.get(&digest).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        block_on::block_on,
        change_journal_contract::{change_journal_contract, entry},
    };

    #[test]
    fn the_journal_in_memory_keeps_the_contract() {
        block_on(change_journal_contract(&InMemoryChangeJournal::new()));
    }

    #[test]
    fn a_failed_record_keeps_nothing() {
        let journal = InMemoryChangeJournal::new();
        journal.fail_next_record();
        assert!(block_on(journal.record(entry(1), Vec::new())).is_err());
        assert!(journal.entries().is_empty());
    }
}
