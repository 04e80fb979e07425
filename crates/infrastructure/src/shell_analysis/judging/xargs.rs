//! `xargs`: its command is fixed, and its input is appended or inserted.

use super::{
    classified_command::{ClassificationContext, ClassifiedCommand},
    started_commands,
};
use crate::shell_analysis::{
    catalogue::{known_as, named},
    word::{DynamicReason, Word},
};

/// Short options of `xargs` that take a value.
const VALUED: &str = "adEIJLnPRsS";

/// Long options of `xargs` that take a value.
const LONG_VALUED: &[&str] =
    &["--arg-file", "--delimiter", "--max-args", "--max-chars", "--max-procs", "--process-slot-var"];

/// Marks an `xargs` command as opaque if its input may decide what runs. Otherwise it classifies the command that
/// `xargs` starts.
pub(super) fn judge(words: &[Word], scope: &ClassificationContext<'_>, result: &mut ClassifiedCommand) {
    let (mut at, mut from_file, mut appends) = (1, false, false);
    // Placeholder that is replaced by input lines.
    let mut place: Option<String> = None;
    while let Some(word) = words.get(at).filter(|word| word.text.starts_with('-')) {
        let option = word.text.as_str();
        at += 1;
        if option == "--" {
            break;
        }
        if word.literal().is_none() {
            return result.mark_opaque("what it starts may be in names of files");
        }
        if option.starts_with("--") {
            from_file |= option.starts_with("--a");
            appends |= option.starts_with("--m");
            if option.starts_with("--r") {
                place = Some(option.split_once('=').map_or("{}", |(_, place)| place).to_owned());
            }
            let is_valued = LONG_VALUED.iter().any(|long| option.len() > 2 && long.starts_with(option));
            at += usize::from(is_valued);
            continue;
        }
        let valued =
            option.char_indices().skip(1).find(|(_, letter)| VALUED.contains(*letter) || "eil".contains(*letter));
        let Some((letter_at, letter)) = valued else { continue };
        from_file |= letter == 'a';
        let glued = &option[letter_at + 1..];
        let next = VALUED.contains(letter) && glued.is_empty();
        if matches!(letter, 'I' | 'i' | 'J') {
            let given = if next { words.get(at).map_or("", |word| &word.text) } else { glued };
            place = Some(if given.is_empty() { "{}" } else { given }.to_owned());
        }
        // These options and `-I` cancel each other, and implementations differ in how.
        let given = if next { words.get(at).map_or("", |word| &word.text) } else { glued };
        appends |= matches!(letter, 'L' | 'l') || letter == 'n' && given != "1";
        if next {
            if words.get(at).is_some_and(|value| value.literal().is_none()) {
                return result.mark_opaque("what it starts may be in names of files");
            }
            at += 1;
        }
    }
    let command = words.get(at..).unwrap_or_default();
    let Some(program) = command.first().map(|word| known_as(&word.text)) else {
        if from_file {
            result.mark_opaque("its arguments are in a file");
        }
        return;
    };
    let interprets = named(program).interpreter().is_some();
    let last_is_option = command.len() > 1 && command.last().is_some_and(|word| word.text.starts_with('-'));
    let shell = named(program).is_shell();
    let is_name = program.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte));
    let is_told = place.is_some() && (shell || interprets || !is_name);
    if named(program).wrapper().is_some() || interprets && last_is_option || is_told || command[0].glob {
        return result.mark_opaque("what it starts is in its input");
    }
    if from_file {
        result.mark_opaque("its arguments are in a file");
    }
    let mut started: Vec<Word> = command.to_vec();
    if let Some(place) = &place {
        started = started.iter().map(|word| started_commands::with_names(word, |text| text.contains(place))).collect();
    }
    if place.is_none() || appends {
        // Without input, the command runs unchanged.
        started_commands::judge(&started, scope, result);
        started.push(Word { text: "{}".into(), dynamic: Some(DynamicReason::Found), ..Word::default() });
    }
    started_commands::judge(&started, scope, result);
}
