//! The import of servers from the files of other programs into a configuration file: a plan to show, and its execution.

mod block;
mod planner;
mod secret_removal;
mod target;
#[cfg(test)]
mod tests;

use super::{
    client::{CLIENTS, ForeignClient},
    client_files::{ClientFile, ClientFileReader},
};
use crate::config::{
    Config,
    tree::{origin::Origin, problem::Problem},
};
use block::ImportedServerTable;
use planner::ImportPlanner;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};
use target::ImportTarget;
use toolstead_domain::ServerName;

/// Selection of what to import, and how.
#[derive(Debug, Default)]
pub(crate) struct ImportRequest {
    /// Names of programs and paths of files; all programs if empty.
    pub(crate) sources: Vec<String>,
    /// Names of the only servers to import; all if empty.
    pub(crate) servers: Vec<String>,
    /// Values for the inputs and variables that servers refer to, by name.
    pub(crate) values: BTreeMap<String, String>,
    /// Treatment of literal secrets.
    pub(crate) secrets: LiteralSecretPlacement,
}

/// Treatment of literal secrets in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LiteralSecretPlacement {
    /// Those of the environment are moved to a file of their own, and others are replaced by variables.
    #[default]
    Moved,
    /// They are written into the configuration file, which then only its owner may read.
    Written,
}

/// Servers to add to a configuration file, and the reasons why others are left out.
#[derive(Debug)]
pub(crate) struct ServerImportPlan {
    /// The servers, in the order of the files.
    pub(crate) servers: Vec<ServerImportPlanEntry>,
    /// Files that are not used, with the reason.
    pub(crate) problems: Vec<Problem>,
    target: Result<ImportTarget, ImportError>,
    secrets: LiteralSecretPlacement,
}

/// A server in a file of another program.
#[derive(Debug)]
pub(crate) struct ServerImportPlanEntry {
    /// Name of the program, for display.
    pub(crate) owner: &'static str,
    /// Name of the server in the file.
    pub(crate) foreign_name: String,
    /// File and line that describe the server.
    pub(crate) origin: Origin,
    /// Result of the plan for this server.
    pub(crate) outcome: ServerImportDecision,
}

/// Result of the plan for one server.
#[derive(Debug)]
pub(crate) enum ServerImportDecision {
    /// It would be added.
    Added(Box<ServerAddition>),
    /// The configuration file has the same server under this name.
    Present(ServerName),
    /// An earlier file describes the same server, which is added under this name.
    Repeated(ServerName),
    /// It cannot be used, for this reason.
    Rejected(String),
}

/// A server to add.
#[derive(Debug)]
pub(crate) struct ServerAddition {
    /// Name of the server.
    pub(crate) name: ServerName,
    /// Command with arguments, or URL, without secrets.
    pub(crate) what: String,
    /// Table to add, without secrets.
    pub(crate) shown: String,
    /// Notes on what differs from the description, and on what the user must do.
    pub(crate) notes: Vec<String>,
    block: ImportedServerTable,
    /// Path of the file for secrets of the environment, and its content; `None` if no secret is moved.
    env_file: Option<(PathBuf, String)>,
}

/// Files that an import wrote.
#[derive(Debug)]
pub(crate) struct WrittenConfigFile {
    /// The configuration file.
    pub(crate) file: PathBuf,
    /// Copy of its earlier content; `None` if the file is new.
    pub(crate) backup: Option<PathBuf>,
}

/// Failure of an import. The configuration file was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// The source is neither a program nor a file.
    #[error("`{name}` is neither a file nor one of: {}", CLIENTS.iter().map(|client| client.name).collect::<Vec<_>>().join(", "))]
    UnknownSource { name: String },
    /// A file that the user named cannot be used.
    #[error("{0}")]
    UnusableFile(Problem),
    /// No server has a name that was requested.
    #[error("no server is called `{name}` in these files; {known}")]
    UnknownServer {
        name: String,
        /// Clause about the servers that exist.
        known: String,
    },
    /// A value for a variable that no server refers to.
    #[error("no imported server has an input or a variable `{name}`")]
    UnusedValue { name: String },
    /// The location of the user's configuration is unknown.
    #[error(
        "the folder of the user's configuration is unknown: set HOME or XDG_CONFIG_HOME, or name a file with --config"
    )]
    NoConfigFolder,
    /// The configuration file cannot be changed.
    #[error("`{}` cannot be changed: {reason}", file.display())]
    UnsuitableFile { file: PathBuf, reason: String },
    /// Another process changed the configuration file after it was read.
    #[error("`{}` has changed meanwhile: run the command again", file.display())]
    Changed { file: PathBuf },
    /// A file cannot be written.
    #[error("`{}` cannot be written", file.display())]
    Write {
        file: PathBuf,
        #[source]
        error: io::Error,
    },
}

impl ServerImportPlan {
    /// Reads the files and plans the import. Stores nothing.
    ///
    /// # Errors
    /// [`ImportError`] if a source, server or value does not exist. A single unsuitable server is only rejected.
    pub(crate) fn of(config: &Config, request: &ImportRequest) -> Result<Self, ImportError> {
        let mut reader =
            ClientFileReader { folders: &config.folders, environment: &config.environment, problems: Vec::new() };
        let files = files(&mut reader, &request.sources)?;
        let mut planner = ImportPlanner::new(config, request);
        let mut servers = Vec::new();
        for file in files {
            servers.extend(planner.file(file));
        }
        let is_named = |name: &String| planner.names.contains(name);
        if let Some(name) = request.servers.iter().find(|name| !is_named(name)) {
            let known = match planner.names.is_empty() {
                true => "they have no servers: `toolstead servers found` lists the files that exist".to_owned(),
                false => format!("there are {}", planner.names.iter().cloned().collect::<Vec<_>>().join(", ")),
            };
            return Err(ImportError::UnknownServer { name: name.clone(), known });
        }
        if let Some(name) = request.values.keys().find(|name| !planner.used.contains(*name)) {
            return Err(ImportError::UnusedValue { name: name.clone() });
        }
        Ok(Self { servers, problems: reader.problems, target: planner.target, secrets: request.secrets })
    }

    /// Returns the servers to add.
    pub(crate) fn added(&self) -> impl Iterator<Item = &ServerAddition> {
        self.servers.iter().filter_map(|server| match &server.outcome {
            ServerImportDecision::Added(added) => Some(&**added),
            ServerImportDecision::Present(_)
            | ServerImportDecision::Repeated(_)
            | ServerImportDecision::Rejected(_) => None,
        })
    }

    /// Returns the file that the servers are added to.
    ///
    /// # Errors
    /// [`ImportError`] if the location is unknown or the file is not suitable.
    pub(crate) fn file(&self) -> Result<&Path, &ImportError> {
        self.target.as_ref().map(ImportTarget::file)
    }

    /// Copies the configuration file, writes the files with secrets, and adds the servers to the configuration file.
    ///
    /// # Errors
    /// [`ImportError`]. The configuration file is unchanged then.
    pub(crate) fn apply(self) -> Result<WrittenConfigFile, ImportError> {
        let target = self.target?;
        let added = self.servers.into_iter().filter_map(|server| match server.outcome {
            ServerImportDecision::Added(added) => Some(*added),
            ServerImportDecision::Present(_)
            | ServerImportDecision::Repeated(_)
            | ServerImportDecision::Rejected(_) => None,
        });
        let added: Vec<ServerAddition> = added.collect();
        let blocks: Vec<&ImportedServerTable> = added.iter().map(|one| &one.block).collect();
        let env_files: Vec<(&Path, &str)> =
            added.iter().filter_map(|one| one.env_file.as_ref()).map(|(path, text)| (&**path, &**text)).collect();
        target.write(&blocks, &env_files, self.secrets == LiteralSecretPlacement::Written)
    }
}

/// Reads the files of the sources, which are names of programs or paths; the files of all programs if there are no
/// sources.
fn files(reader: &mut ClientFileReader<'_>, sources: &[String]) -> Result<Vec<ClientFile>, ImportError> {
    if sources.is_empty() {
        return Ok(reader.discover(None));
    }
    let mut files = Vec::new();
    for source in sources {
        match ForeignClient::named(source) {
            Some(client) => files.extend(reader.discover(Some(client))),
            None => {
                let path = Path::new(source);
                if !reader.folders.start.join(path).exists() {
                    return Err(ImportError::UnknownSource { name: source.clone() });
                }
                files.push(reader.named(path).map_err(ImportError::UnusableFile)?);
            }
        }
    }
    Ok(files)
}
