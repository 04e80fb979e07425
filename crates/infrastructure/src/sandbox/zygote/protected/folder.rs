//! A folder of a workspace, accessed by its handle, because an untrusted command may have chosen the names in it.

use super::super::{git_config, mount, request::ProtectedChanges};
use rustix::{
    fs::{
        AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat, StatVfsMountFlags, chmod, fchmod, fstat, fstatvfs,
        linkat, openat, renameat, renameat_with, statat, unlinkat,
    },
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fmt,
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
    thread,
    time::Duration,
};
use uuid::Uuid;

/// Maximum number of entries that are removed for one name, and their maximum depth.
const REMOVED_ENTRIES: usize = 1_000;
const REMOVED_DEPTH: usize = 64;
/// Interval between two attempts to take a lock. Git holds a lock for a moment.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum number of characters of a path in a message.
const TOLD_CHARACTERS: usize = 200;

/// A folder of a workspace. The result of [`opened`](Self::opened) gives the folder's owner all rights while it lives.
#[derive(Debug)]
pub(super) struct FolderHandle {
    handle: OwnedFd,
    pub(super) path: PathBuf,
    /// The original rights, if other ones were set.
    rights: Option<Mode>,
}

/// Identity of a file, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

/// State of a file. Any change to the file, and any new name for it, changes its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileStamp {
    identity: FileId,
    changed: (i64, i64),
    bytes: i64,
}

/// Text of a file, its rights, and the state in which it was read.
#[derive(Debug)]
pub(super) struct FileSnapshot {
    pub(super) bytes: Vec<u8>,
    pub(super) rights: Mode,
    pub(super) state: FileStamp,
}

/// New content for a name. A draft that is not finished is removed when it is dropped.
#[derive(Debug)]
pub(super) struct FileDraft<'a> {
    folder: &'a FolderHandle,
    name: &'a str,
    new: String,
    file: File,
    is_finished: bool,
    /// `true` while the draft is the lock that keeps git from writing the file.
    pub(super) is_locked: bool,
}

/// Remaining number of entries and bytes to examine, so that a command cannot make the work endless.
#[derive(Debug)]
pub(super) struct WorkBudget {
    entries: usize,
    bytes: usize,
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.device, self.inode)
    }
}

impl FileStamp {
    fn of(found: &Stat) -> Self {
        Self {
            identity: FileId { device: found.st_dev, inode: found.st_ino },
            changed: (found.st_ctime, i64::try_from(found.st_ctime_nsec).unwrap_or(-1)),
            bytes: found.st_size,
        }
    }
}

impl WorkBudget {
    /// Returns the limits for one check of a workspace: far more than ordinary ones need, and done in a fraction of a
    /// second.
    pub(super) fn new() -> Self {
        Self { entries: 20_000, bytes: 16 << 20 }
    }

    /// Returns `true` if nothing more may be examined.
    pub(super) fn is_spent(&self) -> bool {
        self.entries == 0 || self.bytes == 0
    }
}

/// Subtracts an amount from what is left. Sets that to zero and fails if it is not enough.
fn spend(left: &mut usize, amount: usize) -> io::Result<()> {
    let rest = left.checked_sub(amount);
    *left = rest.unwrap_or(0);
    rest.map(drop).ok_or_else(|| io::ErrorKind::QuotaExceeded.into())
}

impl FileDraft<'_> {
    /// Writes the text and moves the draft to its name.
    pub(super) fn finish(mut self, text: &[u8], rights: Mode) -> io::Result<()> {
        self.file.write_all(text)?;
        fchmod(&self.file, rights)?;
        renameat(&self.folder.handle, &self.new, &self.folder.handle, self.name)?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for FileDraft<'_> {
    fn drop(&mut self) {
        // Once the draft has its final name, the name of the lock may belong to another process.
        if !self.is_finished {
            let _ = unlinkat(&self.folder.handle, &self.new, AtFlags::empty());
        }
    }
}

impl FolderHandle {
    pub(super) fn of(handle: OwnedFd, path: PathBuf) -> Self {
        Self { handle, path, rights: None }
    }

    /// Gives the owner all rights to the folder, whatever a command made of them. Dropping the result restores the
    /// original rights.
    pub(super) fn opened(mut self) -> Self {
        if let Ok(found) = fstat(&self.handle) {
            let rights = Mode::from_raw_mode(found.st_mode);
            // Fails only for a folder of another user, whose rights a command cannot have changed.
            if !rights.contains(Mode::RWXU) && self.set_rights(rights | Mode::RWXU).is_ok() {
                self.rights = Some(rights);
            }
        }
        self
    }

    /// Sets the rights. A path handle does not support that directly, but a link to it in `/proc` is followed.
    fn set_rights(&self, rights: Mode) -> io::Result<()> {
        Ok(chmod(format!("/proc/self/fd/{}", self.handle.as_raw_fd()), rights)?)
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self::of(self.handle.try_clone()?, self.path.clone()))
    }

    pub(super) fn identity(&self) -> io::Result<FileId> {
        let found = fstat(&self.handle)?;
        Ok(FileId { device: found.st_dev, inode: found.st_ino })
    }

    /// Returns the type of the entry with this name, or `None` if there is none.
    pub(super) fn kind(&self, name: impl AsRef<OsStr>) -> io::Result<Option<FileType>> {
        Ok(self.found(name.as_ref())?.map(|found| FileType::from_raw_mode(found.st_mode)))
    }

    pub(super) fn identity_of(&self, name: impl AsRef<OsStr>) -> io::Result<Option<FileId>> {
        Ok(self.state_of(name)?.map(|state| state.identity))
    }

    pub(super) fn state_of(&self, name: impl AsRef<OsStr>) -> io::Result<Option<FileStamp>> {
        Ok(self.found(name.as_ref())?.as_ref().map(FileStamp::of))
    }

    fn found(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns `true` if the entry with this name is mounted read-only, so that no run can have changed it. A run
    /// cannot mount anything.
    pub(super) fn is_closed(&self, name: impl AsRef<OsStr>) -> bool {
        let found = self.handle_of(name).and_then(|place| Ok(fstatvfs(place)?));
        found.is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
    }

    /// Returns a handle to the entry with this name, which must not be a link.
    pub(super) fn handle_of(&self, name: impl AsRef<OsStr>) -> io::Result<OwnedFd> {
        mount::open_beneath(&self.handle, Path::new(name.as_ref()), OFlags::PATH)
    }

    /// Returns the subfolder with this name.
    pub(super) fn inner(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = Path::new(name.as_ref());
        let handle = mount::open_beneath(&self.handle, name, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok(Self::of(handle, self.path.join(name)))
    }

    /// Returns the names in the folder.
    ///
    /// # Errors
    /// `QuotaExceeded` if there are more than may be examined; otherwise the error of the system.
    pub(super) fn names(&self, work: &mut WorkBudget) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for entry in Dir::new(openat(&self.handle, ".", flags, Mode::empty())?)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name == b"." || name == b".." {
                continue;
            }
            spend(&mut work.entries, 1)?;
            names.push(OsString::from_vec(name));
        }
        Ok(names)
    }

    /// Returns the text of a file, or `None` if it does not exist. Fails unless it is a regular file that is not too
    /// large.
    pub(super) fn text(&self, name: &str, work: &mut WorkBudget) -> io::Result<Option<FileSnapshot>> {
        let file = match mount::open_beneath(&self.handle, Path::new(name), OFlags::RDONLY | OFlags::NONBLOCK) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let found = fstat(&file)?;
        let is_plain = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        let mut bytes = Vec::new();
        if is_plain {
            File::from(file).take(git_config::MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        }
        if !is_plain || bytes.len() > git_config::MAX_BYTES {
            return Err(io::Error::other(format!("`{name}` is not a regular file, or is too large")));
        }
        spend(&mut work.bytes, bytes.len())?;
        Ok(Some(FileSnapshot {
            bytes,
            rights: Mode::from_raw_mode(found.st_mode & 0o777),
            state: FileStamp::of(&found),
        }))
    }

    /// Begins to write a file anew, under the name that locks it for git. Waits at most for `patience` if another
    /// process has the lock, and subtracts the time; after that the text is written without the lock.
    pub(super) fn draft<'a>(&'a self, name: &'a str, patience: &mut Duration) -> io::Result<FileDraft<'a>> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut new = format!("{name}.lock");
        let mut is_locked = true;
        loop {
            match openat(&self.handle, &new, flags, Mode::from_raw_mode(0o600)) {
                Err(Errno::EXIST) if patience.is_zero() => {
                    new = format!("{name}.{}", Uuid::new_v4().simple());
                    is_locked = false;
                }
                Err(Errno::EXIST) => {
                    thread::sleep(LOCK_INTERVAL);
                    *patience = patience.saturating_sub(LOCK_INTERVAL);
                }
                file => {
                    return Ok(FileDraft {
                        folder: self,
                        name,
                        new,
                        file: file?.into(),
                        is_finished: false,
                        is_locked,
                    });
                }
            }
        }
    }

    /// Moves an entry that a command created under a protected name to a name without effect, or removes it.
    pub(super) fn set_aside(&self, name: impl AsRef<OsStr>, report: &mut ProtectedChanges) {
        let name = name.as_ref();
        let path = shown(&self.path.join(name));
        match self.rename(name) {
            Ok(aside) => report.undone(format!(
                "`{path}` is protected and was made by this command; it is now `{}`",
                shown(Path::new(&aside))
            )),
            // It is a mount that existed before the command: its content may be the user's.
            Err(reason) if reason.kind() == io::ErrorKind::ResourceBusy => report.left(format!(
                "`{path}` may contain files of this command, and could not be moved aside ({reason}): do not trust \
                 it; check it before you use git or an agent there"
            )),
            Err(reason) => match self.remove(name, REMOVED_DEPTH, &mut REMOVED_ENTRIES.clone()) {
                Ok(()) => report.undone(format!(
                    "`{path}` is protected and was made by this command; it was removed, because it could not be \
                     moved aside ({reason})"
                )),
                Err(error) => report.left(format!(
                    "`{path}` was made by this command and still exists, because it could be neither moved aside \
                     ({reason}) nor removed ({error}): do not trust it; remove it before you use git or an agent \
                     there"
                )),
            },
        }
    }

    /// Removes a link from a list of folders. With another name it would still be in the list, and disturb the next
    /// run.
    pub(super) fn remove_link(&self, name: &OsStr, report: &mut ProtectedChanges) {
        match unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) => report.undone(format!(
                "`{}` is protected and was made by this command; it was removed, because it led elsewhere",
                shown(&self.path.join(name))
            )),
            Err(_) => self.set_aside(name, report),
        }
    }

    /// Creates a second name for a file, which keeps its content when the file is replaced.
    pub(super) fn keep(&self, name: &str) -> io::Result<String> {
        let kept = format!("{name}.refused-{}", Uuid::new_v4().simple());
        linkat(&self.handle, name, &self.handle, &kept, AtFlags::empty())?;
        Ok(kept)
    }

    fn rename(&self, name: &OsStr) -> io::Result<OsString> {
        let mut aside = name.to_owned();
        aside.push(".refused");
        if renameat_with(&self.handle, name, &self.handle, &aside, RenameFlags::NOREPLACE).is_err() {
            // The name exists already or is too long, or the file system does not support the flag. A random name is
            // unused.
            let short = OsStr::from_bytes(&name.as_bytes()[..name.len().min(64)]);
            aside = short.to_owned();
            aside.push(format!(".refused-{}", Uuid::new_v4().simple()));
            renameat(&self.handle, name, &self.handle, &aside)?;
        }
        Ok(aside)
    }

    fn remove(&self, name: &OsStr, depth: usize, most: &mut usize) -> io::Result<()> {
        spend(most, 1)?;
        if self.kind(name)? != Some(FileType::Directory) {
            return Ok(unlinkat(&self.handle, name, AtFlags::empty())?);
        }
        let depth = depth.checked_sub(1).ok_or(io::ErrorKind::QuotaExceeded)?;
        let folder = self.inner(name)?.opened();
        for inner in folder.names(&mut WorkBudget { entries: *most, bytes: 0 })? {
            folder.remove(&inner, depth, most)?;
        }
        Ok(unlinkat(&self.handle, name, AtFlags::REMOVEDIR)?)
    }
}

impl Drop for FolderHandle {
    fn drop(&mut self) {
        if let Some(rights) = self.rights {
            // A command may change the rights of its own folder.
            let _ = self.set_rights(rights);
        }
    }
}

/// Returns the end of a path for a message, with control characters escaped.
pub(super) fn shown(path: &Path) -> String {
    let text: String = path.to_string_lossy().chars().flat_map(char::escape_debug).collect();
    let surplus = text.chars().count().saturating_sub(TOLD_CHARACTERS);
    if surplus == 0 { text } else { format!("…{}", text.chars().skip(surplus).collect::<String>()) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the test makes what the folder finds")]

    use super::*;
    use std::fs;

    fn folder(path: &Path) -> FolderHandle {
        FolderHandle::of(mount::open_exactly(path).unwrap(), path.to_owned())
    }

    #[test]
    fn an_entry_that_cannot_be_renamed_or_removed_is_reported_as_untrusted() {
        let mut outcome = ProtectedChanges::default();
        let own = format!("/proc/{}", std::process::id());
        folder(Path::new(&own)).set_aside("status", &mut outcome);
        assert_eq!(outcome.undone, [""; 0]);
        assert!(outcome.left[0].contains(&format!("`{own}/status`")), "{:?}", outcome.left);
        assert!(outcome.left[0].contains("do not trust it"), "{:?}", outcome.left);
    }

    #[test]
    fn removal_is_recursive_and_limited_in_depth_and_number() {
        let place = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(place.path()).unwrap();
        fs::create_dir_all(path.join("a/b/c")).unwrap();
        std::os::unix::fs::symlink("/", path.join("a/b/link")).unwrap();
        fs::set_permissions(path.join("a/b"), std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
        let top = folder(&path);
        assert!(top.remove(OsStr::new("a"), REMOVED_DEPTH, &mut 2).is_err());
        assert!(top.remove(OsStr::new("a"), 1, &mut 100).is_err());
        assert!(path.join("a").exists());
        top.remove(OsStr::new("a"), REMOVED_DEPTH, &mut 100).unwrap();
        assert!(!path.join("a").exists());
    }

    #[test]
    fn a_config_file_is_rewritten_while_holding_the_git_lock() {
        let place = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(place.path()).unwrap();
        let top = folder(&path);
        let (file, lock) = (path.join("config"), path.join("config.lock"));
        fs::write(&file, "old").unwrap();
        fs::write(&lock, "somebody's").unwrap();
        let somebody = thread::spawn({
            let (file, lock) = (file.clone(), lock.clone());
            move || fs::rename(lock, file).unwrap()
        });
        let draft = top.draft("config", &mut Duration::from_secs(60)).unwrap();
        somebody.join().unwrap();
        assert!(draft.is_locked && lock.exists());
        assert_eq!(fs::read_to_string(&file).unwrap(), "somebody's");
        // The lock stays held.
        let other = top.draft("config", &mut Duration::from_millis(1)).unwrap();
        assert!(!other.is_locked);
        draft.finish(b"first", Mode::from_raw_mode(0o640)).unwrap();
        fs::write(&lock, "").unwrap();
        other.finish(b"second", Mode::from_raw_mode(0o640)).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "second");
        assert!(lock.exists());
        drop(top.draft("other", &mut Duration::default()).unwrap());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
    }

    #[test]
    fn a_path_is_shown_on_one_line_and_truncated() {
        assert_eq!(shown(Path::new("/a/b\nc\u{1b}")), "/a/b\\nc\\u{1b}");
        assert_eq!(shown(Path::new(&"x".repeat(1000))).chars().count(), TOLD_CHARACTERS + 1);
    }
}
