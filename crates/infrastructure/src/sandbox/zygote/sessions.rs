//! The sessions that a zygote keeps something for.

use super::request::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{collections::VecDeque, os::fd::OwnedFd};

/// Sessions that are kept; of those without a run, the one that was used least recently gives way.
const MAX_SESSIONS: usize = 256;

#[derive(Debug)]
pub(super) struct Sessions<T> {
    /// The one that was used last stands last.
    pub(super) list: VecDeque<Session<T>>,
}

/// What the runs of one session share.
#[derive(Debug)]
pub(super) struct Session<T> {
    key: String,
    pub(super) shared: T,
    /// Its inits.
    pub(super) runs: Vec<OwnedFd>,
}

impl<T> Session<T> {
    /// Whether one of its runs is there.
    fn is_in_use(&mut self) -> bool {
        self.runs.retain(lives);
        !self.runs.is_empty()
    }
}

/// Whether the process has not ended.
pub(super) fn lives(process: &OwnedFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&at_once)), Ok(0))
}

impl<T> Sessions<T> {
    pub(super) const fn new() -> Self {
        Self { list: VecDeque::new() }
    }

    /// The place of a known session, which is the last one.
    pub(super) fn known(&mut self, key: &str) -> Option<usize> {
        let place = self.list.iter().position(|session| session.key == key)?;
        let mut session = self.list.remove(place)?;
        session.runs.retain(lives);
        self.list.push_back(session);
        Some(self.list.len() - 1)
    }

    /// Makes room for a new one. The session that gave way has to be let go of.
    pub(super) fn make_room(&mut self) -> Result<Option<Session<T>>, Failure> {
        if self.list.len() < MAX_SESSIONS {
            return Ok(None);
        }
        let idle = self.list.iter_mut().position(|session| !session.is_in_use());
        idle.map(|place| self.list.remove(place)).ok_or_else(|| {
            let reason = format!("programs of {MAX_SESSIONS} sessions are running; end some of them");
            Failure::new("open a session", reason)
        })
    }

    /// Opens one, and says its place.
    pub(super) fn open(&mut self, key: String, shared: T) -> usize {
        self.list.push_back(Session { key, shared, runs: Vec::new() });
        self.list.len() - 1
    }

    /// Takes one out, to be let go of.
    pub(super) fn take(&mut self, key: &str) -> Option<Session<T>> {
        let place = self.list.iter().position(|session| session.key == key)?;
        self.list.remove(place)
    }
}
