//! Presentation layer of Toolstead: converts, wires and prints, and makes no decisions.
//!
//! [`composition_root`] builds an [`app::App`] out of a [`config::Config`]; the MCP server, the CLI and embedding
//! applications all call the same use cases on it.

pub mod agent_parts;
pub mod app;
mod approval_question;
pub mod cli;
pub mod composition_root;
pub mod config;
pub mod cores;
mod escaping_writer;
pub mod event_file;
pub mod mcp_server;
pub mod prelude;
pub mod query;
pub mod runtime;
pub mod shutdown;
mod suggestions;
pub mod surroundings;
pub mod telemetry;
mod text_rows;
