//! Search for the file that the shell starts for the name of a program.

use super::{is_shown_to_all, workspace::Workspace};
use std::{os::unix::fs::PermissionsExt, path::Path};

/// Names of the folder for temporary files that commands have to themselves.
pub const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Returns `true` if a shell with this `PATH` finds a program in a folder of the system that every run sees, and looks
/// before that into no folder that is in the workspace or that a command may write.
pub fn finds_in_system(workspace: &Workspace, program: &str, search_path: &str) -> bool {
    for folder in search_path.split(':').map(Path::new) {
        if !is_outside(workspace, folder) {
            return false;
        }
        let candidate = folder.join(program);
        // A run may not see what is in other folders, and would find a later one.
        if is_shown_to_all(&candidate) && is_executable(&candidate) {
            return is_outside(workspace, &candidate);
        }
    }
    false
}

/// Returns `true` if neither the workspace nor a command decides what is at this path.
fn is_outside(workspace: &Workspace, path: &Path) -> bool {
    let is_theirs = |path: &Path| workspace.contains(path) || PRIVATE.iter().any(|folder| path.starts_with(folder));
    let leads_outside = match workspace.writable().way(path) {
        Some(way) => !way.is_theirs && !is_theirs(&way.real),
        // It does not exist, unless a link leads there that is not followed to its end.
        None => path.ancestors().all(|part| !part.is_symlink()),
    };
    path.is_absolute() && !is_theirs(path) && leads_outside
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
