//! Tools of a program, one file for each way to write them.

pub mod closures;
pub mod forecast;
pub mod release_notes;
