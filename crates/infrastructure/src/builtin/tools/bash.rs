//! The tool `bash`.

mod exit_code_meaning;
mod report;

use crate::{
    builtin::{
        commands::{
            capture::Capture,
            command::{CommandEnd, CommandHandle, ExcessPolicy},
            line_accesses,
            offered_tools::{MAX_PATTERN_LENGTH, MAX_PATTERNS, ToolPatterns, offering},
            programs::ProgramSpec,
            tasks::{NewTask, TaskKind},
            waiting::{SLACK, pattern, wait_for_end, wait_until_deadline},
        },
        files::read_state::SessionKey,
        tool_kit::{
            built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    sandbox::{launcher::ChildInput as StandardInput, search_path::ShellPathAndHome},
    shell_analysis,
};
use regex::Regex;
use report::{Output, ResultFormatter};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    os::unix::net::UnixListener,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::sleep;
use toolstead_domain::{
    Access, Availability, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
};

/// Maximum size of a command, in bytes. Linux accepts no longer argument (`MAX_ARG_STRLEN`).
const MAX_COMMAND_BYTES: usize = 128 << 10;
/// Default of `yield_ms` if `ready_when` is given.
const TIME_TO_BE_READY: Duration = Duration::from_secs(30);
/// Smallest difference between the requested and the granted time that is reported.
const MOMENT: Duration = Duration::from_millis(100);
/// Terminal of a command that requests one.
const TERMINAL: StandardInput = StandardInput::Terminal { rows: 24, columns: 80 };

/// Tool that runs commands.
pub(crate) struct Bash;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The command line, for bash. Each call starts a new shell: `cd` and variables do not last.
    #[schemars(extend("x-advertised" = ""))]
    command: String,
    /// The working directory. Default: the start folder.
    #[schemars(extend("x-advertised" = ""))]
    working_dir: Option<String>,
    /// Timeout in milliseconds, also for the processes it started. Default: 120000, none in the background.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-advertised" = "Default: 120000."))]
    timeout_ms: Option<u64>,
    /// Its purpose in a few words, for the user.
    #[schemars(extend("x-advertised" = false))]
    description: Option<String>,
    /// Its standard input. Default: empty. In the background it stays open for `task_input`.
    #[schemars(extend("x-advertised" = ""))]
    stdin: Option<String>,
    /// Additional environment variables.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    env: BTreeMap<String, String>,
    /// Run it in the background as a task, and return at once. It ends with the session.
    #[serde(default)]
    #[schemars(extend("x-advertised" = "Return at once; it runs as a task."))]
    background: bool,
    /// Milliseconds after which to return the output so far; if the command still runs then, it continues as a task.
    #[schemars(range(max = 600_000))]
    #[schemars(extend("x-advertised" = "Return by then; if the command still runs then, it continues as a task."))]
    yield_ms: Option<u64>,
    /// Run it as a task, and return as soon as an output line matches this regular expression, as when a server is up;
    /// at the latest after `yield_ms` (30000).
    #[schemars(extend("x-advertised" = "As a task: return when an output line matches this regular expression, as of a server."))]
    ready_when: Option<String>,
    /// The task outlives its session, as long as Toolstead runs.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    detach: bool,
    /// Merge standard error into standard output, in order; otherwise it follows the output.
    #[serde(default = "default_true")]
    #[schemars(extend("x-advertised" = false))]
    merge_stderr: bool,
    /// Tools that the command may call during this call, by name or with patterns such as `mcp__git__*`: `tool NAME
    /// '{"json": 1}'` or `tool NAME --field value` prints the whole result, `tool --list` lists them. A pattern
    /// excludes tools that run programs or call tools; name those in full.
    #[serde(default)]
    #[schemars(length(max = MAX_PATTERNS), inner(length(min = 1, max = MAX_PATTERN_LENGTH)))]
    #[schemars(extend("x-advertised" = "Tools that it may call: `tool NAME --field value | jq …`, `tool --list`. Names or patterns (`mcp__git__*`)."))]
    tools: Vec<String>,
    /// Run it in a terminal of 24 lines and 80 columns, which receives `stdin`. All output is then one stream.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    tty: bool,
}

fn default_true() -> bool {
    true
}

impl BuiltInTool for Bash {
    const NAME: &str = "bash";
    const TITLE: &str = "Run a command";
    const DESCRIPTION: &str = "Runs a command line in a new bash and returns its output and exit code. Use it for \
         builds, tests and programs; for files prefer the file tools. Start servers with `background` and \
         `ready_when`. Long output is stored whole under a handle.";
    const BRIEF: &str = "Runs a command line in a new bash (`cd` and variables do not last); returns output and exit code, long output under a handle. For files prefer the file tools.";
    const CATEGORY: Category = Category::Shell;
    const TAGS: &[&str] = &["command", "process"];
    const KEYWORDS: &str = "build cli command compile console install process program script shell terminal";
    const TAKES_COMMAND_LINES: bool = true;
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(true),
    };
    const EXAMPLE: &str = r#"{"command": "make test", "timeout_ms": 300000, "description": "Run the tests"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        world.processes().programs().availability("bash", world.workspace())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        input.check()?;
        input.check_life(world)?;
        let offer = ToolPatterns::of(&input.tools)?;
        let search_path = ShellPathAndHome::of(&world.processes().programs().settings().environment);
        let (workspace, folder) = (world.workspace().clone(), input.folder().to_owned());
        let line = line_accesses::accesses_in(workspace, input.line(), folder, search_path);
        let mut accesses = line.await?;
        accesses.extend(offer.iter().flat_map(ToolPatterns::accesses));
        Ok(accesses)
    }

    fn requested_time(&self, input: &Input) -> Option<Duration> {
        // The time of the command begins when it starts. Before that, the call prepares it.
        Some(input.waits().or(input.timeout_ms.map(Duration::from_millis))? + SLACK)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        input.check()?;
        input.check_life(run.environment())?;
        let ready = input.ready_when.as_deref().map(pattern).transpose()?;
        let wait = input.waits();
        let owner = SessionKey::of(run.context());
        if wait.is_some() {
            run.environment().find_detached_tasks().await?;
            run.environment().processes().tasks().check_room(&owner)?;
        }
        let folder = run.permitted_folder(input.folder()).await?;
        let offered = ToolPatterns::of(&input.tools)?.map(|offer| offer.open(run)).transpose()?;
        let started_at = run.environment().now();
        let StartedCommand { command, tools, deadline, is_reduced } =
            start(&input, folder.clone(), wait.is_some(), run).await?;
        let offered = offered.as_ref().zip(tools);
        let report = ResultFormatter { run, input: &input, folder: &folder, is_reduced };
        let Some(wait) = wait else {
            let end = offering(offered, wait_until_deadline(&command, run.context().caller, deadline)).await?;
            return report.ended(&command, end).await;
        };
        // Until it is a task, the command ends with the call. The tools that it may call end with the call in any case.
        let seen = if wait.is_zero() {
            Ok(WaitOutcome::Running)
        } else {
            offering(offered, wait_for_command(&command, ready.as_ref(), wait, run)).await?
        };
        let line = match seen? {
            WaitOutcome::Ended(end) => return report.ended(&command, end).await,
            WaitOutcome::Ready(line) => Some(line),
            WaitOutcome::Running => None,
        };
        let task = run.environment().processes().tasks().add(NewTask {
            kind: TaskKind::Shell,
            owner,
            is_detached: input.detach,
            text: input.command.clone(),
            description: input.description.clone(),
            started_at,
            command,
        })?;
        run.environment().processes().tasks().publish_events(
            &task,
            Some(run.context().id),
            run.environment().events().clone(),
        );
        report.running(&task, line).await
    }
}

/// A command that has started.
struct StartedCommand {
    command: Arc<CommandHandle>,
    /// Socket to which the program `tool` of the command connects.
    tools: Option<UnixListener>,
    /// Deadline of a command that does not become a task.
    deadline: Instant,
    /// `true` if the command gets less time than it requests.
    is_reduced: bool,
}

/// State of a command when the call stops waiting for it.
enum WaitOutcome {
    Ended(CommandEnd),
    Ready(String),
    Running,
}

impl Input {
    fn folder(&self) -> &str {
        self.working_dir.as_deref().unwrap_or(".")
    }

    /// Returns the time that the call waits for a command that may become a task; `None` for one that may not.
    fn waits(&self) -> Option<Duration> {
        let given = self.yield_ms.map(Duration::from_millis);
        let usual = self.ready_when.as_ref().map(|_| TIME_TO_BE_READY);
        given.or(usual).or((self.background || self.detach).then_some(Duration::ZERO))
    }

    /// Returns the command line that permission rules check: the variables as assignments of a shell, and then the
    /// command. Harmless variables are left out.
    fn line(&self) -> String {
        let variables =
            self.env.iter().filter(|(name, value)| !shell_analysis::catalogue::variables::is_harmless(name, value));
        let assigned: String =
            variables.map(|(name, value)| format!("export {name}='{}'; ", value.replace('\'', r"'\''"))).collect();
        format!("{assigned}{}", self.command)
    }

    /// Rejects a command that would become a task and end with its call.
    fn check_life(&self, world: &ToolEnvironment) -> Result<(), ToolFailure> {
        self.waits().map_or(Ok(()), |_| world.processes().tasks().check_life(self.detach))
    }

    fn check(&self) -> Result<(), ToolFailure> {
        let wrong = |message: String| Err(ToolFailure::new(ErrorKind::InvalidInput, message));
        if self.command.trim().is_empty() {
            return wrong("`command` is empty".into());
        }
        if self.command.len() >= MAX_COMMAND_BYTES {
            let message =
                format!("`command` has {} bytes, and at most {MAX_COMMAND_BYTES} can be run", self.command.len());
            return wrong(format!("{message}: write it into a file and run that"));
        }
        let texts = self.env.values().chain([&self.command]);
        if texts.clone().any(|text| text.contains('\0')) {
            return wrong("a command and its variables must not contain NUL characters".into());
        }
        let is_name = |name: &str| {
            let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
            first && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if let Some(name) = self.env.keys().find(|name| !is_name(name)) {
            return wrong(format!("`{}` is not a valid variable name", name.escape_debug()));
        }
        let bytes: usize = self.env.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
        if bytes >= MAX_COMMAND_BYTES {
            return wrong(format!("`env` has {bytes} bytes, and at most {MAX_COMMAND_BYTES} are allowed"));
        }
        Ok(())
    }
}

async fn start(
    input: &Input,
    folder: PathBuf,
    is_task: bool,
    run: &ToolContext<'_>,
) -> Result<StartedCommand, ToolFailure> {
    let programs = run.environment().processes().programs();
    let program = ProgramSpec {
        name: "bash".into(),
        args: ["--noprofile", "--norc", "-c", &input.command].map(str::to_owned).into(),
        working_dir: folder,
        input: standard_input(input),
        environment: input.env.clone(),
        offers_tools: !input.tools.is_empty(),
    };
    let settings = programs.settings();
    let capture = Capture::new(settings.spool_folder.clone(), settings.kept_bytes);
    let excess = if is_task { ExcessPolicy::DropsOldest } else { ExcessPolicy::Ends };
    let at_most = run.context().deadline;
    if !is_task && at_most <= Instant::now() {
        let message = "the command was not started: the time of the call ran out during its preparation";
        return Err(ToolFailure::new(ErrorKind::Timeout, message).next("Call again, or allow more time."));
    }
    let mut started = programs.start(program, run.context(), run.environment().workspace()).await?;
    let wanted = input.timeout_ms.map(|time| Instant::now() + Duration::from_millis(time));
    let deadline = wanted.map_or(at_most, |wanted| wanted.min(at_most));
    let is_reduced = !is_task && wanted.is_some_and(|wanted| wanted > at_most + MOMENT);
    let text = input.stdin.clone().map(String::into_bytes);
    let tools = started.tools.take();
    // The call enforces the timeout of a command that is not a task.
    let own = wanted.filter(|_| is_task);
    let command = Arc::new(CommandHandle::of(started, capture, own, excess, text, is_task));
    Ok(StartedCommand { command, tools, deadline, is_reduced })
}

/// Returns the standard input of the command: a terminal if the caller requests one, a pipe if it provides a text,
/// otherwise nothing.
fn standard_input(input: &Input) -> StandardInput {
    match &input.stdin {
        _ if input.tty => TERMINAL,
        Some(_) => StandardInput::Pipe,
        None => StandardInput::Nothing,
    }
}

/// Waits until the command has ended, is ready, or the time is over.
async fn wait_for_command(
    command: &CommandHandle,
    ready: Option<&Regex>,
    wait: Duration,
    run: &ToolContext<'_>,
) -> Result<WaitOutcome, ToolFailure> {
    tokio::select! {
        end = wait_for_end(command, run.context().caller) => Ok(WaitOutcome::Ended(end)),
        line = ready_line(command, ready) => line.map(WaitOutcome::Ready),
        () = sleep(wait) => Ok(WaitOutcome::Running),
    }
}

/// Returns the first line that matches the pattern. Waits forever without a pattern, or if the command ends without
/// such a line.
async fn ready_line(command: &CommandHandle, pattern: Option<&Regex>) -> Result<String, ToolFailure> {
    match pattern {
        Some(pattern) => match command.find_line(pattern).await? {
            Some(line) => Ok(line),
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
