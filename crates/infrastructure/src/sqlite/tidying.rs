//! Background cleanup of expired data and of leftovers of killed processes.

use super::{
    blobs::BlobFolder,
    contents,
    database_options::{AuditRetention, ContentRetention},
    fault::Fault,
    instance,
    retention::{self, AuditLogCutoff},
    retention_clock,
    writer::WriterHandle,
};
use futures::FutureExt;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::watch;
use toolstead_domain::Clock;
use uuid::Uuid;

/// Number of deleted items from which the log line is a warning.
const MANY: u64 = 1_000;
/// Interval of the cleanup in a long-running process. It also runs whenever the contents have grown by an eighth of
/// their maximum.
const TIDIES_EVERY: Duration = Duration::from_secs(600);

/// Background cleanup. It works in short steps between the writes of calls.
pub(super) struct DatabaseCleanup {
    pub(super) writer: WriterHandle,
    pub(super) blobs: Arc<BlobFolder>,
    pub(super) clock: Arc<dyn Clock>,
    /// Folder of the lock files.
    pub(super) instances: PathBuf,
    /// Dead processes whose leftovers are not removed yet. Their lock files remain for the next process until then.
    pub(super) dead: Vec<Uuid>,
}

impl DatabaseCleanup {
    /// Repeats the cleanup without end. Sets `done` after the first run.
    pub(super) async fn run_periodically(
        mut self,
        audit: AuditRetention,
        contents: ContentRetention,
        done: watch::Sender<bool>,
    ) {
        loop {
            let now = self.clock.now();
            let look = self.writer.apply(move |connection| retention_clock::read_clock(connection, now).boxed());
            let Ok(now) = look.await.inspect_err(|fault| not_done("find expired data", fault)) else {
                // Without a time nothing is considered expired.
                done.send_replace(true);
                tokio::time::sleep(TIDIES_EVERY).await;
                continue;
            };
            let expiry = AuditLogCutoff::at(now, audit);
            all("audit records", || self.writer.delete_expired(expiry)).await;
            match self.sweep(contents.max_bytes).await {
                Ok(()) => {}
                Err(fault) => not_done("remove the leftovers of killed processes", &fault),
            }
            all("stored outputs and file changes", || {
                let blobs = self.blobs.clone();
                self.writer.apply(move |connection| {
                    async move { retention::forget_some(connection, &blobs, contents, now).await }.boxed()
                })
            })
            .await;
            done.send_replace(true);
            tokio::select! {
                () = tokio::time::sleep(TIDIES_EVERY) => {}
                () = self.blobs.grown() => {}
            }
        }
    }

    /// Removes unreferenced contents and temporary files, such as killed processes leave behind, and the lock files of
    /// dead processes. Does nothing unless there are dead processes or the contents exceed their maximum: unreferenced
    /// contents are removed before others.
    async fn sweep(&mut self, max_bytes: u64) -> Result<(), Arc<Fault>> {
        if self.dead.is_empty()
            && self.writer.apply(|connection| contents::total(connection).boxed()).await? <= max_bytes
        {
            return Ok(());
        }
        let (unfinished, instances) = (self.blobs.clone(), self.instances.clone());
        contents::on_files(move || {
            unfinished.remove_unfinished(|id| instance::lives(&instances, id));
            Ok(())
        })
        .await?;
        sweep(&self.writer, &self.blobs).await?;
        instance::remove_lock_files(&self.instances, &std::mem::take(&mut self.dead));
        Ok(())
    }
}

/// Number of files per step.
const SWEPT_FILES: usize = 200;

/// Removes unreferenced contents and files without rows. Handles the contents by the first byte of their digests, in
/// short steps between other writes.
async fn sweep(writer: &WriterHandle, blobs: &Arc<BlobFolder>) -> Result<(), Arc<Fault>> {
    for first in 0..=u8::MAX {
        let known = writer.apply(move |connection| contents::forget_unneeded(connection, first).boxed()).await?;
        let listed = blobs.clone();
        let mut unknown = contents::on_files(move || Ok(listed.digests(first))).await?;
        unknown.retain(|digest| !known.contains(digest));
        for step in unknown.chunks(SWEPT_FILES) {
            let (blobs, step) = (blobs.clone(), step.to_vec());
            let work = writer.apply(move |connection| {
                async move { contents::remove_unknown(connection, &blobs, &step).await }.boxed()
            });
            work.await?;
        }
    }
    Ok(())
}

/// Repeats the step until it deletes nothing or fails, and logs the number of deleted items.
async fn all<F: Future<Output = Result<u64, Arc<Fault>>>>(what: &str, mut step: impl FnMut() -> F) {
    let mut deleted = 0;
    loop {
        match step().await {
            Ok(0) => break,
            Ok(some) => deleted += some,
            Err(fault) => {
                not_done(&format!("delete old {what}"), &fault);
                break;
            }
        }
    }
    match deleted {
        0 => {}
        MANY.. => tracing::warn!(deleted, "deleted {what} beyond the configured age or number"),
        _ => tracing::info!(deleted, "deleted {what} beyond the configured age or number"),
    }
}

/// Logs a failure, unless the database is closed.
fn not_done(what: &str, fault: &Arc<Fault>) {
    if !matches!(**fault, Fault::Closed) {
        let fault: &(dyn std::error::Error + 'static) = &**fault;
        tracing::warn!(error = fault, "could not {what}");
    }
}
