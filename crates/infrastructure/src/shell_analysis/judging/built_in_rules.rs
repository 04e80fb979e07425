//! The built-in rules: commands that need no approval, verified word by word. A single word that is not verified as
//! harmless disables the built-in rule for the command.

use crate::shell_analysis::{
    catalogue::{
        filters::{FilterProgram, filter},
        variables::{is_name, stays_in_the_shell},
    },
    judging::builtins::writes_a_variable,
    word::{DynamicReason, Word},
};
use toolstead_domain::BuiltInAllowRule;

/// Upper-case variables whose value may be printed. Others may hold a secret that the configuration passes to commands.
const PRINTABLE_VARIABLES: &[&str] = &["HOME", "LINENO", "OLDPWD", "PWD", "SECONDS", "USER"];

/// Context of a command that built-in rules depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BuiltInRuleContext<'t> {
    /// `true` if standard input is a pipe that the shell created for this command.
    pub(crate) reads_pipe: bool,
    /// Text that contains the command.
    pub(crate) text: &'t str,
}

/// Returns the built-in rule that allows a command with these words. The first word is the program; no assignment
/// before it may change what the program does.
pub(crate) fn built_in_rule(words: &[Word], around: BuiltInRuleContext<'_>) -> Option<BuiltInAllowRule> {
    let (name, arguments) = words.split_first()?;
    let name = name.literal().filter(|_| !name.quoted)?;
    let are_printable = |words: &[Word]| {
        words.iter().all(is_printable)
            && (words.iter().all(|word| word.dynamic.is_none()) || !names_secret_variable(around.text))
    };
    match (name, arguments) {
        ("true" | ":", words) if are_printable(words) => Some(BuiltInAllowRule::Status),
        ("exit", code) if is_exit_code(code) => Some(BuiltInAllowRule::Status),
        ("echo", words) if are_printable(words) => Some(BuiltInAllowRule::Print),
        ("printf", [format, words @ ..]) if is_plain_format(format) && are_printable(words) => {
            Some(BuiltInAllowRule::Print)
        }
        (_, words) => {
            let filter = filter(name).filter(|_| around.reads_pipe)?;
            only_filters(filter, words).then_some(BuiltInAllowRule::PipeFilter)
        }
    }
}

fn is_plain_format(format: &Word) -> bool {
    format.literal().is_some_and(|format| !format.starts_with('-') && !writes_a_variable(format))
}

/// Returns `true` if a text reads any variable whose value must not be printed. That value may be assigned to a
/// variable whose value may be printed.
fn names_secret_variable(text: &str) -> bool {
    text.split('$').skip(1).any(|behind| {
        let behind = behind.trim_start_matches(['{', '#', '!']);
        let end = behind.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(behind.len());
        is_name(&behind[..end]) && !is_printable_variable(&behind[..end])
    })
}

/// Returns `true` if a word becomes exactly one argument that contains neither file names nor a secret from the
/// environment.
fn is_printable(word: &Word) -> bool {
    if word.glob || word.tilde {
        return false;
    }
    match word.dynamic {
        None => true,
        Some(DynamicReason::Quoted) => {
            variables(&word.text).is_some_and(|names| names.into_iter().all(is_printable_variable))
        }
        // Of the unquoted expansions, only numbers remain one word.
        Some(DynamicReason::Split) => variables(&word.text).is_some_and(|names| names.into_iter().all(is_number)),
        Some(DynamicReason::Braces | DynamicReason::Pipe | DynamicReason::Found) => false,
    }
}

fn is_number(name: &str) -> bool {
    matches!(name, "?" | "#" | "$" | "!")
}

fn is_printable_variable(name: &str) -> bool {
    is_number(name) || is_name(name) && (stays_in_the_shell(name) || PRINTABLE_VARIABLES.contains(&name))
}

/// Returns the names of the variables in a word, or `None` if it may contain an expansion of another kind.
fn variables(text: &str) -> Option<Vec<&str>> {
    if text.contains('`') {
        return None;
    }
    text.split('$')
        .skip(1)
        .map(|behind| {
            if let Some(braced) = behind.strip_prefix('{') {
                let (name, _) = braced.split_once('}')?;
                return (is_name(name) || is_number(name)).then_some(name);
            }
            let end = behind.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(behind.len());
            match end {
                0 => behind.get(..1).filter(|first| is_number(first)),
                end => Some(&behind[..end]).filter(|name| is_name(name)),
            }
        })
        .collect()
}

fn is_exit_code(arguments: &[Word]) -> bool {
    match arguments {
        [] => true,
        [code] => match code.literal() {
            Some(code) => !code.is_empty() && code.len() <= 3 && code.bytes().all(|byte| byte.is_ascii_digit()),
            None => !code.glob && !code.tilde && code.text == "$?",
        },
        _ => false,
    }
}

/// Returns `true` if no argument names a file and each option only changes what is printed.
fn only_filters(filter: &FilterProgram, arguments: &[Word]) -> bool {
    let Some(words) = arguments.iter().map(Word::literal).collect::<Option<Vec<_>>>() else { return false };
    let mut rest = words.into_iter();
    let mut operands = 0;
    while let Some(word) = rest.next() {
        let Some(option) = word.strip_prefix('-') else {
            operands += 1;
            if operands > filter.operands {
                return false;
            }
            continue;
        };
        let is_proven = match option.strip_prefix('-') {
            Some(long) => is_proven_long(filter, long, &mut rest),
            None => is_proven_group(filter, option, &mut rest),
        };
        if !is_proven {
            return false;
        }
    }
    // A filter with operands requires at least one.
    filter.operands == 0 || operands > 0
}

/// Returns `true` if a long option, given without its dashes, is written in full and known to the filter, with a valid
/// value. A value that is not in the same word is taken from `rest`.
fn is_proven_long<'w>(filter: &FilterProgram, long: &str, rest: &mut impl Iterator<Item = &'w str>) -> bool {
    match long.split_once('=') {
        Some((name, value)) => filter.value_of_long(name).is_some_and(|form| form.accepts(value)),
        None if filter.long_flags.contains(&long) => true,
        None => filter.value_of_long(long).is_some_and(|form| rest.next().is_some_and(|value| form.accepts(value))),
    }
}

/// Returns `true` if all letters after one dash are options of the filter, and the value of the last one is valid. A
/// value that is not in the same word is taken from `rest`.
fn is_proven_group<'w>(filter: &FilterProgram, group: &str, rest: &mut impl Iterator<Item = &'w str>) -> bool {
    if filter.counts_by_dash && !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit()) {
        return true;
    }
    for (at, letter) in group.char_indices() {
        if filter.flags.contains(letter) {
            continue;
        }
        let Some(form) = filter.value_of_letter(letter) else { return false };
        let value = &group[at + letter.len_utf8()..];
        return if value.is_empty() {
            rest.next().is_some_and(|value| form.accepts(value))
        } else {
            form.accepts(value)
        };
    }
    !group.is_empty()
}
