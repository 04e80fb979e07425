//! The part of the environment that file tools use.

use crate::builtin::{
    files::{file_limits::FileLimits, read_state::InMemoryReadState, reverting::planned_reverts::PlannedReverts},
    text::line_index::LineIndexCache,
};
use std::{fmt, sync::Arc};
use tokio::sync::Semaphore;
use toolstead_domain::{ChangeJournal, NoJournal, ReadState};

/// Maximum number of images that are decoded at once.
const DECODED_AT_ONCE: usize = 4;

/// Environment of the file tools: limits, journal, and the states of files that sessions know.
#[derive(Clone)]
pub struct FileEnvironment {
    pub(super) limits: FileLimits,
    pub(super) journal: Arc<dyn ChangeJournal>,
    pub(super) read_state: Arc<dyn ReadState>,
    pub(super) planned_reverts: Arc<PlannedReverts>,
    pub(super) lines: Arc<LineIndexCache>,
    pub(super) decoding: Arc<Semaphore>,
}

impl Default for FileEnvironment {
    fn default() -> Self {
        Self {
            limits: FileLimits::default(),
            journal: Arc::new(NoJournal),
            read_state: Arc::new(InMemoryReadState::default()),
            planned_reverts: Arc::default(),
            lines: Arc::default(),
            decoding: Arc::new(Semaphore::new(DECODED_AT_ONCE)),
        }
    }
}

impl FileEnvironment {
    /// Returns the limits of file tools.
    pub fn limits(&self) -> &FileLimits {
        &self.limits
    }

    pub(in crate::builtin) fn journal(&self) -> &Arc<dyn ChangeJournal> {
        &self.journal
    }

    pub(in crate::builtin) fn read_state(&self) -> &Arc<dyn ReadState> {
        &self.read_state
    }

    /// Returns the journal entries on which the decisions about undo and redo calls were based.
    pub(in crate::builtin) fn planned_reverts(&self) -> &PlannedReverts {
        &self.planned_reverts
    }

    /// Returns the line indexes of large files, as far as the files were read.
    pub(in crate::builtin) fn lines(&self) -> &Arc<LineIndexCache> {
        &self.lines
    }

    /// Returns the semaphore that limits the images decoded at once: each takes some hundred megabytes at worst.
    pub(in crate::builtin) fn decoding(&self) -> &Arc<Semaphore> {
        &self.decoding
    }
}

impl fmt::Debug for FileEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileEnvironment").finish_non_exhaustive()
    }
}
