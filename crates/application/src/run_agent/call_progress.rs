//! The progress of calls, as events of their run.

use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc::UnboundedSender;
use toolstead_domain::{AgentEvent, Caller, InputRequest, InputResponse, LogMessage, NotAnswered, Progress};

/// The caller of one call of a run. Forwards everything to the caller of the run. If that wants progress, also reports
/// it as an event.
pub(super) struct ProgressReportingCaller {
    caller: Arc<dyn Caller>,
    id: String,
    events: UnboundedSender<AgentEvent>,
}

impl ProgressReportingCaller {
    /// Creates the caller of the call with this id of the model.
    pub(super) fn new(caller: Arc<dyn Caller>, id: String, events: UnboundedSender<AgentEvent>) -> Self {
        Self { caller, id, events }
    }
}

#[async_trait]
impl Caller for ProgressReportingCaller {
    fn wants_progress(&self) -> bool {
        self.caller.wants_progress()
    }

    async fn hurried(&self) {
        self.caller.hurried().await;
    }

    async fn disconnected(&self) {
        self.caller.disconnected().await;
    }

    fn answers_by_retry(&self) -> bool {
        self.caller.answers_by_retry()
    }

    fn waited(&self) -> Duration {
        self.caller.waited()
    }

    fn progress(&self, progress: Progress) {
        if self.caller.wants_progress() {
            let Progress { progress, total, message, .. } = progress.clone();
            // Fails if the events are not read any more; the run is being cancelled then.
            let _ = self.events.send(AgentEvent::CallProgress { id: self.id.clone(), progress, total, message });
        }
        self.caller.progress(progress);
    }

    fn log(&self, message: LogMessage) {
        self.caller.log(message);
    }

    fn elicitation_completed(&self, elicitation_id: &str) {
        self.caller.elicitation_completed(elicitation_id);
    }

    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.caller.ask(request).await
    }

    async fn ask_as(&self, key: &str, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.caller.ask_as(key, request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::unbounded_channel;
    use toolstead_domain::SilentCaller;

    struct Curious;

    #[async_trait]
    impl Caller for Curious {
        fn progress(&self, _: Progress) {}
        fn log(&self, _: LogMessage) {}
        async fn ask(&self, _: InputRequest) -> Result<InputResponse, NotAnswered> {
            Err(NotAnswered::Unsupported)
        }
    }

    #[test]
    fn progress_is_sent_as_an_event_only_if_the_caller_of_the_run_requests_it() {
        for (caller, expected) in [(Arc::new(Curious) as Arc<dyn Caller>, true), (Arc::new(SilentCaller), false)] {
            let (events, mut reported) = unbounded_channel();
            let reporter = ProgressReportingCaller::new(caller, "c1".into(), events);
            reporter.progress(Progress { message: Some("half".into()), ..Progress::at(1.0) });
            let event =
                AgentEvent::CallProgress { id: "c1".into(), progress: 1.0, total: None, message: Some("half".into()) };
            assert_eq!(reported.try_recv().ok(), expected.then_some(event));
        }
    }
}
