//! The runtimes of the server: one for each processor.
//!
//! A connection stays on one runtime, and so does everything that its calls do, so that no thread has to wake another one
//! for a call. Upstream servers are spread in the same way.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::runtime::Handle;

/// Handles of the runtimes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Cores(Arc<Spread>);

#[derive(Debug)]
struct Spread {
    cores: Vec<Core>,
    /// Number of calls of [`Cores::next_runtime`].
    taken: AtomicUsize,
}

#[derive(Debug)]
struct Core {
    runtime: Handle,
    connections: AtomicUsize,
}

/// The runtime of one connection. Dropping it ends the connection's share of that runtime.
#[derive(Debug)]
pub(crate) struct ConnectionCore {
    cores: Cores,
    index: usize,
}

impl Cores {
    /// Creates the cores from the handles of these runtimes, of which there is at least one.
    pub(crate) fn new(first: Handle, others: impl IntoIterator<Item = Handle>) -> Self {
        let runtimes = std::iter::once(first).chain(others);
        let cores = runtimes.map(|runtime| Core { runtime, connections: AtomicUsize::new(0) }).collect();
        Self(Arc::new(Spread { cores, taken: AtomicUsize::new(0) }))
    }

    /// Returns the runtime that the caller runs on, as the only one.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(crate) fn current() -> Self {
        Self::new(Handle::current(), [])
    }

    /// Assigns a connection to the runtime that has the fewest.
    pub(crate) fn for_connection(&self) -> ConnectionCore {
        let fewest = |(_, core): &(usize, &Core)| core.connections.load(Ordering::Relaxed);
        let index = self.0.cores.iter().enumerate().min_by_key(fewest).map_or(0, |(index, _)| index);
        self.0.cores[index].connections.fetch_add(1, Ordering::Relaxed);
        ConnectionCore { cores: self.clone(), index }
    }

    /// Returns the runtimes one after the other, for long-lived tasks that are as many as there are upstream servers.
    pub(crate) fn next_runtime(&self) -> &Handle {
        let Spread { cores, taken } = &*self.0;
        &cores[taken.fetch_add(1, Ordering::Relaxed) % cores.len()].runtime
    }
}

impl ConnectionCore {
    /// Spawns the task of the connection, which holds this value.
    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(self, connection: F) {
        let runtime = self.cores.0.cores[self.index].runtime.clone();
        runtime.spawn(async move {
            let _core = self;
            connection.await;
        });
    }
}

impl Drop for ConnectionCore {
    fn drop(&mut self) {
        self.cores.0.cores[self.index].connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    /// Spawns a connection. Returns the runtime that it runs on, and the sender that ends it.
    async fn connect(cores: &Cores) -> (tokio::runtime::Id, oneshot::Sender<()>) {
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
        let cores = Cores::new(Handle::current(), [other.handle().clone()]);
        let (first, end_first) = connect(&cores).await;
        let (second, _end_second) = connect(&cores).await;
        let (third, _end_third) = connect(&cores).await;
        assert_eq!((first, second, third), (here, there, here));
        let _ended = end_first.send(());
        while cores.0.cores[0].connections.load(Ordering::Relaxed) == 2 {
            tokio::task::yield_now().await;
        }
        let (fourth, _end_fourth) = connect(&cores).await;
        assert_eq!(fourth, here);
        other.shutdown_background();
    }

    #[tokio::test]
    async fn upstream_servers_take_the_runtimes_in_turn() {
        let other = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (here, there) = (Handle::current().id(), other.handle().id());
        let cores = Cores::new(Handle::current(), [other.handle().clone()]);
        assert_eq!([(); 3].map(|()| cores.next_runtime().id()), [here, there, here]);
        assert_eq!([(); 2].map(|()| Cores::current().next_runtime().id()), [here, here]);
        other.shutdown_background();
    }
}
