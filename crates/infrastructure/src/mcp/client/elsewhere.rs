//! What the connections beside that of the lists say of lists.
//!
//! One of them all principals share: that of calls which cannot be asked. What it offers is offered beside what the
//! connection of the lists does, so that what such a call adds in its process can be used. Of the others it is only heard
//! that something changed: what they offer is one client's, or ends with a call.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::Notify;
use toolstead_domain::tool::Tool;

/// The lists of other connections, as far as they count.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    offered: Mutex<Offered>,
    last: AtomicU64,
    /// A list changed over one of them.
    pub(super) news: Notify,
    /// Other tools are offered there than before.
    pub(super) changed: Notify,
}

#[derive(Debug, Default)]
struct Offered {
    /// Whose the tools are.
    by: u64,
    tools: Arc<Vec<Tool>>,
}

impl Elsewhere {
    /// The name under which a connection offers; whoever did so before does no more.
    pub(super) fn begin(&self) -> u64 {
        let by = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.offered().by = by;
        by
    }

    /// Offers these tools, in the place of those before.
    pub(super) fn offer(&self, by: u64, tools: Vec<Tool>) {
        let mut offered = self.offered();
        if offered.by == by && *offered.tools != tools {
            offered.tools = Arc::new(tools);
            self.changed.notify_one();
        }
    }

    /// Ends the offer. `false` where another connection has taken its place.
    pub(super) fn end(&self, by: u64) -> bool {
        self.offer(by, Vec::new());
        self.offered().by == by
    }

    /// The tools that are offered there.
    pub(super) fn tools(&self) -> Arc<Vec<Tool>> {
        self.offered().tools.clone()
    }

    fn offered(&self) -> MutexGuard<'_, Offered> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
