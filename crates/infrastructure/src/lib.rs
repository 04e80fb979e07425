//! The adapters of Toolstead: everything that touches the world.
//!
//! Each folder is one technology and is blind to the others, save that all may use [`sandbox`], and [`hooks`] the analysis
//! of command lines. No type of a database or network library appears in a public signature.

pub mod builtin;
pub mod helper;
pub mod hooks;
pub mod mcp;
pub mod sandbox;
pub mod schema_validation;
pub mod sqlite;
pub mod system_clock;
