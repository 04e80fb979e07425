//! What a server said outside of requests and nobody has heard yet.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};
use tokio::sync::Notify;
use toolstead_domain::context::notice::ContextNotice;

/// So much waits to be heard; the oldest gives way.
const UNHEARD: usize = 256;

/// A queue with one listener.
#[derive(Debug, Default)]
pub(in crate::mcp::client) struct Said {
    waiting: Mutex<VecDeque<ContextNotice>>,
    news: Notify,
}

impl Said {
    /// Adds to it. A change of a resource that waits to be told is told once.
    pub(in crate::mcp::client) fn push(&self, notice: ContextNotice) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(notice, ContextNotice::ResourceUpdated { .. }) && waiting.contains(&notice) {
            return;
        }
        if waiting.len() == UNHEARD {
            waiting.pop_front();
        }
        waiting.push_back(notice);
        self.news.notify_one();
    }

    /// The next of it. Cancel-safe.
    pub(in crate::mcp::client) async fn next(&self) -> ContextNotice {
        loop {
            if let Some(notice) = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front() {
                return notice;
            }
            self.news.notified().await;
        }
    }
}
