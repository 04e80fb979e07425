//! Where a repository may say that its working trees stand.

use super::{super::request::Request, SETTINGS, START_FILES};
use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

#[derive(Debug)]
pub(super) struct Ground {
    roots: Vec<PathBuf>,
    /// What a run can write to.
    places: Vec<PathBuf>,
}

impl Ground {
    pub(super) fn of(request: &Request) -> Self {
        let writable = || request.folders.iter().filter(|folder| folder.is_writable);
        let own = request.home.iter().cloned().chain(["/tmp", "/var/tmp"].map(PathBuf::from));
        Self {
            roots: writable().filter(|folder| folder.is_root).map(|folder| folder.target.clone()).collect(),
            places: writable().map(|folder| folder.target.clone()).chain(own).collect(),
        }
    }

    /// Whether a path leads to where a run can write.
    pub(super) fn is_place(&self, path: &[u8], from: &Path) -> bool {
        reached(line(path), from).is_some_and(|reached| self.places.iter().any(|place| reached.starts_with(place)))
    }

    /// Where a line leads, if that is in a root.
    pub(super) fn root_of(&self, path: &[u8], from: &Path) -> Option<PathBuf> {
        reached(line(path), from).filter(|reached| self.roots.iter().any(|root| reached.starts_with(root)))
    }

    /// Whether a path leads into a root, and to no name there that programs act on.
    pub(super) fn is_plain(&self, path: &[u8], from: &Path) -> bool {
        let Some(reached) = reached(path, from) else { return false };
        let is_plain = |part: &OsStr| {
            let mut names = SETTINGS.iter().chain(&START_FILES).chain(&[".git", ".config"]);
            !names.any(|name| part.as_bytes().eq_ignore_ascii_case(name.as_bytes()))
        };
        let rests = || self.roots.iter().filter_map(|root| reached.strip_prefix(root).ok());
        rests().next().is_some() && rests().all(|rest| rest != Path::new("") && rest.iter().all(is_plain))
    }
}

/// A text of one line without its end.
pub(super) fn line(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    &text[..end]
}

/// Where a path, which may be a relative one, leads; `None` for one that nobody writes.
fn reached(path: &[u8], from: &Path) -> Option<PathBuf> {
    let mut reached = PathBuf::new();
    for part in from.join(OsStr::from_bytes(path)).components() {
        match part {
            Component::ParentDir => drop(reached.pop()),
            Component::CurDir => {}
            part => reached.push(part),
        }
    }
    (!path.is_empty() && !path.iter().any(u8::is_ascii_control)).then_some(reached)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submodule_stands_in_a_root_and_under_no_protected_name() {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        let ground = Ground { roots: paths(&["/r", "/other", "/other/in"]), places: paths(&["/r", "/home/u", "/tmp"]) };
        for (path, from, is_fine) in [
            ("../../../sub", "/r/.git/modules/sub", true),
            ("../../../a/b", "/r/.git/modules/sub", true),
            // Of a submodule within a working tree.
            ("../../../../../tree/sub", "/r/.git/worktrees/tree/modules/sub", true),
            ("../../../../other/sub", "/r/.git/modules/sub", true),
            ("../../../../sub", "/r/.git/modules/sub", false),
            ("../../sub", "/r/.git/modules/sub", false),
            ("../../../a/../../b", "/r/.git/modules/sub", false),
            ("../../../.git", "/r/.git/modules/sub", false),
            ("../../../.CLAUDE", "/r/.git/modules/sub", false),
            ("../../../a/.cursor/b", "/r/.git/modules/sub", false),
            ("../../..", "/r/.git/modules/sub", false),
            ("/other/in", "/r/.git/modules/sub", false),
            ("/other/in/a", "/r/.git/modules/sub", true),
            ("/home/u/bin", "/r/.git/modules/sub", false),
            ("", "/r/.git/modules/sub", false),
            ("../../../a\n", "/r/.git/modules/sub", false),
        ] {
            assert_eq!(ground.is_plain(path.as_bytes(), Path::new(from)), is_fine, "{path} {from}");
        }
        for (path, is_place) in [("/tmp/x/.git", true), ("/home/u/x/.git", true), ("/elsewhere/.git", false)] {
            assert_eq!(ground.is_place(path.as_bytes(), Path::new("/r/.git/worktrees/x")), is_place, "{path}");
        }
    }
}
