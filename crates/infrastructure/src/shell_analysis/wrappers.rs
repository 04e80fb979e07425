//! Programs that start other programs, and shells that run texts. For allow rules only a few wrappers are looked
//! through; for deny rules every end of the argument list is read as a command, and every text as a shell's.

use super::{
    builtins::{self, Variable},
    command::{Scope, Understood, Words, bare, judge_text, texts},
    inputs::{self, is_input},
    interpreters, programs,
    word::{Dynamic, Word},
};
use toolstead_domain::access::Clarity;

mod found;
mod xargs;

/// Words of one command of which every end is read. More make it opaque.
const MAX_SUFFIX_WORDS: usize = 256;

/// More values than these may not stand in one word. Each may reach to its end, so reading them is quadratic.
const MAX_VALUES: usize = 256;

/// How far into a group of short options a value may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Glued {
    Nowhere,
    BehindTheFirst,
    Anywhere,
}

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
    let name = programs::known_as(&words[0].text);
    if programs::SHELLS.contains(&name) {
        result.exact(format!("{name} runs the text or the file it is given"));
        shell_behind(words, scope, true, result);
        return;
    }
    let forwards = programs::FORWARDERS.contains(&name);
    let settled = programs::is_settled(name) || builtins::judge(name, words) != builtins::Builtin::None;
    let settled = settled && !interpreters::runs_a_module(name, &words[1..]);
    if settled && !forwards {
        if !risky {
            return;
        }
        // What stands behind a subcommand of git that is what it says is no command, but for values of options.
        if name == "git" && super::command::git_subcommand(words).is_some_and(super::command::is_plain_git) {
            read_texts(words, scope, result);
            read_values(words, scope, Glued::Anywhere, result);
            for pair in words.windows(2).filter(|pair| pair[0].text.starts_with('-')) {
                result.reading(vec![bare(&pair[1].text).into()]);
            }
            return;
        }
    }
    if !read_every_suffix(words, result) {
        return;
    }
    if forwards {
        result.exact(format!("{name} starts another program"));
        sets_variables(words, scope, result);
        stands_in_for_a_shell(words, result);
    }
    read_texts(words, scope, result);
    let glued = match name {
        "find" | "go" => Glued::Nowhere,
        _ if forwards || risky => Glued::Anywhere,
        _ => Glued::BehindTheFirst,
    };
    read_values(words, scope, glued, result);
    if words.iter().any(|word| interpreters::is_one(programs::known_as(&word.text))) {
        read_quoted(words, scope, result);
    }
    let installs = |word: &Word| programs::INSTALLERS.contains(&programs::known_as(&word.text));
    if matches!(name, "sudo" | "doas") && words.get(1).is_some_and(installs) {
        return;
    }
    if forwards && found::runs_a_name(words) {
        result.opaque("names of files become programs");
    }
    if forwards && name != "xargs" {
        for at in 1..words.len() {
            let inner = programs::known_as(&words[at].text);
            if programs::SHELLS.contains(&inner) {
                shell_behind(&words[at..], scope, true, result);
            }
            result.trust_no_further(judge_text(&words[at..], scope.folders));
            found::judge_started(&words[at..], scope, result);
            if inner == "xargs" {
                xargs::judge(&words[at..], scope, result);
            }
        }
        moves_what_it_starts(words, scope, result);
    } else if found::started_by(words).is_empty() {
        // What `find`, `fd` and `xargs` start is looked at by itself.
        for at in (1..words.len()).filter(|at| programs::SHELLS.contains(&programs::known_as(&words[*at].text))) {
            shell_behind(&words[at..], scope, false, result);
        }
    }
    found::judge_started(words, scope, result);
    match name {
        "parallel" | "sem" => result.opaque(format!("{name} may run its input")),
        "xargs" | "zargs" => xargs::judge(words, scope, result),
        _ => {}
    }
}

/// What setting this variable to that value, where it can be told, makes of what runs with it.
pub(super) fn assigned(name: &str, value: Option<&str>, scope: &Scope<'_>, result: &mut Understood) {
    if value.is_some_and(|value| builtins::is_harmless(name, value)) {
        return;
    }
    if builtins::variable(name) == Variable::ChangesTheShell {
        return result.opaque(format!("{name} changes what the shell runs"));
    }
    let names_a_program = builtins::names_a_program(name);
    match value {
        // Many of them hold what another program gives to a shell.
        Some(value) => {
            if names_a_program && read_differently("sh", value) {
                result.opaque(format!("the shell that {name} is read by may not be bash"));
            }
            read_value(value, scope, names_a_program, result);
        }
        None if names_a_program => {
            result.opaque(format!("what {name} makes programs start is known only when it runs"))
        }
        None => {}
    }
    result.exact(format!("{name} may change what programs do"));
}

/// Variables that a wrapper sets: `env A=b`, `sudo A=b`.
fn sets_variables(words: &[Word], scope: &Scope<'_>, result: &mut Understood) {
    for word in &words[1..] {
        if let Some((name, value)) = word.text.split_once('=').filter(|(name, _)| builtins::is_name(name)) {
            assigned(name, word.literal().map(|_| value), scope, result);
        }
    }
}

/// Programs that start a shell, which reads its input, because nothing else is given to them.
fn stands_in_for_a_shell(words: &[Word], result: &mut Understood) {
    let starts_with = |word: &Word, list: &[char]| word.text.starts_with(list);
    for at in 0..words.len() {
        let name = programs::known_as(&words[at].text);
        let behind = &words[at + 1..];
        let option = |letters: &[char], long: &[&str]| {
            behind.iter().any(|word| {
                let group = word.text.strip_prefix('-').filter(|group| !group.starts_with('-'));
                group.is_some_and(|group| group.contains(letters))
                    || long.iter().any(|long| word.text.starts_with(long))
            })
        };
        let asks = match programs::SHELLS_WITHOUT_COMMAND.iter().find(|(program, _)| *program == name) {
            Some((_, programs::ONLY_BY_OPTION)) => !option(&['c'], &["--command", "--session-command", "--run"]),
            Some((_, before)) => {
                let operand = |word: &&Word| !starts_with(word, &['-']) && !word.text.contains('=');
                let no_number = |word: &&Word| !word.text.bytes().all(|byte| byte.is_ascii_digit());
                behind.iter().filter(operand).filter(no_number).count() <= *before
            }
            None => matches!(name, "sudo" | "doas") && asks_for_a_shell(behind),
        };
        if asks {
            result.opaque(format!("{name} starts a shell, which reads its commands from its input"));
        }
    }
}

/// What a wrapper may change about where the words of a command begin, and the folder that it runs in.
fn moves_what_it_starts(words: &[Word], scope: &Scope<'_>, result: &mut Understood) {
    const TO_FOLDERS: &[&str] = &["-C", "-D", "-w", "--c", "--wd", "--work"];
    if splits_a_word(words) {
        result.opaque("env makes several words of one");
    }
    let runs_texts = words.iter().any(|word| programs::runs_texts(programs::known_as(&word.text)));
    if runs_texts && inputs::moves_to_input(words, TO_FOLDERS, scope.folders) {
        result.opaque("in the folder that it is moved to, what it runs may be its input");
    }
}

/// Whether `env` takes a part of a word for a program and more (`-Ssed`), where what stands behind may be for that.
fn splits_a_word(words: &[Word]) -> bool {
    let is_env = |word: &Word| matches!(programs::known_as(&word.text), "env" | "genv");
    let splits = |word: &Word| {
        let value = match word.text.strip_prefix("--") {
            Some(long) => long.split_once('=').filter(|(name, _)| name.starts_with('s')),
            None => word.text.strip_prefix('-').and_then(|group| group.split_once('S')),
        };
        value.is_some_and(|(_, value)| value.split_whitespace().map(programs::known_as).any(programs::runs_texts))
    };
    words.iter().skip_while(|word| !is_env(word)).any(splits)
}

/// Whether `sudo` is told to start a shell, by its own options.
fn asks_for_a_shell(arguments: &[Word]) -> bool {
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

/// Reads every end of the argument list as a command, by the bare name of its program; false where there are too many.
pub(super) fn read_every_suffix(words: &[Word], result: &mut Understood) -> bool {
    if words.len() > MAX_SUFFIX_WORDS {
        result.opaque("it has too many arguments to tell which of them it starts");
        return false;
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
    true
}

/// Reads every argument that could be a shell's text as one.
pub(super) fn read_texts(words: &[Word], scope: &Scope<'_>, result: &mut Understood) {
    let hands_texts_on = programs::TEXT_FORWARDERS.contains(&programs::known_as(&words[0].text));
    for word in &words[1..] {
        let text = word.text.as_str();
        if text.contains([' ', '\t', '\n', ';', '|', '&', '$', '`', '(']) {
            inner(text, scope, hands_texts_on, result);
        }
    }
}

/// Reads what arguments hold as values as a shell's text: `--to-command=rm`, `alias.x=!rm`, `EXEC:rm`, `rm,x`,
/// `-Irm`.
fn read_values(words: &[Word], scope: &Scope<'_>, glued: Glued, result: &mut Understood) {
    // `1erm x` is a script of sed.
    let of_sed = programs::known_as(&words[0].text) == "sed";
    let separators: &[char] = if of_sed { &['=', ':', '!', 'e'] } else { &['=', ':', '!'] };
    for word in &words[1..] {
        let text = word.text.as_str();
        let group = text.strip_prefix('-').filter(|group| !group.starts_with('-')).unwrap_or_default();
        let glued = match glued {
            Glued::Nowhere => 0,
            Glued::BehindTheFirst => 1,
            Glued::Anywhere => group.len(),
        };
        if text.matches(separators).nth(MAX_VALUES).is_some() || glued > MAX_VALUES {
            return result.opaque(format!("a word of it holds more than {MAX_VALUES} places where a value may begin"));
        }
        for (at, separator) in text.match_indices(separators) {
            let value = &text[at + separator.len()..];
            read_value(value, scope, separator == "=" && value.starts_with('!'), result);
        }
        if let Some((program, _)) = text.split_once(',') {
            read_value(program, scope, false, result);
        }
        for (at, _) in group.char_indices().skip(1).take(glued) {
            read_value(&group[at..], scope, false, result);
        }
    }
}

/// Reads what stands within quotes in texts of other languages: `system("rm x")`.
fn read_quoted(words: &[Word], scope: &Scope<'_>, result: &mut Understood) {
    for word in &words[1..] {
        for part in word.text.split(['"', '\'', '`']).skip(1) {
            read_value(part, scope, false, result);
        }
    }
}

/// Reads a value as a shell's text.
fn read_value(value: &str, scope: &Scope<'_>, surely: bool, result: &mut Understood) {
    let value = value.strip_prefix('!').unwrap_or(value);
    if value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-+/".contains(&byte)) {
        // One word: no need to read it as more.
        if !value.is_empty() {
            result.reading(vec![bare(value).into()]);
        }
        return;
    }
    inner(value, scope, surely, result);
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
        Some(text) if takes_text && text.dynamic.is_some_and(|dynamic| dynamic != Dynamic::Found) => {
            result.opaque("the shell's text is known only when it runs");
        }
        Some(text) if takes_text => {
            if text.literal().is_none() {
                result.opaque("names of files become part of what it runs");
            }
            if surely && read_differently(programs::known_as(&words[0].text), &text.text) {
                result.opaque("this shell may read the text differently from bash");
            }
            inner(&text.text, scope, true, result);
        }
        Some(file) if file.dynamic.is_some_and(|dynamic| dynamic != Dynamic::Found) && surely => {
            result.opaque("the file that the shell runs is known only then");
        }
        Some(file) if surely && is_input(file, scope.folders) => {
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
    // What a limit cut off may hold what deny rules look for.
    if let (Some(reason), true) = (unclear, surely || scope.limits.is_spent()) {
        result.opaque(format!("in the text that it runs: {reason}"));
    }
    let readings = analysis.commands.iter().flat_map(|command| command.readings.iter().chain([&command.words]));
    if !scope.limits.take_readings(readings.map(|words| words.len()).sum()) {
        return result.opaque("the texts within it have too many words to tell which of them it starts");
    }
    if surely {
        result.take_in(analysis);
    } else {
        result.take_in(super::Analysis { touches: Vec::new(), ..analysis });
    }
}
