//! Queue of notifications outside of requests.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};
use tokio::sync::Notify;
use toolstead_domain::ContextNotice;

/// Maximum number of waiting notifications; the oldest is dropped.
const UNHEARD: usize = 256;

/// Queue of notifications for one receiver.
#[derive(Debug, Default)]
pub(in crate::mcp::client) struct NoticeQueue {
    waiting: Mutex<VecDeque<ContextNotice>>,
    added: Notify,
}

impl NoticeQueue {
    /// Adds a notification. Repeated changes of one resource are queued once.
    pub(in crate::mcp::client) fn push(&self, notice: ContextNotice) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(notice, ContextNotice::ResourceUpdated { .. }) && waiting.contains(&notice) {
            return;
        }
        if waiting.len() == UNHEARD {
            waiting.pop_front();
        }
        waiting.push_back(notice);
        self.added.notify_one();
    }

    /// Waits for the next notification. Cancel-safe.
    pub(in crate::mcp::client) async fn next(&self) -> ContextNotice {
        loop {
            if let Some(notice) = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front() {
                return notice;
            }
            self.added.notified().await;
        }
    }
}
