//! The only way to files and processes.

pub mod child_environment;
pub mod helper;
pub mod host;
pub mod kernel;
#[expect(clippy::disallowed_methods, reason = "the one place that starts programs")]
pub mod launcher;
#[expect(clippy::disallowed_methods, reason = "what a confined program sees is looked up on the machine itself")]
mod preparing;
#[expect(clippy::disallowed_methods, reason = "what a confined program sees is looked up on the machine itself")]
mod toolchains;
pub mod workspace;
#[expect(clippy::disallowed_methods, reason = "the one place that starts confined programs")]
#[expect(unsafe_code, reason = "namespaces, filters and the end of privileges are system calls without a safe form")]
mod zygote;
