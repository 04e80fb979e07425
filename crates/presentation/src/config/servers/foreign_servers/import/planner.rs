//! Plans the import of servers, one after the other.

use super::{
    ImportRequest, LiteralSecretPlacement, ServerAddition, ServerImportDecision, ServerImportPlanEntry,
    block::ImportedServerTable,
    secret_removal::{secret_places, without_secrets},
    target::ImportTarget,
};
use crate::config::{
    Config,
    layers::{EffectiveSetting, LayerKind},
    servers::foreign_servers::{
        client_files::ClientFile,
        import::ImportError,
        literal_secrets,
        references::{ForeignReferenceConverter, normalize, variable_for, with_variable},
        section_of, server_names,
        translation::{FileSurroundings, member_of, translate},
    },
    tree::{
        check::{LayerEntry, PathBase, check},
        node::{Member, Node, NodeContent},
        origin::Origin,
        value::ValidatedConfigValue,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};
use toolstead_domain::ServerName;

/// Programs that are Toolstead itself. A server that runs one would offer Toolstead its own tools.
const OWN_PROGRAMS: [&str; 2] = ["toolstead", "toolstead-server"];

/// Maximum number of servers of one import.
const MAX_SERVERS: usize = 256;
/// Maximum number of names that are tried for a server.
const MAX_NAMES: usize = 32;

/// Plans one server after the other, so that their names differ.
pub(super) struct ImportPlanner<'a> {
    config: &'a Config,
    request: &'a ImportRequest,
    pub(super) target: Result<ImportTarget, ImportError>,
    /// Names of servers in the configuration and of those planned, as [`server_names::folded`] returns them.
    taken: BTreeSet<String>,
    planned: Vec<(ServerName, ImportedServerTable)>,
    /// Names of the servers in Toolstead's own configuration, without other programs' files, and the values of their
    /// keys as text.
    configured: Vec<(String, String)>,
    /// Number of servers for which a name was sought, including those that are not added.
    considered: usize,
    /// Names of all servers in the files that were read, including servers that are not selected.
    pub(super) names: BTreeSet<String>,
    /// Names in the request's `values` that imported servers refer to.
    pub(super) used: BTreeSet<String>,
}

impl<'a> ImportPlanner<'a> {
    pub(super) fn new(config: &'a Config, request: &'a ImportRequest) -> Self {
        let own = config.resolved.named("mcp_servers").into_iter().filter(|(_, keys)| {
            let contributions = keys.values().flat_map(|setting| &setting.contributions);
            contributions.into_iter().any(|one| !matches!(one.kind, LayerKind::Foreign(_)))
        });
        let configured: Vec<(String, String)> =
            own.map(|(name, keys)| (name, own_texts(keys.values().copied()))).collect();
        Self {
            config,
            request,
            target: ImportTarget::of(config),
            taken: configured.iter().map(|(name, _)| server_names::folded(name)).collect(),
            planned: Vec::new(),
            configured,
            considered: 0,
            names: BTreeSet::new(),
            used: BTreeSet::new(),
        }
    }

    /// Plans the selected servers of a file and returns one entry for each. Records the names of all its servers.
    pub(super) fn file(&mut self, file: ClientFile) -> Vec<ServerImportPlanEntry> {
        let mut seen = BTreeSet::new();
        let ClientFile { owner, owner_name, dialect, workspace, list } = file;
        let home = self.config.folders.home.as_deref();
        let folder = workspace.as_deref().or(home).unwrap_or(Path::new("/"));
        let base = PathBase { folder, home };
        let surroundings = FileSurroundings { base, workspace: workspace.as_deref(), dialect };
        let mut planned = Vec::new();
        for mut server in list.servers {
            let (foreign_name, origin) = (server.name.clone(), server.origin.clone());
            let is_selected = self.request.servers.is_empty() || self.request.servers.contains(&foreign_name);
            let is_first = seen.insert(foreign_name.clone());
            self.names.insert(foreign_name.clone());
            if !is_selected {
                continue;
            }
            normalize(&mut server.node.content, dialect);
            let outcome = if is_first {
                let mut notes = Vec::new();
                let translated = self.translated(server, surroundings, &list.inputs, &mut notes);
                match translated {
                    Ok(mut translated) => {
                        if list.has_own_inputs {
                            translated.own_variables = list.inputs.keys().map(|id| variable_for(id)).collect();
                        }
                        self.outcome(translated, &foreign_name, owner, owner_name, notes)
                    }
                    Err(reason) => ServerImportDecision::Rejected(reason),
                }
            } else {
                ServerImportDecision::Rejected("the file describes another server of this name above".into())
            };
            planned.push(ServerImportPlanEntry { owner, foreign_name, origin, outcome });
        }
        planned
    }

    /// Translates a server and replaces the references that only its program understands.
    ///
    /// # Errors
    /// The reason why it cannot be imported.
    fn translated(
        &mut self,
        server: Member,
        surroundings: FileSurroundings<'_>,
        inputs: &BTreeMap<String, String>,
        notes: &mut Vec<String>,
    ) -> Result<TranslatedServer, String> {
        let origin = server.origin.clone();
        let foreign_name = server.name.clone();
        let mut problems = Vec::new();
        let table = translate(server, surroundings, &mut problems).map_err(|problem| problem.message)?;
        notes.extend(problems.into_iter().map(|problem| problem.message));
        let NodeContent::Table(mut keys) = table.content else { return Err("it is not a table".into()) };
        if keys.iter().all(|key| !matches!(key.name.as_str(), "command" | "url")) {
            return Err("it has neither a command nor a URL".into());
        }
        let mut resolver = ForeignReferenceConverter {
            workspace: surroundings.workspace,
            inputs,
            values: &self.request.values,
            variables: BTreeMap::new(),
            used: BTreeSet::new(),
        };
        for key in &mut keys {
            match key.name.as_str() {
                "command" | "args" | "env" | "url" | "headers" => resolve(&mut resolver, &mut key.node.content)?,
                "cwd" | "env_file" => paths(&mut key.node.content, &key.name)?,
                _ => {}
            }
        }
        // An empty text stands for the folder of the workspace, in which a server without `cwd` starts anyway.
        keys.retain(|key| key.name != "cwd" || key.node.content != NodeContent::Text(String::new()));
        let is_started = keys.iter().any(|key| key.name == "command");
        let has_folder = keys.iter().any(|key| key.name == "cwd");
        if let (true, false, Some(project)) = (is_started, has_folder, surroundings.workspace) {
            let folder = NodeContent::Text(project.to_string_lossy().into_owned());
            keys.push(member_of("cwd", folder, &origin));
        }
        let variables = std::mem::take(&mut resolver.variables);
        self.used.append(&mut resolver.used);
        let own = server_names::mapped(&foreign_name);
        let node = Node { content: NodeContent::Table(keys), origin: origin.clone() };
        let (entries, problems) = check(&section_of(own.as_str(), node, &origin), surroundings.base);
        if let Some(problem) = problems.into_iter().next() {
            return Err(problem.message);
        }
        if let Some(command) = text(&entries, "command")
            && Path::new(command).file_name().is_some_and(|name| OWN_PROGRAMS.iter().any(|own| name == *own))
        {
            return Err("it is Toolstead itself".into());
        }
        Ok(TranslatedServer { name: own, entries, variables, own_variables: BTreeSet::new(), origin })
    }

    /// Chooses a free name for a server and adds it to the plan, unless the configuration file or the plan has the same
    /// server.
    fn outcome(
        &mut self,
        server: TranslatedServer,
        foreign_name: &str,
        owner: &'static str,
        owner_name: &str,
        mut notes: Vec<String>,
    ) -> ServerImportDecision {
        if self.considered >= MAX_SERVERS {
            return ServerImportDecision::Rejected(format!("an import has at most {MAX_SERVERS} servers"));
        }
        self.considered += 1;
        let mapped = server.name.clone();
        let suffixes = std::iter::once(owner_name.to_owned()).chain((2..).map(|number: u32| number.to_string()));
        let names =
            std::iter::once(mapped.clone()).chain(suffixes.map(|suffix| server_names::with_suffix(&mapped, &suffix)));
        for name in names.take(MAX_NAMES) {
            let (block, env_file, more) = self.block(&server, &name, owner);
            if let Ok(target) = &self.target
                && target.has(&name, &block)
            {
                return ServerImportDecision::Present(name);
            }
            if self.planned.iter().any(|(planned, other)| *planned == name && other.is_same_server(&block)) {
                return ServerImportDecision::Repeated(name);
            }
            if !self.taken.insert(server_names::folded(name.as_str())) {
                continue;
            }
            if name.as_str() != foreign_name {
                let reason = match mapped.as_str() == foreign_name || name != mapped {
                    true => "a different server has a similar name",
                    false => "its name is not valid here",
                };
                notes.push(format!("the server `{foreign_name}` is called `{name}` here: {reason}"));
            }
            notes.extend(more);
            self.planned.push((name.clone(), block.clone()));
            let (what, shown) = (block.what(), block.shown());
            return ServerImportDecision::Added(Box::new(ServerAddition { name, what, shown, notes, block, env_file }));
        }
        ServerImportDecision::Rejected("no name is free for it".into())
    }

    /// Returns the name of another server, configured or planned, that uses this variable.
    fn user_of(&self, variable: &str, name: &ServerName) -> Option<&str> {
        let configured = self.configured.iter().map(|(name, text)| (name.as_str(), text.clone()));
        let planned = self.planned.iter().map(|(name, block)| (name.as_str(), block.to_json().to_string()));
        let is_used = |text: &str| with_variable(text, variable, "") != text;
        configured.chain(planned).find(|(other, text)| *other != name.as_str() && is_used(text)).map(|(other, _)| other)
    }

    /// Returns the table of a server under this name, the path and content of the file for its secrets if any are
    /// moved, and notes for the user.
    fn block(
        &self,
        server: &TranslatedServer,
        name: &ServerName,
        owner: &str,
    ) -> (ImportedServerTable, Option<(PathBuf, String)>, Vec<String>) {
        let mut values: Vec<(String, ValidatedConfigValue)> = server
            .entries
            .iter()
            .filter_map(|entry| Some((entry.path.last()?.clone(), entry.value.clone())))
            .filter(|(key, value)| key != "disabled" || *value == ValidatedConfigValue::Boolean(true))
            .collect();
        let mut notes = Vec::new();
        let mut variables = server.variables.clone();
        for variable in &server.own_variables {
            let Some(other) = self.user_of(variable, name) else { continue };
            let renamed = literal_secrets::variable(name, variable);
            values.iter_mut().for_each(|(_, value)| rename(value, variable, &renamed));
            if let Some(about) = variables.remove(variable) {
                notes.push(format!("`{renamed}` is its variable, because the server `{other}` uses `{variable}`"));
                variables.insert(renamed, about);
            }
        }
        let mut secrets = BTreeSet::new();
        let mut env_file = None;
        if self.request.secrets == LiteralSecretPlacement::Moved {
            let folder = self.target.as_ref().ok().and_then(|target| target.file().parent().map(Path::to_path_buf));
            let (moved, replaced) = without_secrets(&mut values, name, folder.as_deref());
            if let Some((path, _)) = &moved {
                notes.push(format!("its secrets are moved to `{}`, which only you can read", path.display()));
            }
            for variable in replaced {
                let about = format!("the secret in {}", server.origin);
                variables.insert(variable, about);
            }
            env_file = moved;
        } else {
            secrets = secret_places(&values);
            if !secrets.is_empty() {
                notes.push("its secrets are written into the configuration file".into());
            }
        }
        for (variable, about) in &variables {
            let about = if about.is_empty() { String::new() } else { format!(": {about}") };
            let is_set = self.config.environment.get(variable).is_some();
            notes.push(match is_set {
                true => format!("it receives your environment variable `{variable}`{about}"),
                false => format!("set the environment variable `{variable}`{about}"),
            });
        }
        (ImportedServerTable::new(name.clone(), values, secrets, owner, &server.origin), env_file, notes)
    }
}

/// A server of another program with translated and checked keys.
struct TranslatedServer {
    name: ServerName,
    entries: Vec<LayerEntry>,
    /// Environment variables that the user has to set, with their descriptions: those without a default.
    variables: BTreeMap<String, String>,
    /// Variables of this server's own inputs. One that another server uses is renamed.
    own_variables: BTreeSet<String>,
    origin: Origin,
}

/// Returns the values in the layers that belong to Toolstead, as text.
fn own_texts<'s>(settings: impl Iterator<Item = &'s EffectiveSetting>) -> String {
    let contributions = settings.flat_map(|setting| &setting.contributions);
    let own = contributions.filter(|one| !matches!(one.kind, LayerKind::Foreign(_)));
    own.map(|one| one.value.to_json().to_string()).collect::<Vec<_>>().join("\n")
}

fn rename(value: &mut ValidatedConfigValue, variable: &str, renamed: &str) {
    let change = |text: &mut String| *text = with_variable(text, variable, renamed);
    match value {
        ValidatedConfigValue::Text(text) => change(text),
        ValidatedConfigValue::List(items) => items.iter_mut().for_each(|item| change(&mut item.text)),
        ValidatedConfigValue::Map(members) => members.iter_mut().for_each(|(_, item)| change(&mut item.text)),
        ValidatedConfigValue::Boolean(_)
        | ValidatedConfigValue::Integer(_)
        | ValidatedConfigValue::Number(_)
        | ValidatedConfigValue::Database(_)
        | ValidatedConfigValue::Json(_) => {}
    }
}

fn text<'e>(entries: &'e [LayerEntry], key: &str) -> Option<&'e str> {
    let entry = entries.iter().find(|entry| entry.path.last().is_some_and(|name| name == key));
    entry.and_then(|entry| entry.value.as_text())
}

fn resolve(resolver: &mut ForeignReferenceConverter<'_>, content: &mut NodeContent) -> Result<(), String> {
    match content {
        NodeContent::Text(text) => *text = resolver.resolve(text)?,
        NodeContent::List(nodes) => nodes.iter_mut().try_for_each(|node| resolve(resolver, &mut node.content))?,
        NodeContent::Table(members) => {
            members.iter_mut().try_for_each(|one| resolve(resolver, &mut one.node.content))?
        }
        NodeContent::Boolean(_)
        | NodeContent::Integer(_)
        | NodeContent::Fraction(_)
        | NodeContent::Untyped(_)
        | NodeContent::DerivedRule { .. }
        | NodeContent::Other(_) => {}
    }
    Ok(())
}

/// Checks that a path contains no variable, because variables in paths are not replaced later. The folder of the
/// workspace becomes an empty text.
fn paths(content: &mut NodeContent, key: &str) -> Result<(), String> {
    let NodeContent::Text(path) = content else { return Ok(()) };
    if key == "cwd" && path == "${workspaceFolder}" {
        path.clear();
    }
    match path.contains("${") {
        true => Err(format!("`{key}` depends on the folder or the environment (`{path}`): write the whole path")),
        false => Ok(()),
    }
}
