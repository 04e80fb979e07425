//! The work in the background: deletes what need not be kept any longer, and what killed processes left behind.

use super::{
    blobs::Blobs,
    contents,
    database_options::{ContentRetention, Retention},
    fault::Fault,
    instance, passed_time,
    retention::{self, Expiry},
    writer::Writer,
};
use futures::FutureExt;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::watch;
use toolstead_domain::ports::clock::Clock;
use uuid::Uuid;

/// Who hears warnings alone is told when as many rows, or outputs and changes, are deleted at once.
const MANY: u64 = 1_000;
/// A process that runs for long looks so often for what need not be kept any longer, and whenever the contents have
/// grown by an eighth of what they may have.
const TIDIES_EVERY: Duration = Duration::from_secs(600);

/// Deletes what need not be kept, step by step, between the writes of others.
pub(super) struct Tidying {
    pub(super) writer: Writer,
    pub(super) blobs: Arc<Blobs>,
    pub(super) clock: Arc<dyn Clock>,
    /// The folder of the lock files.
    pub(super) instances: PathBuf,
    /// The processes whose leftovers have not been swept yet. Their lock files say so to whoever comes next.
    pub(super) dead: Vec<Uuid>,
}

impl Tidying {
    /// Tidies now and then, without end. Says `done` once the first time is over.
    pub(super) async fn again_and_again(
        mut self,
        audit: Retention,
        contents: ContentRetention,
        done: watch::Sender<bool>,
    ) {
        loop {
            let now = self.clock.now();
            let look = self.writer.apply(move |connection| passed_time::look(connection, now).boxed());
            let Ok(now) = look.await.inspect_err(|fault| not_done("look at what is old", fault)) else {
                // Without a clock nothing is old.
                done.send_replace(true);
                tokio::time::sleep(TIDIES_EVERY).await;
                continue;
            };
            let expiry = Expiry::at(now, audit);
            all("rows of the audit trail", || self.writer.delete_expired(expiry)).await;
            match self.sweep(contents.max_bytes).await {
                Ok(()) => {}
                Err(fault) => not_done("remove what killed processes left behind", &fault),
            }
            all("outputs and changes of files", || {
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

    /// Removes what killed processes left of contents. Also before something is forgotten to make space: what nothing
    /// needs goes first.
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

/// As many files are removed in one step.
const SWEPT_FILES: usize = 200;

/// Removes what killed processes left behind: contents that nothing needs, and files of which no row knows. Goes through
/// the contents by the first byte of their digests, each a few steps between the writes of others.
async fn sweep(writer: &Writer, blobs: &Arc<Blobs>) -> Result<(), Arc<Fault>> {
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

/// Takes steps until there is nothing left to do.
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
        MANY.. => tracing::warn!(deleted, "deleted {what} that are older, or more, than the configuration keeps"),
        _ => tracing::info!(deleted, "deleted {what} that are older, or more, than the configuration keeps"),
    }
}

/// Tells what could not be done. That the database is closed is no news.
fn not_done(what: &str, fault: &Arc<Fault>) {
    if !matches!(**fault, Fault::Closed) {
        let fault: &(dyn std::error::Error + 'static) = &**fault;
        tracing::warn!(error = fault, "could not {what}");
    }
}
