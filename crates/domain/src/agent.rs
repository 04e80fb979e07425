//! An agent: a model that calls tools until it is done.

pub mod budget;
pub mod command_text;
pub mod definition;
pub mod event;
