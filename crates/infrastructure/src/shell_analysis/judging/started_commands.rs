//! Commands that `find`, `fd` and `xargs` start, in which a file name or an input line may become a program or a text
//! that is run.

use super::{
    classified_command::{ClassificationContext, ClassifiedCommand},
    git::git_subcommand,
    inputs::holds_inputs,
    run_texts::judge_text,
    shells::{mark_implicit_shells, shell_behind},
    wrapper_effects::moves_what_it_starts,
};
use crate::shell_analysis::{
    catalogue::{ProgramFacts, RiskyArgumentPattern, known_as, named, program, subcommands::GIT_RISKS},
    folders::WorkingFolders,
    word::{DynamicReason, Word},
};

/// Options of `find` that a command follows.
const OF_FIND: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

/// Short options of `fd` that take a value.
const VALUED_OF_FD: &str = "EScdejot";

/// Placeholders of `fd` for a file name or a part of it.
const PLACES_OF_FD: &[&str] = &["{}", "{/}", "{//}", "{.}", "{/.}"];

/// Returns the commands that `find` or `fd` starts, including the placeholders for file names.
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
        // The program, if it is in the same word as the option.
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

/// Returns the word, marked as [`DynamicReason::Found`] if it contains a placeholder.
pub(super) fn with_names(word: &Word, has_place: impl Fn(&str) -> bool) -> Word {
    let dynamic = if has_place(&word.text) { Some(DynamicReason::Found) } else { word.dynamic };
    Word { dynamic, ..word.clone() }
}

/// Classifies the commands that `find` or `fd` starts.
pub(super) fn judge_started(words: &[Word], scope: &ClassificationContext<'_>, result: &mut ClassifiedCommand) {
    let moves = words.iter().any(|word| matches!(word.text.as_str(), "-execdir" | "-okdir"));
    let mut places = words.iter().skip(1).take_while(|word| !word.text.starts_with('-'));
    let is_anywhere = moves && places.any(|place| holds_inputs(place, scope.folders));
    let anywhere = WorkingFolders::anywhere();
    let folders = if is_anywhere { &anywhere } else { scope.folders };
    let scope = &ClassificationContext { folders, limits: scope.limits.clone(), analyse: scope.analyse };
    for command in started_by(words) {
        judge(&command, scope, result);
    }
}

/// Classifies a command that is started with file names in it.
pub(super) fn judge(command: &[Word], scope: &ClassificationContext<'_>, result: &mut ClassifiedCommand) {
    let Some(first) = command.first() else { return };
    let started = program(&first.text);
    let forwards = started.wrapper().is_some();
    if runs_a_name(command) {
        result.mark_opaque("names of files become programs");
    }
    if forwards {
        mark_implicit_shells(command, result);
        moves_what_it_starts(command, scope, result);
    }
    judge_started(command, scope, result);
    // Any argument of an unknown program may be another program.
    let settled = started.is_settled() || started.is_shell();
    for at in 0..if settled { 1 } else { command.len() } {
        let (inner, arguments) = (known_as(&command[at].text), &command[at + 1..]);
        let surely = at == 0 || forwards;
        let has_names = arguments.iter().any(is_name);
        if named(inner).is_shell() {
            shell_behind(&command[at..], scope, surely, result);
        }
        if surely || has_names {
            result.limit_confidence(judge_text(&command[at..], scope.folders));
        }
        if surely && matches!(inner, "parallel" | "sem" | "xargs" | "zargs") {
            result.mark_opaque(format!("what {inner} starts is in its input"));
        }
        // Following these as well would multiply the number of readings.
        if at > 0 && forwards && !started_by(&command[at..]).is_empty() {
            result.mark_opaque("it is unknown which words of the command that it starts stand for file names");
        }
        if has_names && names_a_subcommand(inner, &command[at..]) {
            result.mark_opaque(format!("the names that are found determine what {inner} does"));
        }
        if has_names && names_a_risk(inner, &command[at..]) {
            result.mark_opaque(format!("the names that are found determine what {inner} runs"));
        }
    }
}

/// Returns `true` if a file name is the subcommand of this program, or if the subcommand may start its arguments.
fn names_a_subcommand(name: &str, command: &[Word]) -> bool {
    let texts: Vec<&str> = command[1..].iter().map(|word| word.text.as_str()).collect();
    match named(name).subcommands {
        Some(subcommands) => !subcommands.is_plain(&texts),
        None => name == "git" && git_subcommand(command).and_then(<[Word]>::first).is_some_and(is_name),
    }
}

/// Returns `true` if a file name is part of an argument that makes this program run something, or directly follows such
/// an option.
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

fn hits_a_name(program: &ProgramFacts, risks: &[RiskyArgumentPattern], arguments: &[Word]) -> bool {
    // A risk of every use or of a number of operands does not depend on a particular word.
    let of_words = |risk: &&RiskyArgumentPattern| {
        !matches!(risk, RiskyArgumentPattern::Always | RiskyArgumentPattern::Operands(_))
    };
    let hits =
        |word: &Word| risks.iter().filter(of_words).any(|risk| program.risks.is_hit(*risk, &[word.text.as_str()]));
    let behind = |pair: &[Word]| is_name(&pair[1]) && pair[0].text.starts_with('-') && hits(&pair[0]);
    arguments.iter().any(|word| is_name(word) && hits(word)) || arguments.windows(2).any(behind)
}

fn is_name(word: &Word) -> bool {
    word.dynamic == Some(DynamicReason::Found)
}

/// Returns `true` if a file name or a pattern becomes the program of this command or of a command that it forwards to.
pub(super) fn runs_a_name(command: &[Word]) -> bool {
    let (mut simple, mut forwards, mut forwarded, mut behind_option) = (true, true, false, false);
    command.iter().any(|word| {
        let found = forwards && (is_name(word) || simple && word.glob);
        if let Some(wrapper) = program(&word.text).wrapper() {
            forwarded = true;
            simple &= wrapper.starts_its_first_operand();
        } else if simple && !behind_option && !word.text.starts_with('-') && !word.text.contains('=') {
            // This is the program, and its arguments follow, unless it is the duration argument of `timeout`.
            forwards &= forwarded && word.text.starts_with(|c: char| c.is_ascii_digit());
        }
        behind_option = word.text.starts_with('-');
        found
    })
}
