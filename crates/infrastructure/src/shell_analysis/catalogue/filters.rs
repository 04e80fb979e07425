//! Programs that filter a pipe, with all options under which they read only their input and write only their output.
//! Any other option, and any abbreviation of a long option, requires approval.

/// A program that filters its input.
#[derive(Debug)]
pub(crate) struct FilterProgram {
    pub(crate) name: &'static str,
    /// Letters of short options without a value.
    pub(crate) flags: &'static str,
    /// Letters of short options with a value, and the form of the value.
    pub(crate) valued: &'static [(char, OptionValueType)],
    /// Full names of long options without a value.
    pub(crate) long_flags: &'static [&'static str],
    /// Full names of long options with a value, and the form of the value.
    pub(crate) long_valued: &'static [(&'static str, OptionValueType)],
    /// `true` if a number after a dash is a number of lines: `-5`.
    pub(crate) counts_by_dash: bool,
    /// Maximum number of operands, none of which names a file.
    pub(crate) operands: usize,
}

/// Form of the value of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionValueType {
    /// A number with an optional sign and an optional unit.
    Count,
    /// Numbers, commas and dashes.
    Ranges,
    /// Start, end and order of a sort key.
    Key,
    /// Any text.
    Text,
}

use OptionValueType::{Count, Key, Ranges, Text};

const FILTERS: &[FilterProgram] = &[
    FilterProgram {
        name: "head",
        flags: "qvz",
        valued: &[('c', Count), ('n', Count)],
        long_flags: &["quiet", "silent", "verbose", "zero-terminated"],
        long_valued: &[("bytes", Count), ("lines", Count)],
        counts_by_dash: true,
        operands: 0,
    },
    // Excludes `-f`, `-F`, `--follow`, `--retry`, `-s` and `--pid`, which make it wait.
    FilterProgram {
        name: "tail",
        flags: "qvz",
        valued: &[('c', Count), ('n', Count)],
        long_flags: &["quiet", "silent", "verbose", "zero-terminated"],
        long_valued: &[("bytes", Count), ("lines", Count)],
        counts_by_dash: true,
        operands: 0,
    },
    // Excludes `--files0-from`.
    FilterProgram {
        name: "wc",
        flags: "cmlLw",
        valued: &[],
        long_flags: &["bytes", "chars", "lines", "max-line-length", "words"],
        long_valued: &[],
        counts_by_dash: false,
        operands: 0,
    },
    // Excludes `-o`, `-S`, `-T`, `--compress-program`, `--files0-from`, `--random-source`, `--batch-size` and
    // `--parallel`.
    FilterProgram {
        name: "sort",
        flags: "bdfghiMnRrVcCsuz",
        valued: &[('k', Key), ('t', Text)],
        long_flags: &[
            "check",
            "dictionary-order",
            "general-numeric-sort",
            "human-numeric-sort",
            "ignore-case",
            "ignore-leading-blanks",
            "ignore-nonprinting",
            "month-sort",
            "numeric-sort",
            "random-sort",
            "reverse",
            "stable",
            "unique",
            "version-sort",
            "zero-terminated",
        ],
        long_valued: &[("field-separator", Text), ("key", Key)],
        counts_by_dash: false,
        operands: 0,
    },
    FilterProgram {
        name: "uniq",
        flags: "cdDiuz",
        valued: &[('f', Count), ('s', Count), ('w', Count)],
        long_flags: &["count", "ignore-case", "repeated", "unique", "zero-terminated"],
        long_valued: &[("check-chars", Count), ("skip-chars", Count), ("skip-fields", Count)],
        counts_by_dash: false,
        operands: 0,
    },
    FilterProgram {
        name: "cut",
        flags: "nsz",
        valued: &[('b', Ranges), ('c', Ranges), ('d', Text), ('f', Ranges)],
        long_flags: &["complement", "only-delimited", "zero-terminated"],
        long_valued: &[
            ("bytes", Ranges),
            ("characters", Ranges),
            ("delimiter", Text),
            ("fields", Ranges),
            ("output-delimiter", Text),
        ],
        counts_by_dash: false,
        operands: 0,
    },
    // The operands are sets of characters.
    FilterProgram {
        name: "tr",
        flags: "cCdst",
        valued: &[],
        long_flags: &["complement", "delete", "squeeze-repeats", "truncate-set1"],
        long_valued: &[],
        counts_by_dash: false,
        operands: 2,
    },
];

/// Returns the filter with exactly this name.
pub(crate) fn filter(name: &str) -> Option<&'static FilterProgram> {
    FILTERS.iter().find(|filter| filter.name == name)
}

impl FilterProgram {
    /// Returns the form of the value of the short option with this letter.
    pub(crate) fn value_of_letter(&self, letter: char) -> Option<OptionValueType> {
        self.valued.iter().find(|(known, _)| *known == letter).map(|(_, value)| *value)
    }

    /// Returns the form of the value of the long option with exactly this name.
    pub(crate) fn value_of_long(&self, name: &str) -> Option<OptionValueType> {
        self.long_valued.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

impl OptionValueType {
    /// Returns `true` if the text has this form.
    pub(crate) fn accepts(self, text: &str) -> bool {
        match self {
            Self::Count => {
                let number = text.strip_prefix(['+', '-']).unwrap_or(text);
                let unit = number.trim_start_matches(|c: char| c.is_ascii_digit());
                unit.len() < number.len() && matches!(unit, "" | "b" | "K" | "k" | "M" | "G" | "kB" | "MB" | "GB")
            }
            Self::Ranges => !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b"-,".contains(&b)),
            Self::Key => {
                text.starts_with(|c: char| c.is_ascii_digit())
                    && text.bytes().all(|byte| byte.is_ascii_digit() || b".,bdfgiMhnRrV".contains(&byte))
            }
            Self::Text => true,
        }
    }
}
