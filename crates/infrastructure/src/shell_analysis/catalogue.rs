//! Catalogue of known programs, bash words and variables. Each program has exactly one entry, with its class and with
//! the arguments that make it run or write something else.

pub(crate) mod filters;
mod interpreter;
pub(crate) mod interpreters;
pub(crate) mod offered_rules;
pub(crate) mod options;
mod program;
mod programs;
mod risks;
mod risky;
pub(crate) mod shell_words;
pub(crate) mod subcommands;
pub(crate) mod variables;

pub use self::{
    interpreter::{InterpreterSyntax, OperandKind},
    program::{ProgramClass, ProgramFacts, ReadOnlyArguments, WrapperSyntax},
    shell_words::is_shell_word,
};
use self::{interpreters::INTERPRETERS, programs::PROGRAMS, risky::RISKY};
pub(crate) use self::{
    program::NoShellCondition,
    risks::{RiskyArgumentPattern, may_be_an_option},
};

/// Programs that start the command after them without changing it. Allow rules are applied to that command.
pub const LOOKED_THROUGH: &[&str] = &["timeout", "nice", "time", "nohup"];

/// Patterns of allow rules on commands that only read. No pattern covers a command whose options make it write or run
/// something, because the analysis does not classify such a command as plain.
pub const READ_ONLY_COMMANDS: &[&str] = &[
    "ls *",
    "cat *",
    "echo *",
    "pwd",
    "head *",
    "tail *",
    "grep *",
    "find *",
    "wc *",
    "which *",
    "diff *",
    "stat *",
    "du *",
    "df *",
    "cd *",
    "git status *",
    "git log *",
    "git diff *",
    "git show *",
    "git blame *",
    "git ls-files *",
    "git rev-parse *",
    "git describe *",
    "git branch",
    "git branch --show-current",
    "git branch --list *",
    "git remote",
    "git remote -v",
];

/// Entry for every program that is not in a table.
static UNKNOWN: ProgramFacts = ProgramFacts::of(ProgramClass::Other, &[]);

/// Returns the entry of a program; an unknown program has the class [`ProgramClass::Other`]. The name may include a
/// folder and a version.
pub fn program(name: &str) -> &'static ProgramFacts {
    named(known_as(name))
}

/// Returns the entry of the program with exactly this name.
pub(crate) fn named(name: &str) -> &'static ProgramFacts {
    find(name).unwrap_or(&UNKNOWN)
}

/// Returns the catalogue name of a program: without its folder, and without its version if only the name without a
/// version is in the catalogue (`python3.11`, `gcc-12`).
pub fn known_as(name: &str) -> &str {
    let name = bare(name);
    if find(name).is_some() {
        return name;
    }
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let stem = stem.strip_suffix('-').unwrap_or(stem);
    let has_versions = stem.len() < name.len() && find(stem).is_some_and(ProgramFacts::has_versions);
    if has_versions { stem } else { name }
}

fn find(name: &str) -> Option<&'static ProgramFacts> {
    [PROGRAMS, RISKY, INTERPRETERS].into_iter().flatten().find(|program| program.names.contains(&name))
}

/// Returns the name of a program without its folder.
pub(crate) fn bare(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_lists_no_program_twice() {
        let mut names: Vec<&str> =
            [PROGRAMS, RISKY, INTERPRETERS].into_iter().flatten().flat_map(|program| program.names).copied().collect();
        assert!(names.len() > 300, "{}", names.len());
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    #[test]
    fn a_program_is_identified_without_its_folder_and_version() {
        for (name, expected) in [
            ("bash", "bash"),
            ("/bin/bash", "bash"),
            ("python3.11", "python"),
            ("gcc-12", "gcc"),
            ("ls2", "ls2"),
            ("dnf5", "dnf5"),
            ("unheard-of", "unheard-of"),
        ] {
            assert_eq!(known_as(name), expected, "{name}");
        }
    }
}
