//! A new database with the newest schema, for tests.

use super::{
    connection::connect_writer, database_options::DatabaseOptions, migrations::migrate, recorder::AuditLogConnection,
};
use sqlx::SqliteConnection;
use tempfile::TempDir;

pub(super) struct TestDatabase {
    pub(super) folder: TempDir,
    pub(super) options: DatabaseOptions,
    pub(super) connection: SqliteConnection,
    pub(super) recorder: AuditLogConnection,
}

pub(super) async fn new_database() -> TestDatabase {
    let folder = tempfile::tempdir().unwrap();
    let options = DatabaseOptions::at(folder.path().join("test.db"));
    std::fs::write(&options.path, "").unwrap();
    let mut connection = connect_writer(&options.path, &options).await.unwrap();
    migrate(&mut connection).await.unwrap();
    let recorder = AuditLogConnection::open(&options.path, &options).unwrap();
    TestDatabase { folder, options, connection, recorder }
}
