//! Search for the file that the shell starts for the name of a program.

use super::{is_shown_to_all, run_request::PRIVATE_HOME, toolchains::ToolchainFolderCollector, workspace::Workspace};
use std::{
    collections::BTreeMap,
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
};

/// Paths of the private folder for temporary files of commands.
pub const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// `PATH` of a shell, with the home that commands may write to.
#[derive(Debug, Clone)]
pub struct ShellPathAndHome {
    /// Value of `PATH`.
    pub folders: String,
    /// Value of `HOME`.
    pub home: Option<PathBuf>,
}

impl ShellPathAndHome {
    /// Returns the search path of a shell with this environment, or `None` without a `PATH`.
    pub fn of(environment: &BTreeMap<String, String>) -> Option<Self> {
        let folders = environment.get("PATH")?.clone();
        Some(Self { folders, home: environment.get("HOME").map(PathBuf::from) })
    }

    /// Returns `true` if the path is in the home that the runs of a session share.
    fn is_in_home(&self, path: &Path) -> bool {
        let named = self.home.as_deref().filter(|home| home.components().count() > 1);
        named.into_iter().chain([Path::new(PRIVATE_HOME)]).any(|home| path.starts_with(home))
    }

    /// Returns `true` if commands cannot write to the folder through their home: it is elsewhere, or it belongs to the
    /// user and is mounted read-only.
    fn is_beside_home(&self, workspace: &Workspace, folder: &Path) -> bool {
        let Some(way) = workspace.writable().resolve(folder) else { return !self.is_in_home(folder) };
        if self.is_in_home(folder) && folder != way.real {
            return false;
        }
        let is_mounted = || {
            let mut toolchains = ToolchainFolderCollector::new(self.home.as_deref(), workspace.writable());
            toolchains.add_bin(&way.real);
            toolchains.into_folders().iter().any(|mounted| way.real.starts_with(mounted))
        };
        !self.is_in_home(&way.real) || is_mounted()
    }
}

/// Returns `true` if a shell with this `PATH` finds a program in a system folder that every run sees, and no folder
/// that it searches before is in the workspace or writable by a command.
pub fn finds_in_system(workspace: &Workspace, program: &str, search_path: &ShellPathAndHome) -> bool {
    for folder in search_path.folders.split(':').map(Path::new) {
        let is_plain = folder.components().all(|part| part != Component::ParentDir);
        if !is_plain || !is_outside(workspace, folder) || !search_path.is_beside_home(workspace, folder) {
            return false;
        }
        let candidate = folder.join(program);
        if is_executable(&candidate) {
            let is_of_system = |path: &Path| is_shown_to_all(path) && is_outside(workspace, path);
            let real = candidate.canonicalize();
            return is_of_system(&candidate) && real.is_ok_and(|real| is_of_system(&real));
        }
    }
    false
}

/// Returns `true` if neither the workspace nor a command controls the file at this path.
fn is_outside(workspace: &Workspace, path: &Path) -> bool {
    let is_theirs = |path: &Path| workspace.contains(path) || PRIVATE.iter().any(|folder| path.starts_with(folder));
    let leads_outside = match workspace.writable().resolve(path) {
        Some(way) => !way.is_run_controlled && !is_theirs(&way.real),
        // The path does not exist, unless it is a link that was not followed to its end.
        None => path.ancestors().all(|part| !part.is_symlink()),
    };
    path.is_absolute() && !is_theirs(path) && leads_outside
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
