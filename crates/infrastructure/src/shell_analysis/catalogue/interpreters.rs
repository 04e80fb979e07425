//! Programs that run texts of other languages, with the options that they take.

use super::options::{
    self, Letters,
    Takes::{
        Ends, File, Input, Library, Module, Nothing, Number, NumberOrRest, Rest, Setting, Text, TextWithArguments,
        Value,
    },
};

/// A language's interpreter.
pub(crate) struct Interpreter {
    pub(crate) names: &'static [&'static str],
    pub(crate) letters: Letters,
    /// Long options that take nothing, and elsewhere something.
    pub(crate) flags: &'static [&'static str],
    pub(crate) operand: Operand,
}

/// What an interpreter takes its first operand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    Script,
    /// A text that it runs.
    Text,
    /// Nothing that it runs.
    Other,
}

const fn of(names: &'static [&'static str], letters: Letters) -> Interpreter {
    Interpreter { names, letters, flags: &[], operand: Operand::Script }
}

pub(crate) const INTERPRETERS: &[Interpreter] = &[
    of(
        PYTHONS,
        &[
            (Nothing, "bBdEIOPqsSuvx"),
            (TextWithArguments, "c"),
            (Module, "m"),
            (Library, "WX"),
            (Input, "i"),
            (Ends, "hV?"),
        ],
    ),
    of(
        &["perl"],
        &[
            (Nothing, "acfnpstTuUwWX"),
            (Number, "0l"),
            (NumberOrRest, "C"),
            (Rest, "DFix"),
            (Value, "I"),
            (Library, "mM"),
            (Text, "eE"),
            (Input, "d"),
            (Ends, "hvV"),
        ],
    ),
    of(
        &["ruby"],
        &[
            (Nothing, "acdlnpsvwU"),
            (Number, "0TW"),
            (Rest, "Fix"),
            (Value, "EI"),
            (Library, "r"),
            (Text, "e"),
            (Ends, "h"),
        ],
    ),
    of(&["node", "nodejs"], &[(Nothing, "c"), (Value, "C"), (Library, "r"), (Text, "ep"), (Input, "i"), (Ends, "hv")]),
    of(
        &["php"],
        &[
            (Nothing, "CHenqsw"),
            (Value, "St"),
            (Setting, "cdz"),
            (File, "fF"),
            (Text, "rBRE"),
            (Input, "a"),
            (Ends, "hilmv"),
        ],
    ),
    of(&["lua", "luajit"], &[(Nothing, "vEW"), (Library, "l"), (Text, "e"), (Input, "i")]),
    of(&["Rscript"], &[(Text, "e")]),
    Interpreter {
        flags: &["project"],
        ..of(
            &["julia"],
            &[(Nothing, "q"), (Rest, "gO"), (Value, "CHpt"), (Setting, "JL"), (Text, "eE"), (Input, "i"), (Ends, "hv")],
        )
    },
    of(&["guile"], &[(Nothing, "q"), (Value, "L"), (Library, "l"), (File, "s"), (Text, "c"), (Ends, "hv")]),
    of(&["groovy", "runghc", "scala", "elixir", "ocaml", "qjs", "gnuplot"], &[(Text, "e")]),
    of(&["ts-node", "tsx"], &[(Library, "r"), (Text, "ep"), (Input, "i"), (Ends, "hv")]),
    of(&["osascript"], &[(Text, "e"), (Input, "i")]),
    of(&["racket"], &[(Nothing, "bdnqW"), (Text, "e"), (Input, "i"), (Ends, "hv")]),
    of(&["octave"], &[(Nothing, "dfGHqVWx"), (Value, "p"), (Input, "i"), (Ends, "hv")]),
    of(&["escript", "pwsh", "sbcl", "swipl", "tclsh", "wish"], &[(Input, "i")]),
    Interpreter { operand: Operand::Other, ..of(&["bun", "deno"], &[(Text, "ep"), (Input, "i"), (Ends, "hvV")]) },
    Interpreter {
        operand: Operand::Other,
        ..of(
            &["mariadb", "mysql"],
            &[(Nothing, "ABCEfGHiLnNqrstvwX"), (Rest, "p"), (Value, "DhPSu"), (Text, "e"), (Ends, "?IV")],
        )
    },
    Interpreter {
        operand: Operand::Other,
        ..of(
            &["psql"],
            &[(Nothing, "aAbeEHnqsStwWxXz01"), (Value, "dFhLopPRTUv"), (File, "f"), (Text, "c"), (Ends, "lV?")],
        )
    },
    Interpreter { operand: Operand::Other, ..of(&["R"], &[(Nothing, "qs"), (File, "f"), (Text, "e")]) },
    Interpreter {
        operand: Operand::Text,
        ..of(
            &["awk", "gawk", "mawk", "nawk"],
            &[
                (Nothing, "bcgkMnNOPrsSt"),
                (Rest, "dLop"),
                (Input, "D"),
                (Value, "Fv"),
                (Library, "l"),
                (File, "Efi"),
                (Text, "e"),
                (Ends, "ChV"),
            ],
        )
    },
    Interpreter { operand: Operand::Other, ..of(&["sqlite3"], &[]) },
    Interpreter {
        operand: Operand::Other,
        ..of(&["bpython", "erl", "ghci", "iex", "irb", "jshell", "ptpython"], &[(Ends, "h")])
    },
];

/// Those that take the options of Python.
pub(crate) const PYTHONS: &[&str] = &["ipython", "pypy", "pypy3", "python", "python2", "python3"];

/// Whether this is the name of an interpreter.
pub(crate) fn is_one(name: &str) -> bool {
    INTERPRETERS.iter().any(|interpreter| interpreter.names.contains(&name))
}

/// Whether this option of that interpreter takes the next word; `None` where that is not known.
pub(crate) fn takes_next_word(name: &str, option: &str) -> Option<bool> {
    let interpreter = INTERPRETERS.iter().find(|one| one.names.contains(&name))?;
    options::takes_next_word(interpreter.letters, option)
}
