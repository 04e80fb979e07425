//! The tool kit: the contract of a tool, the ways to write one, its context and environment, results and schemas, and
//! the provider that offers tools.

pub(in crate::builtin) mod answer;
pub(in crate::builtin) mod blocking;
pub mod built_in_tool;
pub mod custom_tool;
pub(in crate::builtin) mod foreign_answer;
pub mod into_tool;
pub mod provider;
pub mod schema;
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::expect_used, reason = "a test kit is a test: it fails by panicking")]
#[expect(clippy::disallowed_methods, reason = "the folder is the test's own")]
pub mod testing;
pub mod tool_context;
pub mod tool_environment;
pub mod tool_group;
pub mod typed_tool;
