//! Work that goes on after the call that began it.

use crate::{error_kind::ErrorKind, principal::Principal, tool_call::CallId, tool_failure::ToolFailure};
use async_trait::async_trait;
use std::sync::Arc;

/// Takes on work that outlives its call, as a task that its owner sees, waits for and stops by its id.
///
/// Implementers guarantee:
/// - a task is its principal's, and belongs to its session: it ends with that;
/// - stopping a task drops the future of its work.
#[async_trait]
pub trait Tasks: Send + Sync {
    /// Says whether one more may begin.
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
    /// [`ToolFailure`] when there are too many; then nothing has begun.
    async fn begin(&self, task: NewTask, work: Box<dyn TaskWork>) -> Result<String, ToolFailure>;
}

/// The task of an agent that is to begin.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NewTask {
    /// Whose it is.
    pub principal: Principal,
    /// In which session.
    pub session: Arc<str>,
    /// Its name for people: the line that lists show.
    pub title: String,
    /// Its purpose.
    pub description: Option<String>,
    /// The call that begins it.
    pub call: Option<CallId>,
}

impl NewTask {
    /// A task of this name.
    pub fn new(principal: Principal, session: impl Into<Arc<str>>, title: impl Into<String>) -> Self {
        Self { principal, session: session.into(), title: title.into(), description: None, call: None }
    }
}

/// Work that goes on by itself.
#[async_trait]
pub trait TaskWork: Send {
    /// Does it.
    async fn run(self: Box<Self>, output: Arc<dyn TaskOutput>) -> TaskEnd;
}

/// The place to which work writes what it has to say while it goes on.
pub trait TaskOutput: Send + Sync {
    /// Adds to its output.
    fn write(&self, text: &str);
}

/// The end of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskEnd {
    /// It did what it was to do.
    Succeeded,
    /// It did not; its output says why.
    Failed,
}

/// Takes on nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTasks;

impl NoTasks {
    fn refusal() -> ToolFailure {
        let message = "Nothing can run in the background here.";
        ToolFailure::new(ErrorKind::Unavailable, message).next("Leave `background` out.")
    }
}

#[async_trait]
impl Tasks for NoTasks {
    fn check_room(&self, _: &Principal, _: &str) -> Result<(), ToolFailure> {
        Err(Self::refusal())
    }

    async fn begin(&self, _: NewTask, _: Box<dyn TaskWork>) -> Result<String, ToolFailure> {
        Err(Self::refusal())
    }
}
