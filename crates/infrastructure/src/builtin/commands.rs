//! Commands: what they run, what they may touch, what they print, and those that continue as tasks.

pub(crate) mod capture;
pub(crate) mod closed_paths;
pub(crate) mod command;
pub(crate) mod command_output;
pub(crate) mod line_accesses;
pub(crate) mod offered_tools;
pub(crate) mod program_run;
pub mod programs;
pub mod run_program;
pub mod tasks;
pub(crate) mod tool_program;
pub(crate) mod waiting;
