//! Work that goes on after the call that began it.

use crate::{principal::Principal, tool_failure::ToolFailure};
use async_trait::async_trait;
use std::sync::Arc;

/// Takes on work that outlives its call, as a task that its owner sees, waits for and stops by its id.
///
/// Implementers guarantee:
/// - a task is its principal's, and belongs to its session: it ends with that;
/// - stopping a task drops the future of its work.
#[async_trait]
pub trait Tasks: Send + Sync {
    /// Begins the work, and returns the id of its task.
    ///
    /// # Errors
    /// [`ToolFailure`] when there are too many; then nothing has begun.
    async fn begin(&self, task: NewTask, work: Box<dyn TaskWork>) -> Result<String, ToolFailure>;
}

/// A task that is to begin.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NewTask {
    /// Whose it is.
    pub principal: Principal,
    /// In which session.
    pub session: Arc<str>,
    /// The kind, as one word: `agent`.
    pub kind: &'static str,
    /// What it is, for people: the line that lists show.
    pub title: String,
    /// What it is for.
    pub description: Option<String>,
}

impl NewTask {
    /// A task of this kind.
    pub fn new(
        principal: Principal,
        session: impl Into<Arc<str>>,
        kind: &'static str,
        title: impl Into<String>,
    ) -> Self {
        Self { principal, session: session.into(), kind, title: title.into(), description: None }
    }
}

/// Work that goes on by itself.
#[async_trait]
pub trait TaskWork: Send {
    /// Does it.
    async fn run(self: Box<Self>, output: Arc<dyn TaskOutput>) -> TaskEnd;
}

/// Where work writes what it has to say while it goes on.
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

#[async_trait]
impl Tasks for NoTasks {
    async fn begin(&self, _: NewTask, _: Box<dyn TaskWork>) -> Result<String, ToolFailure> {
        let message = "Nothing can go on in the background here.";
        Err(ToolFailure::new(crate::error_kind::ErrorKind::Unavailable, message))
    }
}
