//! The catalogue of programs, of the shell's own words and of variables: what is known of them by their names, as data.

pub(super) mod interpreters;
pub(super) mod options;
pub(super) mod programs;
pub(super) mod risks;
pub(super) mod shell_words;
pub(super) mod subcommands;
pub(crate) mod variables;

pub use programs::LOOKED_THROUGH;
