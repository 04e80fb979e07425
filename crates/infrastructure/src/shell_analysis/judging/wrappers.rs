//! Programs that start other programs, and shells that run texts. Allow rules are applied to the started command for
//! only a few wrappers. For deny rules, every suffix of the argument list is read as a command and every text as a
//! shell text.

use super::{
    assigned_variables::sets_variables,
    builtins,
    classified_command::{ClassificationContext, ClassifiedCommand},
    git::{git_subcommand, is_plain_git},
    interpreters::runs_a_module,
    run_texts::judge_text,
    shells::{mark_implicit_shells, shell_behind},
    started_commands,
    texts::{AttachedOptionValueStart, read_every_suffix, read_quoted, read_texts, read_values},
    wrapper_effects::moves_what_it_starts,
    xargs,
};
use crate::shell_analysis::{
    catalogue::{LOOKED_THROUGH, bare, known_as, named, program},
    word::Word,
};

/// Returns the index of the command that a wrapper such as `timeout 5` or `nohup` starts unchanged. Returns `None` if
/// the words do not begin with such a wrapper in a known form.
pub(super) fn looked_through(words: &[Word]) -> Option<usize> {
    let text = |at: usize| words.get(at).and_then(Word::literal).unwrap_or_default();
    let name = words.first().filter(|name| !name.quoted && LOOKED_THROUGH.contains(&name.text.as_str()))?;
    let behind = match name.text.as_str() {
        "timeout" if is_duration(text(1)) => 2,
        "timeout" => return None,
        "nice" if text(1) == "-n" && text(2).parse::<i8>().is_ok() => 3,
        "time" if text(1) == "-p" => 2,
        _ => 1,
    };
    let program = words.get(behind)?;
    (!program.text.starts_with('-') && !program.text.contains('=')).then_some(behind)
}

fn is_duration(text: &str) -> bool {
    let number = text.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(text);
    number.starts_with(|c: char| c.is_ascii_digit()) && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Adds the readings of commands that the arguments may start, and lowers the confidence in the command accordingly.
/// `risky` is `true` if one argument is known to start something.
pub(super) fn forwarded(
    words: &[Word],
    scope: &ClassificationContext<'_>,
    risky: bool,
    result: &mut ClassifiedCommand,
) {
    let name = known_as(&words[0].text);
    let started = named(name);
    if started.is_shell() {
        result.mark_exact(format!("{name} runs the text or the file it is given"));
        shell_behind(words, scope, true, result);
        return;
    }
    let forwards = started.wrapper().is_some();
    let settled = started.is_settled() || builtins::judge(name, words) != builtins::BuiltinKind::None;
    let settled = settled && !runs_a_module(name, &words[1..]);
    if settled && !forwards {
        if !risky {
            return;
        }
        // After a known subcommand of git only values of options can be commands.
        if name == "git" && git_subcommand(words).is_some_and(is_plain_git) {
            read_texts(words, scope, result);
            read_values(words, scope, AttachedOptionValueStart::Anywhere, result);
            for pair in words.windows(2).filter(|pair| pair[0].text.starts_with('-')) {
                result.add_reading(vec![bare(&pair[1].text).into()]);
            }
            return;
        }
    }
    if !read_every_suffix(words, result) {
        return;
    }
    if forwards {
        result.mark_exact(format!("{name} starts another program"));
        sets_variables(words, scope, result);
        mark_implicit_shells(words, result);
    }
    read_texts(words, scope, result);
    let glued = match name {
        "find" | "go" => AttachedOptionValueStart::Nowhere,
        _ if forwards || risky => AttachedOptionValueStart::Anywhere,
        _ => AttachedOptionValueStart::BehindTheFirst,
    };
    read_values(words, scope, glued, result);
    if words.iter().any(|word| program(&word.text).interpreter().is_some()) {
        read_quoted(words, scope, result);
    }
    let installs = |word: &Word| program(&word.text).installs();
    if matches!(name, "sudo" | "doas") && words.get(1).is_some_and(installs) {
        return;
    }
    if forwards && started_commands::runs_a_name(words) {
        result.mark_opaque("names of files become programs");
    }
    if forwards && name != "xargs" {
        for at in 1..words.len() {
            let inner = known_as(&words[at].text);
            if named(inner).is_shell() {
                shell_behind(&words[at..], scope, true, result);
            }
            result.limit_confidence(judge_text(&words[at..], scope.folders));
            started_commands::judge_started(&words[at..], scope, result);
            if inner == "xargs" {
                xargs::judge(&words[at..], scope, result);
            }
        }
        moves_what_it_starts(words, scope, result);
    } else if started_commands::started_by(words).is_empty() {
        // The commands that `find`, `fd` and `xargs` start are classified separately.
        for at in (1..words.len()).filter(|at| program(&words[*at].text).is_shell()) {
            shell_behind(&words[at..], scope, false, result);
        }
    }
    started_commands::judge_started(words, scope, result);
    match name {
        "parallel" | "sem" => result.mark_opaque(format!("{name} may run its input")),
        "xargs" | "zargs" => xargs::judge(words, scope, result),
        _ => {}
    }
}
