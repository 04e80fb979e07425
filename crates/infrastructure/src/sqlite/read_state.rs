//! Read-state of files, for sessions that resume in another process.

use super::{
    contents,
    fault::{Fault, store_error},
    writer::WriterHandle,
};
use async_trait::async_trait;
use futures::FutureExt;
use sqlx::{Connection, SqliteConnection, SqlitePool};
use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};
use toolstead_domain::{ContentDigest, Principal, ReadState, StoreError};

/// Maximum number of stored files per session; [`IN_ALL`] is the maximum in total.
const OF_A_SESSION: i64 = 4_000;
const IN_ALL: i64 = 20_000;

/// Adapter that writes through the [`WriterHandle`] and reads from the pool.
pub(super) struct SqliteReadState {
    writer: WriterHandle,
    readers: SqlitePool,
    workspace: PathBuf,
}

/// Key of a row: a file in a session.
struct ReadStateKey {
    principal: String,
    workspace: Vec<u8>,
    session: String,
    path: Vec<u8>,
}

impl SqliteReadState {
    /// Creates the store of this workspace's read-state.
    pub(super) fn new(writer: WriterHandle, readers: SqlitePool, workspace: PathBuf) -> Self {
        Self { writer, readers, workspace }
    }

    fn name(&self, principal: &Principal, session: &str, real: &Path) -> ReadStateKey {
        ReadStateKey {
            principal: principal.id().to_owned(),
            workspace: self.workspace.as_os_str().as_bytes().to_vec(),
            session: session.to_owned(),
            path: real.as_os_str().as_bytes().to_vec(),
        }
    }

    async fn read(&self, name: ReadStateKey) -> Result<Option<ContentDigest>, Fault> {
        let digest: Option<Vec<u8>> = sqlx::query_scalar(
            "SELECT digest FROM seen_files WHERE principal = $1 AND workspace = $2 AND session = $3 AND path = $4",
        )
        .bind(name.principal)
        .bind(name.workspace)
        .bind(name.session)
        .bind(name.path)
        .fetch_optional(&self.readers)
        .await?;
        digest.map(|digest| contents::digest(&digest)).transpose()
    }
}

#[async_trait]
impl ReadState for SqliteReadState {
    async fn record_version(
        &self,
        principal: &Principal,
        session: &str,
        real: &Path,
        digest: ContentDigest,
    ) -> Result<(), StoreError> {
        let name = self.name(principal, session, real);
        let kept = self.writer.apply(move |connection| keep(connection, name, digest).boxed()).await;
        kept.map_err(|fault| store_error("store the known version of a file", fault))
    }

    async fn forget(&self, principal: &Principal, session: &str, real: &Path) -> Result<(), StoreError> {
        let name = self.name(principal, session, real);
        let forgotten = self.writer.apply(move |connection| delete(connection, name).boxed()).await;
        forgotten.map_err(|fault| store_error("delete the known version of a file", fault))
    }

    async fn known(
        &self,
        principal: &Principal,
        session: &str,
        real: &Path,
    ) -> Result<Option<ContentDigest>, StoreError> {
        let known = self.read(self.name(principal, session, real)).await;
        known.map_err(|fault| store_error("look up the known version of a file", fault))
    }
}

/// Replaces the digest of the file, and deletes the oldest rows over the limits.
async fn keep(connection: &mut SqliteConnection, name: ReadStateKey, digest: ContentDigest) -> Result<(), Fault> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query(
        "INSERT OR REPLACE INTO seen_files (seq, principal, workspace, session, path, digest)
         VALUES ((SELECT coalesce(max(seq), 0) + 1 FROM seen_files), $1, $2, $3, $4, $5)",
    )
    .bind(&name.principal)
    .bind(&name.workspace)
    .bind(&name.session)
    .bind(&name.path)
    .bind(digest.0.as_slice())
    .execute(&mut *transaction)
    .await?;
    sqlx::query(
        "DELETE FROM seen_files WHERE principal = $1 AND workspace = $2 AND session = $3 AND seq <= (
             SELECT seq FROM seen_files WHERE principal = $1 AND workspace = $2 AND session = $3
             ORDER BY seq DESC LIMIT 1 OFFSET $4)",
    )
    .bind(&name.principal)
    .bind(&name.workspace)
    .bind(&name.session)
    .bind(OF_A_SESSION)
    .execute(&mut *transaction)
    .await?;
    sqlx::query("DELETE FROM seen_files WHERE seq <= (SELECT seq FROM seen_files ORDER BY seq DESC LIMIT 1 OFFSET $1)")
        .bind(IN_ALL)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(())
}

async fn delete(connection: &mut SqliteConnection, name: ReadStateKey) -> Result<(), Fault> {
    sqlx::query("DELETE FROM seen_files WHERE principal = $1 AND workspace = $2 AND session = $3 AND path = $4")
        .bind(name.principal)
        .bind(name.workspace)
        .bind(name.session)
        .bind(name.path)
        .execute(connection)
        .await?;
    Ok(())
}
