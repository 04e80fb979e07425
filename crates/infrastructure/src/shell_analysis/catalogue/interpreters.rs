//! Programs that run texts in other languages, with the options that they take.

use super::{
    interpreter::{InterpreterSyntax, OperandKind},
    options::{
        OptionValueKind::{
            Ends, File, Input, Library, Module, Nothing, Number, NumberOrRest, Rest, Setting, Text, TextWithArguments,
            Value,
        },
        ShortOptions,
    },
    program::{ProgramClass, ProgramFacts},
};

const fn of(names: &'static [&'static str], letters: ShortOptions) -> ProgramFacts {
    taking(OperandKind::Script, names, letters)
}

const fn taking(operand: OperandKind, names: &'static [&'static str], letters: ShortOptions) -> ProgramFacts {
    ProgramFacts::of(ProgramClass::Interpreter(InterpreterSyntax { letters, flags: &[], operand }), names)
}

const fn with_flags(
    flags: &'static [&'static str],
    names: &'static [&'static str],
    letters: ShortOptions,
) -> ProgramFacts {
    ProgramFacts::of(
        ProgramClass::Interpreter(InterpreterSyntax { letters, flags, operand: OperandKind::Script }),
        names,
    )
}

pub(super) const INTERPRETERS: &[ProgramFacts] = &[
    of(
        &["ipython", "pypy", "pypy3", "python", "python2", "python3"],
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
    with_flags(
        &["project"],
        &["julia"],
        &[(Nothing, "q"), (Rest, "gO"), (Value, "CHpt"), (Setting, "JL"), (Text, "eE"), (Input, "i"), (Ends, "hv")],
    ),
    of(&["guile"], &[(Nothing, "q"), (Value, "L"), (Library, "l"), (File, "s"), (Text, "c"), (Ends, "hv")]),
    of(&["groovy", "runghc", "scala", "elixir", "ocaml", "qjs", "gnuplot"], &[(Text, "e")]),
    of(&["ts-node", "tsx"], &[(Library, "r"), (Text, "ep"), (Input, "i"), (Ends, "hv")]).running_packages(),
    of(&["osascript"], &[(Text, "e"), (Input, "i")]),
    of(&["racket"], &[(Nothing, "bdnqW"), (Text, "e"), (Input, "i"), (Ends, "hv")]),
    of(&["octave"], &[(Nothing, "dfGHqVWx"), (Value, "p"), (Input, "i"), (Ends, "hv")]),
    of(&["escript", "pwsh", "sbcl", "swipl", "tclsh", "wish"], &[(Input, "i")]),
    taking(OperandKind::Subcommand, &["bun", "deno"], &[(Text, "ep"), (Input, "i"), (Ends, "hvV")]),
    taking(
        OperandKind::Other,
        &["mariadb", "mysql"],
        &[(Nothing, "ABCEfGHiLnNqrstvwX"), (Rest, "p"), (Value, "DhPSu"), (Text, "e"), (Ends, "?IV")],
    ),
    taking(
        OperandKind::Other,
        &["psql"],
        &[(Nothing, "aAbeEHnqsStwWxXz01"), (Value, "dFhLopPRTUv"), (File, "f"), (Text, "c"), (Ends, "lV?")],
    ),
    taking(OperandKind::Other, &["R"], &[(Nothing, "qs"), (File, "f"), (Text, "e")]),
    taking(
        OperandKind::Text,
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
    ),
    taking(OperandKind::Other, &["sqlite3"], &[]),
    taking(OperandKind::Other, &["bpython", "erl", "ghci", "iex", "irb", "jshell", "ptpython"], &[(Ends, "h")]),
];
