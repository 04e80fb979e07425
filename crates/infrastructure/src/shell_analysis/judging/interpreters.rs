//! Programs that run texts in other languages. Patterns cover a script file; only exact rules cover a text in an
//! argument; commands from standard input are opaque.

use super::{
    inputs::{holds_input, is_input, moves_to_input},
    options::InterpreterArguments,
};
use crate::shell_analysis::{
    catalogue::{InterpreterSyntax, OperandKind, may_be_an_option, named, options::OptionValueKind},
    folders::WorkingFolders,
    word::{DynamicReason, Word},
};
use toolstead_domain::ParseConfidence;

/// Interpreters that start normally even with an option for the version or for help.
const NEVER_ANSWER: &[&str] = &["erl", "escript", "tclsh", "wish"];

/// Interpreters that continue with their input after the script, unless one of these options ends them.
const GO_ON: &[(&str, &[&str])] = &[("sbcl", &["--non-interactive", "--quit", "--script"]), ("swipl", &["-c", "-t"])];

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

/// Python modules that run commands from their input, or start a shell.
const ASKING_MODULES: &[&str] =
    &["IPython", "_pyrepl", "asyncio", "bpython", "code", "idlelib", "pdb", "ptpython", "pty", "sqlite3"];

/// Python modules that run a text, a file or a module given as an argument.
const RUNNING_MODULES: &[&str] = &["cProfile", "profile", "runpy", "timeit", "trace"];

/// Returns `true` if this is Python with `-m`. Like any unknown program, the module may start its arguments.
pub(super) fn runs_a_module(name: &str, arguments: &[Word]) -> bool {
    let module = |word: &Word| {
        let group = word.text.strip_prefix('-').filter(|group| !group.starts_with('-'));
        group.is_some_and(|group| group.contains('m'))
    };
    named(name).interpreter().is_some_and(|interpreter| interpreter.runs_modules()) && arguments.iter().any(module)
}

/// Returns the confidence in an interpreter with these arguments in one of those folders.
pub(super) fn judge(name: &str, arguments: &[Word], folders: &WorkingFolders) -> ParseConfidence {
    let Some(interpreter) = named(name).interpreter() else { return ParseConfidence::Plain };
    if let [only] = arguments
        && only.literal().is_some_and(|only| interpreter.answers(name, only))
    {
        return ParseConfidence::Plain;
    }
    let exact = || ParseConfidence::Exact(format!("{name} runs the text it is given").into());
    let input = || ParseConfidence::Opaque(format!("{name} reads what it runs from its input").into());
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let known = match name {
        "sqlite3" if sqlite_text_is_unknown(arguments) => return unknown_text(arguments),
        "sqlite3" => sqlite_has_text(&texts),
        "bpython" | "erl" | "ghci" | "iex" | "irb" | "jshell" | "ptpython" => false,
        "R" if texts.first() == Some(&"CMD") => true,
        "bun" | "deno" => {
            let evaluates = |word: &&str| matches!(*word, "eval" | "-e" | "-p" | "--eval" | "--print");
            if texts.iter().any(evaluates) && arguments.iter().any(is_unknown) {
                return unknown_text(arguments);
            }
            !texts.is_empty() && !texts.contains(&"repl") && !arguments.iter().any(|word| holds_input(word, folders))
        }
        _ => return interpreter.judge(name, arguments, folders),
    };
    if known { exact() } else { input() }
}

/// Returns `true` if file names, or a value that is known only at run time, may replace this word.
fn is_unknown(word: &Word) -> bool {
    word.literal().is_none()
}

/// Returns the opaque classification of a text that one of these words makes unknown.
fn unknown_text(words: &[Word]) -> ParseConfidence {
    let of_files = |word: &Word| word.dynamic.is_none_or(|dynamic| dynamic == DynamicReason::Found);
    let unknown = words.iter().find(|word| is_unknown(word));
    ParseConfidence::Opaque(if unknown.is_some_and(of_files) {
        "names of files become part of what it runs".into()
    } else {
        "what it runs is known only then".into()
    })
}

impl InterpreterSyntax {
    /// Returns `true` if the interpreter only prints information about itself with this as its only argument.
    fn answers(&self, name: &str, argument: &str) -> bool {
        let letter = argument.strip_prefix('-').and_then(|letters| {
            let mut letters = letters.chars();
            letters.next().filter(|_| letters.next().is_none())
        });
        // Alone, these run nothing either: they only make the interpreter verbose while it runs a script.
        let speaks = matches!((name, letter), ("ruby" | "lua" | "luajit", Some('v')));
        let ends = |letter| {
            self.letters.iter().any(|(takes, group)| *takes == OptionValueKind::Ends && group.contains(letter))
        };
        // All other options that end the interpreter read files.
        let about_itself = matches!(letter, Some('h' | 'v' | 'V' | '?'));
        !NEVER_ANSWER.contains(&name)
            && (matches!(argument, "--version" | "--help") || speaks || about_itself && letter.is_some_and(ends))
    }

    /// Returns `true` if an argument that is not the value of an option is a program text or a file that the
    /// interpreter reads.
    fn is_text(&self, argument: &Word) -> bool {
        self.operand == OperandKind::Text && !argument.text.starts_with('-')
    }

    /// Classifies the texts and files that the options and operands run.
    fn judge(&self, name: &str, arguments: &[Word], folders: &WorkingFolders) -> ParseConfidence {
        let exact = || ParseConfidence::Exact(format!("{name} runs the text it is given").into());
        let input = || ParseConfidence::Opaque(format!("{name} reads what it runs from its input").into());
        let reading = InterpreterArguments::of(self.letters, self.flags, arguments, self.operand != OperandKind::Other);
        let library_is_input = |(library, _): &(Word, bool)| is_or_sets_input(library, folders);
        if reading.asks
            || reading.others.iter().any(|word| (reading.unsure || !self.is_text(word)) && holds_input(word, folders))
            || reading.files.iter().any(|file| is_or_sets_input(file, folders))
            || reading.libraries.iter().any(library_is_input)
            || name == "ruby" && moves_to_input(arguments, &["-C", "-X"], folders)
        {
            return input();
        }
        let options = &arguments[..reading.operand.unwrap_or(arguments.len())];
        let has = |wanted: &[&str]| options.iter().any(|word| wanted.contains(&word.text.as_str()));
        let goes_on = match name {
            // The arguments after `--` are for the script in the input.
            "guile" | "php" | "racket" => has(&["--"]) && reading.files.is_empty() && reading.texts.is_empty(),
            // Any other option is an argument of the script in the input.
            "tclsh" | "wish" => options.first().is_some_and(|option| {
                option.text != "-encoding" || arguments.get(2).is_none_or(|script| script.text.starts_with('-'))
            }),
            "pwsh" => options.iter().any(|word| word.text.to_ascii_lowercase().starts_with("-noe")),
            "gnuplot" => arguments.iter().any(|word| holds_input(word, folders)),
            _ => GO_ON.iter().any(|(one, ends)| *one == name && !has(ends)) && !reading.ends,
        };
        if goes_on {
            return input();
        }
        if matches!(name, "tclsh" | "wish") && !options.is_empty() {
            return exact();
        }
        let operand = reading.operand.and_then(|at| arguments.get(at));
        let text = operand.filter(|_| self.operand == OperandKind::Text && reading.files.is_empty());
        let texts: Vec<Word> = reading.texts.iter().flatten().chain(text).cloned().collect();
        let libraries: Vec<Word> = reading.libraries.iter().map(|(library, _)| library.clone()).collect();
        for run in [&texts, &libraries] {
            if run.iter().any(is_unknown) {
                return unknown_text(run);
            }
        }
        if reading.unsure && arguments.iter().any(|word| word.dynamic == Some(DynamicReason::Found)) {
            return unknown_text(arguments);
        }
        if reading.texts.iter().any(Option::is_none) {
            return input();
        }
        if let Some((module, at)) = &reading.module {
            if arguments.iter().any(|word| holds_input(word, folders)) {
                return input();
            }
            let plain = !reading.unsure && reading.libraries.iter().all(is_bare);
            return match runs_module(module, &arguments[*at..]) {
                ParseConfidence::Plain if !plain => exact(),
                clarity => clarity,
            };
        }
        if !texts.is_empty() || !reading.files.is_empty() || reading.ends && !NEVER_ANSWER.contains(&name) {
            return exact();
        }
        match operand {
            None if self.operand == OperandKind::Text => exact(),
            Some(script) if self.operand == OperandKind::Script => {
                let hidden = script.file_names_start().is_some_and(may_be_an_option);
                if hidden || reading.unsure || !reading.libraries.iter().all(is_bare) {
                    exact()
                } else {
                    ParseConfidence::Plain
                }
            }
            _ => input(),
        }
    }
}

/// Returns `true` if this is the input, or a setting assigned to it, as in a configuration file.
fn is_or_sets_input(word: &Word, folders: &WorkingFolders) -> bool {
    let value = word.text.trim_start_matches('=').split_once('=').map(|(_, value)| {
        let text = value.trim_matches([' ', '\t', '"', '\'']).to_owned();
        Word { text, ..word.clone() }
    });
    is_input(word, folders)
        || value.is_some_and(|value| is_input(&value, folders) || value.text.to_ascii_lowercase().starts_with("php:"))
}

/// Returns `true` if a library is named in the same word as its option, by a name that can be neither a path outside of
/// the library folders nor a text: `-rjson`, `-Wignore::DeprecationWarning`.
fn is_bare((library, is_glued): &(Word, bool)) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-/,=@:".contains(c);
    let name = library.text.replace("::", "");
    *is_glued && name.chars().all(plain) && !name.contains(':') && !name.starts_with('/')
}

/// Returns the confidence in Python with this module and its arguments.
fn runs_module(module: &Word, arguments: &[Word]) -> ParseConfidence {
    let asks = |module: &str| ASKING_MODULES.contains(&module.split('.').next().unwrap_or(module));
    let Some(name) = module.literal() else { return unknown_text(std::slice::from_ref(module)) };
    let first = arguments.first().map(|word| word.text.as_str());
    if asks(name) || name == "runpy" && first.is_some_and(asks) {
        return ParseConfidence::Opaque(format!("the module {name} reads what it runs from its input").into());
    }
    let takes_text = matches!(name, "runpy" | "timeit") || arguments.iter().any(|word| word.text.starts_with("-m"));
    if RUNNING_MODULES.contains(&name) && takes_text && arguments.iter().any(is_unknown) {
        return unknown_text(arguments);
    }
    if RUNNING_MODULES.contains(&name) || name.is_empty() {
        return ParseConfidence::Exact(format!("the module {name} runs what it is given").into());
    }
    ParseConfidence::Plain
}

/// Returns `true` if a text that sqlite3 runs may be the name of a file: any operand except the database.
fn sqlite_text_is_unknown(arguments: &[Word]) -> bool {
    let plain = |word: &&Word| FLAGS_OF_SQLITE.contains(&word.text.as_str());
    let mut operands = arguments.iter().filter(|word| !plain(word));
    // A pattern may become several words.
    let first = operands.next().is_some_and(|database| database.file_names_start().is_some());
    first || operands.any(is_unknown)
}

/// Returns `true` if sqlite3 has commands in its arguments beside the database, so that it does not read its input.
fn sqlite_has_text(arguments: &[&str]) -> bool {
    let options = arguments.iter().filter(|word| word.starts_with('-') && !FLAGS_OF_SQLITE.contains(word)).count();
    let operands = arguments.iter().filter(|word| !word.starts_with('-')).count();
    operands > options + 1
}
