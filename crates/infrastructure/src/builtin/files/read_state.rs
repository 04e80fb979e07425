//! Read-state: the files that each session of this process has read.

use async_trait::async_trait;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};
use toolstead_domain::{CallContext, ContentDigest, Principal, ReadState, StoreError};

/// Maximum number of files of one session. The least recently read are forgotten first, and a forgotten file counts as
/// never read.
const OF_A_SESSION: usize = 4_000;
/// Maximum number of files of all sessions. The principal with most of them loses entries.
const IN_ALL: usize = 20_000;
/// Fraction that is forgotten at once (one in this number), so that the search for the oldest is rare.
const BATCH: usize = 16;

/// Read-state in memory, for sessions that end with this process.
#[derive(Debug, Default)]
pub(crate) struct InMemoryReadState {
    memory: Mutex<ReadHistory>,
}

#[derive(Debug, Default)]
struct ReadHistory {
    sessions: HashMap<SessionKey, HashMap<PathBuf, FileRead>>,
    /// Total number of files in `sessions`.
    files: usize,
    /// Number of reads so far.
    count: u64,
}

#[derive(Debug)]
struct FileRead {
    digest: ContentDigest,
    /// Sequence number of the read.
    number: u64,
}

/// A session of one principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SessionKey {
    /// Principal of the session.
    pub(crate) principal: Principal,
    /// Id of the session.
    pub(crate) session: String,
}

impl SessionKey {
    /// Returns the session of a call.
    pub(crate) fn of(context: &CallContext<'_>) -> Self {
        Self { principal: context.principal.clone(), session: context.session.to_owned() }
    }
}

impl InMemoryReadState {
    /// Locks the memory. It is consistent at any time, so a panic while it was locked does no harm.
    fn memory(&self) -> MutexGuard<'_, ReadHistory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ReadState for InMemoryReadState {
    async fn record_version(
        &self,
        principal: &Principal,
        session: &str,
        real: &Path,
        digest: ContentDigest,
    ) -> Result<(), StoreError> {
        let viewer = SessionKey { principal: principal.clone(), session: session.to_owned() };
        let mut memory = self.memory();
        let memory = &mut *memory;
        memory.count += 1;
        let sight = FileRead { digest, number: memory.count };
        let seen = memory.sessions.entry(viewer.clone()).or_default();
        memory.files += usize::from(seen.insert(real.to_path_buf(), sight).is_none());
        if seen.len() > OF_A_SESSION {
            memory.forget_oldest(OF_A_SESSION / BATCH, |other| *other == viewer);
        }
        if memory.files > IN_ALL
            && let Some(principal) = memory.largest()
        {
            memory.forget_oldest(IN_ALL / BATCH, |other| other.principal == principal);
        }
        Ok(())
    }

    async fn forget(&self, principal: &Principal, session: &str, real: &Path) -> Result<(), StoreError> {
        let viewer = SessionKey { principal: principal.clone(), session: session.to_owned() };
        let mut memory = self.memory();
        let memory = &mut *memory;
        if let Some(seen) = memory.sessions.get_mut(&viewer) {
            memory.files -= usize::from(seen.remove(real).is_some());
            if seen.is_empty() {
                memory.sessions.remove(&viewer);
            }
        }
        Ok(())
    }

    async fn known(
        &self,
        principal: &Principal,
        session: &str,
        real: &Path,
    ) -> Result<Option<ContentDigest>, StoreError> {
        let viewer = SessionKey { principal: principal.clone(), session: session.to_owned() };
        let memory = self.memory();
        Ok(memory.sessions.get(&viewer).and_then(|seen| seen.get(real)).map(|sight| sight.digest))
    }
}

impl ReadHistory {
    /// Returns the principal with most entries.
    fn largest(&self) -> Option<Principal> {
        let mut sizes = HashMap::<_, usize>::new();
        for (viewer, session) in &self.sessions {
            *sizes.entry(&viewer.principal).or_default() += session.len();
        }
        sizes.into_iter().max_by_key(|(_, size)| *size).map(|(principal, _)| principal.clone())
    }

    /// Forgets the `count` least recent reads of the matching sessions.
    fn forget_oldest(&mut self, count: usize, of: impl Fn(&SessionKey) -> bool) {
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
    use toolstead_domain::testing::read_state_contract::read_state_contract;

    fn path(number: usize) -> PathBuf {
        format!("/{number}").into()
    }

    const A: ContentDigest = ContentDigest([1; 32]);
    const B: ContentDigest = ContentDigest([2; 32]);

    /// A memory as one principal uses it.
    struct Sights<'a>(&'a InMemoryReadState, Principal);

    impl Sights<'_> {
        async fn saw(&self, session: &str, number: usize, digest: ContentDigest) {
            self.0.record_version(&self.1, session, &path(number), digest).await.unwrap();
        }

        async fn known(&self, session: &str, number: usize) -> Option<ContentDigest> {
            self.0.known(&self.1, session, &path(number)).await.unwrap()
        }
    }

    #[tokio::test]
    async fn the_in_memory_read_state_satisfies_the_contract() {
        read_state_contract(&InMemoryReadState::default()).await;
    }

    #[tokio::test]
    async fn reading_a_file_again_postpones_its_eviction() {
        let memory = InMemoryReadState::default();
        let mine = Sights(&memory, Principal::local());
        for number in 0..OF_A_SESSION {
            mine.saw("me", number, A).await;
        }
        mine.saw("me", 0, B).await;
        mine.saw("me", OF_A_SESSION, A).await;
        assert_eq!((mine.known("me", 0).await, mine.known("me", 1).await), (Some(B), None));
        assert_eq!(mine.known("me", OF_A_SESSION).await, Some(A));
    }

    #[tokio::test]
    async fn a_file_seen_again_after_removal_counts_as_the_newest() {
        let memory = InMemoryReadState::default();
        let mine = Sights(&memory, Principal::local());
        mine.saw("me", 0, A).await;
        memory.forget(&Principal::local(), "me", &path(0)).await.unwrap();
        assert_eq!(mine.known("me", 0).await, None);
        for number in 1..OF_A_SESSION {
            mine.saw("me", number, A).await;
        }
        mine.saw("me", 0, B).await;
        mine.saw("me", OF_A_SESSION, A).await;
        assert_eq!(mine.known("me", 0).await, Some(B));
    }

    #[tokio::test]
    async fn one_session_does_not_evict_the_files_of_another() {
        let memory = InMemoryReadState::default();
        let mine = Sights(&memory, Principal::local());
        mine.saw("me", 0, A).await;
        for number in 0..3 * OF_A_SESSION {
            mine.saw("other", number, B).await;
        }
        assert_eq!(mine.known("me", 0).await, Some(A));
    }

    #[tokio::test]
    async fn many_sessions_of_one_principal_do_not_evict_files_of_another_principal() {
        let memory = InMemoryReadState::default();
        let (mine, others) = (Sights(&memory, Principal::token("me")), Sights(&memory, Principal::local()));
        mine.saw("me", 0, A).await;
        for number in 0..2 * IN_ALL {
            others.saw(&format!("{}", number / 1000), number, B).await;
        }
        assert_eq!(mine.known("me", 0).await, Some(A));
        let all: usize = memory.memory().sessions.values().map(HashMap::len).sum();
        assert!(all <= IN_ALL && all == memory.memory().files, "{all}");
    }
}
