//! Access to files and processes. Other modules reach them only through this one.

#[expect(clippy::disallowed_methods, reason = "it starts the person's own browser, which lives on")]
pub mod browser;
#[expect(clippy::disallowed_methods, reason = "files of the kernel under names of our own, not of a caller")]
pub mod control_group;
#[expect(clippy::disallowed_methods, reason = "files and sockets of our own, which no tool reaches")]
pub mod detached;
#[expect(clippy::disallowed_methods, reason = "it starts this same program")]
pub mod detached_process;
#[expect(unsafe_code, reason = "the action of a signal is set by a system call without a safe form")]
mod file_size_signal;
pub mod helper;
pub mod kernel;
mod launch;
#[expect(clippy::disallowed_methods, reason = "the one place that starts programs")]
pub mod launcher;
#[expect(clippy::disallowed_methods, reason = "processes are told apart by what `/proc` says of them")]
pub mod leftover_processes;
#[expect(clippy::disallowed_methods, reason = "a process looks which program it is")]
pub mod offered_tools;
pub(crate) mod one_run;
#[expect(clippy::disallowed_methods, reason = "a folder of our own, under no name of a caller")]
mod persistent_home;
mod process_wide;
#[expect(clippy::disallowed_methods, reason = "what a server's arguments name is looked up on the machine itself")]
pub mod program_folders;
#[expect(clippy::disallowed_methods, reason = "what a confined program sees is looked up on the machine itself")]
mod run_request;
#[cfg(feature = "schema-validation")]
pub mod schema_validation;
#[expect(clippy::disallowed_methods, reason = "which program a name leads to is looked up on the machine itself")]
pub mod search_path;
#[expect(clippy::disallowed_methods, reason = "it places canaries, and tries to reach them")]
#[expect(unsafe_code, reason = "whether a namespace can be made is tried with the system call")]
pub mod self_test;
#[expect(clippy::disallowed_methods, reason = "a file of our own that has no name")]
pub mod spool;
mod tier;
#[expect(clippy::disallowed_methods, reason = "what a confined program sees is looked up on the machine itself")]
mod toolchains;
pub mod user_programs;
pub mod workspace;
#[expect(clippy::disallowed_methods, reason = "where paths lead is looked up on the machine itself")]
pub(crate) mod writable;
#[expect(clippy::disallowed_methods, reason = "the one place that starts confined programs")]
#[expect(unsafe_code, reason = "namespaces, filters and the end of privileges are system calls without a safe form")]
mod zygote;

pub use zygote::{is_device, is_shown_to_all};
