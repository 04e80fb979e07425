//! Folders whose instruction files agents read: the user's own, and those that the user trusts.

use crate::config::{
    Config,
    layers::{
        LayerKind,
        folders::{StandardFolders, real},
    },
    sections::client_roots::ClientRootChecker,
    tree::{ownership::check_owned, problem::Problem},
    trust::{self, TrustList},
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};
use toolstead_domain::{RootPermission, WorkspaceRoots};

/// Names of instruction files. The first one that exists in a folder is used.
pub(crate) const INSTRUCTION_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// Folder in the home folder with the user's own file of Claude Code, and the name of that file.
const OF_CLAUDE_CODE: (&str, &str) = (".claude", "CLAUDE.md");

/// Folders with instruction files, and the user's trust in them.
#[derive(Debug, Clone)]
pub(crate) struct InstructionFolders {
    folders: StandardFolders,
    roots: WorkspaceRoots,
    disabled: Option<&'static str>,
}

/// Folder of the user with instruction files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserInstructionFolder {
    /// Path, with symbolic links resolved.
    pub(crate) path: PathBuf,
    /// Names of the files to use, in order of precedence.
    pub(crate) names: &'static [&'static str],
    /// `true` if tools can write to the folder, so that the files need trust like those of a project.
    pub(crate) needs_trust: bool,
}

/// Folders whose instruction files agents read, together with those of all folders below.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TrustedFolders(BTreeSet<PathBuf>);

impl TrustedFolders {
    /// Returns `true` if the file or folder at this real path is in a trusted folder, or is one.
    pub(crate) fn contain(&self, path: &Path) -> bool {
        self.0.iter().any(|folder| path.starts_with(folder))
    }

    /// Returns `true` if a file in one of the roots may be in a trusted folder.
    pub(crate) fn meet(&self, roots: &WorkspaceRoots) -> bool {
        self.0.iter().any(|folder| roots.all().any(|root| root.starts_with(folder) || folder.starts_with(root)))
    }
}

impl Config {
    /// Returns the folders whose instruction files agents may read.
    pub(crate) fn instruction_folders(&self) -> InstructionFolders {
        let is_alone = self.files.iter().any(|file| file.kind == LayerKind::Chosen);
        let disabled = match () {
            () if !self.agent.instructions => Some("`agent.instructions` is `false`"),
            () if is_alone => Some("`--config` names the only file that is read"),
            () => None,
        };
        InstructionFolders { folders: self.folders.clone(), roots: self.roots.clone(), disabled }
    }
}

impl InstructionFolders {
    /// Returns the reason why agents read no instruction files; `None` if they may read them.
    pub(crate) fn disabled(&self) -> Option<&'static str> {
        self.disabled
    }

    /// Returns the home folder.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.folders.home.as_deref()
    }

    /// Returns the trusted folders. Blocks.
    pub(crate) fn trusted(&self) -> TrustedFolders {
        TrustedFolders(TrustList::load(&self.folders).0.instruction_folders().clone())
    }

    /// Returns the user's own folders, in order of precedence. A folder behind a link that other users can change is
    /// omitted. Blocks.
    pub(crate) fn own(&self) -> Vec<UserInstructionFolder> {
        let config = self.folders.config.clone().map(|folder| (folder, &INSTRUCTION_FILES[..]));
        let (folder, name) = &OF_CLAUDE_CODE;
        let foreign = self.folders.home.as_ref().map(|home| (home.join(folder), std::slice::from_ref(name)));
        let own = config.into_iter().chain(foreign).filter_map(|(folder, names)| {
            let path = real(&folder);
            let is_followed = path == folder || check_owned(&folder, &path).is_ok();
            let is_written_by_tools =
                self.roots.containing(&path).is_some_and(|(_, kind)| kind == RootPermission::Write);
            let needs_trust = is_written_by_tools && !self.roots.is_forbidden(&path);
            is_followed.then_some(UserInstructionFolder { path, names, needs_trust })
        });
        own.collect()
    }

    /// Returns the resolved path of a folder that may be trusted. Blocks.
    ///
    /// # Errors
    /// The reason why the folder may not be trusted: it is the whole machine, a home folder, or holds one.
    pub(crate) fn judge(&self, folder: &Path) -> Result<PathBuf, String> {
        ClientRootChecker::new(self.folders.clone()).judge(folder)
    }

    /// Trusts the instruction files at and below a folder, or revokes the trust in all folders at and below it. Blocks.
    ///
    /// # Errors
    /// A [`Problem`] if the trust list cannot be written.
    pub(crate) fn set_trust(&self, folder: &Path, trusted: bool) -> Result<(), Problem> {
        trust::set_instructions(&self.folders, folder, trusted)
    }

    /// Returns the trusted folders at and below this one. Blocks.
    pub(crate) fn trusted_under(&self, folder: &Path) -> Vec<PathBuf> {
        self.trusted().0.into_iter().filter(|known| known.starts_with(folder)).collect()
    }
}
