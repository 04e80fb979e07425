//! Programs that run texts of other languages. A file that they run is what a rule on them speaks of; a text among their
//! arguments is for exact rules; what they read from their input nobody can tell.

use super::{
    folders::Folders,
    inputs::{holds_input, is_input},
    risks::may_be_an_option,
    word::Word,
};
use toolstead_domain::access::Clarity;

/// A language's interpreter. Letters are those of its short options.
struct Interpreter {
    names: &'static [&'static str],
    /// It takes its first operand for a script file.
    scripts: bool,
    /// What stands behind these is run, or is a file that is.
    inline: &'static str,
    /// These take no value.
    flags: &'static str,
    /// With these it goes on with its input in any case.
    asks: &'static str,
}

const fn of(
    names: &'static [&'static str],
    inline: &'static str,
    flags: &'static str,
    asks: &'static str,
) -> Interpreter {
    Interpreter { names, scripts: true, inline, flags, asks }
}

const INTERPRETERS: &[Interpreter] = &[
    of(&["ipython", "pypy", "python", "python2", "python3"], "cm", "bBdEIOPqsSuvx", "i"),
    of(&["pypy3"], "cm", "bBdEIOPqsSuvx", "i"),
    of(&["perl"], "eE", "acfnpstTuUwWX", "d"),
    of(&["ruby"], "e", "acdlnpswv", ""),
    of(&["node", "nodejs"], "ep", "cv", "i"),
    of(&["php"], "rBREfFlmi", "CHnqsw", "a"),
    of(&["lua", "luajit"], "e", "vEW", "i"),
    of(&["Rscript"], "e", "", ""),
    of(&["julia"], "eE", "q", "i"),
    of(&["guile"], "cs", "q", ""),
    of(&["groovy", "racket", "runghc", "scala", "elixir", "ocaml", "qjs", "gnuplot"], "e", "", ""),
    of(&["ts-node", "tsx"], "ep", "", "i"),
    of(&["osascript"], "e", "", "i"),
    of(&["escript", "octave", "pwsh", "sbcl", "swipl", "tclsh", "wish"], "", "", "i"),
    Interpreter { scripts: false, ..of(&["bun", "deno"], "ep", "", "i") },
    Interpreter { scripts: false, ..of(&["mariadb", "mysql"], "e", "BNst", "") },
    Interpreter { scripts: false, ..of(&["psql"], "cfl", "aAbeEnqsStwWxXz1", "") },
    Interpreter { scripts: false, ..of(&["R"], "ef", "", "") },
    Interpreter { scripts: false, ..of(&["awk", "gawk", "mawk", "nawk"], "", "", "") },
    Interpreter { scripts: false, ..of(&["sqlite3"], "", "", "") },
    Interpreter { scripts: false, ..of(&["bpython", "erl", "ghci", "iex", "irb", "jshell", "ptpython"], "", "", "") },
];

/// Long options in front of a text or a file that is run.
const INLINE: &[&str] = &["--command", "--eval", "--execute", "--expression", "--file", "--print", "--run", "--script"];

/// Beginnings of long options without a value of their own.
const FLAGS: &[&str] =
    &["--check", "--enable-", "--no-", "--quiet", "--silent", "--slave", "--trace-", "--vanilla", "--watch"];

/// Options of sqlite3 that take no value.
const FLAGS_OF_SQLITE: &[&str] = &[
    "-bail",
    "-batch",
    "-box",
    "-column",
    "-csv",
    "-header",
    "-html",
    "-json",
    "-line",
    "-list",
    "-markdown",
    "-noheader",
    "-quote",
    "-readonly",
    "-safe",
    "-table",
    "-tabs",
];

/// Modules of Python that read what they run, or start a shell.
const ASKING_MODULES: &[&str] =
    &["IPython", "_pyrepl", "asyncio", "bpython", "code", "idlelib", "pdb", "ptpython", "pty", "sqlite3"];

/// Modules of Python that run a text, or a file or a module that they are given.
const RUNNING_MODULES: &[&str] = &["cProfile", "profile", "runpy", "timeit", "trace"];

/// Whether this is the name of an interpreter.
pub(super) fn is_one(name: &str) -> bool {
    INTERPRETERS.iter().any(|interpreter| interpreter.names.contains(&name))
}

/// Whether this is Python, told to run a module: that may start what its arguments say, as any program may.
pub(super) fn runs_a_module(name: &str, arguments: &[Word]) -> bool {
    let module = |word: &Word| {
        let group = word.text.strip_prefix('-').filter(|group| !group.starts_with('-'));
        group.is_some_and(|group| group.contains('m'))
    };
    is_python(name) && arguments.iter().any(module)
}

/// Whether this interpreter takes the options of Python.
fn is_python(name: &str) -> bool {
    matches!(name, "ipython" | "pypy" | "pypy3" | "python" | "python2" | "python3")
}

/// How far an interpreter with these arguments can be trusted in one of those folders.
pub(super) fn judge(name: &str, arguments: &[Word], folders: &Folders) -> Clarity {
    let Some(interpreter) = INTERPRETERS.iter().find(|one| one.names.contains(&name)) else { return Clarity::Plain };
    let exact = || Clarity::Exact(format!("{name} runs the text it is given").into());
    let input = || Clarity::Opaque(format!("{name} reads what it runs from its input").into());
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    match texts.as_slice() {
        ["--version" | "-V" | "--help" | "-h"] => return Clarity::Plain,
        ["--test", ..] if name.starts_with("node") => return exact(),
        ["-v"] if !is_python(name) => return exact(),
        words if is_python(name) && asks_by_module(words) => return input(),
        _ if runs_a_module(name, arguments) && arguments.iter().any(|word| holds_input(word, folders)) => {
            return input();
        }
        ["-m", module, ..] if is_python(name) && !module.is_empty() && !RUNNING_MODULES.contains(module) => {
            return Clarity::Plain;
        }
        _ => {}
    }
    let known = match name {
        "awk" | "gawk" | "mawk" | "nawk" => !reads_program_from_input(arguments, folders),
        "sqlite3" => sqlite_has_text(&texts),
        "bpython" | "erl" | "ghci" | "iex" | "irb" | "jshell" | "ptpython" => false,
        "R" if texts.first() == Some(&"CMD") => true,
        "bun" | "deno" => {
            !texts.is_empty() && !texts.contains(&"repl") && !arguments.iter().any(|word| holds_input(word, folders))
        }
        _ => return interpreter.script(arguments, folders, exact, input),
    };
    if known { exact() } else { input() }
}

/// Whether Python runs a module that reads what it runs.
fn asks_by_module(arguments: &[&str]) -> bool {
    let asks = |module: &str| ASKING_MODULES.contains(&module.split('.').next().unwrap_or(module));
    arguments.windows(2).any(|pair| (pair[0] == "-m" || pair[0] == "runpy") && asks(pair[1]))
        || arguments.iter().any(|word| word.strip_prefix("-m").is_some_and(asks))
}

impl Interpreter {
    /// Looks for what is run behind the options.
    fn script(
        &self,
        arguments: &[Word],
        folders: &Folders,
        exact: impl Fn() -> Clarity,
        input: impl Fn() -> Clarity,
    ) -> Clarity {
        // Operands may be values of options; as many as those there may be are no script for sure.
        let (mut values, mut operands, mut inline) = (0, 0, false);
        for word in arguments {
            let text = word.text.as_str();
            if holds_input(word, folders) {
                return input();
            }
            if !text.starts_with('-') {
                // Nothing in front of it takes a value.
                if values == 0 && operands == 0 && self.scripts {
                    let hidden = word.file_names_start().is_some_and(may_be_an_option);
                    return if hidden { exact() } else { Clarity::Plain };
                }
                operands += 1;
                if operands > values && self.scripts {
                    return exact();
                }
                continue;
            }
            if text == "--" {
                continue;
            }
            if text.starts_with("--") {
                let name = text.split('=').next().unwrap_or(text);
                inline |= INLINE.contains(&name);
                values += usize::from(!text.contains('=') && !FLAGS.iter().any(|flag| text.starts_with(flag)));
            } else {
                for (at, letter) in text.char_indices().skip(1) {
                    if self.asks.contains(letter) {
                        return input();
                    }
                    if self.flags.contains(letter) {
                        continue;
                    }
                    inline |= self.inline.contains(letter);
                    values += usize::from(at + letter.len_utf8() == text.len());
                    break;
                }
            }
            if inline {
                return exact();
            }
        }
        input()
    }
}

/// Whether a program of awk comes from its input.
fn reads_program_from_input(arguments: &[Word], folders: &Folders) -> bool {
    let asks = |path: &str, word: &Word| is_input(&Word { text: path.to_owned(), ..word.clone() }, folders);
    arguments.iter().enumerate().any(|(at, word)| match word.text.strip_prefix('-') {
        Some("f" | "E" | "i" | "-file" | "-exec" | "-include") => {
            arguments.get(at + 1).is_some_and(|next| is_input(next, folders))
        }
        Some(option) if option.starts_with('-') => option.split_once('=').is_some_and(|(_, path)| asks(path, word)),
        Some(option) if option.starts_with(['f', 'E', 'i']) => {
            asks(option.trim_start_matches(['f', 'E', 'i', '=']), word) || asks(&option[1..], word)
        }
        _ => false,
    })
}

/// Whether sqlite3 has something to do beside its database, so that it leaves its input alone.
fn sqlite_has_text(arguments: &[&str]) -> bool {
    let options = arguments.iter().filter(|word| word.starts_with('-') && !FLAGS_OF_SQLITE.contains(word)).count();
    let operands = arguments.iter().filter(|word| !word.starts_with('-')).count();
    operands > options + 1
}
