//! Work of other kinds than commands as tasks: it is known, waited for and stopped as they are.

use super::{Kind, NewTask, Tasks};
use crate::builtin::{
    commands::{
        capture::{Capture, Stream},
        command::{Cause, Command, Elsewhere, End, Order},
        programs::CommandSettings,
    },
    files::seen_files::Viewer,
};
use async_trait::async_trait;
use futures::FutureExt;
use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Instant,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use toolstead_domain::{
    error_kind::ErrorKind,
    ports::{
        clock::Clock,
        event_sink::EventSink,
        tasks::{self, TaskEnd, TaskOutput, TaskWork},
    },
    principal::Principal,
    tool_failure::ToolFailure,
};

/// Takes on work as tasks, beside commands.
pub(crate) struct WorkAsTasks {
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) settings: CommandSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) events: Arc<dyn EventSink>,
}

impl fmt::Debug for WorkAsTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkAsTasks").field("tasks", &self.tasks).finish_non_exhaustive()
    }
}

#[async_trait]
impl tasks::Tasks for WorkAsTasks {
    fn check_room(&self, principal: &Principal, session: &str) -> Result<(), ToolFailure> {
        if self.tasks.kept.is_some() {
            let message = "a task ends with its session, and here it would end with this very call";
            return Err(ToolFailure::new(ErrorKind::InvalidInput, message).next("Leave `background` out."));
        }
        self.tasks.check_room(&Viewer { principal: principal.clone(), session: session.to_owned() })
    }

    async fn begin(&self, task: tasks::NewTask, work: Box<dyn TaskWork>) -> Result<String, ToolFailure> {
        self.check_room(&task.principal, &task.session)?;
        let capture = Arc::new(Capture::new(self.settings.spool_folder.clone(), self.settings.kept_bytes));
        let started = Instant::now();
        let (command, elsewhere) = Command::elsewhere(capture.clone(), 0, started, false);
        let owner = Viewer { principal: task.principal.clone(), session: task.session.to_string() };
        let new = NewTask {
            kind: Kind::Agent,
            owner,
            is_detached: false,
            text: task.title,
            description: task.description,
            started_at: self.clock.now(),
            command: Arc::new(command),
        };
        let known = self.tasks.add(new)?;
        self.tasks.tell_of(&known, task.call, self.events.clone());
        tokio::spawn(done(work, elsewhere, capture, started));
        Ok(known.id.to_string())
    }
}

/// Does the work until it ends or somebody stops it, and takes in what it says.
async fn done(work: Box<dyn TaskWork>, elsewhere: Elsewhere, capture: Arc<Capture>, started: Instant) {
    let Elsewhere { ended, mut orders, texts: _texts } = elsewhere;
    let (words, mut said) = unbounded_channel();
    let end = {
        let mut working = Box::pin(AssertUnwindSafe(work.run(Arc::new(Words(words)))).catch_unwind());
        loop {
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(Order::CloseInput) => {}
                    // Nobody knows the task any more, or somebody wants its end: it has nothing to tidy up.
                    None | Some(Order::Signal(_) | Order::Stop | Order::Kill) => break None,
                },
                end = &mut working => break Some(end.unwrap_or(TaskEnd::Failed)),
                Some(text) = said.recv() => keep(&capture, text).await,
            }
        }
    };
    rest(&capture, &mut said).await;
    let (cause, code) = match end {
        None => (Cause::Stopped, None),
        Some(TaskEnd::Succeeded) => (Cause::Itself, Some(0)),
        Some(TaskEnd::Failed) => (Cause::Itself, Some(1)),
    };
    ended.send_replace(Some(End::of_work(cause, code, started.elapsed())));
}

/// What was said before the end.
async fn rest(capture: &Arc<Capture>, said: &mut UnboundedReceiver<String>) {
    said.close();
    while let Some(text) = said.recv().await {
        keep(capture, text).await;
    }
}

async fn keep(capture: &Arc<Capture>, text: String) {
    if !capture.is_on_disk(text.len()) {
        return capture.append(Stream::Stdout, text.as_bytes());
    }
    let capture = capture.clone();
    // Fails only while the runtime goes down.
    let _ = tokio::task::spawn_blocking(move || capture.append(Stream::Stdout, text.as_bytes())).await;
}

struct Words(UnboundedSender<String>);

impl TaskOutput for Words {
    fn write(&self, text: &str) {
        // Fails once the task has ended.
        let _ = self.0.send(text.to_owned());
    }
}
