//! The only way to files and processes.

pub mod child_environment;
pub mod egress;
pub mod helper;
pub mod host;
pub mod kernel;
#[expect(clippy::disallowed_methods, reason = "the one place that starts programs")]
pub mod launcher;
#[expect(clippy::disallowed_methods, reason = "a file of our own that has no name")]
pub mod spool;
pub mod workspace;
