//! Folders of the workspace.

use crate::config::{
    ConfigFile,
    layers::{
        EffectiveSetting, LayerKind, ResolvedSettings, UntrustedValue,
        folders::{StandardFolders, real},
    },
    sections::{
        database::DatabaseSettings,
        tool_block::{self, PathRuleScope},
    },
    servers::mcp_server::ConfiguredServer,
    tree::{
        origin::Origin,
        ownership::close_to_others,
        problem::Problem,
        value::{TextItem, ValidatedConfigValue},
    },
};
use std::{
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};
use toolstead_domain::WorkspaceRoots;
use toolstead_infrastructure::sandbox::workspace::lock_folder::lock_folders;

/// Returns the effective roots, including folders in `allowed_paths` of tools. Roots of an untrusted file narrow the
/// roots of the other layers, as far as they lie within them. The computed settings are stored in `resolved`.
pub(super) fn roots(
    folders: &StandardFolders,
    resolved: &mut ResolvedSettings,
    problems: &mut Vec<Problem>,
) -> WorkspaceRoots {
    let mut roots = WorkspaceRoots::default();
    if let Some(mut setting) = resolved.setting("workspace.roots") {
        let said = setting.value.as_ref().map(|value| existing(value.items(), problems)).unwrap_or_default();
        roots.write = if setting.value.is_some() { said } else { default_root(folders).into_iter().collect() };
        // Roots given as flags for this run are not narrowed.
        if !setting.contributions.iter().any(|one| one.kind == LayerKind::Flags) {
            let within = |path: &Path| roots.write.iter().any(|root| path.starts_with(root));
            let narrower = admit(&mut setting, within, problems);
            if !narrower.is_empty() {
                roots.write = narrower.iter().map(|(path, _)| path.clone()).collect();
                (setting.value, setting.origins) = list(narrower.into_iter().map(|(_, item)| item).collect());
            }
        }
        resolved.put(setting);
    }
    if let Some(mut setting) = resolved.setting("workspace.read_only_roots") {
        roots.read_only = setting.value.as_ref().map(|value| existing(value.items(), problems)).unwrap_or_default();
        let known: Vec<PathBuf> = roots.all().map(Path::to_path_buf).collect();
        let narrower = admit(&mut setting, |path| known.iter().any(|root| path.starts_with(root)), problems);
        if !narrower.is_empty() {
            roots.read_only.extend(narrower.iter().map(|(path, _)| path.clone()));
            let items = setting.value.iter().flat_map(|value| value.items().to_vec());
            let items = items.chain(narrower.into_iter().map(|(_, item)| item)).collect();
            (setting.value, setting.origins) = list(items);
        }
        resolved.put(setting);
    }
    for (name, keys) in resolved.named("tools") {
        let Some(value) = keys.get("allowed_paths").and_then(|setting| setting.value.as_ref()) else { continue };
        let folders = value.items().iter().map(|item| real(Path::new(&item.text))).filter(|path| path.is_dir());
        match tool_block::path_subject(&name) {
            PathRuleScope::Writes => roots.write.extend(folders),
            PathRuleScope::Other => {
                roots.read_only.extend(folders.filter(|path| roots.write.iter().all(|root| !path.starts_with(root))))
            }
        }
    }
    without_twins(&mut roots.write);
    without_twins(&mut roots.read_only);
    roots
}

/// Returns the paths that no tool may access: data, configuration, files with secrets, and lock files.
pub(super) fn forbidden(
    folders: &StandardFolders,
    files: &[ConfigFile],
    database: Option<&DatabaseSettings>,
    secrets: [Option<&Path>; 2],
    servers: &[ConfiguredServer],
) -> Vec<PathBuf> {
    let mut named: Vec<PathBuf> = [&folders.data, &folders.config].into_iter().flatten().cloned().collect();
    named.push(folders.administrator.clone());
    // If the path is a symbolic link, the files, contents and locks of SQLite are beside its target.
    named.extend(
        database.into_iter().flat_map(|one| one.on_disk(Path::to_path_buf).all().chain(one.on_disk(real).all())),
    );
    let chosen = files.iter().find(|file| file.kind == LayerKind::Chosen).map(|file| &*file.path);
    named.extend(chosen.into_iter().chain(secrets.into_iter().flatten()).map(Path::to_path_buf));
    named.extend(servers.iter().filter_map(|server| server.env_file.clone()));
    named.extend(lock_folders());
    // Calls are checked by the requested path and by its resolved path.
    let mut forbidden: Vec<PathBuf> = named.iter().map(|path| real(path)).chain(named.iter().cloned()).collect();
    without_twins(&mut forbidden);
    forbidden
}

/// Returns the configured database, after closing its files to other users; `None` if its location is unknown. Checks
/// the folder for large output as well.
pub(super) fn database(
    resolved: &ResolvedSettings,
    folders: &StandardFolders,
    problems: &mut Vec<Problem>,
    notes: &mut Vec<Problem>,
) -> Option<DatabaseSettings> {
    let database = DatabaseSettings::of(resolved, folders, problems);
    check_spool_folder(resolved, problems);
    guard_database(database.as_ref()?, problems, notes);
    database
}

/// Removes all access of other users to the database and the files beside it, and write access of the group.
fn guard_database(database: &DatabaseSettings, problems: &mut Vec<Problem>, notes: &mut Vec<Problem>) {
    for path in database.on_disk(real).all() {
        match close_to_others(&path, 0o027) {
            Ok(mended) => notes.extend(mended),
            Err(problem) => problems.push(problem),
        }
    }
}

/// Creates the folders of a database that is in a location that tools can write to. Otherwise a command could create
/// them first.
pub(crate) fn make_folders_beside(database: &DatabaseSettings, roots: &WorkspaceRoots) {
    let is_out_of_reach = |folder: &Path| roots.forbidden.iter().any(|forbidden| folder.starts_with(forbidden));
    let folders = database.on_disk(real).folders.into_iter().chain(database.on_disk(Path::to_path_buf).folders);
    for folder in folders.filter(|folder| folder.parent().is_some_and(|around| !is_out_of_reach(around))) {
        // If this user cannot create the folder, a command of this user cannot, either.
        let _ = DirBuilder::new().mode(0o700).create(folder);
    }
}

/// Checks that the folder for large output exists.
fn check_spool_folder(resolved: &ResolvedSettings, problems: &mut Vec<Problem>) {
    let setting = resolved.setting("outputs.spool_folder");
    let Some((value, origins)) = setting.and_then(|setting| Some((setting.value?, setting.origins))) else { return };
    let Some(folder) = value.as_text().filter(|folder| !Path::new(folder).is_dir()) else { return };
    let origin = origins.into_iter().next().unwrap_or(Origin::Default);
    problems.push(Problem::new(origin, format!("`outputs.spool_folder`: there is no folder `{folder}`; make it")));
}

/// Returns the start folder, unless it is `/` or the home folder.
pub(super) fn default_root(folders: &StandardFolders) -> Option<PathBuf> {
    let too_wide = folders.start.parent().is_none() || folders.home.as_deref() == Some(&folders.start);
    (!too_wide).then(|| folders.start.clone())
}

fn existing(items: &[TextItem], problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    items.iter().filter_map(|item| folder(item).map_err(|problem| problems.push(problem)).ok()).collect()
}

fn folder(item: &TextItem) -> Result<PathBuf, Problem> {
    let wrong = |reason: String| Problem::new(item.origin.clone(), format!("the root `{}` {reason}", item.text));
    let path = Path::new(&item.text).canonicalize().map_err(|error| wrong(format!("cannot be used: {error}")))?;
    if path.is_dir() { Ok(path) } else { Err(wrong("is not a folder".into())) }
}

/// Removes and returns the folders of untrusted files for which `within` returns `true`. Adds a problem for each of
/// their folders that cannot be used.
fn admit(
    setting: &mut EffectiveSetting,
    within: impl Fn(&Path) -> bool,
    problems: &mut Vec<Problem>,
) -> Vec<(PathBuf, TextItem)> {
    let mut admitted = Vec::new();
    setting.waiting.retain(|UntrustedValue { value, origin }| {
        let Some(text) = value.as_text() else { return true };
        let item = TextItem::new(text, origin.clone());
        match folder(&item) {
            Ok(path) if within(&path) => {
                admitted.push((path, item));
                false
            }
            Ok(_) => true,
            Err(problem) => {
                problems.push(problem);
                true
            }
        }
    });
    admitted
}

fn list(items: Vec<TextItem>) -> (Option<ValidatedConfigValue>, Vec<Origin>) {
    let origins = items.iter().map(|item| item.origin.clone()).collect();
    (Some(ValidatedConfigValue::List(items)), origins)
}

/// Removes repeated paths and preserves the order.
fn without_twins(paths: &mut Vec<PathBuf>) {
    let mut seen = std::collections::BTreeSet::new();
    paths.retain(|path| seen.insert(path.clone()));
}
