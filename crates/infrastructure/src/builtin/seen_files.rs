//! What each session has read: whoever changes a file later is told when it is not that any more.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};
use toolstead_domain::{content_digest::ContentDigest, principal::Principal};

/// As many files are remembered of a session. Those that were seen longest ago are forgotten first, and a file that is
/// forgotten is treated as one that was never read.
const OF_A_SESSION: usize = 4_000;
/// As many are remembered in all. The principal that takes most of it is the one that forgets.
const IN_ALL: usize = 20_000;
/// One part in so many is forgotten at once, so that the oldest are seldom looked for.
const BATCH: usize = 16;

/// The last content of each file that a session has read or written.
#[derive(Debug, Default)]
pub struct SeenFiles {
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    sessions: HashMap<Viewer, HashMap<PathBuf, Sight>>,
    /// Files of all sessions.
    files: usize,
    /// Sights of all time.
    count: u64,
}

#[derive(Debug)]
struct Sight {
    digest: ContentDigest,
    /// Its place among all sights.
    number: u64,
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
        let mut memory = self.memory();
        let memory = &mut *memory;
        memory.count += 1;
        let sight = Sight { digest, number: memory.count };
        let session = memory.sessions.entry(viewer.clone()).or_default();
        memory.files += usize::from(session.insert(real.to_path_buf(), sight).is_none());
        if session.len() > OF_A_SESSION {
            memory.forget_oldest(OF_A_SESSION / BATCH, |other| other == viewer);
        }
        if memory.files > IN_ALL
            && let Some(principal) = memory.largest()
        {
            memory.forget_oldest(IN_ALL / BATCH, |other| other.principal == principal);
        }
    }

    /// The session knows nothing of the file any more, because it is gone or too large to be known.
    pub fn forget(&self, viewer: &Viewer, real: &Path) {
        let mut memory = self.memory();
        let memory = &mut *memory;
        if let Some(session) = memory.sessions.get_mut(viewer) {
            memory.files -= usize::from(session.remove(real).is_some());
            if session.is_empty() {
                memory.sessions.remove(viewer);
            }
        }
    }

    /// The content that the session knows; `None` if it never read the file.
    pub fn known(&self, viewer: &Viewer, real: &Path) -> Option<ContentDigest> {
        self.memory().sessions.get(viewer)?.get(real).map(|sight| sight.digest)
    }

    /// The memory is whole at any time, so that a panic elsewhere while it was held does no harm.
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// The principal of whom most is remembered.
    fn largest(&self) -> Option<Principal> {
        let mut sizes = HashMap::<_, usize>::new();
        for (viewer, session) in &self.sessions {
            *sizes.entry(&viewer.principal).or_default() += session.len();
        }
        sizes.into_iter().max_by_key(|(_, size)| *size).map(|(principal, _)| principal.clone())
    }

    /// Forgets so many sights of some viewers, those of longest ago.
    fn forget_oldest(&mut self, count: usize, of: impl Fn(&Viewer) -> bool) {
        let sessions = self.sessions.iter().filter(|(viewer, _)| of(viewer));
        let mut numbers: Vec<u64> =
            sessions.flat_map(|(_, session)| session.values().map(|sight| sight.number)).collect();
        let Some(last) = numbers.len().min(count).checked_sub(1) else { return };
        let last = *numbers.select_nth_unstable(last).1;
        self.sessions.retain(|viewer, session| {
            if of(viewer) {
                session.retain(|_, sight| sight.number > last);
            }
            !session.is_empty()
        });
        self.files = self.sessions.values().map(HashMap::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn viewer(session: &str) -> Viewer {
        Viewer { principal: Principal::local(), session: session.into() }
    }

    fn path(number: usize) -> PathBuf {
        format!("/{number}").into()
    }

    const A: ContentDigest = ContentDigest([1; 32]);
    const B: ContentDigest = ContentDigest([2; 32]);

    #[test]
    fn a_file_that_is_seen_again_is_remembered_longer() {
        let (seen, me) = (SeenFiles::default(), viewer("me"));
        for number in 0..OF_A_SESSION {
            seen.saw(&me, &path(number), A);
        }
        seen.saw(&me, &path(0), B);
        seen.saw(&me, &path(OF_A_SESSION), A);
        assert_eq!((seen.known(&me, &path(0)), seen.known(&me, &path(1))), (Some(B), None));
        assert_eq!(seen.known(&me, &path(OF_A_SESSION)), Some(A));
    }

    #[test]
    fn what_was_forgotten_and_seen_again_is_new() {
        let (seen, me) = (SeenFiles::default(), viewer("me"));
        seen.saw(&me, &path(0), A);
        seen.forget(&me, &path(0));
        assert_eq!(seen.known(&me, &path(0)), None);
        for number in 1..OF_A_SESSION {
            seen.saw(&me, &path(number), A);
        }
        seen.saw(&me, &path(0), B);
        seen.saw(&me, &path(OF_A_SESSION), A);
        assert_eq!(seen.known(&me, &path(0)), Some(B));
    }

    #[test]
    fn one_session_does_not_make_another_forget() {
        let (seen, me) = (SeenFiles::default(), viewer("me"));
        seen.saw(&me, &path(0), A);
        for number in 0..3 * OF_A_SESSION {
            seen.saw(&viewer("other"), &path(number), B);
        }
        assert_eq!(seen.known(&me, &path(0)), Some(A));
    }

    #[test]
    fn many_sessions_of_one_principal_do_not_make_another_forget() {
        let seen = SeenFiles::default();
        let me = Viewer { principal: Principal::token("me"), session: "me".into() };
        seen.saw(&me, &path(0), A);
        for number in 0..2 * IN_ALL {
            seen.saw(&viewer(&format!("{}", number / 1000)), &path(number), B);
        }
        assert_eq!(seen.known(&me, &path(0)), Some(A));
        let all: usize = seen.memory().sessions.values().map(HashMap::len).sum();
        assert!(all <= IN_ALL && all == seen.memory().files, "{all}");
    }
}
