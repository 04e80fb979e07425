//! Tools and list changes of pooled connections.
//!
//! All principals share one pooled connection: that of callers without capabilities. Its tools are offered in addition
//! to those of the catalogue connection, so that tools which such a call adds in its process can be used. Other pooled
//! connections only report that something changed, because their tools belong to one client or end with a call.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::Notify;
use toolstead_domain::Tool;

/// Tools of the shared pooled connection, and change notifications of all pooled connections.
#[derive(Debug, Default)]
pub(in crate::mcp::client) struct PooledTools {
    offered: Mutex<ConnectionTools>,
    last: AtomicU64,
    /// Notified when a pooled connection has reported a changed list.
    pub(in crate::mcp::client) list_changed: Notify,
    /// Notified when the offered tools have changed.
    pub(in crate::mcp::client) changed: Notify,
}

#[derive(Debug, Default)]
struct ConnectionTools {
    /// Id of the connection that offers the tools.
    by: u64,
    tools: Arc<Vec<Tool>>,
}

impl PooledTools {
    /// Returns the id under which a connection offers tools. Offers of the previous connection are ignored from now on.
    pub(in crate::mcp::client) fn begin(&self) -> u64 {
        let by = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.offered().by = by;
        by
    }

    /// Replaces the offered tools and notifies `changed`. Does nothing if they are equal, or if `by` is no longer the
    /// connection that offers.
    pub(in crate::mcp::client) fn offer(&self, by: u64, tools: Vec<Tool>) {
        let mut offered = self.offered();
        if offered.by == by && *offered.tools != tools {
            offered.tools = Arc::new(tools);
            self.changed.notify_one();
        }
    }

    /// Withdraws the tools of the connection `by`. Does nothing and returns `false` if another connection has replaced
    /// it.
    pub(in crate::mcp::client) fn end(&self, by: u64) -> bool {
        self.offer(by, Vec::new());
        self.offered().by == by
    }

    /// Returns the offered tools.
    pub(in crate::mcp::client) fn tools(&self) -> Arc<Vec<Tool>> {
        self.offered().tools.clone()
    }

    fn offered(&self) -> MutexGuard<'_, ConnectionTools> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
