//! Work that is not a command, as tasks: agents are listed, awaited and stopped like commands.

use super::{NewTask, TaskKind, Tasks};
use crate::builtin::{
    commands::{
        capture::{Capture, OutputStream},
        command::{CommandControl, CommandEnd, CommandHandle, CommandOwnerChannels, EndCause},
        programs::CommandSettings,
    },
    files::read_state::SessionKey,
};
use async_trait::async_trait;
use futures::FutureExt;
use std::{fmt, panic::AssertUnwindSafe, sync::Arc, time::Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use toolstead_domain::{
    Clock, EventSink, Principal, TaskOutputSink, TaskWork, TaskWorkOutcome, ToolFailure,
    error_kind::ErrorKind,
    ports::tasks::{self},
};

/// Accepts work as tasks, beside commands.
pub(crate) struct AgentTaskStarter {
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) settings: CommandSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) events: Arc<dyn EventSink>,
}

impl fmt::Debug for AgentTaskStarter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentTaskStarter").field("tasks", &self.tasks).finish_non_exhaustive()
    }
}

#[async_trait]
impl tasks::TaskStarter for AgentTaskStarter {
    fn check_room(&self, principal: &Principal, session: &str) -> Result<(), ToolFailure> {
        if self.tasks.detached.is_some() {
            let message = "a task ends with its session, which here ends with this call";
            return Err(ToolFailure::new(ErrorKind::InvalidInput, message).next("Leave `background` out."));
        }
        self.tasks.check_room(&SessionKey { principal: principal.clone(), session: session.to_owned() })
    }

    async fn begin(&self, task: tasks::NewTask, work: Box<dyn TaskWork>) -> Result<String, ToolFailure> {
        self.check_room(&task.principal, &task.session)?;
        let capture = Arc::new(Capture::new(self.settings.spool_folder.clone(), self.settings.kept_bytes));
        let started = Instant::now();
        let (command, elsewhere) = CommandHandle::remote(capture.clone(), 0, started, false);
        let owner = SessionKey { principal: task.principal.clone(), session: task.session.to_string() };
        let new = NewTask {
            kind: TaskKind::Agent,
            owner,
            is_detached: false,
            text: task.title,
            description: task.description,
            started_at: self.clock.now(),
            command: Arc::new(command),
        };
        let known = self.tasks.add(new)?;
        self.tasks.publish_events(&known, task.call, self.events.clone());
        tokio::spawn(run_work(work, elsewhere, capture, started));
        Ok(known.id.to_string())
    }
}

/// Runs the work until it ends or is stopped, and captures its output.
async fn run_work(work: Box<dyn TaskWork>, channels: CommandOwnerChannels, capture: Arc<Capture>, started: Instant) {
    let CommandOwnerChannels { ended, mut orders, texts: _texts } = channels;
    let (words, mut said) = unbounded_channel();
    let end = {
        let mut working = Box::pin(AssertUnwindSafe(work.run(Arc::new(TaskOutputSender(words)))).catch_unwind());
        loop {
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(CommandControl::CloseInput) => {}
                    // The task is forgotten or was stopped: the work needs no cleanup.
                    None | Some(CommandControl::Signal(_) | CommandControl::Stop | CommandControl::Kill | CommandControl::TimeOut) => break None,
                },
                end = &mut working => break Some(end.unwrap_or(TaskWorkOutcome::Failed)),
                Some(text) = said.recv() => capture_text(&capture, text).await,
            }
        }
    };
    capture_rest(&capture, &mut said).await;
    let (cause, code) = match end {
        None => (EndCause::Stopped, None),
        Some(TaskWorkOutcome::Succeeded) => (EndCause::Itself, Some(0)),
        Some(TaskWorkOutcome::Failed) => (EndCause::Itself, Some(1)),
    };
    ended.send_replace(Some(CommandEnd::of_work(cause, code, started.elapsed())));
}

/// Captures the texts that were sent before the end.
async fn capture_rest(capture: &Arc<Capture>, said: &mut UnboundedReceiver<String>) {
    said.close();
    while let Some(text) = said.recv().await {
        capture_text(capture, text).await;
    }
}

async fn capture_text(capture: &Arc<Capture>, text: String) {
    if !capture.is_on_disk(text.len()) {
        return capture.append(OutputStream::Stdout, text.as_bytes());
    }
    let capture = capture.clone();
    // Fails only during shutdown of the runtime.
    let _ = tokio::task::spawn_blocking(move || capture.append(OutputStream::Stdout, text.as_bytes())).await;
}

struct TaskOutputSender(UnboundedSender<String>);

impl TaskOutputSink for TaskOutputSender {
    fn write(&self, text: &str) {
        // Fails once the task has ended.
        let _ = self.0.send(text.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::{super::TaskStatus, *};
    use crate::system_clock::SystemClock;
    use tokio::sync::oneshot;
    use toolstead_domain::{NoEvents, TaskStarter as _};

    /// Work that writes a text and ends like this; `None`: never.
    struct Says(Option<TaskWorkOutcome>, Option<oneshot::Sender<()>>);

    #[async_trait]
    impl TaskWork for Says {
        async fn run(self: Box<Self>, output: Arc<dyn TaskOutputSink>) -> TaskWorkOutcome {
            // Dropped with this future.
            let _gone = self.1;
            output.write("a word\n");
            match self.0 {
                Some(end) => end,
                None => std::future::pending().await,
            }
        }
    }

    fn as_tasks(tasks: &Arc<Tasks>) -> AgentTaskStarter {
        AgentTaskStarter {
            tasks: tasks.clone(),
            settings: CommandSettings::default(),
            clock: Arc::new(SystemClock),
            events: Arc::new(NoEvents),
        }
    }

    fn new_task() -> tasks::NewTask {
        tasks::NewTask::new(Principal::local(), "s", "general: look")
    }

    fn viewer(session: &str) -> SessionKey {
        SessionKey { principal: Principal::local(), session: session.into() }
    }

    #[tokio::test]
    async fn agent_work_is_a_task_of_its_session_with_its_output_and_outcome() {
        let tasks = Arc::new(Tasks::default());
        for (end, status, outcome) in [
            (TaskWorkOutcome::Succeeded, TaskStatus::Succeeded, "is done after"),
            (TaskWorkOutcome::Failed, TaskStatus::Failed, "failed after"),
        ] {
            let id = as_tasks(&tasks).begin(new_task(), Box::new(Says(Some(end), None))).await.unwrap();
            let task = tasks.find(&viewer("s"), &id).unwrap();
            task.command.ended().await;
            assert_eq!((task.status(), task.command.capture.read(0, 100).unwrap().1), (status, b"a word\n".to_vec()));
            assert!(task.describe().starts_with(&format!("`{id}` (general: look) {outcome}")), "{}", task.describe());
            let facts = serde_json::to_value(task.facts()).unwrap();
            assert_eq!((&facts["kind"], facts.get("pid"), facts.get("exit_code")), (&"agent".into(), None, None));
            assert!(tasks.find(&viewer("another"), &id).is_err());
            assert_eq!(tasks.take_notifications(&viewer("s")).len(), 1, "its session hears of its end");
        }
    }

    #[tokio::test]
    async fn work_is_dropped_once_it_is_stopped_or_its_session_ends() {
        for ends_session in [false, true] {
            let tasks = Arc::new(Tasks::default());
            let (gone, is_gone) = oneshot::channel();
            let id = as_tasks(&tasks).begin(new_task(), Box::new(Says(None, Some(gone)))).await.unwrap();
            let task = tasks.find(&viewer("s"), &id).unwrap();
            match ends_session {
                true => tasks.end_session(&viewer("s")),
                false => task.command.stop(),
            }
            assert!(is_gone.await.is_err(), "the future is dropped");
            task.command.ended().await;
            assert_eq!(task.status(), TaskStatus::Cancelled);
        }
    }
}
