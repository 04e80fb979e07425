//! Arguments that make a program run or write something else.

/// What among the arguments of a program makes it do more than it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Risk {
    /// That long option, or a beginning of it that is no option's name, with or without a value.
    Long(&'static str),
    /// The same, if some argument holds an `@`.
    LongWithFile(&'static str),
    /// A group of short options that holds that letter.
    Short(char),
    /// An option that holds an `@`.
    OptionWithFile,
    /// Exactly that word.
    Word(&'static str),
    /// A word that starts so.
    Start(&'static str),
    /// A word that holds it.
    Part(&'static str),
    /// An option of rustc's code generation that is in no list.
    Codegen,
    /// A variable that is set (`NAME=value`, `-DNAME=value`) to more than a number or a switch.
    Variable,
    /// So many operands.
    Operands(usize),
    /// Every use.
    Always,
}

/// What is a risk among the arguments of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Risks {
    /// What makes it run something, or may.
    pub(crate) runs: &'static [Risk],
    /// What only makes it write or read.
    pub(crate) writes: &'static [Risk],
    /// What is said of both.
    pub(crate) reason: &'static str,
    beginnings: Beginnings,
    /// Short options that take the rest of their group for a value.
    valued: &'static str,
}

/// Which beginnings of long options a program takes for them.
#[derive(Debug, Clone, Copy)]
enum Beginnings {
    None,
    /// All but these, which are names of other options.
    AllBut(&'static [&'static str]),
}

/// Options of rustc's code generation that choose how fast, how large and how checked the result is.
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

impl Risks {
    pub(super) const NONE: Self =
        Self { runs: &[], writes: &[], reason: "", beginnings: Beginnings::AllBut(&[]), valued: "" };

    pub(super) const fn running(runs: &'static [Risk], reason: &'static str) -> Self {
        Self { runs, reason, ..Self::NONE }
    }

    pub(super) const fn writing(writes: &'static [Risk], reason: &'static str) -> Self {
        Self { writes, reason, ..Self::NONE }
    }

    pub(super) const fn and_writing(self, writes: &'static [Risk]) -> Self {
        Self { writes, ..self }
    }

    /// It takes no beginnings of long options.
    pub(super) const fn with_no_beginnings(self) -> Self {
        Self { beginnings: Beginnings::None, ..self }
    }

    /// These long options are no risk, though their names begin that of one.
    pub(super) const fn knowing(self, names: &'static [&'static str]) -> Self {
        Self { beginnings: Beginnings::AllBut(names), ..self }
    }

    /// These short options take the rest of their group for a value.
    pub(super) const fn with_values(self, valued: &'static str) -> Self {
        Self { valued, ..self }
    }

    fn all(&self) -> impl Iterator<Item = &'static Risk> {
        self.runs.iter().chain(self.writes)
    }

    /// Whether one of these arguments is a risk.
    pub(crate) fn are_hit(&self, arguments: &[&str]) -> bool {
        self.all().any(|risk| self.is_hit(*risk, arguments))
    }

    /// Whether one of these arguments is this risk, for a program with such options.
    pub(crate) fn is_hit(&self, risk: Risk, arguments: &[&str]) -> bool {
        let is_long = |option: &str| arguments.iter().any(|word| self.is_long(option, word));
        let holds_a_file = |word: &&str| word.contains('@');
        match risk {
            Risk::Always => true,
            Risk::Operands(count) => operands(arguments) >= count,
            Risk::Word(word) => arguments.contains(&word),
            Risk::Start(start) => arguments.iter().any(|word| word.starts_with(start)),
            Risk::Part(part) => arguments.iter().any(|word| word.contains(part)),
            Risk::Long(option) => is_long(option),
            Risk::LongWithFile(option) => is_long(option) && arguments.iter().any(holds_a_file),
            Risk::Codegen => generates_code(arguments),
            Risk::OptionWithFile => arguments.iter().any(|word| word.starts_with('-') && holds_a_file(word)),
            Risk::Variable => arguments.iter().any(|word| sets_more_than_a_switch(word)),
            Risk::Short(letter) => arguments.iter().any(|word| {
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
                    Beginnings::None => false,
                    Beginnings::AllBut(whole) => !whole.contains(&name),
                }
    }

    /// Whether the name of some file that starts so could be a risk.
    pub(crate) fn may_be_hit_by_a_file(&self, start: &str) -> bool {
        self.all().any(|risk| match *risk {
            Risk::Always | Risk::Operands(_) => true,
            Risk::Word(word) => word.starts_with(start),
            Risk::Start(text) => text.starts_with(start) || start.starts_with(text),
            Risk::Part(_) | Risk::Variable => !start.contains('/'),
            Risk::Long(_) | Risk::LongWithFile(_) | Risk::Short(_) | Risk::OptionWithFile | Risk::Codegen => {
                may_be_an_option(start)
            }
        })
    }
}

/// Whether an option of rustc's code generation is in no list.
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

/// Whether the name of some file that starts so could be taken for an option.
pub(crate) fn may_be_an_option(start: &str) -> bool {
    start.is_empty() || start.starts_with('-')
}

/// How many of the words are operands.
fn operands(arguments: &[&str]) -> usize {
    let options_end = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
    let (before, behind) = arguments.split_at(options_end);
    let plain = before.iter().filter(|word| !word.starts_with('-') || **word == "-").count();
    plain + behind.len().saturating_sub(1)
}

/// Whether a word sets a variable, and to something that could be a program: no number, no switch.
fn sets_more_than_a_switch(word: &str) -> bool {
    const SWITCHES: &[&str] =
        &["", "y", "n", "yes", "no", "on", "off", "true", "false", "debug", "release", "relwithdebinfo", "minsizerel"];
    let variable = word.strip_prefix("-D").unwrap_or(word);
    let Some((name, value)) = variable.split_once('=').filter(|_| !variable.starts_with('-')) else { return false };
    // `X!=command` runs it.
    name.ends_with('!')
        || !(SWITCHES.contains(&value.to_ascii_lowercase().as_str()) || value.bytes().all(|byte| byte.is_ascii_digit()))
}
