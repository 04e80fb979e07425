//! The journal's part of a change: what is kept of it, so that it can be taken back.

use crate::builtin::{files::seen_files::Viewer, run::Run, text::unified_diff::line_counts};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::runtime::Handle;
use toolstead_domain::{
    content_digest::ContentDigest,
    error_kind::ErrorKind,
    event::{EventKind, EventOrigin, FileChangeKind},
    ports::{
        change_journal::{ChangeJournal, FileChange, FileState, JournalEntry, KeptContent},
        clock::Timestamp,
        event_sink::EventSink,
        seen_files::SeenFiles,
    },
    tool_call::CallId,
    tool_failure::ToolFailure,
};
use uuid::Uuid;

/// Where a change set records itself. It borrows nothing, so that it can go to the blocking thread.
#[derive(Clone)]
pub(crate) struct Recording {
    journal: Arc<dyn ChangeJournal>,
    events: Arc<dyn EventSink>,
    seen: Arc<dyn SeenFiles>,
    viewer: Viewer,
    call: CallId,
    tool: String,
    at: Timestamp,
    reverts: Option<CallId>,
    /// Bytes that are kept of all files as they were, and as they will be.
    limit: u64,
    runtime: Handle,
}

impl Recording {
    pub(crate) fn of(run: &Run<'_>) -> Self {
        Self {
            journal: run.world.journal().clone(),
            events: run.world.events().clone(),
            seen: run.world.seen().clone(),
            viewer: Viewer::of(run.context()),
            call: run.context.id,
            tool: run.call.tool.name().to_string(),
            at: run.world.now(),
            reverts: None,
            limit: run.world.limits().result_bytes,
            runtime: Handle::current(),
        }
    }

    /// Bytes that a file may have, before and after.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// The id of a call that changed something, which `undo` takes; none where nothing changed, or nothing is kept.
    pub(crate) fn undo_id(&self, is_change: bool) -> Option<String> {
        (is_change && self.keeps()).then(|| self.call.to_string())
    }

    /// The same for a change that takes back what that call did.
    #[must_use]
    pub(crate) fn reverting(self, call: CallId) -> Self {
        Self { reverts: Some(call), ..self }
    }

    /// Whether what is changed can be taken back.
    pub(crate) fn keeps(&self) -> bool {
        self.journal.keeps()
    }

    /// What to say of a call that changed something, so that it can be taken back; `None` where there is nothing that
    /// could be.
    pub(crate) fn how_to_undo(&self, is_change: bool) -> Option<String> {
        self.undo_id(is_change).map(|call| format!("To take it back: `undo` with the call {call}."))
    }

    /// Records what will be.
    pub(crate) fn record(&self, changes: Vec<FileChange>, contents: Vec<KeptContent>) -> Result<(), ToolFailure> {
        let entry = self.entry(self.call, changes, self.reverts);
        self.runtime.block_on(self.journal.record(entry, contents)).map_err(|error| {
            let message = "nothing was changed, because the change could not be recorded for an undo";
            ToolFailure::new(ErrorKind::Io, message).next("Try again; if it goes on, tell the user.").caused_by(error)
        })
    }

    /// Records a call that leaves these files as they are. An undo that names no call would otherwise take back what an
    /// earlier one did.
    pub(crate) fn record_that_nothing_changed(
        &self,
        files: impl Iterator<Item = (PathBuf, Option<FileState>)>,
    ) -> Result<(), ToolFailure> {
        let as_it_was = |(path, state)| FileChange { path, before: state, after: state, made_folders: 0 };
        let changes: Vec<FileChange> = files.map(as_it_was).collect();
        // What takes back a call notes it itself.
        if self.reverts.is_some() || changes.is_empty() {
            return Ok(());
        }
        self.record(changes, Vec::new())
    }

    /// Takes back what was recorded of a change that was not made after all, so that an undo passes over it. Otherwise
    /// it would take somebody else's file for ours where that happens to hold the same.
    pub(crate) fn record_that_it_was_not_done(&self, changes: Vec<FileChange>) {
        let taken_back = |change: FileChange| match self.reverts {
            None => FileChange { after: change.before, made_folders: 0, ..change },
            // An undo that failed leaves a change that can be undone, as if it had been undone and done again.
            Some(_) => FileChange { before: change.after, after: change.before, made_folders: 0, ..change },
        };
        let changes = changes.into_iter().map(taken_back).collect();
        let entry = self.entry(CallId(Uuid::now_v7()), changes, Some(self.call));
        if let Err(error) = self.runtime.block_on(self.journal.record(entry, Vec::new())) {
            tracing::warn!(call = %self.call, %error, "the journal speaks of a change that was not made");
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

    /// Tells those who watch what happened to a file that held the first bytes and holds the second.
    pub(crate) fn tell(
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

    /// The session knows what it wrote.
    pub(crate) fn wrote(&self, real: &Path, after: Option<FileState>) {
        let (principal, session) = (&self.viewer.principal, self.viewer.session.as_str());
        let remembered = self.runtime.block_on(async {
            match after {
                Some(state) => self.seen.saw(principal, session, real, state.digest).await,
                None => self.seen.forget(principal, session, real).await,
            }
        });
        // The change is made. The next one of this file is refused as if somebody else had made this one.
        if let Err(error) = remembered {
            tracing::warn!(call = %self.call, %error, "the session does not know what it wrote");
        }
    }

    /// The session knows what it read. Blocks.
    pub(crate) fn saw(&self, real: &Path, digest: ContentDigest) {
        let saw = self.seen.saw(&self.viewer.principal, &self.viewer.session, real, digest);
        // What is read is told all the same: whoever changes the file is refused at worst.
        if let Err(error) = self.runtime.block_on(saw) {
            tracing::warn!(call = %self.call, %error, "the session does not know what it has read");
        }
    }

    /// The content of a file that the session knows.
    pub(crate) fn known(&self, real: &Path) -> Result<Option<ContentDigest>, ToolFailure> {
        let known = self.seen.known(&self.viewer.principal, &self.viewer.session, real);
        self.runtime.block_on(known).map_err(|error| {
            let message = "nothing was changed, because it cannot be told what this session has read";
            ToolFailure::new(ErrorKind::Io, message).next("Try again; if it goes on, tell the user.").caused_by(error)
        })
    }
}
