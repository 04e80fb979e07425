//! The programs whose configuration may define MCP servers, and the places of their files on Linux.

use crate::config::{layers::environment::EnvironmentVariables, tree::format::ConfigFormat};
use std::path::{Path, PathBuf};

/// Notation in which a program describes MCP servers. It decides the meaning of keys and texts that several programs
/// use differently, such as `timeout` and `${NAME}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum ServerConfigDialect {
    /// Notation of a file whose program is unknown.
    General,
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    Windsurf,
    VsCode,
    Zed,
    Codex,
    Gemini,
    Clai,
    MicroX,
    Kodelet,
}

/// Syntax of the references to variables that a program replaces in its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReferenceSyntax {
    /// `${NAME}`, `${NAME:-default}` and `${env:NAME}`.
    Braces,
    /// Those of [`Braces`](Self::Braces), and `$NAME`.
    Shell,
    /// No references: the program passes its texts on unchanged.
    Literal,
}

impl ServerConfigDialect {
    /// Returns the syntax of the references to variables that the program replaces.
    pub(super) fn references(self) -> ReferenceSyntax {
        match self {
            Self::Gemini => ReferenceSyntax::Shell,
            Self::ClaudeDesktop | Self::Zed | Self::Codex | Self::Kodelet => ReferenceSyntax::Literal,
            Self::General
            | Self::ClaudeCode
            | Self::Cursor
            | Self::Windsurf
            | Self::VsCode
            | Self::Clai
            | Self::MicroX => ReferenceSyntax::Braces,
        }
    }

    /// Returns the length of the unit of the key `timeout`, in milliseconds: 1 or 1000; `None` if the program has no
    /// such key.
    pub(super) fn timeout_unit(self) -> Option<u64> {
        match self {
            Self::Gemini | Self::ClaudeCode => Some(1),
            Self::Zed | Self::Clai => Some(1000),
            Self::General
            | Self::ClaudeDesktop
            | Self::Cursor
            | Self::Windsurf
            | Self::VsCode
            | Self::Codex
            | Self::MicroX
            | Self::Kodelet => None,
        }
    }
}

/// Folder that the path of a user's file is relative to.
#[derive(Debug, Clone, Copy)]
enum UserFolder {
    Home,
    /// `$XDG_CONFIG_HOME`, by default `~/.config`.
    Config,
    /// The folder in the environment variable that the first text names, if its path is absolute; otherwise the folder
    /// below the home folder with the path in the second text.
    Variable(&'static str, &'static str),
}

/// A program, with the files in which it describes MCP servers.
#[derive(Debug)]
pub(crate) struct ForeignClient {
    /// Name of the program in arguments of the command line, such as `claude-code`.
    pub(crate) name: &'static str,
    /// Name for display.
    pub(crate) title: &'static str,
    pub(in crate::config) dialect: ServerConfigDialect,
    user_files: &'static [(UserFolder, &'static str)],
    /// Paths of the program's files, relative to the folder of a project.
    pub(super) project_files: &'static [&'static str],
}

use UserFolder::{Config, Home, Variable};

/// All known programs, in the order in which they are listed and their files are read. If several files describe the
/// same server, the first one counts.
pub(crate) const CLIENTS: &[ForeignClient] = &[
    ForeignClient {
        name: "claude-code",
        title: "Claude Code",
        dialect: ServerConfigDialect::ClaudeCode,
        user_files: &[(Variable("CLAUDE_CONFIG_DIR", ""), ".claude.json")],
        project_files: &[".mcp.json"],
    },
    ForeignClient {
        name: "claude-desktop",
        title: "Claude Desktop",
        dialect: ServerConfigDialect::ClaudeDesktop,
        user_files: &[(Config, "Claude/claude_desktop_config.json")],
        project_files: &[],
    },
    ForeignClient {
        name: "cursor",
        title: "Cursor",
        dialect: ServerConfigDialect::Cursor,
        user_files: &[(Home, ".cursor/mcp.json")],
        project_files: &[".cursor/mcp.json"],
    },
    ForeignClient {
        name: "windsurf",
        title: "Windsurf",
        dialect: ServerConfigDialect::Windsurf,
        user_files: &[(Home, ".codeium/windsurf/mcp_config.json"), (Home, ".codeium/mcp_config.json")],
        project_files: &[],
    },
    ForeignClient {
        name: "vscode",
        title: "VS Code",
        dialect: ServerConfigDialect::VsCode,
        user_files: &[
            (Config, "Code/User/mcp.json"),
            (Config, "Code/User/settings.json"),
            (Config, "Code - Insiders/User/mcp.json"),
            (Config, "VSCodium/User/mcp.json"),
        ],
        project_files: &[".vscode/mcp.json"],
    },
    ForeignClient {
        name: "zed",
        title: "Zed",
        dialect: ServerConfigDialect::Zed,
        user_files: &[(Config, "zed/settings.json"), (Home, ".var/app/dev.zed.Zed/config/zed/settings.json")],
        project_files: &[".zed/settings.json"],
    },
    ForeignClient {
        name: "codex",
        title: "Codex",
        dialect: ServerConfigDialect::Codex,
        user_files: &[(Variable("CODEX_HOME", ".codex"), "config.toml")],
        project_files: &[".codex/config.toml"],
    },
    ForeignClient {
        name: "gemini",
        title: "Gemini CLI",
        dialect: ServerConfigDialect::Gemini,
        user_files: &[(Home, ".gemini/settings.json")],
        project_files: &[".gemini/settings.json"],
    },
    ForeignClient {
        name: "clai",
        title: "clai",
        dialect: ServerConfigDialect::Clai,
        user_files: &[(Config, ".clai/mcpServers/*.json")],
        project_files: &[],
    },
    ForeignClient {
        name: "micro-x",
        title: "Micro-X",
        dialect: ServerConfigDialect::MicroX,
        user_files: &[],
        project_files: &["config.json"],
    },
    ForeignClient {
        name: "kodelet",
        title: "kodelet",
        dialect: ServerConfigDialect::Kodelet,
        user_files: &[(Home, ".kodelet/config.yaml")],
        project_files: &["kodelet-config.yaml"],
    },
];

/// Maximum number of files in a folder with one file per server.
const MAX_FILES: usize = 256;

impl ForeignClient {
    /// Returns the program with this name on the command line.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// Returns the paths at which the user's files of the program may be, sorted within a folder.
    pub(super) fn user_paths(&self, environment: &EnvironmentVariables) -> Vec<PathBuf> {
        let home = environment.home();
        let mut paths = Vec::new();
        for (folder, below) in self.user_files {
            let base = match folder {
                Home => home.clone(),
                Config => environment.config_folder().and_then(|own| Some(own.parent()?.to_path_buf())),
                Variable(name, default) => {
                    let named = environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
                    named.or_else(|| Some(home.as_ref()?.join(default)))
                }
            };
            let Some(base) = base else { continue };
            match below.strip_suffix("/*.json") {
                Some(folder) => paths.extend(json_files(&base.join(folder))),
                None => paths.push(base.join(below)),
            }
        }
        paths
    }

    /// Returns the program that has a user's file at this path, or else a project file whose path within the project
    /// this path ends with; `None` if there is none.
    pub(super) fn of_file(path: &Path, environment: &EnvironmentVariables) -> Option<&'static Self> {
        let is_user_file = |client: &&Self| client.user_paths(environment).iter().any(|one| one == path);
        let is_project_file = |client: &&Self| client.project_files.iter().any(|one| path.ends_with(one));
        CLIENTS.iter().find(is_user_file).or_else(|| CLIENTS.iter().find(is_project_file))
    }
}

/// Returns the format of a file with servers. Names without a known extension are JSON.
pub(super) fn format_of(path: &Path) -> ConfigFormat {
    ConfigFormat::of(path).unwrap_or(ConfigFormat::Json)
}

fn json_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "json")).take(MAX_FILES).collect();
    files.sort();
    files
}
