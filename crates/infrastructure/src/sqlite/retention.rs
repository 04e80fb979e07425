//! How much of the audit trail is kept.

use super::fault::Fault;
use sqlx::SqliteConnection;
use std::time::Duration;
use toolstead_domain::ports::clock::Timestamp;

/// What is kept of the audit trail. Older rows are deleted in the background when a database is opened; the space is
/// used again for new rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Rows of calls that began longer ago are deleted.
    pub max_age: Duration,
    /// Of more rows than these, the ones recorded first are deleted.
    pub max_rows: u64,
}

impl Default for Retention {
    /// 90 days, and at most 5,000,000 rows: some 3 GB.
    fn default() -> Self {
        Self { max_age: Duration::from_secs(90 * 24 * 60 * 60), max_rows: 5_000_000 }
    }
}

/// Which rows have to go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expiry {
    /// Those of calls that began before.
    pub(super) older_than: Timestamp,
    /// All but so many of the last.
    pub(super) max_rows: u64,
}

impl Retention {
    /// What has to go at this time.
    pub(super) fn expiry(self, now: Timestamp) -> Expiry {
        let age = i64::try_from(self.max_age.as_micros()).unwrap_or(i64::MAX);
        Expiry { older_than: Timestamp(now.0.saturating_sub(age)), max_rows: self.max_rows }
    }
}

/// As many rows go in one step: some milliseconds, for which recording waits.
const STEP: i64 = 500;

/// Deletes some of the rows that have to go, and returns how many; 0 when none is left. Rows of calls that run stay.
///
/// Looks at the rows recorded first and no further, so that a trail with nothing to delete costs one short read,
/// however long it is.
pub(super) async fn delete_some(connection: &mut SqliteConnection, expiry: Expiry) -> Result<u64, Fault> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{
        execution_row::RecordedRow,
        new_database::{NewDatabase, new_database},
    };
    use toolstead_domain::{testing::samples, tool_execution::ToolExecution};
    use uuid::Uuid;

    /// Records the rows, deletes what has to go, and compares what is left.
    async fn check(rows: &[ToolExecution], expiry: Expiry, left: &[u32]) {
        let NewDatabase { folder: _folder, mut connection, mut recorder, .. } = new_database().await;
        let recorded: Vec<RecordedRow> =
            rows.iter().map(|execution| RecordedRow::new(execution.clone(), Uuid::max())).collect();
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
    async fn rows_go_by_age_and_by_number_and_running_ones_stay() {
        let mut rows: Vec<ToolExecution> = (0..8).map(samples::execution).collect();
        rows[1] = samples::running_execution(1);
        let by = |older_than, max_rows| Expiry { older_than, max_rows };
        check(&rows, by(started(0), 100), &[0, 1, 2, 3, 4, 5, 6, 7]).await;
        check(&rows, by(started(4), 100), &[1, 4, 5, 6, 7]).await;
        check(&rows, by(started(0), 3), &[1, 5, 6, 7]).await;
        check(&rows, by(started(7), 5), &[1, 7]).await;
        check(&rows, by(Timestamp(i64::MAX), 0), &[1]).await;
        check(&rows, by(Timestamp(i64::MIN), u64::MAX), &[0, 1, 2, 3, 4, 5, 6, 7]).await;
        check(&[], by(Timestamp(i64::MAX), 0), &[]).await;
    }

    #[tokio::test]
    async fn more_rows_than_one_step_takes_go_as_well() {
        let rows: Vec<ToolExecution> = (0..1300).map(samples::execution).collect();
        check(&rows, Expiry { older_than: started(1298), max_rows: 1 << 40 }, &[1298, 1299]).await;
    }

    #[test]
    fn an_age_beyond_all_times_keeps_everything() {
        let retention = Retention { max_age: Duration::MAX, max_rows: 1 };
        assert_eq!(retention.expiry(samples::START).older_than, Timestamp(samples::START.0 - i64::MAX));
    }
}
