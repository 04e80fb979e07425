//! The part of the environment that runs programs.

use crate::{
    builtin::commands::{programs::Programs, tasks::Tasks},
    sandbox::helper::Helpers,
};
use std::{fmt, sync::Arc};

/// Environment of commands and helper processes.
#[derive(Clone, Default)]
pub struct ProcessEnvironment {
    pub(super) helpers: Arc<Helpers>,
    pub(super) programs: Arc<Programs>,
    pub(super) tasks: Arc<Tasks>,
}

impl ProcessEnvironment {
    /// Returns the helper processes that read documents.
    pub(in crate::builtin) fn helpers(&self) -> &Helpers {
        &self.helpers
    }

    pub(in crate::builtin) fn programs(&self) -> &Arc<Programs> {
        &self.programs
    }

    pub(in crate::builtin) fn tasks(&self) -> &Tasks {
        &self.tasks
    }
}

impl fmt::Debug for ProcessEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessEnvironment").finish_non_exhaustive()
    }
}
