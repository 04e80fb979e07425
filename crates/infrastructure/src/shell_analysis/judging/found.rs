//! What `find`, `fd` and `xargs` start: where the name of a file, or a line of the input, becomes a program or a text that
//! is run.

use super::{
    git::git_subcommand,
    inputs::holds_inputs,
    moved::moves_what_it_starts,
    run_texts::judge_text,
    shells::{shell_behind, stands_in_for_a_shell},
    understood::{Scope, Understood},
};
use crate::shell_analysis::{
    catalogue::{Program, Risk, known_as, named, program, subcommands::GIT_RISKS},
    folders::Folders,
    word::{Dynamic, Word},
};

/// The options of `find` in front of a command.
const OF_FIND: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

/// Short options of `fd` that take a value.
const VALUED_OF_FD: &str = "EScdejot";

/// What `fd` puts parts of a name in place of.
const PLACES_OF_FD: &[&str] = &["{}", "{/}", "{//}", "{.}", "{/.}"];

/// The commands that `find` or `fd` starts, with the names that it puts into them.
pub(super) fn started_by(words: &[Word]) -> Vec<Vec<Word>> {
    match words.first().map(|word| known_as(&word.text)) {
        Some("find") => started_by_find(words),
        Some("fd" | "fdfind") => started_by_fd(words),
        _ => Vec::new(),
    }
}

fn started_by_find(words: &[Word]) -> Vec<Vec<Word>> {
    let (mut commands, mut rest) = (Vec::new(), words);
    while let Some(at) = rest.iter().position(|word| OF_FIND.contains(&word.text.as_str())) {
        let behind = &rest[at + 1..];
        let ends = |at: &usize| match behind[*at].text.as_str() {
            ";" => true,
            "+" => *at > 0 && behind[at - 1].text == "{}",
            _ => false,
        };
        let end = (0..behind.len()).find(ends).unwrap_or(behind.len());
        commands.push(behind[..end].iter().map(|word| with_names(word, |text| text.contains("{}"))).collect());
        rest = &behind[end..];
    }
    commands
}

fn started_by_fd(words: &[Word]) -> Vec<Vec<Word>> {
    let mut commands = Vec::new();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        at += 1;
        let text = word.text.as_str();
        // The program, where it stands in the word of the option.
        let glued = match text.strip_prefix("--") {
            Some("") => break,
            Some(long) => match long.split_once('=') {
                Some(("exec" | "exec-batch", program)) => Some(program),
                None if matches!(long, "exec" | "exec-batch") => None,
                _ => continue,
            },
            None => {
                let group = text.strip_prefix('-').unwrap_or_default();
                let valued = group.find(|letter| VALUED_OF_FD.contains(letter)).unwrap_or(group.len());
                match group[..valued].find(['x', 'X']) {
                    Some(place) => Some(&group[place + 1..]).filter(|program| !program.is_empty()),
                    None => continue,
                }
            }
        };
        let mut command: Vec<Word> = match glued {
            Some(program) => {
                let program = program.strip_prefix('=').unwrap_or(program);
                vec![Word { text: program.to_owned(), ..word.clone() }]
            }
            None => words[at..].iter().take_while(|word| word.text != ";").cloned().collect(),
        };
        let is_place = |text: &str| PLACES_OF_FD.iter().any(|place| text.contains(place));
        if !command.iter().any(|word| is_place(&word.text)) {
            command.push(Word { text: "{}".into(), ..Word::default() });
        }
        at += if glued.is_none() { command.len() } else { 0 };
        commands.push(command.iter().map(|word| with_names(word, is_place)).collect());
    }
    commands
}

/// This word, known to hold names if it has a place for them.
pub(super) fn with_names(word: &Word, has_place: impl Fn(&str) -> bool) -> Word {
    let dynamic = if has_place(&word.text) { Some(Dynamic::Found) } else { word.dynamic };
    Word { dynamic, ..word.clone() }
}

/// Judges what `find` or `fd` with these words starts.
pub(super) fn judge_started(words: &[Word], scope: &Scope<'_>, result: &mut Understood) {
    let moves = words.iter().any(|word| matches!(word.text.as_str(), "-execdir" | "-okdir"));
    let mut places = words.iter().skip(1).take_while(|word| !word.text.starts_with('-'));
    let is_anywhere = moves && places.any(|place| holds_inputs(place, scope.folders));
    let anywhere = Folders::anywhere();
    let folders = if is_anywhere { &anywhere } else { scope.folders };
    let scope = &Scope { folders, limits: scope.limits.clone(), analyse: scope.analyse };
    for command in started_by(words) {
        judge(&command, scope, result);
    }
}

/// Judges a command that is started with names in it.
pub(super) fn judge(command: &[Word], scope: &Scope<'_>, result: &mut Understood) {
    let Some(first) = command.first() else { return };
    let started = program(&first.text);
    let forwards = started.wrapper().is_some();
    if runs_a_name(command) {
        result.opaque("names of files become programs");
    }
    if forwards {
        stands_in_for_a_shell(command, result);
        moves_what_it_starts(command, scope, result);
    }
    judge_started(command, scope, result);
    // Of a program that is in no list every argument may be another one.
    let settled = started.is_settled() || started.is_shell();
    for at in 0..if settled { 1 } else { command.len() } {
        let (inner, arguments) = (known_as(&command[at].text), &command[at + 1..]);
        let surely = at == 0 || forwards;
        let has_names = arguments.iter().any(is_name);
        if named(inner).is_shell() {
            shell_behind(&command[at..], scope, surely, result);
        }
        if surely || has_names {
            result.trust_no_further(judge_text(&command[at..], scope.folders));
        }
        if surely && matches!(inner, "parallel" | "sem" | "xargs" | "zargs") {
            result.opaque(format!("what {inner} starts stands in its input"));
        }
        // Followed further, they would be as many as there are ways to read them.
        if at > 0 && forwards && !started_by(&command[at..]).is_empty() {
            result.opaque("it cannot be told what stands for names in what it starts");
        }
        if has_names && names_a_subcommand(inner, &command[at..]) {
            result.opaque(format!("a name that is found says what {inner} does"));
        }
        if has_names && names_a_risk(inner, &command[at..]) {
            result.opaque(format!("a name that is found says what {inner} runs"));
        }
    }
}

/// Whether the subcommand of this program is a name that is found, or one that may start what it is given.
fn names_a_subcommand(name: &str, command: &[Word]) -> bool {
    let texts: Vec<&str> = command[1..].iter().map(|word| word.text.as_str()).collect();
    match named(name).subcommands {
        Some(subcommands) => !subcommands.is_plain(&texts),
        None => name == "git" && git_subcommand(command).and_then(<[Word]>::first).is_some_and(is_name),
    }
}

/// Whether a name stands in an argument that makes this program run something, or right behind an option that does.
fn names_a_risk(name: &str, command: &[Word]) -> bool {
    let of_git = || {
        let rest = git_subcommand(command).unwrap_or_default();
        let own = |pair: &[Word]| pair[0].text == "-c" && is_name(&pair[1]);
        let short = rest.first().and_then(|first| GIT_RISKS.iter().find(|(name, _)| *name == first.text));
        command[..command.len() - rest.len()].windows(2).any(own)
            || short.is_some_and(|(_, risks)| hits_a_name(named(name), risks, &rest[1..]))
    };
    name == "git" && of_git() || hits_a_name(named(name), named(name).risks.runs, &command[1..])
}

fn hits_a_name(program: &Program, risks: &[Risk], arguments: &[Word]) -> bool {
    // Where every use is a risk, or a number of operands, that is no word's doing.
    let of_words = |risk: &&Risk| !matches!(risk, Risk::Always | Risk::Operands(_));
    let hits =
        |word: &Word| risks.iter().filter(of_words).any(|risk| program.risks.is_hit(*risk, &[word.text.as_str()]));
    let behind = |pair: &[Word]| is_name(&pair[1]) && pair[0].text.starts_with('-') && hits(&pair[0]);
    arguments.iter().any(|word| is_name(word) && hits(word)) || arguments.windows(2).any(behind)
}

fn is_name(word: &Word) -> bool {
    word.dynamic == Some(Dynamic::Found)
}

/// Whether the program is made of a name, that of this command or of one that it forwards to; or of a pattern of names.
pub(super) fn runs_a_name(command: &[Word]) -> bool {
    let (mut simple, mut forwards, mut forwarded, mut behind_option) = (true, true, false, false);
    command.iter().any(|word| {
        let found = forwards && (is_name(word) || simple && word.glob);
        if let Some(wrapper) = program(&word.text).wrapper() {
            forwarded = true;
            simple &= wrapper.starts_its_first_operand();
        } else if simple && !behind_option && !word.text.starts_with('-') && !word.text.contains('=') {
            // A program: what follows are its arguments, unless this is the number that `timeout` takes.
            forwards &= forwarded && word.text.starts_with(|c: char| c.is_ascii_digit());
        }
        behind_option = word.text.starts_with('-');
        found
    })
}
