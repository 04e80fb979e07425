//! One program of the catalogue.

use super::{interpreter::InterpreterSyntax, risks::RiskyArguments, subcommands::KnownSubcommands};

/// Known properties of a program, or of several programs that are alike.
#[derive(Debug, Clone, Copy)]
pub struct ProgramFacts {
    pub(crate) names: &'static [&'static str],
    pub(crate) class: ProgramClass,
    /// Effects of single arguments.
    pub(crate) risks: RiskyArguments,
    /// Effects of subcommands, if the program has any.
    pub(crate) subcommands: Option<&'static KnownSubcommands>,
    /// Exceptions from running the commands in the input; `None` if the program does not run its input.
    pub(crate) input: Option<StdinScriptSuppressors>,
    runs_texts: bool,
    installs: bool,
    runs_packages: bool,
}

/// Kind of a program: the way in which it uses its arguments.
#[derive(Debug, Clone, Copy)]
pub enum ProgramClass {
    /// A shell, which runs the text after `-c` or the commands that it reads.
    Shell,
    /// A program that starts the program named among its arguments.
    Wrapper(WrapperSyntax),
    /// A program that runs texts in another language.
    Interpreter(InterpreterSyntax),
    /// A program whose arguments only choose what is read and printed.
    Reader(ReadOnlyArguments),
    /// A program that starts none of its arguments, except through a known risk or an unknown subcommand.
    Settled,
    /// A program of which any argument may be a program. Unknown programs have this class.
    Other,
}

/// Way in which a program starts the program named among its arguments.
#[derive(Debug, Clone, Copy)]
pub struct WrapperSyntax {
    /// `true` if the program passes a whole argument to a shell.
    pub(crate) hands_texts_on: bool,
    /// `true` if the first operand that is not a number is the program.
    pub(crate) starts_its_first_operand: bool,
    /// Arguments without which the program starts a shell that reads the input.
    pub(crate) shell_unless: Option<NoShellCondition>,
}

/// Arguments that prevent a wrapper from starting a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoShellCondition {
    /// More operands than this number.
    Operands(usize),
    /// A command given with an option.
    Command,
}

/// Arguments with which a program remains a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOnlyArguments {
    /// Any argument, even one that is known only at run time: the program is not a builtin that may evaluate a word,
    /// and it has no option that writes. A rule with a pattern covers a command with such arguments.
    Any,
    /// Any literal argument.
    Literal,
}

/// Arguments that prevent a program from running the commands in its input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StdinScriptSuppressors {
    /// Options of which one is enough.
    pub(crate) unless: &'static [&'static str],
    /// `true` if any operand is enough.
    pub(crate) or_operands: bool,
}

impl ProgramFacts {
    /// Creates the entry of programs that are alike.
    pub(super) const fn of(class: ProgramClass, names: &'static [&'static str]) -> Self {
        Self {
            names,
            class,
            risks: RiskyArguments::NONE,
            subcommands: None,
            input: None,
            runs_texts: false,
            installs: false,
            runs_packages: false,
        }
    }

    pub(super) const fn with_risks(self, risks: RiskyArguments) -> Self {
        Self { risks, ..self }
    }

    pub(super) const fn with_subcommands(self, subcommands: &'static KnownSubcommands) -> Self {
        Self { subcommands: Some(subcommands), ..self }
    }

    /// Marks programs that run the commands in their input unless one of these options is given.
    pub(super) const fn running_its_input(self, unless: &'static [&'static str]) -> Self {
        Self { input: Some(StdinScriptSuppressors { unless, or_operands: false }), ..self }
    }

    /// Marks programs that run the commands in their input unless one of these options or an operand is given.
    pub(super) const fn running_its_input_without_operands(self, unless: &'static [&'static str]) -> Self {
        Self { input: Some(StdinScriptSuppressors { unless, or_operands: true }), ..self }
    }

    /// Marks programs that run a text in a language of their own, such as a script or rules.
    pub(super) const fn running_texts(self) -> Self {
        Self { runs_texts: true, ..self }
    }

    /// Marks programs that take names of programs as names of packages.
    pub(super) const fn installing(self) -> Self {
        Self { installs: true, ..self }
    }

    /// Marks programs that run packages, or code of a project, by name.
    pub(super) const fn running_packages(self) -> Self {
        Self { runs_packages: true, ..self }
    }

    /// Returns the kind of the program.
    pub fn class(&self) -> ProgramClass {
        self.class
    }

    /// Returns `true` if the program is a shell.
    pub fn is_shell(&self) -> bool {
        matches!(self.class, ProgramClass::Shell)
    }

    /// Returns the way in which the program starts the program among its arguments, if it does.
    pub fn wrapper(&self) -> Option<WrapperSyntax> {
        match self.class {
            ProgramClass::Wrapper(wrapper) => Some(wrapper),
            _ => None,
        }
    }

    /// Returns the syntax of the arguments, if the program runs texts in another language.
    pub fn interpreter(&self) -> Option<InterpreterSyntax> {
        match self.class {
            ProgramClass::Interpreter(interpreter) => Some(interpreter),
            _ => None,
        }
    }

    /// Returns `true` if the program runs packages, or code of a project, by name, and not only files.
    pub fn runs_packages(&self) -> bool {
        self.runs_packages
    }

    /// Returns `true` if the arguments only choose what is read and printed.
    pub(crate) fn is_reader(&self) -> bool {
        matches!(self.class, ProgramClass::Reader(_))
    }

    /// Returns `true` if the program takes names of programs as names of packages.
    pub(crate) fn installs(&self) -> bool {
        self.installs
    }

    /// Returns `true` if no argument is a program, except through a known risk.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.class, ProgramClass::Reader(_) | ProgramClass::Settled | ProgramClass::Interpreter(_))
    }

    /// Returns `true` if the program runs a text: one of its arguments, or a file that it reads.
    pub(crate) fn runs_texts(&self) -> bool {
        self.runs_texts
            || self.input.is_some()
            || matches!(self.class, ProgramClass::Shell | ProgramClass::Interpreter(_))
    }

    /// Returns `true` if a version may follow the name. Readers have no versions (`ls2` is a different program), and
    /// neither have programs that are in the catalogue only for their packages.
    pub(super) fn has_versions(&self) -> bool {
        !(self.is_reader() || self.installs && matches!(self.class, ProgramClass::Other))
    }
}

impl WrapperSyntax {
    pub(super) const PLAIN: Self = Self { hands_texts_on: false, starts_its_first_operand: false, shell_unless: None };

    pub(super) const fn handing_texts_on(self) -> Self {
        Self { hands_texts_on: true, ..self }
    }

    pub(super) const fn starting_its_first_operand(self) -> Self {
        Self { starts_its_first_operand: true, ..self }
    }

    pub(super) const fn with_shell_unless(self, given: NoShellCondition) -> Self {
        Self { shell_unless: Some(given), ..self }
    }

    /// Returns `true` if the first operand that is not a number is the program.
    pub fn starts_its_first_operand(&self) -> bool {
        self.starts_its_first_operand
    }
}
