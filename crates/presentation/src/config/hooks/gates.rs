//! Files that define gates, and the check that every required gate runs.

use super::ConfiguredHooks;
use crate::config::{
    Config, ConfigFile, FileTrust,
    layers::{LayerKind, ResolvedSettings, folders::StandardFolders},
    tree::{
        origin::Origin,
        problem::{ConfigError, Problem},
        source_file,
        value::ValidatedConfigValue,
    },
    trust::TrustList,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Files that define gates, trusted or not.
#[derive(Debug, Clone, Default)]
pub(super) struct GateDefinitionFiles {
    /// Paths with symbolic links resolved.
    files: BTreeSet<PathBuf>,
    /// Subset of `files` from which a trusted layer imports hooks.
    imported: BTreeSet<PathBuf>,
    /// Problems of required gates that do not run.
    waiting: Vec<Problem>,
}

impl GateDefinitionFiles {
    /// Records a settings file that contains a gate.
    pub(super) fn imported(&mut self, path: &Path) {
        self.files.insert(path.to_path_buf());
        self.imported.insert(path.to_path_buf());
    }

    /// Records the files in Toolstead's own form that define gates. Includes files that import hooks, because their
    /// gates may be in the imported file.
    pub(super) fn of_own_form(&mut self, resolved: &ResolvedSettings) {
        let named = resolved.named("hooks");
        let gates = named.values().filter_map(|keys| keys.get("gate")).flat_map(|setting| &setting.contributions);
        let gates = gates.filter(|one| one.value == ValidatedConfigValue::Boolean(true));
        let import = resolved.setting("hooks.import");
        let imports = import.iter().flat_map(|setting| &setting.contributions);
        let imports = imports.filter(|one| !one.value.items().is_empty());
        for one in gates.chain(imports) {
            if let Origin::File(path, _) = &one.origin {
                self.files.insert(path.to_path_buf());
            }
        }
    }
}

impl ConfiguredHooks {
    /// Returns `true` if the file defines a gate.
    pub(in crate::config) fn hold_gate(&self, file: &Path) -> bool {
        self.gates.files.contains(file)
    }

    /// Records required gates that do not run: those in files from which a trusted layer imports hooks, and those in
    /// files that contained a gate when the user trusted them, even if the file no longer exists.
    pub(in crate::config) fn look_for_waiting_gates(
        &mut self,
        files: &[ConfigFile],
        trusted: &TrustList,
        folders: &StandardFolders,
    ) {
        let is_relied_on = |path: &Path| self.gates.imported.contains(path) || trusted.held_gate(path);
        let waiting = files.iter().filter(|file| !file.trust.takes_effect() && is_relied_on(&file.path));
        let files_by_path: BTreeMap<&Path, FileTrust> = waiting.map(|file| (&*file.path, file.trust)).collect();
        let problem = |(path, trust): (&Path, FileTrust)| {
            let suggestion = match trust {
                FileTrust::Linked => {
                    "it is a link, and links are not trusted here: replace it with the file itself".to_owned()
                }
                _ => format!("read it, then say `toolstead config trust {}`", path.display()),
            };
            let message = format!("its gates do not run, so no call is made: {suggestion}");
            Problem::new(Origin::file(path), message)
        };
        self.gates.waiting = files_by_path.into_iter().map(problem).collect();
        // With `--config`, files of projects are not searched.
        if files.iter().all(|file| file.kind != LayerKind::Chosen) {
            self.gates
                .waiting
                .extend(trusted.gates().filter(|path| is_missing(path, folders)).map(missing_gate_problem));
        }
    }
}

/// Returns `true` if a file is expected at this path in the project, but none is there or a symbolic link leads
/// elsewhere.
fn is_missing(path: &Path, folders: &StandardFolders) -> bool {
    source_file::is_looked_for(folders, path) && path.canonicalize().ok().as_deref() != Some(path)
}

fn missing_gate_problem(path: &Path) -> Problem {
    let message = format!(
        "held a gate when it was trusted and is gone, so no call is made: restore it, or say `toolstead config trust \
         --remove {}`",
        path.display()
    );
    Problem::new(Origin::file(path), message)
}

/// Checks that no required gate waits for trust. Without its gates, no call may be made.
///
/// # Errors
/// Each file with such a gate.
pub fn check_gates(config: &Config) -> Result<(), ConfigError> {
    ConfigError::unless_none(config.hooks.gates.waiting.clone())
}
