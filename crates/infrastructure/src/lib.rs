//! The adapters of Toolstead: everything that touches the world.
//!
//! Each room is one technology and is blind to the others, save that all may use [`sandbox`], [`hooks`] and [`builtin`]
//! the analysis of command lines, [`builtin`] the reader of documents, and [`mcp`] the HTTP client. No type of a database or network library
//! appears in a public signature.

#[cfg(feature = "builtin")]
pub mod builtin;
#[cfg(feature = "documents")]
pub mod documents;
#[cfg(feature = "sandbox")]
pub mod helper;
#[cfg(feature = "hooks")]
pub mod hooks;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "sandbox")]
pub mod sandbox;
#[cfg(feature = "schema-validation")]
pub mod schema_validation;
#[cfg(feature = "shell-analysis")]
pub mod shell_analysis;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod system_clock;
