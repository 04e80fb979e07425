//! `[permissions] import`: the rules of other programs, from their own files.
//!
//! Each file becomes a layer of the same owner as the file that names it. It is read as a table under our own keys, so
//! its rules, mode and folders join as all others do, each with the line where it stands. What a project's file imports
//! counts in full only once a person trusts that file, too. No tool may touch an imported file: it decides what tools do.

mod domains;
mod translation;

use crate::config::{
    check::{Base, check},
    folders::{Folders, real},
    layers::{Layer, LayerKind, Layers, Resolved},
    node::{Format, Node},
    origin::Origin,
    problem::Problem,
    source_file::SourceFile,
    trust::TrustedFiles,
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};
use translation::{Surroundings, translate};

/// No configuration imports more files.
const MAX_FILES: usize = 64;

/// The imported files with their layers, in the order in which they are named.
pub(super) fn load(
    layers: &Layers,
    folders: &Folders,
    trusted: &TrustedFiles,
    notes: &mut Vec<Problem>,
    problems: &mut Vec<Problem>,
) -> Vec<(SourceFile, Layer)> {
    let named = layers.trusted_items("permissions.import");
    if let Some((_, item)) = named.get(MAX_FILES) {
        problems.push(Problem::new(item.origin.clone(), format!("more than {MAX_FILES} files are imported")));
    }
    // Further roots would take the place of the folder that is the root without any.
    let default_root = if layers.is_said("workspace.roots") { None } else { super::workspace::default_root(folders) };
    let mut seen = BTreeSet::new();
    let mut loaded = Vec::new();
    for (kind, item) in named.into_iter().take(MAX_FILES) {
        let wrong =
            |reason: String| Problem::new(item.origin.clone(), format!("`{}` cannot be imported: {reason}", item.text));
        let file = match SourceFile::read(kind, Path::new(&item.text)) {
            Ok(Some(file)) => file,
            Ok(None) => {
                problems.push(wrong("there is no such file".into()));
                continue;
            }
            Err(problem) => {
                problems.push(wrong(problem.message));
                continue;
            }
        };
        if !seen.insert(file.path.clone()) {
            continue;
        }
        let Some(format) = Format::of(&file.path) else {
            problems.push(wrong("its name ends in none of `.toml`, `.json`, `.yaml` and `.yml`".into()));
            continue;
        };
        match Node::read(format, &file.text, &file.path) {
            Err(problem) => problems.push(problem),
            Ok(root) => {
                let folder = file.path.parent().unwrap_or(Path::new("/"));
                let base = Base { folder, home: folders.home.as_deref() };
                let surroundings = Surroundings { base, default_root: default_root.as_deref() };
                let (entries, wrong) = check(&translate(root, surroundings, notes, problems), base);
                problems.extend(wrong);
                let trusted = kind != LayerKind::Project || trusted.trusts(&file.path, &file.text);
                loaded.push((file, Layer { kind, trusted, entries }));
            }
        }
    }
    loaded
}

/// The imported files, as named and links resolved.
pub(super) fn files(resolved: &Resolved) -> Vec<PathBuf> {
    let setting = resolved.setting("permissions.import");
    let items = setting.iter().filter_map(|setting| setting.value.as_ref()).flat_map(|value| value.items());
    items.map(|item| PathBuf::from(&item.text)).flat_map(|path| [real(&path), path]).collect()
}

/// A place that a translation gives to what it makes.
fn at(origin: &Origin, content: super::node::Content) -> Node {
    Node { content, origin: origin.clone() }
}
