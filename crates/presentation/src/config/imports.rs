//! `[permissions] import`: rules from the files of other systems. `[profiles] import`: their profiles and models.
//!
//! Each file becomes a layer with the owner of the file that imports it. It is translated to Toolstead's own keys, so
//! its rules, mode and folders are merged like all others, each with its line. If a project file imports a file, all of
//! that file takes effect only once the user trusts it, too. The same applies to a file that did not exist when the
//! user's own configuration first named it. No tool may access an imported file, because it decides what tools may do.

mod domains;
pub(super) mod foreign_tools;
mod formats;
mod profile;
pub(super) mod prohibitions;
mod translation;

use crate::config::{
    config_file::is_trusted,
    layers::{
        ContributionsByKey, Layer, ResolvedSettings,
        folders::{StandardFolders, real},
    },
    tree::{
        check::{PathBase, check},
        format::ConfigFormat,
        node::{Node, NodeContent},
        origin::Origin,
        problem::Problem,
        source_file::SourceFile,
    },
    trust::{self, TrustList},
};
use formats::FORMATS;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};
use translation::{TranslatedFile, TranslationPaths, translate};

/// Keys that name files to import, and the purpose of each.
const KEYS: [(&str, ImportedContentKind); 2] =
    [("permissions.import", ImportedContentKind::Rules), ("profiles.import", ImportedContentKind::Profile)];

/// Kind of content that a file is imported for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ImportedContentKind {
    Rules,
    Profile,
}

/// Maximum number of imported files.
const MAX_FILES: usize = 64;

/// Result of the imports.
#[derive(Default)]
pub(super) struct ImportedFiles {
    /// Files with their layers, in the order in which they are named.
    pub(super) layers: Vec<(SourceFile, Layer)>,
    /// Paths named by imported files. They are protected like imported files.
    pub(super) named: Vec<PathBuf>,
}

/// Reads all files that trusted layers import. Records a missing file that is named outside of projects, so that its
/// later content needs the user's trust.
pub(super) fn load(
    layers: &ContributionsByKey,
    folders: &StandardFolders,
    trusted: &TrustList,
    notes: &mut Vec<Problem>,
    problems: &mut Vec<Problem>,
) -> ImportedFiles {
    let of_key = |(key, purpose)| layers.trusted_items(key).into_iter().map(move |(kind, item)| (purpose, kind, item));
    let named: Vec<_> = KEYS.into_iter().flat_map(of_key).collect();
    if let Some((_, _, item)) = named.get(MAX_FILES) {
        problems.push(Problem::new(item.origin.clone(), format!("more than {MAX_FILES} files are imported")));
    }
    // Additional roots would replace the default root, so the default root is added to them.
    let default_root = if layers.is_set("workspace.roots") { None } else { super::workspace::default_root(folders) };
    let mut seen = BTreeSet::new();
    let mut loaded = ImportedFiles::default();
    for (purpose, kind, item) in named.into_iter().take(MAX_FILES) {
        let wrong =
            |reason: String| Problem::new(item.origin.clone(), format!("`{}` cannot be imported: {reason}", item.text));
        let path = Path::new(&item.text);
        let file = match SourceFile::read(kind, path) {
            // A symbolic link that was created since then may point anywhere and is not trusted.
            Ok(Some(file)) if *file.path != *path && trusted.was_missing(path) => {
                SourceFile { leads_to: Some(file.path.to_path_buf()), path: path.into(), ..file }
            }
            Ok(Some(file)) => file,
            Ok(None) => {
                // A command may create the file later, so its content will need the user's trust.
                if !kind.is_of_project()
                    && !trusted.was_missing(path)
                    && let Err(problem) = trust::set_programs(folders, vec![(path.to_path_buf(), None)])
                {
                    problems.push(problem);
                }
                let message = "there is no such file, so it is ignored; a file created there waits for \
                               `toolstead config trust`";
                notes.push(Problem::new(item.origin.clone(), format!("`{}` is not imported: {message}", item.text)));
                continue;
            }
            Err(problem) => {
                problems.push(wrong(problem.message));
                continue;
            }
        };
        if !seen.insert((purpose, file.path.clone())) {
            continue;
        }
        let Some(format) = ConfigFormat::of(&file.path) else {
            problems.push(wrong("its name must end in `.toml`, `.json`, `.yaml` or `.yml`".into()));
            continue;
        };
        match format.read(&file.text, &file.path) {
            Err(problem) => problems.push(problem),
            Ok(root) => {
                let path = file.path.clone();
                let folder = path.parent().unwrap_or(Path::new("/"));
                let base = PathBase { folder, home: folders.home.as_deref() };
                if purpose == ImportedContentKind::Profile {
                    let mut entries = Vec::new();
                    for root in profile::translate(root, &path, base, notes, problems) {
                        let (found, wrong) = check(&root, base);
                        entries.extend(found);
                        problems.extend(wrong);
                    }
                    let trusted = is_trusted(&file, trusted);
                    loaded.layers.push((file, Layer { kind, trusted, entries }));
                    continue;
                }
                let surroundings = TranslationPaths { base, default_root: default_root.as_deref() };
                let TranslatedFile { root, domains } = translate(root, FORMATS, surroundings, notes, problems);
                let (entries, wrong) = check(&root, base);
                problems.extend(wrong);
                let is_file_trusted = is_trusted(&file, trusted);
                loaded.layers.push((file, Layer { kind, trusted: is_file_trusted, entries }));
                // An untrusted file must not cause other files to be read.
                for (path, named_at) in domains.into_iter().filter(|_| is_file_trusted) {
                    match domains::read(kind, &path, &named_at) {
                        Err(problem) => problems.push(problem),
                        Ok(file) => {
                            let (entries, wrong) = check(&domains::translate(&file, notes), base);
                            problems.extend(wrong);
                            let trusted = is_trusted(&file, trusted);
                            loaded.layers.push((file, Layer { kind, trusted, entries }));
                            loaded.named.push(path);
                        }
                    }
                }
            }
        }
    }
    loaded
}

/// Returns the paths of imported files and of files that they name, both as written and with symbolic links resolved.
pub(super) fn files(resolved: &ResolvedSettings, named: Vec<PathBuf>) -> Vec<PathBuf> {
    let settings: Vec<_> = KEYS.iter().filter_map(|(key, _)| resolved.setting(key)).collect();
    let items = settings.iter().filter_map(|setting| setting.value.as_ref()).flat_map(|value| value.items());
    items.map(|item| PathBuf::from(&item.text)).chain(named).flat_map(|path| [real(&path), path]).collect()
}

/// Creates a node of a translation with the origin of the entry that it was translated from.
fn at(origin: &Origin, content: NodeContent) -> Node {
    Node { content, origin: origin.clone() }
}
