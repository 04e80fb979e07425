//! Starts programs for built-in tools. No other module decides what a command may reach.

use crate::{
    builtin::commands::closed_paths::ClosedPaths,
    child_environment,
    egress::{
        connector::{Connector, SystemNetwork},
        host::HostPatterns,
        proxy::{EgressProxy, ProxyLimits, ProxyPolicy},
    },
    sandbox::{
        launcher::{Child, ChildInput, LaunchError, LaunchSpec, Launcher},
        workspace::Workspace,
    },
};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    os::{fd::OwnedFd, unix::net::UnixListener},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};
use toolstead_domain::{
    Access, Availability, CallContext, Confinement, FileDescriptorExhaustion, NetworkPolicy, Principal, SandboxLimits,
    SandboxPolicy, Suggestion, ToolFailure, error_kind::ErrorKind,
};

/// Shell of the callers' command lines. It sees the whole `PATH`.
const SHELL: &str = "bash";

/// Environment that prevents programs from waiting for input, and makes them print plainly.
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
    // A shell would otherwise look for it in `/etc/passwd` of the sandbox, and query several services.
    ("SHELL", "/bin/sh"),
    ("TERM", "dumb"),
    ("VISUAL", "true"),
];

/// Settings that apply to every command of this process.
#[derive(Debug, Clone)]
pub struct CommandSettings {
    /// Environment of each command: constructed, never inherited.
    pub environment: BTreeMap<String, String>,
    /// Network policy (`[sandbox]`).
    pub network: NetworkPolicy,
    /// Limits (`[limits]`).
    pub limits: SandboxLimits,
    /// `true` to refuse a kernel without Landlock.
    pub requires_landlock: bool,
    /// `true` to accept Landlock and the system call filter as the only confinement where namespaces are unavailable.
    pub allows_tier_2: bool,
    /// Folder for output that is too large for memory.
    pub spool_folder: PathBuf,
    /// Maximum number of bytes retained of the output of one command.
    pub kept_bytes: u64,
}

/// Starts programs.
#[derive(Debug, Default)]
pub struct ProgramLauncher {
    settings: CommandSettings,
    launcher: OnceLock<Launcher>,
}

/// A running program with its proxy.
#[derive(Debug)]
pub(crate) struct StartedProgram {
    pub(crate) child: Child,
    /// Proxy by which it reaches hosts; closed with the value.
    pub(crate) proxy: Option<EgressProxy>,
    /// `true` if its input and output are one terminal.
    pub(crate) is_terminal: bool,
    /// Paths that are closed to it in addition to those that rules name, with the reason.
    pub(crate) widening_note: Option<String>,
    /// Socket that its program `tool` connects to, if it is offered tools.
    pub(crate) tools: Option<UnixListener>,
}

/// A program to start.
#[derive(Debug)]
pub(crate) struct ProgramSpec {
    pub(crate) name: Cow<'static, str>,
    pub(crate) args: Vec<String>,
    /// A real path.
    pub(crate) working_dir: PathBuf,
    pub(crate) input: ChildInput,
    /// Variables in addition to those of every program.
    pub(crate) environment: BTreeMap<String, String>,
    /// `true` if it may call tools ([`offered_tools`](super::offered_tools)).
    pub(crate) offers_tools: bool,
}

impl Default for CommandSettings {
    fn default() -> Self {
        Self {
            environment: child_environment::base(|_| None),
            network: NetworkPolicy::None,
            limits: SandboxLimits::default(),
            requires_landlock: false,
            allows_tier_2: false,
            spool_folder: "/tmp".into(),
            kept_bytes: 64 << 20,
        }
    }
}

impl ProgramLauncher {
    /// Creates a launcher with these settings. Starts nothing yet.
    pub fn new(settings: CommandSettings) -> Self {
        Self { settings, launcher: OnceLock::new() }
    }

    /// Returns the settings of all commands.
    pub fn settings(&self) -> &CommandSettings {
        &self.settings
    }

    /// Returns the availability of a program, looked up by the rules that apply when it is started.
    pub(crate) fn availability(&self, program: &str, workspace: &Workspace) -> Availability {
        let path = self.settings.environment.get("PATH").map_or("", String::as_str);
        if let (Some(_), _) = Launcher::find_outside(program, path, workspace.writable()) {
            return Availability::Available;
        }
        Availability::Unavailable(format!("the program `{program}` is not installed"))
    }

    /// Starts a program for a call.
    ///
    /// # Errors
    /// `unavailable` when the program does not exist, `execution_failed` when the system or the sandbox refuses it.
    pub(crate) async fn start(
        &self,
        program: ProgramSpec,
        context: &CallContext<'_>,
        workspace: &Arc<Workspace>,
    ) -> Result<StartedProgram, ToolFailure> {
        let is_terminal = matches!(program.input, ChildInput::Terminal { .. });
        let is_shell = program.name == SHELL;
        let spec = self.spec(program, context);
        let started = match self.launch(&spec, is_shell, context, workspace).await? {
            // A path that rules close, such as a lock file, disappeared before it was closed: all paths are looked up
            // once more.
            (Err(LaunchError::Moved(_)), _) => self.launch(&spec, is_shell, context, workspace).await?,
            started => started,
        };
        let (child, closed_wider) = started;
        let mut child = child.map_err(not_started)?;
        let proxy = match child.proxy.take() {
            Some(listener) => Some(self.proxy(listener.into(), context)?),
            None => None,
        };
        let tools = child.tools.take();
        Ok(StartedProgram { child, proxy, is_terminal, widening_note: closed_wider, tools })
    }

    /// Starts a program with the paths closed that rules close at this moment. Also returns the note on paths that are
    /// closed in addition, if there are any.
    async fn launch(
        &self,
        spec: &LaunchSpec,
        is_shell: bool,
        context: &CallContext<'_>,
        workspace: &Arc<Workspace>,
    ) -> Result<(Result<Child, LaunchError>, Option<String>), ToolFailure> {
        let ClosedPaths { hidden, read_only: sealed, widening_note: wider, .. } =
            ClosedPaths::of(context, workspace).await?;
        let policy = SandboxPolicy { hidden, sealed, ..spec.policy.clone() };
        // A workspace supplies neither the programs that tools run nor the programs that those start.
        let launching = self.launcher()?.launch_from_outside(LaunchSpec { policy, ..spec.clone() }, is_shell);
        Ok((launching.await, wider))
    }

    /// Returns the launch specification for a call, still without the paths that rules close.
    fn spec(&self, program: ProgramSpec, context: &CallContext<'_>) -> LaunchSpec {
        let roots = context.grant.roots();
        let settings = &self.settings;
        let mut environment = settings.environment.clone();
        environment.extend(FOR_NOBODY.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        if matches!(settings.network, NetworkPolicy::Hosts(_)) {
            // Node reads the variables of the proxy only then.
            environment.insert("NODE_USE_ENV_PROXY".into(), "1".into());
        }
        environment.extend(program.environment);
        LaunchSpec {
            program: program.name.into(),
            args: program.args,
            working_dir: program.working_dir,
            input: program.input,
            policy: SandboxPolicy {
                confinement: Confinement::Sealed,
                session: Some(session_key(context.principal, context.session)),
                hidden: Vec::new(),
                sealed: Vec::new(),
                write_roots: roots.write.clone(),
                read_roots: roots.read_only.clone(),
                lasting_home: None,
                network: settings.network.clone(),
                offers_tools: program.offers_tools,
                environment,
                limits: settings.limits.clone(),
            },
        }
    }

    /// Releases the resources that the commands of a session share.
    pub(crate) fn end_session(&self, principal: &Principal, session: &str) {
        if let Some(launcher) = self.launcher.get() {
            launcher.release_session(session_key(principal, session));
        }
    }

    /// Starts the proxy to the configured hosts that no rule denies.
    fn proxy(&self, listener: OwnedFd, context: &CallContext<'_>) -> Result<EgressProxy, ToolFailure> {
        let failed = |message: String| ToolFailure::new(ErrorKind::ExecutionFailed, message);
        let NetworkPolicy::Hosts(hosts) = &self.settings.network else {
            return Err(failed("the network of commands is closed".into()));
        };
        let hosts = HostPatterns::parse(hosts)
            .map_err(|error| failed(format!("`sandbox.network` cannot be used: {error}")).caused_by(error))?;
        let grant = context.grant.clone();
        let policy = ProxyPolicy {
            call: context.id.to_string().into(),
            hosts,
            rules: Arc::new(move |host| grant.objection(&Access::ReachHost(host.to_string().into()))),
            announced: None,
            limits: ProxyLimits::default(),
        };
        let connector = Connector::new(Arc::new(SystemNetwork::default()), HostPatterns::default());
        EgressProxy::start(listener, connector, policy)
            .map_err(|error| failed("the network proxy could not be started".into()).caused_by(error))
    }

    fn launcher(&self) -> Result<&Launcher, ToolFailure> {
        if let Some(launcher) = self.launcher.get() {
            return Ok(launcher);
        }
        let started = Launcher::start().map_err(|error| {
            ToolFailure::new(ErrorKind::ExecutionFailed, "the program launcher could not be started").caused_by(error)
        })?;
        let settings = &self.settings;
        let started = started.requiring_landlock(settings.requires_landlock).allowing_tier_2(settings.allows_tier_2);
        let started = started.for_user(settings.environment.get("HOME").map(Path::new));
        Ok(self.launcher.get_or_init(|| started))
    }
}

/// Returns the key of the resources that commands of one session share.
fn session_key(principal: &Principal, session: &str) -> Arc<str> {
    format!("{principal}\n{session}").into()
}

fn not_started(error: LaunchError) -> ToolFailure {
    if let LaunchError::Unconfinable { missing, remedy } = &error {
        let message = format!("no program is run here, because it could not be confined: {missing}");
        let suggestion = Suggestion::PrepareMachine(remedy.clone());
        return ToolFailure::new(ErrorKind::Unavailable, message).suggest(suggestion).caused_by(error);
    }
    if let LaunchError::NoTools(_) = &error {
        let next = "Leave out `tools`, and call the tools directly.";
        return ToolFailure::new(ErrorKind::Unavailable, error.to_string()).next(next).caused_by(error);
    }
    if let LaunchError::OutOfDescriptors(limit) = &error {
        let failure = ToolFailure::new(ErrorKind::RateLimited, "the program was not started");
        return failure.of_descriptors(Some(*limit)).caused_by(error);
    }
    let kind = match &error {
        LaunchError::NotFound { .. } => ErrorKind::Unavailable,
        LaunchError::NoWorkingFolder(_) => ErrorKind::NotFound,
        _ => ErrorKind::ExecutionFailed,
    };
    let cause = std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
    ToolFailure::new(kind, format!("{error}{cause}"))
        .of_descriptors(FileDescriptorExhaustion::in_chain(&error))
        .caused_by(error)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test plants a program")]
mod tests {
    use super::*;
    use crate::{builtin::tests::Bench, sandbox::workspace::UserPathAliases};
    use serde_json::json;
    use std::{fs, os::unix::fs::PermissionsExt};
    use toolstead_domain::WorkspaceRoots;

    #[test]
    fn workspace_folders_on_the_path_supply_programs_for_commands_but_not_for_tools() {
        let bench = Bench::new();
        bench.put("bin/git", "#!/bin/sh\necho planted\n");
        fs::set_permissions(bench.path("bin/git"), fs::Permissions::from_mode(0o755)).unwrap();
        let bench = bench.with_path_in("bin");
        assert!(bench.text("bash", json!({"command": "git; git init -q . || true"})).contains("planted"));
        let said = match bench.call("git", json!({"operation": "status"})) {
            Ok(result) => result.joined_text(),
            Err(failure) => failure.into_result().joined_text(),
        };
        assert!(said.contains("not a git repository") && !said.contains("planted"), "{said}");
    }

    #[test]
    fn a_workspace_on_the_path_supplies_no_shell() {
        let bench = Bench::new();
        bench.put("bin/bash", "#!/bin/sh\necho planted\n");
        fs::set_permissions(bench.path("bin/bash"), fs::Permissions::from_mode(0o755)).unwrap();
        let bench = bench.with_path_in("bin");
        let text = bench.text("bash", json!({"command": "echo runs; command -v bash"}));
        let planted = bench.path("bin/bash").display().to_string();
        assert!(text.contains("runs") && text.contains(&planted) && !text.contains("planted"), "{text}");
    }

    #[test]
    fn a_program_that_only_the_workspace_has_is_not_available() {
        let workspace = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(workspace.path()).unwrap();
        fs::create_dir(real.join("bin")).unwrap();
        fs::write(real.join("bin/planted"), "").unwrap();
        fs::set_permissions(real.join("bin/planted"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut settings = CommandSettings::default();
        settings.environment.insert("PATH".into(), format!("{}:/usr/bin:/bin", real.join("bin").display()));
        let programs = ProgramLauncher::new(settings);
        let open = |write| {
            let roots = WorkspaceRoots { write, read_only: Vec::new(), forbidden: Vec::new() };
            Workspace::open(&roots, UserPathAliases::default()).unwrap()
        };
        for (roots, is_available) in [(vec![real], false), (vec![], true)] {
            let workspace = open(roots);
            let available = |name| matches!(programs.availability(name, &workspace), Availability::Available);
            assert_eq!(available("planted"), is_available);
            assert!(available("bash") && !available("no-such"));
        }
    }

    #[test]
    fn a_program_that_cannot_be_confined_is_unavailable_with_a_suggestion() {
        let error = LaunchError::Unconfinable { missing: "this".into(), remedy: "do that".into() };
        let failure = not_started(error);
        assert_eq!(failure.kind, ErrorKind::Unavailable);
        assert_eq!(failure.suggestion.as_deref(), Some(&Suggestion::PrepareMachine("do that".into())));
        let said = failure.into_result().joined_text();
        assert!(said.contains("could not be confined: this") && !said.contains("do that"), "{said}");
    }
}
