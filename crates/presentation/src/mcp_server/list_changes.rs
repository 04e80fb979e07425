//! When to tell a client that the list of tools changed.

use std::time::Duration;
use tokio::{sync::watch, time::Instant};

/// No client hears of a change more often than this. One that comes alone is told at once.
const BETWEEN_TWO: Duration = Duration::from_millis(250);

/// The changes of the registry as one client hears of them: many in a row become one.
#[derive(Debug)]
pub(super) struct ListChanges {
    versions: watch::Receiver<u64>,
    due: bool,
    not_before: Option<Instant>,
}

impl ListChanges {
    /// Changes from now on.
    pub(super) fn new(mut versions: watch::Receiver<u64>) -> Self {
        versions.mark_unchanged();
        Self { versions, due: false, not_before: None }
    }

    /// Returns when the client is to be told; `None` once nothing can change any more. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<()> {
        if !self.due {
            self.versions.changed().await.ok()?;
            self.due = true;
        }
        if let Some(not_before) = self.not_before {
            tokio::time::sleep_until(not_before).await;
        }
        // What changed meanwhile is told along with it.
        self.versions.mark_unchanged();
        self.due = false;
        self.not_before = Some(Instant::now() + BETWEEN_TWO);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn a_single_change_is_told_at_once_and_a_storm_once_more_at_its_end() {
        let versions = watch::Sender::new(0);
        let mut changes = ListChanges::new(versions.subscribe());
        assert_eq!(changes.next().now_or_never(), None);
        versions.send_replace(1);
        assert_eq!(changes.next().now_or_never(), Some(Some(())));
        for version in 2..1000 {
            versions.send_replace(version);
            assert_eq!(changes.next().now_or_never(), None);
        }
        assert_eq!(changes.next().await, Some(()));
        assert_eq!(changes.next().now_or_never(), None);
        drop(versions);
        assert_eq!(changes.next().await, None);
    }
}
