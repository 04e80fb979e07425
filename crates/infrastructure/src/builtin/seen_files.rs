//! What each session has read: whoever changes a file later is told when it is not that any more.

use std::{
    collections::{HashMap, VecDeque},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};
use toolstead_domain::{content_digest::ContentDigest, principal::Principal};

/// As many files are remembered, over all sessions. The one that was seen longest ago is forgotten first, and a file
/// that is forgotten is treated as one that was never read.
const REMEMBERED: usize = 10_000;

/// The last content of each file that a session has read or written.
#[derive(Debug, Default)]
pub struct SeenFiles {
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    digests: HashMap<Key, ContentDigest>,
    order: VecDeque<Key>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    viewer: Viewer,
    path: PathBuf,
}

/// Who reads: one session of one principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Viewer {
    /// On whose behalf.
    pub principal: Principal,
    /// The session's id.
    pub session: String,
}

impl SeenFiles {
    /// The session knows this content of the file at a real path.
    pub fn saw(&self, viewer: &Viewer, real: &Path, digest: ContentDigest) {
        let key = Key { viewer: viewer.clone(), path: real.to_path_buf() };
        let mut memory = self.memory();
        if memory.digests.insert(key.clone(), digest).is_none() {
            memory.order.push_back(key);
            if memory.order.len() > REMEMBERED
                && let Some(oldest) = memory.order.pop_front()
            {
                memory.digests.remove(&oldest);
            }
        }
    }

    /// The session knows nothing of the file any more, because it is gone.
    pub fn forget(&self, viewer: &Viewer, real: &Path) {
        // Its place in the order stays until it is the oldest, which does no harm.
        self.memory().digests.remove(&Key { viewer: viewer.clone(), path: real.to_path_buf() });
    }

    /// The content that the session knows; `None` if it never read the file.
    pub fn known(&self, viewer: &Viewer, real: &Path) -> Option<ContentDigest> {
        self.memory().digests.get(&Key { viewer: viewer.clone(), path: real.to_path_buf() }).copied()
    }

    /// The memory is whole at any time, so that a panic elsewhere while it was held does no harm.
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
