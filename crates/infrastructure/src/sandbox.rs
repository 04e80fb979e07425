//! Access to files and processes. Other modules reach them only through this one.

#[expect(clippy::disallowed_methods, reason = "it starts the user's browser, which outlives this process")]
pub mod browser;
#[expect(clippy::disallowed_methods, reason = "kernel files, whose names do not come from a caller")]
pub mod control_group;
#[expect(clippy::disallowed_methods, reason = "it starts this same program")]
pub mod detached_process;
#[expect(clippy::disallowed_methods, reason = "own files and sockets, which no tool can access")]
pub mod detached_task_store;
#[expect(unsafe_code, reason = "the action of a signal is set by a system call without a safe form")]
mod file_size_signal;
pub mod helper;
pub mod kernel;
mod launch;
#[expect(clippy::disallowed_methods, reason = "the one place that starts programs")]
pub mod launcher;
#[expect(clippy::disallowed_methods, reason = "processes are identified through `/proc`")]
pub mod leftover_processes;
#[expect(clippy::disallowed_methods, reason = "a process looks up its own program")]
pub mod offered_tools;
#[expect(clippy::disallowed_methods, reason = "an own folder, whose name does not come from a caller")]
mod persistent_home;
mod process_wide;
#[expect(clippy::disallowed_methods, reason = "paths in a server's arguments are resolved on the machine itself")]
pub mod program_folders;
#[expect(clippy::disallowed_methods, reason = "paths that a confined program sees are resolved on the machine itself")]
mod run_request;
#[cfg(feature = "schema-validation")]
pub mod schema_validation;
#[expect(clippy::disallowed_methods, reason = "names of programs are resolved on the machine itself")]
pub mod search_path;
#[expect(clippy::disallowed_methods, reason = "it creates canaries and tries to access them")]
#[expect(unsafe_code, reason = "a system call tests whether a namespace can be created")]
pub mod self_test;
#[expect(clippy::disallowed_methods, reason = "an own file without a name")]
pub mod spool;
mod tier;
#[expect(clippy::disallowed_methods, reason = "paths that a confined program sees are resolved on the machine itself")]
mod toolchains;
pub(crate) mod unconfined_run;
pub mod user_programs;
pub mod workspace;
#[expect(clippy::disallowed_methods, reason = "paths are resolved on the machine itself")]
pub(crate) mod writable_roots;
#[expect(clippy::disallowed_methods, reason = "the one place that starts confined programs")]
#[expect(unsafe_code, reason = "namespaces, filters and the end of privileges are system calls without a safe form")]
mod zygote;

pub use zygote::{is_device, is_shown_to_all};
