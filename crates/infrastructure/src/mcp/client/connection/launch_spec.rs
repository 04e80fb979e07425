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

/// The launch of a server.
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
            sealed: Vec::new(),
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
        }
    }
}
