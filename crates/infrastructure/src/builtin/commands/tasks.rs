//! Commands and other work in the background, and their owners.

pub(crate) mod agent_task_starter;
mod detached_registry;
mod task_events;

use crate::{
    builtin::{
        commands::{
            command::{CommandEnd, CommandHandle, EndCause, OnceFlag},
            programs::CommandSettings,
            tasks::detached_registry::{DetachedTaskRegistry, RemoteTaskConnection},
        },
        files::read_state::SessionKey,
        text::wording::rfc3339,
    },
    sandbox::detached_task_store::DetachedTaskStore,
};
use futures::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fmt,
    str::FromStr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Semaphore, task::JoinSet, time::timeout};
use toolstead_domain::{Suggestion, Timestamp, ToolFailure, error_kind::ErrorKind};

/// Maximum number of running tasks of one session.
const RUNNING_OF_A_SESSION: usize = 16;
/// Maximum number of running tasks of all sessions.
const RUNNING_IN_ALL: usize = 256;
/// Maximum number of known tasks of one session, including ended ones with their output. The oldest ended tasks are
/// forgotten first.
const KNOWN_OF_A_SESSION: usize = 64;
/// Maximum number of known tasks of all sessions. Each ended task holds its output, in memory and on disk.
const KNOWN_IN_ALL: usize = 512;
/// Time for tasks to end by themselves at shutdown.
const LAST_GRACE: Duration = Duration::from_millis(250);
/// Time for killed tasks to disappear at shutdown.
const LAST_KILLS: Duration = Duration::from_millis(400);
/// Time to record the detached tasks of this process at shutdown.
const LAST_RECORDS: Duration = Duration::from_secs(5);
/// Maximum number of characters of a command in lists.
const SHOWN_COMMAND: usize = 120;
/// Maximum number of characters in an unrequested notification that a task has ended.
const MAX_NOTIFICATION_CHARACTERS: usize = 800;

/// All tasks of this process.
#[derive(Debug)]
pub struct Tasks {
    known: Mutex<TaskTable>,
    /// Futures that publish the events of a task, one for each task, until it has ended.
    publishers: Mutex<JoinSet<()>>,
    /// Large outputs are rendered one after the other, because each is in memory for a moment.
    pub(crate) rendering: Semaphore,
    /// Store of detached tasks, if the session continues in other processes.
    detached: Option<DetachedTaskRegistry>,
}

#[derive(Debug, Default)]
struct TaskTable {
    /// Number of the latest task. It never decreases.
    last: u64,
    tasks: BTreeMap<u64, Arc<BackgroundTask>>,
    is_closed: bool,
}

/// Name of a task, such as `task_3`. A process never assigns it twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskId(u64);

/// One command, or other work, in the background.
#[derive(Debug)]
pub(crate) struct BackgroundTask {
    pub(crate) id: TaskId,
    pub(crate) kind: TaskKind,
    owner: SessionKey,
    /// `true` if the task outlives its session.
    pub(crate) is_detached: bool,
    pub(crate) text: String,
    pub(crate) description: Option<String>,
    started_at: Timestamp,
    pub(crate) command: Arc<CommandHandle>,
    /// Position in the output up to which its session has read.
    pub(crate) cursor: AtomicU64,
    /// Set once the session was notified that the task has ended.
    end_reported: OnceFlag,
    /// Connection to the task, if another process owns it.
    remote: Option<RemoteTaskConnection>,
}

/// The kind of work that a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskKind {
    Shell,
    Agent,
}

/// Values for a new task.
#[derive(Debug)]
pub(crate) struct NewTask {
    pub(crate) kind: TaskKind,
    pub(crate) owner: SessionKey,
    pub(crate) is_detached: bool,
    pub(crate) text: String,
    pub(crate) description: Option<String>,
    pub(crate) started_at: Timestamp,
    pub(crate) command: Arc<CommandHandle>,
}

/// Status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskStatus {
    Running,
    Succeeded,
    // Exit code other than 0, a signal, too much output, changes that could not be undone, or a lost task.
    Failed,
    // Stopped by a caller.
    Cancelled,
    TimedOut,
}

/// A task as lists show it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskListEntry {
    /// Name for the other task tools.
    pub(crate) task_id: String,
    kind: TaskKind,
    /// Process id, for a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    pub(crate) status: TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    /// The number of the signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<i32>,
    started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// `true` if it outlives its session.
    detached: bool,
    /// Bytes printed so far.
    output_bytes: u64,
    /// Its changes of protected files, undone or not, and the hosts that it was refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undone_or_refused: Vec<String>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self { known: Mutex::default(), publishers: Mutex::default(), rendering: Semaphore::new(1), detached: None }
    }
}

impl Tasks {
    /// Returns the tasks of a session that continues in other processes; detached tasks are recorded at `place`.
    /// `outlives` is `true` if this process may stay alive for the tasks that it starts.
    pub fn for_continuing_session(place: DetachedTaskStore, outlives: bool) -> Self {
        Self { detached: Some(DetachedTaskRegistry::new(place, outlives)), ..Self::default() }
    }

    /// Returns `true` if this process owns tasks that outlive their call.
    pub fn has_detached(&self) -> bool {
        self.detached.as_ref().is_some_and(DetachedTaskRegistry::owns_any)
    }

    /// Returns once all detached tasks of this process have ended and are recorded.
    pub async fn wait_for_detached(&self) {
        if let Some(kept) = &self.detached {
            kept.ended().await;
        }
    }

    /// Checks that a command may become a task, detached or not.
    ///
    /// # Errors
    /// An instruction for the model, if the task would end with the call.
    pub(crate) fn check_life(&self, is_detached: bool) -> Result<(), ToolFailure> {
        let Some(kept) = &self.detached else { return Ok(()) };
        let failed = |message: &str| ToolFailure::new(ErrorKind::InvalidInput, message);
        match (is_detached, kept.outlives) {
            (true, true) => Ok(()),
            (false, _) => Err(failed("a task ends with its session, which here ends with this call").next(
                "Add `\"detach\": true` to let the task continue, visible to later calls in this workspace. Or leave \
                 out `background`, `yield_ms` and `ready_when`, and wait for the end of the command.",
            )),
            (true, false) => {
                Err(failed("no task can be detached here, because this process does not outlive the call")
                    .suggest(Suggestion::DetachCall))
            }
        }
    }

    /// Adds the tasks that other processes own for this session's principal and workspace, if tasks can be detached.
    ///
    /// # Errors
    /// `io` when the search fails.
    pub(crate) async fn find_detached(&self, settings: &CommandSettings, now: Timestamp) -> Result<(), ToolFailure> {
        let Some(kept) = &self.detached else { return Ok(()) };
        let known: Vec<u64> = self.lock().tasks.keys().copied().collect();
        let met = kept.find_unknown(&known, settings, now).await.map_err(|error| {
            ToolFailure::new(ErrorKind::Io, format!("the detached tasks cannot be looked up: {error}")).caused_by(error)
        })?;
        self.lock().tasks.extend(met.into_iter().map(|task| (task.id.0, Arc::new(task))));
        Ok(())
    }

    /// Checks that the session may start one more task.
    ///
    /// # Errors
    /// `budget_exhausted` when the maximum number of tasks is running.
    pub(crate) fn check_room(&self, owner: &SessionKey) -> Result<(), ToolFailure> {
        self.lock().check_room(owner)
    }

    /// Adds a task, and forgets the oldest ended ones if there are too many. Where tasks can be detached, records it as
    /// well.
    ///
    /// # Errors
    /// As [`check_room`](Self::check_room); the command is ended then.
    pub(crate) fn add(&self, new: NewTask) -> Result<Arc<BackgroundTask>, ToolFailure> {
        let mut known = self.lock();
        known.check_room(&new.owner)?;
        let begun = self.detached.as_ref().map(DetachedTaskRegistry::begin).transpose()?;
        known.last = begun.as_ref().map_or(known.last + 1, |begun| begun.number);
        let NewTask { kind, owner, is_detached, text, description, started_at, command } = new;
        let task = Arc::new(BackgroundTask {
            id: TaskId(known.last),
            kind,
            owner,
            is_detached,
            text,
            description,
            started_at,
            command,
            cursor: AtomicU64::new(0),
            end_reported: OnceFlag::default(),
            remote: None,
        });
        if let (Some(kept), Some(begun)) = (&self.detached, begun) {
            kept.keep(&task, begun)?;
        }
        known.tasks.insert(task.id.0, task.clone());
        known.make_room_for(&task);
        Ok(task)
    }

    /// Returns the tasks that a session may see, oldest first: its own, and detached ones of its principal.
    pub(crate) fn visible(&self, viewer: &SessionKey) -> Vec<Arc<BackgroundTask>> {
        self.lock().tasks.values().filter(|task| task.is_visible(viewer)).cloned().collect()
    }

    /// Returns the task with this name.
    ///
    /// # Errors
    /// `not_found`, also for a task of another session or principal.
    pub(crate) fn find(&self, viewer: &SessionKey, id: &str) -> Result<Arc<BackgroundTask>, ToolFailure> {
        let number = TaskId::from_str(id).ok();
        let found = number.and_then(|id| self.lock().tasks.get(&id.0).cloned());
        found.filter(|task| task.is_visible(viewer)).ok_or_else(|| {
            let shown: String = id.chars().take(40).collect();
            let names: Vec<String> = self.visible(viewer).iter().map(|task| task.id.to_string()).collect();
            let next = match names.is_empty() {
                true => "This session has no tasks.".to_owned(),
                false => format!("There are: {}.", names.join(", ")),
            };
            ToolFailure::new(ErrorKind::NotFound, format!("there is no task `{shown}`")).next(next)
        })
    }

    /// Returns the tasks with these names. Without names it returns all tasks that the session may see.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub(crate) fn named(&self, viewer: &SessionKey, ids: &[String]) -> Result<Vec<Arc<BackgroundTask>>, ToolFailure> {
        match ids.is_empty() {
            true => Ok(self.visible(viewer)),
            false => ids.iter().map(|id| self.find(viewer, id)).collect(),
        }
    }

    /// Returns `true` if no task is known, of any session.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().tasks.is_empty()
    }

    /// Returns `true` if tasks of the session have ended that [`take_notifications`](Self::take_notifications) has not
    /// returned yet.
    pub(crate) fn has_notifications(&self, viewer: &SessionKey) -> bool {
        self.lock().tasks.values().any(|task| task.needs_notification(viewer))
    }

    /// Returns one line for each task of the session that has ended since the previous call.
    pub(crate) fn take_notifications(&self, viewer: &SessionKey) -> Vec<String> {
        let ended: Vec<Arc<BackgroundTask>> =
            self.lock().tasks.values().filter(|task| task.needs_notification(viewer)).cloned().collect();
        ended.into_iter().filter(|task| task.end_reported.set_once()).map(|task| task.end_notification()).collect()
    }

    /// Ends the tasks that belong to one session alone, with the usual grace period, and forgets them.
    pub(crate) fn end_session(&self, viewer: &SessionKey) {
        self.lock().tasks.retain(|_, task| {
            let goes = task.owner == *viewer && !task.is_detached;
            if goes {
                task.command.stop();
            }
            !goes
        });
    }

    /// Ends all tasks that this process owns, disconnects from the others, and accepts no new ones. Returns once the
    /// ended tasks are recorded, after a few seconds at most.
    pub(crate) async fn close(&self) {
        let (far, tasks): (Vec<Arc<BackgroundTask>>, Vec<_>) = {
            let mut known = self.lock();
            known.is_closed = true;
            std::mem::take(&mut known.tasks).into_values().partition(|task| task.remote.is_some())
        };
        if let Some(kept) = &self.detached {
            kept.disconnect(&far).await;
        }
        let all_ended = || join_all(tasks.iter().map(|task| task.command.ended()));
        tasks.iter().for_each(|task| task.command.stop());
        if timeout(LAST_GRACE, all_ended()).await.is_err() {
            tasks.iter().for_each(|task| task.command.kill());
            let _ = timeout(LAST_KILLS, all_ended()).await;
        }
        let _ = timeout(LAST_RECORDS, self.wait_for_detached()).await;
        self.wait_for_events().await;
    }

    fn lock(&self) -> MutexGuard<'_, TaskTable> {
        // No code panics while it holds this lock.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskTable {
    fn check_room(&self, owner: &SessionKey) -> Result<(), ToolFailure> {
        if self.is_closed {
            return Err(ToolFailure::new(ErrorKind::Cancelled, "Toolstead is shutting down"));
        }
        let running: Vec<_> = self.tasks.values().filter(|task| task.command.end().is_none()).collect();
        let own = running.iter().filter(|task| task.owner == *owner).count();
        if own < RUNNING_OF_A_SESSION && running.len() < RUNNING_IN_ALL {
            return Ok(());
        }
        let message = format!("{own} tasks of this session are running, {} in total", running.len());
        Err(ToolFailure::new(ErrorKind::BudgetExhausted, message)
            .next(format!("At most {RUNNING_OF_A_SESSION} may run at once in a session: stop one with `task_stop`.")))
    }

    /// Makes room for the task that was just added: first among the tasks of its session, then among all tasks, those
    /// of the same principal first. Detached tasks outlive their sessions, so only the second limit applies to them.
    fn make_room_for(&mut self, new: &BackgroundTask) {
        let owner = &new.owner;
        let own = self.tasks.values().filter(|task| task.owner == *owner).count();
        // The new task may have ended before its end could be reported.
        let is_old = |task: &BackgroundTask| task.id != new.id;
        self.forget(own.saturating_sub(KNOWN_OF_A_SESSION), |task| is_old(task) && task.owner == *owner);
        let surplus = |known: &Self| known.tasks.len().saturating_sub(KNOWN_IN_ALL);
        self.forget(surplus(self), |task| is_old(task) && task.owner.principal == owner.principal);
        self.forget(surplus(self), is_old);
    }

    /// Forgets at most `surplus` ended tasks that match: at first those whose end was reported, and of these the oldest
    /// first.
    fn forget(&mut self, surplus: usize, which: impl Fn(&BackgroundTask) -> bool) {
        if surplus == 0 {
            return;
        }
        let ended = self.tasks.values().filter(|task| which(task) && task.command.end().is_some());
        let mut ended: Vec<(bool, u64)> = ended.map(|task| (!task.end_reported.is_set(), task.id.0)).collect();
        ended.sort_unstable();
        for (_, id) in ended.into_iter().take(surplus) {
            self.tasks.remove(&id);
        }
    }
}

impl BackgroundTask {
    fn is_visible(&self, viewer: &SessionKey) -> bool {
        self.owner == *viewer || (self.is_detached && self.owner.principal == viewer.principal)
    }

    fn needs_notification(&self, viewer: &SessionKey) -> bool {
        self.owner == *viewer && !self.end_reported.is_set() && self.command.end().is_some()
    }

    /// Marks the end of the task as reported, if its owner has just seen the status.
    pub(crate) fn mark_reported_to(&self, viewer: &SessionKey) {
        if self.needs_notification(viewer) {
            self.end_reported.set_once();
        }
    }

    pub(crate) fn status(&self) -> TaskStatus {
        self.command.end().map_or(TaskStatus::Running, |end| TaskStatus::of(&end))
    }

    /// Returns a text such as "`task_1` (npm run dev) ended with exit code 1 after 2.5 s".
    pub(crate) fn describe(&self) -> String {
        let name = format!("`{}` ({})", self.id, self.shown());
        match self.command.end() {
            None => format!("{name} has been running for {:.1} s", self.command.started.elapsed().as_secs_f64()),
            Some(end) => format!("{name} {}", self.describe_end(&end)),
        }
    }

    /// Returns a text such as "ended with exit code 1 after 2.5 s".
    pub(crate) fn describe_end(&self, end: &CommandEnd) -> String {
        match (self.kind, TaskStatus::of(end)) {
            (TaskKind::Agent, TaskStatus::Succeeded) => format!("is done after {:.1} s", end.after.as_secs_f64()),
            (TaskKind::Agent, TaskStatus::Failed) => format!("failed after {:.1} s", end.after.as_secs_f64()),
            (TaskKind::Agent, _) => format!("was stopped after {:.1} s", end.after.as_secs_f64()),
            (TaskKind::Shell, _) => end.describe(),
        }
    }

    /// Checks that the task is a program; `what` and `next` complete the message if it is not.
    ///
    /// # Errors
    /// `invalid_input` when the task is an agent.
    pub(crate) fn check_is_program(&self, what: &str, next: &str) -> Result<(), ToolFailure> {
        match self.kind {
            TaskKind::Shell => Ok(()),
            TaskKind::Agent => {
                let message = format!("`{}` is an agent, which {what}", self.id);
                Err(ToolFailure::new(ErrorKind::InvalidInput, message).next(next))
            }
        }
    }

    /// Returns the status of the task, followed by what was undone or refused.
    pub(crate) fn describe_fully(&self) -> String {
        let notes = self.command.end().map(|end| end.notes).unwrap_or_default();
        let lines = notes.iter().map(|line| format!(". {}", line.trim_end_matches('.')));
        lines.fold(self.describe(), |text, line| text + &line)
    }

    fn end_notification(&self) -> String {
        let description = self.describe_fully();
        let description = match description.char_indices().nth(MAX_NOTIFICATION_CHARACTERS) {
            Some((at, _)) => format!("{}…", &description[..at]),
            None => description,
        };
        format!("[{description}: task_output {{\"task_id\": \"{}\"}} shows its output]", self.id)
    }

    fn shown(&self) -> String {
        let line = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(SHOWN_COMMAND) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line,
        }
    }

    pub(crate) fn facts(&self) -> TaskListEntry {
        let end = self.command.end();
        let ended_at = end.as_ref().filter(|end| end.cause != EndCause::Lost).map(|end| {
            let micros = i64::try_from(end.after.as_micros()).unwrap_or(i64::MAX);
            rfc3339(Timestamp(self.started_at.0.saturating_add(micros)))
        });
        TaskListEntry {
            task_id: self.id.to_string(),
            kind: self.kind,
            pid: (self.kind == TaskKind::Shell).then_some(self.command.process),
            status: self.status(),
            exit_code: end.as_ref().and_then(|end| end.code).filter(|_| self.kind == TaskKind::Shell),
            signal: end.as_ref().and_then(|end| end.signal),
            started_at: rfc3339(self.started_at),
            ended_at,
            command: self.shown(),
            description: self.description.clone(),
            detached: self.is_detached,
            output_bytes: self.command.capture.total(),
            undone_or_refused: end.map(|end| end.notes).unwrap_or_default(),
        }
    }
}

impl TaskStatus {
    pub(crate) fn of(end: &CommandEnd) -> Self {
        match (end.cause, end.code) {
            (EndCause::Itself, Some(0)) if !end.is_tainted => Self::Succeeded,
            (EndCause::Itself | EndCause::TooMuchOutput | EndCause::Lost, _) => Self::Failed,
            (EndCause::Stopped, _) => Self::Cancelled,
            (EndCause::TimedOut, _) => Self::TimedOut,
        }
    }
}

impl CommandEnd {
    /// Returns a text such as "ended with exit code 1 after 2.5 s".
    pub(crate) fn describe(&self) -> String {
        let after = self.after.as_secs_f64();
        let how = match (self.code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "no exit code".into(),
        };
        match self.cause {
            EndCause::Itself => {
                let reason = self.out_of_memory.map(|whose| format!(" because {whose}")).unwrap_or_default();
                format!("ended with {how} after {after:.1} s{reason}")
            }
            EndCause::TimedOut => format!("ran out of time after {after:.1} s and was ended ({how})"),
            EndCause::Stopped => format!("was stopped after {after:.1} s ({how})"),
            // The result reports the limit separately.
            EndCause::TooMuchOutput => format!("was ended after {after:.1} s"),
            EndCause::Lost => "is lost: its supervising process was killed, and the task with it".into(),
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task_{}", self.0)
    }
}

impl FromStr for TaskId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix("task_").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        digits.and_then(|digits| digits.parse().ok()).map(Self).ok_or(())
    }
}

impl BackgroundTask {
    /// Advances the position up to which the output was read.
    pub(crate) fn advance_cursor(&self, to: u64) {
        self.cursor.fetch_max(to, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        builtin::commands::{
            capture::Capture,
            command::ExcessPolicy,
            programs::{CommandSettings, StartedProgram},
        },
        sandbox::launcher::{ChildInput, LaunchSpec, Launcher},
    };
    use std::{sync::Barrier, thread};
    use toolstead_domain::{Principal, SandboxPolicy};

    async fn command(program: &str, args: &[&str]) -> Arc<CommandHandle> {
        let policy = SandboxPolicy::open(CommandSettings::default().environment);
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let (program, working_dir) = (program.to_owned(), "/".into());
        let spec = LaunchSpec { program, args, working_dir, input: ChildInput::Nothing, policy };
        let child = Launcher::start().unwrap().launch(spec).await.unwrap();
        let started = StartedProgram { child, proxy: None, is_terminal: false, widening_note: None, tools: None };
        Arc::new(CommandHandle::of(started, Capture::new("/tmp".into(), 1024), None, ExcessPolicy::Ends, None, false))
    }

    fn task(principal: &str, session: usize, command: &Arc<CommandHandle>) -> NewTask {
        NewTask {
            kind: TaskKind::Shell,
            owner: SessionKey { principal: Principal::token(principal), session: format!("s{session}") },
            is_detached: true,
            text: "true".into(),
            description: None,
            started_at: Timestamp(0),
            command: command.clone(),
        }
    }

    #[tokio::test]
    async fn the_oldest_ended_tasks_are_evicted_first_and_running_tasks_are_kept() {
        let (ended, running) = (command("true", &[]).await, command("sleep", &["300"]).await);
        ended.ended().await;
        let tasks = Tasks::default();
        let other = tasks.add(task("other", 0, &ended)).unwrap();
        let kept = tasks.add(task("a", 0, &running)).unwrap();
        for session in 0..2 * KNOWN_IN_ALL {
            let new = task("a", session, &ended);
            let owner = new.owner.clone();
            tasks.add(new).unwrap();
            tasks.end_session(&owner);
            assert!(tasks.lock().tasks.len() <= KNOWN_IN_ALL);
        }
        let seen = tasks.visible(&task("a", 0, &ended).owner);
        assert_eq!((seen.len(), seen[0].id), (KNOWN_IN_ALL - 1, kept.id));
        let newest = u64::try_from(2 * KNOWN_IN_ALL + 2).unwrap();
        assert_eq!(seen.last().unwrap().id, TaskId(newest));
        // A session with the maximum number forgets its own tasks.
        assert_eq!(tasks.visible(&other.owner).len(), 1);
        // A task that had ended before it was added can still be queried, also if it is the only one of its session.
        let late = tasks.add(task("third", 0, &ended)).unwrap();
        assert_eq!(tasks.visible(&late.owner).len(), 1);
        assert_eq!(tasks.lock().tasks.len(), KNOWN_IN_ALL);
    }

    #[tokio::test]
    async fn concurrent_task_starts_do_not_exceed_the_session_limit() {
        let running = command("sleep", &["300"]).await;
        for _ in 0..20 {
            let (tasks, barrier) = (Tasks::default(), Barrier::new(32));
            thread::scope(|scope| {
                for _ in 0..32 {
                    scope.spawn(|| {
                        barrier.wait();
                        let _ = tasks.add(task("a", 0, &running));
                    });
                }
            });
            assert_eq!(tasks.lock().tasks.len(), RUNNING_OF_A_SESSION);
        }
    }
}
