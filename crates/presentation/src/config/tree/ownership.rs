//! Owner of files and folders, and write access by other users.

use crate::config::tree::{origin::Origin, problem::Problem};
use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

/// Maximum number of symbolic links in a path.
const MAX_LINKS: usize = 40;
/// Permission bits for writing by users other than the owner.
pub(in crate::config) const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Permission bit of a folder in which only the owner of a file can remove it.
const STICKY: u32 = 0o1000;

/// Returns the effective user id of this process.
pub(in crate::config) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Checks that only this user and root can change what is read at `path`: the symbolic links on the way, the resolved
/// file at `real`, and their folders.
///
/// # Errors
/// Description of the problem and of its correction.
pub(in crate::config) fn check_owned(path: &Path, real: &Path) -> Result<(), String> {
    let failed = |path: &Path, error: io::Error| format!("`{}`: {error}", path.display());
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let named = path.parent().unwrap_or(Path::new("/"));
        let folder = named.canonicalize().map_err(|error| failed(named, error))?;
        let facts = folder.metadata().map_err(|error| failed(&folder, error))?;
        check_owner(&folder, &facts)?;
        let mode = facts.permissions().mode();
        if mode & WRITABLE_BY_OTHERS != 0 && mode & STICKY == 0 {
            return Err(others_write(&folder));
        }
        path = folder.join(path.file_name().unwrap_or_default());
        let facts = path.symlink_metadata().map_err(|error| failed(&path, error))?;
        check_owner(&path, &facts)?;
        if facts.is_symlink() {
            path = folder.join(fs::read_link(&path).map_err(|error| failed(&path, error))?);
        } else if facts.permissions().mode() & WRITABLE_BY_OTHERS != 0 {
            return Err(others_write(&path));
        } else if path != real {
            return Err("its target has changed".into());
        } else {
            return Ok(());
        }
    }
    Err("it follows too many links".into())
}

fn check_owner(path: &Path, facts: &fs::Metadata) -> Result<(), String> {
    match facts.uid() {
        owner if owner == 0 || owner == user() => Ok(()),
        owner => Err(format!("`{}` belongs to the user {owner}, neither to you nor to root", path.display())),
    }
}

fn others_write(path: &Path) -> String {
    format!("others can write `{0}`: `chmod go-w {0}`", path.display())
}

/// Removes the permissions in `closed` that other users have on a file or folder. Returns a note on the change; `None`
/// if there was nothing to remove or the path does not exist.
///
/// # Errors
/// A [`Problem`] with the reason why the permissions could not be removed.
pub(in crate::config) fn close_to_others(path: &Path, closed: u32) -> Result<Option<Problem>, Problem> {
    let facts = match path.metadata() {
        Ok(facts) => facts,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(Problem::new(Origin::file(path), format!("cannot be inspected: {error}"))),
    };
    let mode = facts.permissions().mode() & 0o7777;
    if mode & closed == 0 {
        return Ok(None);
    }
    let changed = fs::set_permissions(path, fs::Permissions::from_mode(mode & !closed));
    let message =
        |rest: String| Problem::new(Origin::file(path), format!("others could get at it (mode {mode:o}), {rest}"));
    match changed {
        Ok(()) => Ok(Some(message(format!("and cannot any more: its mode is {:o} now", mode & !closed)))),
        Err(error) => {
            let rest = format!("and that cannot be changed ({error}): `chmod {:o} {}`", mode & !closed, path.display());
            Err(message(rest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::fs::symlink, path::PathBuf};

    /// A home with a link to a file in a folder of dotfiles.
    fn dotfiles() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap();
        for name in ["config", "dotfiles"] {
            fs::create_dir(root.join(name)).unwrap();
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let (link, file) = (root.join("config/config.toml"), root.join("dotfiles/toolstead.toml"));
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        symlink("../dotfiles/toolstead.toml", &link).unwrap();
        (top, link, file)
    }

    #[test]
    fn follows_a_link_only_if_no_other_user_can_change_its_target() {
        for (name, mode, is_followed) in [
            ("config", 0o755, true),
            ("dotfiles", 0o700, true),
            ("dotfiles", 0o777, false),
            ("dotfiles", 0o1777, true),
            ("config", 0o775, false),
            ("dotfiles/toolstead.toml", 0o600, true),
            ("dotfiles/toolstead.toml", 0o664, false),
            ("dotfiles/toolstead.toml", 0o646, false),
        ] {
            let (top, link, file) = dotfiles();
            fs::set_permissions(top.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
            let checked = check_owned(&link, &file);
            assert_eq!(checked.is_ok(), is_followed, "{name} {mode:o}: {checked:?}");
            if let Err(reason) = checked {
                assert!(reason.contains("others can write") && reason.contains("chmod go-w"), "{reason}");
            }
        }
    }

    #[test]
    fn rejects_a_link_whose_target_has_another_owner_or_has_changed() {
        let (_top, link, file) = dotfiles();
        assert!(check_owned(&link, &file.with_file_name("other.toml")).is_err());
        if user() == 0 {
            std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
            let reason = check_owned(&link, &file).unwrap_err();
            assert!(reason.contains("belongs to the user 12345"), "{reason}");
        }
    }
}
