//! What becomes of a task, told to those who watch.

use super::{Task, Tasks};
use std::{
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use toolstead_domain::{
    event::{EventKind, EventOrigin},
    ports::event_sink::EventSink,
    tool_call::CallId,
};

/// Whatever a task prints, it is told at most so often.
const BETWEEN_OUTPUTS: Duration = Duration::from_secs(1);
/// At shutdown the ends of tasks are told within this time; they need none, save on a machine that is overloaded.
const LAST_WORDS: Duration = Duration::from_millis(250);

impl Tasks {
    /// Tells of a task that the call began: that it runs, what it prints meanwhile, and its end.
    pub(in crate::builtin) fn tell_of(&self, task: &Arc<Task>, call: Option<CallId>, events: Arc<dyn EventSink>) {
        let story = Story {
            events,
            origin: EventOrigin {
                principal: Some(task.owner.principal.clone()),
                session: Some(task.owner.session.as_str().into()),
                call,
            },
            name: task.id.to_string(),
            task: task.clone(),
        };
        let title = task.description.clone().unwrap_or_else(|| task.shown());
        story.send(EventKind::TaskStarted { task: story.name.clone(), title });
        let mut stories = self.stories();
        while stories.try_join_next().is_some() {}
        stories.spawn(story.told());
    }

    /// Returns when the ends of all tasks are told. They have ended before.
    pub(super) async fn all_told(&self) {
        let mut stories = std::mem::take(&mut *self.stories());
        if timeout(LAST_WORDS, async { while stories.join_next().await.is_some() {} }).await.is_err() {
            tracing::warn!("the ends of some tasks could not be told in time");
        }
    }

    fn stories(&self) -> MutexGuard<'_, JoinSet<()>> {
        // Nothing panics while it is held.
        self.stories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One task, from its start to its end.
struct Story {
    events: Arc<dyn EventSink>,
    origin: EventOrigin,
    name: String,
    task: Arc<Task>,
}

impl Story {
    fn send(&self, kind: EventKind) {
        if self.events.is_watched() {
            self.events.send(self.origin.clone(), kind);
        }
    }

    async fn told(self) {
        let mut grows = self.task.command.capture.grows();
        let ended = self.task.command.ended();
        tokio::pin!(ended);
        let mut told = 0;
        let end = loop {
            tokio::select! {
                end = &mut ended => break end,
                Ok(()) = grows.changed() => {
                    told = self.tell_output(told);
                    // What comes now waits for the next time.
                    tokio::select! {
                        end = &mut ended => break end,
                        () = sleep(BETWEEN_OUTPUTS) => {}
                    }
                }
            }
        };
        self.tell_output(told);
        self.send(EventKind::TaskFinished { task: self.name.clone(), outcome: self.task.told_end(&end) });
    }

    /// Tells what was printed beyond what was told, where anybody watches, and returns all that is told now.
    fn tell_output(&self, told: u64) -> u64 {
        let total = self.task.command.capture.total();
        if total == told || !self.events.is_watched() {
            return told;
        }
        self.send(EventKind::TaskOutput { task: self.name.clone(), bytes: total - told });
        total
    }
}
