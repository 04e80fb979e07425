//! The journal of file changes by calls, from which they can be undone.

use crate::{
    content_digest::ContentDigest, ports::clock::Timestamp, ports::tool_repository::StoreError, principal::Principal,
    tool_call::CallId,
};
use async_trait::async_trait;
use std::{collections::HashMap, path::PathBuf};

/// File at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileState {
    /// Digest of its content.
    pub digest: ContentDigest,
    /// Permission bits.
    pub mode: u32,
}

/// Change of one file by a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Real path of the file.
    pub path: PathBuf,
    /// File before the change; `None` if it did not exist.
    pub before: Option<FileState>,
    /// File after the change; `None` if it does not exist.
    pub after: Option<FileState>,
    /// Number of parent folders, from the file upwards, that were created for it.
    pub made_folders: usize,
}

/// All changes by one call, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// Call that made the changes.
    pub call: CallId,
    /// Principal that made the call.
    pub principal: Principal,
    /// Session of the call.
    pub session: String,
    /// Canonical name of the tool.
    pub tool: String,
    /// Time of the change.
    pub at: Timestamp,
    /// Changed files. Never empty.
    pub changes: Vec<FileChange>,
    /// Call whose changes this one undid; `None` for a change of its own.
    pub reverts: Option<CallId>,
}

impl JournalEntry {
    /// Returns `true` if the entry only records that nothing changed. There is nothing to undo or to redo.
    pub fn is_note(&self) -> bool {
        !self.changes.is_empty() && self.changes.iter().all(|change| change.before == change.after)
    }
}

/// Returns the calls among the entries (newest first) that are currently undone, each with the call that undid it. An
/// undo counts until it is undone itself.
pub fn undone(entries: &[JournalEntry]) -> HashMap<CallId, CallId> {
    let mut undone = HashMap::new();
    for entry in entries {
        if let Some(target) = entry.reverts.filter(|_| !undone.contains_key(&entry.call)) {
            // The newest of several undos is in effect.
            undone.entry(target).or_insert(entry.call);
        }
    }
    undone
}

/// Content of a file that an entry refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlob {
    /// Digest of the bytes.
    pub digest: ContentDigest,
    /// Bytes of the content.
    pub bytes: Vec<u8>,
}

/// Stores what the changes in one workspace replaced.
///
/// An entry is recorded **before** its files are changed, with the state that they will have afterwards. The state of a
/// file on disk then shows if the change was made: it is one of the two recorded states.
///
/// Implementers guarantee:
/// - after [`record`](Self::record) succeeds, the entry and its contents are stored durably, also across `kill -9`;
///   after an error nothing is stored;
/// - a content is stored once, regardless of the number of entries that refer to it;
/// - an entry can be found until retention removes it; its contents are then removed as well, unless another entry
///   needs them.
#[async_trait]
pub trait ChangeJournal: Send + Sync {
    /// Returns `true` if the journal stores entries at all, so that changes can be undone.
    fn keeps(&self) -> bool {
        true
    }

    /// Stores an entry, and the contents that are needed to undo and to redo it. A second entry of the same call is
    /// added to the first: one call may change files in several steps.
    ///
    /// With contents the method may block the thread while it writes them, so call it on a thread that may block.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be stored; the files must then not be changed.
    async fn record(&self, entry: JournalEntry, contents: Vec<StoredBlob>) -> Result<(), StoreError>;

    /// Returns the changes by a call of the principal in this workspace; `None` if there are none, or they were
    /// removed.
    ///
    /// # Errors
    /// [`StoreError`] if the journal cannot be read.
    async fn find(&self, principal: &Principal, call: CallId) -> Result<Option<JournalEntry>, StoreError>;

    /// Returns the principal's entries of a session in this workspace, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if the journal cannot be read.
    async fn of_session(
        &self,
        principal: &Principal,
        session: &str,
        limit: usize,
    ) -> Result<Vec<JournalEntry>, StoreError>;

    /// Returns a content; `None` if it is not stored.
    ///
    /// # Errors
    /// [`StoreError`] if the journal cannot be read.
    async fn content(&self, digest: ContentDigest) -> Result<Option<Vec<u8>>, StoreError>;
}

/// Journal that stores nothing, for embedding applications without a store: changes are made and cannot be undone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoJournal;

#[async_trait]
impl ChangeJournal for NoJournal {
    fn keeps(&self) -> bool {
        false
    }

    async fn record(&self, _: JournalEntry, _: Vec<StoredBlob>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn find(&self, _: &Principal, _: CallId) -> Result<Option<JournalEntry>, StoreError> {
        Ok(None)
    }

    async fn of_session(&self, _: &Principal, _: &str, _: usize) -> Result<Vec<JournalEntry>, StoreError> {
        Ok(Vec::new())
    }

    async fn content(&self, _: ContentDigest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }
}
