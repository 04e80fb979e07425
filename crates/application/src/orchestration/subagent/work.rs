//! Delegated work: its run, its events and its report.

use super::{MAX_TEXT, SubagentPorts};
use crate::{
    cancel_signal::CancelSignal,
    run_agent::{DelegationContext, RunAgentCommand, run_registry::RunInProgress},
};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{runtime::Handle, time::sleep_until};
use toolstead_domain::{
    AgentEvent, AgentOutcome, CallContext, Caller, Calls, CancelReason, ConversationId, Delegation, Principal,
    TaskOutputSink, TaskWork, TaskWorkOutcome, TokenUsage, ToolFailure, ToolResult, ToolSelection,
    error_kind::ErrorKind,
};

/// Delegated work before it starts.
pub(super) struct DelegatedWork {
    pub(super) agents: SubagentPorts,
    pub(super) command: RunAgentCommand,
    pub(super) delegation: Delegation,
    pub(super) above: Option<Arc<RunInProgress>>,
}

/// Work that outlives the delegating call.
pub(super) struct DetachedWork {
    pub(super) work: DelegatedWork,
    pub(super) calls: Box<dyn Calls>,
}

/// The end of a run.
struct RunEnd {
    outcome: AgentOutcome,
    text: String,
    usage: TokenUsage,
    cost: Option<f64>,
    calls: u64,
    turns: u64,
    duration: Duration,
}

impl DelegatedWork {
    /// Runs the work while the call waits, at most until the deadline of the call, and returns the report. Never
    /// returns if the delegating run is cancelled, because its call is then cancelled as well.
    pub(super) async fn done_for(
        mut self,
        tools: ToolSelection,
        context: &CallContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let cancel = self.above.as_ref().map_or_else(CancelSignal::new, |above| above.cancel.child());
        self.command.cancel = cancel.clone();
        let session = self.command.conversation.session();
        let (agent, conversation) = (self.delegation.agent.clone(), self.command.conversation);
        let own = context.calls.for_agent(agent.clone(), session, tools);
        let mut done = pin!(self.done(own.as_ref(), |_| {}));
        let ended = tokio::select! {
            biased;
            ended = &mut done => ended,
            () = over(context.deadline, context.caller) => {
                cancel.cancel(CancelReason::Deadline);
                done.await
            }
        };
        let reason = cancel.reason();
        if reason.is_some_and(|reason| reason != CancelReason::Deadline) {
            // The run of this call is cancelled, and this call with it.
            return std::future::pending().await;
        }
        ended.report(conversation, &agent, reason.is_some())
    }

    /// Runs the work with these calls, publishes its events, and ends its session. Passes the text of the agent to
    /// `says` as it arrives.
    async fn done(self, calls: &dyn Calls, mut says: impl FnMut(&str) + Send) -> RunEnd {
        let Self { agents, command, delegation: handed_over, above } = self;
        let (principal, conversation, begun) = (command.scope.principal.clone(), command.conversation, Instant::now());
        let mut watched =
            SubagentPublisher { above, delegation: handed_over.clone(), conversation, end_published: false };
        let session = SubagentSessionGuard {
            agents: &agents,
            principal: &principal,
            session: conversation.session(),
            is_over: false,
        };
        let child = DelegationContext { calls, handed_over, above: watched.above.clone() };
        let (run, mut events) = agents.run_agent.child(command, child);
        let mut run = pin!(run);
        let (mut is_done, mut is_within_line) = (false, false);
        let ended = loop {
            let event = tokio::select! {
                biased;
                event = events.recv() => event,
                () = &mut run, if !is_done => {
                    is_done = true;
                    continue;
                }
            };
            match &event {
                Some(AgentEvent::Text(text)) => {
                    is_within_line = !text.ends_with('\n');
                    says(text);
                }
                Some(AgentEvent::Answered { .. }) if std::mem::take(&mut is_within_line) => says("\n"),
                _ => {}
            }
            match event {
                Some(AgentEvent::Ended { outcome, text, usage, cost, calls, turns }) => {
                    let ended = RunEnd { outcome, text, usage, cost, calls, turns, duration: begun.elapsed() };
                    watched.publish(ended.event());
                    break ended;
                }
                Some(event) => watched.publish(event),
                // A run always sends its end first.
                None => break RunEnd::without_end_event(begun.elapsed()),
            }
        };
        if !is_done {
            run.await;
        }
        session.end().await;
        ended
    }
}

#[async_trait]
impl TaskWork for DetachedWork {
    async fn run(self: Box<Self>, output: Arc<dyn TaskOutputSink>) -> TaskWorkOutcome {
        let Self { work, calls } = *self;
        let (agent, conversation) = (work.delegation.agent.clone(), work.command.conversation);
        let ended = work.done(calls.as_ref(), |text| output.write(text)).await;
        output.write(&format!("{}\n", ended.summary_line(conversation)));
        match ended.report(conversation, &agent, false) {
            Ok(_) => TaskWorkOutcome::Succeeded,
            Err(_) => TaskWorkOutcome::Failed,
        }
    }
}

impl RunEnd {
    fn without_end_event(duration: Duration) -> Self {
        let message = "the run of the agent reported no end: this is a bug in Toolstead".to_owned();
        let outcome = AgentOutcome::Failed { kind: ErrorKind::Internal, message };
        Self { outcome, text: String::new(), usage: TokenUsage::default(), cost: None, calls: 0, turns: 0, duration }
    }

    fn event(&self) -> AgentEvent {
        AgentEvent::Ended {
            outcome: self.outcome.clone(),
            text: self.text.clone(),
            usage: self.usage,
            cost: self.cost,
            calls: self.calls,
            turns: self.turns,
        }
    }

    /// Returns one line about the end.
    fn summary_line(&self, conversation: ConversationId) -> String {
        let how = match &self.outcome {
            AgentOutcome::Finished => String::new(),
            AgentOutcome::Cancelled => "cancelled; ".into(),
            AgentOutcome::BudgetExhausted(budget) => format!("stopped, since its budget of {budget} is used up; "),
            AgentOutcome::Stopped(why) | AgentOutcome::Looping(why) => format!("stopped: {why}; "),
            AgentOutcome::Waiting(question) => format!("waits for the answer to the question {question}; "),
            AgentOutcome::Failed { message, .. } => format!("failed: {message}; "),
            _ => format!("{}; ", self.outcome.as_str()),
        };
        let (calls, tokens) = (self.calls, self.usage.total());
        format!(
            "[{how}agent_id: {conversation}; tool calls: {calls}, tokens: {tokens}, {:.1} s]",
            self.duration.as_secs_f64()
        )
    }

    fn structured(&self, conversation: ConversationId, agent: &str, text: &str) -> Value {
        let TokenUsage { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens } = self.usage;
        let mut usage = json!({
            "input_tokens": input_tokens, "cache_read_tokens": cache_read_tokens,
            "cache_write_tokens": cache_write_tokens, "output_tokens": output_tokens,
            "total_tokens": self.usage.total(),
        });
        if let Some(cost) = self.cost {
            usage["cost"] = cost.into();
        }
        json!({
            "agent_id": conversation.to_string(), "agent": agent, "outcome": self.outcome.as_str(), "text": text,
            "tool_uses": self.calls, "turns": self.turns, "usage": usage,
            "duration_ms": u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
            "transcript": conversation.to_string(),
        })
    }

    /// Returns the result for the delegating call: a failure with the text so far if the run failed, stopped or was
    /// cancelled. `is_late` is `true` if the deadline of the call cancelled it.
    fn report(&self, conversation: ConversationId, agent: &str, is_late: bool) -> Result<ToolResult, ToolFailure> {
        let text = shortened(&self.text);
        let structured = self.structured(conversation, agent, &text);
        let between = if text.is_empty() { "" } else { "\n\n" };
        let whole = ToolResult::text(format!("{text}{between}{}", self.summary_line(conversation)));
        let resumed = format!("`resume: {conversation}` continues it.");
        let failure = match &self.outcome {
            // The findings so far may be all that is needed.
            AgentOutcome::Finished | AgentOutcome::BudgetExhausted(_) | AgentOutcome::Waiting(_) => {
                return Ok(whole.with_structured_content(structured));
            }
            AgentOutcome::Cancelled if is_late => {
                ToolFailure::new(ErrorKind::Timeout, format!("The call timed out before the agent `{agent}` finished."))
            }
            AgentOutcome::Failed { kind, message } => {
                ToolFailure::new(*kind, format!("The agent `{agent}` failed: {message}."))
            }
            AgentOutcome::Stopped(why) | AgentOutcome::Looping(why) => {
                ToolFailure::new(ErrorKind::ExecutionFailed, format!("The agent `{agent}` stopped: {why}."))
            }
            _ => ToolFailure::new(ErrorKind::Cancelled, format!("The agent `{agent}` was cancelled.")),
        };
        Err(failure.next(resumed).with_data(structured).with_partial(whole))
    }
}

/// Truncates a report to its last [`MAX_TEXT`] characters: models state their findings at the end.
fn shortened(text: &str) -> String {
    let surplus = text.chars().count().saturating_sub(MAX_TEXT);
    match text.char_indices().nth(surplus).filter(|_| surplus > 0) {
        Some((at, _)) => {
            format!("[The first {surplus} characters are left out; they are in its conversation.]\n{}", &text[at..])
        }
        None => text.to_owned(),
    }
}

/// Waits until the deadline of the call, which is extended by the time that it waits for answers.
async fn over(deadline: Instant, caller: &dyn Caller) {
    loop {
        let end = deadline + caller.waited();
        if end <= Instant::now() {
            return;
        }
        sleep_until(end.into()).await;
    }
}

/// Publishes the events of the work, except parts of answers, to the delegating run, if there is one. Publishes its end
/// even if the work is dropped.
struct SubagentPublisher {
    above: Option<Arc<RunInProgress>>,
    delegation: Delegation,
    conversation: ConversationId,
    end_published: bool,
}

impl SubagentPublisher {
    fn publish(&mut self, event: AgentEvent) {
        let Some(above) = &self.above else { return };
        let event = match event {
            AgentEvent::Text(_) | AgentEvent::Thinking(_) | AgentEvent::CallWritten { .. } => return,
            event => {
                self.end_published |= matches!(event, AgentEvent::Ended { .. });
                let (handed_over, conversation) = (self.delegation.clone(), self.conversation);
                AgentEvent::OfSubagent { delegation: handed_over, conversation, event: Box::new(event) }
            }
        };
        above.publish(event);
    }
}

impl Drop for SubagentPublisher {
    fn drop(&mut self) {
        if !self.end_published {
            let ended = RunEnd { outcome: AgentOutcome::Cancelled, ..RunEnd::without_end_event(Duration::ZERO) };
            self.publish(ended.event());
        }
    }
}

/// The session of the work. It ends with the work, together with the processes that it left running and the approvals
/// that it received.
struct SubagentSessionGuard<'a> {
    agents: &'a SubagentPorts,
    principal: &'a Principal,
    session: Arc<str>,
    is_over: bool,
}

impl SubagentSessionGuard<'_> {
    async fn end(mut self) {
        self.is_over = true;
        self.agents.run_agent.session_ended(self.principal, &self.session).await;
    }
}

impl Drop for SubagentSessionGuard<'_> {
    fn drop(&mut self) {
        if let (false, Ok(runtime)) = (self.is_over, Handle::try_current()) {
            let (handler, principal, session) =
                (self.agents.run_agent.clone(), self.principal.clone(), self.session.clone());
            runtime.spawn(async move { handler.session_ended(&principal, &session).await });
        }
    }
}
