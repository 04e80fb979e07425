//! The tool `run_code`.

mod language;
mod report;

use crate::{
    builtin::{
        commands::{
            capture::Capture,
            command::{CommandHandle, ExcessPolicy},
            line_accesses,
            offered_tools::{MAX_PATTERN_LENGTH, MAX_PATTERNS, ToolPatterns, offering},
            programs::ProgramSpec,
            waiting::{SLACK, wait_until_deadline},
        },
        tool_kit::{
            blocking::on_blocking_thread, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    sandbox::launcher::ChildInput as StandardInput,
};
use language::{Language, LaunchInput, ToolSignature};
use report::{Output, ResultFormatter};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use toolstead_domain::{
    Access, Availability, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
};

/// Maximum size of the code, in bytes. Longer code belongs in a file.
const MAX_CODE_BYTES: usize = 1 << 20;
/// Tools that the code gets if the call names none; they read files and run no programs.
const READING: [&str; 5] = ["read_file", "file_info", "list_directory", "glob", "grep"];

/// Tool that runs code that calls tools.
pub(crate) struct RunCode;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The language: Python 3, JavaScript (an ES module with top-level `await`), or bash.
    #[schemars(extend("x-advertised" = ""))]
    language: Language,
    /// The code. What it prints is the result.
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = ""))]
    code: String,
    /// The tools that it may call, by name, or by patterns of names with `*`. Without it: `read_file`, `file_info`,
    /// `list_directory`, `glob` and `grep`. A pattern leaves out tools that run programs or call tools. Each call is
    /// checked.
    #[schemars(length(max = MAX_PATTERNS), inner(length(min = 1, max = MAX_PATTERN_LENGTH)))]
    #[schemars(extend("x-advertised" = "Names or patterns (`mcp__git__*`); without it those that read files."))]
    tools: Option<Vec<String>>,
    /// Timeout in milliseconds, for it and everything that it started. Default: 120000.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-advertised" = ""))]
    timeout_ms: Option<u64>,
    /// The folder to start in. Default: the start folder.
    #[schemars(extend("x-advertised" = ""))]
    working_dir: Option<String>,
    /// Its standard input. Default: empty.
    #[schemars(extend("x-advertised" = false))]
    stdin: Option<String>,
    /// Its purpose, in a few words, for the user.
    #[schemars(extend("x-advertised" = false))]
    #[expect(dead_code, reason = "people read it in the question and in the audit log")]
    description: Option<String>,
}

impl BuiltInTool for RunCode {
    const NAME: &str = "run_code";
    const TITLE: &str = "Run code that calls tools";
    const DESCRIPTION: &str = "Runs Python, JavaScript or bash in which other tools are functions, and returns what it prints. Use it for many \
         calls and for large values: only what it prints is returned. Python: `tools.read_file(path=\"a\")`; \
         JavaScript: `await tools.readFile({path: \"a\"})`; bash: `tool read_file --path a`. A call that fails raises `ToolError`. \
         `print(tools.help())` shows the functions.";
    const BRIEF: &str = "Runs code in which tools are functions; returns what it prints. For many calls and large values. Python `tools.read_file(path=\"a\")[\"content\"]`, JavaScript `await tools.readFile({path})`, bash `tool read_file --path a`; `tools.help()` lists them, `tools.help(name)` shows one.";
    const CATEGORY: Category = Category::Shell;
    const TAGS: &[&str] = &["code", "process"];
    const KEYWORDS: &str = "calculate compute evaluate execute interpreter program script snippet";
    const TAKES_COMMAND_LINES: bool = true;
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(true),
    };
    const EXAMPLE: &str =
        r#"{"language": "python", "code": "found = tools.glob(pattern='**/*.toml')\nprint(len(found['files']))"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        match installed(world).is_empty() {
            false => Availability::Available,
            true => {
                Availability::Unavailable(format!("none of the programs {} is installed", programs_of(&Language::ALL)))
            }
        }
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        input.check()?;
        input.check_installed(world).await?;
        let line = input.language.line(&input.code);
        let offer = ToolPatterns::of(&input.tools())?;
        let line = line_accesses::accesses_in(world.workspace().clone(), line, input.folder().to_owned(), None);
        let mut accesses = line.await?;
        accesses.extend(offer.iter().flat_map(ToolPatterns::accesses));
        Ok(accesses)
    }

    fn requested_time(&self, input: &Input) -> Option<Duration> {
        Some(input.timeout_ms.map(Duration::from_millis)? + SLACK)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        input.check()?;
        let folder = run.permitted_folder(input.folder()).await?;
        let offered = input.offer(run)?.map(|offer| offer.open(run)).transpose()?;
        let functions: Vec<ToolSignature> =
            offered.iter().flat_map(|offered| offered.tools()).map(|tool| ToolSignature::of(tool)).collect();
        let LaunchInput { args, input: mut text } = input.language.start(&input.code, &functions);
        text.extend_from_slice(input.stdin.as_deref().unwrap_or_default().as_bytes());
        let program = ProgramSpec {
            name: input.language.program().into(),
            args,
            working_dir: folder,
            input: StandardInput::Pipe,
            environment: BTreeMap::new(),
            offers_tools: offered.is_some(),
        };
        let programs = run.environment().processes().programs();
        let settings = programs.settings();
        let capture = Capture::new(settings.spool_folder.clone(), settings.kept_bytes);
        let mut started = programs.start(program, run.context(), run.environment().workspace()).await?;
        let wanted = input.timeout_ms.map(|time| Instant::now() + Duration::from_millis(time));
        let deadline = wanted.map_or(run.context().deadline, |wanted| wanted.min(run.context().deadline));
        let socket = started.tools.take();
        // The call enforces the timeout, since time spent waiting for answers does not count.
        let command = CommandHandle::of(started, capture, None, ExcessPolicy::Ends, Some(text), false);
        let ended = wait_until_deadline(&command, run.context().caller, deadline);
        let end = offering(offered.as_ref().zip(socket), ended).await?;
        ResultFormatter { run, language: input.language }.ended(&command, end).await
    }
}

impl Input {
    fn folder(&self) -> &str {
        self.working_dir.as_deref().unwrap_or(".")
    }

    /// Returns the requested patterns of tool names, or those of the default tools. Permission rules check them.
    fn tools(&self) -> Vec<String> {
        self.tools.clone().unwrap_or_else(|| READING.map(str::to_owned).into())
    }

    /// Returns the tools that the code gets. Default tools that the call may not use are left out.
    fn offer(&self, run: &ToolContext<'_>) -> Result<Option<ToolPatterns>, ToolFailure> {
        let known = run.context().calls.list();
        let is_known = |name: &String| known.iter().any(|tool| tool.name().as_str() == name);
        let mut patterns = self.tools();
        if self.tools.is_none() {
            patterns.retain(is_known);
        }
        ToolPatterns::of(&patterns)
    }

    fn check(&self) -> Result<(), ToolFailure> {
        if self.code.len() > MAX_CODE_BYTES {
            let message = format!("`code` has {} bytes, and at most {MAX_CODE_BYTES} are run", self.code.len());
            return Err(ToolFailure::new(ErrorKind::TooLarge, message).next("Write it into a file and run that."));
        }
        if self.code.trim().is_empty() || self.code.contains('\0') {
            let message = "`code` is empty or has a NUL character";
            return Err(ToolFailure::new(ErrorKind::InvalidInput, message));
        }
        Ok(())
    }

    /// Rejects a language that is not installed, before the user is asked to approve the code.
    async fn check_installed(&self, world: &ToolEnvironment) -> Result<(), ToolFailure> {
        let (language, world) = (self.language, world.clone());
        let installed = on_blocking_thread(move || Ok(installed(&world))).await?;
        if installed.contains(&language) {
            return Ok(());
        }
        let message = format!("`{language}` is unavailable: the program `{}` is not installed", language.program());
        let others: Vec<String> = installed.iter().map(|other| format!("`{other}`")).collect();
        Err(ToolFailure::new(ErrorKind::Unavailable, message).next(format!("Available: {}.", others.join(", "))))
    }
}

/// Returns the languages whose programs are installed. Blocks.
fn installed(world: &ToolEnvironment) -> Vec<Language> {
    let is_there = |language: &Language| {
        world.processes().programs().availability(language.program(), world.workspace()) == Availability::Available
    };
    Language::ALL.into_iter().filter(is_there).collect()
}

fn programs_of(languages: &[Language]) -> String {
    languages.iter().map(|language| format!("`{}`", language.program())).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
