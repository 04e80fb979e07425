//! Programs that run outside of the confinement of commands and that tools could modify: programs and scripts of hooks,
//! and those of servers that have network access or are not confined.
//!
//! No tool may change them. For servers, the digest of each such file is stored as well. A server whose files changed
//! is not started until the user trusts the new content, because the change may have been made in another way.

use crate::config::{
    Config,
    hooks::executable::{lines_within, run_by},
    layers::{LayerKind, environment::EnvironmentVariables, folders::StandardFolders},
    servers::{
        mcp_server::ConfiguredServer,
        server_programs::{ProgramFile, WritableServerPrograms},
    },
    tree::{check::PathBase, origin::Origin, problem::Problem},
    trust::{self, TrustList, program_digest},
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolstead_domain::{
    Effect, PermissionRule, ServerName, WorkspaceRoots, permission::path_pattern, workspace_roots::lexical,
};
use toolstead_infrastructure::{
    child_environment,
    mcp::client::{
        config::{McpTransport, ServerSandboxProfile, StdioUpstream},
        transport::stdio::named_data,
    },
    sandbox::program_folders::holds_home,
    shell_analysis::catalogue::{known_as, program},
};

/// Records the digests of programs that the user's own configuration names for the first time. Naming a program trusts
/// its current content, but not content that is put there later.
pub(in crate::config) fn note_named(
    servers: &[ConfiguredServer],
    folders: &StandardFolders,
    trusted: &TrustList,
) -> Result<(), Problem> {
    let unknown: Vec<_> = servers.iter().flat_map(|server| server.programs.unknown(trusted)).collect();
    match unknown.is_empty() || folders.data.is_none() {
        true => Ok(()),
        false => trust::set_programs(folders, unknown),
    }
}

/// Digests of programs at one point in time; `None` for a program that does not exist.
#[derive(Debug)]
pub struct ProgramDigestSnapshot(Vec<(PathBuf, Option<String>)>);

impl ProgramDigestSnapshot {
    /// Reads the programs and computes their digests.
    ///
    /// # Errors
    /// A [`Problem`] with the path of a program that cannot be read.
    pub fn of(programs: &[PathBuf]) -> Result<Self, Problem> {
        let digest = |path: &PathBuf| match program_digest(path) {
            Ok(digest) => Ok((path.clone(), digest)),
            Err(error) => Err(Problem::new(Origin::file(path.clone()), format!("cannot be read: {error}"))),
        };
        programs.iter().map(digest).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the programs that exist.
    pub fn existing(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter(|(_, digest)| digest.is_some()).map(|(path, _)| path.as_path())
    }
}

impl Config {
    /// Trusts the content that these server programs had when their digests were computed.
    ///
    /// # Errors
    /// A [`Problem`] if the list of trusted files cannot be written.
    pub fn trust_programs(&self, programs: &ProgramDigestSnapshot) -> Result<(), Problem> {
        trust::set_programs(&self.folders, programs.0.clone())
    }
}

/// Stores in each server the files that it runs or reads settings from and that tools can write to. Returns the files
/// that no tool may change, each with the origin that names it. Skips disabled servers, those of the profile `strict`,
/// and those over HTTP.
pub(in crate::config) fn of_servers(
    servers: &mut [ConfiguredServer],
    roots: &WorkspaceRoots,
    folders: &StandardFolders,
    environment: &EnvironmentVariables,
) -> Vec<(PathBuf, Origin)> {
    let written = written_by_tools(servers, roots);
    let is_written = |path: &Path| written.iter().any(|folder| path.starts_with(folder));
    let common = child_environment::base(|name| environment.get(name).map(str::to_owned));
    let worked_on: Vec<(ServerName, Vec<PathBuf>)> = servers
        .iter()
        .map(|server| (server.name.clone(), with_real(worked_on_by(server, roots, folders, &common))))
        .collect();
    let mut all = Vec::new();
    for server in servers.iter_mut().filter(|server| server.profile != ServerSandboxProfile::Strict && !server.disabled)
    {
        let Ok(McpTransport::Stdio(StdioUpstream { command, args, env, working_dir })) = &server.transport else {
            continue;
        };
        let start = working_dir.as_deref().or(roots.start()).unwrap_or(&folders.start);
        let words: Vec<&str> = std::iter::once(command).chain(args).map(String::as_str).collect();
        let path = env.get("PATH").or_else(|| common.get("PATH")).map(String::as_str);
        let run = run_by(command, args, start, environment).into_iter().chain(found_in(path, command));
        let run: Vec<PathBuf> = with_real(run.collect());
        let mut settings: Vec<PathBuf> = read_by(&words).iter().map(|name| lexical(start, Path::new(name))).collect();
        for line in lines_within(&words, start, environment) {
            let words: Vec<&str> = line.iter().map(String::as_str).collect();
            settings.extend(read_by(&words).iter().map(|name| lexical(start, Path::new(name))));
        }
        settings.extend(server.env_file.clone());
        let is_named = |path: &Path| match server.launched_by {
            kind if kind.is_of_project() => false,
            // The user named this very location, and not just a name that is searched in the start folder.
            LayerKind::User | LayerKind::Administrator => {
                let absolute = |word: &&str| word.starts_with('/') && lexical(Path::new("/"), Path::new(word)) == path;
                working_dir.is_some() || words.iter().any(absolute) || server.env_file.as_deref() == Some(path)
            }
            _ => true,
        };
        let is_within = |path: &Path, folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        // A confined server may change its own settings, because that gives it no additional rights.
        let others = || worked_on.iter().filter(|(name, _)| *name != server.name);
        let is_of_others = |path: &Path| others().any(|(_, folders)| is_within(path, folders));
        let settings = settings.iter().filter(|path| is_written(path) || is_of_others(path));
        let files = run.iter().filter(|path| is_written(path)).chain(settings);
        let mut files: Vec<ProgramFile> =
            files.map(|path| ProgramFile { path: path.clone(), is_named: is_named(path) }).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        let config = match (&server.origin, server.launched_by) {
            (Origin::File(path, _), LayerKind::Chosen) => Some(path.to_path_buf()),
            _ => None,
        };
        server.programs = WritableServerPrograms { files, folders: Some(folders.clone()), config };
        // A confined server can also write to its own folders, and must not replace a program of its own or of another
        // server.
        let is_closed =
            |path: &PathBuf| is_written(path) || worked_on.iter().any(|(_, folders)| is_within(path, folders));
        all.extend(run.into_iter().filter(is_closed).map(|path| (path, server.origin.clone())));
    }
    all
}

/// Returns a deny rule for each of these files in a writable root, which keeps tools from changing the file. A program
/// that runs unconfined bypasses every rule, so its files must not be writable.
pub(in crate::config) fn guarding_rules(
    files: &[(PathBuf, Origin)],
    roots: &WorkspaceRoots,
) -> Vec<Arc<PermissionRule>> {
    let inside = files.iter().filter(|(path, _)| roots.write.iter().any(|root| path.starts_with(root)));
    let rule = |(path, origin): &(PathBuf, Origin)| {
        let text = format!("Write(/{})", path_pattern::literal(&path.to_string_lossy()));
        let base = PathBase { folder: Path::new("/"), home: None }.patterns();
        PermissionRule::parse(Effect::Deny, &text, origin.to_rule_origin(), &base).ok().map(Arc::new)
    };
    inside.filter_map(rule).collect()
}

/// Returns a file that the command runs or reads settings from and that is in one of these folders.
pub(in crate::config) fn in_reach_of_tools(
    words: &[String],
    start: &Path,
    environment: &EnvironmentVariables,
    written: &[PathBuf],
) -> Option<PathBuf> {
    let (command, args) = words.split_first()?;
    let plain: Vec<&str> = words.iter().map(String::as_str).collect();
    let path = child_environment::base(|name| environment.get(name).map(str::to_owned)).remove("PATH");
    let settings = read_by(&plain).into_iter().map(|name| lexical(start, Path::new(&name)));
    let run = run_by(command, args, start, environment).into_iter().chain(found_in(path.as_deref(), command));
    let all = with_real(run.chain(settings).collect());
    all.into_iter().find(|path| written.iter().any(|folder| path.starts_with(folder)))
}

/// Returns the environment for commands that return keys. Its `PATH` omits folders that tools can write to, so that no
/// file created by a tool is found by name.
pub fn out_of_reach_of_tools(
    servers: &[ConfiguredServer],
    roots: &WorkspaceRoots,
    environment: &EnvironmentVariables,
) -> BTreeMap<String, String> {
    let mut variables = child_environment::base(|name| environment.get(name).map(str::to_owned));
    let written = written_by_tools(servers, roots);
    let is_safe = |folder: &&str| {
        with_real(vec![PathBuf::from(folder)]).iter().all(|path| !written.iter().any(|other| path.starts_with(other)))
    };
    if let Some(path) = variables.get_mut("PATH") {
        *path = path.split(':').filter(is_safe).collect::<Vec<_>>().join(":");
    }
    variables
}

/// Returns the folders that tools, commands and confined servers can write to.
pub(in crate::config) fn written_by_tools(servers: &[ConfiguredServer], roots: &WorkspaceRoots) -> Vec<PathBuf> {
    let confined = servers.iter().filter(|server| server.profile != ServerSandboxProfile::Open && !server.disabled);
    let of_server = |server: &ConfiguredServer| {
        let mut folders = server.roots.clone();
        if let (Ok(McpTransport::Stdio(launched)), ServerSandboxProfile::Guarded) = (&server.transport, server.profile)
        {
            let values = launched.args.iter().map(|arg| arg.split_once('=').map_or(arg.as_str(), |(_, value)| value));
            folders.extend(values.map(PathBuf::from).filter(|path| path.is_absolute() && path.is_dir()));
        }
        folders
    };
    roots.write.iter().cloned().chain(with_real(confined.flat_map(of_server).collect())).collect()
}

/// Returns the paths that a confined server can write to besides the roots: its own folder, and the paths in its
/// arguments and variables.
fn worked_on_by(
    server: &ConfiguredServer,
    roots: &WorkspaceRoots,
    folders: &StandardFolders,
    common: &BTreeMap<String, String>,
) -> Vec<PathBuf> {
    let Ok(McpTransport::Stdio(launched)) = &server.transport else { return Vec::new() };
    if server.profile == ServerSandboxProfile::Open || server.disabled {
        return Vec::new();
    }
    let mut all: Vec<PathBuf> =
        launched.working_dir.clone().into_iter().filter(|dir| !holds_home(dir, folders.home.as_deref())).collect();
    if server.profile == ServerSandboxProfile::Guarded {
        let start = launched.working_dir.as_deref().or(roots.start()).unwrap_or(&folders.start);
        all.extend(named_data(launched, start, common));
    }
    all
}

/// Returns the first program with this name in the absolute folders of `path`; `None` for a command with a slash.
fn found_in(path: Option<&str>, command: &str) -> Option<PathBuf> {
    let folders = path?.split(':').filter(|folder| folder.starts_with('/') && !command.contains('/'));
    folders.map(|folder| Path::new(folder).join(command)).find(|program| program.is_file())
}

/// Returns the paths, and their resolved paths.
fn with_real(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let real: Vec<PathBuf> = paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut all: Vec<PathBuf> = paths.into_iter().chain(real).collect();
    all.sort();
    all.dedup();
    all
}

/// Returns the files, relative to a folder, that determine what a runner such as `npx` or `make` runs in the folder.
/// Files that the programs themselves load are not included.
fn read_by(words: &[&str]) -> Vec<String> {
    let Some(first) = words.first() else { return Vec::new() };
    // The programs that it starts may read files of the folder as well.
    let starts_others = program(first).wrapper().is_some_and(|wrapper| wrapper.starts_its_first_operand())
        || matches!(known_as(first), "uv" | "poetry" | "pipenv" | "dotenv");
    let runners = words.iter().enumerate().filter(|(at, _)| *at == 0 || starts_others);
    runners.flat_map(|(at, word)| read_by_runner(word, &words[at + 1..])).collect()
}

fn read_by_runner(name: &str, words: &[&str]) -> Vec<String> {
    let list = |files: &[&str]| files.iter().map(|file| (*file).to_owned()).collect::<Vec<_>>();
    let operands = || words.iter().copied().filter(|word| !word.starts_with('-'));
    let fetches = |word: Option<&str>| matches!(word, Some("exec" | "x" | "dlx"));
    match known_as(name) {
        name if program(name).interpreter().is_some_and(|one| one.runs_modules()) => {
            let module = words.iter().position(|word| *word == "-m").and_then(|at| words.get(at + 1));
            module.map(|module| of_module(module)).unwrap_or_default()
        }
        "npx" | "bunx" | "pnpx" => of_package(operands().next()),
        "npm" | "pnpm" | "yarn" | "bun" if fetches(operands().next()) => of_package(operands().nth(1)),
        "npm" | "pnpm" | "yarn" => list(&["package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs"]),
        "bun" => list(&["package.json", "bunfig.toml", ".npmrc"]),
        "deno" => list(&["deno.json", "deno.jsonc", "package.json"]),
        "uv" | "poetry" | "pipenv" => {
            let mut files = list(&["pyproject.toml", "uv.toml", "Pipfile"]);
            files.extend(operands().nth(1).map(|program| format!(".venv/bin/{program}")));
            files
        }
        "make" | "gmake" => list(&["GNUmakefile", "makefile", "Makefile"]),
        "just" => list(&["justfile", "Justfile", ".justfile"]),
        "cargo" => list(&["Cargo.toml", ".cargo/config.toml", "build.rs", "src/main.rs"]),
        "go" => list(&["go.mod", "go.work", "main.go"]),
        _ => Vec::new(),
    }
}

/// Returns the files of a Python module. Python searches the start folder first.
fn of_module(module: &str) -> Vec<String> {
    let parts: Vec<&str> = module.split('.').collect();
    let packages = (1..=parts.len()).map(|count| parts[..count].join("/"));
    let files = packages.flat_map(|path| ["", "/__init__", "/__main__"].map(|end| format!("{path}{end}.py")));
    files.collect()
}

/// Returns the files of a package. A package in the folder takes precedence over a downloaded one, and settings in the
/// folder determine the registry.
fn of_package(package: Option<&str>) -> Vec<String> {
    let mut files = [".npmrc", ".yarnrc", ".yarnrc.yml", "bunfig.toml"].map(str::to_owned).to_vec();
    let Some(package) = package else { return files };
    let version = package.char_indices().skip(1).find(|(_, c)| *c == '@').map(|(at, _)| at);
    let package = &package[..version.unwrap_or(package.len())];
    let program = package.rsplit('/').next().unwrap_or(package);
    files.extend([format!("node_modules/.bin/{program}"), format!("node_modules/{package}/package.json")]);
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_the_files_in_a_folder_that_determine_what_a_runner_executes() {
        for (line, expected) in [
            ("node server.js", ""),
            ("python3.12 -m a.b", "a.py a/__init__.py a/__main__.py a/b.py a/b/__init__.py a/b/__main__.py"),
            ("/usr/bin/python3 -u server.py", ""),
            (
                "npx -y @scope/server-x@1.2 /data",
                ".npmrc .yarnrc .yarnrc.yml bunfig.toml node_modules/.bin/server-x node_modules/@scope/server-x/package.json",
            ),
            ("npm run serve", "package.json .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs"),
            (
                "pnpm dlx thing",
                ".npmrc .yarnrc .yarnrc.yml bunfig.toml node_modules/.bin/thing node_modules/thing/package.json",
            ),
            (
                "uv run python -m srv",
                "pyproject.toml uv.toml Pipfile .venv/bin/python srv.py srv/__init__.py srv/__main__.py",
            ),
            ("env A=b make serve", "GNUmakefile makefile Makefile"),
            ("sudo make serve", "GNUmakefile makefile Makefile"),
            ("pypy3 -m x", "x.py x/__init__.py x/__main__.py"),
            ("pythonic -m x", ""),
            ("", ""),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(read_by(&words).join(" "), expected, "{line}");
        }
    }
}
