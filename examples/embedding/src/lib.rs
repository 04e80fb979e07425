//! Tools of a program, one file for each way to write them, and a model for trying out an agent.

pub mod closures;
pub mod forecast;
pub mod offline_model;
pub mod release_notes;
