//! The folders that confined programs write into, and the paths that they have a say in by that.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::ErrorKind,
    path::{Component, Path, PathBuf},
};

/// As many links are followed; the kernel follows no more either.
const MAX_LINKS: usize = 40;

/// Roots that runs write into.
#[derive(Debug, Clone, Default)]
pub(crate) struct WritableRoots(Vec<PathBuf>);

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Way {
    /// What stands there; no part of it is a link.
    pub(crate) real: PathBuf,
    /// Whether runs choose where it leads: the way passes through, or ends at, what they write into.
    pub(crate) is_theirs: bool,
}

impl WritableRoots {
    pub(crate) fn new(roots: &[PathBuf]) -> Self {
        Self(roots.iter().map(|root| fs::canonicalize(root).unwrap_or_else(|_| root.clone())).collect())
    }

    /// Whether runs can change what stands at a real path.
    pub(crate) fn hold(&self, real: &Path) -> bool {
        self.0.iter().any(|root| real.starts_with(root))
    }

    /// Follows an absolute path link by link. `None`: it leads nowhere.
    pub(crate) fn way(&self, path: &Path) -> Option<Way> {
        let mut way = Way { real: "/".into(), is_theirs: false };
        let (mut rest, mut links) = (Vec::new(), 0);
        push_parts(&mut rest, path);
        while let Some(part) = rest.pop() {
            if part == OsStr::new("..") {
                way.real.pop();
                continue;
            }
            // What is absolute starts anew.
            way.real.push(part);
            way.is_theirs |= self.hold(&way.real);
            match fs::read_link(&way.real) {
                Ok(target) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return None;
                    }
                    way.real.pop();
                    push_parts(&mut rest, &target);
                }
                // It is there, and no link.
                Err(error) if error.kind() == ErrorKind::InvalidInput => {}
                Err(_) => return None,
            }
        }
        way.real.is_absolute().then_some(way)
    }

    /// The real path, where no run has a say in where it leads.
    pub(crate) fn outside(&self, path: &Path) -> Option<PathBuf> {
        self.way(path).filter(|way| !way.is_theirs).map(|way| way.real)
    }
}

/// Puts the parts of a path on a stack, the first on top.
fn push_parts(stack: &mut Vec<OsString>, path: &Path) {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    stack.extend(parts.rev().map(|part| part.as_os_str().to_owned()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn who_writes_into_a_folder_on_the_way_chooses_where_it_leads() {
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
            let expected = expected.map(|(real, is_theirs)| Way { real: top.join(real), is_theirs });
            assert_eq!(roots.way(&top.join(path)), expected, "{path}");
        }
        assert_eq!(roots.outside(&top.join("home/link")), Some(top.join("elsewhere/bin")));
        assert_eq!(roots.outside(&top.join("root/out")), None);
    }
}
