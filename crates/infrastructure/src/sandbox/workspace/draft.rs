//! A change of one file, from its preparation to its end.

use crate::sandbox::workspace::{
    facts::FileFacts,
    file_handle::FileHandle,
    path_error::PathError,
    resolve::{WITHOUT_LINKS, open_beneath},
    rights::{self, LostRights},
    write_target::{WriteResult, WriteTarget},
};
use rustix::{
    fs::{
        AtFlags, Mode, OFlags, RenameFlags, fchmod, fstat, fsync, linkat, mkdirat, openat, renameat, renameat_with,
        statat, unlinkat,
    },
    io::Errno,
};
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};
use uuid::Uuid;

/// Maximum number of folders that are created for one file.
const MAX_MADE_FOLDERS: usize = 32;

/// A change of one file. At first it is ready: the new content is on disk beside the file, under a temporary name. Then
/// it is put in place by exchanging the names, so that the old file has the temporary name. Finally it is either made
/// permanent, which removes the old file, or put back.
///
/// A draft that is dropped while it is ready leaves nothing behind. One that is dropped later becomes permanent. Each
/// draft holds at most one descriptor, so that many can exist at a time.
#[derive(Debug)]
pub struct FileChangeDraft<'t> {
    target: &'t WriteTarget<'t>,
    folder: TargetFolder<'t>,
    /// Temporary name beside the file: of the new file until it is put in place, then of the old file, unless that is deleted.
    name: PathBuf,
    /// Metadata of the new file. `None` for a removal.
    file: Option<FileFacts>,
    rights: LostRights,
    state: FileChangeDraftState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileChangeDraftState {
    Ready,
    /// In place. `old_is_kept` is `true` if an old file exists under the temporary name.
    InPlace {
        old_is_kept: bool,
    },
    Over,
}

/// Folder of a file that is changed, with the folders that were created for it.
#[derive(Debug)]
pub(super) struct TargetFolder<'t> {
    /// Deepest folder on the path of the file that existed before the change.
    above: BorrowedFd<'t>,
    /// Folder of the file. `None` if it is `above`.
    own: Option<OwnedFd>,
    /// Folders that were created, by their paths relative to `above`.
    made: Vec<PathBuf>,
}

impl<'t> FileChangeDraft<'t> {
    pub(super) fn with_content(
        target: &'t WriteTarget<'t>,
        folder: TargetFolder<'t>,
        content: &[u8],
        mode: Option<u32>,
    ) -> Result<Self, PathError> {
        let mut draft = Self::named(target, folder);
        // A file that other users may not read must not be readable while it is being written.
        let first_mode = if target.existing.is_some() || mode.is_some() { 0o600 } else { 0o666 };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(draft.folder.own(), &draft.name, flags, Mode::from_raw_mode(first_mode));
        let file = File::from(file.map_err(|errno| target.failed(errno))?);
        (&file).write_all(content).map_err(|error| target.failed(error))?;
        draft.fit(&file, mode).map_err(|errno| target.failed(errno))?;
        Ok(draft)
    }

    pub(super) fn without_content(target: &'t WriteTarget<'t>) -> Self {
        Self::named(target, TargetFolder { above: target.folder.as_fd(), own: None, made: Vec::new() })
    }

    fn named(target: &'t WriteTarget<'t>, folder: TargetFolder<'t>) -> Self {
        let name = other_name();
        target.note_draft(&name);
        Self { target, folder, name, file: None, rights: LostRights::default(), state: FileChangeDraftState::Ready }
    }

    /// Gives the new file the attributes of the old one, and `mode` if it is given. Syncs the file to disk, and stores
    /// its metadata.
    fn fit(&mut self, file: &File, mode: Option<u32>) -> rustix::io::Result<()> {
        let mut wanted = mode;
        if let Some(existing) = &self.target.existing {
            self.rights = rights::keep(file, existing)?;
            wanted = wanted.or_else(|| Some(self.rights.mode(existing.facts().mode)));
        }
        if let Some(mode) = wanted {
            fchmod(file, Mode::from_raw_mode(mode & 0o777))?;
        }
        fsync(file)?;
        self.file = Some(FileFacts::of(&fstat(file)?));
        Ok(())
    }

    /// Returns the permission bits of the new file, or `None` for a removal.
    pub fn mode(&self) -> Option<u32> {
        self.file.map(|facts| facts.mode)
    }

    /// Returns the number of folders that were created directly above the file.
    pub fn made_folders(&self) -> usize {
        self.folder.made.len()
    }

    /// Puts the change in place in one step: a reader sees either the old or the new file.
    ///
    /// # Errors
    /// [`PathError::Changed`] if the file has changed since the target was locked, [`PathError::OutOfTime`].
    /// The file is unchanged then.
    pub fn put_in_place(&mut self) -> Result<WriteResult, PathError> {
        let target = self.target;
        if !target.is_where_it_was(self.folder.own(), 0) {
            return Err(self.changed());
        }
        // A caller that gave up on this call must not find its change later.
        if target.stop_is_due() {
            return Err(PathError::OutOfTime { path: target.path.lexical.clone() });
        }
        let now = statat(self.folder.own(), &target.name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileFacts::of(&stat));
        let old_is_kept = match (&target.existing, now) {
            (Some(before), Ok(now)) if before.facts().identity == now.identity => self.replace(before)?,
            (None, Err(Errno::NOENT)) => self.create_target()?,
            _ => return Err(self.changed()),
        };
        self.state = FileChangeDraftState::InPlace { old_is_kept };
        Ok(WriteResult {
            created: target.existing.is_none(),
            bytes: self.file.map_or(0, |facts| facts.bytes),
            other_links: target.facts().map_or(0, |facts| facts.links.saturating_sub(1)),
            rights: self.rights,
        })
    }

    /// Makes the change permanent. The old file is removed, and the names are on disk when this returns.
    ///
    /// # Errors
    /// The error of the system if the names could not be synced to disk. The change is made in any case.
    pub fn keep(mut self) -> Result<(), io::Error> {
        self.remove_temporary_file();
        Ok(sync_folder(self.folder.own())?)
    }

    /// Undoes a change that was put in place: the old file gets its name again, or the new file is removed together
    /// with the folders that were created for it. A change that is not in place is dropped.
    ///
    /// # Errors
    /// [`PathError::Changed`] if another process changed the new file, or the old file no longer exists; or the error
    /// of the system.
    pub fn put_back(mut self) -> Result<(), PathError> {
        let target = self.target;
        let FileChangeDraftState::InPlace { old_is_kept } = self.state else { return Ok(()) };
        // In any case, the old file must not be removed now, nor at the next start if this process is killed.
        target.lock.forget_note();
        self.state = FileChangeDraftState::Over;
        if self.file.is_some() && !self.is_new_file_in_place() {
            return Err(self.changed());
        }
        let result = match (&target.existing, &self.file) {
            (Some(_), _) if !old_is_kept => return Err(self.changed()),
            (Some(_), Some(_)) => renameat(self.folder.own(), &self.name, self.folder.own(), &target.name),
            (Some(_), None) => rename_to_free(self.folder.own(), &self.name, target.name.as_ref()),
            (None, _) => unlinkat(self.folder.own(), &target.name, AtFlags::empty()),
        };
        result.map_err(|errno| target.failed(errno))?;
        // The old file is back. If a power failure undoes this, the result is the change itself.
        let _ = sync_folder(self.folder.own());
        self.folder.remove_made();
        Ok(())
    }

    fn changed(&self) -> PathError {
        PathError::Changed { path: self.target.path.lexical.clone() }
    }

    /// Replaces or removes the old file. Returns `true` if the old file has the temporary name now.
    fn replace(&mut self, before: &FileHandle) -> Result<bool, PathError> {
        let target = self.target;
        let name = Path::new(&target.name);
        let folder = self.folder.own();
        if self.file.is_none() {
            rename_to_free(folder, name, &self.name).map_err(|errno| target.failed(errno))?;
        } else {
            match renameat_with(folder, &self.name, folder, name, RenameFlags::EXCHANGE) {
                Ok(()) => {}
                // Some file systems cannot exchange names. The old file then gets a second name first, if the file
                // system supports that.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    let aside = other_name();
                    target.note_draft(&aside);
                    let has_name = linkat(folder, name, folder, &aside, AtFlags::empty()).is_ok();
                    let renamed = renameat(folder, &self.name, folder, name);
                    if let Err(errno) = renamed {
                        if has_name {
                            let _ = unlinkat(folder, &aside, AtFlags::empty());
                        }
                        return Err(target.failed(errno));
                    }
                    self.name = aside;
                    return Ok(has_name);
                }
                Err(errno) => return Err(target.failed(errno)),
            }
        }
        let old = statat(folder, &self.name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileFacts::of(&stat));
        if old.is_ok_and(|old| old.identity.is_same_content(&before.facts().identity)) {
            return Ok(true);
        }
        // Another process replaced the file between the check and the exchange. Its file is restored.
        let back = match self.file {
            Some(_) => renameat_with(folder, &self.name, folder, name, RenameFlags::EXCHANGE),
            None => rename_to_free(folder, &self.name, name),
        };
        if let Err(errno) = back {
            // The file with the temporary name belongs to another process and must not be removed.
            self.state = FileChangeDraftState::Over;
            target.lock.forget_note();
            return Err(PathError::Misplaced {
                path: target.path.lexical.clone(),
                leftover: self.name.to_string_lossy().into_owned(),
                source: errno.into(),
            });
        }
        Err(self.changed())
    }

    /// Gives the new file its name, which must not exist. Returns `false`, because there is no old file to keep.
    fn create_target(&mut self) -> Result<bool, PathError> {
        let target = self.target;
        if self.file.is_none() {
            return Err(self.changed());
        }
        match rename_to_free(self.folder.own(), &self.name, target.name.as_ref()) {
            Err(Errno::EXIST) => Err(self.changed()),
            other => other.map(|()| false).map_err(|errno| target.failed(errno)),
        }
    }

    /// Returns `true` if the file that has the target's name now is the new file, unchanged.
    fn is_new_file_in_place(&self) -> bool {
        let Some(ours) = self.file else { return false };
        let named = statat(self.folder.own(), &self.target.name, AtFlags::SYMLINK_NOFOLLOW);
        named.is_ok_and(|named| FileFacts::of(&named).identity.is_same_content(&ours.identity))
    }

    /// Removes the file with the temporary name, if there is one. Before the change is in place, removes the created
    /// folders as well. Ends the draft.
    fn remove_temporary_file(&mut self) {
        // A failure here cannot be handled any better, and its cause was reported already.
        match self.state {
            FileChangeDraftState::Ready => {
                let _ = unlinkat(self.folder.own(), &self.name, AtFlags::empty());
                self.folder.remove_made();
            }
            FileChangeDraftState::InPlace { old_is_kept: true } => {
                let _ = unlinkat(self.folder.own(), &self.name, AtFlags::empty());
            }
            FileChangeDraftState::InPlace { old_is_kept: false } | FileChangeDraftState::Over => {}
        }
        self.state = FileChangeDraftState::Over;
    }
}

impl Drop for FileChangeDraft<'_> {
    fn drop(&mut self) {
        self.remove_temporary_file();
    }
}

/// Prefix and suffix of temporary names.
const OTHER_NAME: (&str, &str) = (".toolstead-", ".tmp");

/// Returns a new temporary name.
fn other_name() -> PathBuf {
    let (start, end) = OTHER_NAME;
    format!("{start}{}{end}", Uuid::new_v4().simple()).into()
}

/// Returns `true` if this is a temporary name.
pub(super) fn is_other_name(name: &Path) -> bool {
    let (start, end) = OTHER_NAME;
    let id = name.to_str().and_then(|name| name.strip_prefix(start)?.strip_suffix(end));
    id.is_some_and(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Renames a file. Fails with `EEXIST` if the new name exists.
fn rename_to_free(folder: BorrowedFd<'_>, from: &Path, to: &Path) -> rustix::io::Result<()> {
    match renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
        // Some network file systems cannot do this in one step.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match statat(folder, to, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => renameat(folder, from, folder, to),
            Ok(_) => Err(Errno::EXIST),
            Err(errno) => Err(errno),
        },
        other => other,
    }
}

impl<'t> TargetFolder<'t> {
    /// Creates the missing folders of a target, each beneath the handle of the previous one.
    ///
    /// # Errors
    /// [`PathError::TooManyFolders`], or the error of the system. The created folders are removed then.
    pub(super) fn of(target: &'t WriteTarget<'t>) -> Result<Self, PathError> {
        if target.missing.len() > MAX_MADE_FOLDERS {
            let (path, count) = (target.path.lexical.clone(), target.missing.len());
            return Err(PathError::TooManyFolders { path, count, limit: MAX_MADE_FOLDERS });
        }
        let mut folder = Self { above: target.folder.as_fd(), own: None, made: Vec::new() };
        let mut path = PathBuf::new();
        for name in &target.missing {
            path.push(name);
            if let Err(errno) = folder.descend(name, &path) {
                folder.remove_made();
                return Err(PathError::io("make the folder for", &target.path.lexical, errno));
            }
        }
        Ok(folder)
    }

    /// Creates the subfolder `name` of the deepest folder so far, unless it exists, and opens it. `path` is its path
    /// relative to `above`.
    fn descend(&mut self, name: &OsStr, path: &Path) -> rustix::io::Result<()> {
        match mkdirat(self.own(), name, Mode::from_raw_mode(0o777)) {
            Ok(()) => {
                self.made.push(path.to_path_buf());
                sync_folder(self.own())?;
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        self.own = Some(open_beneath(self.own(), Path::new(name), flags, WITHOUT_LINKS)?);
        Ok(())
    }

    fn own(&self) -> BorrowedFd<'_> {
        self.own.as_ref().map_or(self.above, AsFd::as_fd)
    }

    /// Removes folders that were created in vain, unless they contain something.
    fn remove_made(&mut self) {
        while let Some(path) = self.made.pop() {
            if remove_folder(self.above, &path).is_err() {
                self.made.clear();
            }
        }
    }
}

/// Removes an empty folder beneath another one. No link is followed on the way.
pub(super) fn remove_folder(above: BorrowedFd<'_>, path: &Path) -> rustix::io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let parent = open_beneath(above, parent, flags, WITHOUT_LINKS)?;
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Syncs the names in a folder to disk. Succeeds without doing so if the folder cannot be read or its file system does
/// not support syncing.
fn sync_folder(folder: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat(folder, ".", flags, Mode::empty()).and_then(fsync) {
        // A folder that cannot be read cannot be synced, and some file systems do not support syncing.
        Err(Errno::ACCESS | Errno::INVAL) => Ok(()),
        other => other,
    }
}
