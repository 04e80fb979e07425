//! Launch specification of a child-process server: the paths and network that its profile permits.

use super::StdioLauncher;
use crate::{
    mcp::client::{
        catalogue::identity::digest,
        config::{ServerSandboxProfile, StdioUpstream, UpstreamConfig},
    },
    sandbox::{
        launcher::{ChildInput, LaunchSpec},
        program_folders::{self, PathRole},
    },
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};
use toolstead_domain::{Confinement, NetworkPolicy, SandboxPolicy, workspace_roots::lexical};

/// Working folder of a server that has no access to the workspace.
const NEUTRAL_FOLDER: &str = "/tmp";

/// Returns the launch specification of a server. Symbolic links in its paths are checked when the paths are opened,
/// because a command may create a link until then.
pub(super) fn of(server: &StdioUpstream, config: &UpstreamConfig, launcher: &StdioLauncher) -> LaunchSpec {
    let confined = &config.confinement;
    let mut environment = launcher.environment.clone();
    environment.extend(server.env.clone());
    let (mut write_roots, mut read_roots) = (confined.roots.clone(), Vec::new());
    let mut lasting_home = None;
    let mut working_dir = folder(server, confined.profile, launcher);
    let home = launcher.environment.get("HOME").map(Path::new);
    let (confinement, network) = match confined.profile {
        ServerSandboxProfile::Open => (Confinement::Open, NetworkPolicy::Host),
        ServerSandboxProfile::Strict => (Confinement::Sealed, NetworkPolicy::None),
        ServerSandboxProfile::Guarded => {
            for path in paths(server, &working_dir, &launcher.environment) {
                match program_folders::classify_path(&path, home) {
                    PathRole::Nothing => {}
                    PathRole::Program(folder) => read_roots.push(folder),
                    PathRole::Data => write_roots.push(path),
                }
            }
            if server.working_dir.is_none() && first_root(launcher).is_some() {
                // The folders are as commands see them.
                write_roots.extend(launcher.roots.write.first().cloned());
                read_roots
                    .extend(launcher.roots.read_only.iter().filter(|root| root.starts_with(&working_dir)).cloned());
            }
            lasting_home = launcher.homes.as_ref().map(|homes| homes.join(home_of(server, config)));
            (Confinement::Guarded, NetworkPolicy::Host)
        }
    };
    let mut program = server.command.clone();
    if confinement != Confinement::Open {
        // The path is resolved from the outer working folder, which the server may not have access to.
        if program.contains('/') {
            let from = server.working_dir.as_ref().unwrap_or(&launcher.working_dir);
            program = from.join(program).to_string_lossy().into_owned();
        }
        // For a project file in the home folder, the working folder is the home itself, which must not become a root.
        if server.working_dir.is_some() && !program_folders::holds_home(&working_dir, home) {
            match is_read_only(&working_dir, launcher) {
                true => read_roots.push(working_dir.clone()),
                false => write_roots.push(working_dir.clone()),
            }
            let beneath = |root: &&PathBuf| root.starts_with(&working_dir) && **root != working_dir;
            read_roots.extend(launcher.roots.read_only.iter().filter(beneath).cloned());
        }
        if !write_roots.iter().chain(&read_roots).any(|root| working_dir.starts_with(root)) {
            working_dir = NEUTRAL_FOLDER.into();
        }
    }
    LaunchSpec {
        program,
        args: server.args.clone(),
        working_dir,
        input: ChildInput::Pipe,
        policy: SandboxPolicy {
            confinement,
            session: None,
            hidden: launcher.roots.forbidden.clone(),
            sealed: launcher.sealed.clone(),
            write_roots,
            read_roots,
            lasting_home,
            network,
            offers_tools: false,
            environment,
            limits: confined.limits.clone(),
        },
    }
}

/// Returns the folder that a server is meant to start in, even if the server has no access to it.
pub(super) fn folder(server: &StdioUpstream, profile: ServerSandboxProfile, launcher: &StdioLauncher) -> PathBuf {
    let usual = match profile {
        ServerSandboxProfile::Guarded => first_root(launcher).unwrap_or(Path::new(NEUTRAL_FOLDER)),
        ServerSandboxProfile::Strict | ServerSandboxProfile::Open => &launcher.working_dir,
    };
    server.working_dir.as_deref().unwrap_or(usual).to_owned()
}

/// Returns the workspace root in which guarded servers start; `None` without one, or if it is or contains the home
/// folder, because that contains all data of its user.
fn first_root(launcher: &StdioLauncher) -> Option<&Path> {
    let home = launcher.environment.get("HOME").map(Path::new);
    launcher.roots.start().filter(|root| !program_folders::holds_home(root, home))
}

/// Returns `true` if the innermost root around a folder is read-only.
fn is_read_only(folder: &Path, launcher: &StdioLauncher) -> bool {
    let innermost = |roots: &[PathBuf]| {
        let around = roots.iter().filter(|root| folder.starts_with(root));
        around.map(|root| root.components().count()).max()
    };
    innermost(&launcher.roots.read_only) > innermost(&launcher.roots.write)
}

/// Returns the files and folders that a guarded server gets access to because its arguments or environment variables
/// contain their paths, as they exist now. `start` is its intended working folder; `common` is the environment of every
/// child process.
pub fn named_data(server: &StdioUpstream, start: &Path, common: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let home = common.get("HOME").map(Path::new);
    let named = paths(server, start, common).into_iter();
    named.filter(|path| program_folders::classify_path(path, home) == PathRole::Data).collect()
}

/// Returns the name of a guarded server's persistent home folder. Each configuration of each server has its own.
fn home_of(server: &StdioUpstream, config: &UpstreamConfig) -> String {
    digest(&json!([config.configured_in, config.name.as_str(), server.command, server.args]))
}

/// Returns the absolute paths in the arguments and environment variables of a server, and the relative ones that lead
/// out of its working folder.
fn paths(server: &StdioUpstream, start: &Path, common: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let home = common.get("HOME").map(Path::new);
    // Variables of every child process are skipped: they contain the paths of programs, the home and temporary files. A
    // whole home folder counts only as an argument, where it is certainly intended.
    let of_variables = server.env.iter().filter(|(name, _)| !common.contains_key(*name));
    let of_variables = of_variables.filter_map(|(_, value)| path_of(value, start));
    let of_variables = of_variables.filter(|path| !program_folders::holds_home(path, home));
    let of_arguments = server.args.iter().filter_map(|argument| {
        // Such as `/data` or `--root=/data`.
        path_of(
            match argument.split_once('=') {
                Some((option, value)) if option.starts_with('-') => value,
                _ => argument,
            },
            start,
        )
    });
    of_arguments.chain(of_variables).collect()
}

fn path_of(text: &str, start: &Path) -> Option<PathBuf> {
    let path = Path::new(text);
    if path.is_absolute() {
        return Some(path.into());
    }
    if start == Path::new(NEUTRAL_FOLDER) || !path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    // Resolved as the server will resolve it: no folder around those that it has access to is a link.
    let led = lexical(start, path);
    (!led.starts_with(start)).then_some(led)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out the folders that a server is started in")]
mod tests {
    use super::*;
    use crate::{
        mcp::client::config::{McpTransport, ServerConfinement},
        sandbox::launcher::Launcher,
    };
    use tokio::io::AsyncReadExt;
    use toolstead_domain::{ServerName, WorkspaceRoots};

    /// Workspace with links and a program, and folders outside of it that no server may access.
    struct TestWorkspace {
        _folder: tempfile::TempDir,
        top: PathBuf,
        launcher: StdioLauncher,
    }

    impl TestWorkspace {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let top = std::fs::canonicalize(folder.path()).unwrap();
            for name in ["work/data", "work/inner", "work/kept", "secret", "home/own", "app/dist"] {
                std::fs::create_dir_all(top.join(name)).unwrap();
            }
            for (link, target) in [("work/out", "../secret"), ("work/in", "inner"), ("own", "secret")] {
                std::os::unix::fs::symlink(target, top.join(link)).unwrap();
            }
            for name in
                ["secret/x.js", "secret/key", "app/package.json", "app/dist/x.js", "app/dist/x.json", "work/a.txt"]
            {
                std::fs::write(top.join(name), "").unwrap();
            }
            let roots = WorkspaceRoots {
                write: vec![top.join("work")],
                read_only: vec![top.join("work/kept"), top.join("secret")],
                forbidden: vec!["/own/data".into()],
            };
            let launcher = StdioLauncher {
                launcher: Launcher::start().unwrap().with_other_roots(&[top.join("work")]),
                environment: BTreeMap::from([
                    ("PATH".into(), "/usr/bin:/bin".into()),
                    ("HOME".into(), top.join("home").display().to_string()),
                ]),
                working_dir: top.join("work"),
                roots,
                sealed: vec!["/own/program".into()],
                homes: Some(top.join("homes")),
            };
            Self { _folder: folder, top, launcher }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.top.join(name)
        }

        /// Returns the launch specification of a server. `TOP` in an argument or variable is replaced by the top
        /// folder.
        fn spec(&self, profile: ServerSandboxProfile, args: &[&str], env: &[(&str, &str)]) -> LaunchSpec {
            let full = |text: &str| text.replace("TOP", &self.top.display().to_string());
            let server = StdioUpstream {
                command: "sh".into(),
                args: args.iter().map(|text| full(text)).collect(),
                env: env.iter().map(|(name, value)| ((*name).to_owned(), full(value))).collect(),
                working_dir: None,
            };
            of(&server, &config(&server, profile), &self.launcher)
        }

        /// Returns the writable and the read-only roots of a guarded server, relative to the top folder.
        fn roots(&self, args: &[&str], env: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
            let policy = self.spec(ServerSandboxProfile::Guarded, args, env).policy;
            let shown = |roots: Vec<PathBuf>| -> Vec<String> {
                roots.iter().map(|root| root.strip_prefix(&self.top).unwrap().display().to_string()).collect()
            };
            (shown(policy.write_roots), shown(policy.read_roots))
        }

        /// Returns the output of a guarded shell.
        async fn said(&self, script: &str, args: &[&str]) -> String {
            let all: Vec<&str> = ["-c", script, "sh"].iter().chain(args).copied().collect();
            self.said_by(self.spec(ServerSandboxProfile::Guarded, &all, &[])).await
        }

        async fn said_by(&self, spec: LaunchSpec) -> String {
            let mut child = self.launcher.launcher.launch(spec).await.unwrap();
            let (mut said, mut complained) = (String::new(), String::new());
            child.stdout.take().unwrap().read_to_string(&mut said).await.unwrap();
            child.stderr.take().unwrap().read_to_string(&mut complained).await.unwrap();
            child.exited().await;
            said + &complained
        }

        /// Returns the launch failure of a server with this path. `between` runs after the specification is created.
        async fn failure(
            &self,
            path: &str,
            is_root: bool,
            profile: ServerSandboxProfile,
            between: impl FnOnce(),
        ) -> Option<String> {
            let path = self.path(path);
            let args = if is_root { Vec::new() } else { vec![format!("--data={}", path.display())] };
            let server = StdioUpstream { command: "cat".into(), args, env: BTreeMap::new(), working_dir: None };
            let mut config = config(&server, profile);
            config.confinement.roots = if is_root { vec![path] } else { Vec::new() };
            let spec = of(&server, &config, &self.launcher);
            between();
            self.launcher.launcher.launch(spec).await.err().map(|error| error.to_string())
        }
    }

    fn config(server: &StdioUpstream, profile: ServerSandboxProfile) -> UpstreamConfig {
        let transport = McpTransport::Stdio(server.clone());
        let mut config = UpstreamConfig::new(ServerName::parse("s").unwrap(), transport);
        config.confinement = ServerConfinement { profile, ..ServerConfinement::default() };
        config
    }

    #[test]
    fn a_sandbox_profile_determines_confinement_network_and_roots_of_a_server() {
        let workspace = TestWorkspace::new();
        let (work, neutral) = (workspace.path("work"), PathBuf::from(NEUTRAL_FOLDER));
        for (profile, confinement, network, start, writable, lasts) in [
            (ServerSandboxProfile::Guarded, Confinement::Guarded, NetworkPolicy::Host, &work, vec![work.clone()], true),
            (ServerSandboxProfile::Strict, Confinement::Sealed, NetworkPolicy::None, &neutral, vec![], false),
            (ServerSandboxProfile::Open, Confinement::Open, NetworkPolicy::Host, &work, vec![], false),
        ] {
            let spec = workspace.spec(profile, &["x"], &[]);
            let policy = spec.policy;
            assert_eq!((policy.confinement, policy.network, &spec.working_dir), (confinement, network, start));
            assert_eq!((policy.write_roots, policy.lasting_home.is_some()), (writable, lasts));
            assert_eq!(policy.hidden, [Path::new("/own/data")]);
            assert_eq!(policy.sealed, [Path::new("/own/program")]);
        }
    }

    #[test]
    fn path_arguments_and_variables_become_roots_of_a_guarded_server() {
        let workspace = TestWorkspace::new();
        let check = |args: &[&str], env: &[(&str, &str)], writable: &[&str], readable: &[&str]| {
            let writable: Vec<String> = writable.iter().chain(&["work"]).map(|root| (*root).to_owned()).collect();
            let readable: Vec<String> = readable.iter().chain(&["work/kept"]).map(|root| (*root).to_owned()).collect();
            assert_eq!(workspace.roots(args, env), (writable, readable), "{args:?} {env:?}");
        };
        check(&[], &[], &[], &[]);
        check(&["--root=TOP/secret", "TOP/no/such", "stdio"], &[], &["secret"], &[]);
        check(&["TOP/app/dist/x.js", "TOP/app/dist/x.json"], &[], &["app/dist/x.json"], &["app"]);
        check(&[], &[("KEY", "TOP/secret/key"), ("MODE", "secret"), ("NONE", "TOP/no")], &["secret/key"], &[]);
        check(&[], &[("APP", "TOP/app/dist/x.js")], &[], &["app"]);
        // Variables with paths of programs and homes, and one that is a prefix of other paths.
        check(
            &[],
            &[("PATH", "TOP/secret"), ("HOME", "TOP/secret"), ("ALL", "TOP"), ("AT", "TOP/home"), ("P", "/")],
            &[],
            &[],
        );
        check(&["TOP/home"], &[("MINE", "TOP/home/own")], &["home", "home/own"], &[]);
        check(&["../app", ".", "./data", "in/../data"], &[("A", "../secret")], &["app", "secret"], &[]);
        check(&["/bin/sh", "/etc/hosts"], &[("SHELL", "/bin/sh")], &[], &[]);
    }

    #[test]
    fn a_guarded_server_gets_its_working_folder_as_root_but_never_the_whole_home() {
        let mut workspace = TestWorkspace::new();
        let mut server =
            StdioUpstream { command: "./run".into(), args: vec![], env: BTreeMap::new(), working_dir: None };
        server.working_dir = Some(workspace.path("app"));
        let spec = of(&server, &config(&server, ServerSandboxProfile::Guarded), &workspace.launcher);
        assert_eq!((spec.working_dir, spec.policy.write_roots), (workspace.path("app"), vec![workspace.path("app")]));
        assert_eq!(spec.program, workspace.path("app/./run").display().to_string());
        for folder in ["home", ""] {
            server.working_dir = Some(workspace.path(folder));
            for profile in [ServerSandboxProfile::Guarded, ServerSandboxProfile::Strict] {
                let spec = of(&server, &config(&server, profile), &workspace.launcher);
                assert_eq!(spec.working_dir, Path::new(NEUTRAL_FOLDER), "{folder}");
                assert_eq!((spec.policy.write_roots, spec.policy.read_roots), (vec![], vec![]), "{folder}");
            }
        }
        for (root, is_seen) in [("home/own", true), ("home", false), ("", false)] {
            workspace.launcher.roots = WorkspaceRoots { write: vec![workspace.path(root)], ..Default::default() };
            let spec = workspace.spec(ServerSandboxProfile::Guarded, &["../x"], &[]);
            assert_eq!(spec.policy.write_roots.is_empty(), !is_seen, "{root}");
            assert_eq!(spec.working_dir == Path::new(NEUTRAL_FOLDER), !is_seen, "{root}");
        }
        workspace.launcher.roots = WorkspaceRoots { read_only: vec![workspace.path("work")], ..Default::default() };
        let spec = workspace.spec(ServerSandboxProfile::Guarded, &[], &[]);
        assert_eq!((spec.policy.write_roots, spec.policy.read_roots), (vec![], vec![workspace.path("work")]));
        assert_eq!(spec.working_dir, workspace.path("work"));
    }

    #[test]
    fn a_working_folder_in_a_read_only_root_stays_read_only_for_a_guarded_server() {
        let workspace = TestWorkspace::new();
        let roots = |folder: &str| {
            let working_dir = Some(workspace.path(folder));
            let server = StdioUpstream { command: "x".into(), args: vec![], env: BTreeMap::new(), working_dir };
            let spec = of(&server, &config(&server, ServerSandboxProfile::Guarded), &workspace.launcher);
            assert_eq!(spec.working_dir, workspace.path(folder));
            (spec.policy.write_roots, spec.policy.read_roots)
        };
        for (folder, writable, readable) in [
            ("work", vec!["work"], vec!["work/kept"]),
            ("work/kept", vec![], vec!["work/kept"]),
            ("work/inner", vec!["work/inner"], vec![]),
            ("secret", vec![], vec!["secret"]),
            ("app", vec!["app"], vec![]),
        ] {
            let paths = |names: Vec<&str>| names.into_iter().map(|name| workspace.path(name)).collect::<Vec<_>>();
            assert_eq!(roots(folder), (paths(writable), paths(readable)), "{folder}");
        }
    }

    #[tokio::test]
    async fn a_guarded_server_starts_in_the_first_root_and_writes_into_it() {
        let workspace = TestWorkspace::new();
        let script = "pwd; echo made > made; echo no > kept/no; cat \"$1\"";
        let said = workspace.said(script, &["../app/dist/x.json"]).await;
        assert!(said.starts_with(&format!("{}\n", workspace.path("work").display())), "{said}");
        assert!(said.contains("kept/no: Read-only file system") && !said.contains("x.json"), "{said}");
        assert_eq!(std::fs::read_to_string(workspace.path("work/made")).unwrap(), "made\n");
        let said = workspace.said("ls ../secret", &[]).await;
        assert!(said.contains("No such file"), "{said}");
    }

    #[tokio::test]
    async fn a_file_argument_becomes_a_root_of_a_guarded_server() {
        let workspace = TestWorkspace::new();
        let script = "echo more >> \"$2\"; echo no >> \"$1\"; cat \"$2\"";
        let app = |name: &str| workspace.path(name).display().to_string();
        let said = workspace.said(script, &[&app("app/dist/x.js"), &app("app/dist/x.json")]).await;
        assert!(said.starts_with("more\n") && said.contains("x.js: Read-only file system"), "{said}");
        assert_eq!(std::fs::read_to_string(workspace.path("app/dist/x.json")).unwrap(), "more\n");
        for is_root in [false, true] {
            assert_eq!(workspace.failure("work/a.txt", is_root, ServerSandboxProfile::Guarded, || ()).await, None);
        }
    }

    #[tokio::test]
    async fn each_server_configuration_has_a_persistent_home_of_its_own() {
        let workspace = TestWorkspace::new();
        let run = async |args: &[&str]| {
            let script = "cat ~/.cache/kept; mkdir -p ~/.cache; echo kept >> ~/.cache/kept";
            workspace.said(script, args).await
        };
        assert!(run(&["a"]).await.contains("No such file"), "a new one");
        assert_eq!(run(&["a"]).await, "kept\n");
        assert!(run(&["b"]).await.contains("No such file"), "another's");
        let kept = std::fs::read_dir(workspace.path("homes")).unwrap().count();
        assert_eq!((kept, workspace.path("home/.cache").exists()), (2, false));
    }

    #[tokio::test]
    async fn rejects_a_server_path_through_a_workspace_link_that_leads_outside() {
        let workspace = TestWorkspace::new();
        for is_root in [false, true] {
            for path in ["work/data", "work/in", "own", "secret"] {
                assert_eq!(
                    workspace.failure(path, is_root, ServerSandboxProfile::Guarded, || ()).await,
                    None,
                    "{path}"
                );
            }
            let said = workspace.failure("work/out", is_root, ServerSandboxProfile::Guarded, || ()).await.unwrap();
            assert!(said.contains("work/out`") && said.contains("a link"), "{said}");
        }
        assert!(workspace.failure("work/out/x.js", false, ServerSandboxProfile::Guarded, || ()).await.is_some());
        assert_eq!(workspace.failure("work/out", true, ServerSandboxProfile::Open, || ()).await, None);
    }

    #[tokio::test]
    async fn rejects_a_server_root_that_was_replaced_by_a_link_after_its_specification() {
        let workspace = TestWorkspace::new();
        let data = workspace.path("work/data");
        let swap = || {
            std::fs::remove_dir(&data).unwrap();
            std::os::unix::fs::symlink("../secret", &data).unwrap();
        };
        let said = workspace.failure("work/data", true, ServerSandboxProfile::Guarded, swap).await.unwrap();
        assert!(said.contains("work/data`") && said.contains("a link"), "{said}");
    }
}
