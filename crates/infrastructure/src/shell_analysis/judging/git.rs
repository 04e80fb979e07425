//! Git: its general options, its subcommands, and the programs that they run.

use super::classified_command::{ClassifiedCommand, FileOperand, UnquotedWords, texts};
use crate::shell_analysis::{
    catalogue::{
        named,
        subcommands::{GIT_HARMLESS, GIT_NESTED, GIT_RISKS, GIT_RUNNERS, GIT_SUBCOMMANDS, GIT_VALUED},
    },
    word::Word,
};
use std::path::PathBuf;

/// Returns the index of git's subcommand, after the general options.
fn subcommand_place(words: &[Word]) -> usize {
    let mut at = 1;
    while let Some(option) = words.get(at).filter(|word| word.text.starts_with('-')) {
        at += if GIT_VALUED.contains(&option.text.as_str()) { 2 } else { 1 };
    }
    at.min(words.len())
}

/// Returns git's subcommand and its arguments.
pub(super) fn git_subcommand(words: &[Word]) -> Option<&[Word]> {
    words.get(subcommand_place(words)..).filter(|rest| !rest.is_empty())
}

/// Returns `true` if this subcommand with its arguments is a known one that starts no other programs.
pub(super) fn is_plain_git(words: &[Word]) -> bool {
    let arguments: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    git_objection(&arguments).is_none()
}

/// Lowers the confidence for options and subcommands that make git run or write something else. Adds a reading without
/// the options before the subcommand, for deny rules; the folder of `-C` becomes an operand that is read.
pub(super) fn judge(words: &[Word], result: &mut ClassifiedCommand) {
    let place = subcommand_place(words);
    let general = &words[1..place];
    if !matches!(general.first().map(|word| word.text.as_str()), Some("--version" | "--help")) {
        match git_folder(general) {
            Ok(folder) => {
                result.operands.extend(folder.map(|path| FileOperand { path, writes: false, tree: true }));
            }
            Err(reason) => result.mark_exact(reason),
        }
    }
    let Some(rest) = git_subcommand(words) else { return };
    if !general.is_empty() {
        let mut reading: UnquotedWords = vec!["git".into()];
        reading.extend(texts(rest));
        result.add_reading(reading);
    }
    let subcommand: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
    if let Some(reason) = git_objection(&subcommand) {
        result.mark_exact(reason);
    }
    let arguments: Vec<&str> = rest[1..].iter().map(|word| word.text.as_str()).collect();
    let short = GIT_RISKS.iter().find(|(name, _)| *name == rest[0].text);
    if short.is_some_and(|(_, risks)| risks.iter().any(|risk| named("git").risks.is_hit(*risk, &arguments))) {
        result.mark_exact("this argument makes git run or write something else");
    }
}

/// Returns the folder that git's general options select. Fails with a reason if the options have any other effect.
fn git_folder(general: &[Word]) -> Result<Option<String>, &'static str> {
    let mut folder: Option<PathBuf> = None;
    let mut options = general.iter();
    while let Some(option) = options.next() {
        match option.text.as_str() {
            "-C" => match options.next().and_then(Word::literal) {
                // Each `-C` is relative to the preceding one.
                Some(next) => folder = Some(folder.unwrap_or_default().join(next)),
                None => return Err("the folder that git works in is unknown"),
            },
            name if GIT_HARMLESS.contains(&name) => {}
            _ => return Err("options before git's subcommand change what it does and where"),
        }
    }
    let text = |folder: PathBuf| folder.into_os_string().into_string();
    folder.map(text).transpose().map_err(|_| "the folder that git works in is unknown")
}

/// Returns the reason why this subcommand of git may run other programs, or `None` if it does not.
fn git_objection(words: &[&str]) -> Option<String> {
    const RUNS: &str = "this subcommand of git runs programs that it is given, or that its configuration names";
    let (name, arguments) = words.split_first()?;
    if GIT_SUBCOMMANDS.contains(name) {
        return None;
    }
    if let Some((_, further, flags)) = GIT_NESTED.iter().find(|(outer, ..)| outer == name) {
        let inner = arguments.iter().find(|word| !flags.contains(*word));
        return inner.is_some_and(|inner| !further.contains(inner)).then(|| RUNS.into());
    }
    match *name {
        "config" => {
            let only_reads = matches!(arguments.first(), Some(&("--get" | "--get-all" | "--list" | "-l")));
            (!only_reads).then(|| "git config can name programs that git runs".into())
        }
        _ if GIT_RUNNERS.contains(name) => Some(RUNS.into()),
        _ => Some(format!("`{name}` is not a known subcommand of git, and may be an alias or any program")),
    }
}
