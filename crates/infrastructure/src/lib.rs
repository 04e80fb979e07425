//! The adapters of Toolstead: everything that touches the world.
//!
//! Each room is one technology and is blind to the others, save that all may use [`sandbox`], [`hooks`] and [`builtin`]
//! the analysis of command lines, and [`builtin`] the reader of documents. No type of a database or network library
//! appears in a public signature.

pub mod builtin;
pub mod documents;
pub mod helper;
pub mod hooks;
pub mod mcp;
pub mod sandbox;
pub mod schema_validation;
pub mod shell_analysis;
pub mod sqlite;
pub mod system_clock;
