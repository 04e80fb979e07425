//! User programs that run before and after calls, with the JSON contract of Claude Code's hooks
//! (`docs/guide/hooks-and-events.md`).
//!
//! Hooks are the user's own programs and are not confined. They get a constructed environment. Their answers are
//! validated like any external input.

mod agent;
pub mod answer;
pub mod approver;
pub mod command_hooks;
pub mod definition;
mod dialect_names;
pub mod filter;
mod input;
pub mod matcher;
mod text;
