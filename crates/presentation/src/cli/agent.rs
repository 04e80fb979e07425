//! Agents on the command line: flags, construction, and running a turn while the user watches.

use super::{
    auth,
    config::trusting,
    exit::{CommandError, Exit},
    global::GlobalFlags,
    message_printer::ToolMessagePrinter,
    narration::{figures, opened},
    output::note,
    prompt_args,
    screen::RunDisplay,
    terminal::Terminal,
    terminal_questions::TerminalQuestions,
};
use crate::{
    composition_root::RunningApp,
    config::{Config, agent_files::AgentFileKind, sections::agent::AgentSettings},
    query::restricted_view,
    shutdown::{ShutdownListener, ShutdownSignal},
};
use async_trait::async_trait;
use clap::Args;
use std::{
    collections::VecDeque,
    future::pending,
    io::{self, IsTerminal},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::MutexGuard,
    time::{MissedTickBehavior, interval, sleep_until},
};
use toolstead_application::{AgentRunHandle, CancelSignal, ExecuteToolError, OfferedTools, RunAgentCommand};
use toolstead_domain::{
    AgentEvent, AgentOutcome, Block, Budgets, Caller, CancelReason, ClientProfile, Conversation, ConversationId,
    InputRequest, InputResponse, LogLevel, LogMessage, ModelProvider, NotAnswered, Principal, Progress, RequestScope,
    ToolSelection, View, error_kind::ErrorKind, tool_input_schema::nearest_name,
};
use toolstead_infrastructure::dialects;

/// Interval between updates of the display of running calls.
const BETWEEN_TICKS: Duration = Duration::from_secs(1);
/// Time without a key press after which a question may open although the input line contains text.
const PAUSE: Duration = Duration::from_secs(1);

/// The settings of an agent.
#[derive(Debug, Default, Args)]
pub(super) struct AgentFlags {
    /// The model, by its name in the configuration
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// The profile: a model, tools and instructions under one name
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// The agent to run, from an agent file: instructions, tools and a model (`toolstead agents` lists them)
    #[arg(long, value_name = "NAME", conflicts_with = "profile")]
    agent: Option<String>,
    /// System instructions, which replace those of the profile or of `[agent]`
    #[arg(long, value_name = "TEXT|@FILE")]
    system: Option<String>,
    /// Maximum number of tool calls in a run
    #[arg(long, value_name = "N")]
    max_calls: Option<u64>,
    /// Maximum number of model answers in a run
    #[arg(long, value_name = "N")]
    max_turns: Option<u64>,
    /// Maximum number of tokens in a run, input and output
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// Maximum cost of a run in US dollars, if the prices of the model are known
    #[arg(long, value_name = "USD", value_parser = dollars)]
    max_cost: Option<f64>,
    /// Maximum duration of a run in seconds
    #[arg(long, value_name = "S")]
    max_seconds: Option<u64>,
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(cost) if cost.is_finite() && cost >= 0.0 => Ok(cost),
        _ => Err("give a number of US dollars, such as 0.50".into()),
    }
}

/// Prefix of an agent's name, where a conversation stores the name of its profile.
const OF_AGENT: &str = "agent:";

impl AgentFlags {
    /// Returns the selected profile, or the selected agent with the prefix [`OF_AGENT`].
    fn named(&self) -> Option<String> {
        let agent = self.agent.as_ref().map(|name| format!("{OF_AGENT}{name}"));
        agent.or_else(|| self.profile.clone())
    }

    /// Returns the budgets: those of the flags, or else the configured ones and the agent's limit of turns, reduced to
    /// the administrator's limits.
    fn budgets(&self, configured: &AgentSettings, of_agent: Option<u64>) -> Budgets {
        let mut budgets = configured.budgets.clone();
        budgets.calls = self.max_calls.or(budgets.calls);
        let turns = budgets.turns.into_iter().chain(of_agent).min();
        budgets.turns = self.max_turns.or(turns);
        budgets.tokens = self.max_tokens.or(budgets.tokens);
        budgets.cost = self.max_cost.or(budgets.cost);
        budgets.time = self.max_seconds.map(Duration::from_secs).or(budgets.time);
        configured.capped(budgets)
    }
}

/// An agent that is ready to run.
pub(super) struct PreparedAgent {
    /// Application in which it runs.
    pub(super) composition: RunningApp,
    /// Model for the next turn.
    pub(super) model: Arc<dyn ModelProvider>,
    /// Terminal of the user, if there is one.
    pub(super) terminal: Option<Arc<Terminal>>,
    /// `true` if the progress of calls is shown.
    shows_progress: bool,
    manner: ConversationProfile,
    budgets: Budgets,
}

/// Settings that stay the same throughout a conversation.
#[derive(Debug, Clone, PartialEq)]
struct ConversationProfile {
    profile: Option<String>,
    /// Model that the profile sets.
    model: Option<String>,
    /// Maximum number of model answers in a turn.
    max_turns: Option<u64>,
    system: Option<String>,
    /// View of the profile.
    view: Option<String>,
    /// Tools of the profile after applying `--tools`; `None`: those of the configuration.
    chosen: Option<ToolSelection>,
    has_no_tools: bool,
}

impl ConversationProfile {
    fn of(
        flags: &AgentFlags,
        profile: Option<&str>,
        typed_tools: Option<&str>,
        config: &Config,
    ) -> Result<Self, CommandError> {
        if let Some((kept, name)) = profile.and_then(|kept| Some((kept, kept.strip_prefix(OF_AGENT)?))) {
            return Self::of_agent(flags, kept, name, typed_tools, config);
        }
        let profile = profile.map(|name| config.profile(name)).transpose().map_err(usage)?;
        let chosen = match profile {
            Some(profile) => profile.tools_with(typed_tools).map_err(usage)?,
            None => None,
        };
        let system = match &flags.system {
            Some(text) => Some(prompt_args::read_text_or_file(text)?),
            None => profile.map(|profile| profile.prompt.clone()).filter(|prompt| !prompt.is_empty()),
        };
        // As in clai: an agent has only the tools that are named explicitly, otherwise none.
        let is_bare = config.tools.dialect == Some(dialects::CLAI) && config.tools.selection == ToolSelection::all();
        let has_no_tools = match (&chosen, typed_tools) {
            (None, Some(typed)) => typed.trim().is_empty(),
            (None, None) => is_bare,
            (Some(_), _) => false,
        };
        let model = profile.and_then(|profile| profile.model.clone());
        let view = profile.and_then(|profile| profile.view.clone());
        let profile = profile.map(|profile| profile.name.clone());
        Ok(Self { profile, model, max_turns: None, system, view, chosen, has_no_tools })
    }

    /// Returns the settings of an agent that is defined in a file. Prints a note if the model that it requests cannot
    /// be used.
    fn of_agent(
        flags: &AgentFlags,
        kept: &str,
        name: &str,
        typed_tools: Option<&str>,
        config: &Config,
    ) -> Result<Self, CommandError> {
        let listing = config.agent_files().listing();
        let Some(found) = listing.agents.iter().find(|listed| *listed.item.name == *name) else {
            if let Some(waiting) = listing.waiting(AgentFileKind::Agent, name) {
                return Err(usage(format!("the agent `{name}` waits for {}", trusting(&waiting.path))));
            }
            let near = nearest_name(name, listing.agents.iter().map(|listed| &*listed.item.name));
            let advice = near.map_or("`toolstead agents` lists them".into(), |near| format!("did you mean `{near}`?"));
            return Err(usage(format!("there is no agent `{name}`; {advice}")));
        };
        let agent = &found.item;
        let by_strength = |model: &String| match model.as_str() {
            "weak" => config.agent.weak_model.clone(),
            "strong" => config.agent.strong_model.clone(),
            _ => None,
        };
        let model = agent.model.as_ref().map(|model| by_strength(model).unwrap_or_else(|| model.clone()));
        let model = model.filter(|model| match config.model(Some(model)) {
            Ok(_) => true,
            Err(_) if flags.model.is_some() => false,
            Err(error) => {
                note(&format!("note: the agent `{name}` requests another model; the default model is used: {error}"));
                false
            }
        });
        let chosen = match typed_tools {
            None => agent.tools.clone(),
            Some(typed) => agent.tools.clone().adjusted(typed).map_err(usage)?,
        };
        let system = flags.system.as_deref().map(prompt_args::read_text_or_file).transpose()?;
        Ok(Self {
            profile: Some(kept.to_owned()),
            model,
            max_turns: agent.max_turns,
            system: Some(system.unwrap_or_else(|| agent.prompt.clone())).filter(|prompt| !prompt.is_empty()),
            view: None,
            chosen: Some(chosen),
            has_no_tools: false,
        })
    }
}

fn usage(error: impl ToString) -> CommandError {
    CommandError::Usage(error.to_string())
}

impl PreparedAgent {
    /// Builds the agent. Configuration errors are returned before anything is started. Ctrl-C ends the wait for
    /// required servers.
    pub(super) async fn build(
        flags: &AgentFlags,
        global: &GlobalFlags,
        shutdown: &mut ShutdownListener,
    ) -> Result<Self, CommandError> {
        let config = global.load()?;
        let manner = ConversationProfile::of(flags, flags.named().as_deref(), global.typed_tools(), &config)?;
        let model = flags.model.clone().or(manner.model.clone());
        config.model(model.as_deref()).map_err(usage)?;
        let budgets = flags.budgets(&config.agent, manner.max_turns);
        let terminal = Terminal::of_process();
        let shows_progress = io::stderr().is_terminal() && !global.json && !global.is_quiet();
        let composition = tokio::select! {
            composition = global.compose_for_agent(config, terminal.clone()) => composition?,
            () = shutdown.requested() => {
                return Err(CommandError::Call(ExecuteToolError::Cancelled(CancelReason::Client)));
            }
        };
        match composition.app.models.find(model.as_deref()) {
            Ok(model) => Ok(Self { composition, model, terminal, shows_progress, manner, budgets }),
            Err(error) => {
                composition.close().await;
                Err(usage(error))
            }
        }
    }

    /// Switches to the stored profile of a conversation that is resumed, unless the flags select another one.
    pub(super) fn take_up(
        &mut self,
        conversation: &Conversation,
        flags: &AgentFlags,
        global: &GlobalFlags,
    ) -> Result<(), CommandError> {
        let Some(profile) = conversation.profile.as_deref().filter(|_| flags.named().is_none()) else { return Ok(()) };
        let config = &self.composition.config;
        let manner = ConversationProfile::of(flags, Some(profile), global.typed_tools(), config)?;
        if let Some(model) = manner.model.as_deref().filter(|_| flags.model.is_none()) {
            self.model = self.composition.app.models.find(Some(model)).map_err(usage)?;
        }
        self.budgets = flags.budgets(&config.agent, manner.max_turns);
        self.manner = manner;
        Ok(())
    }

    /// Returns the scope for calls of the conversation: its principal, its session, the view that the profile names, and
    /// within it the restricted view of the profile.
    pub(super) fn scope(&self, conversation: ConversationId) -> RequestScope {
        let app = &self.composition.app;
        let scope = app.scope(Principal::local(), conversation.session());
        let scope = match &self.manner.view {
            // The configuration was checked, so the view exists. Without it, no tool is offered.
            Some(name) => {
                let nothing = || self.restricted_view(name, &ToolSelection::only([""; 0]));
                scope.through(app.view(name).cloned().unwrap_or_else(|_| nothing()))
            }
            None => scope,
        };
        match (&self.manner.chosen, &self.manner.profile) {
            (Some(chosen), Some(profile)) => scope.narrowed_to(self.restricted_view(profile, chosen)),
            _ => scope,
        }
    }

    fn restricted_view(&self, profile: &str, chosen: &ToolSelection) -> Arc<View> {
        restricted_view(&self.composition.app, format!("profile-{profile}"), chosen.clone())
    }

    /// Returns the description of this process as a client.
    pub(super) fn client(&self) -> Arc<ClientProfile> {
        Arc::new(ClientProfile {
            log_level: Some(LogLevel::Warning),
            capabilities: self.terminal.as_ref().map(|_| TerminalQuestions::capabilities()).unwrap_or_default(),
            ..ClientProfile::without_protocol(concat!("toolstead-cli ", env!("CARGO_PKG_VERSION")))
        })
    }

    /// Returns the caller that represents the user.
    pub(super) fn caller(&self) -> Arc<dyn Caller> {
        let patience = self.composition.config.permissions.approval_timeout;
        let questions = self.terminal.clone().map(|terminal| {
            TerminalQuestions::new(terminal, patience).opening(auth::browser(&self.composition.config))
        });
        let messages = ToolMessagePrinter::for_terminal(self.terminal.clone());
        Arc::new(TerminalCaller { questions, messages, wants_progress: self.shows_progress })
    }

    /// Returns the tools that are offered to the model.
    pub(super) fn offered(&self) -> OfferedTools {
        match &self.manner.chosen {
            _ if self.manner.has_no_tools => OfferedTools::Nothing,
            Some(chosen) => OfferedTools::Chosen(chosen.clone()),
            None => OfferedTools::Listed,
        }
    }

    /// Returns the model that writes summaries, if one is configured.
    pub(super) fn summarizer(&self) -> Result<Option<Arc<dyn ModelProvider>>, CommandError> {
        let app = &self.composition.app;
        let name = app.agent.settings.summarizer.as_deref();
        name.map(|name| app.models.find(Some(name))).transpose().map_err(usage)
    }

    /// Returns a note if the cost budget cannot be enforced.
    pub(super) fn unbounded_cost(&self) -> Option<String> {
        let name = self.model.name();
        (self.budgets.cost.is_some() && self.model.facts().prices.is_none()).then(|| {
            format!(
                "note: the cost has no bound: the prices of the model `{name}` are not known; `models.{name}.prices` says \
                 them"
            )
        })
    }

    /// Returns the command for the next turn of the conversation.
    pub(super) fn command(
        &self,
        conversation: ConversationId,
        prompt: Vec<Block>,
        cancel: CancelSignal,
    ) -> Result<RunAgentCommand, CommandError> {
        let app = &self.composition.app;
        if prompt.iter().any(|block| matches!(block, Block::Image(_))) && !self.model.facts().takes_images {
            return Err(CommandError::Usage(format!("the model `{}` takes no images", self.model.name())));
        }
        Ok(RunAgentCommand {
            prompt,
            conversation,
            model: self.model.clone(),
            summarizer: self.summarizer()?,
            system: app.agent.system(self.manner.system.clone()),
            has_surroundings: true,
            budgets: self.budgets.clone(),
            compaction: app.agent.compaction(),
            scope: self.scope(conversation),
            offered: self.offered(),
            profile: self.manner.profile.clone(),
            client: self.client(),
            caller: self.caller(),
            cancel,
        })
    }

    /// Runs one turn and shows its events on the screen. Ctrl-C cancels the turn; pressing it again returns without
    /// waiting for the end.
    pub(super) async fn turn(
        &self,
        conversation: ConversationId,
        prompt: Vec<Block>,
        screen: &mut RunDisplay<'_>,
        shutdown: &mut ShutdownListener,
    ) -> Result<TurnOutcome, CommandError> {
        let cancel = CancelSignal::new();
        let command = self.command(conversation, prompt, cancel.clone())?;
        tokio::select! {
            () = self.composition.settled() => {}
            wish = shutdown.next_signal() => return Ok(TurnOutcome { end: None, should_exit: wish == ShutdownSignal::Terminate }),
        }
        screen.begin_input().await;
        let run = self.composition.app.run_agent.start(command);
        let turned = watch(run, &cancel, self.terminal.as_deref(), screen, shutdown).await;
        screen.end_input().await;
        turned
    }
}

/// Holds the terminal's turn while the user types, so that no question receives keys that are meant for the input line.
struct TerminalTypingLock<'t> {
    turn: MutexGuard<'t, ()>,
    until: Instant,
}

/// Shows the events of a run until it has ended, except while a question is open. Escape cancels the run, like Ctrl-C.
async fn watch(
    mut run: AgentRunHandle,
    cancel: &CancelSignal,
    terminal: Option<&Terminal>,
    screen: &mut RunDisplay<'_>,
    shutdown: &mut ShutdownListener,
) -> Result<TurnOutcome, CommandError> {
    let mut pending_events: VecDeque<AgentEvent> = VecDeque::new();
    let (mut turned, mut is_over) = (TurnOutcome { end: None, should_exit: false }, false);
    let mut typing: Option<TerminalTypingLock<'_>> = None;
    let mut ticks = interval(BETWEEN_TICKS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !(is_over && pending_events.is_empty()) {
        // `None` if there is no terminal or this function already holds its turn.
        let needed = terminal.filter(|_| typing.is_none());
        let free = async {
            match needed {
                Some(terminal) => Some(terminal.quiet().await),
                None => None,
            }
        };
        let pause = typing.as_ref().map(|typing| typing.until);
        let paused = async {
            match pause {
                Some(until) => sleep_until(until.into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            // Events are not written into the middle of a question.
            turn = free, if !pending_events.is_empty() => {
                for event in pending_events.drain(..) {
                    screen.show_event(&event)?;
                }
                drop(turn);
            }
            event = run.next(), if !is_over => match event {
                Some(event) => {
                    if let AgentEvent::Ended { .. } = &event {
                        turned.end = Some(event.clone());
                    }
                    pending_events.push_back(event);
                }
                None => is_over = true,
            },
            wish = shutdown.next_signal() => {
                turned.should_exit |= wish == ShutdownSignal::Terminate;
                match cancel.reason() {
                    None => cancel.cancel(CancelReason::Client),
                    Some(_) => return Ok(turned),
                }
            }
            (keys, turn) = screen.keys(needed) => {
                if screen.typed(&keys) && cancel.reason().is_none() {
                    cancel.cancel(CancelReason::Client);
                }
                let turn = turn.or_else(|| typing.take().map(|typing| typing.turn));
                let until = Instant::now() + PAUSE;
                typing = turn.filter(|_| screen.has_draft()).map(|turn| TerminalTypingLock { turn, until });
            }
            () = paused => typing = None,
            _ = ticks.tick() => {
                let turn = needed.map(Terminal::quiet_now);
                if !matches!(turn, Some(None)) {
                    screen.tick()?;
                }
            }
        }
    }
    Ok(turned)
}

/// Result of a turn.
#[derive(Debug)]
pub(super) struct TurnOutcome {
    /// Last event; `None` if the turn was abandoned before its end.
    pub(super) end: Option<AgentEvent>,
    /// `true` if the process should exit.
    pub(super) should_exit: bool,
}

/// Returns the exit of a command whose run had this outcome.
pub(super) fn exit(outcome: &AgentOutcome) -> Exit {
    match outcome {
        AgentOutcome::Finished => Exit::Done,
        AgentOutcome::Cancelled => Exit::Reported(ErrorKind::Cancelled),
        AgentOutcome::BudgetExhausted(_) => Exit::Reported(ErrorKind::BudgetExhausted),
        AgentOutcome::Waiting(_) => Exit::Waiting,
        AgentOutcome::Stopped(_) => Exit::Reported(ErrorKind::PermissionDenied),
        AgentOutcome::Failed { kind, .. } => Exit::Reported(*kind),
        // The loop detector stopped the run, or the outcome is not known here.
        _ => Exit::Reported(ErrorKind::ExecutionFailed),
    }
}

/// Returns the usage of a run, and the flag that continues its conversation.
pub(super) fn summary(end: &AgentEvent, conversation: ConversationId) -> Option<String> {
    let AgentEvent::Ended { usage, cost, calls, turns, .. } = end else { return None };
    Some(format!("{}; `--conversation {conversation}` continues it", figures(*calls, *turns, *usage, *cost)))
}

/// The user who watches a run: sees warnings of tools and answers their questions. Progress is shown from the events of
/// the run.
struct TerminalCaller {
    questions: Option<TerminalQuestions>,
    messages: ToolMessagePrinter,
    wants_progress: bool,
}

#[async_trait]
impl Caller for TerminalCaller {
    fn wants_progress(&self) -> bool {
        self.wants_progress
    }

    fn progress(&self, _: Progress) {}

    fn log(&self, message: LogMessage) {
        if message.level >= LogLevel::Warning {
            let data = message.data.as_str().map_or_else(|| message.data.to_string(), str::to_owned);
            // Shown in this form because an error reported by a tool is not an error of the run.
            self.messages.print(opened(&format!("a tool says ({}):", message.level.as_str()), &data));
        }
    }

    fn elicitation_completed(&self, _: &str) {
        if self.questions.is_some() {
            self.messages.print("the page is complete".into());
        }
    }

    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        match &self.questions {
            Some(questions) => questions.ask(request).await,
            None => Err(NotAnswered::Unsupported),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::BudgetKind;

    #[test]
    fn the_exit_code_says_how_a_run_ended() {
        let failed = |kind| AgentOutcome::Failed { kind, message: "x".into() };
        for (outcome, code) in [
            (AgentOutcome::Finished, 0),
            (AgentOutcome::Cancelled, 5),
            (AgentOutcome::BudgetExhausted(BudgetKind::Cost), 6),
            (AgentOutcome::Stopped("x".into()), 3),
            (AgentOutcome::Looping("x".into()), 1),
            (AgentOutcome::Waiting("q3".into()), 7),
            (failed(ErrorKind::Unavailable), 4),
            (failed(ErrorKind::AuthRequired), 1),
            (failed(ErrorKind::Internal), 70),
        ] {
            assert_eq!(exit(&outcome).code(), code, "{outcome:?}");
        }
    }

    #[test]
    fn a_cost_is_a_number_of_dollars() {
        assert_eq!(dollars("0.5"), Ok(0.5));
        assert_eq!(dollars("$2"), Ok(2.0));
        for wrong in ["", "-1", "NaN", "inf", "1 EUR"] {
            assert!(dollars(wrong).is_err(), "{wrong}");
        }
    }
}
