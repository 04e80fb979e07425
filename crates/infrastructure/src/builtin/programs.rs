//! How built-in tools start programs: the one place that says what a command may reach.

use crate::{
    builtin::run::Run,
    sandbox::{
        child_environment,
        launcher::{Child, Input, LaunchError, LaunchSpec, Launcher},
    },
};
use std::{collections::BTreeMap, path::PathBuf, sync::OnceLock};
use toolstead_domain::{
    error_kind::ErrorKind,
    sandbox_policy::{Confinement, NetworkPolicy, SandboxLimits, SandboxPolicy},
    tool::Availability,
    tool_failure::ToolFailure,
};

/// What keeps programs from waiting for a person, and makes them print plainly.
const FOR_NOBODY: &[(&str, &str)] = &[
    ("CI", "1"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("EDITOR", "true"),
    ("GH_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("LANG", "C.UTF-8"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
    ("VISUAL", "true"),
];

/// What holds for every command of a run of Toolstead.
#[derive(Debug, Clone)]
pub struct CommandSettings {
    /// The environment that each starts from: built, never inherited.
    pub environment: BTreeMap<String, String>,
    /// The network (`[sandbox]`).
    pub network: NetworkPolicy,
    /// The bounds (`[limits]`).
    pub limits: SandboxLimits,
    /// Where output goes that memory is too small for.
    pub spool_folder: PathBuf,
    /// Bytes that are kept of the output of one command.
    pub kept_bytes: u64,
}

/// Starts programs.
#[derive(Debug, Default)]
pub struct Programs {
    settings: CommandSettings,
    launcher: OnceLock<Launcher>,
}

/// A program to start.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) args: Vec<String>,
    /// A real path.
    pub(super) working_dir: PathBuf,
    pub(super) input: Input,
    /// Beside what every program gets.
    pub(super) environment: BTreeMap<String, String>,
}

impl Default for CommandSettings {
    fn default() -> Self {
        Self {
            environment: child_environment::base(|_| None),
            network: NetworkPolicy::None,
            limits: SandboxLimits::default(),
            spool_folder: "/tmp".into(),
            kept_bytes: 64 << 20,
        }
    }
}

impl Programs {
    /// Programs under these settings. Nothing is started yet.
    pub fn new(settings: CommandSettings) -> Self {
        Self { settings, launcher: OnceLock::new() }
    }

    /// What holds for all of them.
    pub fn settings(&self) -> &CommandSettings {
        &self.settings
    }

    /// Whether the program can be found.
    pub(super) fn availability(&self, program: &str) -> Availability {
        if Launcher::finds(program, &self.settings.environment) {
            return Availability::Available;
        }
        Availability::Unavailable(format!("the program `{program}` is not installed"))
    }

    /// Starts one for a call.
    ///
    /// # Errors
    /// `unavailable` when there is no such program, `execution_failed` when the system or the sandbox refuses it.
    pub(super) async fn start(&self, program: Program, run: &Run<'_>) -> Result<Child, ToolFailure> {
        let context = run.context();
        let roots = context.grant.roots();
        let settings = &self.settings;
        let mut environment = settings.environment.clone();
        environment.extend(FOR_NOBODY.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        environment.extend(program.environment);
        let spec = LaunchSpec {
            program: program.name.into(),
            args: program.args,
            working_dir: program.working_dir,
            input: program.input,
            policy: SandboxPolicy {
                confinement: Confinement::Sealed,
                session: Some(format!("{}\n{}", context.principal, context.session).into()),
                hidden: Vec::new(),
                write_roots: roots.write.clone(),
                read_roots: roots.read_only.clone(),
                network: settings.network.clone(),
                environment,
                limits: settings.limits.clone(),
            },
        };
        self.launcher()?.launch(spec).await.map_err(not_started)
    }

    fn launcher(&self) -> Result<&Launcher, ToolFailure> {
        if let Some(launcher) = self.launcher.get() {
            return Ok(launcher);
        }
        let started = Launcher::start().map_err(|error| {
            ToolFailure::new(ErrorKind::ExecutionFailed, "no program can be started here").caused_by(error)
        })?;
        Ok(self.launcher.get_or_init(|| started))
    }
}

fn not_started(error: LaunchError) -> ToolFailure {
    let kind = match &error {
        LaunchError::NotFound { .. } => ErrorKind::Unavailable,
        LaunchError::NoWorkingFolder(_) => ErrorKind::NotFound,
        _ => ErrorKind::ExecutionFailed,
    };
    let cause = std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
    ToolFailure::new(kind, format!("{error}{cause}")).caused_by(error)
}
