//! Lifetime of tasks in sessions that continue in other processes.

use crate::config::Config;
use toolstead_domain::Principal;
use toolstead_infrastructure::{builtin::commands::tasks::Tasks, sandbox::detached_task_store::DetachedTaskStore};

/// Lifetime of tasks in sessions that continue in other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionLifetime {
    /// The process ends with its call, so it starts no tasks.
    EndsWithCall,
    /// The process outlives the call to run its detached tasks, until
    /// [`RunningApp::wait_for_tasks`](super::RunningApp::wait_for_tasks) returns.
    OutlivesCall,
    /// The process holds a conversation that another process may resume. Tasks end with the process, and the read-state
    /// of files is stored for later.
    EndsWithConversation,
}

/// Returns the tasks of a process. `lifetime` is `None` if sessions end with the process.
pub(super) fn tasks(lifetime: Option<SessionLifetime>, config: &Config) -> Tasks {
    match lifetime {
        Some(lifetime @ (SessionLifetime::EndsWithCall | SessionLifetime::OutlivesCall)) => {
            let place = DetachedTaskStore::of(&config.database.local_folder, &Principal::local(), config.workspace());
            Tasks::for_continuing_session(place, lifetime == SessionLifetime::OutlivesCall)
        }
        Some(SessionLifetime::EndsWithConversation) | None => Tasks::default(),
    }
}
