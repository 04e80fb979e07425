//! Migrations of the schema (`migrations/sqlite/`), from any older version to the current one.

use super::{backup, fault::Fault};
use sqlx::{
    Connection, SqlSafeStr, SqliteConnection,
    migrate::{Migration, MigrationType, Migrator},
};

/// Application id in the header of a Toolstead database, as `migrations/sqlite/0001_create_tools.sql` sets it: "TSTD".
const APPLICATION_ID: i64 = 0x5453_5444;

macro_rules! migration {
    ($version:literal, $file:literal) => {
        Migration::new(
            $version,
            $file.into(),
            MigrationType::Simple,
            include_str!(concat!("../../migrations/sqlite/", $file)).into_sql_str(),
            false,
        )
    };
}

/// Returns all migrations, oldest first.
fn migrations() -> Vec<Migration> {
    vec![
        migration!(1, "0001_create_tools.sql"),
        migration!(2, "0002_create_tool_executions.sql"),
        migration!(3, "0003_create_outputs_and_changes.sql"),
        migration!(4, "0004_total_contents.sql"),
        migration!(5, "0005_trace_decisions.sql"),
        migration!(6, "0006_made_folders.sql"),
        migration!(7, "0007_workspaces.sql"),
        migration!(8, "0008_tell_providers_apart.sql"),
        migration!(9, "0009_order_by_recording.sql"),
        migration!(10, "0010_nested_calls.sql"),
        migration!(11, "0011_labels.sql"),
        migration!(12, "0012_kinds_of_requests.sql"),
        migration!(13, "0013_conversations.sql"),
        migration!(14, "0014_plans.sql"),
        migration!(15, "0015_deferred_questions.sql"),
        migration!(16, "0016_handed_over_conversations.sql"),
        migration!(17, "0017_one_record_a_row.sql"),
        migration!(18, "0018_pinned_definitions.sql"),
    ]
}

/// Error: the schema of a database cannot be migrated.
#[derive(Debug, thiserror::Error)]
pub(super) enum MigrateError {
    /// The database belongs to another program.
    #[error("the database belongs to another program")]
    NotOurs,
    /// The database has a migration that this version does not know.
    #[error("step {0} of the schema is unknown")]
    Newer(i64),
    /// The database has another migration with this number.
    #[error("step {0} of the schema differs")]
    Changed(i64),
    /// The database could not be backed up first.
    #[error("the database cannot be backed up")]
    Backup(#[source] Fault),
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Migrates the schema. If it is current, which is nearly always the case, this is a single read. A database with data
/// is backed up first.
///
/// Several processes may call this at once: one of them takes the write lock, and the others find the schema current.
pub(super) async fn migrate(connection: &mut SqliteConnection) -> Result<(), MigrateError> {
    let migrations = migrations();
    let missing_steps = missing(connection, &migrations).await?;
    if missing_steps == 0 {
        return Ok(());
    }
    let applied = migrations.len() - missing_steps;
    if applied > 0 {
        // Outside of the transaction, because SQLite copies no database within one. Another process that migrates at
        // the same time makes the same backup, or a later one.
        backup::back_up(connection, applied).await.map_err(MigrateError::Backup)?;
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(Fault::from)?;
    if missing(&mut transaction, &migrations).await? > 0 {
        Migrator::with_migrations(migrations).run(&mut *transaction).await.map_err(|error| match error {
            sqlx::migrate::MigrateError::Execute(error) | sqlx::migrate::MigrateError::ExecuteMigration(error, _) => {
                Fault::from(error)
            }
            other => Fault::Unreadable(other.into()),
        })?;
    }
    transaction.commit().await.map_err(Fault::from)?;
    Ok(())
}

/// Returns the number of missing migrations.
pub(super) async fn missing_steps(connection: &mut SqliteConnection) -> Result<usize, MigrateError> {
    missing(connection, &migrations()).await
}

async fn missing(connection: &mut SqliteConnection, migrations: &[Migration]) -> Result<usize, MigrateError> {
    let is_used: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM sqlite_schema)")
        .fetch_one(&mut *connection)
        .await
        .map_err(Fault::from)?;
    if !is_used {
        return Ok(migrations.len());
    }
    let application_id: i64 =
        sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *connection).await.map_err(Fault::from)?;
    if application_id != APPLICATION_ID {
        return Err(MigrateError::NotOurs);
    }
    let applied: Vec<(i64, Vec<u8>)> =
        sqlx::query_as("SELECT version, checksum FROM _sqlx_migrations ORDER BY version")
            .fetch_all(connection)
            .await
            .map_err(Fault::from)?;
    for (version, checksum) in &applied {
        match migrations.iter().find(|migration| migration.version == *version) {
            None => return Err(MigrateError::Newer(*version)),
            Some(migration) if migration.checksum.as_ref() != checksum => return Err(MigrateError::Changed(*version)),
            Some(_) => {}
        }
    }
    Ok(migrations.len() - applied.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{
        connection::connect_writer,
        database_options::DatabaseOptions,
        execution_row::{self, select_executions},
        pending_record::PendingRecord,
        recorder::AuditLogConnection,
    };
    use serde_json::json;
    use std::path::Path;
    use tempfile::TempDir;
    use toolstead_domain::{RecordedDecision, Timestamp, ToolExecution, testing::samples};
    use uuid::Uuid;

    struct FormerDatabase {
        _folder: TempDir,
        options: DatabaseOptions,
        connection: SqliteConnection,
    }

    impl FormerDatabase {
        fn recorder(&self) -> AuditLogConnection {
            AuditLogConnection::open(&self.options.path, &self.options).unwrap()
        }
    }

    /// Creates a database with the first `version` migrations.
    async fn new_database_at(version: usize) -> FormerDatabase {
        let folder = tempfile::tempdir().unwrap();
        let options = DatabaseOptions::at(folder.path().join("test.db"));
        std::fs::write(&options.path, "").unwrap();
        let mut connection = connect_writer(&options.path, &options).await.unwrap();
        let before = migrations().into_iter().take(version).collect();
        Migrator::with_migrations(before).run(&mut connection).await.unwrap();
        FormerDatabase { _folder: folder, options, connection }
    }

    /// Data from before workspaces belongs to no workspace, and numbering continues after it.
    #[tokio::test]
    async fn migrated_data_from_before_workspaces_belongs_to_no_workspace() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        sqlx::query("PRAGMA foreign_keys = ON").execute(&mut connection).await.unwrap();
        let before = migrations().into_iter().take(6).collect();
        Migrator::with_migrations(before).run(&mut connection).await.unwrap();
        for statement in [
            "INSERT INTO contents VALUES (zeroblob(32), 3)",
            "INSERT INTO output_numbers VALUES ('local', 7)",
            "INSERT INTO stored_outputs VALUES (5, 'local', 7, 'text/plain', zeroblob(32), 3, zeroblob(16), 1)",
            "INSERT INTO journal_entries VALUES (3, zeroblob(16), 'local', 'cli', 'write_file', 1, NULL)",
            "INSERT INTO file_changes (entry, path, before_digest, before_mode, made_folders)
             VALUES (3, x'2f61', zeroblob(32), 420, 0)",
        ] {
            sqlx::query(statement).execute(&mut connection).await.unwrap();
        }
        migrate(&mut connection).await.unwrap();
        let kept: (i64, i64, i64) = sqlx::query_as(
            "SELECT (SELECT number FROM stored_outputs WHERE seq = 5 AND workspace = x''),
                    (SELECT count(*) FROM journal_entries JOIN file_changes ON entry = journal_entries.seq
                     WHERE workspace = x''),
                    (SELECT last FROM output_numbers)",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        assert_eq!(kept, (7, 1, 7));
        let broken = sqlx::query("PRAGMA foreign_key_check").fetch_all(&mut connection).await.unwrap();
        assert!(broken.is_empty());
    }

    /// A log of the version before records can be read and extended.
    #[tokio::test]
    async fn an_audit_log_from_before_the_record_format_is_migrated_and_extended() {
        let mut database = new_database_at(16).await;
        for (number, outcome, instance) in [(1, "succeeded", "NULL"), (2, "running", "x'07'")] {
            let statement = format!(
                "INSERT INTO tool_executions (id, tool, called_as, source, principal, session, client, arguments,
                    arguments_digest, accesses, verdict, reason, started, ended, outcome, result_bytes, result_digest,
                    instance, trace, metadata)
                 VALUES (x'{}', 'echo', 'echo', 'built-in', 'local', 'session-1', 'test 1.0',
                    '{{\"text\":\"hello\",\"number\":1}}', 'd', '[\"read /x\"]', 'allow', 'r', 5, 6, '{outcome}', 7, 'e',
                    {instance}, '[]', '{{\"lines\":1}}')",
                samples::call_id(number).0.simple()
            );
            sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut database.connection).await.unwrap();
        }
        migrate(&mut database.connection).await.unwrap();
        let backup = database.options.path.with_file_name("backups/test.db.16");
        let mut backup = SqliteConnection::connect(backup.to_str().unwrap()).await.unwrap();
        assert_eq!(missing(&mut backup, &migrations()).await.unwrap(), migrations().len() - 16);
        let rows: i64 =
            sqlx::query_scalar("SELECT count(*) FROM tool_executions").fetch_one(&mut backup).await.unwrap();
        assert_eq!(rows, 2, "the backup has the data of before");
        let required: Vec<String> =
            sqlx::query_scalar("SELECT name FROM pragma_table_info('tool_executions') WHERE \"notnull\" ORDER BY cid")
                .fetch_all(&mut database.connection)
                .await
                .unwrap();
        assert_eq!(required, ["id", "tool", "principal", "client", "started", "outcome"]);
        let check: Vec<String> =
            sqlx::query_scalar("PRAGMA integrity_check").fetch_all(&mut database.connection).await.unwrap();
        assert_eq!(check, ["ok"]);
        // The end of a call that began before, and a new call.
        let rows = [2, 3].map(|number| PendingRecord::new(&samples::execution(number), Uuid::nil()));
        assert!(database.recorder().record(rows.iter()).unwrap().iter().all(Result::is_ok));
        let stored = sqlx::query(select_executions!("ORDER BY seq")).fetch_all(&mut database.connection).await.unwrap();
        let stored: Vec<ToolExecution> = stored.iter().map(|row| execution_row::read(row).unwrap()).collect();
        let former = ToolExecution {
            arguments_digest: "d".into(),
            accesses: vec!["read /x".into()],
            decision: Some(RecordedDecision {
                verdict: "allow".into(),
                reason: "r".into(),
                approved_by: None,
                trace: json!([]),
            }),
            started: Timestamp(5),
            ended: Some(Timestamp(6)),
            result_bytes: 7,
            result_digest: Some("e".into()),
            ..samples::execution(1)
        };
        assert_eq!(stored, [former, samples::execution(2), samples::execution(3)]);
        let instances: i64 = sqlx::query_scalar("SELECT count(*) FROM tool_executions WHERE instance IS NOT NULL")
            .fetch_one(&mut database.connection)
            .await
            .unwrap();
        assert_eq!(instances, 0);
    }

    #[test]
    fn the_migration_list_matches_the_migration_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "README.md")
            .collect();
        files.sort();
        let listed = migrations();
        assert_eq!(listed.iter().map(|migration| migration.description.as_ref()).collect::<Vec<_>>(), files);
        for (number, migration) in (1..).zip(&listed) {
            assert_eq!(migration.version, number);
            assert!(migration.description.starts_with(&format!("{number:04}_")), "{}", migration.description);
        }
    }
}
