//! The runtimes of the server: one for each processor.
//!
//! A client connection and its calls stay on one runtime, so that a call needs no other thread. Upstream servers are
//! assigned in turn; a call to a stdio server may cross runtimes.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::runtime::Handle;

/// Handles of the runtimes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RuntimePool(Arc<ProcessorRuntimes>);

#[derive(Debug)]
struct ProcessorRuntimes {
    cores: Vec<PerCoreRuntime>,
    /// Number of upstream servers that were assigned so far, which determines the next runtime.
    assigned: AtomicUsize,
}

#[derive(Debug)]
struct PerCoreRuntime {
    runtime: Handle,
    connections: AtomicUsize,
}

/// The runtime of one connection. Dropping it decrements the runtime's number of connections.
#[derive(Debug)]
pub(crate) struct RuntimeAssignment {
    cores: RuntimePool,
    index: usize,
}

impl RuntimePool {
    /// Creates a pool of these runtimes, of which there is at least one.
    pub(crate) fn new(runtimes: impl IntoIterator<Item = Handle>) -> Self {
        let cores =
            runtimes.into_iter().map(|runtime| PerCoreRuntime { runtime, connections: AtomicUsize::new(0) }).collect();
        Self(Arc::new(ProcessorRuntimes { cores, assigned: AtomicUsize::new(0) }))
    }

    /// Returns the runtime that the caller runs on, as the only one.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(crate) fn current() -> Self {
        Self::new([Handle::current()])
    }

    /// Assigns a connection to the runtime that has the fewest, chosen at random among equals. In a fixed order, the
    /// second connection of each client, which often waits for notifications, would always be on the same runtimes.
    pub(crate) fn for_connection(&self) -> RuntimeAssignment {
        let cores = &self.0.cores;
        let first = RandomState::new().hash_one(()) as usize % cores.len();
        let connections = |index: &usize| cores[*index].connections.load(Ordering::Relaxed);
        let index = (first..cores.len()).chain(0..first).min_by_key(connections).unwrap_or_default();
        cores[index].connections.fetch_add(1, Ordering::Relaxed);
        RuntimeAssignment { cores: self.clone(), index }
    }

    /// Returns the next runtime in turn, for the tasks of an upstream server.
    pub(crate) fn next_runtime(&self) -> &Handle {
        let ProcessorRuntimes { cores, assigned } = &*self.0;
        &cores[assigned.fetch_add(1, Ordering::Relaxed) % cores.len()].runtime
    }
}

impl RuntimeAssignment {
    /// Spawns the task of the connection, which holds this value.
    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(self, connection: F) {
        let runtime = self.cores.0.cores[self.index].runtime.clone();
        runtime.spawn(async move {
            let _core = self;
            connection.await;
        });
    }
}

impl Drop for RuntimeAssignment {
    fn drop(&mut self) {
        self.cores.0.cores[self.index].connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tokio::sync::oneshot;

    /// Spawns a connection. Returns the runtime that it runs on, and the sender that ends it.
    async fn connect(cores: &RuntimePool) -> (tokio::runtime::Id, oneshot::Sender<()>) {
        let ((end, ended), (report, reported)) = (oneshot::channel(), oneshot::channel());
        cores.for_connection().spawn(async move {
            report.send(Handle::current().id()).unwrap();
            let _ = ended.await;
        });
        (reported.await.unwrap(), end)
    }

    #[tokio::test]
    async fn connections_run_on_the_runtime_that_has_the_fewest() {
        let other = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (here, there) = (Handle::current().id(), other.handle().id());
        let cores = RuntimePool::new([Handle::current(), other.handle().clone()]);
        let (first, end_first) = connect(&cores).await;
        let (second, _end_second) = connect(&cores).await;
        assert_eq!(
            BTreeSet::from([first, second].map(|id| id.to_string())),
            BTreeSet::from([here, there].map(|id| id.to_string()))
        );
        let _ended = end_first.send(());
        let is_ended = || cores.0.cores.iter().any(|core| core.connections.load(Ordering::Relaxed) == 0);
        while !is_ended() {
            tokio::task::yield_now().await;
        }
        let (third, _end_third) = connect(&cores).await;
        assert_eq!(third, first);
        other.shutdown_background();
    }

    #[tokio::test]
    async fn upstream_servers_are_assigned_to_runtimes_round_robin() {
        let other = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (here, there) = (Handle::current().id(), other.handle().id());
        let cores = RuntimePool::new([Handle::current(), other.handle().clone()]);
        assert_eq!([(); 3].map(|()| cores.next_runtime().id()), [here, there, here]);
        assert_eq!([(); 2].map(|()| RuntimePool::current().next_runtime().id()), [here, here]);
        other.shutdown_background();
    }
}
