//! Changes that a wrapper makes to the command that it starts: the start of its words, and its working folder.

use super::{
    classified_command::{ClassificationContext, ClassifiedCommand},
    inputs,
};
use crate::shell_analysis::{
    catalogue::{known_as, program},
    word::Word,
};

/// Marks a command as opaque if `env` makes several words of one, or if a wrapper changes to a folder in which the path
/// of the started script may be its standard input.
pub(super) fn moves_what_it_starts(words: &[Word], scope: &ClassificationContext<'_>, result: &mut ClassifiedCommand) {
    const TO_FOLDERS: &[&str] = &["-C", "-D", "-w", "--c", "--wd", "--work"];
    if splits_a_word(words) {
        result.mark_opaque("env makes several words of one");
    }
    let runs_texts = words.iter().any(|word| program(&word.text).runs_texts());
    if runs_texts && inputs::moves_to_input(words, TO_FOLDERS, scope.folders) {
        result.mark_opaque("it changes to a folder where what it runs may be its input");
    }
}

/// Returns `true` if `env` takes a part of a word for a program and its arguments (`-Ssed`). The words that follow may
/// then belong to that program.
fn splits_a_word(words: &[Word]) -> bool {
    let is_env = |word: &Word| matches!(known_as(&word.text), "env" | "genv");
    let splits = |word: &Word| {
        let value = match word.text.strip_prefix("--") {
            Some(long) => long.split_once('=').filter(|(name, _)| name.starts_with('s')),
            None => word.text.strip_prefix('-').and_then(|group| group.split_once('S')),
        };
        value.is_some_and(|(_, value)| value.split_whitespace().any(|word| program(word).runs_texts()))
    };
    words.iter().skip_while(|word| !is_env(word)).any(splits)
}
