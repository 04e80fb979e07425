//! Files that one server runs from locations that tools can write to, and their check before each start.

use crate::config::{
    layers::folders::StandardFolders,
    trust::{self, TrustList, program_digest},
};
use std::{
    fmt,
    path::{Path, PathBuf},
};
use toolstead_domain::permission::decision::in_shell;

/// Files that a server runs from locations that tools can write to.
#[derive(Clone, Default)]
pub struct WritableServerPrograms {
    pub(in crate::config) files: Vec<ProgramFile>,
    /// Folders with the trust list; `None`: nothing is checked.
    pub(in crate::config) folders: Option<StandardFolders>,
    /// File of `--config`, which the command that trusts the files needs.
    pub(in crate::config) config: Option<PathBuf>,
}

/// A file that a server runs.
#[derive(Clone)]
pub(in crate::config) struct ProgramFile {
    pub(in crate::config) path: PathBuf,
    /// `true` if the user's own configuration names this very file, so that its first use trusts it.
    pub(in crate::config) is_named: bool,
}

impl fmt::Debug for WritableServerPrograms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.paths()).finish()
    }
}

impl WritableServerPrograms {
    /// Returns the paths of the files, which need not exist.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// Returns the files that the user's own configuration names and that are not recorded yet, with their current
    /// digests; `None` for a missing file. Until they are recorded, commands could replace them.
    pub(in crate::config) fn unknown(&self, trusted: &TrustList) -> impl Iterator<Item = (PathBuf, Option<String>)> {
        let unknown = self.files.iter().filter(|file| file.is_named && trusted.program(&file.path).is_none());
        // A file that cannot be read is reported when it would be run.
        unknown.filter_map(|file| Some((file.path.clone(), program_digest(&file.path).ok()?)))
    }

    /// Checks that a start would run only files that the user trusted. Trusts files that the user's own configuration
    /// names for the first time.
    ///
    /// # Errors
    /// The path of a changed, untrusted or unreadable file, and the command that trusts it; or the failure to record
    /// trust.
    pub fn check(&self) -> Result<(), String> {
        let Some(folders) = self.folders.as_ref().filter(|_| !self.files.is_empty()) else { return Ok(()) };
        let (trusted, _) = TrustList::load(folders);
        let mut first_used = Vec::new();
        for ProgramFile { path, is_named } in &self.files {
            let digest = program_digest(path).map_err(|error| {
                format!("it is not started: `{}`, which it runs, cannot be read: {error}", path.display())
            })?;
            match (trusted.program(path), digest) {
                (Some(known), digest) if known == digest.as_deref() => {}
                // A missing file is not run, and other content at its path will not be trusted.
                (_, None) if !is_named => {}
                (Some(_), None) => {}
                (None, digest) if *is_named => first_used.push((path.clone(), digest)),
                (known, _) => return Err(self.refusal(path, known.is_some())),
            }
        }
        match first_used.is_empty() || folders.data.is_none() {
            true => Ok(()),
            false => trust::set_programs(folders, first_used).map_err(|problem| problem.to_string()),
        }
    }

    fn refusal(&self, path: &Path, is_known: bool) -> String {
        let what = match is_known {
            true => "has changed since it was trusted",
            false => "is where tools write, and is not trusted",
        };
        let config = self.config.as_ref().map(|file| format!("--config {} ", in_shell(&file.to_string_lossy())));
        format!(
            "it is not started: `{}`, which it runs, {what}. Read it, then say `toolstead {}config trust {}`",
            path.display(),
            config.unwrap_or_default(),
            in_shell(&path.to_string_lossy())
        )
    }
}
