//! Sessions for which a zygote has resources.

use super::request::StepFailure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{collections::VecDeque, os::fd::OwnedFd};

/// Maximum number of open sessions. Beyond it, the least recently used one without a run is closed.
const MAX_SESSIONS: usize = 256;

#[derive(Debug)]
pub(super) struct SandboxSessions<T> {
    /// Sessions, the most recently used one last.
    pub(super) list: VecDeque<SandboxSession<T>>,
}

/// Resources that the runs of one session share.
#[derive(Debug)]
pub(super) struct SandboxSession<T> {
    key: String,
    pub(super) shared: T,
    /// Process descriptors of its inits.
    pub(super) runs: Vec<OwnedFd>,
}

impl<T> SandboxSession<T> {
    /// Returns `true` if one of its runs has not ended.
    fn is_in_use(&mut self) -> bool {
        self.runs.retain(lives);
        !self.runs.is_empty()
    }
}

/// Returns `true` if the process has not ended.
pub(super) fn lives(process: &OwnedFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&at_once)), Ok(0))
}

impl<T> SandboxSessions<T> {
    pub(super) const fn new() -> Self {
        Self { list: VecDeque::new() }
    }

    /// Returns the index of a known session, which becomes the last one.
    pub(super) fn known(&mut self, key: &str) -> Option<usize> {
        let place = self.list.iter().position(|session| session.key == key)?;
        let mut session = self.list.remove(place)?;
        session.runs.retain(lives);
        self.list.push_back(session);
        Some(self.list.len() - 1)
    }

    /// Makes room for a new session. Returns `None` if there is room; otherwise removes and returns the least recently
    /// used session without a run, which the caller must release. Fails if all sessions have runs.
    pub(super) fn make_room(&mut self) -> Result<Option<SandboxSession<T>>, StepFailure> {
        if self.list.len() < MAX_SESSIONS {
            return Ok(None);
        }
        let idle = self.list.iter_mut().position(|session| !session.is_in_use());
        idle.map(|place| self.list.remove(place)).ok_or_else(|| {
            let reason = format!("programs of {MAX_SESSIONS} sessions are running; end some of them");
            StepFailure::new("open a session", reason)
        })
    }

    /// Adds a session and returns its index.
    pub(super) fn open(&mut self, key: String, shared: T) -> usize {
        self.list.push_back(SandboxSession { key, shared, runs: Vec::new() });
        self.list.len() - 1
    }

    /// Removes a session, which the caller must release.
    pub(super) fn take(&mut self, key: &str) -> Option<SandboxSession<T>> {
        let place = self.list.iter().position(|session| session.key == key)?;
        self.list.remove(place)
    }
}
