//! Classification of one simple command: the words that rules match, and how certain their meaning is.

use super::{
    assigned_variables,
    builtins::{self, BuiltinKind},
    classified_command::{ClassificationContext, ClassifiedCommand, texts},
    git, operands,
    run_texts::judge_text,
    texts::{read_every_suffix, read_texts},
    wrappers,
};
use crate::shell_analysis::{
    analysis::shown,
    catalogue::{ProgramClass, ReadOnlyArguments, bare, known_as, named, shell_words, variables},
    folders::{self, FolderChange, WorkingFolders},
    word::{DynamicReason, Word},
};
use toolstead_domain::ParseConfidence;

/// Returns the reason why the name of the program is unknown, if it is.
fn unknown_name(name: &Word) -> Option<&'static str> {
    match name.dynamic {
        Some(DynamicReason::Braces) => return Some("the program's name comes from braces"),
        Some(_) if name.text.contains(['(', '`']) => return Some("the program's name comes from another command"),
        Some(_) => return Some("the program's name is in a variable"),
        None => {}
    }
    if name.glob && name.text != "[" {
        return Some("the program's name is a pattern of file names");
    }
    if name.tilde {
        return Some("the program's name starts with a tilde");
    }
    if name.text.is_empty() {
        return Some("the program's name is empty");
    }
    let printable = name.text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if !printable {
        return Some("the program's name has characters that look like others or are invisible");
    }
    name.text.starts_with('%').then_some("it continues a job")
}

/// Classifies a command by its words. The first word is the program.
pub(crate) fn understand(words: &[Word], scope: &ClassificationContext<'_>) -> ClassifiedCommand {
    let mut result = ClassifiedCommand::new(words);
    let Some(name) = words.first() else { return result };
    if let Some(reason) = unknown_name(name) {
        result.mark_opaque(reason);
        result.moves = Some(FolderChange::Somewhere);
        return result;
    }
    if let Some(behind) = wrappers::looked_through(words) {
        return through(words, behind, scope);
    }
    if name.quoted {
        result.mark_exact("the program's name is quoted");
    }
    if name.text.contains('/') {
        result.mark_exact("a program given by its path may be any program");
        let mut reading = result.words.clone();
        reading[0] = bare(&name.text).into();
        result.add_reading(reading);
    }
    match builtins::judge(&name.text, words) {
        BuiltinKind::Evaluates(reason) => {
            result.mark_opaque(reason);
            result.moves = Some(FolderChange::Somewhere);
            if read_every_suffix(words, &mut result) {
                read_texts(words, scope, &mut result);
            }
            return result;
        }
        BuiltinKind::Plain | BuiltinKind::None => {}
    }
    if matches!(name.text.as_str(), "cd" | "pushd" | "popd") {
        result.moves = Some(folders::folder_change(words));
        if name.quoted {
            result.mark_opaque("a quoted `cd` hides where later commands run");
        }
    }
    let before = std::mem::replace(&mut result.clarity, ParseConfidence::Plain);
    known_risks(words, scope.folders, &mut result);
    let risky = result.clarity != ParseConfidence::Plain;
    if !matches!(result.clarity, ParseConfidence::Opaque(_)) && before != ParseConfidence::Plain {
        result.clarity = before;
    }
    if let Some(names) = builtins::variables_set_by(&name.text, words) {
        for name in names.filter(|name| !variables::stays_in_the_shell(name)) {
            assigned_variables::classify_assignment(name, None, scope, &mut result);
        }
    }
    if shell_words::declares(&name.text) {
        assigned_variables::declared(words, scope, &mut result);
    }
    wrappers::forwarded(words, scope, risky, &mut result);
    unknown_arguments(words, &mut result);
    operands::of(words, &mut result);
    result
}

/// Classifies the command after a wrapper that does not change it.
fn through(words: &[Word], behind: usize, scope: &ClassificationContext<'_>) -> ClassifiedCommand {
    let inner = ClassificationContext { folders: scope.folders, limits: scope.limits.deeper(), analyse: scope.analyse };
    if inner.limits.is_too_deep() {
        let mut result = ClassifiedCommand::new(words);
        scope.limits.mark_exceeded();
        result.mark_opaque("too many programs start each other");
        return result;
    }
    let mut result = understand(&words[behind..], &inner);
    result.add_reading(texts(words));
    if result.moves.is_some() {
        // A program of that name does not change the folder, but a shell builtin after `time` does.
        result.moves = Some(FolderChange::Somewhere);
    }
    result
}

/// Applies the known risks: arguments that make the program run or write something else.
fn known_risks(words: &[Word], folders: &WorkingFolders, result: &mut ClassifiedCommand) {
    let name = known_as(&words[0].text);
    let program = named(name);
    let arguments: Vec<&str> = words[1..].iter().map(|word| word.text.as_str()).collect();
    let arguments = if name == "curl" { without_dropped_output(&words[1..]) } else { arguments };
    if program.risks.are_hit(&arguments) {
        result.mark_exact(program.risks.reason);
    }
    let hit_by_a_file =
        |word: &Word| word.file_names_start().is_some_and(|start| program.risks.may_be_hit_by_a_file(start));
    if words[1..].iter().any(hit_by_a_file) {
        result.mark_exact("a file's name may be taken for an option");
    }
    if program.subcommands.is_some_and(|subcommands| !subcommands.is_plain(&arguments)) {
        result.mark_exact(format!("this subcommand of {name} runs other commands, or may be an alias that does"));
    }
    result.limit_confidence(judge_text(words, folders));
    match name {
        "git" => git::judge(words, result),
        "tar" | "gtar" | "bsdtar" => {
            let old_style = words
                .get(1)
                .is_some_and(|word| !word.text.starts_with('-') && (word.glob || word.text.contains(['I', 'F', 'T'])));
            if old_style {
                result.mark_exact("this argument makes tar run a program");
            }
        }
        _ => {}
    }
}

/// Returns the arguments of curl without an option that discards the output.
fn without_dropped_output(arguments: &[Word]) -> Vec<&str> {
    let mut kept: Vec<&str> = Vec::new();
    for word in arguments {
        match kept.last() {
            Some(&("-o" | "--output" | "-so" | "-sSo")) if word.text == "/dev/null" => {
                kept.pop();
            }
            _ => kept.push(&word.text),
        }
    }
    kept
}

/// Applies arguments whose value is known only at run time.
fn unknown_arguments(words: &[Word], result: &mut ClassifiedCommand) {
    let name = words[0].text.as_str();
    // A reader that receives the path of a pipe reads that pipe. The path is never an option.
    let is_known = |word: &&Word| word.dynamic == Some(DynamicReason::Pipe) && named(name).is_reader();
    let Some(unknown) = words[1..].iter().filter(|word| word.dynamic.is_some()).find(|word| !is_known(word)) else {
        return;
    };
    let reason = format!("the argument {} is known only when it runs", shown(&unknown.text));
    // The folder is unknown after such a `cd`, and later commands are analysed accordingly.
    if name == "cd" || matches!(named(name).class, ProgramClass::Reader(ReadOnlyArguments::Any)) {
        return;
    }
    if shell_words::declares(name) {
        return;
    }
    if named(name).is_reader() || name == "unset" {
        result.mark_exact(reason);
    } else {
        result.mark_opaque(reason);
    }
}
