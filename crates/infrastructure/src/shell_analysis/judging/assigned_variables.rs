//! Effects of variables that are set on the programs that run with them.

use super::{
    classified_command::{ClassificationContext, ClassifiedCommand},
    shells::may_parse_differently,
    texts::read_value,
};
use crate::shell_analysis::{
    catalogue::variables::{self, VariableEffect},
    word::Word,
};

/// Applies the effects of setting this variable. `value` is `None` if the value is known only at run time.
pub(crate) fn classify_assignment(
    name: &str,
    value: Option<&str>,
    scope: &ClassificationContext<'_>,
    result: &mut ClassifiedCommand,
) {
    if value.is_some_and(|value| variables::is_harmless(name, value)) {
        return;
    }
    if variables::variable(name) == VariableEffect::ChangesTheShell {
        return result.mark_opaque(format!("{name} changes what the shell runs"));
    }
    let names_a_program = variables::names_a_program(name);
    match value {
        // Many variables hold a text that another program passes to a shell.
        Some(value) => {
            if names_a_program && may_parse_differently("sh", value) {
                result.mark_opaque(format!("the shell that reads {name} may not be bash"));
            }
            read_value(value, scope, names_a_program, result);
        }
        None if names_a_program => {
            result.mark_opaque(format!("what {name} makes programs start is known only when it runs"))
        }
        None => {}
    }
    result.mark_exact(format!("{name} may change what programs do"));
}

/// Applies the effects of variables that a wrapper sets: `env A=b`, `sudo A=b`.
pub(super) fn sets_variables(words: &[Word], scope: &ClassificationContext<'_>, result: &mut ClassifiedCommand) {
    for word in &words[1..] {
        if let Some((name, value)) = word.text.split_once('=').filter(|(name, _)| variables::is_name(name)) {
            classify_assignment(name, word.literal().map(|_| value), scope, result);
        }
    }
}

/// Applies the effects of variables that `export`, `declare` and similar commands set.
pub(super) fn declared(words: &[Word], scope: &ClassificationContext<'_>, result: &mut ClassifiedCommand) {
    let Some((declares, arguments)) = words.split_first() else { return };
    let exports = declares.text == "export";
    for word in arguments {
        let (name, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
        let (name, appends) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
        let stays = !exports && variables::stays_in_the_shell(name);
        if word.text.len() == name.len() {
            // The value was classified when it was set, unless the variable was only for the shell.
            match variables::variable(name) {
                VariableEffect::ChangesTheShell => result.mark_opaque(format!("{name} changes what the shell runs")),
                VariableEffect::ChangesPrograms if exports => {
                    result.mark_exact(format!("{name} may change what programs do"))
                }
                VariableEffect::ChangesPrograms | VariableEffect::Harmless => {}
            }
        } else if variables::variable(name) == VariableEffect::Harmless || !stays {
            let value = Some(value).filter(|_| word.dynamic.is_none() && !appends);
            classify_assignment(name, value, scope, result);
        }
    }
}
