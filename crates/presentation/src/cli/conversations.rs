//! `toolstead conversations list|show|resume|fork|undo|export`.

mod export;
mod records;
mod transcript;

use super::{
    CommandResult,
    agent::AgentFlags,
    chat::ChatCommand,
    conversation_choice::{ConversationSelector, find_conversation},
    exit::{CommandError, Exit},
    global::GlobalFlags,
    output::{StdoutWriter, cut, table},
    terminal::Terminal,
};
use crate::{
    composition_root::{RunningApp, ServerSelection, SessionLifetime},
    shutdown::ShutdownListener,
};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use std::sync::Arc;
use toolstead_application::{
    CancelSignal, ChangingCall, ConversationUndoReport, ExecuteToolError, ForkConversationCommand,
    ForkConversationError, UndoConversationCommand, UndoConversationError,
};
use toolstead_domain::{
    AppendError, CancelReason, ClientProfile, Conversation, Principal, RequestScope, SilentCaller, ToolFailure,
    conversation::transcript::messages, error_kind::ErrorKind,
};

/// Name of the tool that undoes the file changes of a call.
const UNDO: &str = "undo";
/// Name of the tool that redoes the file changes of a call.
const REDO: &str = "redo";
/// Word for the conversation that was continued last.
const LAST: &str = "last";
/// Maximum length in characters of a title in a list on a terminal.
const TITLE: usize = 60;

/// Shows, copies and undoes conversations with agents.
#[derive(Debug, Args)]
pub struct ConversationsCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Store(StoreCommand),
    /// Resumes a conversation at the terminal, as `chat --resume` does
    Resume {
        /// The conversation's id or its beginning; `last`: the most recently active one
        id: String,
        #[command(flatten)]
        agent: Box<AgentFlags>,
    },
}

/// Subcommands that need only the store and no model.
#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Lists the conversations of this workspace, the most recently active first
    List {
        /// Maximum number of entries
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// Shows the messages with the numbers of their events; `--json`: the messages as a model receives them
    Show {
        /// The conversation's id or its beginning; `last`: the most recently active one
        id: String,
    },
    /// Starts a new conversation with the events of another
    Fork {
        /// The conversation's id or its beginning; `last`: the most recently active one
        id: String,
        /// The number of the last event to copy; default: all
        #[arg(long, value_name = "N")]
        at: Option<u64>,
    },
    /// Undoes a conversation back to an event, with its file changes; changes by commands remain
    Undo {
        /// The conversation's id or its beginning; `last`: the most recently active one
        id: String,
        /// The number of the last event to keep; 0 undoes all
        #[arg(long, value_name = "N")]
        to: u64,
        /// Undoes the conversation even if changes of files cannot be undone, and leaves those files unchanged
        #[arg(long)]
        force: bool,
    },
    /// Prints all events as JSON lines
    Export {
        /// The conversation's id or its beginning; `last`: the most recently active one
        id: String,
        /// Format of the lines
        #[arg(long, value_enum, default_value_t)]
        format: ExportFormat,
    },
}

/// The form of exported lines.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum ExportFormat {
    /// The events as they are stored
    #[default]
    Events,
    /// One line for each message, call and result, with the fields of Chorus
    Chorus,
}

impl ConversationsCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        let command = match self.command {
            Command::Resume { id, agent } => {
                let id = if id == LAST { String::new() } else { id };
                return Box::pin(ChatCommand::resuming(*agent, id).run(global, output)).await;
            }
            Command::Store(command) => command,
        };
        let composition = match &command {
            // The user may have to approve file changes.
            StoreCommand::Undo { .. } => {
                global.compose_for_call(UNDO, None, SessionLifetime::EndsWithCall, Terminal::of_process()).await?
            }
            _ => global.compose(ServerSelection::None).await?,
        };
        let outcome = command.run(&composition, global.json, output).await;
        composition.close().await;
        outcome.map(|()| Exit::Done)
    }
}

impl StoreCommand {
    async fn run(self, composition: &RunningApp, as_json: bool, output: &mut StdoutWriter) -> Result<(), CommandError> {
        let (app, me) = (&composition.app, Principal::local());
        let store = &*app.conversations;
        match self {
            Self::List { limit } => {
                let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                let conversations = store.latest(&me, limit).await?;
                if as_json {
                    let all: Vec<Value> = conversations.iter().map(to_json).collect();
                    return Ok(output.json(&json!({"conversations": all}))?);
                }
                let rows = conversations.iter().map(|one| {
                    let title = one.title.replace(['\n', '\t'], " ");
                    let title = cut(&title, output.width().map(|_| TITLE));
                    vec![one.id.to_string(), one.updated.to_string(), one.events.to_string(), title]
                });
                let rows: Vec<Vec<String>> = rows.collect();
                Ok(output.line(&table(&["ID", "LAST ACTIVE", "EVENTS", "TITLE"], rows))?)
            }
            Self::Show { id } => {
                let conversation = find_conversation(store, &parse_selector(&id)).await?;
                let events = store.events(&me, conversation.id).await?;
                if as_json {
                    let mut shown = to_json(&conversation);
                    shown["messages"] = json!(messages(&events));
                    shown["records"] = records::of_calls(&events).into();
                    return Ok(output.json(&shown)?);
                }
                for line in transcript::lines(&conversation, &events) {
                    output.line(&line)?;
                }
                Ok(())
            }
            Self::Fork { id, at } => {
                let original = find_conversation(store, &parse_selector(&id)).await?.id;
                let command = ForkConversationCommand { principal: me, original, to: at };
                let copy = app.fork_conversation.handle(command).await.map_err(|error| match error {
                    ForkConversationError::NotFound(_) => CommandError::NotFound(error.to_string()),
                    ForkConversationError::NoSuchEvent { .. } => CommandError::Usage(error.to_string()),
                    ForkConversationError::Store(error) => CommandError::Store(error),
                })?;
                match as_json {
                    true => Ok(output.json(&to_json(&copy))?),
                    false => Ok(output.line(&copy.id.to_string())?),
                }
            }
            Self::Undo { id, to, force } => {
                let conversation = find_conversation(store, &parse_selector(&id)).await?;
                let undone = undo(composition, &conversation, to, force).await?;
                if as_json {
                    return Ok(output.json(&undone_json(&conversation, to, &undone))?);
                }
                for line in undone_lines(&conversation, to, &undone) {
                    output.line(&super::output::visible(&line))?;
                }
                Ok(())
            }
            Self::Export { id, format } => {
                let conversation = find_conversation(store, &parse_selector(&id)).await?;
                let events = store.events(&me, conversation.id).await?;
                let lines: Vec<Value> = match format {
                    ExportFormat::Events => events.iter().map(|event| json!(event)).collect(),
                    ExportFormat::Chorus => export::chorus(conversation.id, &events),
                };
                for line in &lines {
                    output.json_line(line)?;
                }
                Ok(())
            }
        }
    }
}

fn parse_selector(id: &str) -> ConversationSelector {
    match id {
        LAST => ConversationSelector::Last,
        id => ConversationSelector::Named(id.to_owned()),
    }
}

/// Undoes the events after the event `to`, with their file changes. If `force` is set, files whose changes cannot be
/// undone remain unchanged; otherwise they are an error. Ctrl-C cancels.
async fn undo(
    composition: &RunningApp,
    conversation: &Conversation,
    to: u64,
    force: bool,
) -> Result<ConversationUndoReport, CommandError> {
    let (mut shutdown, cancel) = (ShutdownListener::listen()?, CancelSignal::new());
    let undoing = composition.app.undo_conversation.handle(UndoConversationCommand {
        conversation: conversation.id,
        to,
        scope: RequestScope::of(Principal::local(), conversation.id.session()),
        undo: UNDO.into(),
        redo: REDO.into(),
        leaving_what_cannot_be: force,
        client: Arc::new(ClientProfile::without_protocol(concat!("toolstead-cli ", env!("CARGO_PKG_VERSION")))),
        caller: Arc::new(SilentCaller),
        cancel: cancel.clone(),
    });
    tokio::pin!(undoing);
    let outcome = tokio::select! {
        outcome = &mut undoing => outcome,
        () = shutdown.requested() => {
            cancel.cancel(CancelReason::Client);
            undoing.await
        }
    };
    outcome.map_err(|error| {
        let failure = |kind, next: &str| {
            CommandError::Call(ExecuteToolError::Failed(ToolFailure::new(kind, error.to_string()).next(next)))
        };
        match error {
            UndoConversationError::NotFound(_) => CommandError::NotFound(error.to_string()),
            UndoConversationError::NoSuchEvent { .. } => CommandError::Usage(error.to_string()),
            UndoConversationError::Store(error) => CommandError::Store(error),
            UndoConversationError::Append { source: AppendError::Store(error), .. } => CommandError::Store(error),
            UndoConversationError::Append { .. } => {
                failure(ErrorKind::StaleFile, "End the process that uses it, and try again.")
            }
            UndoConversationError::Left { .. } if cancel.reason().is_some() => {
                CommandError::Call(ExecuteToolError::Cancelled(CancelReason::Client))
            }
            UndoConversationError::Left { .. } => {
                failure(ErrorKind::StaleFile, "To undo the rest and leave these files unchanged, use `--force`.")
            }
        }
    })
}

fn undone_lines(conversation: &Conversation, to: u64, undone: &ConversationUndoReport) -> Vec<String> {
    let files = |call: &ChangingCall| {
        let files: Vec<String> = call.files.iter().map(|path| format!("`{}`", path.display())).collect();
        files.join(", ")
    };
    let mut lines = vec![format!("The conversation {} was restored to event {to}.", conversation.id)];
    let said = |call: &ChangingCall| format!("Undid `{}`, the call {}: {}", call.tool, call.call, files(call));
    lines.extend(undone.undone.iter().map(said));
    for left in &undone.left {
        let call = &left.call;
        lines.push(format!("Not changed: {} (`{}`, the call {}): {}", files(call), call.tool, call.call, left.why));
    }
    lines
}

fn undone_json(conversation: &Conversation, to: u64, undone: &ConversationUndoReport) -> Value {
    let call = |call: &ChangingCall| {
        let files: Vec<String> = call.files.iter().map(|path| path.display().to_string()).collect();
        json!({"call": call.call.to_string(), "tool": call.tool, "files": files})
    };
    let left = undone.left.iter().map(|left| {
        let mut shown = call(&left.call);
        shown["why"] = left.why.as_str().into();
        shown
    });
    json!({
        "id": conversation.id.to_string(), "to": to, "events": undone.events,
        "undone": undone.undone.iter().map(call).collect::<Vec<_>>(), "left": left.collect::<Vec<_>>(),
    })
}

/// Returns the facts about a conversation as JSON.
fn to_json(conversation: &Conversation) -> Value {
    let Conversation { id, title, profile, created, updated, events, forked_from, .. } = conversation;
    json!({
        "id": id.to_string(), "title": title, "profile": profile, "created": created.to_string(),
        "updated": updated.to_string(), "events": events,
        "forked_from": forked_from.map(|(id, events)| json!({"id": id.to_string(), "events": events})),
    })
}
