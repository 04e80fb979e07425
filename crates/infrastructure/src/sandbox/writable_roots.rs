//! Folders that confined programs write to, and paths whose targets they can influence by that.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs,
    io::{self, ErrorKind},
    path::{Component, Path, PathBuf},
};

/// Maximum number of links that are followed, which is also the limit of the kernel.
const MAX_LINKS: usize = 40;

/// Roots that runs write to.
#[derive(Debug, Clone, Default)]
pub struct WritableRoots(Vec<PathBuf>);

/// Target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedPath {
    /// Real path. No part of it is a link.
    pub(crate) real: PathBuf,
    /// `true` if runs can influence the target: the path passes through, or ends in, a folder that they write to.
    pub(crate) is_run_controlled: bool,
}

/// Cache of the kinds of paths during one examination of the file system, because many paths share their first
/// components.
#[derive(Debug, Default)]
pub(crate) struct PathKindCache(HashMap<OsString, PathLinkState>);

/// Kind of the entry at a path.
#[derive(Debug)]
enum PathLinkState {
    Link(PathBuf),
    NoLink,
    Nothing,
    /// The system denied the lookup.
    Closed,
}

/// Reason why a path has no target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResolveFailure {
    /// There is no entry at the path.
    Missing,
    /// The target is unknown, or the links form a loop.
    Unclear,
}

impl WritableRoots {
    pub(crate) fn new(roots: &[PathBuf]) -> Self {
        Self(roots.iter().map(|root| fs::canonicalize(root).unwrap_or_else(|_| root.clone())).collect())
    }

    /// Returns `true` if runs can change the file at a real path.
    pub(crate) fn hold(&self, real: &Path) -> bool {
        self.0.iter().any(|root| real.starts_with(root))
    }

    /// Follows an absolute path link by link. Returns `None` if it has no target.
    pub(crate) fn resolve(&self, path: &Path) -> Option<ResolvedPath> {
        self.resolve_with_links(&mut PathKindCache::default(), path)
    }

    /// Follows an absolute path, using links that are known already.
    pub(crate) fn resolve_with_links(&self, found: &mut PathKindCache, path: &Path) -> Option<ResolvedPath> {
        self.follow_links(found, path).ok()
    }

    fn follow_links(&self, found: &mut PathKindCache, path: &Path) -> Result<ResolvedPath, ResolveFailure> {
        let mut way =
            ResolvedPath { real: PathBuf::with_capacity(path.as_os_str().len().max(64)), is_run_controlled: false };
        way.real.push("/");
        let (mut rest, mut links) = (Vec::new(), 0);
        push_parts(&mut rest, path);
        while let Some(part) = rest.pop() {
            if part == OsStr::new("..") {
                way.is_run_controlled |= self.hold(&way.real);
                way.real.pop();
                continue;
            }
            // Pushing an absolute part replaces the path.
            way.real.push(part);
            match found.at(&way.real) {
                PathLinkState::Link(target) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(ResolveFailure::Unclear);
                    }
                    way.is_run_controlled |= self.hold(&way.real);
                    way.real.pop();
                    push_parts(&mut rest, target);
                }
                PathLinkState::NoLink => {}
                PathLinkState::Nothing => return Err(ResolveFailure::Missing),
                PathLinkState::Closed => return Err(ResolveFailure::Unclear),
            }
        }
        // A root contains everything in its folders, so it is sufficient to check the path at links, at `..` and at the
        // end.
        way.is_run_controlled |= self.hold(&way.real);
        if way.real.is_absolute() { Ok(way) } else { Err(ResolveFailure::Unclear) }
    }

    /// Returns the real path if no run can influence it, using links that are known already.
    pub(crate) fn resolve_outside(&self, found: &mut PathKindCache, path: &Path) -> Option<PathBuf> {
        self.resolve_with_links(found, path).filter(|way| !way.is_run_controlled).map(|way| way.real)
    }
}

impl PathKindCache {
    /// Returns the real path, even if runs can influence it.
    ///
    /// # Errors
    /// `NotFound` if the path has no target; otherwise the error of the system.
    pub(crate) fn real(&mut self, path: &Path) -> io::Result<PathBuf> {
        // A relative path is resolved by the system.
        let lost = match path.is_absolute().then(|| WritableRoots::default().follow_links(self, path)) {
            Some(Ok(way)) => return Ok(way.real),
            Some(Err(lost)) => lost,
            None => ResolveFailure::Unclear,
        };
        match lost {
            ResolveFailure::Missing => Err(ErrorKind::NotFound.into()),
            ResolveFailure::Unclear => fs::canonicalize(path),
        }
    }

    fn at(&mut self, path: &Path) -> &PathLinkState {
        let text = path.as_os_str();
        if !self.0.contains_key(text) {
            let found = match fs::read_link(path) {
                Ok(target) => PathLinkState::Link(target),
                // The entry exists and is not a link.
                Err(error) if error.kind() == ErrorKind::InvalidInput => PathLinkState::NoLink,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    PathLinkState::Nothing
                }
                Err(_) => PathLinkState::Closed,
            };
            self.0.insert(text.to_owned(), found);
        }
        self.0.get(text).unwrap_or(&PathLinkState::Nothing)
    }
}

/// Pushes the components of a path to a stack, the first on top.
fn push_parts(stack: &mut Vec<OsString>, path: &Path) {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    stack.extend(parts.rev().map(|part| part.as_os_str().to_owned()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_path_resolved_through_a_writable_root_counts_as_controlled_by_runs() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        for name in ["root/inner", "home/bin", "elsewhere/bin"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        for (link, target) in [
            ("root/out", "../home/bin"),
            ("root/in", "inner"),
            ("home/link", "../elsewhere/bin"),
            ("home/over", "../root/out"),
            ("alias", "root"),
            ("loop", "loop"),
            ("dangling", "nowhere"),
        ] {
            symlink(target, top.join(link)).unwrap();
        }
        symlink(top.join("root/out"), top.join("home/absolute")).unwrap();
        let roots = WritableRoots::new(&[top.join("alias")]);
        for (path, expected) in [
            ("home/bin", Some(("home/bin", false))),
            ("home/link", Some(("elsewhere/bin", false))),
            ("home/../home/./bin", Some(("home/bin", false))),
            ("root/inner", Some(("root/inner", true))),
            ("alias/in", Some(("root/inner", true))),
            ("root/out", Some(("home/bin", true))),
            ("home/over", Some(("home/bin", true))),
            ("home/absolute", Some(("home/bin", true))),
            ("root/../home/bin", Some(("home/bin", true))),
            ("loop", None),
            ("dangling", None),
            ("missing/bin", None),
        ] {
            let expected =
                expected.map(|(real, is_theirs)| ResolvedPath { real: top.join(real), is_run_controlled: is_theirs });
            assert_eq!(roots.resolve(&top.join(path)), expected, "{path}");
        }
        assert_eq!(
            roots.resolve_outside(&mut PathKindCache::default(), &top.join("home/link")),
            Some(top.join("elsewhere/bin"))
        );
        assert_eq!(roots.resolve_outside(&mut PathKindCache::default(), &top.join("root/out")), None);
    }

    #[test]
    fn a_path_cache_resolves_each_link_once() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        symlink("first", top.join("link")).unwrap();
        fs::create_dir_all(top.join("first/bin")).unwrap();
        fs::create_dir_all(top.join("second/bin")).unwrap();
        let (roots, mut found) = (WritableRoots::default(), PathKindCache::default());
        let real = |found: &mut PathKindCache, path: &str| {
            roots.resolve_with_links(found, &top.join(path)).map(|way| way.real)
        };
        assert_eq!(real(&mut found, "link"), Some(top.join("first")));
        fs::remove_file(top.join("link")).unwrap();
        symlink("second", top.join("link")).unwrap();
        assert_eq!(real(&mut found, "link/bin"), Some(top.join("first/bin")));
        assert_eq!(real(&mut PathKindCache::default(), "link/bin"), Some(top.join("second/bin")));
    }

    #[test]
    fn cached_path_resolution_agrees_with_canonicalize() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(top.join("folder/inner")).unwrap();
        fs::write(top.join("file"), "").unwrap();
        for (link, target) in [("link", "folder"), ("dangling", "nothing"), ("loop", "loop"), ("up", "folder/../file")]
        {
            symlink(target, top.join(link)).unwrap();
        }
        let mut found = PathKindCache::default();
        for path in
            ["", "file", "link/inner", "folder/./inner/..", "up", "dangling", "nothing", "file/x", "loop", "loop/x"]
        {
            let path = top.join(path);
            let gone = |error: io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
            let expected = fs::canonicalize(&path).map_err(gone);
            assert_eq!(found.real(&path).map_err(gone), expected, "{}", path.display());
        }
    }
}
