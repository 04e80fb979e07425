//! What a server that is started here may touch, by its profile.

use super::McpServerDeps;
use crate::{
    mcp::client::config::{ServerConfinement, ServerProfile, StdioServer},
    sandbox::{
        launcher::{Input, LaunchSpec},
        program_folders::{self, Named},
    },
};
use std::path::{Path, PathBuf};
use toolstead_domain::sandbox_policy::{Confinement, NetworkPolicy, SandboxPolicy};

/// Where a server starts that sees no folder of the workspace.
const NEUTRAL_FOLDER: &str = "/tmp";

/// The launch of a server. Where its paths lead is judged as they are opened: a command may make one a link until then.
pub(super) fn of(server: &StdioServer, confined: &ServerConfinement, deps: &McpServerDeps) -> LaunchSpec {
    let mut environment = deps.environment.clone();
    environment.extend(server.env.clone());
    let (mut write_roots, mut read_roots) = (confined.roots.clone(), Vec::new());
    let folder = server.working_dir.clone().unwrap_or_else(|| deps.working_dir.clone());
    let (confinement, network) = match confined.profile {
        ServerProfile::Open => (Confinement::Open, NetworkPolicy::Host),
        ServerProfile::Strict => (Confinement::Sealed, NetworkPolicy::None),
        ServerProfile::Guarded => {
            let home = deps.environment.get("HOME").map(Path::new);
            for path in server.args.iter().filter_map(|argument| absolute_path(argument)) {
                match program_folders::named_by(&path, home) {
                    Named::Nothing => {}
                    Named::Program(folder) => read_roots.push(folder),
                    Named::Data => write_roots.push(path),
                }
            }
            (Confinement::Guarded, NetworkPolicy::Host)
        }
    };
    let mut program = server.command.clone();
    let mut working_dir = folder;
    if confinement != Confinement::Open {
        // From where it stands, which the server may not see.
        if program.contains('/') {
            program = working_dir.join(program).to_string_lossy().into_owned();
        }
        if server.working_dir.is_some() {
            write_roots.push(working_dir.clone());
        }
        if !write_roots.iter().chain(&read_roots).any(|root| working_dir.starts_with(root)) {
            working_dir = NEUTRAL_FOLDER.into();
        }
    }
    LaunchSpec {
        program,
        args: server.args.clone(),
        working_dir,
        input: Input::Pipe,
        policy: SandboxPolicy {
            confinement,
            session: None,
            hidden: deps.forbidden.clone(),
            sealed: deps.sealed.clone(),
            write_roots,
            read_roots,
            network,
            environment,
            limits: confined.limits.clone(),
        },
    }
}

/// The path in an argument such as `/data` or `--root=/data`.
fn absolute_path(argument: &str) -> Option<PathBuf> {
    let value = match argument.split_once('=') {
        Some((option, value)) if option.starts_with('-') => value,
        _ => argument,
    };
    Path::new(value).is_absolute().then(|| value.into())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out the folders that a server is started in")]
mod tests {
    use super::*;
    use crate::{mcp::client::http_connector::HttpConnector, sandbox::launcher::Launcher};
    use std::{collections::BTreeMap, sync::Arc};

    #[test]
    fn a_profile_says_what_a_server_sees() {
        let folder = tempfile::tempdir().unwrap();
        let (data, project) = (folder.path().join("data"), folder.path().join("project"));
        for path in [data.clone(), project.join("dist")] {
            std::fs::create_dir_all(path).unwrap();
        }
        for path in [project.join("package.json"), project.join("dist/index.js")] {
            std::fs::write(path, "").unwrap();
        }
        let deps = McpServerDeps {
            launcher: Launcher::start().unwrap(),
            http: Arc::new(HttpConnector::default()),
            environment: BTreeMap::new(),
            working_dir: folder.path().to_path_buf(),
            forbidden: vec!["/own/data".into()],
            sealed: vec!["/own/program".into()],
        };
        let args = [
            project.join("dist/index.js").display().to_string(),
            format!("--root={}", data.display()),
            "/no/such".into(),
        ];
        let server = StdioServer { command: "node".into(), args: args.into(), env: BTreeMap::new(), working_dir: None };
        for (profile, confinement, network, writable, readable) in [
            (ServerProfile::Guarded, Confinement::Guarded, NetworkPolicy::Host, vec![data.clone()], vec![project]),
            (ServerProfile::Strict, Confinement::Sealed, NetworkPolicy::None, vec![], vec![]),
            (ServerProfile::Open, Confinement::Open, NetworkPolicy::Host, vec![], vec![]),
        ] {
            let confined = ServerConfinement { profile, ..ServerConfinement::default() };
            let policy = of(&server, &confined, &deps).policy;
            assert_eq!((policy.confinement, policy.network), (confinement, network));
            assert_eq!((policy.write_roots, policy.read_roots), (writable, readable));
            assert_eq!(policy.hidden, [Path::new("/own/data")]);
            assert_eq!(policy.sealed, [Path::new("/own/program")]);
        }
    }

    /// A workspace with links, and a folder beside it that is no server's.
    struct Workspace {
        folder: tempfile::TempDir,
        deps: McpServerDeps,
    }

    impl Workspace {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let top = std::fs::canonicalize(folder.path()).unwrap();
            for name in ["work/data", "work/inner", "secret"] {
                std::fs::create_dir_all(top.join(name)).unwrap();
            }
            for (link, target) in [("work/out", "../secret"), ("work/in", "inner"), ("own", "secret")] {
                std::os::unix::fs::symlink(target, top.join(link)).unwrap();
            }
            std::fs::write(top.join("secret/x.js"), "").unwrap();
            let deps = McpServerDeps {
                launcher: Launcher::start().unwrap().beside(&[top.join("work")]),
                http: Arc::new(HttpConnector::default()),
                environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
                working_dir: top.clone(),
                forbidden: Vec::new(),
                sealed: Vec::new(),
            };
            Self { folder, deps }
        }

        fn path(&self, name: &str) -> PathBuf {
            std::fs::canonicalize(self.folder.path()).unwrap().join(name)
        }

        /// What a server of this path fails with, where `between` happens before it is started.
        async fn failure(
            &self,
            path: &str,
            is_root: bool,
            profile: ServerProfile,
            between: impl FnOnce(),
        ) -> Option<String> {
            let path = self.path(path);
            let args = if is_root { Vec::new() } else { vec![format!("--data={}", path.display())] };
            let server = StdioServer { command: "cat".into(), args, env: BTreeMap::new(), working_dir: None };
            let roots = if is_root { vec![path] } else { Vec::new() };
            let confined = ServerConfinement { profile, roots, ..ServerConfinement::default() };
            let spec = of(&server, &confined, &self.deps);
            between();
            self.deps.launcher.launch(spec).await.err().map(|error| error.to_string())
        }
    }

    #[tokio::test]
    async fn a_link_that_a_command_can_have_made_leads_no_server_out_of_the_workspace() {
        let workspace = Workspace::new();
        for is_root in [false, true] {
            for path in ["work/data", "work/in", "own", "secret"] {
                assert_eq!(workspace.failure(path, is_root, ServerProfile::Guarded, || ()).await, None, "{path}");
            }
            let said = workspace.failure("work/out", is_root, ServerProfile::Guarded, || ()).await.unwrap();
            assert!(said.contains("work/out`") && said.contains("a link"), "{said}");
        }
        assert!(workspace.failure("work/out/x.js", false, ServerProfile::Guarded, || ()).await.is_some());
        assert_eq!(workspace.failure("work/out", true, ServerProfile::Open, || ()).await, None);
    }

    #[tokio::test]
    async fn a_link_that_is_made_after_a_server_was_looked_at_leads_it_nowhere() {
        let workspace = Workspace::new();
        let data = workspace.path("work/data");
        let swap = || {
            std::fs::remove_dir(&data).unwrap();
            std::os::unix::fs::symlink("../secret", &data).unwrap();
        };
        let said = workspace.failure("work/data", true, ServerProfile::Guarded, swap).await.unwrap();
        assert!(said.contains("work/data`") && said.contains("a link"), "{said}");
    }
}
