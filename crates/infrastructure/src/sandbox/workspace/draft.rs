//! A change of one file between its preparation and its end.

use crate::sandbox::workspace::{
    facts::FileFacts,
    found::Found,
    path_error::PathError,
    resolve::{WITHOUT_LINKS, open_beneath, proc_link},
    write::{WriteTarget, Written},
};
use rustix::{
    fs::{
        AtFlags, Gid, Mode, OFlags, RenameFlags, Uid, XattrFlags, fchmod, fchown, fsetxattr, fstat, fsync, getxattr,
        linkat, listxattr, mkdirat, openat, renameat, renameat_with, statat, unlinkat,
    },
    io::Errno,
};
use std::{
    ffi::OsString,
    fs::File,
    io::Write,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};
use uuid::Uuid;

/// Extended attributes that grant the file itself rights. A change of the content takes them away, as the kernel does.
const RIGHTS_OF_THE_CONTENT: &[u8] = b"security.capability";
/// The largest extended attribute that is kept, Linux's own limit.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;

/// As many folders are made for one file: each is held by a handle, and a process has a thousand of them.
const MAX_MADE_FOLDERS: usize = 32;

/// A folder that was made: the one above, and its name.
type Made = (OwnedFd, OsString);

/// A change of one file. First it is ready: the new content is on disk under a name of its own beside the file. Then it
/// is put in place: the names are exchanged, so that the old file bears the other name. Then it is kept, and the old
/// file goes, or it is put back.
///
/// Dropped while it is ready it leaves nothing behind; dropped later it is kept.
#[derive(Debug)]
pub struct Draft<'t> {
    target: &'t WriteTarget<'t>,
    folder: OwnedFd,
    made: Vec<Made>,
    /// The other name; free when there is nothing under it.
    name: PathBuf,
    /// The new file; `None` for a removal.
    file: Option<File>,
    bytes: u64,
    owner_changed: bool,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    /// In place; whether the old file, if there was one, is still there under the other name.
    InPlace {
        old_is_kept: bool,
    },
    Over,
}

impl<'t> Draft<'t> {
    pub(super) fn create(
        target: &'t WriteTarget<'t>,
        folder: OwnedFd,
        made: Vec<Made>,
        mode: u32,
    ) -> Result<Self, PathError> {
        let mut draft = Self::named(target, folder, made);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&draft.folder, &draft.name, flags, Mode::from_raw_mode(mode));
        draft.file = Some(file.map_err(|errno| target.failed(errno))?.into());
        Ok(draft)
    }

    pub(super) fn without_content(target: &'t WriteTarget<'t>) -> Result<Self, PathError> {
        let folder = target.folder.try_clone().map_err(|error| target.failed(error))?;
        Ok(Self::named(target, folder, Vec::new()))
    }

    fn named(target: &'t WriteTarget<'t>, folder: OwnedFd, made: Vec<Made>) -> Self {
        let name = other_name();
        target.lock.note(&name);
        Self { target, folder, made, name, file: None, bytes: 0, owner_changed: false, state: State::Ready }
    }

    pub(super) fn fill(&mut self, content: &[u8], mode: Option<u32>) -> Result<(), PathError> {
        let target = self.target;
        let Some(mut file) = self.file.as_ref() else { return Ok(()) };
        file.write_all(content).map_err(|error| target.failed(error))?;
        self.bytes = content.len() as u64;
        if let Some(existing) = &target.existing {
            self.owner_changed = !keep_owner(file, existing).map_err(|errno| target.failed(errno))?;
            keep_attributes(file, existing);
        }
        if let Some(mode) = mode {
            fchmod(file, Mode::from_raw_mode(mode & 0o777)).map_err(|errno| target.failed(errno))?;
        }
        fsync(file).map_err(|errno| target.failed(errno))
    }

    /// The permission bits of the new file; `None` for a removal.
    pub fn mode(&self) -> Option<u32> {
        let stat = fstat(self.file.as_ref()?).ok()?;
        Some(FileFacts::of(&stat).mode)
    }

    /// Does it, in one step: whoever looks sees the old or the new.
    ///
    /// # Errors
    /// [`PathError::Changed`] when the file is not any more what it was when it was taken hold of,
    /// [`PathError::OutOfTime`]. The file is as it was then.
    pub fn put_in_place(&mut self) -> Result<Written, PathError> {
        let target = self.target;
        if !target.is_where_it_was(self.folder.as_fd(), 0) {
            return Err(self.changed());
        }
        // Whoever gave up on this call must not find its change later.
        if target.stop_is_due() {
            return Err(PathError::OutOfTime { path: target.path.lexical.clone() });
        }
        let now = statat(&self.folder, &target.name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileFacts::of(&stat));
        let old_is_kept = match (&target.existing, now) {
            (Some(before), Ok(now)) if before.facts().identity == now.identity => self.replace(before)?,
            (None, Err(Errno::NOENT)) => self.appear()?,
            _ => return Err(self.changed()),
        };
        self.state = State::InPlace { old_is_kept };
        Ok(Written {
            created: target.existing.is_none(),
            bytes: self.bytes,
            other_links: target.facts().map_or(0, |facts| facts.links.saturating_sub(1)),
            owner_changed: self.owner_changed,
        })
    }

    /// Ends it for good: the old file goes, and the names are on disk when this returns.
    ///
    /// # Errors
    /// The system's; the change is made all the same.
    pub fn keep(mut self) -> Result<(), PathError> {
        self.tidy();
        sync_folder(self.folder.as_fd()).map_err(|errno| self.target.failed(errno))
    }

    /// Takes it back: the old file bears its name again.
    ///
    /// # Errors
    /// [`PathError::Changed`] when somebody else changed what was put in place, or the old file is not there any more.
    pub fn put_back(mut self) -> Result<(), PathError> {
        let target = self.target;
        let State::InPlace { old_is_kept } = self.state else { return Ok(()) };
        // Whatever happens, the old file is not to go away now.
        self.state = State::Over;
        if self.file.is_some() && !self.is_ours() {
            return Err(self.changed());
        }
        let result = match (&target.existing, &self.file) {
            (Some(_), _) if !old_is_kept => return Err(self.changed()),
            (Some(_), Some(_)) => renameat(&self.folder, &self.name, &self.folder, &target.name),
            (Some(_), None) => rename_to_free(self.folder.as_fd(), &self.name, target.name.as_ref()),
            (None, _) => unlinkat(&self.folder, &target.name, AtFlags::empty()),
        };
        result.map_err(|errno| target.failed(errno))?;
        remove_made(&self.made);
        sync_folder(self.folder.as_fd()).map_err(|errno| target.failed(errno))
    }

    fn changed(&self) -> PathError {
        PathError::Changed { path: self.target.path.lexical.clone() }
    }

    /// Puts the new file, or none, where the old one is; whether the old one bears the other name now.
    fn replace(&mut self, before: &Found) -> Result<bool, PathError> {
        let target = self.target;
        let (folder, name) = (self.folder.as_fd(), Path::new(&target.name));
        if self.file.is_none() {
            rename_to_free(folder, name, &self.name).map_err(|errno| target.failed(errno))?;
        } else {
            match renameat_with(folder, &self.name, folder, name, RenameFlags::EXCHANGE) {
                Ok(()) => {}
                // Some file systems cannot exchange names: the old file gets a second name first, if they can do that.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    let aside = other_name();
                    target.lock.note(&aside);
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
        // Somebody replaced it in the moment between the look and the exchange. Theirs comes back.
        let back = match self.file {
            Some(_) => renameat_with(folder, &self.name, folder, name, RenameFlags::EXCHANGE),
            None => rename_to_free(folder, &self.name, name),
        };
        if let Err(errno) = back {
            // What bears the other name is theirs, and not ours to remove.
            self.state = State::Over;
            target.lock.note(Path::new("-"));
            return Err(PathError::Misplaced {
                path: target.path.lexical.clone(),
                leftover: self.name.to_string_lossy().into_owned(),
                source: errno.into(),
            });
        }
        Err(self.changed())
    }

    /// Gives the new file its name, which is free.
    fn appear(&mut self) -> Result<bool, PathError> {
        let target = self.target;
        if self.file.is_none() {
            return Err(self.changed());
        }
        match rename_to_free(self.folder.as_fd(), &self.name, target.name.as_ref()) {
            Err(Errno::EXIST) => Err(self.changed()),
            other => other.map(|()| false).map_err(|errno| target.failed(errno)),
        }
    }

    /// Whether what bears the file's name is the new file.
    fn is_ours(&self) -> bool {
        let Some(ours) = self.file.as_ref().and_then(|file| fstat(file).ok()) else { return false };
        let named = statat(&self.folder, &self.target.name, AtFlags::SYMLINK_NOFOLLOW);
        named.is_ok_and(|named| FileFacts::of(&named).identity.is_same_content(&FileFacts::of(&ours).identity))
    }

    /// Removes what bears the other name.
    fn tidy(&mut self) {
        // Nothing better can be done with a failure here: the cause was told already.
        match self.state {
            State::Ready => {
                let _ = unlinkat(&self.folder, &self.name, AtFlags::empty());
                remove_made(&self.made);
            }
            State::InPlace { old_is_kept: true } => {
                let _ = unlinkat(&self.folder, &self.name, AtFlags::empty());
            }
            State::InPlace { old_is_kept: false } | State::Over => {}
        }
        self.state = State::Over;
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        self.tidy();
    }
}

/// What names of drafts begin and end with.
const OTHER_NAME: (&str, &str) = (".toolstead-", ".tmp");

/// A name that nobody else has.
fn other_name() -> PathBuf {
    let (start, end) = OTHER_NAME;
    format!("{start}{}{end}", Uuid::new_v4().simple()).into()
}

/// Whether a name is one of these.
pub(super) fn is_other_name(name: &Path) -> bool {
    let (start, end) = OTHER_NAME;
    let id = name.to_str().and_then(|name| name.strip_prefix(start)?.strip_suffix(end));
    id.is_some_and(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Renames, unless the new name is taken: `EEXIST` then.
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

/// Makes the missing folders of a target, one by one beneath the handle of the one before. The deepest of them, and
/// those that were really made.
///
/// # Errors
/// [`PathError::TooManyFolders`], and the system's; none is left then.
pub(super) fn make_folders(target: &WriteTarget<'_>) -> Result<(OwnedFd, Vec<Made>), PathError> {
    if target.missing.len() > MAX_MADE_FOLDERS {
        let (path, count) = (target.path.lexical.clone(), target.missing.len());
        return Err(PathError::TooManyFolders { path, count, limit: MAX_MADE_FOLDERS });
    }
    let mut deepest = target.folder.try_clone().map_err(|error| target.failed(error))?;
    let mut made: Vec<Made> = Vec::new();
    for name in &target.missing {
        let next = match mkdirat(&deepest, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => sync_folder(deepest.as_fd()).map(|()| true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(errno),
        };
        let next = next.and_then(|is_new| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            open_beneath(deepest.as_fd(), Path::new(name), flags, WITHOUT_LINKS).map(|handle| (is_new, handle))
        });
        match next {
            Ok((is_new, handle)) => {
                let above = std::mem::replace(&mut deepest, handle);
                if is_new {
                    made.push((above, name.clone()));
                }
            }
            Err(errno) => {
                remove_made(&made);
                return Err(PathError::io("make the folder for", &target.path.lexical, errno));
            }
        }
    }
    Ok((deepest, made))
}

/// Removes folders that were made in vain, unless somebody put something into them.
fn remove_made(made: &[Made]) {
    for (above, name) in made.iter().rev() {
        if unlinkat(above, name, AtFlags::REMOVEDIR).is_err() {
            break;
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
            let _ = fsetxattr(file, name, &value[..length], XattrFlags::empty());
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
