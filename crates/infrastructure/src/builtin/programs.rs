//! How built-in tools start programs: the one place that says what a command may reach.

use crate::{
    builtin::{closed_paths::ClosedPaths, run::Run},
    sandbox::{
        child_environment,
        egress::{
            connector::{Connector, SystemNetwork},
            host::HostPatterns,
            proxy::{EgressProxy, ProxyLimits, ProxyPolicy},
        },
        launcher::{Child, Input, LaunchError, LaunchSpec, Launcher},
        self_test::{Tier, tier},
    },
};
use std::{
    collections::BTreeMap,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{Arc, OnceLock},
};
use tokio::sync::OnceCell;
use toolstead_domain::{
    access::Access,
    error_kind::ErrorKind,
    principal::Principal,
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
    /// Whether programs can be confined here; tried with the first of them.
    tier: OnceCell<Tier>,
}

/// A program that runs, and its way out.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) child: Child,
    /// What it reaches hosts by; ends with the value.
    pub(super) proxy: Option<EgressProxy>,
    /// Whether its input and output are one terminal.
    pub(super) is_terminal: bool,
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
        Self { settings, launcher: OnceLock::new(), tier: OnceCell::new() }
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
    pub(super) async fn start(&self, program: Program, run: &Run<'_>) -> Result<Started, ToolFailure> {
        self.check_confinement().await?;
        let closed = ClosedPaths::of(run).await?;
        let context = run.context();
        let roots = context.grant.roots();
        let settings = &self.settings;
        let mut environment = settings.environment.clone();
        environment.extend(FOR_NOBODY.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        if matches!(settings.network, NetworkPolicy::Hosts(_)) {
            // Node looks at the proxy's variables only then.
            environment.insert("NODE_USE_ENV_PROXY".into(), "1".into());
        }
        environment.extend(program.environment);
        let is_terminal = matches!(program.input, Input::Terminal { .. });
        let spec = LaunchSpec {
            program: program.name.into(),
            args: program.args,
            working_dir: program.working_dir,
            input: program.input,
            policy: SandboxPolicy {
                confinement: Confinement::Sealed,
                session: Some(session_key(context.principal, context.session)),
                hidden: closed.hidden,
                sealed: closed.sealed,
                write_roots: roots.write.clone(),
                read_roots: roots.read_only.clone(),
                network: settings.network.clone(),
                environment,
                limits: settings.limits.clone(),
            },
        };
        let mut child = self.launcher()?.launch(spec).await.map_err(not_started)?;
        let proxy = match child.proxy.take() {
            Some(listener) => Some(self.proxy(listener.into(), run)?),
            None => None,
        };
        Ok(Started { child, proxy, is_terminal })
    }

    /// Lets go of what the commands of a session share.
    pub(super) fn end_session(&self, principal: &Principal, session: &str) {
        if let Some(launcher) = self.launcher.get() {
            launcher.release_session(session_key(principal, session));
        }
    }

    /// The way to the hosts of the configuration that no rule is against.
    fn proxy(&self, listener: OwnedFd, run: &Run<'_>) -> Result<EgressProxy, ToolFailure> {
        let failed = |message: String| ToolFailure::new(ErrorKind::ExecutionFailed, message);
        let NetworkPolicy::Hosts(hosts) = &self.settings.network else {
            return Err(failed("the network of commands is closed".into()));
        };
        let hosts = HostPatterns::parse(hosts)
            .map_err(|error| failed(format!("`sandbox.network` cannot be used: {error}")).caused_by(error))?;
        let grant = run.context().grant.clone();
        let policy = ProxyPolicy {
            call: run.context().id.to_string().into(),
            hosts,
            rules: Arc::new(move |host| grant.objection(&Access::ReachHost(host.to_string().into()))),
            limits: ProxyLimits::default(),
        };
        let connector = Connector::new(Arc::new(SystemNetwork::default()), HostPatterns::default());
        EgressProxy::start(listener, connector, policy)
            .map_err(|error| failed("the way to the network could not be opened".into()).caused_by(error))
    }

    /// Whether the sandbox holds on this machine, tried once.
    ///
    /// # Errors
    /// `unavailable`, with what is missing and what helps.
    async fn check_confinement(&self) -> Result<(), ToolFailure> {
        let launcher = self.launcher()?;
        match self.tier.get_or_init(|| tier(launcher)).await {
            Tier::First { .. } => Ok(()),
            Tier::Third { missing, remedy } => {
                let message = format!("no program is run here, because it could not be confined: {missing}");
                Err(ToolFailure::new(ErrorKind::Unavailable, message)
                    .next(format!("Tell the user to {remedy}; `toolstead doctor` shows the state.")))
            }
        }
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

/// What runs of one session have in common.
fn session_key(principal: &Principal, session: &str) -> Arc<str> {
    format!("{principal}\n{session}").into()
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
