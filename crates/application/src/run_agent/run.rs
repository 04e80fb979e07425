//! One run, from its prompt to its end. This file contains the order of the steps; each step is in a file of its own.

use super::{
    DelegationContext, OfferedTools, RunAgentCommand, RunAgentHandler, RunAgentPorts,
    answer::{Answer, AnswerEnd, ask},
    calls::{AnswerCallBatch, FinishedCall, RunCallContext},
    history::ConversationHistory,
    hooks::{HookPoint, RunHooks},
    long_answer::fitted,
    loop_detector::{LoopDetector, LoopVerdict},
    offer::AvailableTools,
    request_builder::{NotShortened, RequestBuilder},
    result,
    run_registry::{RunInProgress, RunRegistration},
    size::{RequestSize, TokenRatio},
    spending::{BudgetLedger, Spending},
    surroundings::RunSurroundingsReader,
    todos::TodoReader,
    usage_events::UsageEvents,
};
use crate::{
    cancel_signal::CancelSignal,
    event_bus::{EventSubscription, ReceivedEvent},
    tool_deferral::SEARCH_TOOLS,
};
use futures::FutureExt;
use std::{panic::AssertUnwindSafe, path::PathBuf, pin::pin, sync::Arc};
use tokio::{
    sync::mpsc::UnboundedSender,
    time::{Instant, sleep_until},
};
use toolstead_domain::{
    AgentEvent, AgentHookResponse, AgentOutcome, AppendError, Block, BudgetKind, CancelReason, Conversation,
    ConversationEventKind, EventKind, ModelError, Role, StopReason, StoreError, ToolArguments, ToolUse,
    error_chain::with_causes, error_kind::ErrorKind, json_memory::hides_values, question,
};

/// Maximum number of continuations of a truncated answer.
const CONTINUATIONS: u32 = 3;
/// Maximum number of remaining calls in the budget at which the model is informed of their number.
const FEW_CALLS: u64 = 3;
/// Maximum number of calls of one answer.
const CALLS_OF_AN_ANSWER: usize = 128;
/// Maximum number of times that hooks make a finished run continue.
const MAX_HOOK_CONTINUATIONS: u32 = 3;
/// Maximum length of the title of a conversation, in characters.
const TITLE: usize = 80;

/// A run in progress.
pub(super) struct Run<'w> {
    ports: RunAgentPorts,
    command: RunAgentCommand,
    cancel: CancelSignal,
    events: UnboundedSender<AgentEvent>,
    call_context: RunCallContext<'w>,
    ledger: Arc<BudgetLedger>,
    /// Registration as a run in progress, until it is dropped.
    entry: Option<RunRegistration>,
    offer: AvailableTools,
    request_builder: RequestBuilder,
    spending: Spending,
    loop_detector: LoopDetector,
    surroundings: RunSurroundingsReader,
    hooks: RunHooks,
    /// Number of times that a hook made the run continue.
    hook_continuations: u32,
    /// The exhausted budget, if one more answer without tools ends the run.
    last_answer_for: Option<BudgetKind>,
    continuations: u32,
    /// The last text of the model, including the parts before each truncation.
    last_text: String,
    continues_text: bool,
}

/// The step after an answer.
enum NextStep {
    /// Query the model again.
    Ask,
    /// End the turn.
    Done,
}

impl<'w> Run<'w> {
    pub(super) fn new(
        agents: &RunAgentHandler,
        mut command: RunAgentCommand,
        cancel: CancelSignal,
        events: UnboundedSender<AgentEvent>,
        child: Option<DelegationContext<'w>>,
    ) -> Self {
        let ports = agents.ports.clone();
        let (within, handed_over, above) = match child {
            Some(DelegationContext { calls, handed_over, above }) => (Some(calls), Some(handed_over), above),
            None => (None, None, None),
        };
        // Undoing a conversation looks for its calls in this session.
        command.scope.session = command.conversation.session();
        let call_context = RunCallContext {
            handler: ports.execute_tool.clone(),
            list_tools: ports.list_tools.clone(),
            within,
            scope: command.scope.clone(),
            client: command.client.clone(),
            caller: command.caller.clone(),
            cancel: cancel.clone(),
            clock: ports.clock.clone(),
            events: events.clone(),
            collects_paths: false,
        };
        let principal = command.scope.principal.clone();
        let began_by = handed_over.as_ref().map(|by| by.call);
        let usage_events = UsageEvents::new(ports.events.clone(), command.conversation, principal.clone(), began_by);
        // A run that a client's call started is as deep as one that was delegated by a run.
        let depth = above.as_ref().map_or(u32::from(handed_over.is_some()), |above| above.depth + 1);
        let watchers = above.as_ref().map_or_else(|| events.clone(), |above| above.events.clone());
        let ledger = BudgetLedger::new(command.budgets.clone(), above.map(|above| above.ledger.clone()));
        let ongoing = RunInProgress {
            ledger: ledger.clone(),
            depth,
            model: command.model.clone(),
            summarizer: command.summarizer.clone(),
            compaction: command.compaction,
            events: watchers,
            caller: command.caller.clone(),
            cancel: cancel.clone(),
            over: CancelSignal::new(),
        };
        let entry = agents.ongoing.begin((principal.clone(), command.scope.session.clone()), ongoing);
        let todos = TodoReader::new(ports.todos.clone(), &principal, command.conversation);
        let hooks = RunHooks::new(ports.hooks.clone(), command.conversation, principal, handed_over);
        let request_builder = RequestBuilder {
            conversation: command.conversation,
            model: command.model.clone(),
            summarizer: command.summarizer.clone().unwrap_or_else(|| command.model.clone()),
            system: command.system.clone(),
            compaction: command.compaction,
            cancel: cancel.clone(),
            hooks: hooks.clone(),
            events: Some(events.clone()),
            usage_events,
            todos,
            scale: TokenRatio::default(),
            last_request_size: RequestSize::default(),
        };
        let offer = AvailableTools::new(&command.offered);
        let surroundings = RunSurroundingsReader::new(ports.surroundings.clone().filter(|_| command.has_surroundings));
        let spending = Spending::new(ledger.clone(), command.model.facts().prices);
        Self {
            ports,
            command,
            cancel,
            events,
            call_context,
            ledger,
            entry: Some(entry),
            offer,
            request_builder,
            spending,
            loop_detector: LoopDetector::default(),
            surroundings,
            hooks,
            hook_continuations: 0,
            last_answer_for: None,
            continuations: 0,
            last_text: String::new(),
            continues_text: false,
        }
    }

    pub(super) async fn run(mut self) {
        let model = self.command.model.name().to_owned();
        self.publish(AgentEvent::Started { conversation: self.command.conversation, model: model.clone() });
        if self.ledger.bounds_costs() && self.command.model.facts().prices.is_none() {
            self.publish(AgentEvent::Notice(format!(
                "The budget of {} has no effect: the prices of the model `{model}` are unknown.",
                BudgetKind::Cost
            )));
        }
        let deadline = self.ledger.deadline().map(Instant::from_std);
        let (cancel, mut history, mut is_late) = (self.cancel.clone(), None, false);
        let outcome = {
            let mut work = pin!(AssertUnwindSafe(self.work(&mut history)).catch_unwind());
            let over = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                outcome = &mut work => outcome,
                () = over => {
                    is_late = true;
                    cancel.cancel(CancelReason::Deadline);
                    work.await
                }
            }
        };
        let outcome = match outcome {
            Ok(Err(AgentOutcome::Cancelled)) if is_late => AgentOutcome::BudgetExhausted(BudgetKind::Time),
            Ok(Ok(())) => AgentOutcome::Finished,
            Ok(Err(outcome)) => outcome,
            Err(_) => failed(ErrorKind::Internal, "the run of the agent panicked: this is a bug in Toolstead"),
        };
        let outcome = match &mut history {
            Some(history) => match history.add([turn_ended(&outcome)]).await {
                Err(error) if !matches!(outcome, AgentOutcome::Failed { .. }) => store_failure(&error),
                _ => outcome,
            },
            None => outcome,
        };
        // The receiver of the last event may start the next run of the session at once.
        self.entry = None;
        let text = std::mem::take(&mut self.last_text);
        self.publish(AgentEvent::Ended {
            outcome,
            text,
            usage: self.spending.usage(),
            cost: self.spending.cost(),
            calls: self.spending.calls(),
            turns: self.spending.turns(),
        });
    }

    /// Runs the whole turn.
    ///
    /// # Errors
    /// The outcome, if the turn ended before the model was done.
    async fn work(&mut self, place: &mut Option<ConversationHistory>) -> Result<(), AgentOutcome> {
        let (store, clock) = (self.ports.conversations.clone(), self.ports.clock.clone());
        let (principal, id) = (self.command.scope.principal.clone(), self.command.conversation);
        let found = ConversationHistory::find(store.clone(), clock.clone(), &principal, id).await;
        let found = found.map_err(|error| not_read(&error))?;
        let prompt = self.prompt().await?;
        let history = match found {
            Some(history) => history,
            None => {
                let mut conversation = Conversation::new(id, principal, title(&prompt), clock.now());
                conversation.profile.clone_from(&self.command.profile);
                conversation.delegated_by = self.hooks.delegated_by().cloned();
                ConversationHistory::begin(store, clock, conversation).await.map_err(|error| not_read(&error))?
            }
        };
        let history = place.insert(history);
        if !prompt.is_empty() {
            add(history, ConversationEventKind::UserSaid { blocks: prompt }).await?;
        }
        // A prompt of white space does not count as a message either.
        if history.messages().last().is_none_or(|message| message.role == Role::Assistant) {
            let message = "There is nothing to answer: the conversation ends with the model's answer. Add a message.";
            return Err(failed(ErrorKind::InvalidInput, message));
        }
        self.describe_surroundings().await;
        let mut was_too_long = false;
        loop {
            // At shutdown every call is refused: without this check, the model would be queried about these refusals
            // again and again.
            if self.cancel.reason().is_some() || self.ports.execute_tool.is_closing() {
                return Err(AgentOutcome::Cancelled);
            }
            let offered = if self.last_answer_for.is_some() { &OfferedTools::Nothing } else { &self.command.offered };
            let context = &self.call_context;
            self.offer.update(offered, context.tools(), |all| context.list_tools.apply_deferral(&context.scope, all));
            let request = self.request_builder.request(history, self.offer.tools(), &self.spending).await;
            let request = request.map_err(not_shortened)?;
            if let Err(budget) = self.spending.asks(self.request_builder.tokens_asked()) {
                return Err(AgentOutcome::BudgetExhausted(self.last_answer_for.unwrap_or(budget)));
            }
            let answer = ask(self.command.model.as_ref(), request, &self.cancel, Some(&self.events)).await;
            let is_too_long = matches!(answer.end, AnswerEnd::Failed(ModelError::ContextTooLong(_)));
            if is_too_long && !was_too_long && self.request_builder.was_too_long() {
                was_too_long = true;
                continue;
            }
            was_too_long = false;
            match self.process_answer(history, answer).await? {
                NextStep::Ask => {}
                NextStep::Done => return Ok(()),
            }
        }
    }

    /// Completes the system prompt with the description of the surroundings.
    async fn describe_surroundings(&mut self) {
        let (system, notes) = self.surroundings.complete(&self.command.system, self.command.conversation).await;
        self.request_builder.system = system;
        self.call_context.collects_paths = self.surroundings.depend_on_paths();
        notes.into_iter().for_each(|note| self.publish(AgentEvent::Notice(note)));
    }

    /// Adds the instructions of the folders that contain these paths, unless the conversation already contains them.
    async fn add_instructions(&self, history: &mut ConversationHistory, paths: &[PathBuf]) -> Result<(), AgentOutcome> {
        let found = self.surroundings.instructions_for(paths, history).await;
        found.notes.into_iter().for_each(|note| self.publish(AgentEvent::Notice(note)));
        if found.sections.is_empty() {
            return Ok(());
        }
        let blocks = found.sections.iter().map(|section| Block::text(section.to_text())).collect();
        add(history, ConversationEventKind::UserSaid { blocks }).await
    }

    /// Returns the prompt of the user, followed by the context that hooks add. Fails if a hook blocks the prompt.
    async fn prompt(&mut self) -> Result<Vec<Block>, AgentOutcome> {
        let mut prompt = std::mem::take(&mut self.command.prompt);
        if prompt.is_empty() || self.hooks.are_none() {
            return Ok(prompt);
        }
        let texts = prompt.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        let word = match self.hooks.delegated_by().map(|by| by.agent.clone()) {
            // Hooks cannot block delegated work here: the delegation was decided with its call.
            Some(agent) => {
                AgentHookResponse { block: None, ..self.call_hooks(HookPoint::SubagentStarted, &agent).await? }
            }
            None => self.call_hooks(HookPoint::PromptSubmitted, &text).await?,
        };
        if let Some(reason) = word.block {
            return Err(AgentOutcome::Stopped(reason));
        }
        prompt.extend(word.context.into_iter().map(Block::text));
        Ok(prompt)
    }

    /// Returns the step after the model's last answer: the end of the turn, or another request if a hook makes the
    /// agent continue. In this case adds the hook's reason to the conversation as a prompt.
    async fn done(&mut self, history: &mut ConversationHistory) -> Result<NextStep, AgentOutcome> {
        if self.hooks.are_none() {
            return Ok(NextStep::Done);
        }
        let said = self.last_text.clone();
        let point = if self.hooks.delegated_by().is_some() { HookPoint::SubagentStopping } else { HookPoint::Stopping };
        let word = self.call_hooks(point, &said).await?;
        let Some(reason) = word.block else { return Ok(NextStep::Done) };
        if self.hook_continuations == MAX_HOOK_CONTINUATIONS {
            self.publish(AgentEvent::Notice(format!(
                "A hook requires the agent to continue, as it did {MAX_HOOK_CONTINUATIONS} times. The run \
                 ends anyway: {reason}"
            )));
            return Ok(NextStep::Done);
        }
        self.hook_continuations += 1;
        let blocks = std::iter::once(reason).chain(word.context).map(Block::text).collect();
        add(history, ConversationEventKind::UserSaid { blocks }).await?;
        Ok(NextStep::Ask)
    }

    /// Calls the hooks, and publishes their messages to the user.
    ///
    /// # Errors
    /// The outcome, if a hook ends the run, or if the run is cancelled.
    async fn call_hooks(&self, point: HookPoint, text: &str) -> Result<AgentHookResponse, AgentOutcome> {
        let mut word = tokio::select! {
            biased;
            _ = self.cancel.cancelled() => return Err(AgentOutcome::Cancelled),
            word = self.hooks.call(point, text, self.hook_continuations > 0) => word,
        };
        word.messages.drain(..).for_each(|message| self.publish(AgentEvent::Notice(message)));
        match word.stop.take() {
            Some(reason) => Err(AgentOutcome::Stopped(reason)),
            None => Ok(word),
        }
    }

    /// Stores an answer, makes its calls, and returns the next step. Fails with the outcome if the turn ends otherwise
    /// than by the model's decision.
    async fn process_answer(
        &mut self,
        history: &mut ConversationHistory,
        answer: Answer,
    ) -> Result<NextStep, AgentOutcome> {
        let (outputs, principal) = (self.ports.execute_tool.outputs(), &self.call_context.scope.principal);
        let answer = Answer { blocks: fitted(answer.blocks, outputs, principal).await, ..answer };
        let stop = match &answer.end {
            AnswerEnd::Stopped(stop) => Some(*stop),
            AnswerEnd::Failed(_) | AnswerEnd::Cancelled => None,
        };
        let text = answer.text();
        if std::mem::take(&mut self.continues_text) {
            self.last_text.push_str(&text);
        } else if !text.is_empty() {
            self.last_text = text;
        }
        let calls = answer.calls();
        if stop.is_some() || answer.says_something() {
            let model = self.command.model.facts().model.clone();
            let (blocks, usage) = (answer.blocks, answer.usage);
            let guess = self.request_builder.guess(&blocks);
            add(history, ConversationEventKind::ModelAnswered { blocks, model, stop, usage }).await?;
            self.spending.answered(usage, guess);
            self.request_builder.answered(usage);
            self.request_builder.usage_events.publish(self.command.model.as_ref(), usage);
            let (total, cost) = (self.spending.usage(), self.spending.cost());
            self.publish(AgentEvent::Answered { usage, total, cost });
        }
        self.spending.is_answered();
        let stop = match answer.end {
            AnswerEnd::Stopped(stop) => stop,
            AnswerEnd::Failed(error) => {
                self.never_made(history, &calls, "not made: the answer broke off").await?;
                return Err(failed(error.kind(), error.to_string()));
            }
            AnswerEnd::Cancelled => {
                self.never_made(history, &calls, "cancelled: the run was cancelled").await?;
                return Err(AgentOutcome::Cancelled);
            }
        };
        if let Some(budget) = self.last_answer_for {
            self.never_made(history, &calls, &format!("not made: the budget of {budget} is used up")).await?;
            return Err(AgentOutcome::BudgetExhausted(budget));
        }
        if !calls.is_empty() {
            self.make(history, &calls).await?;
        }
        if stop != StopReason::MaxTokens {
            self.continuations = 0;
        }
        match stop {
            StopReason::MaxTokens => self.cut_off(history, answer.lost_call, !calls.is_empty()).await,
            // Some providers give another stop reason with calls, and some of these reasons are unknown here.
            _ if !calls.is_empty() => Ok(NextStep::Ask),
            StopReason::Refused => {
                let message = "the model, or a filter of its provider, refused to answer";
                Err(failed(ErrorKind::PermissionDenied, message))
            }
            _ => self.done(history).await,
        }
    }

    /// Continues an answer that was truncated at the maximum length, by a prompt in the conversation. Fails after
    /// [`CONTINUATIONS`] in a row.
    async fn cut_off(
        &mut self,
        history: &mut ConversationHistory,
        lost_call: Option<String>,
        has_calls: bool,
    ) -> Result<NextStep, AgentOutcome> {
        let said = match lost_call {
            Some(tool) => format!(
                "Your answer was cut off at the maximum length while you wrote a call of `{tool}`. That call was \
                 dropped and not made. Make it again with shorter arguments, or in several calls."
            ),
            None if has_calls => return Ok(NextStep::Ask),
            None => "Your answer was cut off at the maximum length. Continue where it ended, and be brief.".into(),
        };
        self.continuations += 1;
        if self.continuations > CONTINUATIONS {
            let message = format!(
                "the answer was cut off {} times in a row at the maximum length of the model: raise its \
                 `max_output_tokens`",
                self.continuations
            );
            return Err(failed(ErrorKind::TooLarge, message));
        }
        self.continues_text = !has_calls;
        add(history, ConversationEventKind::UserSaid { blocks: vec![Block::text(said)] }).await?;
        Ok(NextStep::Ask)
    }

    /// Makes the calls of an answer, except refused ones, and stores their results in the order of the calls. Fails
    /// with the outcome if the run ends after them.
    async fn make(&mut self, history: &mut ConversationHistory, calls: &[ToolUse]) -> Result<(), AgentOutcome> {
        // If the budget does not allow another request, no model would read the results.
        let no_more = self.spending.refuses_request(self.request_builder.tokens_asked());
        let (mut answered, mut is_over) = (Vec::with_capacity(calls.len()), false);
        for (index, call) in calls.iter().enumerate() {
            let refusal = match no_more {
                Some(budget) => Some(refused_by(budget)),
                // A call that is refused for another reason takes nothing from the budget.
                None if is_over => Some(refused_by(BudgetKind::Calls)),
                None => self.refusal(index, call).or_else(|| {
                    is_over = !self.spending.try_reserve_call();
                    is_over.then(|| refused_by(BudgetKind::Calls))
                }),
            };
            answered.push(refusal);
        }
        let mut asked =
            (!self.hooks.are_none()).then(|| self.ports.events.subscribe_as(self.call_context.scope.principal.clone()));
        let let_in: Vec<bool> = answered.iter().map(Option::is_none).collect();
        let mut making = AnswerCallBatch::new(&self.call_context, calls, answered).await;
        let (mut course, mut waits_for, mut paths) = (LoopVerdict::NoLoop, None, Vec::new());
        for (index, call) in calls.iter().enumerate() {
            let made = loop {
                tokio::select! {
                    biased;
                    made = making.next() => break made,
                    heard = next_event(&mut asked) => self.notify(heard),
                }
            };
            let Some(made) = made else { break };
            if let_in[index] {
                self.spending.call_is_over(made.call.is_some());
            }
            if made.call.is_some() {
                paths.append(&mut making.take_paths(index));
            }
            self.loop_detector.call(call, &made.result);
            waits_for = waits_for.or_else(|| question::waited_for(&made.result));
            let mut notes = Vec::new();
            if let (Some(left), true) = (self.spending.calls_left(), made.call.is_some())
                && left <= FEW_CALLS
            {
                notes.push(format!("[Calls that may still be made: {left}]"));
            }
            if index + 1 == calls.len() {
                course = self.loop_detector.answer_is_over();
            }
            if let LoopVerdict::Warned(times) = course {
                notes.push(format!(
                    "[The same calls have had the same results {times} times in a row. Repeating them will \
                     change nothing: do something else, or report what blocks you.]"
                ));
            }
            ended(history, self, call, made, notes).await?;
        }
        drop(making);
        if self.cancel.reason().is_some() {
            return Err(AgentOutcome::Cancelled);
        }
        if let Some(question) = waits_for {
            return Err(AgentOutcome::Waiting(question));
        }
        if let Some(budget) = no_more {
            return Err(AgentOutcome::BudgetExhausted(budget));
        }
        if let LoopVerdict::Looping(times) = course {
            let tools: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
            return Err(AgentOutcome::Looping(format!(
                "the same calls ({}) had the same results {times} times in a row",
                tools.join(", ")
            )));
        }
        if is_over {
            self.last_answer_for = Some(BudgetKind::Calls);
        }
        self.add_instructions(history, &paths).await
    }
}

impl Run<'_> {
    /// Returns the refusal of a call, for reasons other than the budget.
    fn refusal(&self, index: usize, call: &ToolUse) -> Option<FinishedCall> {
        if index >= CALLS_OF_AN_ANSWER {
            let message =
                format!("Not made: at most {CALLS_OF_AN_ANSWER} calls of one answer are made. Make it again.");
            return Some(FinishedCall::never(ErrorKind::TooLarge, message));
        }
        if let ToolArguments::Malformed(text) = &call.arguments {
            return Some(FinishedCall::never(ErrorKind::InvalidInput, malformed(text)));
        }
        let refusal = self.offer.refusal_of(&call.name);
        let refusal = refusal.or_else(|| self.offer.refusal_of(called_tool(call)?));
        refusal.map(|message| FinishedCall::never(ErrorKind::NotFound, message))
    }

    /// Stores a result for every call of an answer, none of which is made.
    async fn never_made(
        &self,
        history: &mut ConversationHistory,
        calls: &[ToolUse],
        why: &str,
    ) -> Result<(), AgentOutcome> {
        for call in calls {
            let made = FinishedCall::never(ErrorKind::Cancelled, why);
            ended(history, self, call, made, Vec::new()).await?;
        }
        Ok(())
    }

    /// Notifies the hooks if the event is an approval request of this conversation. Does not wait for them.
    fn notify(&self, heard: ReceivedEvent) {
        let ReceivedEvent::Event(event) = heard else { return };
        let EventKind::PermissionRequested { tool, reason, .. } = &event.kind else { return };
        if event.origin.session.as_deref() != Some(&*self.call_context.scope.session) {
            return;
        }
        let text = format!("`{tool}` waits for your approval: {reason}");
        let (hooks, telling) = (self.hooks.clone(), self.events.clone());
        tokio::spawn(async move {
            let word = hooks.call(HookPoint::Notified, &text, false).await;
            for message in word.messages {
                // Fails if the events are no longer read.
                let _ = telling.send(AgentEvent::Notice(message));
            }
        });
    }

    fn publish(&self, event: AgentEvent) {
        // Fails if the events are no longer read; the run is being cancelled then.
        let _ = self.events.send(event);
    }
}

/// Stores the result of a call, and publishes it.
async fn ended(
    history: &mut ConversationHistory,
    run: &Run<'_>,
    call: &ToolUse,
    made: FinishedCall,
    notes: Vec<String>,
) -> Result<(), AgentOutcome> {
    let mut block = result::for_model(call, made.shown.as_ref().unwrap_or(&made.result));
    block.content.extend(notes.into_iter().map(Block::text));
    let record = result::for_programs(run.offer.name_of(&call.name), &made.result, run.ports.clock.now());
    let (text, is_error) = (result::text_of(&block), block.is_error);
    add(history, ConversationEventKind::CallEnded { result: block, call: made.call, record }).await?;
    run.publish(AgentEvent::CallEnded {
        id: call.id.clone(),
        tool: call.name.clone(),
        call: made.call,
        is_error,
        text,
        suggestion: result::suggestion_in(&made.result),
        structured: made.result.structured_content().cloned(),
        duration: made.duration,
    });
    Ok(())
}

/// Returns the next event of the subscription. Never returns if there is no subscription, or once it is closed.
async fn next_event(watch: &mut Option<EventSubscription>) -> ReceivedEvent {
    if let Some(events) = watch {
        match events.next().await {
            Some(heard) => return heard,
            None => *watch = None,
        }
    }
    std::future::pending().await
}

async fn add(history: &mut ConversationHistory, kind: ConversationEventKind) -> Result<(), AgentOutcome> {
    history.add([kind]).await.map_err(|error| store_failure(&error))
}

/// Returns the name of the tool that a call of `call_tool` would call. The selection of tools must contain it, too.
fn called_tool(call: &ToolUse) -> Option<&str> {
    let ToolArguments::Object(arguments) = &call.arguments else { return None };
    let is_indirect = call.name == SEARCH_TOOLS[1];
    arguments.get("name").and_then(|name| name.as_str()).filter(|_| is_indirect)
}

fn refused_by(budget: BudgetKind) -> FinishedCall {
    let message = format!(
        "Not made: the budget of {budget} of this run is used up, and no further call is made. Report now what you \
         found and what is left to do."
    );
    FinishedCall::never(ErrorKind::BudgetExhausted, message)
}

/// Returns the message to a model whose arguments are malformed.
fn malformed(text: &str) -> String {
    const SHOWN: usize = 200;
    let problem = if hides_values(text.as_bytes()) {
        "they have a member whose name is reserved".to_owned()
    } else {
        match serde_json::from_str::<serde_json::Value>(text.trim()) {
            Ok(serde_json::Value::Object(_)) => "they are nested too deeply".to_owned(),
            Ok(_) => "they are not a JSON object".to_owned(),
            Err(error) => format!("they are not JSON ({error})"),
        }
    };
    let shown: String = text.chars().take(SHOWN).collect();
    let rest = if shown.len() < text.len() { " ..." } else { "" };
    format!(
        "Not made: the arguments cannot be read: {problem}. Call again with one JSON object. You wrote: {shown}{rest}"
    )
}

fn failed(kind: ErrorKind, message: impl Into<String>) -> AgentOutcome {
    AgentOutcome::Failed { kind, message: message.into() }
}

fn not_shortened(why: NotShortened) -> AgentOutcome {
    match why {
        NotShortened::Stopped(reason) => AgentOutcome::Stopped(reason),
        NotShortened::Cancelled => AgentOutcome::Cancelled,
        NotShortened::NotKept(error) => store_failure(&error),
        NotShortened::Blocked(_) | NotShortened::NoSummary(_) => failed(ErrorKind::TooLarge, why.to_string()),
    }
}

fn not_read(error: &StoreError) -> AgentOutcome {
    failed(ErrorKind::Io, format!("the conversation cannot be read: {}", with_causes(error)))
}

fn store_failure(error: &AppendError) -> AgentOutcome {
    let kind = match error {
        AppendError::NotFound(_) => ErrorKind::NotFound,
        AppendError::GoesOnElsewhere { .. } => ErrorKind::Unavailable,
        _ => ErrorKind::Io,
    };
    failed(kind, format!("the conversation cannot be stored: {}", with_causes(error)))
}

fn turn_ended(outcome: &AgentOutcome) -> ConversationEventKind {
    let (word, message) = match outcome {
        AgentOutcome::BudgetExhausted(budget) => (budget.as_str(), None),
        AgentOutcome::Stopped(why) | AgentOutcome::Looping(why) | AgentOutcome::Waiting(why) => {
            (outcome.as_str(), Some(why.clone()))
        }
        AgentOutcome::Failed { message, .. } => (outcome.as_str(), Some(message.clone())),
        _ => (outcome.as_str(), None),
    };
    ConversationEventKind::TurnEnded { outcome: word.to_owned(), message }
}

/// Returns the beginning of the first line of the prompt.
fn title(prompt: &[Block]) -> String {
    let text = prompt.iter().find_map(|block| match block {
        Block::Text { text } => text.lines().map(str::trim).find(|line| !line.is_empty()),
        _ => None,
    });
    let text = text.unwrap_or("");
    let title: String = text.chars().take(TITLE).collect();
    if title.len() < text.len() { format!("{title} ...") } else { title }
}
