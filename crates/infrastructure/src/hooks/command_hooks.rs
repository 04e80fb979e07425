//! All configured hooks as one hook of the call path.

use super::{
    answer::{HookAnswer, HookDecision, as_result},
    definition::{FailurePolicy, HookDefinition, HookEvent, HookProgram},
    dialect_names::DialectCallNames,
    input::{HookPayload, input},
    text::clean,
};
use crate::sandbox::{
    launcher::{ChildInput, LaunchSpec, Launcher},
    unconfined_run::{self, RunOutcome, RunResult},
};
use async_trait::async_trait;
use futures::future::join_all;
use serde_json::Value;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{sync::Semaphore, task::JoinSet, time::timeout};
use toolstead_domain::{
    Access, AdditionalContext, AfterCallResponse, BeforeCallResponse, EndedCall, HookTimeout, HookVerdict,
    PermissionMode, SandboxPolicy, ToolCall, ToolHook, ToolResult, WorkspaceRoots,
};

/// Maximum number of sessions to remember, so that each begins once. Older ones are forgotten.
const MAX_SESSIONS: usize = 1_000;
/// Maximum number of hooks that run in the background at once.
const MAX_IN_BACKGROUND: usize = 64;
/// Timeout of all `SessionEnd` hooks together.
const TIME_FOR_ENDS: Duration = Duration::from_secs(2);
/// Time that the call path waits in addition to the longest hook timeout.
const SLACK: Duration = Duration::from_secs(2);

/// Environment in which hooks run.
#[derive(Debug, Clone)]
pub struct HookSurroundings {
    /// Working folder of hooks without one of their own, and base of relative paths in calls.
    pub start: PathBuf,
    /// Workspace roots for the `if` of hooks.
    pub roots: WorkspaceRoots,
    /// Permission mode, which is part of the hooks' input.
    pub mode: PermissionMode,
    /// Environment variables of every hook, in addition to those of the hook contract.
    pub environment: BTreeMap<String, String>,
    /// Shell for hooks that are a command line.
    pub shell: String,
    /// Maximum number of hooks that run at once.
    pub concurrency: usize,
}

/// Runner of the configured hooks. Hooks of one event run in parallel; their answers are in the order of the
/// configuration.
pub struct CommandHooks {
    definitions: Arc<[HookDefinition]>,
    surroundings: Arc<HookSurroundings>,
    launcher: Launcher,
    turns: Arc<Semaphore>,
    sessions: Mutex<VecDeque<Arc<str>>>,
    background: Mutex<JoinSet<()>>,
}

/// A hook and its outcome for one event, even if it did not run.
#[derive(Debug)]
pub struct HookWithOutcome {
    /// Hook that the report is about.
    pub hook: HookDefinition,
    /// Outcome of the hook.
    pub outcome: HookOutcome,
}

/// Outcome of a hook, even if it did not run.
#[derive(Debug)]
pub enum HookOutcome {
    /// The matcher of the hook excludes the tool, the agent or the kind of event.
    NotMatched,
    /// The `if` of the hook excludes this call.
    NotFiltered,
    /// The hook was started in the background, or skipped because too many run there.
    InBackground,
    /// The hook ran, exceeded its timeout, or could not be started.
    Ran {
        /// Exit status as text, or the reason why there is none.
        end: String,
        /// Duration of the run.
        took: Duration,
        /// Standard output, cleaned and truncated.
        stdout: String,
        /// Standard error, cleaned and truncated.
        stderr: String,
        /// Parsed answer.
        answer: Box<HookAnswer>,
    },
}

/// Reports of an event's hooks for a call that was not made.
#[derive(Debug)]
pub struct HookRehearsalReport {
    /// Reports of all hooks of the event.
    pub reports: Vec<HookWithOutcome>,
    /// Combined verdict. Always `Continue` for events after a call.
    pub verdict: HookVerdict,
    /// Combined effect of all hooks, as text.
    pub together: String,
}

impl CommandHooks {
    /// Creates hooks that are started by this launcher.
    pub fn new(definitions: Vec<HookDefinition>, surroundings: HookSurroundings, launcher: Launcher) -> Arc<Self> {
        Arc::new(Self {
            definitions: definitions.into(),
            turns: Arc::new(Semaphore::new(surroundings.concurrency.max(1))),
            surroundings: Arc::new(surroundings),
            launcher,
            sessions: Mutex::default(),
            background: Mutex::default(),
        })
    }

    /// Runs the `SessionEnd` hooks of every remembered session, for two seconds at most, then kills hooks in the
    /// background. Forgets the sessions.
    pub async fn close(&self) {
        let sessions = std::mem::take(&mut *self.sessions.lock().unwrap_or_else(PoisonError::into_inner));
        let ends = sessions.iter().map(|session| self.run(HookPayload::Session(HookEvent::SessionEnd, session)));
        if timeout(TIME_FOR_ENDS, join_all(ends)).await.is_err() {
            tracing::warn!("killed hooks that exceeded their time at the end of a session");
        }
        self.background.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    /// Runs the hooks of an event as they would run for a real call, and reports on each of them and on their combined
    /// effect. `ended` has the result of the call, for events after it.
    pub async fn rehearse(&self, event: HookEvent, call: &ToolCall, ended: EndedCall<'_>) -> HookRehearsalReport {
        let occasion = match event {
            HookEvent::PreToolUse | HookEvent::PermissionRequest => HookPayload::Call(event, call, ended.accesses),
            HookEvent::SessionStart | HookEvent::SessionEnd => HookPayload::Session(event, &call.session),
            _ => HookPayload::Ended(event, call, ended),
        };
        let reports = self.run(occasion).await;
        let (verdict, together) = match event {
            HookEvent::PreToolUse | HookEvent::PermissionRequest => {
                let answer = combined(&reports, call);
                let description = describe_before_call(&answer);
                (answer.verdict, description)
            }
            _ => (HookVerdict::Continue, describe_after_call(&after(&reports))),
        };
        HookRehearsalReport { reports, verdict, together }
    }

    /// Runs the `PermissionRequest` hooks. Returns the strictest decision with the name of its hook, and of several
    /// equally strict ones the first; `None` if no hook decides.
    pub(super) async fn decide_permission(
        &self,
        call: &ToolCall,
        accesses: &[Access],
    ) -> Option<(String, HookDecision)> {
        let reports = self.run(HookPayload::Call(HookEvent::PermissionRequest, call, Some(accesses))).await;
        let decided = |report: &HookWithOutcome| match &report.outcome {
            HookOutcome::Ran { answer, .. } => {
                let decision = match (&answer.fault, verdict(&report.hook, answer)) {
                    (Some(_), HookVerdict::Continue) => None,
                    // The user must be asked, and no other hook may answer instead.
                    (Some(_), verdict) => Some(HookDecision::Verdict(verdict)),
                    (None, _) => answer.decision.clone(),
                };
                Some((report.hook.name.clone(), decision?))
            }
            _ => None,
        };
        let mut decisions: Vec<_> = reports.iter().filter_map(decided).collect();
        decisions.sort_by_key(|(_, decision)| Reverse(decision.strictness()));
        decisions.into_iter().next()
    }

    fn has(&self, event: HookEvent) -> bool {
        self.definitions.iter().any(|hook| hook.event == event)
    }

    /// Runs the matching hooks in parallel, and reports on every hook of the event.
    pub(super) async fn run(&self, occasion: HookPayload<'_>) -> Vec<HookWithOutcome> {
        let of_event: Vec<_> = self.definitions.iter().filter(|hook| hook.event == occasion.event()).collect();
        if of_event.is_empty() {
            return Vec::new();
        }
        let names = occasion.names();
        let surroundings = &self.surroundings;
        let input: Arc<[u8]> = input(occasion, surroundings.mode, &surroundings.start).to_string().into_bytes().into();
        let all = of_event.into_iter().map(|hook| {
            let (names, input) = (&names, input.clone());
            async move {
                let is_left_out = |filter: &super::filter::HookFilter| {
                    let chosen = |call: &ToolCall| filter.chooses(call, occasion.accesses(), &surroundings.roots);
                    occasion.call().is_some_and(|call| !chosen(call))
                };
                let is_chosen = names.is_empty() || hook.matcher.chooses(names.iter().copied());
                let outcome = if !is_chosen {
                    HookOutcome::NotMatched
                } else if hook.filter.as_ref().is_some_and(is_left_out) {
                    HookOutcome::NotFiltered
                } else if hook.in_background {
                    self.start_in_background(hook, occasion.session(), input);
                    HookOutcome::InBackground
                } else {
                    let one = self.prepare_run(hook, occasion.session());
                    let ran = one.run(&input).await;
                    let answer = HookAnswer::of(&ran, hook.event);
                    reported(ran, answer)
                };
                HookWithOutcome { hook: hook.clone(), outcome }
            }
        });
        join_all(all).await
    }

    fn prepare_run(&self, hook: &HookDefinition, session: &str) -> PreparedHookRun {
        PreparedHookRun {
            spec: spec(hook, &self.surroundings, session),
            launcher: self.launcher.clone(),
            turns: self.turns.clone(),
            at_most: hook.timeout,
        }
    }

    fn start_in_background(&self, hook: &HookDefinition, session: &str, input: Arc<[u8]>) {
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        while background.try_join_next().is_some() {}
        if background.len() >= MAX_IN_BACKGROUND {
            tracing::warn!(hook = hook.name, "skipped the hook: {MAX_IN_BACKGROUND} already run in the background");
            return;
        }
        let one = self.prepare_run(hook, session);
        background.spawn(async move { drop(one.run(&input).await) });
    }

    /// Runs the `SessionStart` hooks if this is the first prompt or call of the session, and returns their reports;
    /// otherwise returns none.
    pub(super) async fn begin(&self, session: &Arc<str>) -> Vec<HookWithOutcome> {
        if !self.has(HookEvent::SessionStart) && !self.has(HookEvent::SessionEnd) {
            return Vec::new();
        }
        {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            if sessions.contains(session) {
                return Vec::new();
            }
            if sessions.len() == MAX_SESSIONS {
                sessions.pop_front();
            }
            sessions.push_back(session.clone());
        }
        self.run(HookPayload::Session(HookEvent::SessionStart, session)).await
    }
}

/// Prepared run of a hook. Owns all its data.
struct PreparedHookRun {
    spec: LaunchSpec,
    launcher: Launcher,
    turns: Arc<Semaphore>,
    at_most: Duration,
}

impl PreparedHookRun {
    /// Waits for a free slot, within the hook's timeout, and runs the hook.
    async fn run(self, input: &[u8]) -> RunResult {
        let began = Instant::now();
        let late = |took| RunResult {
            end: RunOutcome::TimedOut,
            stdout: Default::default(),
            stderr: Default::default(),
            duration: took,
        };
        match timeout(self.at_most, self.turns.acquire()).await {
            Ok(Ok(_turn)) => {
                let left = self.at_most.saturating_sub(began.elapsed());
                unconfined_run::run(&self.launcher, self.spec, input, left).await
            }
            Ok(Err(_)) | Err(_) => late(began.elapsed()),
        }
    }
}

fn spec(hook: &HookDefinition, surroundings: &HookSurroundings, session: &str) -> LaunchSpec {
    let working_dir = hook.start.as_ref().unwrap_or(&surroundings.start).clone();
    let start = working_dir.to_string_lossy().into_owned();
    let mut environment = surroundings.environment.clone();
    environment.extend(hook.environment.clone());
    environment.extend([
        ("CLAUDE_PROJECT_DIR".to_owned(), start.clone()),
        ("TOOLSTEAD_PROJECT_DIR".to_owned(), start),
        ("TOOLSTEAD_HOOK_EVENT".to_owned(), hook.event.as_str().to_owned()),
        ("TOOLSTEAD_SESSION_ID".to_owned(), session.to_owned()),
    ]);
    let (program, args) = match &hook.program {
        HookProgram::Shell(line) => (surroundings.shell.clone(), vec!["-c".to_owned(), line.clone()]),
        HookProgram::Direct(program, arguments) => (program.clone(), arguments.clone()),
    };
    LaunchSpec { program, args, working_dir, input: ChildInput::Pipe, policy: SandboxPolicy::open(environment) }
}

fn reported(ran: RunResult, answer: HookAnswer) -> HookOutcome {
    let end = match &ran.end {
        RunOutcome::Exited(exit) => exit.to_string(),
        RunOutcome::TimedOut => "it exceeded its timeout and was killed".into(),
        RunOutcome::NotStarted(reason) => format!("it was not started: {reason}"),
    };
    let (stdout, stderr) = (clean(&ran.stdout.text()), clean(&ran.stderr.text()));
    HookOutcome::Ran { end, took: ran.duration, stdout, stderr, answer: Box::new(answer) }
}

/// Returns the verdict of a hook before a call, according to its configuration for faults and missing answers.
pub(super) fn verdict(hook: &HookDefinition, answer: &HookAnswer) -> HookVerdict {
    let broken = |what: String| match hook.on_error {
        // A gate never opens because of a fault, however it is configured.
        FailurePolicy::Allow if hook.gate => HookVerdict::Deny(what),
        FailurePolicy::Allow => HookVerdict::Continue,
        FailurePolicy::Ask => HookVerdict::Ask(what),
        FailurePolicy::Deny => HookVerdict::Deny(what),
    };
    match (&answer.fault, &answer.decision) {
        (Some(fault), _) => broken(format!("the hook failed: {fault}")),
        (None, Some(HookDecision::Verdict(verdict))) => verdict.clone(),
        (None, Some(HookDecision::Allow)) => HookVerdict::Continue,
        (None, None) if hook.gate => broken("it is a gate and did not approve the call".into()),
        (None, None) => HookVerdict::Continue,
    }
}

/// Combines the answers of all hooks of one call: deny over defer over ask over allow. The first of the strictest
/// decides. Different replacements of the arguments count as a denial.
fn combined(reports: &[HookWithOutcome], call: &ToolCall) -> BeforeCallResponse {
    let mut whole = BeforeCallResponse::default();
    let names = DialectCallNames::of(call);
    let mut rewriter: Option<&str> = None;
    for HookWithOutcome { hook, outcome } in reports {
        let HookOutcome::Ran { answer, .. } = outcome else { continue };
        let mut verdict = verdict(hook, answer);
        if let Some(fault) = &answer.fault {
            tracing::warn!(hook = hook.name, fault, "the hook failed");
            whole.messages.push(format!("the hook `{}` failed: {fault}", hook.name));
        }
        if let Some(updated) = answer.updated_input.clone() {
            match names.to_canonical(updated) {
                Err(failure) => verdict = HookVerdict::Deny(format!("its arguments are invalid: {}", failure.text())),
                Ok(updated) if whole.arguments.as_ref().is_some_and(|others| *others != updated) => {
                    let other = rewriter.unwrap_or_default();
                    verdict = HookVerdict::Deny(format!("its arguments differ from those of the hook `{other}`"));
                }
                Ok(updated) => {
                    rewriter.get_or_insert(&hook.name);
                    whole.arguments = Some(updated);
                }
            }
        }
        whole.context.extend(answer.context.iter().map(|text| by(&hook.name, text)));
        whole.messages.extend(answer.message.iter().map(|text| format!("{}: {text}", hook.name)));
        if rank(&verdict) > rank(&whole.verdict) {
            whole.by = Some(hook.name.clone());
            whole.verdict = verdict;
        }
    }
    whole
}

fn by(hook: &str, text: &str) -> AdditionalContext {
    AdditionalContext { by: Some(hook.to_owned()), text: text.to_owned() }
}

fn rank(verdict: &HookVerdict) -> u8 {
    match verdict {
        HookVerdict::Continue => 0,
        HookVerdict::Ask(_) => 1,
        HookVerdict::Defer(_) => 2,
        HookVerdict::Deny(_) => 3,
    }
}

/// Combines the answers of all hooks after a call. Different replacements of the output are withheld.
pub(super) fn after(reports: &[HookWithOutcome]) -> AfterCallResponse {
    let mut whole = AfterCallResponse::default();
    for HookWithOutcome { hook, outcome } in reports {
        let HookOutcome::Ran { answer, .. } = outcome else { continue };
        let name = &hook.name;
        if let Some(fault) = &answer.fault {
            tracing::warn!(hook = name, fault, "the hook failed");
            whole.messages.push(format!("the hook `{name}` failed: {fault}"));
        }
        whole.context.extend(answer.objection().iter().map(|text| by(name, text)));
        whole.context.extend(answer.context.iter().map(|text| by(name, text)));
        whole.messages.extend(answer.message.iter().map(|text| format!("{name}: {text}")));
        if let Some(output) = answer.updated_output.clone().map(as_result) {
            let agreed = whole.output.as_ref().is_none_or(|other| *other == output);
            // Each hook received the original output, so using one replacement would restore what the other one
            // removed.
            let output = if agreed {
                output
            } else {
                ToolResult::text("[the output is withheld: two hooks replaced it differently]")
            };
            whole.by = Some(name.clone());
            whole.output = Some(output);
        }
    }
    whole
}

fn describe_before_call(answer: &BeforeCallResponse) -> String {
    let by = answer.by.as_deref().unwrap_or_default();
    let verdict = match &answer.verdict {
        HookVerdict::Continue => "continue: rules and defaults decide".to_owned(),
        HookVerdict::Ask(reason) => format!("ask ({by}): {reason}"),
        HookVerdict::Defer(reason) => format!("defer ({by}): {reason}"),
        HookVerdict::Deny(reason) => format!("deny ({by}): {reason}"),
    };
    let arguments = answer.arguments.as_ref().map(|arguments| Value::Object(arguments.clone()));
    describe(verdict, arguments.map(|arguments| format!("arguments: {arguments}")), &answer.context)
}

fn describe_after_call(answer: &AfterCallResponse) -> String {
    let output = answer.output.as_ref().map(|output| format!("output: {}", output.joined_text()));
    describe("nothing is changed".to_owned(), output, &answer.context)
}

fn describe(verdict: String, change: Option<String>, context: &[AdditionalContext]) -> String {
    let context = context.iter().map(|one| format!("context: {}", one.text));
    std::iter::once(verdict).chain(change).chain(context).collect::<Vec<_>>().join("\n")
}

#[async_trait]
impl ToolHook for CommandHooks {
    fn name(&self) -> &str {
        "configured"
    }

    fn timeout(&self) -> HookTimeout {
        let longest = |events: &[HookEvent]| {
            let hooks = self.definitions.iter().filter(|hook| events.contains(&hook.event));
            hooks.map(|hook| hook.timeout).max().unwrap_or_default()
        };
        HookTimeout {
            before: longest(&[HookEvent::SessionStart]) + longest(&[HookEvent::PreToolUse]) + SLACK,
            after: longest(&[HookEvent::PostToolUse, HookEvent::PostToolUseFailure, HookEvent::PermissionDenied])
                + SLACK,
        }
    }

    async fn before(&self, call: &ToolCall, accesses: Option<&[Access]>) -> BeforeCallResponse {
        let begun = self.begin(&call.session).await;
        let mut answer = combined(&self.run(HookPayload::Call(HookEvent::PreToolUse, call, accesses)).await, call);
        let AfterCallResponse { context, messages, .. } = after(&begun);
        answer.context.splice(0..0, context);
        answer.messages.splice(0..0, messages);
        answer
    }

    async fn after(&self, ended: EndedCall<'_>) -> AfterCallResponse {
        match HookPayload::of_end(ended) {
            Some(occasion) => after(&self.run(occasion).await),
            None => AfterCallResponse::default(),
        }
    }
}

impl std::fmt::Debug for CommandHooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandHooks").field("hooks", &self.definitions.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
