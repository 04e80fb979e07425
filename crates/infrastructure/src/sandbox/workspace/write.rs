//! Writes a file in one step: whoever reads it sees the old content or the new one, also after a crash.

use crate::sandbox::workspace::{
    facts::{FileFacts, FileKind},
    found::Found,
    granted::GrantedWorkspace,
    lock::PathLock,
    path_error::PathError,
    resolve::{Resolved, WITHOUT_LINKS, open_beneath, proc_link, real_path},
};
use rustix::{
    fs::{
        self, AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, Uid, XattrFlags, accessat, fchmod, fchown, fstat, fsync,
        getxattr, listxattr, mkdirat, openat, renameat, renameat_with, statat, unlinkat,
    },
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::Write,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};
use toolstead_domain::access::{Access, PathAccess};
use uuid::Uuid;

/// Extended attributes that grant the file itself rights. A change of the content takes them away, as the kernel does.
const RIGHTS_OF_THE_CONTENT: &[u8] = b"security.capability";
/// The largest extended attribute that is kept, Linux's own limit.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;

/// A place to write to, held by the handle of its folder. No other call of this process writes there meanwhile.
#[derive(Debug)]
pub struct WriteTarget<'a> {
    granted: &'a GrantedWorkspace,
    path: PathAccess,
    /// The deepest folder on the way that exists.
    folder: OwnedFd,
    /// The folders that are missing below it.
    missing: Vec<OsString>,
    name: OsString,
    existing: Option<Found>,
    _lock: PathLock<'a>,
}

/// How to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether to make the folders that are missing.
    pub create_folders: bool,
    /// Whether a file that is there may be replaced.
    pub overwrite: bool,
    /// The permission bits; without them a file keeps its own, and a new one gets what the process's mask leaves.
    pub mode: Option<u32>,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Whether there was no file before.
    pub created: bool,
    /// The size, in bytes.
    pub bytes: u64,
    /// How many other names (hard links) the replaced file had. They keep the old content.
    pub other_links: u64,
    /// Whether the file belonged to somebody else before, and could not be given back.
    pub owner_changed: bool,
}

impl<'a> WriteTarget<'a> {
    /// Takes hold of the place; `None` when something on the way changed while it was looked at.
    pub(super) fn take(granted: &'a GrantedWorkspace, lexical: &Path) -> Result<Option<Self>, PathError> {
        let workspace = &*granted.workspace;
        let real = match workspace.resolve(lexical)? {
            Resolved::Inside(real) => real,
            Resolved::Outside(real) => return Err(workspace.outside(lexical, real)),
        };
        let path = PathAccess { lexical: lexical.to_path_buf(), real, tree: false };
        granted.permitted(Access::WritePath(path.clone()))?;
        let busy = || PathError::Busy { path: lexical.to_path_buf() };
        let lock = workspace.locks.lock(&path.real, granted.stop()).ok_or_else(busy)?;

        let Some(root) = workspace.root_of(&path.real) else { return Ok(None) };
        let rest = root.rest(&path.real);
        let (Some(name), Some(parent)) = (rest.file_name(), rest.parent()) else {
            return Err(PathError::NotAFile { path: path.lexical, kind: FileKind::Folder });
        };
        let (folder, missing) = match deepest_folder(root.handle.as_fd(), parent) {
            Ok(found) => found,
            // Something on the way became a link.
            Err(Errno::LOOP | Errno::XDEV) => return Ok(None),
            Err(Errno::NOTDIR) => {
                let folder = path.lexical.parent().unwrap_or(lexical).to_path_buf();
                return Err(PathError::NotAFolder { path: folder, kind: FileKind::File });
            }
            Err(errno) => return Err(PathError::io("write", lexical, errno)),
        };
        let (name, missing) = (name.to_owned(), missing.into_iter().map(OsStr::to_owned).collect());
        let mut target = Self { granted, path, folder, missing, name, existing: None, _lock: lock };
        if !target.is_where_it_was(target.folder.as_fd(), target.missing.len()) {
            return Ok(None);
        }
        if target.missing.is_empty() {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(&target.folder, &target.name, flags, Mode::empty()) {
                Ok(handle) => match Found::of(target.path.clone(), handle)? {
                    Some(found) => target.existing = Some(found),
                    None => return Ok(None),
                },
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(PathError::io("write", lexical, errno)),
            }
        }
        match &target.existing {
            Some(found) if found.facts().kind == FileKind::Link => Ok(None),
            Some(found) => found.expect_file().map(|()| Some(target)),
            None => Ok(Some(target)),
        }
    }

    /// Both forms of its path.
    pub fn path(&self) -> &PathAccess {
        &self.path
    }

    /// Whether a file is there.
    pub fn exists(&self) -> bool {
        self.existing.is_some()
    }

    /// The content of the file that is there; `None` if there is none.
    ///
    /// # Errors
    /// [`PathError::Refused`] when the call may not read there, [`PathError::TooLarge`].
    pub fn read(&self, limit: u64) -> Result<Option<Vec<u8>>, PathError> {
        let Some(existing) = &self.existing else { return Ok(None) };
        self.granted.permitted(Access::ReadPath(self.path.clone()))?;
        existing.read(limit).map(Some)
    }

    /// Writes the content: into a new file beside the old one, which then takes its name. It is on disk when this
    /// returns. The permission bits stay (without set-user-id and its like), as do owner and extended attributes where
    /// the system lets them.
    ///
    /// # Errors
    /// [`PathError::Changed`] when the file is not any more what it was when it was taken hold of,
    /// [`PathError::Exists`], [`PathError::FolderMissing`], [`PathError::WriteProtected`], [`PathError::OutOfTime`].
    /// Nothing changed then, save that folders may have been made.
    pub fn write(self, content: &[u8], options: WriteOptions) -> Result<Written, PathError> {
        let failed = |errno: Errno| PathError::io("write", &self.path.lexical, errno);
        if let Some(existing) = &self.existing {
            if !options.overwrite {
                return Err(PathError::Exists { path: self.path.lexical.clone() });
            }
            let writable = accessat(CWD, proc_link(existing.handle()), fs::Access::WRITE_OK, AtFlags::EACCESS);
            if matches!(writable, Err(Errno::ACCESS | Errno::PERM | Errno::ROFS)) {
                return Err(PathError::WriteProtected { path: self.path.lexical.clone() });
            }
        }
        let made = self.make_folders(options.create_folders)?;
        let folder = made.as_ref().map_or(self.folder.as_fd(), AsFd::as_fd);

        // Nobody else is to read a file that others may not read, not even while it is being written.
        let first_mode = if self.existing.is_some() || options.mode.is_some() { 0o600 } else { 0o666 };
        let mut draft = Draft::create(folder, first_mode).map_err(failed)?;
        draft.file.write_all(content).map_err(|error| PathError::io("write", &self.path.lexical, error))?;
        let mut owner_changed = false;
        if let Some(existing) = &self.existing {
            owner_changed = !keep_owner(&draft.file, existing).map_err(failed)?;
            keep_attributes(&draft.file, existing);
        }
        if let Some(mode) = options.mode.or(self.existing.as_ref().map(|existing| existing.facts().mode)) {
            fchmod(&draft.file, Mode::from_raw_mode(mode & 0o777)).map_err(failed)?;
        }
        fsync(&draft.file).map_err(failed)?;

        if !self.is_where_it_was(folder, 0) {
            return Err(PathError::Changed { path: self.path.lexical.clone() });
        }
        // Whoever gave up on this call must not find its change later.
        if self.granted.stop().is_due() {
            return Err(PathError::OutOfTime { path: self.path.lexical.clone() });
        }
        self.put_in_place(&mut draft)?;
        sync_folder(folder).map_err(failed)?;
        Ok(Written {
            created: self.existing.is_none(),
            bytes: content.len() as u64,
            other_links: self.existing.as_ref().map_or(0, |existing| existing.facts().links.saturating_sub(1)),
            owner_changed,
        })
    }

    /// Whether the folder, `above` levels over the file's own, is still where the rules were asked about.
    fn is_where_it_was(&self, folder: BorrowedFd<'_>, above: usize) -> bool {
        let expected = self.path.real.ancestors().nth(above + 1);
        real_path(folder).is_ok_and(|real| expected == Some(&*real))
    }

    /// Makes the missing folders, one by one beneath the handle of the one before.
    fn make_folders(&self, allowed: bool) -> Result<Option<OwnedFd>, PathError> {
        if !self.missing.is_empty() && !allowed {
            let folder = self.path.lexical.parent().unwrap_or(&self.path.lexical).to_path_buf();
            return Err(PathError::FolderMissing { folder });
        }
        let mut deepest: Option<OwnedFd> = None;
        for name in &self.missing {
            let above = deepest.as_ref().map_or(self.folder.as_fd(), AsFd::as_fd);
            let made = mkdirat(above, name, Mode::from_raw_mode(0o777)).or_else(|errno| match errno {
                Errno::EXIST => Ok(()),
                errno => Err(errno),
            });
            let next = made.and_then(|()| sync_folder(above)).and_then(|()| {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
                open_beneath(above, Path::new(name), flags, WITHOUT_LINKS)
            });
            let failed = |errno| PathError::io("make the folder for", &self.path.lexical, errno);
            deepest = Some(next.map_err(failed)?);
        }
        Ok(deepest)
    }

    /// Gives the draft the name, if the name still is what it was.
    fn put_in_place(&self, draft: &mut Draft<'_>) -> Result<(), PathError> {
        let changed = || PathError::Changed { path: self.path.lexical.clone() };
        let now = statat(draft.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileFacts::of(&stat));
        let renamed = match (&self.existing, now) {
            (Some(before), Ok(now)) if before.facts().identity == now.identity => {
                renameat(draft.folder, &draft.name, draft.folder, &self.name)
            }
            (None, Err(Errno::NOENT)) => {
                let only_new = RenameFlags::NOREPLACE;
                match renameat_with(draft.folder, &draft.name, draft.folder, &self.name, only_new) {
                    Err(Errno::EXIST) => return Err(changed()),
                    // Some network file systems cannot do this in one step; it was looked at a moment ago.
                    Err(Errno::INVAL | Errno::NOSYS) => renameat(draft.folder, &draft.name, draft.folder, &self.name),
                    other => other,
                }
            }
            _ => return Err(changed()),
        };
        renamed.map_err(|errno| PathError::io("write", &self.path.lexical, errno))?;
        draft.in_place = true;
        Ok(())
    }
}

/// The deepest folder on the way that exists, and the names of those that do not.
fn deepest_folder<'p>(root: BorrowedFd<'_>, path: &'p Path) -> rustix::io::Result<(OwnedFd, Vec<&'p OsStr>)> {
    let mut missing = Vec::new();
    for folder in path.ancestors() {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        match (open_beneath(root, folder, flags, WITHOUT_LINKS), folder.file_name()) {
            (Err(Errno::NOENT), Some(name)) => missing.insert(0, name),
            (other, _) => return other.map(|handle| (handle, missing)),
        }
    }
    Err(Errno::NOENT)
}

/// A new file beside the one that it is to replace; gone when it is dropped before it got its name.
#[derive(Debug)]
struct Draft<'a> {
    folder: BorrowedFd<'a>,
    name: PathBuf,
    file: File,
    in_place: bool,
}

impl<'a> Draft<'a> {
    fn create(folder: BorrowedFd<'a>, mode: u32) -> rustix::io::Result<Self> {
        let name = PathBuf::from(format!(".toolstead-{}.tmp", Uuid::new_v4().simple()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(folder, &name, flags, Mode::from_raw_mode(mode))?.into();
        Ok(Self { folder, name, file, in_place: false })
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.in_place {
            // Nothing better can be done with a failure here: the cause was told already.
            let _ = unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// Gives the file to the owner of the one it replaces; false if the system does not let us.
fn keep_owner(file: &File, existing: &Found) -> rustix::io::Result<bool> {
    let (ours, theirs) = (fstat(file)?, fstat(existing.handle())?);
    if (ours.st_uid, ours.st_gid) == (theirs.st_uid, theirs.st_gid) {
        return Ok(true);
    }
    let group = Some(Gid::from_raw(theirs.st_gid));
    if fchown(file, Some(Uid::from_raw(theirs.st_uid)), group).is_ok() {
        return Ok(true);
    }
    Ok(fchown(file, None, group).is_ok() && ours.st_uid == theirs.st_uid)
}

/// Copies extended attributes, access lists among them, as far as the system lets us.
fn keep_attributes(file: &File, existing: &Found) {
    let source = proc_link(existing.handle());
    let mut names = vec![0; MAX_ATTRIBUTE_BYTES];
    let Ok(length) = listxattr(&source, &mut names) else { return };
    let mut value = vec![0; MAX_ATTRIBUTE_BYTES];
    for name in names[..length].split(|byte| *byte == 0) {
        if name.is_empty() || name == RIGHTS_OF_THE_CONTENT {
            continue;
        }
        if let Ok(length) = getxattr(&source, name, &mut value) {
            // Some belong to the system alone; the file is as good without.
            let _ = fs::fsetxattr(file, name, &value[..length], XattrFlags::empty());
        }
    }
}

/// Makes sure that the names in a folder are on disk.
fn sync_folder(folder: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat(folder, ".", flags, Mode::empty()).and_then(fsync) {
        // A folder that we may not read cannot be synced, and some file systems know no such thing.
        Err(Errno::ACCESS | Errno::INVAL) => Ok(()),
        other => other,
    }
}
