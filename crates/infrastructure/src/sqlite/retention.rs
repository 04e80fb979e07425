//! Deletion of expired data: audit records, large outputs, and contents of changed files.

use super::{
    blobs::BlobFolder,
    contents,
    database_options::{AuditRetention, ContentRetention},
    fault::Fault,
};
use sqlx::{Connection, SqliteConnection};
use std::time::Duration;
use toolstead_domain::Timestamp;

/// Limits of the audit log at a point in time.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuditLogCutoff {
    /// Time before which calls of expired records started.
    pub(super) older_than: Timestamp,
    /// Maximum number of records.
    pub(super) max_rows: u64,
}

impl AuditLogCutoff {
    /// Returns the limits at this time.
    pub(super) fn at(now: Timestamp, retention: AuditRetention) -> Self {
        Self { older_than: before(now, retention.max_age), max_rows: retention.max_rows }
    }
}

/// Returns the time that is `age` before `now`.
fn before(now: Timestamp, age: Duration) -> Timestamp {
    Timestamp(now.0.saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX)))
}

/// Number of rows per step: it takes some milliseconds, for which recording waits.
const STEP: i64 = 500;

/// Deletes some expired rows, except those of running calls. Returns their number, which is 0 when none is left.
///
/// Reads only the rows that were recorded first, so that an audit log without expired rows costs one short read at any
/// length.
pub(super) async fn delete_some(connection: &mut SqliteConnection, expiry: AuditLogCutoff) -> Result<u64, Fault> {
    let deleted = sqlx::query(
        "DELETE FROM tool_executions WHERE seq IN (
             SELECT seq FROM (SELECT seq, started, instance FROM tool_executions ORDER BY seq LIMIT $3)
             WHERE instance IS NULL
               AND (started < $1 OR seq <= (SELECT max(seq) FROM tool_executions) - $2))",
    )
    .bind(expiry.older_than.0)
    .bind(i64::try_from(expiry.max_rows).unwrap_or(i64::MAX))
    .bind(STEP)
    .execute(connection)
    .await?;
    Ok(deleted.rows_affected())
}

/// Maximum number of outputs and journal entries per step.
const CONTENT_STEP: u64 = 50;

/// Deletes some expired outputs and journal entries, oldest first, and then the contents without references. Returns
/// the number of outputs and entries, which is 0 when none is left.
pub(super) async fn forget_some(
    connection: &mut SqliteConnection,
    blobs: &BlobFolder,
    retention: ContentRetention,
    now: Timestamp,
) -> Result<u64, Fault> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let (mut kept, oldest) = (contents::total(&mut transaction).await?, before(now, retention.max_age));
    let (mut forgotten, mut digests) = (0, Vec::new());
    while forgotten < CONTENT_STEP {
        let Some((is_output, seq, time)) = oldest_of_all(&mut transaction).await? else { break };
        if Timestamp(time) >= oldest && kept <= retention.max_bytes {
            break;
        }
        for digest in forget(&mut transaction, is_output, seq).await? {
            if let Some(bytes) = contents::forget_if_unneeded(&mut transaction, &digest).await? {
                kept = kept.saturating_sub(bytes);
                digests.push(contents::digest(&digest)?);
            }
        }
        forgotten += 1;
    }
    transaction.commit().await?;
    if !digests.is_empty() {
        contents::remove_unknown(connection, blobs, &digests).await?;
    }
    Ok(forgotten)
}

/// Returns the oldest output or entry: `true` for an output, its row, and its time.
async fn oldest_of_all(connection: &mut SqliteConnection) -> Result<Option<(bool, i64, i64)>, Fault> {
    let row = sqlx::query_as(
        "SELECT is_output, seq, time FROM (
             SELECT * FROM (SELECT 1 AS is_output, seq, stored AS time
                            FROM stored_outputs INDEXED BY stored_outputs_by_time ORDER BY stored, seq LIMIT 1)
             UNION ALL
             SELECT * FROM (SELECT 0 AS is_output, seq, at AS time
                            FROM journal_entries INDEXED BY journal_entries_by_time ORDER BY at, seq LIMIT 1))
         ORDER BY time LIMIT 1",
    )
    .fetch_optional(connection)
    .await?;
    Ok(row)
}

/// Deletes a stored output or a journal entry. Returns the digests of its contents.
async fn forget(connection: &mut SqliteConnection, is_output: bool, seq: i64) -> Result<Vec<Vec<u8>>, Fault> {
    if is_output {
        let statement = "DELETE FROM stored_outputs WHERE seq = $1 RETURNING digest";
        return Ok(sqlx::query_scalar(statement).bind(seq).fetch_all(connection).await?);
    }
    let digests = sqlx::query_scalar(
        "SELECT before_digest FROM file_changes WHERE entry = $1 AND before_digest IS NOT NULL
         UNION SELECT after_digest FROM file_changes WHERE entry = $1 AND after_digest IS NOT NULL",
    )
    .bind(seq)
    .fetch_all(&mut *connection)
    .await?;
    // Its rows in `file_changes` are deleted by the foreign key.
    sqlx::query("DELETE FROM journal_entries WHERE seq = $1").bind(seq).execute(connection).await?;
    Ok(digests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{
        new_database::{TestDatabase, new_database},
        pending_record::PendingRecord,
    };
    use toolstead_domain::{ToolExecution, testing::samples};
    use uuid::Uuid;

    /// Records the rows, deletes the expired ones, and compares the rest.
    async fn check(rows: &[ToolExecution], expiry: AuditLogCutoff, left: &[u32]) {
        let TestDatabase { folder: _folder, mut connection, mut recorder, .. } = new_database().await;
        let recorded: Vec<PendingRecord> =
            rows.iter().map(|execution| PendingRecord::new(execution, Uuid::max())).collect();
        assert!(recorder.record(recorded.iter()).unwrap().iter().all(Result::is_ok));
        let mut deleted = 0;
        loop {
            match delete_some(&mut connection, expiry).await.unwrap() {
                0 => break,
                some => deleted += some,
            }
        }
        let ids: Vec<Uuid> =
            sqlx::query_scalar("SELECT id FROM tool_executions ORDER BY id").fetch_all(&mut connection).await.unwrap();
        assert_eq!(ids, left.iter().map(|number| samples::call_id(*number).0).collect::<Vec<_>>());
        assert_eq!(deleted as usize, rows.len() - left.len());
    }

    fn started(number: u32) -> Timestamp {
        samples::execution(number).started
    }

    #[tokio::test]
    async fn retention_removes_records_by_age_and_number_but_keeps_running_calls() {
        let mut rows: Vec<ToolExecution> = (0..8).map(samples::execution).collect();
        rows[1] = samples::running_execution(1);
        let by = |older_than, max_rows| AuditLogCutoff { older_than, max_rows };
        check(&rows, by(started(0), 100), &[0, 1, 2, 3, 4, 5, 6, 7]).await;
        check(&rows, by(started(4), 100), &[1, 4, 5, 6, 7]).await;
        check(&rows, by(started(0), 3), &[1, 5, 6, 7]).await;
        check(&rows, by(started(7), 5), &[1, 7]).await;
        check(&rows, by(Timestamp(i64::MAX), 0), &[1]).await;
        check(&rows, by(Timestamp(i64::MIN), u64::MAX), &[0, 1, 2, 3, 4, 5, 6, 7]).await;
        check(&[], by(Timestamp(i64::MAX), 0), &[]).await;
    }

    #[tokio::test]
    async fn retention_removes_more_records_than_one_step_handles() {
        let rows: Vec<ToolExecution> = (0..1300).map(samples::execution).collect();
        check(&rows, AuditLogCutoff { older_than: started(1298), max_rows: 1 << 40 }, &[1298, 1299]).await;
    }

    #[test]
    fn an_excessive_maximum_age_is_clamped_and_does_not_overflow() {
        let retention = AuditRetention { max_age: Duration::MAX, max_rows: 1 };
        assert_eq!(AuditLogCutoff::at(samples::START, retention).older_than, Timestamp(samples::START.0 - i64::MAX));
    }
}
