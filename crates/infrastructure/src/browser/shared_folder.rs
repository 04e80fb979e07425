//! The folder that a browser shares with Toolstead, for downloads and for files that pages receive. It is removed with
//! the browser. Folders of killed processes are removed when the next browser starts.
#![expect(clippy::disallowed_methods, reason = "a folder of our own, which no tool reaches by this way")]

use rustix::fs::{AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, flock, openat, renameat, unlinkat};
use std::{
    ffi::{CStr, CString},
    fs::{self, DirBuilder, File},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{ffi::OsStrExt, fs::DirBuilderExt},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};
use tokio::task::spawn_blocking;
use uuid::Uuid;

/// Maximum size of all files that a browser receives in its lifetime, in bytes. A file cannot be removed earlier, since
/// its reading is not reported.
const MAX_GIVEN: u64 = 200 << 20;

/// Prefix of the names of the folders.
const BEGINNING: &str = "browser-";

/// A folder for one browser. Removed when it is dropped.
#[derive(Debug)]
pub(crate) struct SharedFolder {
    path: PathBuf,
    /// Total size of the files written so far, in bytes.
    given: AtomicU64,
    /// Locked while the folder is in use.
    _lock: File,
}

impl SharedFolder {
    /// Creates a folder within `parent`, which is created if it is missing, and removes folders that are no longer in
    /// use.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) async fn make(parent: PathBuf) -> io::Result<Self> {
        spawn_blocking(move || {
            DirBuilder::new().recursive(true).mode(0o700).create(&parent)?;
            let parent = parent.canonicalize()?;
            // Prevents another process from removing the new folder before it is locked.
            let held = File::open(&parent)?;
            flock(&held, FlockOperation::LockExclusive)?;
            sweep(&parent);
            let path = parent.join(format!("{BEGINNING}{}", Uuid::new_v4()));
            DirBuilder::new().mode(0o700).create(&path)?;
            let lock = File::open(&path)?;
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            Ok(Self { path, given: AtomicU64::new(0), _lock: lock })
        })
        .await
        .map_err(io::Error::other)?
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the content of a download and removes the file, also if it is too large. A compromised browser may have
    /// created any file there.
    ///
    /// # Errors
    /// Those of the system, or an error if it is not a file or is larger than `limit`.
    pub(crate) async fn take(&self, id: &str, limit: u64) -> io::Result<Vec<u8>> {
        let is_name = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_name {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the download has an invalid id"));
        }
        let path = self.path.join(id);
        spawn_blocking(move || {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(rustix::fs::open(&path, flags, Mode::empty())?);
            if !file.metadata()?.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the download is not a file"));
            }
            let mut bytes = Vec::new();
            let read = file.take(limit + 1).read_to_end(&mut bytes);
            fs::remove_file(&path)?;
            if read? as u64 > limit {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {limit} bytes")));
            }
            Ok(bytes)
        })
        .await
        .map_err(io::Error::other)?
    }

    /// Writes a file for a page, in a folder of its own, and returns its path.
    ///
    /// # Errors
    /// Those of the system, or an error if the name is invalid or the files of this browser would be too large in
    /// total.
    pub(crate) async fn put(&self, name: String, contents: Vec<u8>) -> io::Result<PathBuf> {
        if matches!(&*name, "" | "." | "..") || name.contains(['/', '\0']) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file has an invalid name"));
        }
        let before = self.given.fetch_add(contents.len() as u64, Ordering::Relaxed);
        if before.saturating_add(contents.len() as u64) > MAX_GIVEN {
            self.given.fetch_sub(contents.len() as u64, Ordering::Relaxed);
            let message =
                format!("a browser accepts at most {MAX_GIVEN} bytes of files during its lifetime; start a new one");
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
        }
        let folder = self.path.join(Uuid::new_v4().to_string());
        spawn_blocking(move || {
            DirBuilder::new().mode(0o700).create(&folder)?;
            // The browser may have replaced the folder by a link.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let held = rustix::fs::open(&folder, flags, Mode::empty())?;
            write_new(&held, &name, &contents)?;
            Ok(folder.join(name))
        })
        .await
        .map_err(io::Error::other)?
    }
}

impl Drop for SharedFolder {
    fn drop(&mut self) {
        // Anything that cannot be removed now is removed when the next folder is created.
        let _ = remove(&self.path);
    }
}

/// Creates a new file without following links.
fn write_new(folder: impl AsFd, name: &str, contents: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
    File::from(file).write_all(contents)
}

/// Removes a folder with its contents. A browser may nest folders arbitrarily deep, so inner folders are first moved to
/// the top, which needs neither recursion nor further descriptors.
fn remove(folder: &Path) -> io::Result<()> {
    let open = |within: BorrowedFd<'_>, name: &CStr| {
        openat(within, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    };
    // Removes the files of a folder, and returns the names of everything else.
    let folders_of = |held: BorrowedFd<'_>| -> io::Result<Vec<CString>> {
        let mut folders = Vec::new();
        for entry in Dir::read_from(held)? {
            let entry = entry?;
            let name = entry.file_name();
            if !matches!(name.to_bytes(), b"." | b"..") && unlinkat(held, name, AtFlags::empty()).is_err() {
                folders.push(name.to_owned());
            }
        }
        Ok(folders)
    };
    let top = open(CWD, &CString::new(folder.as_os_str().as_bytes())?)?;
    loop {
        let folders = folders_of(top.as_fd())?;
        if folders.is_empty() {
            return fs::remove_dir(folder);
        }
        for name in folders {
            let held = open(top.as_fd(), &name)?;
            for inner in folders_of(held.as_fd())? {
                renameat(&held, &inner, &top, Uuid::new_v4().to_string())?;
            }
            unlinkat(&top, &name, AtFlags::REMOVEDIR)?;
        }
    }
}

/// Removes the folders of browsers in `parent` that no process has locked. Failures are ignored.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(BEGINNING));
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if let Ok(folder) = File::open(entry.path())
            && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_place_of_a_file_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        std::os::unix::fs::symlink(&outside, folder.path().join("name")).unwrap();
        let held = File::open(folder.path()).unwrap();
        assert_eq!(write_new(&held, "name", b"x").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(!outside.exists());
        write_new(&held, "other", b"x").unwrap();
        assert_eq!(fs::read(folder.path().join("other")).unwrap(), b"x");
    }

    #[tokio::test]
    async fn a_download_is_taken_by_its_id_and_never_through_a_link() {
        let parent = tempfile::tempdir().unwrap();
        fs::write(parent.path().join("secret"), "s").unwrap();
        let shared = SharedFolder::make(parent.path().to_path_buf()).await.unwrap();
        std::os::unix::fs::symlink(parent.path().join("secret"), shared.path().join("link")).unwrap();
        fs::write(shared.path().join("file-1"), "four").unwrap();
        for id in ["link", "../secret", "", "/etc/passwd", "."] {
            assert!(shared.take(id, 100).await.is_err(), "{id}");
        }
        assert_eq!(shared.take("file-1", 4).await.unwrap(), b"four");
        fs::write(shared.path().join("file-2"), "four").unwrap();
        assert_eq!(shared.take("file-2", 3).await.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(!shared.path().join("file-2").exists());
    }

    #[tokio::test]
    async fn files_for_a_browser_require_valid_names_and_are_limited_in_total_size() {
        let parent = tempfile::tempdir().unwrap();
        let shared = SharedFolder::make(parent.path().to_path_buf()).await.unwrap();
        let name = "n".repeat(255);
        let put = shared.put(name.clone(), b"x".to_vec()).await.unwrap();
        assert_eq!((fs::read(&put).unwrap().as_slice(), put.file_name().unwrap().to_str()), (&b"x"[..], Some(&*name)));
        for name in ["..", ".", "", "a/b", "/etc/passwd", "nul\0"] {
            assert!(shared.put(name.into(), b"x".to_vec()).await.is_err(), "{name:?}");
        }
        shared.given.store(MAX_GIVEN - 3, Ordering::Relaxed);
        let refused = shared.put("four".into(), b"four".to_vec()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::QuotaExceeded);
        shared.put("three".into(), b"xxx".to_vec()).await.unwrap();
    }

    #[tokio::test]
    async fn a_folder_is_deleted_however_deeply_it_is_nested() {
        let parent = tempfile::tempdir().unwrap();
        let shared = SharedFolder::make(parent.path().to_path_buf()).await.unwrap();
        let outside = parent.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        let path = shared.path().to_path_buf();
        std::os::unix::fs::symlink(&outside, path.join("link")).unwrap();
        let mut held = rustix::fs::open(&path, OFlags::DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..25_000 {
            rustix::fs::mkdirat(&held, "d", Mode::RWXU).unwrap();
            held = openat(&held, "d", OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        write_new(&held, "deepest", b"x").unwrap();
        drop((held, shared));
        assert!(!path.exists() && outside.join("kept").exists());
    }

    #[tokio::test]
    async fn dropping_a_folder_deletes_it_and_creating_one_deletes_leftovers() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("browser-left");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("file"), "x").unwrap();
        fs::create_dir(parent.path().join("other")).unwrap();
        let first = SharedFolder::make(parent.path().join("new")).await.unwrap();
        let second = SharedFolder::make(parent.path().to_path_buf()).await.unwrap();
        let third = SharedFolder::make(parent.path().to_path_buf()).await.unwrap();
        assert!(!left.exists() && second.path().exists() && third.path().exists());
        let gone = first.path().to_path_buf();
        drop(first);
        assert!(!gone.exists() && parent.path().join("other").exists());
    }
}
