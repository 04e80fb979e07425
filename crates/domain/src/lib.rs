//! Terms and rules of Toolstead, without I/O.
//!
//! The modules define values (a [`tool_name::ToolName`], a [`tool::Tool`], a [`tool_call::ToolCall`] and its
//! [`tool_result::ToolResult`]), the rules on permitted calls ([`permission`]), and the ports through which the outer
//! layers reach files, processes, stores and clients ([`ports`]). The crate reads no clock, opens no file and depends
//! on no other layer.
//! The feature `testing` adds fakes that keep the contracts of the ports, and contract suites for implementations. The
//! feature `serde` makes values that are stored or sent serializable as self-describing JSON.

pub mod access;
pub mod agent;
pub mod alias;
pub mod category;
pub mod client_capability;
pub mod client_profile;
pub mod coercion;
pub mod content_digest;
pub mod context;
pub mod conversation;
pub mod defaults;
pub mod descriptor_limit;
pub mod error_chain;
pub mod error_kind;
pub mod event;
pub mod invisible_characters;
pub mod json_depth;
pub mod json_memory;
pub mod labels;
pub mod model;
pub mod permission;
pub mod ports;
pub mod principal;
pub mod provider_identity;
pub mod question;
pub mod sandbox_policy;
pub mod scope;
pub mod secret;
#[cfg(feature = "serde")]
mod serde_forms;
pub mod server_name;
pub mod session;
pub mod suggestion;
pub mod task_request;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod todo;
pub mod tool;
pub mod tool_call;
pub mod tool_execution;
pub mod tool_failure;
pub mod tool_input_schema;
pub mod tool_name;
pub mod tool_result;
pub mod tool_selection;
pub mod workspace_roots;
