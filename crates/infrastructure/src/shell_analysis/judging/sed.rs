//! Scripts of sed: their effects other than editing the input text.

use super::inputs::is_input;
use crate::shell_analysis::{
    catalogue::may_be_an_option,
    folders::WorkingFolders,
    word::{DynamicReason, Word},
};
use toolstead_domain::ParseConfidence;

/// Strongest effect of a sed script. Later variants are stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ScriptEffect {
    /// Prints, deletes, quits and substitutes only.
    Edits,
    /// May run a command, or read or write another file: a command of the script or an option does so, or the script is
    /// not known completely.
    MayRunOrWrite,
    /// Runs the text that it edits.
    RunsItsInput,
}

/// Returns the confidence in sed with these arguments.
pub(super) fn judge(arguments: &[Word], folders: &WorkingFolders) -> ParseConfidence {
    let opaque = |reason: &str| ParseConfidence::Opaque(reason.into());
    let (mut script, mut operands, mut does) = (String::new(), Vec::new(), ScriptEffect::Edits);
    let (mut has_script, mut only_operands) = (false, false);
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if word.file_names_start().is_some_and(may_be_an_option) {
            does = does.max(ScriptEffect::MayRunOrWrite);
        }
        let text = word.text.as_str();
        if only_operands || !text.starts_with('-') || text == "-" {
            operands.push(word);
            continue;
        }
        let (option, value) = match text.strip_prefix("--") {
            Some("") => {
                only_operands = true;
                continue;
            }
            Some(long) => {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                match name {
                    name if "expression".starts_with(name) => ('e', value),
                    name if name.len() > 1 && "file".starts_with(name) => ('f', value),
                    name if value.is_none() && "line-length".starts_with(name) => ('l', None),
                    "quiet" | "silent" | "regexp-extended" | "version" | "help" | "posix" | "null-data" => continue,
                    _ => ('?', None),
                }
            }
            None => {
                let group = &text[1..];
                match group.find(|letter| !"nErsuz".contains(letter)) {
                    Some(at) => {
                        let letter = group[at..].chars().next().unwrap_or('?');
                        let value = &group[at + letter.len_utf8()..];
                        (letter, Some(value).filter(|value| !value.is_empty()))
                    }
                    None => continue,
                }
            }
        };
        match option {
            'e' => {
                let (text, from) = match value {
                    Some(text) => (text, Some(word)),
                    None => rest.next().map_or(("", None), |next| (next.text.as_str(), Some(next))),
                };
                does = does.max(from.map_or(ScriptEffect::Edits, known_by_its_text));
                script.push_str(text);
                script.push('\n');
                has_script = true;
            }
            'f' => {
                let file = match value {
                    Some(path) => Some(Word { text: path.to_owned(), ..word.clone() }),
                    None => rest.next().cloned(),
                };
                if file.is_none_or(|file| is_input(&file, folders)) {
                    return opaque("sed reads its script from its input");
                }
                has_script = true;
                does = does.max(ScriptEffect::MayRunOrWrite);
            }
            'l' => {
                // A pattern may become several words.
                if value.is_none()
                    && let Some(next) = rest.next()
                {
                    does = does.max(known_by_its_text(next));
                }
            }
            _ => does = does.max(ScriptEffect::MayRunOrWrite),
        }
    }
    if !has_script && let Some(first) = operands.first() {
        script.push_str(&first.text);
        does = does.max(known_by_its_text(first));
    }
    // Implementations of sed differ in whether a delimiter within a bracket expression (`s/[/]/x/`) ends the part.
    let does = match (read(&script, true), read(&script, false)) {
        (Some(one), Some(other)) => does.max(one).max(other),
        (Some(one), None) | (None, Some(one)) => does.max(one).max(ScriptEffect::MayRunOrWrite),
        (None, None) => ScriptEffect::RunsItsInput,
    };
    match does {
        ScriptEffect::Edits => ParseConfidence::Plain,
        ScriptEffect::MayRunOrWrite => ParseConfidence::Exact("sed may run or write something".into()),
        ScriptEffect::RunsItsInput => opaque("sed may run the text that it edits"),
    }
}

/// Returns the strongest effect that is possible because file names or run-time values may replace this script.
fn known_by_its_text(script: &Word) -> ScriptEffect {
    match script.dynamic {
        Some(DynamicReason::Found) => ScriptEffect::RunsItsInput,
        _ if script.literal().is_none() => ScriptEffect::MayRunOrWrite,
        _ => ScriptEffect::Edits,
    }
}

/// Returns the strongest effect of this script, or `None` if it is not understood. With `sets`, a delimiter within
/// `[...]` is an ordinary character.
fn read(script: &str, sets: bool) -> Option<ScriptEffect> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let mut rest = script;
    let mut does = ScriptEffect::Edits;
    loop {
        rest = behind_addresses(rest.trim_start_matches([' ', '\t', '\n', ';', '}']), sets)?;
        let Some(command) = rest.chars().next() else { return Some(does) };
        let arguments = &rest[command.len_utf8()..];
        let line_end = arguments.find('\n').unwrap_or(arguments.len());
        rest = match command {
            '{' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => arguments,
            'q' | 'Q' | 'l' => {
                let number = arguments.trim_start_matches([' ', '\t']);
                &number[digits(number)..]
            }
            '#' => &arguments[line_end..],
            // A label ends at a blank as well, and a command may follow it. Some implementations use the whole line as
            // the label; the rest of the line is analysed in any case.
            'b' | 't' | 'T' | ':' => {
                let label = arguments.trim_start_matches([' ', '\t']);
                &label[label.find([' ', '\t', '\n', ';', '}']).unwrap_or(label.len())..]
            }
            'a' | 'i' | 'c' => {
                does = does.max(ScriptEffect::MayRunOrWrite);
                behind_text(arguments)
            }
            'r' | 'R' | 'w' | 'W' => {
                does = does.max(ScriptEffect::MayRunOrWrite);
                &arguments[line_end..]
            }
            'e' if arguments[..line_end].trim().is_empty() => return Some(ScriptEffect::RunsItsInput),
            'e' => {
                does = does.max(ScriptEffect::MayRunOrWrite);
                &arguments[line_end..]
            }
            's' | 'y' => {
                let delimiter = arguments.chars().next().filter(|delimiter| !matches!(delimiter, '\n' | '\\'))?;
                let second = behind_part(&arguments[delimiter.len_utf8()..], delimiter, sets && command == 's')?;
                let behind = behind_part(second, delimiter, false)?;
                let flags = behind.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(behind.len());
                match behind[..flags].find(|flag: char| !"gpiImM0123456789".contains(flag)) {
                    None => &behind[flags..],
                    Some(at) if behind[at..].starts_with('w') => {
                        does = does.max(ScriptEffect::MayRunOrWrite);
                        &behind[behind.find('\n').unwrap_or(behind.len())..]
                    }
                    Some(at) if behind[at..].starts_with('e') => return Some(ScriptEffect::RunsItsInput),
                    Some(_) => return None,
                }
            }
            _ => return None,
        };
        if command != '{' && !rest.is_empty() && !rest.starts_with([' ', '\t', '\n', ';', '}']) {
            return None;
        }
    }
}

/// Returns the text after the addresses of a command: `1,$!`, `/a/,/b/`, `2~3`, `\,a,I`. Returns `None` if an address
/// does not end.
fn behind_addresses(script: &str, sets: bool) -> Option<&str> {
    let mut rest = script;
    loop {
        rest = match rest.chars().next() {
            Some('/') => behind_part(&rest[1..], '/', sets)?.trim_start_matches(['I', 'M']),
            Some('\\') => {
                let delimiter = rest[1..].chars().next()?;
                behind_part(&rest[1 + delimiter.len_utf8()..], delimiter, sets)?.trim_start_matches(['I', 'M'])
            }
            Some(c) if c.is_ascii_digit() || matches!(c, '$' | ',' | '!' | '~' | '+' | ' ' | '\t') => &rest[1..],
            _ => return Some(rest),
        };
    }
}

/// Returns the text after the next delimiter without a backslash before it, or `None` if the line ends before. With
/// `sets`, a delimiter within `[...]` is an ordinary character.
fn behind_part(script: &str, delimiter: char, sets: bool) -> Option<&str> {
    let mut rest = script;
    loop {
        let character = rest.chars().next()?;
        rest = &rest[character.len_utf8()..];
        match character {
            '\n' => return None,
            '\\' => rest = &rest[rest.chars().next()?.len_utf8()..],
            _ if character == delimiter => return Some(rest),
            '[' if sets => rest = behind_set(rest)?,
            _ => {}
        }
    }
}

/// Returns the text after a bracket expression, whose `[` is not part of `set`. Returns `None` if it does not end on
/// its line. A `]` at its beginning and every backslash are ordinary characters in it.
fn behind_set(set: &str) -> Option<&str> {
    let set = set.strip_prefix('^').unwrap_or(set);
    let mut rest = set.strip_prefix(']').unwrap_or(set);
    loop {
        let at = rest.find(['[', ']', '\n'])?;
        let behind = &rest[at + 1..];
        rest = match (&rest[at..=at], behind.chars().next()) {
            ("]", _) => return Some(behind),
            // `[:space:]`
            ("[", Some(kind @ (':' | '.' | '='))) => {
                let end = behind[1..].find(&*format!("{kind}]"))?;
                &behind[end + 3..]
            }
            ("[", _) => behind,
            _ => return None,
        };
    }
}

/// Returns the rest from the end of the last line of an inserted text on. The text continues on the next line if its
/// line ends with a backslash.
fn behind_text(text: &str) -> &str {
    let ends = |at: &usize| {
        let line = &text[..*at];
        (line.len() - line.trim_end_matches('\\').len()).is_multiple_of(2)
    };
    let end = text.match_indices('\n').map(|(at, _)| at).find(ends);
    &text[end.unwrap_or(text.len())..]
}
