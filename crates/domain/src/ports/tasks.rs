//! Work that continues after the call that began it.

use crate::{error_kind::ErrorKind, principal::Principal, tool_call::CallId, tool_failure::ToolFailure};
use async_trait::async_trait;
use std::sync::Arc;

/// Runs work that outlives its call as a task, which its owner can list, await and stop by its id.
///
/// Implementers guarantee:
/// - a task belongs to its principal and to its session, and ends with the session;
/// - stopping a task drops the future of its work.
#[async_trait]
pub trait TaskStarter: Send + Sync {
    /// Checks that one more task may begin.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    fn check_room(&self, principal: &Principal, session: &str) -> Result<(), ToolFailure> {
        let _ = (principal, session);
        Ok(())
    }

    /// Begins the work, and returns the id of its task.
    ///
    /// # Errors
    /// [`ToolFailure`] if there are too many tasks; nothing has then begun.
    async fn begin(&self, task: NewTask, work: Box<dyn TaskWork>) -> Result<String, ToolFailure>;
}

/// Task of an agent to begin.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NewTask {
    /// Owner of the task.
    pub principal: Principal,
    /// Session of the task.
    pub session: Arc<str>,
    /// Title for users, shown in lists of tasks.
    pub title: String,
    /// Purpose of the task.
    pub description: Option<String>,
    /// Call that begins it.
    pub call: Option<CallId>,
}

impl NewTask {
    /// Creates a task with this title.
    pub fn new(principal: Principal, session: impl Into<Arc<str>>, title: impl Into<String>) -> Self {
        Self { principal, session: session.into(), title: title.into(), description: None, call: None }
    }
}

/// Background work of a task.
#[async_trait]
pub trait TaskWork: Send {
    /// Does the work.
    async fn run(self: Box<Self>, output: Arc<dyn TaskOutputSink>) -> TaskWorkOutcome;
}

/// Output of work in progress.
pub trait TaskOutputSink: Send + Sync {
    /// Appends text to the output.
    fn write(&self, text: &str);
}

/// Result of background work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskWorkOutcome {
    /// The work succeeded.
    Succeeded,
    /// The work failed; its output contains the reason.
    Failed,
}

/// Refuses all tasks.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTasks;

impl NoTasks {
    fn refusal() -> ToolFailure {
        let message = "Nothing can run in the background here.";
        ToolFailure::new(ErrorKind::Unavailable, message).next("Leave `background` out.")
    }
}

#[async_trait]
impl TaskStarter for NoTasks {
    fn check_room(&self, _: &Principal, _: &str) -> Result<(), ToolFailure> {
        Err(Self::refusal())
    }

    async fn begin(&self, _: NewTask, _: Box<dyn TaskWork>) -> Result<String, ToolFailure> {
        Err(Self::refusal())
    }
}
