//! Publishes the events of tasks: their start, output and end.

use super::{BackgroundTask, Tasks};
use std::{
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use toolstead_domain::{CallId, EventKind, EventOrigin, EventSink};

/// Minimum interval between two output events of a task.
const BETWEEN_OUTPUTS: Duration = Duration::from_secs(1);
/// Time at shutdown to publish the ends of tasks. Only an overloaded machine needs any of it.
const LAST_WORDS: Duration = Duration::from_millis(250);

impl Tasks {
    /// Publishes the start of a task, its output and its end. `call` is the call that started it.
    pub(in crate::builtin) fn publish_events(
        &self,
        task: &Arc<BackgroundTask>,
        call: Option<CallId>,
        events: Arc<dyn EventSink>,
    ) {
        let story = TaskEventPublisher {
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
        let mut stories = self.publishers();
        while stories.try_join_next().is_some() {}
        stories.spawn(story.publish_until_end());
    }

    /// Waits until the ends of all tasks are published, at most [`LAST_WORDS`]. The tasks must have ended before.
    pub(super) async fn wait_for_events(&self) {
        let mut stories = std::mem::take(&mut *self.publishers());
        if timeout(LAST_WORDS, async { while stories.join_next().await.is_some() {} }).await.is_err() {
            tracing::warn!("the ends of some tasks were not published in time");
        }
    }

    fn publishers(&self) -> MutexGuard<'_, JoinSet<()>> {
        // No code panics while it holds this lock.
        self.publishers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Publishes the events of one task, from its start to its end.
struct TaskEventPublisher {
    events: Arc<dyn EventSink>,
    origin: EventOrigin,
    name: String,
    task: Arc<BackgroundTask>,
}

impl TaskEventPublisher {
    fn send(&self, kind: EventKind) {
        if self.events.is_watched() {
            self.events.send(self.origin.clone(), kind);
        }
    }

    async fn publish_until_end(self) {
        let mut grows = self.task.command.capture.subscribe_total();
        let ended = self.task.command.ended();
        tokio::pin!(ended);
        let mut published = 0;
        let end = loop {
            tokio::select! {
                end = &mut ended => break end,
                Ok(()) = grows.changed() => {
                    published = self.publish_output(published);
                    // Output during this pause is part of the next event.
                    tokio::select! {
                        end = &mut ended => break end,
                        () = sleep(BETWEEN_OUTPUTS) => {}
                    }
                }
            }
        };
        self.publish_output(published);
        self.send(EventKind::TaskFinished { task: self.name.clone(), outcome: self.task.describe_end(&end) });
    }

    /// Publishes the number of bytes printed since `published` was the total, if there are watchers. Returns the number
    /// published so far.
    fn publish_output(&self, published: u64) -> u64 {
        let total = self.task.command.capture.total();
        if total == published || !self.events.is_watched() {
            return published;
        }
        self.send(EventKind::TaskOutput { task: self.name.clone(), bytes: total - published });
        total
    }
}
