//! Agents: models that call tools until they are done.

pub mod budget;
pub mod command_text;
pub mod definition;
pub mod event;
pub mod instructions;
