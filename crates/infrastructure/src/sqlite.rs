//! Stores on SQLite, in one database file that several processes share.
//!
//! [`Database`] opens the file and returns the adapters of the ports. One thread owns the connections that write and
//! does all writing (`writer`). Reads use a pool of connections, opened on first use. `examples/sqlite.rs` uses the
//! database without the rest of Toolstead.

#[expect(clippy::disallowed_methods, reason = "the database is a file of our own, which no tool reaches")]
mod database;
mod database_files;
mod database_options;
mod open_error;

#[expect(clippy::disallowed_methods, reason = "the backlog is in files of our own, which no tool reaches")]
mod backlog;
#[expect(clippy::disallowed_methods, reason = "a backup is a file of our own, which no tool reaches")]
mod backup;
#[expect(clippy::disallowed_methods, reason = "contents are files of our own, which no tool reaches")]
mod blobs;
mod change_journal;
mod connection;
mod contents;
mod conversation_store;
mod definition_store;
mod execution_log;
mod execution_record;
mod execution_row;
mod fault;
#[expect(clippy::disallowed_methods, reason = "the database is a file of our own, which no tool reaches")]
mod instance;
mod legacy_audit_record;
#[cfg_attr(test, expect(clippy::disallowed_methods, reason = "a test compares the list with the folder"))]
mod migrations;
#[expect(clippy::disallowed_methods, reason = "a test reads the file back")]
#[cfg(test)]
mod new_database;
mod output_store;
mod pending_record;
mod question_store;
mod read_state;
mod recorder;
mod retention;
mod retention_clock;
mod stored_values;
mod tidying;
mod todo_store;
mod tool_repository;
mod tool_row;
mod writer;

pub use database::{Database, open_audit_log_read_only};
pub use database_files::DatabaseFiles;
pub use database_options::{AuditRetention, ContentRetention, DatabaseOptions};
pub use open_error::OpenError;
