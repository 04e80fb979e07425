//! Options of interpreters, parsed as the interpreters parse them: letters in groups, values in the same word or in the
//! next one. The values that each option takes are data.

/// Value that an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionValueKind {
    Nothing,
    /// No value. The interpreter prints information or checks the script, and ends.
    Ends,
    /// No value. The interpreter continues with its input.
    Input,
    /// A number in the same word. Further letters may follow it.
    Number,
    /// A number in the same word, which further letters may follow, or else the rest of the word.
    NumberOrRest,
    /// The rest of the word, which may be empty.
    Rest,
    /// The rest of the word, or else the next word. This also applies to the following variants.
    Value,
    /// A library that is loaded.
    Library,
    /// A setting, or a file of them, that may name what is loaded or run.
    Setting,
    /// A file that is run, or that names what is run.
    File,
    /// A text that is run.
    Text,
    /// A text that is run. The words after it are its arguments.
    TextWithArguments,
    /// A module that is run. The words after it are its arguments.
    Module,
}

/// Letters of the short options of an interpreter, by the value that they take.
pub(crate) type ShortOptions = &'static [(OptionValueKind, &'static str)];

/// Long options of all interpreters. A name that ends with `*` is a prefix.
const LONG: &[(OptionValueKind, &[&str])] = &[
    (
        OptionValueKind::Nothing,
        &[
            "abort-on-uncaught-exception",
            "check",
            "copyright",
            "debug",
            "disable-*",
            "disallow-code-generation-from-strings",
            "enable-*",
            "experimental-strip-types",
            "experimental-transform-types",
            "experimental-vm-modules",
            "experimental-wasm-modules",
            "expose-gc",
            "frozen-intrinsics",
            "harmony*",
            "inspect",
            "inspect-brk",
            "inspect-wait",
            "jit",
            "jitless",
            "no-*",
            "pending-deprecation",
            "preserve-symlinks",
            "preserve-symlinks-main",
            "quiet",
            "silent",
            "slave",
            "throw-deprecation",
            "trace-deprecation",
            "trace-exit",
            "trace-sync-io",
            "trace-uncaught",
            "trace-warnings",
            "transpile-only",
            "use-openssl-ca",
            "use-system-ca",
            "vanilla",
            "verbose",
            "watch",
            "yjit",
        ],
    ),
    (OptionValueKind::Ends, &["help", "list", "syntax-check", "test", "version"]),
    (OptionValueKind::Input, &["interactive", "persist"]),
    (
        OptionValueKind::Value,
        &[
            "backtrace-limit",
            "check-hash-based-pycs",
            "conditions",
            "dbname",
            "disable",
            "disable-proto",
            "disable-warning",
            "dns-result-order",
            "enable",
            "encoding",
            "external-encoding",
            "host",
            "input-type",
            "internal-encoding",
            "max-http-header-size",
            "max-old-space-size",
            "max-semi-space-size",
            "port",
            "stack-size",
            "stack-trace-limit",
            "threads",
            "tsconfig",
            "unhandled-rejections",
            "username",
        ],
    ),
    (OptionValueKind::Library, &["experimental-loader", "import", "load", "loader", "preload", "require"]),
    (
        OptionValueKind::Setting,
        &[
            "define",
            "env-file",
            "env-file-if-exists",
            "experimental-config-file",
            "openssl-config",
            "php-ini",
            "snapshot-blob",
            "zend-extension",
        ],
    ),
    (OptionValueKind::File, &["exec", "file", "include", "process-file", "script"]),
    (
        OptionValueKind::Text,
        &[
            "command",
            "eval",
            "execute",
            "expression",
            "init-command",
            "print",
            "process-begin",
            "process-code",
            "process-end",
            "run",
            "source",
        ],
    ),
];

/// A group of short options.
#[derive(Debug, Default)]
pub(crate) struct ShortOptionGroup<'w> {
    /// Value that the last letter takes, or `None` if that is unknown.
    pub(crate) takes: Option<OptionValueKind>,
    /// Value in the same word.
    pub(crate) value: Option<&'w str>,
    pub(crate) asks: bool,
    pub(crate) ends: bool,
    /// `true` if the rest of the word may contain further options.
    pub(crate) unsure: bool,
}

impl<'w> ShortOptionGroup<'w> {
    /// Parses a group, given without its dash.
    pub(crate) fn read(letters: ShortOptions, group: &'w str) -> Self {
        let mut read = Self::default();
        (read.takes, read.value) = read.last(letters, group);
        read
    }

    fn last(&mut self, letters: ShortOptions, group: &'w str) -> (Option<OptionValueKind>, Option<&'w str>) {
        let mut rest = group;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let takes = letter_takes(letters, letter);
            match takes {
                Some(OptionValueKind::Nothing) => {}
                Some(OptionValueKind::Ends) => self.ends = true,
                Some(OptionValueKind::Input) => self.asks = true,
                Some(OptionValueKind::Number) => rest = behind_number(rest),
                Some(OptionValueKind::NumberOrRest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
                    rest = behind_number(rest);
                }
                Some(OptionValueKind::NumberOrRest | OptionValueKind::Rest) => {
                    // Perl reads the text after a blank as further options.
                    self.unsure |= rest.contains(char::is_whitespace);
                    return (Some(OptionValueKind::Rest), None);
                }
                // `-pe`: both letters apply to the same text.
                Some(OptionValueKind::Text) if !rest.is_empty() && rest.chars().all(|c| is_text(letters, c)) => {}
                Some(_) => return (takes, Some(rest).filter(|rest| !rest.is_empty())),
                None => {
                    // For an interpreter without groups of letters, the remaining characters are the rest of one
                    // option.
                    let has_groups = letters.iter().any(|(takes, _)| *takes == OptionValueKind::Nothing);
                    let asks = |c| letter_takes(letters, c) == Some(OptionValueKind::Input);
                    self.asks |= has_groups && rest.chars().any(asks);
                    return (None, Some(rest).filter(|rest| !rest.is_empty()));
                }
            }
        }
        (Some(OptionValueKind::Nothing), None)
    }
}

/// Returns `true` if an option takes the next word as its value, or `None` if that is unknown.
pub(crate) fn takes_next_word(letters: ShortOptions, option: &str) -> Option<bool> {
    let (takes, value) = match option.strip_prefix("--") {
        Some(long) => {
            (long_takes(long.split('=').next().unwrap_or(long)), long.split_once('=').map(|(_, value)| value))
        }
        None => {
            let group = ShortOptionGroup::read(letters, option.strip_prefix('-')?);
            (group.takes, group.value)
        }
    };
    let of_itself = match takes? {
        // `node --test` takes files as operands.
        OptionValueKind::Ends => return None,
        OptionValueKind::Nothing
        | OptionValueKind::Input
        | OptionValueKind::Number
        | OptionValueKind::NumberOrRest
        | OptionValueKind::Rest => false,
        OptionValueKind::Value
        | OptionValueKind::Library
        | OptionValueKind::Setting
        | OptionValueKind::File
        | OptionValueKind::Text
        | OptionValueKind::TextWithArguments
        | OptionValueKind::Module => true,
    };
    Some(of_itself && value.is_none())
}

fn letter_takes(letters: ShortOptions, letter: char) -> Option<OptionValueKind> {
    letters.iter().find(|(_, group)| group.contains(letter)).map(|(takes, _)| *takes)
}

fn is_text(letters: ShortOptions, letter: char) -> bool {
    letter_takes(letters, letter) == Some(OptionValueKind::Text)
}

/// Returns the value that a long option takes. Node accepts `_` for `-`.
pub(crate) fn long_takes(name: &str) -> Option<OptionValueKind> {
    let name = name.replace('_', "-");
    let is = |known: &&str| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == **known,
    };
    let whole = LONG.iter().find(|(_, names)| names.contains(&name.as_str()));
    whole.or_else(|| LONG.iter().find(|(_, names)| names.iter().any(&is))).map(|(takes, _)| *takes)
}

/// Returns the text after a number (`012`, `0xff`), or an empty text if the value is a word after a colon
/// (`:no-deprecated`).
fn behind_number(text: &str) -> &str {
    if text.starts_with(':') {
        return "";
    }
    match text.strip_prefix(['x', 'X']) {
        Some(hex) if hex.starts_with(|c: char| c.is_ascii_hexdigit()) => {
            hex.trim_start_matches(|c: char| c.is_ascii_hexdigit())
        }
        _ => text.trim_start_matches(|c: char| c.is_ascii_digit()),
    }
}
