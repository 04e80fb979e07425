//! One simple command: what rules compare its words with, and how far they may trust them.

use super::{
    Analysis, Limits, assignments,
    builtins::{self, Builtin},
    folders::{self, Folders, Move},
    inputs, interpreters,
    operands::{self, Operand},
    programs, risks, sed, subcommands,
    word::{Dynamic, Word},
    wrappers,
};
use std::{collections::HashSet, path::PathBuf, sync::Arc};
use toolstead_domain::access::Clarity;

/// Words without quotes.
pub(super) type Words = Vec<Arc<str>>;

/// A simple command, understood.
#[derive(Debug)]
pub(super) struct Understood {
    /// What allow rules are compared with.
    pub(super) words: Words,
    /// What deny rules are compared with as well.
    pub(super) readings: Vec<Words>,
    /// The same, to find repetitions among many.
    known: HashSet<Words>,
    pub(super) clarity: Clarity,
    /// How it moves to another folder.
    pub(super) moves: Option<Move>,
    /// The files that it names, if it is known to change them.
    pub(super) operands: Vec<Operand>,
    /// What texts among its arguments would do.
    pub(super) inner: Vec<Analysis>,
}

/// What a command is judged with.
pub(super) struct Scope<'a> {
    pub(super) folders: &'a Folders,
    pub(super) limits: Limits,
}

impl Understood {
    pub(super) fn new(words: &[Word]) -> Self {
        Self {
            words: texts(words),
            readings: Vec::new(),
            known: HashSet::new(),
            clarity: Clarity::Plain,
            moves: None,
            operands: Vec::new(),
            inner: Vec::new(),
        }
    }

    /// Trusts it no further than this.
    pub(super) fn exact(&mut self, reason: impl Into<Arc<str>>) {
        if self.clarity == Clarity::Plain {
            self.clarity = Clarity::Exact(reason.into());
        }
    }

    /// Trusts it no further than that.
    pub(super) fn trust_no_further(&mut self, clarity: Clarity) {
        match clarity {
            Clarity::Plain => {}
            Clarity::Exact(reason) => self.exact(reason),
            Clarity::Opaque(reason) => self.opaque(reason),
        }
    }

    /// Trusts it not at all.
    pub(super) fn opaque(&mut self, reason: impl Into<Arc<str>>) {
        if !matches!(self.clarity, Clarity::Opaque(_)) {
            self.clarity = Clarity::Opaque(reason.into());
        }
    }

    pub(super) fn reading(&mut self, words: Words) {
        if words != self.words && !words.is_empty() && self.known.insert(words.clone()) {
            self.readings.push(words);
        }
    }

    /// Takes over what a text among the arguments would run.
    pub(super) fn take_in(&mut self, inner: Analysis) {
        for command in &inner.commands {
            self.reading(command.words.to_vec());
            for reading in command.readings.iter() {
                self.reading(reading.to_vec());
            }
        }
        self.inner.push(inner);
    }
}

/// The words as texts.
pub(super) fn texts(words: &[Word]) -> Words {
    words.iter().map(|word| word.text.as_str().into()).collect()
}

/// The name of a program without its folder.
pub(super) fn bare(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Why the program's name is not known, if so.
fn unknown_name(name: &Word) -> Option<&'static str> {
    match name.dynamic {
        Some(Dynamic::Braces) => return Some("the program's name comes from braces"),
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
        return Some("the program's name holds characters that look like others or like none");
    }
    name.text.starts_with('%').then_some("it continues a job")
}

/// Judges a command by its words. The first one is the program.
pub(super) fn understand(words: &[Word], scope: &Scope<'_>) -> Understood {
    let mut result = Understood::new(words);
    let Some(name) = words.first() else { return result };
    if let Some(reason) = unknown_name(name) {
        result.opaque(reason);
        result.moves = Some(Move::Somewhere);
        return result;
    }
    if let Some(behind) = wrappers::looked_through(words) {
        return through(words, behind, scope);
    }
    if name.quoted {
        result.exact("the program's name is quoted");
    }
    if name.text.contains('/') {
        result.exact("a program given by its path may be any program");
        let mut reading = result.words.clone();
        reading[0] = bare(&name.text).into();
        result.reading(reading);
    }
    match builtins::judge(&name.text, words) {
        Builtin::Evaluates(reason) => {
            result.opaque(reason);
            result.moves = Some(Move::Somewhere);
            if wrappers::read_every_suffix(words, &mut result) {
                wrappers::read_texts(words, scope, &mut result);
            }
            return result;
        }
        Builtin::Plain | Builtin::None => {}
    }
    if matches!(name.text.as_str(), "cd" | "pushd" | "popd") {
        result.moves = Some(folders::moved_by(words));
        if name.quoted {
            result.opaque("a quoted `cd` hides where later commands run");
        }
    }
    let before = std::mem::replace(&mut result.clarity, Clarity::Plain);
    known_risks(words, scope.folders, &mut result);
    let risky = result.clarity != Clarity::Plain;
    if !matches!(result.clarity, Clarity::Opaque(_)) && before != Clarity::Plain {
        result.clarity = before;
    }
    if let Some(names) = builtins::variables_set_by(&name.text, words) {
        for name in names.filter(|name| !builtins::stays_in_the_shell(name)) {
            wrappers::assigned(name, None, scope, &mut result);
        }
    }
    if builtins::declares(&name.text) {
        assignments::declared(words, scope, &mut result);
    }
    wrappers::forwarded(words, scope, risky, &mut result);
    unknown_arguments(words, &mut result);
    operands::of(words, &mut result);
    result
}

/// A command behind a wrapper that changes nothing about it.
fn through(words: &[Word], behind: usize, scope: &Scope<'_>) -> Understood {
    let inner = Scope { folders: scope.folders, limits: scope.limits.deeper() };
    if inner.limits.exhausted() {
        let mut result = Understood::new(words);
        scope.limits.spend();
        result.opaque("too many programs start each other");
        return result;
    }
    let mut result = understand(&words[behind..], &inner);
    result.reading(texts(words));
    if result.moves.is_some() {
        // A program of that name moves nowhere, a command of the shell behind `time` does.
        result.moves = Some(Move::Somewhere);
    }
    result
}

/// Arguments that make a known program run or write something else.
fn known_risks(words: &[Word], folders: &Folders, result: &mut Understood) {
    let name = programs::known_as(&words[0].text);
    let arguments: Vec<&str> = words[1..].iter().map(|word| word.text.as_str()).collect();
    let arguments = if name == "curl" { without_dropped_output(&words[1..]) } else { arguments };
    if let Some((risks, reason)) = risks::of(name) {
        if risks::hits(name, risks, &arguments) {
            result.exact(reason);
        }
        let hit_by_a_file =
            |word: &Word| word.file_names_start().is_some_and(|start| risks::may_be_hit_by_a_file(risks, start));
        if words[1..].iter().any(hit_by_a_file) {
            result.exact("a file's name may be taken for an option");
        }
    }
    if subcommands::of(name).is_some_and(|commander| !commander.is_plain(&arguments)) {
        result.exact(format!("this subcommand of {name} runs other commands, or may be an alias that does"));
    }
    result.trust_no_further(judge_text(words, folders));
    match name {
        "git" => git(words, result),
        "tar" | "gtar" | "bsdtar" => {
            let old_style = words
                .get(1)
                .is_some_and(|word| !word.text.starts_with('-') && (word.glob || word.text.contains(['I', 'F', 'T'])));
            if old_style {
                result.exact("this argument makes tar run a program");
            }
        }
        _ => {}
    }
}

/// How far a program is trusted that runs a text: one among its arguments, or what it reads.
pub(super) fn judge_text(words: &[Word], folders: &Folders) -> Clarity {
    let (name, arguments) = (programs::known_as(&words[0].text), &words[1..]);
    if let Some((_, unless)) = programs::RUN_THEIR_INPUT.iter().find(|(program, _)| *program == name) {
        let is_exempt = |word: &Word| {
            unless.contains(&word.text.as_str()) || (unless.contains(&"@") && !word.text.starts_with('-'))
        };
        if !arguments.iter().any(is_exempt) || arguments.iter().any(|word| inputs::holds_input(word, folders)) {
            return Clarity::Opaque(format!("{name} runs the commands in its input").into());
        }
    }
    match name {
        "sed" => sed::judge(arguments, folders),
        "make" | "gmake" if inputs::make_reads_rules(words, folders) => {
            Clarity::Opaque("make reads its rules from its input".into())
        }
        _ => interpreters::judge(name, arguments, folders),
    }
}

/// The arguments of curl but for those that say that what it fetches goes nowhere.
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

/// Where git's subcommand stands, behind its general options.
fn subcommand_place(words: &[Word]) -> usize {
    let mut at = 1;
    while let Some(option) = words.get(at).filter(|word| word.text.starts_with('-')) {
        at += if subcommands::GIT_VALUED.contains(&option.text.as_str()) { 2 } else { 1 };
    }
    at.min(words.len())
}

/// Git's subcommand with its arguments.
pub(super) fn git_subcommand(words: &[Word]) -> Option<&[Word]> {
    words.get(subcommand_place(words)..).filter(|rest| !rest.is_empty())
}

/// Whether this subcommand, with its arguments, is what it says and no alias.
pub(super) fn is_plain_git(words: &[Word]) -> bool {
    let arguments: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    subcommands::git_objection(&arguments).is_none()
}

/// Options before git's subcommand are taken away for deny rules. The folder that it is to work in is one that it reads.
fn git(words: &[Word], result: &mut Understood) {
    let place = subcommand_place(words);
    let general = &words[1..place];
    if !matches!(general.first().map(|word| word.text.as_str()), Some("--version" | "--help")) {
        match git_folder(general) {
            Ok(folder) => {
                result.operands.extend(folder.map(|path| Operand { path, writes: false, tree: true }));
            }
            Err(reason) => result.exact(reason),
        }
    }
    let Some(rest) = git_subcommand(words) else { return };
    if !general.is_empty() {
        let mut reading: Words = vec!["git".into()];
        reading.extend(texts(rest));
        result.reading(reading);
    }
    let subcommand: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
    if let Some(reason) = subcommands::git_objection(&subcommand) {
        result.exact(reason);
    }
    let arguments: Vec<&str> = rest[1..].iter().map(|word| word.text.as_str()).collect();
    let short = subcommands::GIT_RISKS.iter().find(|(name, _)| *name == rest[0].text);
    if short.is_some_and(|(_, risks)| risks::hits("git", risks, &arguments)) {
        result.exact("this argument makes git run or write something else");
    }
}

/// The folder that git's general options lead to, if they do nothing beside that; else why they are not plain.
fn git_folder(general: &[Word]) -> Result<Option<String>, &'static str> {
    let mut folder: Option<PathBuf> = None;
    let mut options = general.iter();
    while let Some(option) = options.next() {
        match option.text.as_str() {
            "-C" => match options.next().and_then(Word::literal) {
                // Each one begins where the one before it leads.
                Some(next) => folder = Some(folder.unwrap_or_default().join(next)),
                None => return Err("the folder that git is to work in cannot be told"),
            },
            name if subcommands::GIT_HARMLESS.contains(&name) => {}
            _ => return Err("options before git's subcommand change what it does and where"),
        }
    }
    let text = |folder: PathBuf| folder.into_os_string().into_string();
    folder.map(text).transpose().map_err(|_| "the folder that git is to work in cannot be told")
}

/// Arguments whose value is known only when the command runs.
fn unknown_arguments(words: &[Word], result: &mut Understood) {
    let name = words[0].text.as_str();
    // What a program that reads is given as a file that another one writes is a file and no option.
    let is_known = |word: &&Word| word.dynamic == Some(Dynamic::Pipe) && programs::READERS.contains(&name);
    let Some(unknown) = words[1..].iter().filter(|word| word.dynamic.is_some()).find(|word| !is_known(word)) else {
        return;
    };
    let reason = format!("the argument {} is known only when it runs", super::shown(&unknown.text));
    // Where `cd` leads is not known then, and what comes later is judged so.
    if name == "cd" || programs::READ_WHATEVER_IS_NAMED.contains(&name) {
        return;
    }
    if builtins::declares(name) {
        return;
    }
    if programs::READERS.contains(&name) || name == "unset" {
        result.exact(reason);
    } else {
        result.opaque(reason);
    }
}
