//! Arguments of interpreters, parsed as the interpreters parse them.

use crate::shell_analysis::{
    catalogue::options::{OptionValueKind, ShortOptionGroup, ShortOptions, long_takes},
    word::Word,
};

/// Effects of the arguments of an interpreter, up to its script.
#[derive(Debug, Default)]
pub(super) struct InterpreterArguments {
    /// Texts that are run. `None` for an option whose text is missing.
    pub(super) texts: Vec<Option<Word>>,
    /// Files that are run in addition to the script.
    pub(super) files: Vec<Word>,
    /// Libraries and settings. The flag is `true` for a library in the same word as its option.
    pub(super) libraries: Vec<(Word, bool)>,
    /// The module that is run, and the index of its first argument.
    pub(super) module: Option<(Word, usize)>,
    /// Index of the first operand that is not the value of an option.
    pub(super) operand: Option<usize>,
    pub(super) asks: bool,
    pub(super) ends: bool,
    /// `true` if an option is unknown or a value may become several words, so that the arguments after it are
    /// uncertain.
    pub(super) unsure: bool,
    /// Operands, including the script, unknown options, and option values that do not decide what runs.
    pub(super) others: Vec<Word>,
}

impl InterpreterArguments {
    /// Parses arguments. `flags` are the long options that take no value for this interpreter. With `stops`, nothing
    /// after the first operand is an option.
    pub(super) fn of(letters: ShortOptions, flags: &[&str], arguments: &[Word], stops: bool) -> Self {
        let mut reading = Self::default();
        // Words that may be values of unknown options.
        let (mut at, mut values, mut only_operands) = (0, 0, false);
        while let Some(word) = arguments.get(at) {
            at += 1;
            let text = word.text.as_str();
            if text == "--" && !only_operands {
                only_operands = true;
                continue;
            }
            // Not every interpreter supports `--`.
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
                Some(long) if flags.contains(&long) => (Some(OptionValueKind::Nothing), None),
                Some(long) => {
                    let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                    (long_takes(name), value)
                }
                None => {
                    let group = ShortOptionGroup::read(letters, &text[1..]);
                    reading.asks |= group.asks;
                    reading.ends |= group.ends;
                    reading.unsure |= group.unsure;
                    (group.takes, group.value)
                }
            };
            match takes {
                Some(
                    OptionValueKind::Nothing
                    | OptionValueKind::Number
                    | OptionValueKind::NumberOrRest
                    | OptionValueKind::Rest,
                ) => {}
                Some(OptionValueKind::Ends) => reading.ends = true,
                Some(OptionValueKind::Input) => reading.asks = true,
                Some(takes) => {
                    let glued = value.map(|value| Word { text: value.to_owned(), tilde: false, ..word.clone() });
                    let is_glued = glued.is_some();
                    let value = glued.or_else(|| arguments.get(at).cloned());
                    // `node -p -e x` has one text: that of the second option.
                    let is_option =
                        takes == OptionValueKind::Text && value.as_ref().is_some_and(|word| word.text.starts_with('-'));
                    at += usize::from(!is_glued && !is_option);
                    // A pattern may become several words.
                    reading.unsure |= !is_glued && value.as_ref().is_some_and(|word| word.file_names_start().is_some());
                    match (takes, value) {
                        (OptionValueKind::Text, value) => reading.texts.push(value),
                        (OptionValueKind::TextWithArguments, value) => {
                            reading.texts.push(value);
                            break;
                        }
                        (OptionValueKind::File, Some(file)) => reading.files.push(file),
                        (OptionValueKind::Library, Some(library)) => reading.libraries.push((library, is_glued)),
                        (OptionValueKind::Setting, Some(setting)) => reading.libraries.push((setting, false)),
                        (OptionValueKind::Value, Some(value)) => reading.others.push(value),
                        (OptionValueKind::Module, Some(module)) => {
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
