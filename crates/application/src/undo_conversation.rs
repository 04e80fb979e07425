//! Undoing of a conversation back to an event, including the file changes of its calls since then.
//!
//! Each change is undone by a call of its own, so that rules, the audit log and the journal apply as to all calls. If a
//! change cannot be undone, the changes undone so far are redone, and the conversation stays unchanged.

mod plan;

use crate::{
    cancel_signal::CancelSignal,
    execute_tool::{
        ExecuteToolCommand, ExecuteToolError, ExecuteToolHandler,
        explain::{ExplainCallQuery, ExplainedCall},
    },
};
use plan::UndoPlan;
use serde_json::json;
use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    fmt,
    path::PathBuf,
    sync::Arc,
};
use toolstead_domain::{
    AppendError, CallId, CallOutcome, Caller, ChangeJournal, ClientProfile, Clock, ConversationEvent,
    ConversationEventKind, ConversationId, ConversationStore, ExecutionLog, JournalEntry, Principal, RequestScope,
    StoreError, Verdict,
};

/// Maximum number of changes that are examined of each conversation: the one to undo, and those of its subagents.
const MAX_EXAMINED_CHANGES: usize = 10_000;
/// Maximum number of conversations that are examined: the one to undo, and those of its subagents.
const AGENTS: usize = 1_000;
/// Upper bound of the nesting depth of calls.
const MAX_DEPTH: usize = 64;

/// Undoes a conversation back to an event.
pub struct UndoConversationCommand {
    /// Id of the conversation.
    pub conversation: ConversationId,
    /// Number of the last event to retain.
    pub to: u64,
    /// Owner of the conversation, and the dialect of the calls. The session is always that of the conversation.
    pub scope: RequestScope,
    /// Name of the tool that undoes the file changes of a call, whose id is its parameter `call`.
    pub undo: String,
    /// Name of the tool that redoes the undone file changes of a call, with the same parameter.
    pub redo: String,
    /// `true` to undo the conversation even if some file changes cannot be undone.
    pub leaving_what_cannot_be: bool,
    /// Capabilities of the client.
    pub client: Arc<ClientProfile>,
    /// Channel to the client.
    pub caller: Arc<dyn Caller>,
    /// Cancels the command. Changes undone so far are redone.
    pub cancel: CancelSignal,
}

impl fmt::Debug for UndoConversationCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("UndoConversationCommand");
        shown.field("conversation", &self.conversation).field("to", &self.to).finish_non_exhaustive()
    }
}

/// The result of undoing a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationUndoReport {
    /// Number of stored events of the conversation now, including those that are undone.
    pub events: u64,
    /// The calls whose changes were undone, in the order of undoing.
    pub undone: Vec<ChangingCall>,
    /// The calls whose changes were not undone, with the reasons.
    pub left: Vec<SkippedCall>,
}

/// A call that changed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangingCall {
    /// Id of the call.
    pub call: CallId,
    /// Name of its tool.
    pub tool: String,
    /// Paths of the files.
    pub files: Vec<PathBuf>,
}

/// A call whose changes are not undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedCall {
    /// The call.
    pub call: ChangingCall,
    /// The reason, as a text for people.
    pub why: String,
}

/// The reason why a conversation was not undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoConversationError {
    /// The principal has no conversation with this id.
    #[error("there is no conversation {0}")]
    NotFound(ConversationId),
    /// The conversation has no event with the requested number.
    #[error("the conversation has {events} events, so it cannot be undone to event {to}")]
    NoSuchEvent {
        /// Number of the requested event.
        to: u64,
        /// Number of events of the conversation.
        events: u64,
    },
    /// Some file changes cannot be undone, or the command was cancelled. All changes undone so far were redone, except
    /// those of `stuck`.
    #[error("{}", describe_failure(.left, .stuck))]
    Left {
        /// The calls whose changes cannot be undone.
        left: Vec<SkippedCall>,
        /// The calls whose changes were undone and could not be redone. All other files are unchanged.
        stuck: Vec<ChangingCall>,
    },
    /// The event that records the undoing could not be stored, so the file changes were redone.
    #[error("{source}{}", describe_stuck_calls(.stuck))]
    Append {
        /// The reason.
        source: AppendError,
        /// The calls whose changes were undone and could not be redone.
        stuck: Vec<ChangingCall>,
    },
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The ports of the use case.
#[derive(Clone)]
pub struct UndoConversationPorts {
    /// Runs the calls.
    pub execute_tool: Arc<ExecuteToolHandler>,
    /// Store of conversations.
    pub conversations: Arc<dyn ConversationStore>,
    /// Journal of the file changes of calls.
    pub journal: Arc<dyn ChangeJournal>,
    /// Audit log, in which the parent of a nested call is looked up.
    pub log: Arc<dyn ExecutionLog>,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for UndoConversationPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UndoConversationPorts").finish_non_exhaustive()
    }
}

/// Handles an [`UndoConversationCommand`].
#[derive(Debug)]
pub struct UndoConversationHandler {
    ports: UndoConversationPorts,
}

impl UndoConversationHandler {
    /// Creates a handler on these ports.
    pub fn new(ports: UndoConversationPorts) -> Self {
        Self { ports }
    }

    /// Undoes the file changes of the calls after the event, newest first, and then records that all later events are
    /// undone.
    ///
    /// Changes by commands are unknown, and remain. Events that were copied from another conversation leave their files
    /// unchanged.
    ///
    /// # Errors
    /// [`UndoConversationError`]; the conversation is unchanged then, and so are all files except those that the error
    /// names.
    pub async fn handle(
        &self,
        command: UndoConversationCommand,
    ) -> Result<ConversationUndoReport, UndoConversationError> {
        let UndoConversationPorts { conversations, clock, .. } = &self.ports;
        let (id, to) = (command.conversation, command.to);
        let principal = command.scope.principal.clone();
        let known = conversations.find(&principal, id).await?.ok_or(UndoConversationError::NotFound(id))?;
        let events = conversations.events(&principal, id).await?;
        let last = events.last().map_or(0, |event| event.number);
        if to > last {
            return Err(UndoConversationError::NoSuchEvent { to, events: last });
        }
        let copied = known.forked_from.map_or(0, |(_, copied)| copied);
        let UndoPlan { entries, mut left } = self.plan(&principal, id, &events, to, copied).await?;
        let mut scope = command.scope.clone();
        scope.session = id.session();
        let mut possible = Vec::with_capacity(entries.len());
        for entry in entries {
            match self.predict_refusal(&command, &scope, &entry).await {
                None => possible.push(entry),
                Some(why) => left.push(SkippedCall { call: changing(&entry), why }),
            }
        }
        if !left.is_empty() && !command.leaving_what_cannot_be {
            return Err(UndoConversationError::Left { left, stuck: Vec::new() });
        }
        let mut undone: Vec<ChangingCall> = Vec::new();
        for entry in &possible {
            match self.call(&command.undo, &command, &scope, entry.call, command.cancel.clone()).await {
                Ok(()) => undone.push(changing(entry)),
                Err(why) => {
                    left.push(SkippedCall { call: changing(entry), why });
                    if !command.leaving_what_cannot_be || command.cancel.reason().is_some() {
                        let stuck = self.done_again(&command, &scope, undone).await;
                        return Err(UndoConversationError::Left { left, stuck });
                    }
                }
            }
        }
        let taken_back = vec![ConversationEventKind::TakenBack { to }];
        match conversations.append(&principal, id, last, clock.now(), taken_back).await {
            Ok(events) => Ok(ConversationUndoReport { events, undone, left }),
            Err(source) => {
                let stuck = self.done_again(&command, &scope, undone).await;
                Err(UndoConversationError::Append { source, stuck })
            }
        }
    }

    async fn plan(
        &self,
        principal: &Principal,
        id: ConversationId,
        events: &[ConversationEvent],
        to: u64,
        copied: u64,
    ) -> Result<UndoPlan, StoreError> {
        let entries = self.entries(principal, id).await?;
        let own: HashSet<CallId> = plan::calls(events).map(|(_, call)| call).collect();
        let mut roots = HashMap::new();
        for entry in &entries {
            let root = self.root(entry.call, &own).await?;
            roots.insert(entry.call, root);
        }
        Ok(plan::plan(events, to, copied, &entries, &roots))
    }

    /// Returns the file changes of the calls of the conversation and of its subagents, newest first.
    async fn entries(&self, principal: &Principal, id: ConversationId) -> Result<Vec<JournalEntry>, StoreError> {
        let (mut entries, mut sessions, mut next) = (Vec::new(), vec![id.session()], 0);
        while let Some(session) = sessions.get(next).cloned() {
            next += 1;
            entries.extend(self.ports.journal.of_session(principal, &session, MAX_EXAMINED_CHANGES).await?);
            let room = AGENTS.saturating_sub(sessions.len());
            let handed_over = self.ports.conversations.delegated_in(principal, &session, room).await?;
            sessions.extend(handed_over.into_iter().map(|one| one.id.session()));
        }
        if next > 1 {
            entries.sort_by_key(|one| Reverse((one.at, one.call)));
        }
        Ok(entries)
    }

    /// Returns the ancestor of this call that belongs to the conversation, or the last known ancestor.
    async fn root(&self, call: CallId, own: &HashSet<CallId>) -> Result<CallId, StoreError> {
        let mut root = call;
        for _ in 0..MAX_DEPTH {
            if own.contains(&root) {
                break;
            }
            match self.ports.log.find(root).await?.and_then(|row| row.parent) {
                Some(parent) => root = parent,
                None => break,
            }
        }
        Ok(root)
    }

    /// Returns the reason why a change cannot be undone, if that is known in advance.
    async fn predict_refusal(
        &self,
        command: &UndoConversationCommand,
        scope: &RequestScope,
        entry: &JournalEntry,
    ) -> Option<String> {
        let query = ExplainCallQuery {
            tool: command.undo.clone(),
            arguments: json!({"call": entry.call.to_string()}),
            scope: scope.clone(),
        };
        match self.ports.execute_tool.explain(query).await {
            Ok(ExplainedCall { decision, .. }) => (decision.verdict == Verdict::Deny).then(|| decision.reason()),
            Err(error) => Some(in_words(&error)),
        }
    }

    async fn call(
        &self,
        tool: &str,
        command: &UndoConversationCommand,
        scope: &RequestScope,
        call: CallId,
        cancel: CancelSignal,
    ) -> Result<(), String> {
        let command = ExecuteToolCommand {
            client: command.client.clone(),
            caller: command.caller.clone(),
            cancel,
            ..ExecuteToolCommand::new(tool, json!({"call": call.to_string()})).within(scope.clone())
        };
        match self.ports.execute_tool.handle(command).await {
            Ok(CallOutcome::Done(result)) if result.is_error() => Err(result.joined_text()),
            Ok(CallOutcome::Done(_)) => Ok(()),
            Ok(CallOutcome::InputRequired(_)) => Err("it needs answers that are unavailable here".into()),
            Err(error) => Err(in_words(&error)),
        }
    }

    /// Redoes the undone changes, the last one first, and returns those that could not be redone. Ignores cancelling,
    /// so that no change is left half undone.
    async fn done_again(
        &self,
        command: &UndoConversationCommand,
        scope: &RequestScope,
        undone: Vec<ChangingCall>,
    ) -> Vec<ChangingCall> {
        let mut stuck = Vec::new();
        for changing in undone.into_iter().rev() {
            if self.call(&command.redo, command, scope, changing.call, CancelSignal::new()).await.is_err() {
                stuck.push(changing);
            }
        }
        stuck
    }
}

fn in_words(error: &ExecuteToolError) -> String {
    match error {
        ExecuteToolError::NotCallable(failure)
        | ExecuteToolError::Refused(failure)
        | ExecuteToolError::Failed(failure) => failure.text(),
        other => other.to_string(),
    }
}

fn changing(entry: &JournalEntry) -> ChangingCall {
    let mut files: Vec<PathBuf> = Vec::new();
    for change in &entry.changes {
        if !files.contains(&change.path) {
            files.push(change.path.clone());
        }
    }
    ChangingCall { call: entry.call, tool: entry.tool.clone(), files }
}

fn named(changing: &ChangingCall) -> String {
    let files: Vec<String> = changing.files.iter().map(|path| format!("`{}`", path.display())).collect();
    format!("the call {} of `{}` ({})", changing.call, changing.tool, files.join(", "))
}

fn describe_failure(left: &[SkippedCall], stuck: &[ChangingCall]) -> String {
    let mut text = "the conversation was not undone, because not all changes of its calls can be:".to_owned();
    for SkippedCall { call, why } in left {
        text.push_str(&format!("\n{}: {}", named(call), why.trim_end()));
    }
    text.push_str(&describe_stuck_calls(stuck));
    text
}

fn describe_stuck_calls(stuck: &[ChangingCall]) -> String {
    match stuck {
        [] => "\nAll files are as they were.".into(),
        stuck => {
            let stuck: Vec<String> = stuck.iter().map(named).collect();
            format!("\nUndone before that, and not redone: {}. All other files are as they were.", stuck.join("; "))
        }
    }
}
