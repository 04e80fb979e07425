//! Arguments that make a program run or write something else.

/// Argument with an effect beyond the usual one of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RiskyArgumentPattern {
    /// Long option with this name, with or without a value, or an abbreviation that is not the name of another option.
    Long(&'static str),
    /// Long option with this name, if some argument contains an `@`.
    LongWithFile(&'static str),
    /// A group of short options that contains this letter.
    Short(char),
    /// An option that contains an `@`.
    OptionWithFile,
    /// Exactly this word.
    Word(&'static str),
    /// A word that starts with this text.
    Start(&'static str),
    /// A word that contains this text.
    Part(&'static str),
    /// A code generation option of rustc that is not in the list of harmless ones.
    Codegen,
    /// A variable that is set (`NAME=value`, `-DNAME=value`) to something other than a number or a switch.
    Variable,
    /// At least this number of operands.
    Operands(usize),
    /// Every use.
    Always,
}

/// Risks among the arguments of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RiskyArguments {
    /// Risks that run something, or may run something.
    pub(crate) runs: &'static [RiskyArgumentPattern],
    /// Risks that only write or read.
    pub(crate) writes: &'static [RiskyArgumentPattern],
    /// Reason given for all of these risks.
    pub(crate) reason: &'static str,
    beginnings: OptionAbbreviations,
    /// Short options that take the rest of their group as a value.
    valued: &'static str,
}

/// Abbreviations of long options that a program accepts.
#[derive(Debug, Clone, Copy)]
enum OptionAbbreviations {
    None,
    /// All abbreviations except these, which are names of other options.
    AllBut(&'static [&'static str]),
}

/// Code generation options of rustc that only choose how fast, how large and how checked the result is.
const CODEGEN: &[&str] = &[
    "codegen-units",
    "debug-assertions",
    "debuginfo",
    "embed-bitcode",
    "lto",
    "opt-level",
    "overflow-checks",
    "panic",
    "strip",
    "target-cpu",
    "target-feature",
];

impl RiskyArguments {
    pub(super) const NONE: Self =
        Self { runs: &[], writes: &[], reason: "", beginnings: OptionAbbreviations::AllBut(&[]), valued: "" };

    pub(super) const fn running(runs: &'static [RiskyArgumentPattern], reason: &'static str) -> Self {
        Self { runs, reason, ..Self::NONE }
    }

    pub(super) const fn writing(writes: &'static [RiskyArgumentPattern], reason: &'static str) -> Self {
        Self { writes, reason, ..Self::NONE }
    }

    pub(super) const fn and_writing(self, writes: &'static [RiskyArgumentPattern]) -> Self {
        Self { writes, ..self }
    }

    /// Marks a program that accepts no abbreviations of long options.
    pub(super) const fn with_no_beginnings(self) -> Self {
        Self { beginnings: OptionAbbreviations::None, ..self }
    }

    /// Excludes long options whose names are prefixes of a risky option.
    pub(super) const fn knowing(self, names: &'static [&'static str]) -> Self {
        Self { beginnings: OptionAbbreviations::AllBut(names), ..self }
    }

    /// Adds the short options that take the rest of their group as a value.
    pub(super) const fn with_values(self, valued: &'static str) -> Self {
        Self { valued, ..self }
    }

    fn all(&self) -> impl Iterator<Item = &'static RiskyArgumentPattern> {
        self.runs.iter().chain(self.writes)
    }

    /// Returns `true` if one of these arguments is a risk.
    pub(crate) fn are_hit(&self, arguments: &[&str]) -> bool {
        self.all().any(|risk| self.is_hit(*risk, arguments))
    }

    /// Returns `true` if one of these arguments is this risk, given the options of the program.
    pub(crate) fn is_hit(&self, risk: RiskyArgumentPattern, arguments: &[&str]) -> bool {
        let is_long = |option: &str| arguments.iter().any(|word| self.is_long(option, word));
        let holds_a_file = |word: &&str| word.contains('@');
        match risk {
            RiskyArgumentPattern::Always => true,
            RiskyArgumentPattern::Operands(count) => operands(arguments) >= count,
            RiskyArgumentPattern::Word(word) => arguments.contains(&word),
            RiskyArgumentPattern::Start(start) => arguments.iter().any(|word| word.starts_with(start)),
            RiskyArgumentPattern::Part(part) => arguments.iter().any(|word| word.contains(part)),
            RiskyArgumentPattern::Long(option) => is_long(option),
            RiskyArgumentPattern::LongWithFile(option) => is_long(option) && arguments.iter().any(holds_a_file),
            RiskyArgumentPattern::Codegen => generates_code(arguments),
            RiskyArgumentPattern::OptionWithFile => {
                arguments.iter().any(|word| word.starts_with('-') && holds_a_file(word))
            }
            RiskyArgumentPattern::Variable => arguments.iter().any(|word| sets_more_than_a_switch(word)),
            RiskyArgumentPattern::Short(letter) => arguments.iter().any(|word| {
                let group = word.strip_prefix('-').filter(|group| !group.starts_with('-')).unwrap_or_default();
                let own = group.find(|letter| self.valued.contains(letter)).map_or(group.len(), |value| value + 1);
                group[..own].contains(letter)
            }),
        }
    }

    fn is_long(&self, option: &str, word: &str) -> bool {
        let name = word.split('=').next().unwrap_or(word);
        let begins = name.len() > 2 && name.starts_with("--") && option.starts_with(name);
        name == option
            || begins
                && match self.beginnings {
                    OptionAbbreviations::None => false,
                    OptionAbbreviations::AllBut(whole) => !whole.contains(&name),
                }
    }

    /// Returns `true` if a file name that starts with this text could be a risk.
    pub(crate) fn may_be_hit_by_a_file(&self, start: &str) -> bool {
        self.all().any(|risk| match *risk {
            RiskyArgumentPattern::Always | RiskyArgumentPattern::Operands(_) => true,
            RiskyArgumentPattern::Word(word) => word.starts_with(start),
            RiskyArgumentPattern::Start(text) => text.starts_with(start) || start.starts_with(text),
            RiskyArgumentPattern::Part(_) | RiskyArgumentPattern::Variable => !start.contains('/'),
            RiskyArgumentPattern::Long(_)
            | RiskyArgumentPattern::LongWithFile(_)
            | RiskyArgumentPattern::Short(_)
            | RiskyArgumentPattern::OptionWithFile
            | RiskyArgumentPattern::Codegen => may_be_an_option(start),
        })
    }
}

/// Returns `true` if a code generation option of rustc is not in the list of harmless ones.
fn generates_code(arguments: &[&str]) -> bool {
    let chooses = |value: &str| CODEGEN.contains(&value.split('=').next().unwrap_or(value));
    arguments.iter().enumerate().any(|(at, word)| {
        let value = match word.strip_prefix("--codegen") {
            Some(value) => value.strip_prefix('='),
            None if word.starts_with("-C") => word.strip_prefix("-C").filter(|value| !value.is_empty()),
            None => return word.starts_with('-') && !word.starts_with("--") && word.contains('C'),
        };
        !value.or_else(|| arguments.get(at + 1).copied()).is_some_and(chooses)
    })
}

/// Returns `true` if a file name that starts with this text could be taken for an option.
pub(crate) fn may_be_an_option(start: &str) -> bool {
    start.is_empty() || start.starts_with('-')
}

/// Returns the number of operands among the words.
fn operands(arguments: &[&str]) -> usize {
    let options_end = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
    let (before, behind) = arguments.split_at(options_end);
    let plain = before.iter().filter(|word| !word.starts_with('-') || **word == "-").count();
    plain + behind.len().saturating_sub(1)
}

/// Returns `true` if a word sets a variable to something that could be a program: not a number and not a switch.
fn sets_more_than_a_switch(word: &str) -> bool {
    const SWITCHES: &[&str] =
        &["", "y", "n", "yes", "no", "on", "off", "true", "false", "debug", "release", "relwithdebinfo", "minsizerel"];
    let variable = word.strip_prefix("-D").unwrap_or(word);
    let Some((name, value)) = variable.split_once('=').filter(|_| !variable.starts_with('-')) else { return false };
    // `X!=command` runs the command.
    name.ends_with('!')
        || !(SWITCHES.contains(&value.to_ascii_lowercase().as_str()) || value.bytes().all(|byte| byte.is_ascii_digit()))
}
