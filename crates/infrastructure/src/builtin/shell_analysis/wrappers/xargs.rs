//! `xargs`: what it starts is given, and its input goes behind that or into it.

use super::super::{command::Understood, folders::Folders, interpreters, programs, word::Word};
use toolstead_domain::access::Clarity;

/// Its short options that take a value.
const VALUED: &str = "adEILnPs";

/// Its long options that take one.
const LONG_VALUED: &[&str] =
    &["--arg-file", "--delimiter", "--max-args", "--max-chars", "--max-lines", "--max-procs", "--process-slot-var"];

/// Makes it opaque where its input may say what runs.
pub(super) fn judge(words: &[Word], folders: &Folders, result: &mut Understood) {
    let (mut at, mut from_file, mut replaces) = (1, false, false);
    while let Some(option) = words.get(at).map(|word| word.text.as_str()).filter(|word| word.starts_with('-')) {
        at += 1;
        if option == "--" {
            break;
        }
        if option.starts_with("--") {
            from_file |= option.starts_with("--a");
            replaces |= option.starts_with("--r");
            let is_valued = LONG_VALUED.iter().any(|long| option.len() > 3 && long.starts_with(option));
            at += usize::from(is_valued);
            continue;
        }
        let valued =
            option.char_indices().skip(1).find(|(_, letter)| VALUED.contains(*letter) || "eil".contains(*letter));
        if let Some((place, letter)) = valued {
            from_file |= letter == 'a';
            replaces |= matches!(letter, 'I' | 'i');
            at += usize::from(VALUED.contains(letter) && place + 1 == option.len());
        }
    }
    let command = words.get(at..).unwrap_or_default();
    let Some(program) = command.first().map(|word| programs::known_as(&word.text)) else {
        if from_file {
            result.opaque("its arguments stand in a file");
        }
        return;
    };
    let last_is_option = command.len() > 1 && command.last().is_some_and(|word| word.text.starts_with('-'));
    let interprets = interpreters::is_one(program);
    let asks = interprets
        && (last_is_option || matches!(interpreters::judge(program, &command[1..], folders), Clarity::Opaque(_)));
    let shell = programs::SHELLS.contains(&program);
    let is_name = program.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte));
    if programs::FORWARDERS.contains(&program) || asks || (replaces && (shell || interprets || !is_name)) {
        result.opaque("what it starts stands in its input");
    } else if from_file {
        result.opaque("its arguments stand in a file");
    }
}
