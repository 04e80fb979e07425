//! Cache of the links in `PATH` folders and of the first lines of scripts, valid while the file system reports no
//! change.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, Metadata},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

/// Maximum number of folders whose links are cached, and of scripts whose interpreter is cached. When one of the two is
/// full, all its entries are removed.
const MAX_REMEMBERED: usize = 1_000;
/// Minimum age of the last change of a file or folder before its content is cached. A second change within the
/// resolution of the file system's clock would not be noticed.
const MOMENT: Duration = Duration::from_secs(3);

/// Cache that all runs of a process share.
#[derive(Debug)]
pub(in crate::sandbox) struct LinkAndInterpreterCache {
    links: Mutex<CacheEntries<Arc<[Link]>>>,
    interpreters: Mutex<CacheEntries<Option<PathBuf>>>,
}

/// A symbolic link in a folder, and its target.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) name: OsString,
    pub(super) end: PathBuf,
}

type CacheEntries<T> = BTreeMap<PathBuf, (FileStamp, T)>;

/// State of a file or folder, by which a change is noticed. Any change to it, or to the names in it, sets another
/// change time (ctime), which a process cannot choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
    bytes: u64,
}

impl LinkAndInterpreterCache {
    pub(in crate::sandbox) const fn new() -> Self {
        Self { links: Mutex::new(BTreeMap::new()), interpreters: Mutex::new(BTreeMap::new()) }
    }

    /// Returns the links in a folder from the cache. Calls `read` if the folder is not cached or has changed.
    pub(super) fn links(&self, folder: &Path, read: impl FnOnce() -> Vec<Link>) -> Arc<[Link]> {
        match fs::metadata(folder) {
            Ok(found) => get_or_read(&self.links, folder, &found, || read().into()),
            Err(_) => read().into(),
        }
    }

    /// Returns the interpreter of a script from the cache. Calls `read` if the script is not cached or has changed
    /// according to `found`, its metadata.
    pub(super) fn interpreter(
        &self,
        script: &Path,
        found: &Metadata,
        read: impl FnOnce() -> Option<PathBuf>,
    ) -> Option<PathBuf> {
        get_or_read(&self.interpreters, script, found, read)
    }
}

fn get_or_read<T: Clone>(known: &Mutex<CacheEntries<T>>, path: &Path, found: &Metadata, read: impl FnOnce() -> T) -> T {
    let state = FileStamp::of(found);
    if let Some((known, value)) = lock(known).get(path)
        && *known == state
    {
        return value.clone();
    }
    let is_settled = state.is_settled(SystemTime::now());
    let value = read();
    let mut known = lock(known);
    if is_settled {
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(path.to_owned(), (state, value.clone()));
    } else {
        known.remove(path);
    }
    value
}

fn lock<T>(known: &Mutex<T>) -> MutexGuard<'_, T> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileStamp {
    fn of(found: &Metadata) -> Self {
        let changed = (found.ctime(), found.ctime_nsec());
        Self { device: found.dev(), inode: found.ino(), changed, bytes: found.len() }
    }

    /// Returns `true` if the next change to the file will have another time.
    fn is_settled(&self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(self.changed.0).is_ok_and(|changed| Duration::from_secs(changed) + MOMENT < now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, os::unix::fs::symlink};

    #[test]
    fn unchanged_folders_are_read_once_and_recently_changed_folders_each_time() {
        let folder = tempfile::tempdir().unwrap();
        // A folder without recent changes.
        let old = Path::new("/usr/bin");
        for (path, times) in [(old, 1), (folder.path(), 3)] {
            let (remembered, reads) = (LinkAndInterpreterCache::new(), Cell::new(0));
            for _ in 0..3 {
                let read = || {
                    reads.set(reads.get() + 1);
                    vec![Link { name: "a".into(), end: "b".into() }]
                };
                assert_eq!(remembered.links(path, read)[0].end, Path::new("b"));
            }
            assert_eq!(reads.get(), times, "{}", path.display());
        }
        assert!(!FileStamp::of(&fs::metadata(folder.path()).unwrap()).is_settled(SystemTime::now()));
    }

    #[test]
    fn a_changed_folder_invalidates_its_cache_entry() {
        let folder = tempfile::tempdir().unwrap();
        let found = || fs::metadata(folder.path()).unwrap();
        let known = Mutex::new(BTreeMap::from([(folder.path().to_owned(), (FileStamp::of(&found()), "old"))]));
        let recall = |found: &Metadata| get_or_read(&known, folder.path(), found, || "new");
        assert_eq!(recall(&found()), "old");
        symlink("x", folder.path().join("link")).unwrap();
        assert_eq!(recall(&found()), "new");
        // The file changed a moment ago, and is read each time.
        assert!(known.lock().unwrap().is_empty());
    }
}
