//! Walks a folder by handles, with limits on entries, depth and time, on several threads.

mod entries;
mod pool;
mod unreadable_reason;

use crate::sandbox::workspace::{
    facts::{FileFacts, FileKind},
    file_handle::FileHandle,
    path_error::PathError,
    resolve::{WITHOUT_LINKS, open_beneath},
    stop::StopCondition,
    walk::{entries::FolderEntryNames, pool::WorkQueue},
};
use rustix::{
    fs::{AtFlags, OFlags, ResolveFlags, fstat, readlinkat, statat},
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    num::NonZeroUsize,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, Scope},
};
use toolstead_domain::{AccessPath, CallPermissions, FolderReadPermissions};
pub use unreadable_reason::UnreadableReason;

/// Maximum number of threads. More threads wait for each other more than they help.
const MAX_THREADS: usize = 8;
/// Number of entries between two checks of the deadline.
const LOOKS_AT_THE_CLOCK: usize = 16;

/// Options of a walk: its limits and its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkOptions {
    /// Maximum number of entries, including skipped ones.
    pub entries: usize,
    /// Maximum depth, where 1 includes only the folder's own entries.
    pub depth: usize,
    /// Order of the walk, which also decides the number of threads.
    pub order: WalkOrder,
}

/// The order of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkOrder {
    /// Shallow folders first, and the entries of each by name, on the caller's thread. A limit always omits the same
    /// entries.
    ShallowFirst,
    /// Any order, on several threads. The visitor sorts the results afterwards.
    AnyOrder,
}

/// Receives the entries of a walk, on several threads at once.
pub trait Visitor: Sync {
    /// Data of one folder that is passed to its subfolders.
    type Context: Clone + Send + Sync;
    /// Results of one thread.
    type Worker: Send;

    /// Creates the data of another thread.
    fn worker(&self) -> Self::Worker;

    /// Returns the context of a folder. Called before its entries are visited. `above` is the context of its parent,
    /// which is also the default.
    fn enter(&self, folder: &WalkFolder<'_>, above: &Self::Context) -> Self::Context {
        let _ = folder;
        above.clone()
    }

    /// Called for an entry that the call may not read.
    fn visit_denied(&self, worker: &mut Self::Worker, path: &AccessPath) {
        let _ = (worker, path);
    }

    /// Called for a folder that the call may read and that could not be read.
    fn visit_unreadable(&self, worker: &mut Self::Worker, folder: &AccessPath, why: UnreadableReason) {
        let _ = (worker, folder, why);
    }

    /// Called for an entry that the call may read.
    fn visit_entry(&self, worker: &mut Self::Worker, entry: &WalkEntry<'_>, context: &Self::Context) -> WalkControl;
}

/// Next action of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkControl {
    /// Continue, and enter the entry if it is a folder.
    Continue,
    /// Continue without entering the entry.
    Skip,
    /// End the walk.
    Stop,
}

/// Result of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WalkSummary {
    /// Number of entries that were visited or skipped.
    pub entries: usize,
    /// Number of entries that were skipped because no rule permits reading them.
    pub refused: usize,
    /// Number of folders that could not be read.
    pub unreadable: usize,
    /// Reason why the walk ended early.
    pub ended: Option<WalkEnd>,
}

/// Reason why a walk ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkEnd {
    /// The maximum number of entries was reached.
    Entries,
    /// The deadline passed.
    Time,
    /// The visitor ended the walk.
    Visitor,
}

/// A folder on a walk.
#[derive(Debug)]
pub struct WalkFolder<'a> {
    path: &'a AccessPath,
    handle: BorrowedFd<'a>,
    names: &'a FolderEntryNames,
    reading: &'a FolderReadPermissions<'a>,
}

/// An entry of a folder on a walk.
#[derive(Debug)]
pub struct WalkEntry<'a> {
    name: &'a OsStr,
    path: &'a AccessPath,
    start: usize,
    kind: FileKind,
    folder: BorrowedFd<'a>,
}

impl WalkFolder<'_> {
    /// Returns the path of the folder as requested, and its real path.
    pub fn path(&self) -> &AccessPath {
        self.path
    }

    /// Returns `true` if the folder contains an entry with this name.
    pub fn holds(&self, name: &str) -> bool {
        self.names.holds(name.as_bytes())
    }

    /// Returns at most `limit` bytes from the beginning of a file in the folder, or `None` if there is no readable
    /// file. No link is followed.
    pub fn read(&self, below: &str, limit: u64) -> Option<Vec<u8>> {
        let path = AccessPath { lexical: self.path.lexical.join(below), real: self.path.real.join(below), tree: false };
        if !self.reading.permits(&path) {
            return None;
        }
        let mut content = Vec::new();
        let (file, _) = open_entry(self.handle, OsStr::new(below)).ok()?;
        file.take(limit).read_to_end(&mut content).ok()?;
        Some(content)
    }
}

impl WalkEntry<'_> {
    /// Returns the name.
    pub fn name(&self) -> &OsStr {
        self.name
    }

    /// Returns the path relative to the folder where the walk began.
    pub fn below(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path.lexical.as_os_str().as_bytes()[self.start..]))
    }

    /// Returns the path of the entry as requested, and its real path.
    pub fn path(&self) -> &AccessPath {
        self.path
    }

    /// Returns the type of the entry. A link is reported as a link.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// Returns the metadata of the entry, or of the link itself.
    ///
    /// # Errors
    /// The error of the system. The entry may have been removed meanwhile.
    pub fn facts(&self) -> io::Result<FileFacts> {
        Ok(FileFacts::of(&statat(self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Opens the file for reading, and returns it with its metadata.
    ///
    /// # Errors
    /// The error of the system, also if it is not a regular file or became a link meanwhile.
    pub fn open(&self) -> io::Result<(File, FileFacts)> {
        if self.kind == FileKind::File { open_entry(self.folder, self.name) } else { Err(Errno::INVAL.into()) }
    }

    /// Returns the target of a link as it is written, or `None` if the entry is not a readable link.
    pub fn link_target(&self) -> Option<PathBuf> {
        let target = readlinkat(self.folder, self.name, Vec::new()).ok()?;
        Some(OsString::from_vec(target.into_bytes()).into())
    }
}

/// Opens a regular file in a folder. Fails for links, and for files on another file system.
fn open_entry(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<(File, FileFacts)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open_beneath(folder, Path::new(name), flags, WITHOUT_LINKS | ResolveFlags::NO_XDEV)?;
    let facts = FileFacts::of(&fstat(&file)?);
    if facts.kind == FileKind::File { Ok((File::from(file), facts)) } else { Err(Errno::INVAL.into()) }
}

/// State of a walk, shared by all its threads.
struct Walk<'a, V: Visitor> {
    /// Number of threads that may still be started.
    spare: AtomicUsize,
    /// Results of the started threads.
    done: Mutex<Vec<thread::Result<V::Worker>>>,
    visitor: &'a V,
    stop: &'a StopCondition,
    start: &'a FileHandle,
    reading: FolderReadPermissions<'a>,
    limits: WalkOptions,
    /// `true` if the kernel generates all files that the walk visits. A walk does not leave the file system where it
    /// began.
    is_kernels: bool,
    pool: WorkQueue<V::Context>,
}

pub(super) fn walk<V: Visitor>(
    grant: &CallPermissions,
    stop: &StopCondition,
    start: &FileHandle,
    limits: WalkOptions,
    above: V::Context,
    visitor: &V,
) -> Result<(WalkSummary, Vec<V::Worker>), PathError> {
    let threads = match limits.order {
        WalkOrder::ShallowFirst => 1,
        WalkOrder::AnyOrder => thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_THREADS),
    };
    walk_on(threads, grant, stop, start, limits, above, visitor)
}

/// Does the same as [`walk`] on at most `threads` threads, including the caller's.
pub(super) fn walk_on<V: Visitor>(
    threads: usize,
    grant: &CallPermissions,
    stop: &StopCondition,
    start: &FileHandle,
    limits: WalkOptions,
    above: V::Context,
    visitor: &V,
) -> Result<(WalkSummary, Vec<V::Worker>), PathError> {
    let walk = Walk {
        spare: AtomicUsize::new(threads - 1),
        done: Mutex::default(),
        visitor,
        stop,
        start,
        reading: grant.reading_below(start.path()),
        limits,
        is_kernels: start.is_on_kernel_file_system(),
        pool: WorkQueue::new(limits, above),
    };
    let own = thread::scope(|scope| walk.work(scope));
    let others: Result<Vec<_>, _> =
        walk.done.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect();
    // A panic of one thread is propagated as a panic of the walk.
    let mut workers = others.unwrap_or_else(|panic| resume_unwind(panic));
    workers.push(own);
    match walk.pool.into_summary() {
        Ok(walked) => Ok((walked, workers)),
        Err(error) => Err(PathError::io("read", &start.path().lexical, error)),
    }
}

/// Data of one thread.
struct WalkThreadState<W> {
    worker: W,
    buffer: entries::DirentBuffer,
}

impl<V: Visitor> Walk<'_, V> {
    /// Works until nothing is left. Starts another thread if there is work that no thread waits for.
    fn work<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> V::Worker {
        let mut hand = WalkThreadState { worker: self.visitor.worker(), buffer: entries::DirentBuffer::new() };
        while let Some(task) = self.pool.next() {
            if task.leaves_more {
                self.start_another(scope);
            }
            match task.work() {
                pool::WorkItemRef::Read(folder) => self.read(folder, &mut hand),
                pool::WorkItemRef::Visit(part) => self.visit_part(part, &mut hand.worker),
            }
        }
        hand.worker
    }

    fn start_another<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let take = |spare: usize| spare.checked_sub(1);
        if self.spare.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return;
        }
        let work = move || {
            let worker = catch_unwind(AssertUnwindSafe(|| self.work(scope)));
            self.done.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        };
        // If no thread can be started, the walk continues with fewer, and no further one is tried.
        let _ = thread::Builder::new().spawn_scoped(scope, work);
    }

    /// Reads the names of a folder and visits them. Parts of a large folder are shared with other threads.
    fn read(&self, pending: &pool::UnreadFolder<V::Context>, hand: &mut WalkThreadState<V::Worker>) {
        if self.stop.is_due() {
            return self.pool.end(WalkEnd::Time);
        }
        let start = self.start.path();
        let path = AccessPath {
            lexical: joined(&start.lexical, &pending.below),
            real: joined(&start.real, &pending.below),
            tree: false,
        };
        let is_sorted = self.limits.order == WalkOrder::ShallowFirst;
        let read = self.open_folder(&path, &pending.below).and_then(|handle| {
            let names =
                FolderEntryNames::read(&handle, &mut hand.buffer, self.pool.entries_left(), is_sorted, self.stop)?;
            Ok((handle, names))
        });
        let (handle, names) = match read {
            Ok(read) => read,
            Err(error) => {
                self.visitor.visit_unreadable(
                    &mut hand.worker,
                    &path,
                    UnreadableReason::of(&error, self.start.handle(), &pending.below),
                );
                return self.pool.unreadable(pending.depth, error);
            }
        };
        let count = self.pool.count_entries(names.len());
        let folder = WalkFolder { path: &path, handle: handle.as_fd(), names: &names, reading: &self.reading };
        let context = self.visitor.enter(&folder, &pending.above);
        let folder = pool::ListedFolder { path, handle, names, context, depth: pending.depth };
        self.pool.share(folder, count, |part| self.visit_part(part, &mut hand.worker));
    }

    fn open_folder(&self, path: &AccessPath, below: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        // Follows no link and enters no other file system, so that the checked path is the path that is read.
        let handle = open_beneath(self.start.handle(), below, flags, WITHOUT_LINKS | ResolveFlags::NO_XDEV)?;
        // The folder may have been moved meanwhile, so that the rules were applied to another path.
        if entries::is_at(&handle, &path.real)? { Ok(handle) } else { Err(Errno::STALE.into()) }
    }

    /// Visits some entries of a folder. Queues the subfolders to enter, and counts the entries that may not be read.
    fn visit_part(&self, part: &pool::UnvisitedEntryRange<V::Context>, worker: &mut V::Worker) {
        let folder = &*part.folder;
        let mut path = entries::ChildPathBuffer::of(&folder.path);
        let start = entries::start_of_rest(&self.start.path().lexical);
        let mut folders = Vec::new();
        let mut refused = 0;
        for (index, (name, kind)) in folder.names.iter(part.range.clone()).enumerate() {
            if index % LOOKS_AT_THE_CLOCK == 0 && self.stop.is_due() {
                self.pool.end(WalkEnd::Time);
                break;
            }
            if self.pool.is_over() {
                break;
            }
            path.set(name);
            if !self.reading.permits(path.get()) {
                refused += 1;
                self.visitor.visit_denied(worker, path.get());
                continue;
            }
            let Some(kind) = kind.or_else(|| kind_of(folder.handle.as_fd(), name)) else { continue };
            let kind = if kind == FileKind::File && self.is_kernels { FileKind::KernelFile } else { kind };
            let entry = WalkEntry { name, path: path.get(), start, kind, folder: folder.handle.as_fd() };
            match self.visitor.visit_entry(worker, &entry, &folder.context) {
                WalkControl::Continue if kind == FileKind::Folder && folder.depth < self.limits.depth => {
                    folders.push(pool::UnreadFolder {
                        below: entry.below().to_path_buf(),
                        depth: folder.depth + 1,
                        above: folder.context.clone(),
                    });
                }
                WalkControl::Continue | WalkControl::Skip => {}
                WalkControl::Stop => {
                    self.pool.end(WalkEnd::Visitor);
                    break;
                }
            }
        }
        self.pool.add(folders, refused);
    }
}

/// Joins paths without a trailing slash if `below` is empty.
fn joined(folder: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { folder.to_path_buf() } else { folder.join(below) }
}

fn kind_of(folder: BorrowedFd<'_>, name: &OsStr) -> Option<FileKind> {
    Some(FileFacts::of(&statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?).kind)
}
