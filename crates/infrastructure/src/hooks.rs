//! Programs of the user that run before and after calls, with the JSON contract of Claude Code's hooks
//! (`docs/hooks.md`).
//!
//! They are the user's own: nothing confines them, and they get a built environment. What they answer is checked as
//! everything that comes from outside.

mod agent;
pub mod answer;
pub mod approver;
pub mod command_hooks;
pub mod definition;
pub mod filter;
mod input;
pub mod matcher;
mod spelling;
mod text;
