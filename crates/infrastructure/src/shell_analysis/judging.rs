//! Classifies one simple command by its words: what runs, how certain that is, and which files it names.

pub(super) mod assigned_variables;
pub(super) mod built_in_rules;
mod builtins;
pub(super) mod classified_command;
pub(super) mod command;
mod git;
mod inputs;
mod interpreters;
pub(super) mod operands;
mod options;
mod run_texts;
mod sed;
mod shells;
mod started_commands;
mod texts;
pub(super) mod widening;
mod wrapper_effects;
mod wrappers;
mod xargs;
