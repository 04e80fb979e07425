//! What a wrapper changes about what it starts: where its words begin, and the folder that it runs in.

use super::{
    inputs,
    understood::{Scope, Understood},
};
use crate::shell_analysis::{
    catalogue::{known_as, program},
    word::Word,
};

/// What a wrapper may change about where the words of a command begin, and the folder that it runs in.
pub(super) fn moves_what_it_starts(words: &[Word], scope: &Scope<'_>, result: &mut Understood) {
    const TO_FOLDERS: &[&str] = &["-C", "-D", "-w", "--c", "--wd", "--work"];
    if splits_a_word(words) {
        result.opaque("env makes several words of one");
    }
    let runs_texts = words.iter().any(|word| program(&word.text).runs_texts());
    if runs_texts && inputs::moves_to_input(words, TO_FOLDERS, scope.folders) {
        result.opaque("in the folder that it is moved to, what it runs may be its input");
    }
}

/// Whether `env` takes a part of a word for a program and more (`-Ssed`), where what stands behind may be for that.
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
