//! Journal of file changes: entries in the database, contents in files.

use super::{
    blobs::{BlobFileDraft, BlobFolder},
    contents,
    fault::{Fault, store_error},
    writer::WriterHandle,
};
use async_trait::async_trait;
use futures::FutureExt;
use sha2::{Digest, Sha256};
use sqlx::{Connection, Row, SqliteConnection, SqlitePool, sqlite::SqliteRow};
use std::{
    ffi::OsString,
    io::{self, Read},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    sync::Arc,
};
use toolstead_domain::{
    CallId, ChangeJournal, ContentDigest, FileChange, FileState, JournalEntry, Principal, StoreError, StoredBlob,
    Timestamp,
};
use uuid::Uuid;

/// Adapter that writes through the [`WriterHandle`] and reads from the pool.
#[derive(Debug)]
pub(super) struct SqliteChangeJournal {
    writer: WriterHandle,
    readers: SqlitePool,
    blobs: Arc<BlobFolder>,
    workspace: PathBuf,
}

impl SqliteChangeJournal {
    /// Creates the journal of this workspace.
    pub(super) fn new(writer: WriterHandle, readers: SqlitePool, blobs: Arc<BlobFolder>, workspace: PathBuf) -> Self {
        Self { writer, readers, blobs, workspace }
    }

    async fn keep(&self, entry: JournalEntry, contents: Vec<StoredBlob>) -> Result<(), Arc<Fault>> {
        loop {
            // Blocks this thread, as the port permits. If all blocking threads wait for this, no further one could do
            // it.
            let prepared = contents.iter().map(|content| self.blobs.prepare(&content.bytes));
            let prepared: Vec<BlobFileDraft> = prepared.collect::<io::Result<_>>().map_err(Fault::Files)?;
            // Otherwise undoing would restore different data.
            if prepared.iter().map(BlobFileDraft::digest).ne(contents.iter().map(|content| content.digest)) {
                return Err(Fault::Unreadable("a content does not match its digest".into()).into());
            }
            let (blobs, workspace, entry) = (self.blobs.clone(), self.workspace.clone(), entry.clone());
            let inserting =
                self.writer.apply(move |connection| insert(connection, blobs, workspace, entry, prepared).boxed());
            // If retention removed a content between the two steps, it is written again.
            if inserting.await? {
                return Ok(());
            }
        }
    }

    async fn of_call(&self, principal: &Principal, call: CallId) -> Result<Option<JournalEntry>, Fault> {
        let rows = sqlx::query(
            "SELECT entry, call, session, tool, at, reverts, path, before_digest, before_mode, after_digest, after_mode,
                    made_folders
             FROM journal_entries CROSS JOIN file_changes INDEXED BY file_changes_by_entry ON entry = journal_entries.seq
             WHERE principal = $1 AND call = $2 AND workspace = $3 ORDER BY file_changes.seq",
        )
        .bind(principal.id())
        .bind(call.0)
        .bind(bytes(&self.workspace))
        .fetch_all(&self.readers)
        .await?;
        Ok(entries(principal, &rows)?.pop())
    }

    async fn newest(&self, principal: &Principal, session: &str, limit: usize) -> Result<Vec<JournalEntry>, Fault> {
        let rows = sqlx::query(
            "SELECT entry, call, session, tool, at, reverts, path, before_digest, before_mode, after_digest, after_mode,
                    made_folders
             FROM (SELECT * FROM journal_entries INDEXED BY journal_entries_by_session
                   WHERE principal = $1 AND workspace = $2 AND session = $3 ORDER BY seq DESC LIMIT $4) AS newest
             CROSS JOIN file_changes INDEXED BY file_changes_by_entry ON entry = newest.seq
             ORDER BY newest.seq DESC, file_changes.seq",
        )
        .bind(principal.id())
        .bind(bytes(&self.workspace))
        .bind(session)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(&self.readers)
        .await?;
        entries(principal, &rows)
    }

    async fn read(&self, digest: ContentDigest) -> Result<Option<Vec<u8>>, Fault> {
        // A file without a row is unreferenced and about to be removed.
        let known: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM contents WHERE digest = $1)")
            .bind(digest.0.as_slice())
            .fetch_one(&self.readers)
            .await?;
        let blobs = self.blobs.clone();
        let read = move || {
            let Some(mut file) = blobs.open(digest)? else { return Ok(None) };
            let mut content = Vec::new();
            file.read_to_end(&mut content)?;
            Ok(Some(content))
        };
        let Some(content) = (if known { contents::on_files(read).await? } else { None }) else { return Ok(None) };
        match Sha256::digest(&content).as_slice() == digest.0 {
            true => Ok(Some(content)),
            false => Err(Fault::Unreadable("a stored content is damaged".into())),
        }
    }
}

#[async_trait]
impl ChangeJournal for SqliteChangeJournal {
    async fn record(&self, entry: JournalEntry, contents: Vec<StoredBlob>) -> Result<(), StoreError> {
        let failed = format!("record what the call {} changes", entry.call);
        self.keep(entry, contents).await.map_err(|fault| store_error(failed, fault))
    }

    async fn find(&self, principal: &Principal, call: CallId) -> Result<Option<JournalEntry>, StoreError> {
        let found = self.of_call(principal, call).await;
        found.map_err(|fault| store_error(format!("read what the call {call} changed"), fault))
    }

    async fn of_session(
        &self,
        principal: &Principal,
        session: &str,
        limit: usize,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        let listed = self.newest(principal, session, limit).await;
        listed.map_err(|fault| store_error("list what the session's calls changed", fault))
    }

    async fn content(&self, digest: ContentDigest) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(digest).await.map_err(|fault| store_error(format!("read the stored content {digest}"), fault))
    }
}

/// Inserts the entry in one transaction. Returns `false` if the contents must be prepared again.
async fn insert(
    connection: &mut SqliteConnection,
    blobs: Arc<BlobFolder>,
    workspace: PathBuf,
    entry: JournalEntry,
    contents: Vec<BlobFileDraft>,
) -> Result<bool, Fault> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query(
        "INSERT INTO journal_entries (call, principal, workspace, session, tool, at, reverts)
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (principal, call) DO NOTHING",
    )
    .bind(entry.call.0)
    .bind(entry.principal.id())
    .bind(bytes(&workspace))
    .bind(&entry.session)
    .bind(&entry.tool)
    .bind(entry.at.0)
    .bind(entry.reverts.map(|call| call.0))
    .execute(&mut *transaction)
    .await?;
    let seq: i64 =
        sqlx::query_scalar("SELECT seq FROM journal_entries WHERE principal = $1 AND call = $2 AND workspace = $3")
            .bind(entry.principal.id())
            .bind(entry.call.0)
            .bind(bytes(&workspace))
            .fetch_one(&mut *transaction)
            .await?;
    for change in &entry.changes {
        sqlx::query(
            "INSERT INTO file_changes (entry, path, before_digest, before_mode, after_digest, after_mode, made_folders)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(seq)
        .bind(change.path.as_os_str().as_bytes())
        .bind(change.before.map(|state| state.digest.0.to_vec()))
        .bind(change.before.map(|state| state.mode))
        .bind(change.after.map(|state| state.digest.0.to_vec()))
        .bind(change.after.map(|state| state.mode))
        .bind(i64::try_from(change.made_folders).unwrap_or(i64::MAX))
        .execute(&mut *transaction)
        .await?;
    }
    // Last, so that a failed insert leaves no file behind.
    if !contents::keep(&mut transaction, &blobs, contents).await? {
        return Ok(false);
    }
    transaction.commit().await?;
    Ok(true)
}

/// Returns the path as stored. It need not be valid UTF-8.
fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Builds entries from rows with one change each. The rows of an entry are adjacent.
fn entries(principal: &Principal, rows: &[SqliteRow]) -> Result<Vec<JournalEntry>, Fault> {
    let mut entries: Vec<JournalEntry> = Vec::new();
    let mut last = None;
    for row in rows {
        let seq: i64 = row.try_get(0)?;
        let change = change(row)?;
        match entries.last_mut().filter(|_| last == Some(seq)) {
            Some(entry) => entry.changes.push(change),
            None => entries.push(JournalEntry {
                call: CallId(row.try_get(1)?),
                principal: principal.clone(),
                session: row.try_get(2)?,
                tool: row.try_get(3)?,
                at: Timestamp(row.try_get(4)?),
                changes: vec![change],
                reverts: row.try_get::<Option<Uuid>, _>(5)?.map(CallId),
            }),
        }
        last = Some(seq);
    }
    Ok(entries)
}

fn change(row: &SqliteRow) -> Result<FileChange, Fault> {
    let state = |digest: usize, mode: usize| -> Result<Option<FileState>, Fault> {
        let (digest, mode) = (row.try_get::<Option<&[u8]>, _>(digest)?, row.try_get::<Option<u32>, _>(mode)?);
        let state = digest.zip(mode).map(|(digest, mode)| Ok(FileState { digest: contents::digest(digest)?, mode }));
        state.transpose()
    };
    let path = PathBuf::from(OsString::from_vec(row.try_get(6)?));
    let made_folders = usize::try_from(row.try_get::<i64, _>(11)?).unwrap_or(0);
    Ok(FileChange { path, before: state(7, 8)?, after: state(9, 10)?, made_folders })
}
