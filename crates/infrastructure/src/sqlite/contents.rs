//! The contents that are needed: their rows, and their files with them.
//!
//! All that takes a connection runs on the thread that writes, and touches the files right there.

use super::{
    blobs::{Blobs, Prepared},
    fault::Fault,
};
use sqlx::{Connection, SqliteConnection};
use std::{collections::HashSet, io};
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

/// The bytes of all contents.
pub(super) async fn total(connection: &mut SqliteConnection) -> Result<u64, Fault> {
    let bytes: i64 = sqlx::query_scalar("SELECT bytes FROM contents_total").fetch_one(connection).await?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Puts a content down as no longer kept if nothing needs it, and returns its size then. Its file is to be removed in a
/// later transaction: a file that is gone does not come back when a transaction is given up.
pub(super) async fn forget_if_unneeded(connection: &mut SqliteConnection, digest: &[u8]) -> Result<Option<u64>, Fault> {
    let bytes: Option<i64> =
        sqlx::query_scalar(concat!("DELETE FROM contents WHERE digest = $1 AND ", unneeded!(), " RETURNING bytes"))
            .bind(digest)
            .fetch_optional(connection)
            .await?;
    Ok(bytes.map(i64::unsigned_abs))
}

/// Removes those of the files that are put down as kept no longer. One transaction.
pub(super) async fn remove_unknown(
    connection: &mut SqliteConnection,
    blobs: &Blobs,
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

/// Puts those contents down as no longer kept that nothing needs, of all whose digests begin with that byte, and returns
/// the others.
pub(super) async fn forget_unneeded(
    connection: &mut SqliteConnection,
    first: u8,
) -> Result<HashSet<ContentDigest>, Fault> {
    // Longer than any digest, so that it comes after all of them.
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
