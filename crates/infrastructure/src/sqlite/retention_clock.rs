//! Time by which rows and contents age.
//!
//! A clock that is set forward must not expire everything: a single start with a clock that is months ahead would
//! delete all data. The database therefore stores the last clock reading. If the clock has jumped ahead by more than a
//! day, the jump is not counted until the clock has continued from there for a day. If the clock is set back before
//! that, the jump is discarded. On a machine that was switched off for months, data that expired meanwhile is deleted
//! on the second day.

use super::fault::Fault;
use sqlx::{Connection, SqliteConnection};
use std::time::Duration;
use toolstead_domain::Timestamp;

/// Minimum step in microseconds between two readings that counts as a jump, and the time that the clock must continue
/// after one: a day.
const JUMP: i64 = 24 * 60 * 60 * 1_000_000;

/// Clock readings stored in the database. All times are in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RetentionClockReadings {
    /// Last reading; `None` before the first.
    seen: Option<i64>,
    /// Part of the reading that does not count yet.
    doubted: i64,
    /// Reading after the jump that does not count yet.
    jumped: Option<i64>,
}

impl RetentionClockReadings {
    /// Returns the state after another reading.
    fn advance(self, now: i64) -> Self {
        let step = now.saturating_sub(self.seen.unwrap_or(now));
        let has_gone_on = self.jumped.is_some_and(|jumped| now.saturating_sub(jumped) >= JUMP);
        let doubted = match step {
            // The clock was set back, perhaps to the time before the jump or to the actual time.
            ..0 => Some(self.doubted.saturating_add(step)).filter(|left| *left > JUMP).unwrap_or(0),
            0.. if has_gone_on => 0,
            0.. => self.doubted,
        };
        let (doubted, jumped) = match step > JUMP {
            true => (doubted.saturating_add(step), Some(now)),
            false => (doubted, self.jumped.filter(|_| doubted > 0)),
        };
        Self { seen: Some(now), doubted, jumped }
    }
}

/// Stores a clock reading. Returns the time by which data ages.
pub(super) async fn read_clock(connection: &mut SqliteConnection, now: Timestamp) -> Result<Timestamp, Fault> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let (seen, doubted, jumped) =
        sqlx::query_as("SELECT seen, doubted, jumped FROM clock").fetch_one(&mut *transaction).await?;
    let before = RetentionClockReadings { seen, doubted, jumped };
    let clock = before.advance(now.0);
    sqlx::query("UPDATE clock SET seen = $1, doubted = $2, jumped = $3")
        .bind(clock.seen)
        .bind(clock.doubted)
        .bind(clock.jumped)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    if clock.doubted > before.doubted {
        let days = Duration::from_micros(clock.doubted.unsigned_abs()).as_secs() / 86_400;
        tracing::warn!(
            days,
            "the clock jumped ahead: expired data is not deleted until the clock has run on for a day"
        );
    }
    Ok(Timestamp(now.0.saturating_sub(clock.doubted)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::new_database::{TestDatabase, new_database};
    use toolstead_domain::testing::samples::START;

    const HOUR: i64 = JUMP / 24;

    /// Stores readings of these hours, and compares the hour by which data ages after each.
    async fn check(looks: &[(i64, i64)]) {
        let TestDatabase { folder: _folder, mut connection, .. } = new_database().await;
        for (at, (clock, expected)) in looks.iter().enumerate() {
            let now = Timestamp(START.0 + clock * HOUR);
            let aged = read_clock(&mut connection, now).await.unwrap();
            assert_eq!((aged.0 - START.0) / HOUR, *expected, "look {at} of {looks:?}");
        }
    }

    #[tokio::test]
    async fn a_forward_clock_jump_ages_no_records_until_a_day_later() {
        const AHEAD: i64 = 200 * 24;
        // Day by day, hour by hour.
        check(&[(0, 0), (1, 1), (24, 24), (47, 47), (48, 48)]).await;
        // Ahead once, and back.
        check(&[(0, 0), (AHEAD, 0), (1, 1), (2, 2), (24, 24)]).await;
        // Ahead for some hours in several looks, and back by a little more.
        check(&[(0, 0), (AHEAD, 0), (AHEAD + 5, 5), (4, 4), (10, 10)]).await;
        // Ahead by three days.
        check(&[(0, 0), (72, 0), (73, 1), (2, 2)]).await;
        // Switched off for months: counted on the second day, in one step or in many.
        check(&[(0, 0), (AHEAD, 0), (AHEAD + 20, 20), (AHEAD + 24, AHEAD + 24), (AHEAD + 25, AHEAD + 25)]).await;
        // Used once a week.
        check(&[(0, 0), (168, 0), (336, 168), (504, 336)]).await;
        // Set back for good.
        check(&[(AHEAD, AHEAD), (0, 0), (1, 1)]).await;
    }

    #[tokio::test]
    async fn extreme_clock_values_cause_no_fault() {
        let TestDatabase { folder: _folder, mut connection, .. } = new_database().await;
        for now in [i64::MIN, i64::MAX, 0, i64::MAX, i64::MIN] {
            read_clock(&mut connection, Timestamp(now)).await.unwrap();
        }
    }
}
