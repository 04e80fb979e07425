//! What built-in tools know of their surroundings.

use crate::{
    builtin::{
        blocking::on_blocking_thread,
        commands::{programs::Programs, tasks::Tasks},
        files::{file_limits::FileLimits, reverting::judged::JudgedEntries, seen_files::SeenInMemory},
        text::line_index::LineIndexes,
    },
    sandbox::{helper::Helpers, workspace::Workspace},
};
use std::{fmt, sync::Arc};
use tokio::sync::Semaphore;
use toolstead_domain::{
    access::PathAccess,
    ports::{
        change_journal::{ChangeJournal, NoJournal},
        clock::Clock,
        event_sink::{EventSink, NoEvents},
        seen_files::SeenFiles,
    },
    tool_failure::ToolFailure,
};

/// The surroundings of the built-in tools: the same for all calls of a run.
#[derive(Clone)]
pub struct World {
    /// The folders that they may work in.
    pub workspace: Arc<Workspace>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The program's name and version, for reports: `Toolstead 0.1.0`.
    pub version: String,
    /// What file tools read and write at most (`[files]`).
    pub limits: FileLimits,
    /// Where file changes are kept, so that they can be undone.
    pub journal: Arc<dyn ChangeJournal>,
    /// Tells what happens to those who watch.
    pub events: Arc<dyn EventSink>,
    /// What each session has read.
    pub seen: Arc<dyn SeenFiles>,
    /// What calls that take something back were judged by.
    pub judged: Arc<JudgedEntries>,
    /// Where the lines of large files lie, as far as they were read.
    pub lines: Arc<LineIndexes>,
    /// The child processes that read documents.
    pub helpers: Arc<Helpers>,
    /// How programs are started.
    pub programs: Arc<Programs>,
    /// The commands that run in the background.
    pub tasks: Arc<Tasks>,
    /// As many images as are decoded at once: each takes some hundred megabytes at worst.
    pub decoding: Arc<Semaphore>,
}

/// Images that are decoded at once.
const DECODED_AT_ONCE: usize = 4;

impl World {
    /// These surroundings, with the usual limits and without a journal.
    pub fn new(workspace: Arc<Workspace>, clock: Arc<dyn Clock>, version: String) -> Self {
        Self {
            workspace,
            clock,
            version,
            limits: FileLimits::default(),
            journal: Arc::new(NoJournal),
            events: Arc::new(NoEvents),
            seen: Arc::new(SeenInMemory::default()),
            judged: Arc::default(),
            lines: Arc::default(),
            helpers: Arc::default(),
            programs: Arc::default(),
            tasks: Arc::default(),
            decoding: Arc::new(Semaphore::new(DECODED_AT_ONCE)),
        }
    }

    /// Finds the tasks that other processes keep.
    ///
    /// # Errors
    /// `io` when they cannot be looked for.
    pub(super) async fn meet_tasks(&self) -> Result<(), ToolFailure> {
        self.tasks.meet(self.programs.settings(), self.clock.now()).await
    }

    /// What a call that names this path would touch. A missing path is no error.
    ///
    /// # Errors
    /// `invalid_input` when the text is no path.
    pub async fn access(&self, path: &str) -> Result<PathAccess, ToolFailure> {
        let (workspace, path) = (self.workspace.clone(), path.to_owned());
        on_blocking_thread(move || Ok(workspace.access(&path)?)).await
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("workspace", &self.workspace)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
