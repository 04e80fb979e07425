//! Referenced contents: their rows and their files.
//!
//! Functions with a connection run on the thread that writes, and access the files there.

use super::{
    blobs::{BlobFileDraft, BlobFolder},
    fault::Fault,
};
use sqlx::{Connection, SqliteConnection};
use std::{collections::HashSet, io};
use toolstead_domain::ContentDigest;

/// SQL condition for rows of `contents` without a reference.
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

/// Gives contents their final names and inserts their rows. Returns `false` if one of them was removed since it was
/// prepared: roll back the transaction then, and prepare again. Requires a transaction with the write lock that also
/// inserts the references.
pub(super) async fn keep(
    transaction: &mut SqliteConnection,
    blobs: &BlobFolder,
    mut contents: Vec<BlobFileDraft>,
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

/// Returns the size of all contents in bytes.
pub(super) async fn total(connection: &mut SqliteConnection) -> Result<u64, Fault> {
    let bytes: i64 = sqlx::query_scalar("SELECT bytes FROM contents_total").fetch_one(connection).await?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Deletes the row of a content without references, and returns its size in bytes. Returns `None` if the content has
/// references or no row. Delete its file in a later transaction: a rollback does not restore files.
pub(super) async fn forget_if_unneeded(connection: &mut SqliteConnection, digest: &[u8]) -> Result<Option<u64>, Fault> {
    let bytes: Option<i64> =
        sqlx::query_scalar(concat!("DELETE FROM contents WHERE digest = $1 AND ", unneeded!(), " RETURNING bytes"))
            .bind(digest)
            .fetch_optional(connection)
            .await?;
    Ok(bytes.map(i64::unsigned_abs))
}

/// Deletes those files whose contents have no row, under the write lock of one transaction.
pub(super) async fn remove_unknown(
    connection: &mut SqliteConnection,
    blobs: &BlobFolder,
    digests: &[ContentDigest],
) -> Result<(), Fault> {
    let transaction = &mut connection.begin_with("BEGIN IMMEDIATE").await?;
    for digest in digests {
        let known: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM contents WHERE digest = $1)")
            .bind(digest.0.as_slice())
            .fetch_one(&mut **transaction)
            .await?;
        if !known {
            blobs.remove(*digest).map_err(Fault::Files)?;
        }
    }
    // Nothing was written, so there is nothing to commit.
    Ok(())
}

/// Deletes the rows of unreferenced contents whose digests start with this byte. Returns the digests of the others.
pub(super) async fn forget_unneeded(
    connection: &mut SqliteConnection,
    first: u8,
) -> Result<HashSet<ContentDigest>, Fault> {
    // Longer than any digest, so it sorts after all of them.
    let (start, end) = ([first], [&[first][..], &[u8::MAX; 32]].concat());
    let unneeded: bool = sqlx::query_scalar(concat!(
        "SELECT EXISTS (SELECT 1 FROM contents WHERE digest >= $1 AND digest < $2 AND ",
        unneeded!(),
        ")"
    ))
    .bind(start.as_slice())
    .bind(end.as_slice())
    .fetch_one(&mut *connection)
    .await?;
    if unneeded {
        sqlx::query(concat!("DELETE FROM contents WHERE digest >= $1 AND digest < $2 AND ", unneeded!()))
            .bind(start.as_slice())
            .bind(end.as_slice())
            .execute(&mut *connection)
            .await?;
    }
    let kept: Vec<Vec<u8>> = sqlx::query_scalar("SELECT digest FROM contents WHERE digest >= $1 AND digest < $2")
        .bind(start.as_slice())
        .bind(end.as_slice())
        .fetch_all(connection)
        .await?;
    kept.iter().map(|bytes| digest(bytes)).collect()
}

/// Parses a digest from the database.
pub(super) fn digest(bytes: &[u8]) -> Result<ContentDigest, Fault> {
    match bytes.try_into() {
        Ok(bytes) => Ok(ContentDigest(bytes)),
        Err(_) => Err(Fault::Unreadable("a digest has 32 bytes".into())),
    }
}

/// Runs file work on a blocking thread, for callers on an async thread. Do not use it on the thread that writes, which
/// may block, or in work that a blocking thread waits for: if all blocking threads wait, the work cannot start.
pub(super) async fn on_files<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Fault> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(Fault::Files),
        Err(ended) => Err(Fault::Files(io::Error::other(ended))),
    }
}
