//! The use cases of Toolstead, one per file: a command or query, its handler and its errors.
//!
//! [`execute_tool`] is the call path, which every call takes. [`tool_registry`] is the live set of tools that all use
//! cases read. The crate depends on the domain crate alone; everything else is reached through ports.

pub mod bounded_approver;
pub mod cancel_signal;
pub mod context_registry;
pub mod event_bus;
pub mod execute_tool;
pub mod fork_conversation;
pub mod forward_request;
pub mod forward_task;
pub mod get_tool;
pub mod list_context;
pub mod list_executions;
pub mod list_tools;
pub mod open_calls;
pub mod orchestration;
pub mod permission_book;
pub mod provider_notifications;
pub mod redaction;
pub mod refresh_tools;
pub mod registry_events;
pub mod ruled_approver;
pub mod run_agent;
pub mod set_tool_enabled;
pub mod tool_registry;
mod touch;
pub mod undo_conversation;
pub mod watch_resource;
