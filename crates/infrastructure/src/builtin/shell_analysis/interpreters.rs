//! Programs that run texts of other languages. A file that they run is what a rule on them speaks of; a text among their
//! arguments is for exact rules; what they read from their input nobody can tell.

use super::{risks::may_be_an_option, word::Word};
use std::path::{Component, Path};
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
    Interpreter { scripts: false, ..of(&["erl", "ghci", "iex", "irb", "jshell"], "", "", "") },
];

/// Long options in front of a text or a file that is run.
const INLINE: &[&str] = &["--command", "--eval", "--execute", "--expression", "--file", "--print", "--run", "--script"];

/// Beginnings of long options without a value of their own.
const FLAGS: &[&str] = &["--enable-", "--no-", "--quiet", "--silent", "--slave", "--trace-", "--vanilla", "--watch"];

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
const ASKING_MODULES: &[&str] = &["IPython", "asyncio", "code", "idlelib", "pdb", "pty"];

/// Whether this is the name of an interpreter.
pub(super) fn is_one(name: &str) -> bool {
    INTERPRETERS.iter().any(|interpreter| interpreter.names.contains(&name))
}

/// How far an interpreter with these arguments can be trusted.
pub(super) fn judge(name: &str, arguments: &[Word]) -> Clarity {
    let Some(interpreter) = INTERPRETERS.iter().find(|one| one.names.contains(&name)) else { return Clarity::Plain };
    let exact = || Clarity::Exact(format!("{name} runs the text it is given").into());
    let input = || Clarity::Opaque(format!("{name} reads what it runs from its input").into());
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    match texts.as_slice() {
        ["--version" | "-V" | "--help" | "-h"] => return Clarity::Plain,
        ["--test", ..] if name.starts_with("node") => return exact(),
        ["-v"] if !name.starts_with("py") => return exact(),
        words if name.contains("py") && asks_by_module(words) => return input(),
        ["-m", module, ..] if name.contains("py") && !module.is_empty() && *module != "timeit" => {
            return Clarity::Plain;
        }
        _ => {}
    }
    let known = match name {
        "awk" | "gawk" | "mawk" | "nawk" => !reads_program_from_input(&texts),
        "sqlite3" => sqlite_has_text(&texts),
        "erl" | "ghci" | "iex" | "irb" | "jshell" => false,
        "R" if texts.first() == Some(&"CMD") => true,
        "bun" | "deno" => !texts.is_empty() && !texts.contains(&"repl") && !texts.iter().any(|text| is_input(text)),
        _ => return interpreter.script(arguments, exact, input),
    };
    if known { exact() } else { input() }
}

/// Whether Python runs a module that reads what it runs.
fn asks_by_module(arguments: &[&str]) -> bool {
    let asks = |module: &str| ASKING_MODULES.contains(&module.split('.').next().unwrap_or(module));
    arguments.windows(2).any(|pair| pair[0] == "-m" && asks(pair[1]))
        || arguments.iter().any(|word| word.strip_prefix("-m").is_some_and(asks))
}

impl Interpreter {
    /// Looks for what is run behind the options.
    fn script(&self, arguments: &[Word], exact: impl Fn() -> Clarity, input: impl Fn() -> Clarity) -> Clarity {
        // Operands may be values of options; as many as those there may be are no script for sure.
        let (mut values, mut operands, mut inline) = (0, 0, false);
        for (at, word) in arguments.iter().enumerate() {
            let text = word.text.as_str();
            if is_input(text) {
                return input();
            }
            if !text.starts_with('-') {
                if at == 0 && self.scripts {
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
fn reads_program_from_input(arguments: &[&str]) -> bool {
    let file = |word: &str| is_input(word.trim_start_matches(['f', 'E', 'i', '=']));
    arguments.iter().enumerate().any(|(at, word)| match word.strip_prefix('-') {
        Some("f" | "E" | "i" | "-file" | "-exec" | "-include") => {
            arguments.get(at + 1).is_some_and(|next| is_input(next))
        }
        Some(option) if option.starts_with("-file=") || option.starts_with("-exec=") => {
            option.split_once('=').is_some_and(|(_, path)| is_input(path))
        }
        Some(option) if option.starts_with(['f', 'E', 'i']) => file(option),
        _ => false,
    })
}

/// Whether sqlite3 has something to do beside its database, so that it leaves its input alone.
fn sqlite_has_text(arguments: &[&str]) -> bool {
    let options = arguments.iter().filter(|word| word.starts_with('-') && !FLAGS_OF_SQLITE.contains(word)).count();
    let operands = arguments.iter().filter(|word| !word.starts_with('-')).count();
    operands > options + 1
}

/// Whether a path is, or may be, the input of the process.
pub(super) fn is_input(path: &str) -> bool {
    if path == "-" {
        return true;
    }
    let mut from_root = path.starts_with('/');
    let mut names: Vec<_> = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => from_root |= names.pop().is_none(),
            Component::Normal(name) => names.push(name),
            _ => {}
        }
    }
    from_root && names.first().is_some_and(|first| *first == "dev" || *first == "proc")
}

/// Whether sed only prints, deletes, quits or substitutes.
pub(super) fn sed(arguments: &[Word]) -> Clarity {
    let (mut scripts, mut operands, mut is_plain) = (Vec::new(), Vec::new(), true);
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        is_plain &= !word.file_names_start().is_some_and(may_be_an_option);
        match word.text.as_str() {
            "-e" => scripts.extend(rest.next()),
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-nE" | "-nr" | "-En" | "--version" => {}
            "-f" | "--file" if rest.clone().next().is_some_and(|file| is_input(&file.text)) => {
                return Clarity::Opaque("sed reads its script from its input".into());
            }
            option if option.starts_with('-') => {
                let file = option.strip_prefix("-f").or_else(|| option.strip_prefix("--file="));
                if file.is_some_and(is_input) {
                    return Clarity::Opaque("sed reads its script from its input".into());
                }
                is_plain = false;
            }
            _ => operands.push(word),
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first().copied());
    }
    let text_only = |script: &Word| !script.glob && sed_only_edits_text(&script.text);
    if is_plain && scripts.into_iter().all(text_only) {
        Clarity::Plain
    } else {
        Clarity::Exact("sed may run or write something".into())
    }
}

/// Whether a script of sed only prints, deletes, quits or substitutes.
fn sed_only_edits_text(script: &str) -> bool {
    let address = |byte: u8| byte.is_ascii_digit() || matches!(byte, b',' | b'$' | b'!');
    let start = script.bytes().take_while(|byte| address(*byte)).count();
    let rest = &script[start..];
    match rest.as_bytes() {
        [b'p' | b'd' | b'q' | b'='] => true,
        [b's', delimiter, ..] if delimiter.is_ascii_punctuation() && *delimiter != b'\\' => {
            let delimiter = *delimiter as char;
            let mut parts = 0;
            let mut flags = String::new();
            let mut escaped = false;
            for character in rest.chars().skip(2) {
                if character == '\n' {
                    return false;
                }
                if parts == 2 {
                    flags.push(character);
                } else if escaped {
                    escaped = false;
                } else if character == '\\' {
                    escaped = true;
                } else if character == delimiter {
                    parts += 1;
                }
            }
            parts == 2 && flags.chars().all(|flag| matches!(flag, 'g' | 'p' | 'i' | 'I') || flag.is_ascii_digit())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_is_known_by_each_of_its_paths() {
        for path in ["-", "/dev/stdin", "//dev/./fd/0", "/proc/self/fd/0", "/x/../dev/stdin", "../../dev/stdin"] {
            assert!(is_input(path), "{path}");
        }
        for path in ["x.py", "src/dev/x.py", "/home/dev/x.py", "dev/x.py", "./-", "sub/../dev/x"] {
            assert!(!is_input(path), "{path}");
        }
    }
}
