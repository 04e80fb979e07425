//! One program of the catalogue.

use super::{interpreter::Interpreter, risks::Risks, subcommands::Subcommands};

/// A program, or several that are alike, and what is known of it.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    pub(crate) names: &'static [&'static str],
    pub(crate) class: Class,
    /// What single arguments of it do.
    pub(crate) risks: Risks,
    /// What its subcommands do, where it has some.
    pub(crate) subcommands: Option<&'static Subcommands>,
    /// It runs the commands in its input.
    pub(crate) input: Option<RunsItsInput>,
    runs_texts: bool,
    installs: bool,
    runs_packages: bool,
}

/// The kind of a program: what it makes of its arguments.
#[derive(Debug, Clone, Copy)]
pub enum Class {
    /// A shell: it runs the text behind `-c`, or what it reads.
    Shell,
    /// It starts the program named among its arguments.
    Wrapper(Wrapper),
    /// It runs texts of another language.
    Interpreter(Interpreter),
    /// Its arguments choose what is read and printed, nothing else.
    Reader(Reads),
    /// It starts none of its arguments, but by a risk or by a subcommand that is not known.
    Settled,
    /// Any of its arguments may be a program. So it is with programs that are not known.
    Other,
}

/// How a program starts the one named among its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Wrapper {
    /// It hands a whole argument to a shell.
    pub(crate) hands_texts_on: bool,
    /// Its first operand, but for a number, is the program.
    pub(crate) starts_its_first_operand: bool,
    /// It starts a shell, which reads its input, unless it is given this.
    pub(crate) shell_unless: Option<Given>,
}

/// What keeps a wrapper from starting a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// More operands than these.
    Operands(usize),
    /// A command behind an option for it.
    Command,
}

/// How much of what a reader does its arguments may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Nothing, whatever they turn out to be: it is no builtin that may evaluate a word, and has no option that writes. A
    /// pattern on it covers arguments that are known only when it runs.
    WhateverIsNamed,
    /// Nothing, as long as they are known.
    WhatIsKnown,
}

/// What among the arguments says that a program does not run the commands in its input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunsItsInput {
    /// One of these options.
    pub(crate) unless: &'static [&'static str],
    /// Any operand.
    pub(crate) or_operands: bool,
}

impl Program {
    /// Programs that are alike.
    pub(super) const fn of(class: Class, names: &'static [&'static str]) -> Self {
        Self {
            names,
            class,
            risks: Risks::NONE,
            subcommands: None,
            input: None,
            runs_texts: false,
            installs: false,
            runs_packages: false,
        }
    }

    pub(super) const fn with_risks(self, risks: Risks) -> Self {
        Self { risks, ..self }
    }

    pub(super) const fn with_subcommands(self, subcommands: &'static Subcommands) -> Self {
        Self { subcommands: Some(subcommands), ..self }
    }

    /// It runs the commands in its input unless it is given one of these options.
    pub(super) const fn running_its_input(self, unless: &'static [&'static str]) -> Self {
        Self { input: Some(RunsItsInput { unless, or_operands: false }), ..self }
    }

    /// It runs the commands in its input unless it is given one of these options, or an operand.
    pub(super) const fn running_its_input_without_operands(self, unless: &'static [&'static str]) -> Self {
        Self { input: Some(RunsItsInput { unless, or_operands: true }), ..self }
    }

    /// It runs a text that is no other language's: a script, or rules.
    pub(super) const fn running_texts(self) -> Self {
        Self { runs_texts: true, ..self }
    }

    /// It takes names of programs for names of packages.
    pub(super) const fn installing(self) -> Self {
        Self { installs: true, ..self }
    }

    /// It runs packages, or what a project holds, by their names.
    pub(super) const fn running_packages(self) -> Self {
        Self { runs_packages: true, ..self }
    }

    /// The kind of program.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Whether it is a shell.
    pub fn is_shell(&self) -> bool {
        matches!(self.class, Class::Shell)
    }

    /// How it starts the program named among its arguments, if it does.
    pub fn wrapper(&self) -> Option<Wrapper> {
        match self.class {
            Class::Wrapper(wrapper) => Some(wrapper),
            _ => None,
        }
    }

    /// How it reads its arguments, if it runs texts of another language.
    pub fn interpreter(&self) -> Option<Interpreter> {
        match self.class {
            Class::Interpreter(interpreter) => Some(interpreter),
            _ => None,
        }
    }

    /// Whether it runs packages, or what a project holds, by their names, and not only files.
    pub fn runs_packages(&self) -> bool {
        self.runs_packages
    }

    /// Whether its arguments choose what is read and printed, nothing else.
    pub(crate) fn is_reader(&self) -> bool {
        matches!(self.class, Class::Reader(_))
    }

    /// Whether it takes names of programs for names of packages.
    pub(crate) fn installs(&self) -> bool {
        self.installs
    }

    /// Whether none of its arguments is a program, but where a risk says so.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.class, Class::Reader(_) | Class::Settled | Class::Interpreter(_))
    }

    /// Whether it runs a text: one among its arguments, or what it reads.
    pub(crate) fn runs_texts(&self) -> bool {
        self.runs_texts || self.input.is_some() || matches!(self.class, Class::Shell | Class::Interpreter(_))
    }

    /// Whether a version may stand behind its name. What only reads has none: `ls2` is some other program. Nor has what
    /// is in the catalogue for its packages alone.
    pub(super) fn has_versions(&self) -> bool {
        !(self.is_reader() || self.installs && matches!(self.class, Class::Other))
    }
}

impl Wrapper {
    pub(super) const PLAIN: Self = Self { hands_texts_on: false, starts_its_first_operand: false, shell_unless: None };

    pub(super) const fn handing_texts_on(self) -> Self {
        Self { hands_texts_on: true, ..self }
    }

    pub(super) const fn starting_its_first_operand(self) -> Self {
        Self { starts_its_first_operand: true, ..self }
    }

    pub(super) const fn with_shell_unless(self, given: Given) -> Self {
        Self { shell_unless: Some(given), ..self }
    }

    /// Whether its first operand, but for a number, is the program.
    pub fn starts_its_first_operand(&self) -> bool {
        self.starts_its_first_operand
    }
}
