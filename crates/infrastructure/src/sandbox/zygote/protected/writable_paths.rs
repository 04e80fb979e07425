//! Places where the working trees of a repository may be.

use super::{
    super::{
        request::{RunRequest, StepFailure, StepResultExt},
        view::RootBuilder,
    },
    SETTINGS, START_FILES,
    folder::FolderHandle,
};
use std::{
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

#[derive(Debug)]
pub(super) struct WritablePaths {
    roots: Vec<FolderHandle>,
    /// Paths that a run can write to.
    places: Vec<PathBuf>,
}

impl WritablePaths {
    pub(super) fn of(view: &RootBuilder<'_>, request: &RunRequest) -> Result<Self, StepFailure> {
        let writable = || request.folders.iter().filter(|folder| folder.is_writable);
        let own = request.home.iter().cloned().chain(["/tmp", "/var/tmp"].map(PathBuf::from));
        let root = |path: &Path| {
            let handle = view.found(path).step(|| format!("open `{}`", path.display()))?;
            Ok(FolderHandle::of(handle, path.to_owned()))
        };
        Ok(Self {
            roots: writable()
                .filter(|folder| folder.is_root)
                .map(|folder| root(&folder.target))
                .collect::<Result<_, _>>()?,
            places: writable().map(|folder| folder.target.clone()).chain(own).collect(),
        })
    }

    /// Returns `true` if a path leads to a place that a run can write to.
    pub(super) fn is_place(&self, path: &[u8], from: &Path) -> bool {
        reached(line(path), from).is_some_and(|reached| self.places.iter().any(|place| reached.starts_with(place)))
    }

    /// Returns the target of a path, if that is in a root.
    pub(super) fn root_of(&self, path: &[u8], from: &Path) -> Option<PathBuf> {
        reached(line(path), from).filter(|reached| self.roots.iter().any(|root| reached.starts_with(&root.path)))
    }

    /// Returns `true` if a path leads into a root, over no link, and over no name in it that programs act on.
    pub(super) fn is_plain(&self, path: &[u8], from: &Path) -> bool {
        let Some(reached) = reached(path, from).filter(|_| is_straight(path)) else { return false };
        let mut rests = self.roots.iter().filter_map(|root| Some((root, reached.strip_prefix(&root.path).ok()?)));
        let is_plain = |(root, rest): (&FolderHandle, &Path)| {
            rest != Path::new("") && !rest.iter().any(is_of_protected) && is_without_link(root, rest)
        };
        rests.next().is_some_and(is_plain) && rests.all(is_plain)
    }
}

/// Returns `true` if a component of a path is the first one of a protected name.
fn is_of_protected(part: &OsStr) -> bool {
    let mut names = SETTINGS.iter().chain(&START_FILES).chain(&[".git"]);
    names.any(|name| name.split('/').next().is_some_and(|first| part.eq_ignore_ascii_case(first)))
}

/// Returns `true` if no existing part of the path is a link. A run cannot create a link in a folder that rules hide
/// from it.
fn is_without_link(root: &FolderHandle, rest: &Path) -> bool {
    match root.handle_of(rest).map_err(|error| error.kind()) {
        Ok(_) | Err(io::ErrorKind::NotFound) => true,
        Err(io::ErrorKind::InvalidInput) => false,
        Err(_) => rest.ancestors().any(|part| part != Path::new("") && root.is_closed(part)),
    }
}

/// Returns a text of one line without its line end.
pub(super) fn line(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    &text[..end]
}

/// Returns the absolute form of a path that may be relative to `from`, without following links; `None` for an empty
/// path or one with control characters.
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

/// Returns `true` unless a `..` follows a name. That name may be a link, and then `..` leads to the parent of its
/// target.
fn is_straight(path: &[u8]) -> bool {
    let parts = Path::new(OsStr::from_bytes(path)).components();
    let mut parts = parts.skip_while(|part| !matches!(part, Component::Normal(_)));
    parts.all(|part| part != Component::ParentDir)
}

#[cfg(test)]
mod tests {
    use super::{super::super::mount, *};
    use std::{fs, os::unix::fs::symlink};

    #[expect(clippy::disallowed_methods, reason = "the test makes what is looked at")]
    #[test]
    fn a_submodule_worktree_must_be_in_a_root_without_links_or_protected_names() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("a")).unwrap();
        symlink("/", place.path().join("link")).unwrap();
        fs::write(place.path().join("file"), "").unwrap();
        let root = |path: &&str| FolderHandle::of(mount::open_exactly(place.path()).unwrap(), path.into());
        let ground = WritablePaths {
            roots: ["/r", "/other", "/other/in"].iter().map(root).collect(),
            places: ["/r", "/home/u", "/tmp"].map(PathBuf::from).into(),
        };
        for (path, from, is_fine) in [
            ("../../../sub", "/r/.git/modules/sub", true),
            ("../../../a/b", "/r/.git/modules/sub", true),
            // A submodule within a working tree.
            ("../../../../../tree/sub", "/r/.git/worktrees/tree/modules/sub", true),
            ("../../../../other/sub", "/r/.git/modules/sub", true),
            ("../../../../sub", "/r/.git/modules/sub", false),
            ("../../sub", "/r/.git/modules/sub", false),
            ("../../../a/../../b", "/r/.git/modules/sub", false),
            ("../../../.git", "/r/.git/modules/sub", false),
            ("../../../.CLAUDE", "/r/.git/modules/sub", false),
            ("../../../a/.cursor/b", "/r/.git/modules/sub", false),
            ("../../../.vscode", "/r/.git/modules/sub", false),
            ("../../../a/.VSCode/b", "/r/.git/modules/sub", false),
            ("../../../.config/fish", "/r/.git/modules/sub", false),
            ("../../../link", "/r/.git/modules/sub", false),
            ("../../../link/new", "/r/.git/modules/sub", false),
            ("../../../link/../a", "/r/.git/modules/sub", false),
            ("../../../file/a", "/r/.git/modules/sub", false),
            ("../../../new/deep", "/r/.git/modules/sub", true),
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
