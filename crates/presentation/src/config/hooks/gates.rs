//! Which files hold gates, and whether all of those run that somebody relies on.

use super::Hooks;
use crate::config::{
    Config, ConfigFile, Trust,
    folders::Folders,
    layers::{LayerKind, Resolved},
    origin::Origin,
    problem::{ConfigError, Problem},
    source_file,
    trust::TrustedFiles,
    value::Value,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// The files that hold gates, trusted or not.
#[derive(Debug, Clone, Default)]
pub(super) struct Gates {
    /// Links resolved.
    files: BTreeSet<PathBuf>,
    /// Those of them that a trusted layer names to take hooks from.
    imported: BTreeSet<PathBuf>,
    /// What is wrong where gates wait that somebody relies on.
    waiting: Vec<Problem>,
}

impl Gates {
    /// Takes note of a settings file with a gate in it.
    pub(super) fn imported(&mut self, path: &Path) {
        self.files.insert(path.to_path_buf());
        self.imported.insert(path.to_path_buf());
    }

    /// Takes note of files of our own form. One that takes hooks from others may have its gates from there.
    pub(super) fn of_own_form(&mut self, resolved: &Resolved) {
        let named = resolved.named("hooks");
        let gates = named.values().filter_map(|keys| keys.get("gate")).flat_map(|setting| &setting.contributions);
        let gates = gates.filter(|one| one.value == Value::Boolean(true));
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

impl Hooks {
    /// Whether the file holds a gate.
    pub(in crate::config) fn hold_gate(&self, file: &Path) -> bool {
        self.gates.files.contains(file)
    }

    /// Looks for gates that do not run although somebody relies on them: those of files that a trusted layer takes hooks
    /// from, and those that were in a file as it was trusted, there still or not.
    pub(in crate::config) fn look_for_waiting_gates(
        &mut self,
        files: &[ConfigFile],
        trusted: &TrustedFiles,
        folders: &Folders,
    ) {
        let is_relied_on = |path: &Path| self.gates.imported.contains(path) || trusted.held_gate(path);
        let waiting = files.iter().filter(|file| !file.trust.is_given() && is_relied_on(&file.path));
        let files_by_path: BTreeMap<&Path, Trust> = waiting.map(|file| (&*file.path, file.trust)).collect();
        let problem = |(path, trust): (&Path, Trust)| {
            let remedy = match trust {
                Trust::Linked => {
                    "it is a link, which nobody can trust here: put the file itself in its place".to_owned()
                }
                _ => format!("read it, then say `toolstead config trust {}`", path.display()),
            };
            let message = format!("its gates do not run, so no call is made: {remedy}");
            Problem::new(Origin::file(path), message)
        };
        self.gates.waiting = files_by_path.into_iter().map(problem).collect();
        // With `--config` no file of a project is looked for.
        if files.iter().all(|file| file.kind != LayerKind::Chosen) {
            self.gates.waiting.extend(trusted.gates().filter(|path| is_gone(path, folders)).map(gone));
        }
    }
}

/// Whether a file of this project, and not one of another, is no longer at its path. A link there leads to another file.
fn is_gone(path: &Path, folders: &Folders) -> bool {
    source_file::is_looked_for(folders, path) && path.canonicalize().ok().as_deref() != Some(path)
}

fn gone(path: &Path) -> Problem {
    let message = format!(
        "held a gate when it was trusted and is gone, so no call is made: restore it, or say `toolstead config trust \
         --remove {}`",
        path.display()
    );
    Problem::new(Origin::file(path), message)
}

/// Checks that no gate waits for trust that somebody relies on: no call goes on without it.
///
/// # Errors
/// Each file with such a gate.
pub fn check_gates(config: &Config) -> Result<(), ConfigError> {
    ConfigError::unless_none(config.hooks.gates.waiting.clone())
}
