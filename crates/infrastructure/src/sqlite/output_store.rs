//! Store of large outputs: rows in the database, contents in files.

use super::{
    blobs::{BlobFileDraft, BlobFolder},
    contents,
    fault::{Fault, store_error},
    writer::WriterHandle,
};
use async_trait::async_trait;
use futures::FutureExt;
use sqlx::{Connection, Row, SqliteConnection, SqlitePool, sqlite::SqliteRow};
use std::{
    num::NonZeroU64,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolstead_domain::{
    CallId, Clock, OutputHandle, OutputStore, Principal, StoreError, StoredContent, StoredOutput, Timestamp,
};

/// Adapter that writes through the [`WriterHandle`] and reads from the pool.
pub(super) struct SqliteOutputStore {
    writer: WriterHandle,
    readers: SqlitePool,
    blobs: Arc<BlobFolder>,
    clock: Arc<dyn Clock>,
    workspace: PathBuf,
}

/// New output without its content.
#[derive(Debug, Clone)]
struct NewOutputMetadata {
    principal: String,
    workspace: Vec<u8>,
    call: CallId,
    media_type: String,
    now: Timestamp,
}

impl SqliteOutputStore {
    /// Creates the store of this workspace.
    pub(super) fn new(
        writer: WriterHandle,
        readers: SqlitePool,
        blobs: Arc<BlobFolder>,
        clock: Arc<dyn Clock>,
        workspace: PathBuf,
    ) -> Self {
        Self { writer, readers, blobs, clock, workspace }
    }

    async fn keep(&self, output: NewOutputMetadata, content: &[u8]) -> Result<StoredOutput, Arc<Fault>> {
        let content: Arc<[u8]> = content.into();
        loop {
            let (blobs, content) = (self.blobs.clone(), content.clone());
            let prepared = contents::on_files(move || blobs.prepare(&content)).await?;
            let (blobs, output) = (self.blobs.clone(), output.clone());
            let stored = self.writer.apply(move |connection| insert(connection, blobs, output, prepared).boxed());
            // If retention removed the content between the two steps, it is written again.
            if let Some(stored) = stored.await? {
                return Ok(stored);
            }
        }
    }

    async fn row(&self, principal: &Principal, handle: OutputHandle) -> Result<Option<StoredOutput>, Fault> {
        // Numbers beyond the range of the database were never assigned.
        let Ok(number) = i64::try_from(handle.0.get()) else { return Ok(None) };
        let row = sqlx::query(
            "SELECT number, bytes, media_type, digest FROM stored_outputs
             WHERE principal = $1 AND number = $2 AND workspace = $3",
        )
        .bind(principal.id())
        .bind(number)
        .bind(bytes(&self.workspace))
        .fetch_optional(&self.readers)
        .await?;
        row.as_ref().map(read).transpose()
    }

    async fn content(&self, stored: StoredOutput) -> Result<Option<Box<dyn StoredContent>>, Fault> {
        let blobs = self.blobs.clone();
        let file = contents::on_files(move || blobs.open(stored.digest)).await?;
        Ok(file.map(|file| Box::new(file) as Box<dyn StoredContent>))
    }
}

#[async_trait]
impl OutputStore for SqliteOutputStore {
    async fn store(
        &self,
        principal: &Principal,
        call: CallId,
        media_type: &str,
        content: &[u8],
    ) -> Result<StoredOutput, StoreError> {
        let (principal, media_type) = (principal.id().to_owned(), media_type.to_owned());
        let workspace = bytes(&self.workspace).to_vec();
        let output = NewOutputMetadata { principal, workspace, call, media_type, now: self.clock.now() };
        self.keep(output, content)
            .await
            .map_err(|fault| store_error(format!("store an output of the call {call}"), fault))
    }

    async fn find(&self, principal: &Principal, handle: OutputHandle) -> Result<Option<StoredOutput>, StoreError> {
        self.row(principal, handle).await.map_err(|fault| store_error(format!("find the output {handle}"), fault))
    }

    async fn open(
        &self,
        principal: &Principal,
        handle: OutputHandle,
    ) -> Result<Option<Box<dyn StoredContent>>, StoreError> {
        let opened = match self.row(principal, handle).await {
            Ok(Some(stored)) => self.content(stored).await,
            Ok(None) => Ok(None),
            Err(fault) => Err(fault),
        };
        opened.map_err(|fault| store_error(format!("open the output {handle}"), fault))
    }

    async fn latest(&self, principal: &Principal, limit: usize) -> Result<Vec<StoredOutput>, StoreError> {
        let rows = sqlx::query(
            "SELECT number, bytes, media_type, digest FROM stored_outputs WHERE principal = $1 AND workspace = $2
             ORDER BY number DESC LIMIT $3",
        )
        .bind(principal.id())
        .bind(bytes(&self.workspace))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(&self.readers)
        .await;
        rows.map_err(Fault::from)
            .and_then(|rows| rows.iter().map(read).collect())
            .map_err(|fault| store_error("list the latest outputs", fault))
    }
}

/// Inserts the output in one transaction. Returns `None` if the content must be prepared again.
async fn insert(
    connection: &mut SqliteConnection,
    blobs: Arc<BlobFolder>,
    output: NewOutputMetadata,
    content: BlobFileDraft,
) -> Result<Option<StoredOutput>, Fault> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let (digest, bytes) = (content.digest(), content.bytes());
    let known = sqlx::query(
        "UPDATE stored_outputs SET stored = max(stored, $5)
         WHERE principal = $1 AND workspace = $2 AND digest = $3 AND media_type = $4
         RETURNING number, bytes, media_type, digest",
    )
    .bind(&output.principal)
    .bind(&output.workspace)
    .bind(digest.0.as_slice())
    .bind(&output.media_type)
    .bind(output.now.0)
    .fetch_optional(&mut *transaction)
    .await?;
    let row = match known {
        Some(row) => row,
        None => {
            let number: i64 = sqlx::query_scalar(
                "INSERT INTO output_numbers (principal, last) VALUES ($1, 1)
                 ON CONFLICT (principal) DO UPDATE SET last = last + 1 RETURNING last",
            )
            .bind(&output.principal)
            .fetch_one(&mut *transaction)
            .await?;
            sqlx::query(
                "INSERT INTO stored_outputs (principal, workspace, number, media_type, digest, bytes, call, stored)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING number, bytes, media_type, digest",
            )
            .bind(&output.principal)
            .bind(&output.workspace)
            .bind(number)
            .bind(&output.media_type)
            .bind(digest.0.as_slice())
            .bind(i64::try_from(bytes).unwrap_or(i64::MAX))
            .bind(output.call.0)
            .bind(output.now.0)
            .fetch_one(&mut *transaction)
            .await?
        }
    };
    let stored = read(&row)?;
    // Last, so that a failed insert leaves no file behind.
    if !contents::keep(&mut transaction, &blobs, vec![content]).await? {
        return Ok(None);
    }
    transaction.commit().await?;
    Ok(Some(stored))
}

/// Returns the path as stored. It need not be valid UTF-8.
fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn read(row: &SqliteRow) -> Result<StoredOutput, Fault> {
    let number = u64::try_from(row.try_get::<i64, _>(0)?).ok().and_then(NonZeroU64::new);
    let number = number.ok_or_else(|| Fault::Unreadable("a handle's number is positive".into()))?;
    Ok(StoredOutput {
        handle: OutputHandle(number),
        bytes: row.try_get::<i64, _>(1)?.unsigned_abs(),
        media_type: row.try_get(2)?,
        digest: contents::digest(row.try_get(3)?)?,
    })
}
