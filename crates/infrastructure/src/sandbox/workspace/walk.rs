//! Walks a folder by handles, bounded in entries, depth and time.

use crate::sandbox::workspace::{
    facts::{FileFacts, FileKind},
    found::Found,
    granted::GrantedWorkspace,
    path_error::PathError,
    resolve::{WITHOUT_LINKS, open_beneath, real_path},
};
use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, fstat, openat, readlinkat, statat},
    io::Errno,
};
use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
};
use toolstead_domain::access::{Access, PathAccess};

/// How far a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkLimits {
    /// As many entries are met, those that are passed over included.
    pub entries: usize,
    /// How deep: 1 is the folder's own entries.
    pub depth: usize,
}

/// Sees what a walk meets.
pub trait Visitor {
    /// What belongs to one folder and is handed on to the folders in it.
    type Context: Clone;

    /// A folder is about to be read; `above` is the context of the folder that holds it.
    fn enter(&mut self, folder: &Folder<'_>, above: &Self::Context) -> Self::Context {
        let _ = folder;
        above.clone()
    }

    /// An entry of a folder, which the call may read. Entries of one folder come sorted by name.
    fn meet(&mut self, entry: &Entry<'_>, context: &Self::Context) -> Visit;
}

/// How to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    /// Go on, into the entry if it is a folder.
    Continue,
    /// Go on, not into it.
    Skip,
    /// The walk is over.
    Stop,
}

/// What a walk came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Walked {
    /// Entries that were seen.
    pub entries: usize,
    /// Entries that were passed over because no rule permits reading them.
    pub refused: usize,
    /// Folders that could not be read.
    pub unreadable: usize,
    /// Why it ended before it was through.
    pub ended: Option<WalkEnd>,
}

/// Why a walk ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkEnd {
    /// The limit of entries was reached.
    Entries,
    /// The time was over.
    Time,
    /// The visitor had enough.
    Visitor,
}

/// A folder on a walk.
#[derive(Debug)]
pub struct Folder<'a> {
    granted: &'a GrantedWorkspace,
    path: &'a PathAccess,
    handle: BorrowedFd<'a>,
}

/// Something in a folder on a walk.
#[derive(Debug)]
pub struct Entry<'a> {
    name: &'a OsStr,
    below: &'a Path,
    path: &'a PathAccess,
    kind: FileKind,
    folder: BorrowedFd<'a>,
}

impl Folder<'_> {
    /// Both forms of its path.
    pub fn path(&self) -> &PathAccess {
        self.path
    }

    /// The beginning of a file in it, at most `limit` bytes; `None` if there is none that may be read.
    pub fn read(&self, name: &str, limit: u64) -> Option<Vec<u8>> {
        let path = child(self.path, OsStr::new(name));
        if !self.granted.may_read(&path) {
            return None;
        }
        let mut content = Vec::new();
        open_entry(self.handle, OsStr::new(name)).ok()?.take(limit).read_to_end(&mut content).ok()?;
        Some(content)
    }
}

impl Entry<'_> {
    /// Its name.
    pub fn name(&self) -> &OsStr {
        self.name
    }

    /// Its path below the folder where the walk began.
    pub fn below(&self) -> &Path {
        self.below
    }

    /// Both forms of its path.
    pub fn path(&self) -> &PathAccess {
        self.path
    }

    /// What it is; a link is a link.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// Size, time and the like, of a link itself.
    ///
    /// # Errors
    /// The system's; it may be gone meanwhile.
    pub fn facts(&self) -> io::Result<FileFacts> {
        Ok(FileFacts::of(&statat(self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Opens it for reading, with its facts.
    ///
    /// # Errors
    /// The system's, also when it is no regular file or became a link meanwhile.
    pub fn open(&self) -> io::Result<(File, FileFacts)> {
        let file = open_entry(self.folder, self.name)?;
        let facts = FileFacts::of(&fstat(&file)?);
        Ok((file, facts))
    }

    /// The text of a link.
    pub fn link_target(&self) -> Option<PathBuf> {
        let target = readlinkat(self.folder, self.name, Vec::new()).ok()?;
        Some(OsString::from_vec(target.into_bytes()).into())
    }
}

/// Opens a regular file in a folder, and nothing else.
fn open_entry(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty())?);
    match FileFacts::of(&fstat(&file)?).kind {
        FileKind::File => Ok(file),
        _ => Err(Errno::INVAL.into()),
    }
}

fn child(folder: &PathAccess, name: &OsStr) -> PathAccess {
    PathAccess { lexical: folder.lexical.join(name), real: folder.real.join(name), tree: false }
}

/// A folder that waits to be read.
struct Pending<C> {
    below: PathBuf,
    depth: usize,
    above: C,
}

pub(super) fn walk<V: Visitor>(
    granted: &GrantedWorkspace,
    start: &Found,
    limits: WalkLimits,
    above: V::Context,
    visitor: &mut V,
) -> Result<Walked, PathError> {
    let mut walked = Walked::default();
    let mut pending = VecDeque::from([Pending { below: PathBuf::new(), depth: 1, above }]);
    while let Some(Pending { below, depth, above }) = pending.pop_front() {
        let path = PathAccess {
            lexical: joined(&start.path().lexical, &below),
            real: joined(&start.path().real, &below),
            tree: false,
        };
        let (handle, entries) = match read_folder(start, &path, &below, limits.entries - walked.entries) {
            Ok(read) => read,
            Err(error) if depth == 1 => return Err(PathError::io("read", &path.lexical, error)),
            Err(_) => {
                walked.unreadable += 1;
                continue;
            }
        };
        let context = visitor.enter(&Folder { granted, path: &path, handle: handle.as_fd() }, &above);
        for (name, kind) in entries {
            if walked.entries >= limits.entries {
                walked.ended = Some(WalkEnd::Entries);
                return Ok(walked);
            }
            if granted.stop().is_due() {
                walked.ended = Some(WalkEnd::Time);
                return Ok(walked);
            }
            walked.entries += 1;
            let access = Access::ReadPath(child(&path, &name));
            let Access::ReadPath(entry_path) = &access else { continue };
            if !granted.grant.permits(&access) {
                walked.refused += 1;
                continue;
            }
            let below = below.join(&name);
            let Some(kind) = kind.or_else(|| kind_of(handle.as_fd(), &name)) else { continue };
            let entry = Entry { name: &name, below: &below, path: entry_path, kind, folder: handle.as_fd() };
            match visitor.meet(&entry, &context) {
                Visit::Continue if kind == FileKind::Folder && depth < limits.depth => {
                    pending.push_back(Pending { below, depth: depth + 1, above: context.clone() });
                }
                Visit::Continue | Visit::Skip => {}
                Visit::Stop => {
                    walked.ended = Some(WalkEnd::Visitor);
                    return Ok(walked);
                }
            }
        }
    }
    Ok(walked)
}

/// `a/b` and nothing is `a/b`, not `a/b/`.
fn joined(folder: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { folder.to_path_buf() } else { folder.join(below) }
}

type Names = Vec<(OsString, Option<FileKind>)>;

/// Opens a folder below the start and reads its names, sorted; a name more than `limit` shows that there are more.
fn read_folder(start: &Found, path: &PathAccess, below: &Path, limit: usize) -> io::Result<(OwnedFd, Names)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    // No link on the way and no other file system, so that the path that is judged is the path that is read.
    let handle = open_beneath(start.handle(), below, flags, WITHOUT_LINKS | ResolveFlags::NO_XDEV)?;
    if real_path(&handle)? != path.real {
        // It was moved in between: rules were asked about another place.
        return Err(Errno::STALE.into());
    }
    let mut names = Vec::new();
    for entry in Dir::read_from(&handle)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        names.push((OsStr::from_bytes(name).to_owned(), FileKind::of(entry.file_type())));
        if names.len() > limit {
            break;
        }
    }
    names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok((handle, names))
}

fn kind_of(folder: BorrowedFd<'_>, name: &OsStr) -> Option<FileKind> {
    Some(FileFacts::of(&statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?).kind)
}
