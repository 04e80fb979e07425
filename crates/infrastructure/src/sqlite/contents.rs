//! Which contents are needed, and the way there and back: rows and files together.
//!
//! What takes a connection runs on the thread that writes, and touches the files right there.

use super::{
    blobs::{Blobs, Prepared},
    fault::Fault,
};
use sqlx::SqliteConnection;
use std::{io, sync::Arc};
use toolstead_domain::content_digest::ContentDigest;

/// A condition on a row of `contents`: nothing needs it.
macro_rules! unneeded {
    () => {
        "NOT EXISTS (SELECT 1 FROM stored_outputs INDEXED BY stored_outputs_by_digest
                     WHERE stored_outputs.digest = contents.digest)
         AND NOT EXISTS (SELECT 1 FROM file_changes INDEXED BY file_changes_by_before
                         WHERE before_digest IS NOT NULL AND before_digest = contents.digest)
         AND NOT EXISTS (SELECT 1 FROM file_changes INDEXED BY file_changes_by_after
                         WHERE after_digest IS NOT NULL AND after_digest = contents.digest)"
    };
}

/// Names contents and puts them down as kept. Returns false if one of them was removed since it was prepared: then the
/// transaction has to be given up and all of it be done again. Only in a transaction that holds the write lock; what
/// needs the contents is written in the same one.
pub(super) async fn keep(
    transaction: &mut SqliteConnection,
    blobs: &Blobs,
    mut contents: Vec<Prepared>,
) -> Result<bool, Fault> {
    for content in &contents {
        sqlx::query("INSERT INTO contents (digest, bytes) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING")
            .bind(content.digest().0.as_slice())
            .bind(i64::try_from(content.bytes()).unwrap_or(i64::MAX))
            .execute(&mut *transaction)
            .await?;
    }
    for content in &mut contents {
        if !blobs.adopt(content).map_err(Fault::Files)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether nothing needs the content, and if so its size.
pub(super) async fn size_if_unneeded(connection: &mut SqliteConnection, digest: &[u8]) -> Result<Option<u64>, Fault> {
    let bytes: Option<i64> =
        sqlx::query_scalar(concat!("SELECT bytes FROM contents WHERE digest = $1 AND ", unneeded!()))
            .bind(digest)
            .fetch_optional(connection)
            .await?;
    Ok(bytes.map(i64::unsigned_abs))
}

/// Removes those of the contents that nothing needs. The rows that needed them must have been deleted in an earlier
/// transaction: a file that is gone does not come back when a transaction is given up.
pub(super) async fn remove_unneeded(
    transaction: &mut SqliteConnection,
    blobs: &Blobs,
    digests: &[Vec<u8>],
) -> Result<(), Fault> {
    let mut removed = Vec::new();
    for digest in digests {
        let deleted = sqlx::query(concat!("DELETE FROM contents WHERE digest = $1 AND ", unneeded!()))
            .bind(digest.as_slice())
            .execute(&mut *transaction)
            .await?;
        if deleted.rows_affected() > 0 {
            removed.push(self::digest(digest)?);
        }
    }
    removed.into_iter().try_for_each(|digest| blobs.remove(digest)).map_err(Fault::Files)
}

/// Removes what killed processes left behind: contents that nothing needs, and files of which no row knows.
pub(super) async fn sweep(transaction: &mut SqliteConnection, blobs: &Arc<Blobs>) -> Result<(), Fault> {
    let unneeded: Vec<Vec<u8>> = sqlx::query_scalar(concat!("SELECT digest FROM contents WHERE ", unneeded!()))
        .fetch_all(&mut *transaction)
        .await?;
    remove_unneeded(transaction, blobs, &unneeded).await?;
    let files = {
        let blobs = blobs.clone();
        on_files(move || Ok(blobs.digests())).await?
    };
    let mut unknown = Vec::new();
    for digest in files {
        let known: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM contents WHERE digest = $1)")
            .bind(digest.0.as_slice())
            .fetch_one(&mut *transaction)
            .await?;
        if !known {
            unknown.push(digest);
        }
    }
    let blobs = blobs.clone();
    on_files(move || unknown.into_iter().try_for_each(|digest| blobs.remove(digest))).await
}

/// A digest as the database keeps it.
pub(super) fn digest(bytes: &[u8]) -> Result<ContentDigest, Fault> {
    match bytes.try_into() {
        Ok(bytes) => Ok(ContentDigest(bytes)),
        Err(_) => Err(Fault::Unreadable("a digest has 32 bytes".into())),
    }
}

/// Does work on the files of contents where it holds up nobody: for whoever is asked by a call. Not for the thread that
/// writes, which may block, nor for anybody whom a blocking thread waits for: where all of those wait, none is left.
pub(super) async fn on_files<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Fault> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(Fault::Files),
        Err(ended) => Err(Fault::Files(io::Error::other(ended))),
    }
}
