//! Files of other programs with MCP servers: those of the user and of the project, and those that the user names.

use super::{
    client::{CLIENTS, ForeignClient, ServerConfigDialect, format_of},
    registry_entry,
    server_list::{ServerList, disabled_in_project, switch_off},
};
use crate::config::{
    layers::{environment::EnvironmentVariables, folders::StandardFolders},
    tree::{
        node::{Node, NodeContent},
        origin::Origin,
        ownership::check_owned,
        problem::Problem,
        source_file::{MAX_BYTES, project_folders, project_of, read_up_to},
    },
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Maximum size in bytes of the user's file of Claude Code, which also holds its history.
const MAX_HISTORY_BYTES: u64 = 32 << 20;

/// Files of Claude Code that may switch off servers of `.mcp.json`: those of the user and of the project.
const CLAUDE_SETTINGS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

/// MCP servers of a file, with the program that owns the file.
#[derive(Debug)]
pub(super) struct ClientFile {
    /// Name of the program for display.
    pub(super) owner: &'static str,
    /// Name of the program on the command line, which also distinguishes servers of the same name.
    pub(super) owner_name: &'static str,
    pub(super) dialect: ServerConfigDialect,
    /// Folder of the project; `None` for a file of the user.
    pub(super) workspace: Option<PathBuf>,
    pub(super) list: ServerList,
}

/// Reader of the files of other programs.
pub(super) struct ClientFileReader<'a> {
    pub(super) folders: &'a StandardFolders,
    pub(super) environment: &'a EnvironmentVariables,
    /// Reasons why files are not used.
    pub(super) problems: Vec<Problem>,
}

impl ClientFileReader<'_> {
    /// Returns the files with servers of the program `only`, or of all programs if `None`. Of each project file, only
    /// the first existing one is read. Files that cannot be used are recorded as problems.
    pub(super) fn discover(&mut self, only: Option<&ForeignClient>) -> Vec<ClientFile> {
        let projects = project_folders(self.folders);
        let mut files = Vec::new();
        for client in CLIENTS.iter().filter(|client| only.is_none_or(|only| only.name == client.name)) {
            let user_paths = client.user_paths(self.environment);
            for path in &user_paths {
                let max = if client.dialect == ServerConfigDialect::ClaudeCode { MAX_HISTORY_BYTES } else { MAX_BYTES };
                let read = self.read(path, max, |real| check_owned(path, real));
                files.extend(read.map(|root| self.file(client, path, None, root, &projects)));
            }
            for name in client.project_files {
                let paths = projects.iter().map(|folder| folder.join(name));
                let Some(path) = paths.filter(|path| !user_paths.contains(path)).find(|path| path.exists()) else {
                    continue;
                };
                if client.dialect == ServerConfigDialect::MicroX && !names_servers(&path) {
                    continue;
                }
                let refuse = |real: &Path| Err(format!("it leads to {}", real.display()));
                let Some(root) = self.read(&path, MAX_BYTES, refuse) else { continue };
                let folder = project_of(&path).to_path_buf();
                let mut file = self.file(client, &path, Some(folder), root, &projects);
                if client.dialect == ServerConfigDialect::ClaudeCode {
                    let disabled = self.disabled_by_claude_code(&projects);
                    file.list.servers.iter_mut().filter(|one| disabled.contains(&one.name)).for_each(switch_off);
                }
                files.push(file);
            }
        }
        files.retain(|file| !file.list.servers.is_empty());
        files
    }

    /// Reads the file at this path: a file of a known program, an entry of the MCP registry, or a file in any known
    /// notation.
    ///
    /// # Errors
    /// A [`Problem`] if the file cannot be read or contains no servers.
    pub(super) fn named(&self, path: &Path) -> Result<ClientFile, Problem> {
        let path = self.folders.start.join(path);
        let wrong = |reason: String| Problem::new(Origin::file(path.clone()), reason);
        let max = if path.ends_with(".claude.json") { MAX_HISTORY_BYTES } else { MAX_BYTES };
        let (bytes, _) = read_up_to(&path, max).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let root = parse(bytes, &path)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(entry) = registry_entry::of(&root) {
            let list = registry_entry::translate(entry, &root.origin)?;
            let dialect = ServerConfigDialect::General;
            return Ok(ClientFile { owner: "MCP registry", owner_name: "registry", dialect, workspace: None, list });
        }
        let client = ForeignClient::of_file(&path, self.environment);
        let dialect = client.map_or_else(|| dialect_of(&root, &path), |client| client.dialect);
        let is_user_file = client.is_some_and(|client| client.user_paths(self.environment).contains(&path));
        let mut projects = project_folders(self.folders);
        let mut list = ServerList::of(root, dialect, &projects, &stem);
        if list.servers.is_empty() {
            return Err(wrong("has no MCP servers in a notation that is known here".into()));
        }
        if dialect == ServerConfigDialect::ClaudeCode && !is_user_file {
            projects.push(project_of(&path).to_path_buf());
            let disabled = self.disabled_by_claude_code(&projects);
            list.servers.iter_mut().filter(|one| disabled.contains(&one.name)).for_each(switch_off);
        }
        Ok(ClientFile {
            owner: client.map_or("a file", |client| client.title),
            owner_name: client.map_or("file", |client| client.name),
            dialect,
            workspace: (!is_user_file).then(|| project_of(&path).to_path_buf()),
            list,
        })
    }

    fn file(
        &self,
        client: &'static ForeignClient,
        path: &Path,
        workspace: Option<PathBuf>,
        root: Node,
        projects: &[PathBuf],
    ) -> ClientFile {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        ClientFile {
            owner: client.title,
            owner_name: client.name,
            dialect: client.dialect,
            workspace,
            list: ServerList::of(root, client.dialect, projects, &stem),
        }
    }

    /// Reads a file; `None` if it does not exist or cannot be used. The latter is recorded as a problem, as is a link
    /// that `check_link` refuses.
    fn read(&mut self, path: &Path, max: u64, check_link: impl Fn(&Path) -> Result<(), String>) -> Option<Node> {
        let read = match read_up_to(path, max) {
            Ok((bytes, real)) if real != *path => match check_link(&real) {
                Ok(()) => parse(bytes, path),
                Err(reason) => {
                    let message = format!("is a link, or lies behind one, that is not followed: {reason}");
                    Err(Problem::new(Origin::file(path), message))
                }
            },
            Ok((bytes, _)) => parse(bytes, path),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return None;
            }
            Err(error) => Err(Problem::new(Origin::file(path), format!("cannot be read: {error}"))),
        };
        read.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// Returns the names of the servers in `.mcp.json` that settings of Claude Code switch off.
    fn disabled_by_claude_code(&self, projects: &[PathBuf]) -> Vec<String> {
        let own =
            ForeignClient::named("claude-code").map(|client| client.user_paths(self.environment)).unwrap_or_default();
        let home = self.folders.home.iter();
        let settings = home.chain(projects).flat_map(|folder| CLAUDE_SETTINGS.iter().map(|name| folder.join(name)));
        let mut disabled = Vec::new();
        for path in own.into_iter().chain(settings) {
            let Ok((bytes, _)) = read_up_to(&path, MAX_HISTORY_BYTES) else { continue };
            if let Ok(root) = parse(bytes, &path) {
                disabled.extend(disabled_in_project(root, projects));
            }
        }
        disabled
    }
}

fn parse(bytes: Vec<u8>, path: &Path) -> Result<Node, Problem> {
    let text = String::from_utf8(bytes).map_err(|_| Problem::new(Origin::file(path), "is not UTF-8"))?;
    format_of(path).read(&text, &Arc::from(path))
}

/// Returns `true` if a `config.json` belongs to Micro-X. Many programs have a file of this name.
fn names_servers(path: &Path) -> bool {
    let name = b"\"McpServers\"";
    read_up_to(path, MAX_BYTES).is_ok_and(|(bytes, _)| bytes.windows(name.len()).any(|part| part == name))
}

/// Returns the notation of a file of an unknown program.
fn dialect_of(root: &Node, path: &Path) -> ServerConfigDialect {
    let NodeContent::Table(members) = &root.content else { return ServerConfigDialect::General };
    let has = |key: &str| members.iter().any(|member| member.name == key);
    let ending = path.extension().and_then(|ending| ending.to_str());
    match ending {
        Some("toml") if has("mcp_servers") => ServerConfigDialect::Codex,
        Some("yaml" | "yml") if has("mcp") => ServerConfigDialect::Kodelet,
        _ if has("context_servers") => ServerConfigDialect::Zed,
        _ if has("McpServers") => ServerConfigDialect::MicroX,
        _ if has("command") || has("url") => ServerConfigDialect::Clai,
        _ => ServerConfigDialect::General,
    }
}
