//! Reads every source of a configuration: files, environment variables and flags.

use crate::config::{
    config_file::{ConfigFile, is_trusted},
    imports,
    layers::{
        ContributionsByKey, Layer, LayerKind, ResolvedSettings, folders::StandardFolders, request::ConfigRequest,
    },
    sections::models,
    servers::foreign_servers,
    tree::{
        check::{PathBase, check},
        format::ConfigFormat,
        origin::Origin,
        problem::{ConfigError, Problem},
        source_file::{self, SourceFile},
    },
    trust::TrustList,
};
use std::path::{Path, PathBuf};

/// Settings of all sources, merged and not yet converted.
pub(super) struct MergedSources {
    pub(super) resolved: ResolvedSettings,
    pub(super) folders: StandardFolders,
    /// Files that were read: those of Toolstead from the lowest precedence up, then those of other clients and imported
    /// ones.
    pub(super) files: Vec<ConfigFile>,
    /// Files named by other files. No tool may access them.
    pub(super) named: Vec<PathBuf>,
    pub(super) trusted: TrustList,
    pub(super) notes: Vec<Problem>,
}

/// Files that were found, and the problems of those that cannot be read.
#[derive(Default)]
struct FoundConfigFiles {
    /// Files in Toolstead's own form.
    own: Vec<SourceFile>,
    /// Files of other clients.
    foreign: Vec<SourceFile>,
    problems: Vec<Problem>,
}

impl MergedSources {
    /// Reads all sources after applying `change` to the list of trusted files.
    pub(super) fn read(request: &ConfigRequest, change: impl FnOnce(&mut TrustList)) -> Result<Self, ConfigError> {
        let folders = StandardFolders::of(&request.environment, &request.start, &request.administrator)?;
        let mut notes = folders.guard_data()?;
        let FoundConfigFiles { own, foreign, mut problems } = FoundConfigFiles::of(request, &folders, &mut notes);
        let (mut trusted, note) = TrustList::load(&folders);
        notes.extend(note);
        change(&mut trusted);

        let mut layers = ContributionsByKey::default();
        for file in &own {
            let mut wrong = Vec::new();
            let layer = file_layer(file, &folders, &trusted, &mut wrong);
            if file.kind == LayerKind::Local && !layer.trusted && !wrong.is_empty() {
                notes.extend(wrong.into_iter().map(source_file::left_out));
                continue;
            }
            problems.extend(wrong);
            layers = layers.merge(ContributionsByKey::of(layer));
        }
        for file in &foreign {
            layers = layers.merge(ContributionsByKey::of(foreign_servers::layer(file, &folders, &trusted, &mut notes)));
        }
        for layer in typed_layers(request, &folders, &mut problems) {
            layers = layers.merge(ContributionsByKey::of(layer));
        }
        let imported = imports::load(&layers, &folders, &trusted, &mut notes, &mut problems);
        for (_, layer) in &imported.layers {
            layers = layers.merge(ContributionsByKey::of(layer.clone()));
        }
        ConfigError::unless_none(problems)?;

        let imported_files = imported.layers.into_iter().map(|(file, _)| file);
        let files = own.into_iter().chain(foreign).chain(imported_files);
        let files: Vec<_> = files.map(|file| ConfigFile::of(file, &trusted)).collect();
        notes.extend(files.iter().filter_map(ConfigFile::linked));
        let named = imported.named.into_iter().chain(models::key_files(&layers)).collect();
        Ok(Self { resolved: layers.resolve(), folders, files, named, trusted, notes })
    }
}

impl FoundConfigFiles {
    /// Reads the file of `--config`, or else searches all locations.
    fn of(request: &ConfigRequest, folders: &StandardFolders, notes: &mut Vec<Problem>) -> Self {
        let Some(path) = &request.file else {
            let (own, problems) = source_file::discover(folders, notes);
            return Self { own, foreign: foreign_servers::discover(folders, notes), problems };
        };
        let path = folders.start.join(path);
        match SourceFile::read(LayerKind::Chosen, &path) {
            Ok(Some(file)) => Self { own: vec![file], ..Self::default() },
            Ok(None) => {
                let problem = Problem::new(Origin::file(path), "there is no such file");
                Self { problems: vec![problem], ..Self::default() }
            }
            Err(problem) => Self { problems: vec![problem], ..Self::default() },
        }
    }
}

/// Returns the layers of the environment variables and of the flags.
fn typed_layers(request: &ConfigRequest, folders: &StandardFolders, problems: &mut Vec<Problem>) -> [Layer; 2] {
    let base = PathBase { folder: &folders.start, home: folders.home.as_deref() };
    let settings =
        [(LayerKind::Environment, request.environment.settings()), (LayerKind::Flags, request.flags.settings())];
    settings.map(|(kind, root)| {
        let (entries, found) = check(&root, base);
        problems.extend(found);
        Layer { kind, trusted: true, entries }
    })
}

fn file_layer(file: &SourceFile, folders: &StandardFolders, trusted: &TrustList, problems: &mut Vec<Problem>) -> Layer {
    let trusted = is_trusted(file, trusted);
    let mut entries = Vec::new();
    let format = ConfigFormat::of(&file.path).ok_or_else(|| {
        let message = "the name of a configuration file ends in `.toml`, `.json`, `.yaml` or `.yml`";
        Problem::new(Origin::file(file.path.clone()), message)
    });
    match format.and_then(|format| format.read(&file.text, &file.path)) {
        Ok(root) => {
            let folder = file.path.parent().unwrap_or(Path::new("/"));
            let (found, wrong) = check(&root, PathBase { folder, home: folders.home.as_deref() });
            entries = found;
            problems.extend(wrong);
        }
        Err(problem) => problems.push(problem),
    }
    Layer { kind: file.kind, trusted, entries }
}
