//! Taking a conversation back to an event, with what its calls have done to files since.
//!
//! Each change is taken back by a call of its own, so that rules, rows and the journal hold as for all calls. If one
//! cannot be taken back, those before it are done again, and the conversation stays as it is.

mod plan;

use crate::{
    cancel_signal::CancelSignal,
    execute_tool::{
        ExecuteToolCommand, ExecuteToolError, ExecuteToolHandler,
        explain::{ExplainCallQuery, ExplainedCall},
    },
};
use plan::Plan;
use serde_json::json;
use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    fmt,
    path::PathBuf,
    sync::Arc,
};
use toolstead_domain::{
    client_profile::ClientProfile,
    conversation::{
        ConversationId,
        event::{ConversationEvent, ConversationEventKind},
    },
    permission::decision::Verdict,
    ports::{
        caller::Caller,
        change_journal::{ChangeJournal, JournalEntry},
        clock::Clock,
        conversation_store::{AppendError, ConversationStore},
        execution_log::ExecutionLog,
        tool_provider::CallOutcome,
        tool_repository::StoreError,
    },
    principal::Principal,
    scope::Scope,
    tool_call::CallId,
};

/// As many changes of a conversation are looked through.
const LOOKED_THROUGH: usize = 10_000;
/// Conversations of agents that are looked through with it.
const AGENTS: usize = 1_000;
/// Calls are nested less deep than that.
const MAX_DEPTH: usize = 64;

/// Takes a conversation back.
pub struct UndoConversationCommand {
    /// The conversation.
    pub conversation: ConversationId,
    /// The last event that counts.
    pub to: u64,
    /// Whose it is, and how tools are seen. The session of the calls is the conversation's.
    pub scope: Scope,
    /// The tool that takes back what a call did to files, by the call's id as `call`.
    pub undo: String,
    /// The tool that does it again, likewise.
    pub redo: String,
    /// Takes the conversation back also where changes of files have to be left as they are.
    pub leaving_what_cannot_be: bool,
    /// The abilities of the client.
    pub client: Arc<ClientProfile>,
    /// The way back to the client.
    pub caller: Arc<dyn Caller>,
    /// Takes the wish back: what is done by then is done again.
    pub cancel: CancelSignal,
}

impl fmt::Debug for UndoConversationCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("UndoConversationCommand");
        shown.field("conversation", &self.conversation).field("to", &self.to).finish_non_exhaustive()
    }
}

/// A conversation that was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneConversation {
    /// As many events as it has now.
    pub events: u64,
    /// The calls whose changes were taken back, in the order in which that was done.
    pub undone: Vec<ChangingCall>,
    /// Those whose changes stay, with the reason.
    pub left: Vec<LeftCall>,
}

/// A call that changed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangingCall {
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: String,
    /// The files.
    pub files: Vec<PathBuf>,
}

/// A call whose changes are not taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftCall {
    /// The call.
    pub call: ChangingCall,
    /// The reason, in words.
    pub why: String,
}

/// The reason why a conversation was not taken back.
#[derive(Debug, thiserror::Error)]
pub enum UndoConversationError {
    /// The principal has no conversation of that id.
    #[error("there is no conversation {0}")]
    NotFound(ConversationId),
    /// It is shorter.
    #[error("the conversation has {events} events, so it cannot be taken back to event {to}")]
    NoSuchEvent {
        /// The event that was asked for.
        to: u64,
        /// As many as there are.
        events: u64,
    },
    /// Not all changes of files can be taken back.
    #[error("{}", told(.left, .stuck))]
    Left {
        /// Those that cannot.
        left: Vec<LeftCall>,
        /// Those that were taken back by then and could not be done again. All others are as they were.
        stuck: Vec<ChangingCall>,
    },
    /// It could not be noted, so the files were changed back.
    #[error("{source}{}", told_stuck(.stuck))]
    Append {
        /// The reason.
        source: AppendError,
        /// The calls that were taken back and could not be done again.
        stuck: Vec<ChangingCall>,
    },
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The ports of the use case.
#[derive(Clone)]
pub struct UndoConversationPorts {
    /// Makes the calls.
    pub execute_tool: Arc<ExecuteToolHandler>,
    /// The store of conversations.
    pub conversations: Arc<dyn ConversationStore>,
    /// The journal of what calls did to files.
    pub journal: Arc<dyn ChangeJournal>,
    /// Says which call made which.
    pub log: Arc<dyn ExecutionLog>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for UndoConversationPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UndoConversationPorts").finish_non_exhaustive()
    }
}

/// Takes conversations back.
#[derive(Debug)]
pub struct UndoConversationHandler {
    ports: UndoConversationPorts,
}

impl UndoConversationHandler {
    /// Works on these ports.
    pub fn new(ports: UndoConversationPorts) -> Self {
        Self { ports }
    }

    /// Takes back, newest first, what calls after the event did to files, and then the conversation.
    ///
    /// Changes by commands are not known, and stay. What was copied from another conversation keeps its files.
    ///
    /// # Errors
    /// [`UndoConversationError`]; then the conversation goes on as it was, and so do the files but for those it names.
    pub async fn handle(&self, command: UndoConversationCommand) -> Result<UndoneConversation, UndoConversationError> {
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
        let Plan { entries, mut left } = self.plan(&principal, id, &events, to, copied).await?;
        let mut scope = command.scope.clone();
        scope.session = id.session();
        let mut possible = Vec::with_capacity(entries.len());
        for entry in entries {
            match self.foreseen(&command, &scope, &entry).await {
                None => possible.push(entry),
                Some(why) => left.push(LeftCall { call: changing(&entry), why }),
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
                    left.push(LeftCall { call: changing(entry), why });
                    if !command.leaving_what_cannot_be || command.cancel.reason().is_some() {
                        let stuck = self.done_again(&command, &scope, undone).await;
                        return Err(UndoConversationError::Left { left, stuck });
                    }
                }
            }
        }
        let taken_back = vec![ConversationEventKind::TakenBack { to }];
        match conversations.append(&principal, id, last, clock.now(), taken_back).await {
            Ok(events) => Ok(UndoneConversation { events, undone, left }),
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
    ) -> Result<Plan, StoreError> {
        let entries = self.entries(principal, id).await?;
        let own: HashSet<CallId> = plan::calls(events).map(|(_, call)| call).collect();
        let mut roots = HashMap::new();
        for entry in &entries {
            let root = self.root(entry.call, &own).await?;
            roots.insert(entry.call, root);
        }
        Ok(plan::plan(events, to, copied, &entries, &roots))
    }

    /// The changes that calls of the conversation made to files, newest first, those of agents that it handed work to
    /// among them.
    async fn entries(&self, principal: &Principal, id: ConversationId) -> Result<Vec<JournalEntry>, StoreError> {
        let (mut entries, mut sessions, mut next) = (Vec::new(), vec![id.session()], 0);
        while let Some(session) = sessions.get(next).cloned() {
            next += 1;
            entries.extend(self.ports.journal.of_session(principal, &session, LOOKED_THROUGH).await?);
            let room = AGENTS.saturating_sub(sessions.len());
            let handed_over = self.ports.conversations.handed_over_in(principal, &session, room).await?;
            sessions.extend(handed_over.into_iter().map(|one| one.id.session()));
        }
        if next > 1 {
            entries.sort_by_key(|one| Reverse((one.at, one.call)));
        }
        Ok(entries)
    }

    /// The call of the conversation by which this one was made, or itself.
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

    /// Says why a change cannot be taken back, as far as that shows before anything is done.
    async fn foreseen(&self, command: &UndoConversationCommand, scope: &Scope, entry: &JournalEntry) -> Option<String> {
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
        scope: &Scope,
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
            Ok(CallOutcome::InputRequired(_)) => Err("it asks for answers that cannot be given here".into()),
            Err(error) => Err(in_words(&error)),
        }
    }

    /// Does again what was taken back, the last first, and returns what could not be. Nothing ends this: it is there to
    /// leave nothing half done.
    async fn done_again(
        &self,
        command: &UndoConversationCommand,
        scope: &Scope,
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

fn told(left: &[LeftCall], stuck: &[ChangingCall]) -> String {
    let mut text = "the conversation was not taken back, because not all changes of its calls can be:".to_owned();
    for LeftCall { call, why } in left {
        text.push_str(&format!("\n{}: {}", named(call), why.trim_end()));
    }
    text.push_str(&told_stuck(stuck));
    text
}

fn told_stuck(stuck: &[ChangingCall]) -> String {
    match stuck {
        [] => "\nAll files are as they were.".into(),
        stuck => {
            let stuck: Vec<String> = stuck.iter().map(named).collect();
            format!("\nTaken back by then, and not done again: {}. All other files are as they were.", stuck.join("; "))
        }
    }
}
