//! Records changes in the journal, so that they can be undone.

use crate::builtin::{
    files::read_state::SessionKey, text::unified_diff::line_counts, tool_kit::tool_context::ToolContext,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::runtime::Handle;
use toolstead_domain::{
    CallId, ChangeJournal, ContentDigest, EventKind, EventOrigin, EventSink, FileChange, FileChangeKind, FileState,
    JournalEntry, ReadState, StoredBlob, Timestamp, ToolFailure, error_kind::ErrorKind,
};
use uuid::Uuid;

/// Recorder of the changes of one call in the journal, in the session's read-state, and as events. It borrows nothing,
/// so that it can move to a blocking thread.
#[derive(Clone)]
pub(crate) struct ChangeRecorder {
    journal: Arc<dyn ChangeJournal>,
    events: Arc<dyn EventSink>,
    read_state: Arc<dyn ReadState>,
    viewer: SessionKey,
    call: CallId,
    tool: String,
    at: Timestamp,
    reverts: Option<CallId>,
    /// Maximum number of bytes of a file, before and after the change.
    limit: u64,
    runtime: Handle,
}

impl ChangeRecorder {
    pub(crate) fn of(run: &ToolContext<'_>) -> Self {
        Self {
            journal: run.environment.files().journal().clone(),
            events: run.environment.events().clone(),
            read_state: run.environment.files().read_state().clone(),
            viewer: SessionKey::of(run.context()),
            call: run.context.id,
            tool: run.call.tool.name().to_string(),
            at: run.environment.now(),
            reverts: None,
            limit: run.environment.files().limits().result_bytes,
            runtime: Handle::current(),
        }
    }

    /// Returns the maximum number of bytes of a file, before and after the change.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the id of a call that changed something, as an argument of `undo`; none if nothing changed, or nothing
    /// is recorded.
    pub(crate) fn undo_id(&self, is_change: bool) -> Option<String> {
        (is_change && self.supports_undo()).then(|| self.call.to_string())
    }

    /// Returns the recording of a change that reverts `call`.
    #[must_use]
    pub(crate) fn reverting(self, call: CallId) -> Self {
        Self { reverts: Some(call), ..self }
    }

    /// Returns `true` if changes can be undone.
    pub(crate) fn supports_undo(&self) -> bool {
        self.journal.keeps()
    }

    /// Returns an instruction to undo the call; `None` if `is_change` is `false`, or changes cannot be undone.
    pub(crate) fn undo_instruction(&self, is_change: bool) -> Option<String> {
        self.undo_id(is_change).map(|call| format!("To undo it: `undo` with the call {call}."))
    }

    /// Records changes before they are made.
    pub(crate) fn record(&self, changes: Vec<FileChange>, contents: Vec<StoredBlob>) -> Result<(), ToolFailure> {
        let entry = self.entry(self.call, changes, self.reverts);
        self.runtime.block_on(self.journal.record(entry, contents)).map_err(|error| {
            let message = "nothing was changed, because the change could not be recorded for an undo";
            ToolFailure::new(ErrorKind::Io, message)
                .next("Try again; if it fails again, tell the user.")
                .caused_by(error)
        })
    }

    /// Records in the journal that the call leaves these files unchanged. Otherwise an undo without an id would revert
    /// an earlier call. Does nothing without files, or if this call reverts another one.
    pub(crate) fn record_unchanged(
        &self,
        files: impl Iterator<Item = (PathBuf, Option<FileState>)>,
    ) -> Result<(), ToolFailure> {
        let as_it_was = |(path, state)| FileChange { path, before: state, after: state, made_folders: 0 };
        let changes: Vec<FileChange> = files.map(as_it_was).collect();
        // A call that reverts another one records this itself.
        if self.reverts.is_some() || changes.is_empty() {
            return Ok(());
        }
        self.record(changes, Vec::new())
    }

    /// Marks recorded changes as not made, so that an undo skips them. Otherwise an undo could mistake another
    /// program's file with the same content for one of this session.
    pub(crate) fn record_not_applied(&self, changes: Vec<FileChange>) {
        let reverted = |change: FileChange| match self.reverts {
            None => FileChange { after: change.before, made_folders: 0, ..change },
            // After a failed undo the change can be undone again, as after an undo and a redo.
            Some(_) => FileChange { before: change.after, after: change.before, made_folders: 0, ..change },
        };
        let changes = changes.into_iter().map(reverted).collect();
        let entry = self.entry(CallId(Uuid::now_v7()), changes, Some(self.call));
        if let Err(error) = self.runtime.block_on(self.journal.record(entry, Vec::new())) {
            tracing::warn!(call = %self.call, %error, "the journal contains a change that was not made");
        }
    }

    fn entry(&self, call: CallId, changes: Vec<FileChange>, reverts: Option<CallId>) -> JournalEntry {
        JournalEntry {
            call,
            principal: self.viewer.principal.clone(),
            session: self.viewer.session.clone(),
            tool: self.tool.clone(),
            at: self.at,
            changes,
            reverts,
        }
    }

    /// Sends an event for the change of a file from the content `old` to the content `new`. Does nothing without
    /// subscribers.
    pub(crate) fn publish_change(
        &self,
        real: &Path,
        before: Option<FileState>,
        after: Option<FileState>,
        (old, new): (&[u8], &[u8]),
    ) {
        if !self.events.is_watched() {
            return;
        }
        let change = match (before, after) {
            (None, _) => FileChangeKind::Created,
            (Some(_), Some(_)) => FileChangeKind::Modified,
            (Some(_), None) => FileChangeKind::Deleted,
        };
        let lines = line_counts(old, new);
        let origin = EventOrigin {
            principal: Some(self.viewer.principal.clone()),
            session: Some(self.viewer.session.as_str().into()),
            call: Some(self.call),
        };
        let kind = EventKind::FileChanged {
            tool: self.tool.clone(),
            path: real.to_owned(),
            change,
            lines_added: lines.map(|(added, _)| added),
            lines_removed: lines.map(|(_, removed)| removed),
        };
        self.events.send(origin, kind);
    }

    /// Stores in the session's read-state that it knows the written content of the file, or forgets a deleted file
    /// (`after` is `None`). Blocks; a failure is only logged.
    pub(crate) fn mark_written(&self, real: &Path, after: Option<FileState>) {
        let (principal, session) = (&self.viewer.principal, self.viewer.session.as_str());
        let remembered = self.runtime.block_on(async {
            match after {
                Some(state) => self.read_state.record_version(principal, session, real, state.digest).await,
                None => self.read_state.forget(principal, session, real).await,
            }
        });
        // The change is made. The next change of this file is refused, as after a change by another program.
        if let Err(error) = remembered {
            tracing::warn!(call = %self.call, %error, "the read-state of the session lacks the written version");
        }
    }

    /// Stores in the session's read-state that it knows this content of the file. Blocks; a failure is only logged.
    pub(crate) fn mark_read(&self, real: &Path, digest: ContentDigest) {
        let saw = self.read_state.record_version(&self.viewer.principal, &self.viewer.session, real, digest);
        // The content is returned anyway: at worst a later change of the file is refused.
        if let Err(error) = self.runtime.block_on(saw) {
            tracing::warn!(call = %self.call, %error, "the read-state of the session could not be stored");
        }
    }

    /// Returns the digest of the content that the session last read or wrote in the file; `None` if it knows none.
    /// Blocks.
    pub(crate) fn known_version(&self, real: &Path) -> Result<Option<ContentDigest>, ToolFailure> {
        let known = self.read_state.known(&self.viewer.principal, &self.viewer.session, real);
        self.runtime.block_on(known).map_err(|error| {
            let message = "nothing was changed, because the read-state of this session is unavailable";
            ToolFailure::new(ErrorKind::Io, message)
                .next("Try again; if it fails again, tell the user.")
                .caused_by(error)
        })
    }
}
