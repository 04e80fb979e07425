//! Shells with their arguments, and programs that start a shell if they are given no command.

use super::{
    classified_command::{ClassificationContext, ClassifiedCommand},
    inputs::is_input,
    texts::inner,
};
use crate::shell_analysis::{
    catalogue::{NoShellCondition, known_as, named},
    word::{DynamicReason, Word},
};

/// Classifies a shell with its arguments. The text after `-c` is analysed. `surely` is `false` if the words may not be
/// a command, so that only this text counts.
pub(super) fn shell_behind(
    words: &[Word],
    scope: &ClassificationContext<'_>,
    surely: bool,
    result: &mut ClassifiedCommand,
) {
    let mut at = 1;
    let mut takes_text = false;
    while let Some(option) = words.get(at) {
        let text = option.text.as_str();
        if option.dynamic.is_some() || !text.starts_with(['-', '+']) || text.len() < 2 {
            break;
        }
        if text == "--version" || text == "--help" {
            return;
        }
        let letters = &text[1..];
        takes_text |= letters.contains('c') && !letters.starts_with('-');
        if !letters.chars().all(|letter| "ceuxlnfvC".contains(letter)) && surely {
            result.mark_opaque("options of the shell change what it runs");
        }
        at += 1;
    }
    match words.get(at) {
        Some(text) if takes_text && text.dynamic.is_some_and(|dynamic| dynamic != DynamicReason::Found) => {
            result.mark_opaque("the shell's text is known only when it runs");
        }
        Some(text) if takes_text => {
            if text.literal().is_none() {
                result.mark_opaque("names of files become part of what it runs");
            }
            if surely && may_parse_differently(known_as(&words[0].text), &text.text) {
                result.mark_opaque("this shell may read the text differently from bash");
            }
            inner(&text.text, scope, true, result);
        }
        Some(file) if file.dynamic.is_some_and(|dynamic| dynamic != DynamicReason::Found) && surely => {
            result.mark_opaque("the file that the shell runs is known only then");
        }
        Some(file) if surely && is_input(file, scope.folders) => {
            result.mark_opaque("the shell reads its commands from its input");
        }
        None if surely => result.mark_opaque("the shell reads its commands from its input"),
        _ => {}
    }
}

/// Returns `true` if a shell other than bash may read this text differently from bash.
pub(super) fn may_parse_differently(shell: &str, text: &str) -> bool {
    const OF_BASH: &[&str] = &["$'", "$\"", "[[", "&>", ">&", "<&", "<<<", "|&", "((", "<(", ">(", "{"];
    match shell {
        "bash" | "rbash" => false,
        "sh" | "dash" | "ash" => {
            // Forms that both read in the same way are ignored.
            let text =
                text.replace("$((", "").replace("${", "").replace("2>&1", "").replace(">&2", "").replace("{}", "");
            OF_BASH.iter().any(|form| text.contains(form))
        }
        _ => true,
    }
}

/// Marks the command as opaque if one of its words is a program that starts a shell, which reads its input, because it
/// is given no command (`sudo -i`).
pub(super) fn mark_implicit_shells(words: &[Word], result: &mut ClassifiedCommand) {
    let starts_with = |word: &Word, list: &[char]| word.text.starts_with(list);
    for at in 0..words.len() {
        let name = known_as(&words[at].text);
        let behind = &words[at + 1..];
        let option = |letters: &[char], long: &[&str]| {
            behind.iter().any(|word| {
                let group = word.text.strip_prefix('-').filter(|group| !group.starts_with('-'));
                group.is_some_and(|group| group.contains(letters))
                    || long.iter().any(|long| word.text.starts_with(long))
            })
        };
        let asks = match named(name).wrapper().and_then(|wrapper| wrapper.shell_unless) {
            Some(NoShellCondition::Command) => !option(&['c'], &["--command", "--session-command", "--run"]),
            Some(NoShellCondition::Operands(before)) => {
                let operand = |word: &&Word| !starts_with(word, &['-']) && !word.text.contains('=');
                let no_number = |word: &&Word| !word.text.bytes().all(|byte| byte.is_ascii_digit());
                behind.iter().filter(operand).filter(no_number).count() <= before
            }
            None => matches!(name, "sudo" | "doas") && starts_shell(behind),
        };
        if asks {
            result.mark_opaque(format!("{name} starts a shell, which reads its commands from its input"));
        }
    }
}

/// Returns `true` if an option of `sudo` makes it start a shell.
fn starts_shell(arguments: &[Word]) -> bool {
    const VALUED: &str = "CDghpRrTtUu";
    let mut words = arguments.iter().map(|word| word.text.as_str());
    while let Some(option) = words.next().filter(|word| word.starts_with('-')) {
        let group = option.strip_prefix('-').filter(|group| !group.starts_with('-')).unwrap_or_default();
        let own = group.find(|letter| VALUED.contains(letter)).unwrap_or(group.len());
        if matches!(option, "--shell" | "--login") || group[..own].contains(['s', 'i']) {
            return true;
        }
        if own + 1 == group.len() {
            words.next();
        }
    }
    false
}
