//! The words and rules of Toolstead, without I/O.
//!
//! Values first (a [`tool_name::ToolName`], a [`tool::Tool`], a [`tool_call::ToolCall`] and its
//! [`tool_result::ToolResult`]), then who may do what ([`permission`]), then the ports through which the outer
//! layers reach the world ([`ports`]). The crate reads no clock, opens no file and knows no other layer.
//! The feature `testing` adds honest fakes and contract suites of the ports. The feature `serde` makes values that are
//! stored or sent serializable, each as JSON that says what it is.

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
pub mod unseen;
pub mod workspace_roots;
