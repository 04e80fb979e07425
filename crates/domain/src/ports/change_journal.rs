//! The journal of what calls did to files, so that it can be undone.

use crate::{
    content_digest::ContentDigest, ports::clock::Timestamp, ports::tool_repository::StoreError, principal::Principal,
    tool_call::CallId,
};
use async_trait::async_trait;
use std::{collections::HashMap, path::PathBuf};

/// A file at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileState {
    /// Stands for its content.
    pub digest: ContentDigest,
    /// Its permission bits.
    pub mode: u32,
}

/// One file that a call changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Its real path.
    pub path: PathBuf,
    /// The file before; `None`: there was none.
    pub before: Option<FileState>,
    /// The file that the call left; `None`: there is none.
    pub after: Option<FileState>,
    /// As many folders right above it were made for it.
    pub made_folders: usize,
}

/// All that one call changed, in the order in which it was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// The call.
    pub call: CallId,
    /// Whose call it was.
    pub principal: Principal,
    /// The session in which it was made.
    pub session: String,
    /// The tool, by its canonical name.
    pub tool: String,
    /// The time of the change.
    pub at: Timestamp,
    /// The files. Never empty.
    pub changes: Vec<FileChange>,
    /// The call whose changes this one took back; `None` for a change of its own.
    pub reverts: Option<CallId>,
}

impl JournalEntry {
    /// Tells whether the entry only notes that nothing changed. There is nothing to take back, or to do again.
    pub fn is_note(&self) -> bool {
        !self.changes.is_empty() && self.changes.iter().all(|change| change.before == change.after)
    }
}

/// The calls among the entries, newest first, that are undone now, each with the call that undid it. An undo counts as long
/// as it is not undone itself.
pub fn undone(entries: &[JournalEntry]) -> HashMap<CallId, CallId> {
    let mut undone = HashMap::new();
    for entry in entries {
        if let Some(target) = entry.reverts.filter(|_| !undone.contains_key(&entry.call)) {
            // Of several the newest is the one that holds.
            undone.entry(target).or_insert(entry.call);
        }
    }
    undone
}

/// A content that an entry speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptContent {
    /// Stands for it.
    pub digest: ContentDigest,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Keeps what changes in one workspace replaced.
///
/// An entry is recorded **before** its files are touched, with the state that they will have afterwards. Whether a
/// change then really happened shows on the disk: its file is in one of the two states.
///
/// Implementers guarantee:
/// - after [`record`](Self::record) entry and contents are kept, also across `kill -9`; after an error none is;
/// - a content is kept once, whatever the number of entries that speak of it;
/// - an entry can be found until retention takes it; then its contents go, too, unless another entry needs them.
#[async_trait]
pub trait ChangeJournal: Send + Sync {
    /// Tells whether anything is kept at all, so that a change can be undone.
    fn keeps(&self) -> bool {
        true
    }

    /// Keeps an entry, and the contents that it takes to undo and to redo it. A second entry of the same call is added
    /// to the first: one call may change files in several steps.
    ///
    /// With contents it may block the thread while it writes them, so it is for a thread that may block.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be kept; the files must not be touched then.
    async fn record(&self, entry: JournalEntry, contents: Vec<KeptContent>) -> Result<(), StoreError>;

    /// The changes by a call of the principal in this workspace; `None` if there are none, or they are not known any more.
    ///
    /// # Errors
    /// [`StoreError`] when the journal cannot be read.
    async fn find(&self, principal: &Principal, call: CallId) -> Result<Option<JournalEntry>, StoreError>;

    /// The principal's entries of a session in this workspace, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] when the journal cannot be read.
    async fn of_session(
        &self,
        principal: &Principal,
        session: &str,
        limit: usize,
    ) -> Result<Vec<JournalEntry>, StoreError>;

    /// A content; `None` if it is not kept.
    ///
    /// # Errors
    /// [`StoreError`] when the journal cannot be read.
    async fn content(&self, digest: ContentDigest) -> Result<Option<Vec<u8>>, StoreError>;
}

/// Keeps nothing, for programs that embed Toolstead without a store: changes are made and cannot be undone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoJournal;

#[async_trait]
impl ChangeJournal for NoJournal {
    fn keeps(&self) -> bool {
        false
    }

    async fn record(&self, _: JournalEntry, _: Vec<KeptContent>) -> Result<(), StoreError> {
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
