//! Servers that other MCP clients define in their files. Those of a project are listed, and used once the user trusts
//! the file; those of the user are found and imported on request.

pub(crate) mod client;
mod client_files;
pub(crate) mod import;
mod literal_secrets;
mod references;
mod registry_entry;
mod server_list;
mod server_names;
pub(in crate::config) mod translation;

use crate::config::{
    config_file::is_trusted,
    layers::{Layer, LayerKind, folders::StandardFolders},
    tree::{
        check::{PathBase, check},
        node::{Member, Node, NodeContent},
        origin::Origin,
        problem::Problem,
        source_file::{SourceFile, project_folders, project_of},
    },
    trust::TrustList,
};
use client::{CLIENTS, ServerConfigDialect, format_of};
use server_list::ServerList;
use std::{collections::BTreeSet, path::Path};
use translation::{FileSurroundings, member_of, translate};

/// Paths, relative to a project folder, of files in which other programs define servers, by descending precedence.
const FILES: &[&str] = &[
    ".mcp.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".gemini/settings.json",
    ".codex/config.toml",
    ".zed/settings.json",
];

/// Reads the nearest file of each path in [`FILES`], from the lowest precedence up. Files that cannot be read are
/// noted.
pub(in crate::config) fn discover(folders: &StandardFolders, notes: &mut Vec<Problem>) -> Vec<SourceFile> {
    let mut files = Vec::new();
    for (kind, name) in (0_u8..).map(LayerKind::Foreign).zip(FILES.iter().rev()) {
        for folder in project_folders(folders) {
            // In the home folder these are the files for all projects.
            if folders.home.as_ref() == Some(&folder) && matches!(*name, ".gemini/settings.json" | ".codex/config.toml")
            {
                continue;
            }
            match SourceFile::read(kind, &folder.join(name)) {
                Ok(None) => continue,
                Ok(Some(file)) => files.push(file),
                Err(problem) => notes.push(problem),
            }
            break;
        }
    }
    files
}

/// Returns the servers of a file as a layer. Problems are only notes, because the file belongs to another client.
pub(in crate::config) fn layer(
    file: &SourceFile,
    folders: &StandardFolders,
    trusted: &TrustList,
    notes: &mut Vec<Problem>,
) -> Layer {
    let mut entries = Vec::new();
    match format_of(&file.path).read(&file.text, &file.path) {
        Err(problem) => notes.push(problem),
        Ok(root) => {
            // The client starts in this folder, and relative paths in the file refer to it.
            let folder = project_of(&file.path);
            let base = PathBase { folder, home: folders.home.as_deref() };
            let surroundings = FileSurroundings { base, workspace: Some(folder), dialect: dialect_of(&file.path) };
            let mut seen = BTreeSet::new();
            for mut server in ServerList::of(root, surroundings.dialect, &[], "").servers {
                let (name, origin) = (server.name.clone(), server.origin.clone());
                let own = server_names::mapped(&name);
                let problems = if seen.insert(server_names::folded(own.as_str())) {
                    if own.as_str() != name {
                        let message =
                            format!("the server `{name}` is called `{own}` here, because its name is not valid");
                        notes.push(Problem::new(origin, message));
                    }
                    server.name = own.to_string();
                    match in_configuration(server, surroundings, notes) {
                        Ok(server) => {
                            let (found, problems) = check(&server, base);
                            if problems.is_empty() {
                                entries.extend(found);
                            }
                            problems
                        }
                        Err(problem) => vec![problem],
                    }
                } else {
                    vec![Problem::new(origin, format!("the file has another server that is called `{own}` here"))]
                };
                notes.extend(problems.into_iter().map(|problem| {
                    let message = format!("the server `{name}` is left out: {}", problem.message);
                    Problem::new(problem.origin, message)
                }));
            }
        }
    }
    Layer { kind: file.kind, trusted: is_trusted(file, trusted), entries }
}

/// Returns the notation of a project file.
fn dialect_of(path: &Path) -> ServerConfigDialect {
    let owner = CLIENTS.iter().find(|client| client.project_files.iter().any(|name| path.ends_with(name)));
    owner.map_or(ServerConfigDialect::General, |client| client.dialect)
}

/// Converts a server that is described in the general notation to a configuration with Toolstead's own keys.
///
/// # Errors
/// The errors of [`translate`].
pub(in crate::config) fn as_configuration(
    server: Member,
    base: PathBase<'_>,
    notes: &mut Vec<Problem>,
) -> Result<Node, Problem> {
    let dialect = ServerConfigDialect::General;
    in_configuration(server, FileSurroundings { base, workspace: Some(base.folder), dialect }, notes)
}

fn in_configuration(
    mut server: Member,
    surroundings: FileSurroundings<'_>,
    notes: &mut Vec<Problem>,
) -> Result<Node, Problem> {
    references::normalize(&mut server.node.content, surroundings.dialect);
    let (name, origin) = (server.name.clone(), server.origin.clone());
    let table = translate(server, surroundings, notes)?;
    Ok(section_of(&name, table, &origin))
}

/// Returns a configuration that consists of `mcp_servers` with the table of this server.
fn section_of(name: &str, table: Node, origin: &Origin) -> Node {
    let server = member_of(name, table.content, origin);
    let section = member_of("mcp_servers", NodeContent::Table(vec![server]), origin);
    Node { content: NodeContent::Table(vec![section]), origin: origin.clone() }
}
