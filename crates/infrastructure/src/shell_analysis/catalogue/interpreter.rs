//! One program that runs texts of another language.

use super::options::{self, Letters, Takes::Module};

/// How an interpreter reads its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Interpreter {
    pub(crate) letters: Letters,
    /// Long options that take nothing, and elsewhere something.
    pub(crate) flags: &'static [&'static str],
    pub(crate) operand: Operand,
}

/// What an interpreter takes its first operand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A file that it runs.
    Script,
    /// A text that it runs.
    Text,
    /// A subcommand, or a file that it runs.
    Subcommand,
    /// Nothing that it runs.
    Other,
}

impl Interpreter {
    /// What its first operand is.
    pub fn operand(&self) -> Operand {
        self.operand
    }

    /// Whether it runs modules by their names, as Python does behind `-m`.
    pub fn runs_modules(&self) -> bool {
        self.letters.iter().any(|(takes, _)| *takes == Module)
    }

    /// Whether this option takes the next word; `None` where that is not known.
    pub fn takes_next_word(&self, option: &str) -> Option<bool> {
        options::takes_next_word(self.letters, option)
    }
}
