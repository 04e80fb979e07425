//! State that the threads of a walk share: the remaining work, and the end of the walk.

use crate::sandbox::workspace::walk::{WalkEnd, WalkOptions, WalkOrder, WalkSummary, entries::FolderEntryNames};
use std::{
    collections::VecDeque,
    io,
    ops::Range,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use toolstead_domain::AccessPath;

/// Number of entries in a part. A folder with more entries is shared between threads.
const PART: usize = 64;

/// A folder that was not read yet.
pub(super) struct UnreadFolder<C> {
    pub(super) below: PathBuf,
    pub(super) depth: usize,
    pub(super) above: C,
}

/// A folder that was read.
pub(super) struct ListedFolder<C> {
    pub(super) path: AccessPath,
    pub(super) handle: OwnedFd,
    pub(super) names: FolderEntryNames,
    pub(super) context: C,
    pub(super) depth: usize,
}

/// Entries of a folder that were not visited yet.
pub(super) struct UnvisitedEntryRange<C> {
    pub(super) folder: Arc<ListedFolder<C>>,
    pub(super) range: Range<usize>,
}

pub(super) enum WorkItemRef<'a, C> {
    Read(&'a UnreadFolder<C>),
    Visit(&'a UnvisitedEntryRange<C>),
}

enum WorkItem<C> {
    Read(UnreadFolder<C>),
    Visit(UnvisitedEntryRange<C>),
}

/// Remaining work. Parts of open folders come first, so that few folders are open at a time.
pub(super) struct WorkQueue<C> {
    limits: WalkOptions,
    state: Mutex<PoolState<C>>,
    changed: Condvar,
    seen: AtomicUsize,
    is_over: AtomicBool,
}

struct PoolState<C> {
    parts: Vec<UnvisitedEntryRange<C>>,
    folders: VecDeque<UnreadFolder<C>>,
    /// Number of threads that are working and may add work.
    busy: usize,
    waiting: usize,
    summary: WalkSummary,
    failure: Option<io::Error>,
}

/// Work item of a thread. The thread counts as busy until this is dropped.
pub(super) struct WorkItemGuard<'a, C> {
    pool: &'a WorkQueue<C>,
    item: WorkItem<C>,
    /// `true` if there is more work and no thread waits for it.
    pub(super) leaves_more: bool,
}

impl<C> WorkItemGuard<'_, C> {
    pub(super) fn work(&self) -> WorkItemRef<'_, C> {
        match &self.item {
            WorkItem::Read(folder) => WorkItemRef::Read(folder),
            WorkItem::Visit(part) => WorkItemRef::Visit(part),
        }
    }
}

impl<C> Drop for WorkItemGuard<'_, C> {
    fn drop(&mut self) {
        let mut left = self.pool.lock_state();
        left.busy -= 1;
        // A panic of one thread ends the walk, because other threads would wait for its work.
        if std::thread::panicking() {
            self.pool.is_over.store(true, Ordering::Relaxed);
        }
        if left.busy == 0 || self.pool.is_over() {
            self.pool.changed.notify_all();
        }
    }
}

impl<C> WorkQueue<C> {
    pub(super) fn new(limits: WalkOptions, above: C) -> Self {
        let start = UnreadFolder { below: PathBuf::new(), depth: 1, above };
        let left = PoolState {
            parts: Vec::new(),
            folders: VecDeque::from([start]),
            busy: 0,
            waiting: 0,
            summary: WalkSummary::default(),
            failure: None,
        };
        Self {
            limits,
            state: Mutex::new(left),
            changed: Condvar::new(),
            seen: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, PoolState<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next work item. Returns `None` when all work is done or the walk was ended.
    pub(super) fn next(&self) -> Option<WorkItemGuard<'_, C>> {
        let mut left = self.lock_state();
        loop {
            if self.is_over() {
                return None;
            }
            let folder = |left: &mut PoolState<C>| match self.limits.order {
                WalkOrder::ShallowFirst => left.folders.pop_front(),
                // The folder that was found last is the deepest, so the list stays short.
                WalkOrder::AnyOrder => left.folders.pop_back(),
            };
            let item = left.parts.pop().map(WorkItem::Visit).or_else(|| folder(&mut left).map(WorkItem::Read));
            if let Some(item) = item {
                left.busy += 1;
                let leaves_more = left.waiting == 0 && !(left.parts.is_empty() && left.folders.is_empty());
                return Some(WorkItemGuard { pool: self, item, leaves_more });
            }
            if left.busy == 0 {
                return None;
            }
            left.waiting += 1;
            left = self.changed.wait(left).unwrap_or_else(PoisonError::into_inner);
            left.waiting -= 1;
        }
    }

    /// Calls `meet` with the first `count` entries of a folder if it is small or the order of the walk is fixed.
    /// Otherwise divides them into parts, and queues these for all threads.
    pub(super) fn share(&self, folder: ListedFolder<C>, count: usize, mut meet: impl FnMut(&UnvisitedEntryRange<C>)) {
        let folder = Arc::new(folder);
        if count <= PART || self.limits.order == WalkOrder::ShallowFirst {
            return meet(&UnvisitedEntryRange { folder, range: 0..count });
        }
        let parts = (0..count.div_ceil(PART)).map(|part| part * PART..count.min((part + 1) * PART));
        let mut left = self.lock_state();
        left.parts.extend(parts.map(|range| UnvisitedEntryRange { folder: folder.clone(), range }));
        if left.waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// Queues folders to be read, in order, unless the walk has reached its limit. Adds `refused` to the number of
    /// refused entries.
    pub(super) fn add(&self, folders: Vec<UnreadFolder<C>>, refused: usize) {
        if folders.is_empty() && refused == 0 {
            return;
        }
        let mut left = self.lock_state();
        left.summary.refused += refused;
        if left.summary.ended.is_none() {
            left.folders.extend(folders);
        }
        if left.waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// Counts the entries of a folder, and returns how many of them may be visited. If the limit does not admit all,
    /// stores that as the end of the walk, and discards the unread folders.
    pub(super) fn count_entries(&self, entries: usize) -> usize {
        let before = self.seen.fetch_add(entries, Ordering::Relaxed);
        let count = self.limits.entries.saturating_sub(before).min(entries);
        if count < entries {
            // The counted entries are still visited.
            let mut left = self.lock_state();
            left.summary.ended.get_or_insert(WalkEnd::Entries);
            left.folders.clear();
        }
        count
    }

    pub(super) fn entries_left(&self) -> usize {
        self.limits.entries.saturating_sub(self.seen.load(Ordering::Relaxed))
    }

    pub(super) fn unreadable(&self, depth: usize, error: io::Error) {
        let mut left = self.lock_state();
        if depth == 1 {
            left.failure = Some(error);
        } else {
            left.summary.unreadable += 1;
        }
    }

    pub(super) fn end(&self, why: WalkEnd) {
        self.is_over.store(true, Ordering::Relaxed);
        self.lock_state().summary.ended.get_or_insert(why);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    pub(super) fn into_summary(self) -> io::Result<WalkSummary> {
        let seen = self.seen.into_inner().min(self.limits.entries);
        let left = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match left.failure {
            Some(failure) => Err(failure),
            None => Ok(WalkSummary { entries: seen, ..left.summary }),
        }
    }
}
