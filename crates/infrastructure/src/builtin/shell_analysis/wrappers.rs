//! Programs that start other programs, and shells that run texts. For allow rules only a few wrappers are looked
//! through; for deny rules every end of the argument list is read as a command, and every text as a shell's.

use super::{
    command::{Scope, Understood, Words, bare, texts},
    programs,
    word::Word,
};
use toolstead_domain::access::Clarity;

/// Words of one command of which every end is read. More make it opaque.
const MAX_SUFFIX_WORDS: usize = 256;

/// Where the command starts that is behind a wrapper which changes nothing about it.
pub(super) fn looked_through(words: &[Word]) -> Option<usize> {
    let text = |at: usize| words.get(at).and_then(Word::literal).unwrap_or_default();
    let name = words.first().filter(|name| !name.quoted)?;
    let behind = match name.text.as_str() {
        "timeout" if is_duration(text(1)) => 2,
        "nice" if text(1) == "-n" && text(2).parse::<i8>().is_ok() => 3,
        "time" if text(1) == "-p" => 2,
        "nice" | "nohup" | "time" => 1,
        _ => return None,
    };
    let program = words.get(behind)?;
    (!program.text.starts_with('-') && !program.text.contains('=')).then_some(behind)
}

fn is_duration(text: &str) -> bool {
    let number = text.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(text);
    number.starts_with(|c: char| c.is_ascii_digit()) && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// What the arguments of this command would start.
/// `risky` says that one of them is known to start something.
pub(super) fn forwarded(words: &[Word], scope: &Scope<'_>, risky: bool, result: &mut Understood) {
    let name = bare(&words[0].text);
    if programs::SHELLS.contains(&name) {
        result.exact(format!("{name} runs the text or the file it is given"));
        shell(words, scope, result);
        return;
    }
    let forwards = programs::FORWARDERS.contains(&name);
    if forwards {
        result.exact(format!("{name} starts another program"));
        read_values(words, scope, result);
    }
    let settled = programs::SETTLED.contains(&name)
        || programs::READERS.contains(&name)
        || programs::INTERPRETERS.contains(&name)
        || super::builtins::judge(name, words) != super::builtins::Builtin::None;
    let starts = words.iter().any(|word| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir"));
    if settled && !forwards {
        if !risky {
            return;
        }
        read_texts(words, scope, result);
        read_values(words, scope, result);
        // What stands behind a subcommand of git that is what it says is no command.
        if name == "git" && super::command::git_subcommand(words).is_some_and(super::command::is_plain_git) {
            return;
        }
    }
    read_every_suffix(words, result);
    read_texts(words, scope, result);
    for at in 1..words.len() {
        if programs::SHELLS.contains(&bare(&words[at].text)) {
            shell_behind(&words[at..], scope, forwards || starts, result);
        }
    }
}

/// Reads every end of the argument list as a command, by the bare name of its program.
pub(super) fn read_every_suffix(words: &[Word], result: &mut Understood) {
    if words.len() > MAX_SUFFIX_WORDS {
        result.opaque("it has too many arguments to tell which of them it starts");
        return;
    }
    let texts = texts(words);
    for at in 1..texts.len() {
        let mut reading: Words = texts[at..].to_vec();
        let name = bare(&texts[at]).to_owned();
        if name.is_empty() {
            continue;
        }
        if *name != *texts[at] {
            result.reading(reading.clone());
        }
        reading[0] = name.into();
        result.reading(reading);
    }
}

/// Reads every argument that could be a shell's text as one.
pub(super) fn read_texts(words: &[Word], scope: &Scope<'_>, result: &mut Understood) {
    let hands_texts_on = programs::TEXT_FORWARDERS.contains(&bare(&words[0].text));
    for word in &words[1..] {
        let text = word.text.as_str();
        if text.contains([' ', '\t', '\n', ';', '|', '&', '$', '`', '(']) {
            inner(text, scope, hands_texts_on, result);
        }
    }
}

/// Reads what stands behind `=` as a shell's text: `--to-command=rm`, `alias.x=!rm`.
fn read_values(words: &[Word], scope: &Scope<'_>, result: &mut Understood) {
    for word in &words[1..] {
        if let Some((_, value)) = word.text.rsplit_once('=').filter(|(_, value)| !value.is_empty()) {
            inner(value.strip_prefix('!').unwrap_or(value), scope, value.starts_with('!'), result);
        }
    }
}

/// A shell that is itself the program.
fn shell(words: &[Word], scope: &Scope<'_>, result: &mut Understood) {
    shell_behind(words, scope, true, result);
}

/// A shell with its arguments: the text behind `-c` is followed.
fn shell_behind(words: &[Word], scope: &Scope<'_>, surely: bool, result: &mut Understood) {
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
            result.opaque("options of the shell change what it runs");
        }
        at += 1;
    }
    match words.get(at) {
        Some(text) if takes_text && text.dynamic.is_some() => {
            result.opaque("the shell's text is known only when it runs");
        }
        Some(text) if takes_text => {
            if surely && read_differently(bare(&words[0].text), &text.text) {
                result.opaque("this shell may read the text differently from bash");
            }
            inner(&text.text, scope, true, result);
        }
        Some(file) if file.dynamic.is_some() && surely => {
            result.opaque("the file that the shell runs is known only then");
        }
        Some(file)
            if surely && (file.text == "-" || file.text.starts_with("/dev/") || file.text.starts_with("/proc/")) =>
        {
            result.opaque("the shell reads its commands from its input");
        }
        None if surely => result.opaque("the shell reads its commands from its input"),
        _ => {}
    }
}

/// Whether a shell that is not bash may take this text for something else than bash does.
fn read_differently(shell: &str, text: &str) -> bool {
    const OF_BASH: &[&str] = &["$'", "$\"", "[[", "&>", ">&", "<&", "<<<", "|&", "((", "<(", ">(", "{"];
    match shell {
        "bash" | "rbash" => false,
        "sh" | "dash" | "ash" => {
            // What both read alike is not held against them.
            let text =
                text.replace("$((", "").replace("${", "").replace("2>&1", "").replace(">&2", "").replace("{}", "");
            OF_BASH.iter().any(|form| text.contains(form))
        }
        _ => true,
    }
}

/// Follows a shell's text.
fn inner(text: &str, scope: &Scope<'_>, surely: bool, result: &mut Understood) {
    let analysis = super::analyse_inner(text, scope.folders.clone(), scope.limits.deeper());
    let unclear = analysis.commands.iter().find_map(|command| match &command.clarity {
        Clarity::Opaque(reason) => Some(reason.clone()),
        _ => None,
    });
    let spent = unclear.is_some() && scope.limits.bytes.get() < text.len();
    if let (Some(reason), true) = (unclear, surely || spent) {
        result.opaque(format!("in the text that it runs: {reason}"));
    }
    if surely {
        result.take_in(analysis);
    } else {
        result.take_in(super::Analysis { touches: Vec::new(), ..analysis });
    }
}
