//! The part of the environment that runs programs.

use crate::{
    builtin::commands::{programs::ProgramLauncher, tasks::Tasks},
    sandbox::helper::HelperLauncher,
};
use std::{fmt, sync::Arc};

/// Services that run commands and helper processes.
#[derive(Clone, Default)]
pub struct ProcessServices {
    pub(super) helpers: Arc<HelperLauncher>,
    pub(super) programs: Arc<ProgramLauncher>,
    pub(super) tasks: Arc<Tasks>,
}

impl ProcessServices {
    /// Returns the helper processes that read documents.
    pub(in crate::builtin) fn helpers(&self) -> &HelperLauncher {
        &self.helpers
    }

    pub(in crate::builtin) fn programs(&self) -> &Arc<ProgramLauncher> {
        &self.programs
    }

    pub(in crate::builtin) fn tasks(&self) -> &Tasks {
        &self.tasks
    }
}

impl fmt::Debug for ProcessServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessServices").finish_non_exhaustive()
    }
}
