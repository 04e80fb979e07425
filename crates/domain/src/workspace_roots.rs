//! The folders that tools may work in.

use std::path::{Component, Path, PathBuf};

/// Roots of a workspace. All paths are absolute, real (links resolved) and without `.` and `..`.
///
/// ```
/// use std::path::Path;
/// use toolstead_domain::workspace_roots::{RootPermission, WorkspaceRoots};
///
/// let roots = WorkspaceRoots {
///     write: vec!["/srv".into()],
///     read_only: vec!["/srv/vendor".into()],
///     ..WorkspaceRoots::default()
/// };
/// let (root, kind) = roots.containing(Path::new("/srv/vendor/a.rs")).unwrap();
/// assert_eq!((root, kind), (Path::new("/srv/vendor"), RootPermission::ReadOnly));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkspaceRoots {
    /// Folders that may be read and written. The first one is the base of relative paths.
    pub write: Vec<PathBuf>,
    /// Folders that may be read.
    pub read_only: Vec<PathBuf>,
    /// Paths that no tool may access, wherever they are: the data folder with the audit log and the tokens.
    pub forbidden: Vec<PathBuf>,
}

/// Rights in a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootPermission {
    /// Reading and writing.
    Write,
    /// Reading only.
    ReadOnly,
}

impl WorkspaceRoots {
    /// Returns the base folder of relative paths; `None` if there is no root.
    pub fn start(&self) -> Option<&Path> {
        self.write.first().or(self.read_only.first()).map(PathBuf::as_path)
    }

    /// Returns all roots, the writable ones first.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        self.write.iter().chain(&self.read_only).map(PathBuf::as_path)
    }

    /// Returns the innermost root that contains the path, and its rights. A read-only root inside a writable one takes
    /// precedence.
    pub fn containing(&self, path: &Path) -> Option<(&Path, RootPermission)> {
        let write = self.write.iter().map(|root| (root, RootPermission::Write));
        let read_only = self.read_only.iter().map(|root| (root, RootPermission::ReadOnly));
        let holding = write.chain(read_only).filter(|(root, _)| path.starts_with(root));
        holding.max_by_key(|(root, _)| root.components().count()).map(|(root, kind)| (root.as_path(), kind))
    }

    /// Returns the roots that lie in the roots of both, writable where both allow it. Forbidden paths of either remain
    /// forbidden.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut both = Self::default();
        for root in self.all().chain(other.all()) {
            let (Some((_, ours)), Some((_, theirs))) = (self.containing(root), other.containing(root)) else {
                continue;
            };
            let kept = match (ours, theirs) {
                (RootPermission::Write, RootPermission::Write) => &mut both.write,
                _ => &mut both.read_only,
            };
            if !kept.iter().any(|known| known == root) {
                kept.push(root.to_path_buf());
            }
        }
        both.forbidden = self.forbidden.clone();
        both.forbidden.extend(other.forbidden.iter().filter(|path| !self.forbidden.contains(path)).cloned());
        both
    }

    /// Returns `true` if no tool may access the path.
    pub fn is_forbidden(&self, path: &Path) -> bool {
        self.forbidden.iter().any(|forbidden| path.starts_with(forbidden))
    }
}

/// Returns the path made absolute from `start`, with `.` and `..` resolved without access to the disk.
pub fn lexical(start: &Path, path: &Path) -> PathBuf {
    let mut whole = if path.is_absolute() { PathBuf::from("/") } else { start.to_path_buf() };
    for component in path.components() {
        match component {
            Component::Normal(name) => whole.push(name),
            Component::ParentDir => {
                whole.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_innermost_root_decides() {
        let roots = WorkspaceRoots {
            write: vec!["/w".into(), "/w/ro/rw".into()],
            read_only: vec!["/w/ro".into()],
            forbidden: vec!["/w/data".into()],
        };
        let kind = |path: &str| roots.containing(Path::new(path)).map(|(_, kind)| kind);
        assert_eq!(kind("/w/a"), Some(RootPermission::Write));
        assert_eq!(kind("/w/ro/a"), Some(RootPermission::ReadOnly));
        assert_eq!(kind("/w/ro/rw/a"), Some(RootPermission::Write));
        assert_eq!(kind("/wx"), None);
        assert!(roots.is_forbidden(Path::new("/w/data/x")) && !roots.is_forbidden(Path::new("/w/database")));
    }

    fn any_roots() -> impl Strategy<Value = WorkspaceRoots> {
        let paths = || prop::collection::vec(any_path(), 0..3);
        (paths(), paths(), paths()).prop_map(|(write, read_only, forbidden)| WorkspaceRoots {
            write,
            read_only,
            forbidden,
        })
    }

    fn any_path() -> impl Strategy<Value = PathBuf> {
        prop::collection::vec("[ab]", 1..4).prop_map(|names| Path::new("/").join(names.join("/")))
    }

    proptest! {
        #[test]
        fn the_intersection_of_roots_applies_the_restrictions_of_both_sets(ours in any_roots(), theirs in any_roots(), path in any_path()) {
            let allows = |roots: &WorkspaceRoots| {
                roots.containing(&path).map(|(_, kind)| kind == RootPermission::Write)
            };
            // Excluded: a folder that one set lists as writable and as read-only, because its rights are ambiguous.
            let is_both = |roots: &WorkspaceRoots| roots.write.iter().any(|root| roots.read_only.contains(root));
            prop_assume!(!is_both(&ours) && !is_both(&theirs));
            let both = ours.intersection(&theirs);
            let expected = allows(&ours).zip(allows(&theirs)).map(|(ours, theirs)| ours && theirs);
            prop_assert_eq!(allows(&both), expected);
            prop_assert_eq!(both.is_forbidden(&path), ours.is_forbidden(&path) || theirs.is_forbidden(&path));
        }
    }

    #[test]
    fn dot_segments_are_resolved_without_file_system_access() {
        let check =
            |path: &str, expected: &str| assert_eq!(lexical(Path::new("/w/x"), Path::new(path)), Path::new(expected));
        check("a/./b", "/w/x/a/b");
        check("../a", "/w/a");
        check("/e/../../f", "/f");
        check("", "/w/x");
    }
}
