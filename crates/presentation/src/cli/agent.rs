//! An agent at the command line: its flags, what it is put together of, and one run of it, which somebody watches.

use super::{
    asides::Asides,
    asked_prompt, auth,
    config::trusting,
    exit::{Exit, Failed},
    global::Global,
    narration::{figures, opened},
    output::note,
    screen::Screen,
    terminal::Terminal,
    terminal_questions::TerminalQuestions,
};
use crate::{
    composition_root::Composition,
    config::{Config, agent::AgentSettings, agent_files::Kind},
    query::window,
    shutdown::{Shutdown, Wish},
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
use toolstead_application::{
    cancel_signal::CancelSignal,
    execute_tool::ExecuteToolError,
    run_agent::{AgentRun, OfferedTools, RunAgentCommand},
};
use toolstead_domain::{
    agent::{
        budget::Budgets,
        event::{AgentEvent, AgentOutcome},
    },
    client_profile::{ClientProfile, LogLevel},
    conversation::{Conversation, ConversationId},
    error_kind::ErrorKind,
    model::message::Block,
    ports::{
        caller::{Caller, InputRequest, InputResponse, LogMessage, NotAnswered, Progress},
        model_provider::ModelProvider,
    },
    principal::Principal,
    scope::{Scope, View},
    tool_execution::CancelReason,
    tool_input_schema::nearest_name,
    tool_selection::ToolSelection,
};
use toolstead_infrastructure::dialects;

/// Time between two looks at the running calls.
const BETWEEN_TICKS: Duration = Duration::from_secs(1);
/// Time without a key after which a question may open although the input line holds a text.
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
    /// The agent that somebody wrote down: instructions, tools and a model (`toolstead agents` lists them)
    #[arg(long, value_name = "NAME", conflicts_with = "profile")]
    agent: Option<String>,
    /// Instructions that stand before everything, instead of those of the profile or of `[agent]`
    #[arg(long, value_name = "TEXT|@FILE")]
    system: Option<String>,
    /// Calls of tools that a run may make
    #[arg(long, value_name = "N")]
    max_calls: Option<u64>,
    /// Answers of the model that a run may take
    #[arg(long, value_name = "N")]
    max_turns: Option<u64>,
    /// Tokens that a run may take, in and out
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// US dollars that a run may cost, where the prices of the model are known
    #[arg(long, value_name = "USD", value_parser = dollars)]
    max_cost: Option<f64>,
    /// Seconds that a run may take
    #[arg(long, value_name = "S")]
    max_seconds: Option<u64>,
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(cost) if cost.is_finite() && cost >= 0.0 => Ok(cost),
        _ => Err("give a number of US dollars, such as 0.50".into()),
    }
}

/// The text before the name of an agent where a conversation keeps the name of its profile.
const OF_AGENT: &str = "agent:";

impl AgentFlags {
    /// The manner that was named: a profile, or an agent, whose name then stands behind [`OF_AGENT`].
    fn named(&self) -> Option<String> {
        let agent = self.agent.as_ref().map(|name| format!("{OF_AGENT}{name}"));
        agent.or_else(|| self.profile.clone())
    }

    /// The bounds: those that were typed, else the configured ones and that of the agent.
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

/// An agent that is ready to be asked.
pub(super) struct Agent {
    /// The application that it works in.
    pub(super) composition: Composition,
    /// The model that is asked next.
    pub(super) model: Arc<dyn ModelProvider>,
    /// The terminal of the user, if there is one.
    pub(super) terminal: Option<Arc<Terminal>>,
    /// Progress of calls is shown.
    shows_progress: bool,
    manner: Manner,
    budgets: Budgets,
}

/// Its settings, which stay the same throughout a conversation.
#[derive(Debug, Clone, PartialEq)]
struct Manner {
    profile: Option<String>,
    /// The model of the profile.
    model: Option<String>,
    /// The most answers of the model.
    max_turns: Option<u64>,
    system: Option<String>,
    /// The tools of the profile, with what was typed; `None`: those of the configuration.
    chosen: Option<ToolSelection>,
    has_no_tools: bool,
}

impl Manner {
    fn of(
        flags: &AgentFlags,
        profile: Option<&str>,
        typed_tools: Option<&str>,
        config: &Config,
    ) -> Result<Self, Failed> {
        if let Some((kept, name)) = profile.and_then(|kept| Some((kept, kept.strip_prefix(OF_AGENT)?))) {
            return Self::of_agent(flags, kept, name, typed_tools, config);
        }
        let profile = profile.map(|name| config.profile(name)).transpose().map_err(usage)?;
        let chosen = match profile {
            Some(profile) => profile.tools_with(typed_tools).map_err(usage)?,
            None => None,
        };
        let system = match &flags.system {
            Some(text) => Some(asked_prompt::given(text)?),
            None => profile.map(|profile| profile.prompt.clone()).filter(|prompt| !prompt.is_empty()),
        };
        // As its people know it: there an agent has the tools that somebody names, and else none.
        let is_bare = config.dialect == Some(dialects::CLAI) && config.selection == ToolSelection::all();
        let has_no_tools = match (&chosen, typed_tools) {
            (None, Some(typed)) => typed.trim().is_empty(),
            (None, None) => is_bare,
            (Some(_), _) => false,
        };
        let model = profile.and_then(|profile| profile.model.clone());
        let profile = profile.map(|profile| profile.name.clone());
        Ok(Self { profile, model, max_turns: None, system, chosen, has_no_tools })
    }

    /// As an agent that somebody wrote down.
    fn of_agent(
        flags: &AgentFlags,
        kept: &str,
        name: &str,
        typed_tools: Option<&str>,
        config: &Config,
    ) -> Result<Self, Failed> {
        let listing = config.agent_files().listing();
        let Some(found) = listing.agents.iter().find(|listed| *listed.item.name == *name) else {
            if let Some(waiting) = listing.waiting(Kind::Agent, name) {
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
                note(&format!("note: the agent `{name}` asks for another model, and the default one answers: {error}"));
                false
            }
        });
        let chosen = match typed_tools {
            None => agent.tools.clone(),
            Some(typed) => agent.tools.clone().adjusted(typed).map_err(usage)?,
        };
        let system = flags.system.as_deref().map(asked_prompt::given).transpose()?;
        Ok(Self {
            profile: Some(kept.to_owned()),
            model,
            max_turns: agent.max_turns,
            system: Some(system.unwrap_or_else(|| agent.prompt.clone())).filter(|prompt| !prompt.is_empty()),
            chosen: Some(chosen),
            has_no_tools: false,
        })
    }
}

fn usage(error: impl ToString) -> Failed {
    Failed::Usage(error.to_string())
}

impl Agent {
    /// Puts it together. What the configuration cannot give is told before anything is started.
    /// Ctrl-C ends the wait for servers that are required.
    pub(super) async fn put_together(
        flags: &AgentFlags,
        global: &Global,
        shutdown: &mut Shutdown,
    ) -> Result<Self, Failed> {
        let config = global.load()?;
        let manner = Manner::of(flags, flags.named().as_deref(), global.typed_tools(), &config)?;
        let model = flags.model.clone().or(manner.model.clone());
        config.model(model.as_deref()).map_err(usage)?;
        let budgets = flags.budgets(&config.agent, manner.max_turns);
        let terminal = Terminal::of_process();
        let shows_progress = io::stderr().is_terminal() && !global.json && !global.is_quiet();
        let composition = tokio::select! {
            composition = global.compose_for_agent(config, terminal.clone()) => composition?,
            () = shutdown.requested() => {
                return Err(Failed::Call(ExecuteToolError::Cancelled(CancelReason::Client)));
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

    /// Goes on as the conversation began: with its profile, unless another one was named.
    pub(super) fn take_up(
        &mut self,
        conversation: &Conversation,
        flags: &AgentFlags,
        global: &Global,
    ) -> Result<(), Failed> {
        let Some(profile) = conversation.profile.as_deref().filter(|_| flags.named().is_none()) else { return Ok(()) };
        let config = &self.composition.config;
        let manner = Manner::of(flags, Some(profile), global.typed_tools(), config)?;
        if let Some(model) = manner.model.as_deref().filter(|_| flags.model.is_none()) {
            self.model = self.composition.app.models.find(Some(model)).map_err(usage)?;
        }
        self.budgets = flags.budgets(&config.agent, manner.max_turns);
        self.manner = manner;
        Ok(())
    }

    /// On whose behalf and through which window calls of the conversation are made.
    pub(super) fn scope(&self, conversation: ConversationId) -> Scope {
        let app = &self.composition.app;
        let scope = app.scope(Principal::local(), conversation.session());
        match (&self.manner.chosen, &self.manner.profile) {
            (Some(chosen), Some(profile)) => scope.through(self.window(profile, chosen)),
            _ => scope,
        }
    }

    fn window(&self, profile: &str, chosen: &ToolSelection) -> Arc<View> {
        window(&self.composition.app, format!("profile-{profile}"), chosen.clone())
    }

    /// What this process is to tools that ask.
    pub(super) fn client(&self) -> Arc<ClientProfile> {
        Arc::new(ClientProfile {
            log_level: Some(LogLevel::Warning),
            capabilities: self.terminal.as_ref().map(|_| TerminalQuestions::capabilities()).unwrap_or_default(),
            ..ClientProfile::without_protocol(concat!("toolstead-cli ", env!("CARGO_PKG_VERSION")))
        })
    }

    /// The person there.
    pub(super) fn caller(&self) -> Arc<dyn Caller> {
        let patience = self.composition.config.approval_timeout;
        let questions = self.terminal.clone().map(|terminal| {
            TerminalQuestions::new(terminal, patience).opening(auth::browser(&self.composition.config))
        });
        let asides = Asides::beside(self.terminal.clone());
        Arc::new(Onlooker { questions, asides, wants_progress: self.shows_progress })
    }

    /// The tools that the model is told of.
    pub(super) fn offered(&self) -> OfferedTools {
        match &self.manner.chosen {
            _ if self.manner.has_no_tools => OfferedTools::Nothing,
            Some(chosen) => OfferedTools::Chosen(chosen.clone()),
            None => OfferedTools::Listed,
        }
    }

    /// The model that writes summaries, if it is another one.
    pub(super) fn summarizer(&self) -> Result<Option<Arc<dyn ModelProvider>>, Failed> {
        let app = &self.composition.app;
        let name = app.agent.settings.summarizer.as_deref();
        name.map(|name| app.models.find(Some(name))).transpose().map_err(usage)
    }

    /// A bound that cannot hold, for the person to know.
    pub(super) fn unbounded_cost(&self) -> Option<String> {
        let name = self.model.name();
        (self.budgets.cost.is_some() && self.model.facts().prices.is_none()).then(|| {
            format!(
                "note: the cost has no bound: the prices of the model `{name}` are not known; `models.{name}.prices` says \
                 them"
            )
        })
    }

    /// A command for the next turn of the conversation.
    pub(super) fn command(
        &self,
        conversation: ConversationId,
        prompt: Vec<Block>,
        cancel: CancelSignal,
    ) -> Result<RunAgentCommand, Failed> {
        let Composition { app, config, .. } = &self.composition;
        if prompt.iter().any(|block| matches!(block, Block::Image(_))) && !self.model.facts().takes_images {
            return Err(Failed::Usage(format!("the model `{}` takes no images", self.model.name())));
        }
        Ok(RunAgentCommand {
            prompt,
            conversation,
            model: self.model.clone(),
            summarizer: self.summarizer()?,
            system: app.agent.system(self.manner.system.clone(), config.workspace()),
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

    /// One turn, which is told on the screen as it goes. Ctrl-C takes it back; a second one does not wait for its end.
    pub(super) async fn turn(
        &self,
        conversation: ConversationId,
        prompt: Vec<Block>,
        screen: &mut Screen<'_>,
        shutdown: &mut Shutdown,
    ) -> Result<Turned, Failed> {
        let cancel = CancelSignal::new();
        let command = self.command(conversation, prompt, cancel.clone())?;
        tokio::select! {
            () = self.composition.settled() => {}
            wish = shutdown.wish() => return Ok(Turned { end: None, leaves: wish == Wish::End }),
        }
        screen.begin_input().await;
        let run = self.composition.app.run_agent.start(command);
        let turned = watch(run, &cancel, self.terminal.as_deref(), screen, shutdown).await;
        screen.end_input().await;
        turned
    }
}

/// The turn on the terminal while the user types, so that no question takes keys that are meant for the input line.
struct PendingInput<'t> {
    turn: MutexGuard<'t, ()>,
    until: Instant,
}

/// Shows the events of a run until it is over, but none while a question is open. Escape cancels the run as Ctrl-C does.
async fn watch(
    mut run: AgentRun,
    cancel: &CancelSignal,
    terminal: Option<&Terminal>,
    screen: &mut Screen<'_>,
    shutdown: &mut Shutdown,
) -> Result<Turned, Failed> {
    let mut untold: VecDeque<AgentEvent> = VecDeque::new();
    let (mut turned, mut is_over) = (Turned { end: None, leaves: false }, false);
    let mut typing: Option<PendingInput<'_>> = None;
    let mut ticks = interval(BETWEEN_TICKS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !(is_over && untold.is_empty()) {
        // `None` without a terminal, or if this function has the turn already.
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
            // Nothing is written into the middle of a question.
            turn = free, if !untold.is_empty() => {
                for event in untold.drain(..) {
                    screen.tell(&event)?;
                }
                drop(turn);
            }
            event = run.next(), if !is_over => match event {
                Some(event) => {
                    if let AgentEvent::Ended { .. } = &event {
                        turned.end = Some(event.clone());
                    }
                    untold.push_back(event);
                }
                None => is_over = true,
            },
            wish = shutdown.wish() => {
                turned.leaves |= wish == Wish::End;
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
                typing = turn.filter(|_| screen.has_draft()).map(|turn| PendingInput { turn, until });
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

/// A turn that was watched.
#[derive(Debug)]
pub(super) struct Turned {
    /// The last event; `None`: it was not waited for.
    pub(super) end: Option<AgentEvent>,
    /// The program is to end.
    pub(super) leaves: bool,
}

/// The end of a command whose run ended so.
pub(super) fn exit(outcome: &AgentOutcome) -> Exit {
    match outcome {
        AgentOutcome::Finished => Exit::Done,
        AgentOutcome::Cancelled => Exit::Told(ErrorKind::Cancelled),
        AgentOutcome::BudgetExhausted(_) => Exit::Told(ErrorKind::BudgetExhausted),
        AgentOutcome::Waiting(_) => Exit::Waiting,
        AgentOutcome::Stopped(_) => Exit::Told(ErrorKind::PermissionDenied),
        AgentOutcome::Failed { kind, .. } => Exit::Told(*kind),
        // It went round in a circle, or something that is not known here.
        _ => Exit::Told(ErrorKind::ExecutionFailed),
    }
}

/// What a run took, and how its conversation goes on.
pub(super) fn summary(end: &AgentEvent, conversation: ConversationId) -> Option<String> {
    let AgentEvent::Ended { usage, cost, calls, turns, .. } = end else { return None };
    Some(format!("{}; `--conversation {conversation}` goes on", figures(*calls, *turns, *usage, *cost)))
}

/// The person who looks on: warnings of tools are told, and their questions are asked. Progress comes as events of the run.
struct Onlooker {
    questions: Option<TerminalQuestions>,
    asides: Asides,
    wants_progress: bool,
}

#[async_trait]
impl Caller for Onlooker {
    fn wants_progress(&self) -> bool {
        self.wants_progress
    }

    fn progress(&self, _: Progress) {}

    fn log(&self, message: LogMessage) {
        if message.level >= LogLevel::Warning {
            let data = message.data.as_str().map_or_else(|| message.data.to_string(), str::to_owned);
            // In other words than ours: what it calls an error is none of the run.
            self.asides.tell(opened(&format!("a tool says ({}):", message.level.as_str()), &data));
        }
    }

    fn elicitation_completed(&self, _: &str) {
        if self.questions.is_some() {
            self.asides.tell("the page is done".into());
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
    use toolstead_domain::agent::budget::Budget;

    #[test]
    fn the_exit_code_says_how_a_run_ended() {
        let failed = |kind| AgentOutcome::Failed { kind, message: "x".into() };
        for (outcome, code) in [
            (AgentOutcome::Finished, 0),
            (AgentOutcome::Cancelled, 5),
            (AgentOutcome::BudgetExhausted(Budget::Cost), 6),
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
