//! Parses a text into its simple commands and the files that the shell itself opens.

mod assignments;
mod findings;
mod here_document;
mod redirections;
mod simple_command;
mod step;
pub(super) mod syntax;
pub(super) mod walk;
