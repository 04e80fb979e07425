//! Configuration files that were read, with their trust state.

use crate::config::{
    layers::LayerKind,
    tree::{origin::Origin, problem::Problem, source_file::SourceFile},
    trust::TrustList,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// A configuration file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Absolute path. For a file of a project, the path within the project; for any other file, the path with symbolic
    /// links resolved.
    pub path: Arc<Path>,
    /// Layer that the file belongs to.
    pub kind: LayerKind,
    /// Trust state, which decides whether the whole file takes effect.
    pub trust: FileTrust,
    /// Target that was read instead, if the path is a symbolic link in a project or is behind one.
    pub leads_to: Option<PathBuf>,
    pub(super) text: String,
}

/// Trust state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileTrust {
    /// No trust is needed: the file belongs to the administrator or the user, or was named with `--config`.
    Always,
    /// The user trusted this content.
    Given,
    /// The user has not trusted this content yet.
    Waiting,
    /// The file cannot be trusted: it is a symbolic link in a project, or is behind one. Trust in the target does not
    /// extend to other paths.
    Linked,
}

impl FileTrust {
    /// Returns `true` if the whole file takes effect.
    pub fn takes_effect(self) -> bool {
        matches!(self, Self::Always | Self::Given)
    }
}

impl ConfigFile {
    pub(super) fn of(file: SourceFile, trusted: &TrustList) -> Self {
        let SourceFile { kind, path, text, leads_to } = file;
        let trust = match kind {
            _ if leads_to.is_some() => FileTrust::Linked,
            kind if !needs_trust(kind, &path, trusted) => FileTrust::Always,
            _ if trusted.trusts(&path, &text) => FileTrust::Given,
            _ => FileTrust::Waiting,
        };
        Self { path, kind, trust, leads_to, text }
    }

    /// Returns the problem to report for a symbolic link in a project.
    pub(super) fn linked(&self) -> Option<Problem> {
        let target = self.leads_to.as_ref()?.display();
        let message = format!(
            "is a link, or is below one, to {target}: trust in that file does not extend to this project, and only \
             its stricter settings apply. Put a copy of the file here, or name the target with `--config`"
        );
        Some(Problem::new(Origin::file(self.path.clone()), message))
    }
}

/// Returns `true` if a file takes effect only with content that the user trusted. That applies to every file of a
/// project, and to an imported file that did not exist when the user's own configuration first named it.
fn needs_trust(kind: LayerKind, path: &Path, trusted: &TrustList) -> bool {
    kind.is_of_project() || trusted.was_missing(path)
}

/// Returns `true` if the whole file takes effect.
pub(super) fn is_trusted(file: &SourceFile, trusted: &TrustList) -> bool {
    let is_content_trusted = || trusted.trusts(&file.path, &file.text);
    file.leads_to.is_none() && (!needs_trust(file.kind, &file.path, trusted) || is_content_trusted())
}
