//! The arguments of interpreters, read as the interpreters read them.

use crate::shell_analysis::{
    catalogue::options::{Group, Letters, Takes, long_takes},
    word::Word,
};

/// What the arguments of an interpreter make it do, up to its script.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Texts that are run; `None` where one is missing.
    pub(super) texts: Vec<Option<Word>>,
    /// Files that are run beside the script.
    pub(super) files: Vec<Word>,
    /// Libraries and settings, and whether they are libraries in the word of their option.
    pub(super) libraries: Vec<(Word, bool)>,
    /// The module that is run, and at which argument its own begin.
    pub(super) module: Option<(Word, usize)>,
    /// The place of the first operand that is none of an option's values.
    pub(super) operand: Option<usize>,
    pub(super) asks: bool,
    pub(super) ends: bool,
    /// Options that are in no list, or values that may be more than one word: what follows may be anything.
    pub(super) unsure: bool,
    /// Arguments that are nothing of all that, up to the script.
    pub(super) others: Vec<Word>,
}

impl Reading {
    /// Reads arguments. `flags`: long options that take nothing here. `stops`: nothing behind the first operand is an
    /// option.
    pub(super) fn of(letters: Letters, flags: &[&str], arguments: &[Word], stops: bool) -> Self {
        let mut reading = Self::default();
        // Words that may be values of options that are not known.
        let (mut at, mut values, mut only_operands) = (0, 0, false);
        while let Some(word) = arguments.get(at) {
            at += 1;
            let text = word.text.as_str();
            if text == "--" && !only_operands {
                only_operands = true;
                continue;
            }
            // Not every interpreter knows `--`.
            reading.unsure |= only_operands && text.starts_with('-');
            if only_operands || text == "-" || !text.starts_with('-') {
                reading.others.push(word.clone());
                if values > 0 {
                    values -= 1;
                    continue;
                }
                reading.operand.get_or_insert(at - 1);
                if stops {
                    break;
                }
                continue;
            }
            let (takes, value) = match text.strip_prefix("--") {
                Some(long) if flags.contains(&long) => (Some(Takes::Nothing), None),
                Some(long) => {
                    let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                    (long_takes(name), value)
                }
                None => {
                    let group = Group::read(letters, &text[1..]);
                    reading.asks |= group.asks;
                    reading.ends |= group.ends;
                    reading.unsure |= group.unsure;
                    (group.takes, group.value)
                }
            };
            match takes {
                Some(Takes::Nothing | Takes::Number | Takes::NumberOrRest | Takes::Rest) => {}
                Some(Takes::Ends) => reading.ends = true,
                Some(Takes::Input) => reading.asks = true,
                Some(takes) => {
                    let glued = value.map(|value| Word { text: value.to_owned(), tilde: false, ..word.clone() });
                    let is_glued = glued.is_some();
                    let value = glued.or_else(|| arguments.get(at).cloned());
                    // `node -p -e x` has one text: the next option's.
                    let is_option =
                        takes == Takes::Text && value.as_ref().is_some_and(|word| word.text.starts_with('-'));
                    at += usize::from(!is_glued && !is_option);
                    // A pattern may become several words.
                    reading.unsure |= !is_glued && value.as_ref().is_some_and(|word| word.file_names_start().is_some());
                    match (takes, value) {
                        (Takes::Text, value) => reading.texts.push(value),
                        (Takes::TextWithArguments, value) => {
                            reading.texts.push(value);
                            break;
                        }
                        (Takes::File, Some(file)) => reading.files.push(file),
                        (Takes::Library, Some(library)) => reading.libraries.push((library, is_glued)),
                        (Takes::Setting, Some(setting)) => reading.libraries.push((setting, false)),
                        (Takes::Value, Some(value)) => reading.others.push(value),
                        (Takes::Module, Some(module)) => {
                            reading.module = Some((module, at.min(arguments.len())));
                            break;
                        }
                        _ => {}
                    }
                }
                None => {
                    reading.unsure = true;
                    reading.others.push(word.clone());
                    values += usize::from(value.is_none());
                }
            }
        }
        reading
    }
}
