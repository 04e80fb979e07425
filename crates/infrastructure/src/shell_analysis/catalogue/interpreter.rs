//! One program that runs texts in another language.

use super::options::{self, OptionValueKind::Module, ShortOptions};

/// Syntax of the arguments of an interpreter.
#[derive(Debug, Clone, Copy)]
pub struct InterpreterSyntax {
    pub(crate) letters: ShortOptions,
    /// Long options that take no value for this interpreter, but do for others.
    pub(crate) flags: &'static [&'static str],
    pub(crate) operand: OperandKind,
}

/// Meaning of the first operand of an interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandKind {
    /// A file that the interpreter runs.
    Script,
    /// A text that the interpreter runs.
    Text,
    /// A subcommand, or a file that the interpreter runs.
    Subcommand,
    /// An operand that the interpreter does not run.
    Other,
}

impl InterpreterSyntax {
    /// Returns the meaning of the first operand.
    pub fn operand(&self) -> OperandKind {
        self.operand
    }

    /// Returns `true` if an option runs a module by its name, as `-m` of Python does.
    pub fn runs_modules(&self) -> bool {
        self.letters.iter().any(|(takes, _)| *takes == Module)
    }

    /// Returns `true` if this option takes the next word as its value, or `None` if that is unknown.
    pub fn takes_next_word(&self, option: &str) -> Option<bool> {
        options::takes_next_word(self.letters, option)
    }
}
