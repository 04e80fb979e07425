//! Programs that run a text: one of their arguments, or a file that they read.

use super::{inputs, interpreters, sed};
use crate::shell_analysis::{
    catalogue::{known_as, named},
    folders::WorkingFolders,
    word::Word,
};
use toolstead_domain::ParseConfidence;

/// Returns the confidence in a command whose program may run a text: one of its arguments, or a file that it reads.
/// Other programs are plain.
pub(super) fn judge_text(words: &[Word], folders: &WorkingFolders) -> ParseConfidence {
    let (name, arguments) = (known_as(&words[0].text), &words[1..]);
    if let Some(input) = named(name).input {
        let is_exempt = |word: &Word| {
            input.unless.contains(&word.text.as_str()) || input.or_operands && !word.text.starts_with('-')
        };
        if !arguments.iter().any(is_exempt) || arguments.iter().any(|word| inputs::holds_input(word, folders)) {
            return ParseConfidence::Opaque(format!("{name} runs the commands in its input").into());
        }
    }
    match name {
        "sed" => sed::judge(arguments, folders),
        "make" | "gmake" if inputs::make_reads_rules(words, folders) => {
            ParseConfidence::Opaque("make reads its rules from its input".into())
        }
        _ => interpreters::judge(name, arguments, folders),
    }
}
