//! Bash builtins. Some evaluate their arguments as commands, or as arithmetic whose subscripts may run commands. Those
//! are only understood in their plain forms.

use crate::shell_analysis::{
    catalogue::{
        shell_words::{EVALUATORS, PLAIN, RESERVED, declares},
        variables::{VariableEffect, is_name, variable},
    },
    word::{DynamicReason, Word},
};

/// Classification of a command as a bash builtin.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BuiltinKind {
    /// Not a bash builtin.
    None,
    /// A bash builtin in a form that evaluates nothing.
    Plain,
    /// A bash builtin that evaluates an argument.
    Evaluates(&'static str),
}

/// Classifies a command by its literal name and its words.
pub(super) fn judge(name: &str, words: &[Word]) -> BuiltinKind {
    let arguments = words.get(1..).unwrap_or_default();
    let first = arguments.first().and_then(Word::literal).unwrap_or_default();
    let plain = |plain: bool, reason| if plain { BuiltinKind::Plain } else { BuiltinKind::Evaluates(reason) };
    match name {
        _ if RESERVED.contains(&name) && !words.first().is_some_and(|name| name.quoted) => {
            BuiltinKind::Evaluates("it has a reserved word of the shell instead of a program")
        }
        "command" if matches!(first, "-v" | "-V") => BuiltinKind::Plain,
        "mapfile" | "readarray" if matches!(first, "-t") && arguments.len() <= 2 => names(arguments.get(1..)),
        "printf" => {
            let format = if first == "--" { arguments.get(1) } else { arguments.first() };
            let is_option = |format: &str| first != "--" && format.starts_with('-');
            let is_plain = |format: &str| !is_option(format) && !writes_a_variable(format);
            plain(format.and_then(Word::literal).is_some_and(is_plain), "`printf` may write into a variable")
        }
        "read" => read(arguments),
        "test" | "[" => test(arguments),
        "set" => plain(arguments.iter().all(sets_plainly), "`set` changes how the shell reads what follows"),
        "wait" | "jobs" => {
            plain(arguments.iter().all(|word| waits_plainly(word, arguments.len())), "it may evaluate its arguments")
        }
        _ if declares(name) => match arguments {
            [] => BuiltinKind::Plain,
            _ => plain(arguments.iter().all(declares_plainly), "it declares more than plain variables"),
        },
        "unset" => names(Some(arguments)),
        _ if EVALUATORS.contains(&name) => BuiltinKind::Evaluates("the shell evaluates its arguments"),
        _ if PLAIN.contains(&name) => BuiltinKind::Plain,
        _ => BuiltinKind::None,
    }
}

/// Returns `true` if a format of `printf` contains `%n`, which sets the variable that an argument names: `printf 5%n
/// PATH`.
pub(super) fn writes_a_variable(format: &str) -> bool {
    let is_modifier = |c: char| c.is_ascii_digit() || "-+ #'.*hlLjzt".contains(c);
    format.replace("%%", "").split('%').skip(1).any(|behind| behind.trim_start_matches(is_modifier).starts_with('n'))
}

/// Returns `true` if this argument is neither `wait -p` nor `jobs -x`, which evaluate what follows, and cannot expand
/// to one of them.
fn waits_plainly(word: &Word, count: usize) -> bool {
    match word.dynamic {
        None => word.text == "-n" || !word.text.starts_with('-'),
        Some(DynamicReason::Quoted) if count == 1 => true,
        Some(_) => word.text == "$!",
    }
}

/// Returns `true` for options of `set` that do not change how words are parsed.
fn sets_plainly(word: &Word) -> bool {
    word.literal().is_some_and(|word| match word {
        "pipefail" | "errexit" | "nounset" | "noclobber" => true,
        _ => {
            let letters = word.strip_prefix(['-', '+']).unwrap_or_default();
            !letters.is_empty() && letters.chars().all(|letter| "euofCmxv".contains(letter))
        }
    })
}

/// Classifies a builtin whose arguments name variables. It is plain only if all of them are literal names of variables
/// that the shell does not interpret.
fn names(words: Option<&[Word]>) -> BuiltinKind {
    let plain = words.unwrap_or_default().iter().all(|word| {
        word.literal().is_some_and(|name| is_name(name) && variable(name) != VariableEffect::ChangesTheShell)
    });
    if plain { BuiltinKind::Plain } else { BuiltinKind::Evaluates("it evaluates what it takes for a variable's name") }
}

fn declares_plainly(word: &Word) -> bool {
    let name = word.text.split('=').next().unwrap_or_default();
    let name = name.strip_suffix('+').unwrap_or(name);
    is_name(name)
        && (word.dynamic.is_none() || word.text.len() > name.len())
        && word.dynamic != Some(DynamicReason::Braces)
}

fn read(arguments: &[Word]) -> BuiltinKind {
    match variables_of_read(arguments) {
        Some(variables) => names(Some(variables)),
        None => BuiltinKind::Evaluates("`read` evaluates what it takes for a variable's name"),
    }
}

/// Returns the arguments after the options of `read`, if all options are plain.
fn variables_of_read(arguments: &[Word]) -> Option<&[Word]> {
    let mut at = 0;
    while let Some(option) = arguments.get(at).and_then(Word::literal).filter(|word| word.starts_with('-')) {
        at += match option {
            "-r" | "-s" | "-rs" | "-sr" => 1,
            "-p" | "-rp" | "-d" | "-n" | "-N" | "-t" | "-rd" | "-u" => 2,
            _ => return None,
        };
    }
    Some(arguments.get(at..).unwrap_or_default())
}

/// Returns the variables that a plain `read` or `mapfile` sets from its input.
pub(super) fn variables_set_by<'w>(name: &str, words: &'w [Word]) -> Option<impl Iterator<Item = &'w str>> {
    let arguments = words.get(1..).unwrap_or_default();
    let variables = match name {
        "read" => variables_of_read(arguments)?,
        "mapfile" | "readarray" => arguments.get(1..)?,
        _ => return None,
    };
    Some(variables.iter().map(|word| word.text.as_str()))
}

/// Classifies `test` and `[`. `-v` and `-R` evaluate their operand, and a word that is not literal may become one of
/// them.
fn test(arguments: &[Word]) -> BuiltinKind {
    const EVALUATES: BuiltinKind = BuiltinKind::Evaluates("`test` evaluates what it takes for a variable's name");
    const BINARY: &[&str] = &["=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];
    const UNARY: &[&str] = &["-n", "-z", "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h"];
    let arguments = match arguments {
        [rest @ .., last] if last.text == "]" => rest,
        arguments => arguments,
    };
    if arguments.iter().any(|word| !word.text.is_empty() && matches!(word.text.as_str(), "-v" | "-R")) {
        return EVALUATES;
    }
    let known = |word: &Word| word.literal().is_some();
    let one = |word: &Word| matches!(word.dynamic, None | Some(DynamicReason::Quoted)) && !word.glob && !word.tilde;
    let is = |word: &Word, list: &[&str]| word.literal().is_some_and(|word| list.contains(&word));
    let arguments = match arguments {
        [not, rest @ ..] if is(not, &["!"]) => rest,
        arguments => arguments,
    };
    let plain = match arguments {
        [] => true,
        [word] => one(word),
        [operator, word] => is(operator, UNARY) && one(word) || known(operator) && known(word),
        [left, operator, right] => is(operator, BINARY) && one(left) && one(right) || arguments.iter().all(known),
        _ => arguments.iter().all(known),
    };
    if plain { BuiltinKind::Plain } else { EVALUATES }
}
