//! `toolstead chat`.

mod chat_line;
mod inputs;
mod line_editor;
mod turns;

use super::{
    CommandResult,
    agent::{AgentFlags, PreparedAgent, TurnOutcome},
    conversation_choice::{ConversationSelector, find_conversation},
    exit::{CommandError, Exit},
    global::GlobalFlags,
    narration::figures,
    output::StdoutWriter,
    screen::RunDisplay,
    servers,
    terminal::Terminal,
    typed_command,
};
use crate::{composition_root::RunningApp, escaping_writer::on_one_line, shutdown::ShutdownListener};
use chat_line::{COMMANDS, ChatLine};
use clap::Args;
use inputs::InputHistory;
use line_editor::ChatInput;
use std::{
    io::{self, IsTerminal},
    pin::pin,
};
use tokio::task::spawn_blocking;
use toolstead_application::{
    CancelSignal, CompactConversationCommand, CompactionTokenCounts, ListToolsQuery, OfferedTools, PageLimit,
    UndoConversationCommand,
};
use toolstead_domain::{AgentEvent, Block, CancelReason, Conversation, ConversationId, Principal, TokenUsage};
use turns::beginnings;
use uuid::Uuid;

/// Tool that undoes the file changes of a call; [`REDO`] is the tool that redoes them.
const UNDO: &str = "undo";
const REDO: &str = "redo";

/// Talks with an agent. Esc or Ctrl-C ends its turn; Ctrl-D leaves.
#[derive(Debug, Args)]
pub struct ChatCommand {
    #[command(flatten)]
    agent: AgentFlags,
    /// Resumes the last conversation of this workspace, or the one with this id
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    resume: Option<String>,
}

impl ChatCommand {
    /// Continues the conversation with this id, or the last one if the id is empty.
    pub(super) fn resuming(agent: AgentFlags, id: String) -> Self {
        Self { agent, resume: Some(id) }
    }

    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        if global.json || Terminal::of_process().is_none() || !io::stdin().is_terminal() || !io::stdout().is_terminal()
        {
            let message = "`chat` needs a terminal: `toolstead query` takes a prompt from anywhere, and \
                           prints events with `--json`";
            return Err(CommandError::Usage(message.into()));
        }
        let mut shutdown = ShutdownListener::listen()?;
        let agent = PreparedAgent::build(&self.agent, global, &mut shutdown).await?;
        let screen = match agent.terminal.clone() {
            Some(terminal) => RunDisplay::new(output, global).with_input(terminal),
            None => RunDisplay::new(output, global),
        };
        let mut talk =
            ChatSession { agent, conversation: ConversationId(Uuid::now_v7()), spent: UsageTotals::default(), screen };
        let outcome = Box::pin(self.talk(&mut talk, global, &mut shutdown)).await;
        talk.agent.composition.close().await;
        outcome
    }

    async fn talk(
        &self,
        talk: &mut ChatSession<'_>,
        global: &GlobalFlags,
        shutdown: &mut ShutdownListener,
    ) -> CommandResult {
        if let Some(id) = &self.resume {
            let wanted =
                if id.is_empty() { ConversationSelector::Last } else { ConversationSelector::Named(id.clone()) };
            let conversation = find_conversation(&*talk.agent.composition.app.conversations, &wanted).await?;
            talk.agent.take_up(&conversation, &self.agent, global)?;
            talk.take_up(&conversation);
        }
        talk.screen.note(&format!("{}; `/help` shows the commands", talk.agent.model.name()));
        talk.note_unbounded_cost();
        // Without a data folder, inputs are not stored.
        let mut inputs = InputHistory::open(talk.agent.composition.config.folders.prepare_data().ok());
        loop {
            // Ctrl-C was pressed for a turn that has ended.
            shutdown.forget_interrupts();
            let text = match talk.screen.next_queued() {
                Some(queued) => {
                    talk.screen.note(&format!("> {}", queued.replace('\n', "\n… ")));
                    queued
                }
                None => {
                    let draft = talk.screen.take_draft();
                    let typed = tokio::select! {
                        typed = line_editor::read(inputs.known(), talk.commands(), draft) => typed?,
                        () = shutdown.requested() => return Ok(Exit::Done),
                    };
                    let ChatInput::Text(text) = typed else { return Ok(Exit::Done) };
                    text
                }
            };
            let chat_line = ChatLine::read(&text);
            if chat_line != ChatLine::Empty {
                inputs.add(&text);
            }
            if talk.execute(chat_line, shutdown).await? == ChatFlow::Exit {
                return Ok(Exit::Done);
            }
        }
    }
}

/// A conversation at a terminal.
struct ChatSession<'a> {
    agent: PreparedAgent,
    conversation: ConversationId,
    spent: UsageTotals,
    screen: RunDisplay<'a>,
}

/// Usage of the turns since this process opened the conversation.
#[derive(Debug, Default)]
struct UsageTotals {
    usage: TokenUsage,
    cost: Option<f64>,
    calls: u64,
    turns: u64,
}

/// Decision to continue the chat or to leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChatFlow {
    Continue,
    Exit,
}

impl UsageTotals {
    fn add(&mut self, end: &AgentEvent) {
        if let AgentEvent::Ended { usage, cost, calls, turns, .. } = end {
            self.usage += *usage;
            self.cost = cost.map(|cost| self.cost.unwrap_or_default() + cost).or(self.cost);
            self.calls = self.calls.saturating_add(*calls);
            self.turns = self.turns.saturating_add(*turns);
        }
    }
}

impl ChatSession<'_> {
    fn take_up(&mut self, conversation: &Conversation) {
        self.conversation = conversation.id;
        self.screen.note(&format!("resumed: {} ({} events)", conversation.title, conversation.events));
    }

    fn note_unbounded_cost(&mut self) {
        if let Some(line) = self.agent.unbounded_cost() {
            self.screen.note(&line);
        }
    }

    async fn execute(
        &mut self,
        chat_line: ChatLine,
        shutdown: &mut ShutdownListener,
    ) -> Result<ChatFlow, CommandError> {
        match chat_line {
            ChatLine::Empty => {}
            ChatLine::Prompt(text) => return self.send_prompt(text, shutdown).await,
            ChatLine::Exit => return Ok(ChatFlow::Exit),
            ChatLine::Help => self.help(),
            ChatLine::New => {
                self.conversation = ConversationId(Uuid::now_v7());
                self.spent = UsageTotals::default();
                self.screen.note("started a new conversation");
            }
            ChatLine::Undo(turns) => self.undo(turns, shutdown).await?,
            ChatLine::Compact => self.compact(shutdown).await?,
            ChatLine::Model(None) => self.models(),
            ChatLine::Model(Some(name)) => match self.agent.composition.app.models.find(Some(&name)) {
                Ok(model) => {
                    self.agent.model = model;
                    self.screen.note(&format!("the model is now `{name}`"));
                    self.note_unbounded_cost();
                }
                Err(error) => self.screen.note(&format!("error: {error}")),
            },
            ChatLine::Tools => self.tools(),
            ChatLine::Usage => {
                let UsageTotals { usage, cost, calls, turns } = &self.spent;
                let line = figures(*calls, *turns, *usage, *cost);
                self.screen.note(&format!("{line}; conversation {}", self.conversation));
            }
            ChatLine::Status => self.status().await,
            ChatLine::Other(line) => match typed_command::text_of(&line, &self.agent.composition.agent_files) {
                Ok(Some(text)) => return self.send_prompt(text, shutdown).await,
                Ok(None) => {
                    let listing = self.agent.composition.agent_files.listing();
                    let others = listing.commands.iter().map(|listed| &*listed.item.name);
                    self.screen.note(&chat_line::unknown(&line, others));
                }
                Err(CommandError::Usage(why)) => self.screen.note(&why),
                Err(error) => return Err(error),
            },
            ChatLine::Invalid(why) => self.screen.note(&why),
        }
        Ok(ChatFlow::Continue)
    }

    async fn send_prompt(&mut self, text: String, shutdown: &mut ShutdownListener) -> Result<ChatFlow, CommandError> {
        let turned = self.agent.turn(self.conversation, vec![Block::text(text)], &mut self.screen, shutdown).await?;
        let TurnOutcome { end, should_exit: leaves } = turned;
        if let Some(end) = &end {
            self.spent.add(end);
        }
        Ok(if leaves { ChatFlow::Exit } else { ChatFlow::Continue })
    }

    /// Returns the names of the commands of command files, as they are typed.
    fn commands(&self) -> Vec<String> {
        let listing = self.agent.composition.agent_files.listing();
        listing.commands.iter().map(|listed| format!("/{}", listed.item.name)).collect()
    }

    fn help(&mut self) {
        for (name, takes, does) in COMMANDS {
            self.screen.note(&format!("{:<14} {does}", format!("{name} {takes}")));
        }
        for listed in &self.agent.composition.agent_files.listing().commands {
            let command = &listed.item;
            let name = format!("/{} {}", command.name, command.argument_hint.as_deref().unwrap_or_default());
            let description = command.description.lines().next().unwrap_or_default();
            self.screen.note(&format!("{:<14} {description} ({})", name.trim_end(), listed.owner));
        }
        self.screen.note(
            "Everything else is sent to the model. A `\\` at the end of a line continues the input. Ctrl-C ends \
             the turn, and at an empty line the chat. What is typed while the model works is sent afterwards; Esc ends the turn.",
        );
    }

    fn models(&mut self) {
        let models = &self.agent.composition.app.models;
        for (name, model) in &models.usable {
            let facts = model.facts();
            let mark = if name == self.agent.model.name() { "*" } else { " " };
            self.screen.note(&format!("{mark} {name} ({} of {})", facts.model, facts.provider));
        }
        for (name, why) in &models.unusable {
            self.screen.note(&format!("  {name} is unavailable: {why}"));
        }
    }

    /// Shows the model, the workspace, the instruction files, and servers of other programs that are not used.
    async fn status(&mut self) {
        let RunningApp { config, instruction_files: files, .. } = &self.agent.composition;
        let facts = self.agent.model.facts();
        let mut lines = vec![
            format!("model: {} ({} of {})", self.agent.model.name(), facts.model, facts.provider),
            format!("workspace: {}", config.workspace().display()),
            format!("conversation: {}", self.conversation),
        ];
        let (disabled, files) = (files.disabled(), files.clone());
        // Fails only if the process ends.
        let listed = spawn_blocking(move || files.list()).await.unwrap_or_default();
        lines.push(match (disabled, listed.is_empty()) {
            (Some(reason), _) => format!("instructions: none are read, because {reason}"),
            (None, true) => "instructions: there are no files".to_owned(),
            (None, false) => "instructions:".to_owned(),
        });
        if disabled.is_none() {
            lines.extend(listed.iter().map(|file| format!("  {}", file.describe())));
        }
        let unused = servers::unused(config);
        if !unused.is_empty() {
            lines.push("servers that are not used:".to_owned());
            lines.extend(unused.iter().map(|server| format!("  {server}")));
        }
        lines.iter().for_each(|line| self.screen.note(&on_one_line(line)));
    }

    fn tools(&mut self) {
        let offered = self.agent.offered();
        let scope = self.agent.scope(self.conversation);
        let query = ListToolsQuery { scope, page: PageLimit::Tools(usize::MAX), ..ListToolsQuery::default() };
        // Only an invalid cursor causes an error, and none is given.
        let tools = self.agent.composition.app.list_tools.handle(&query).map(|page| page.tools).unwrap_or_default();
        let is_offered = |tool| match &offered {
            OfferedTools::Listed => true,
            OfferedTools::Chosen(selection) => selection.includes(tool),
            OfferedTools::Nothing => false,
        };
        let names: Vec<String> =
            tools.iter().filter(|one| is_offered(&one.tool)).map(|one| one.tool.name().to_string()).collect();
        match names.as_slice() {
            [] => self.screen.note("no tools are offered"),
            names => self.screen.note(&names.join(", ")),
        }
    }

    /// Undoes turns and the file changes of their calls. A file may require approval.
    async fn undo(&mut self, turns: usize, shutdown: &mut ShutdownListener) -> Result<(), CommandError> {
        let app = &self.agent.composition.app;
        let events = app.conversations.events(&Principal::local(), self.conversation).await?;
        let begun = beginnings(&events);
        let Some(at) = begun.len().checked_sub(turns) else {
            let line = match begun.len() {
                0 => "there is no turn to undo".to_owned(),
                known => format!("there are only {known} turns, so {turns} cannot be undone"),
            };
            self.screen.note(&line);
            return Ok(());
        };
        let cancel = CancelSignal::new();
        let undoing = app.undo_conversation.handle(UndoConversationCommand {
            conversation: self.conversation,
            to: begun[at],
            // The user requests this, so the restricted view of the profile, which applies to the model, is not used.
            scope: app.scope(Principal::local(), self.conversation.session()),
            undo: UNDO.into(),
            redo: REDO.into(),
            leaving_what_cannot_be: false,
            client: self.agent.client(),
            caller: self.agent.caller(),
            cancel: cancel.clone(),
        });
        match unless_interrupted(undoing, &cancel, shutdown).await {
            Ok(undone) => {
                let turns = if turns == 1 { "the turn is".to_owned() } else { format!("{turns} turns are") };
                self.screen.note(&format!("{turns} undone"));
                for call in undone.undone {
                    let files: Vec<String> = call.files.iter().map(|path| format!("`{}`", path.display())).collect();
                    self.screen.note(&format!("restored to before `{}`: {}", call.tool, files.join(", ")));
                }
            }
            Err(error) => self.screen.note(&format!("error: {error}")),
        }
        Ok(())
    }

    async fn compact(&mut self, shutdown: &mut ShutdownListener) -> Result<(), CommandError> {
        let app = &self.agent.composition.app;
        let cancel = CancelSignal::new();
        let compacting = app.run_agent.compact(CompactConversationCommand {
            conversation: self.conversation,
            model: self.agent.model.clone(),
            summarizer: self.agent.summarizer()?,
            scope: self.agent.scope(self.conversation),
            cancel: cancel.clone(),
        });
        match unless_interrupted(compacting, &cancel, shutdown).await {
            Ok(CompactionTokenCounts { before, after }) => {
                self.screen.show_event(&AgentEvent::Compacted { how: "summarized", before, after })?;
            }
            Err(error) => self.screen.note(&format!("error: {error}")),
        }
        Ok(())
    }
}

/// Cancels the operation at Ctrl-C, and waits for its end.
async fn unless_interrupted<T>(
    operation: impl Future<Output = T>,
    cancel: &CancelSignal,
    shutdown: &mut ShutdownListener,
) -> T {
    let mut operation = pin!(operation);
    tokio::select! {
        outcome = &mut operation => outcome,
        () = shutdown.requested() => {
            cancel.cancel(CancelReason::Client);
            operation.await
        }
    }
}
