//! The options of interpreters, read as the interpreters read them: letters in groups, values in the same word or in the
//! next one. What takes what is data.

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    /// Nothing: it says something about the interpreter or the script, and ends.
    Ends,
    /// Nothing: the interpreter goes on with its input.
    Input,
    /// A number in the same word, which further letters may follow.
    Number,
    /// A number in the same word, which further letters may follow, or else what is left of the word.
    NumberOrRest,
    /// What is left of the word, which may be nothing.
    Rest,
    /// What is left of the word or else the next word. So do the following.
    Value,
    /// A library that is loaded.
    Library,
    /// A setting, or a file of them, that may name what is loaded or run.
    Setting,
    /// A file that is run, or that says what is.
    File,
    /// A text that is run.
    Text,
    /// The same, and what follows are its arguments.
    TextWithArguments,
    /// A module that is run. What follows are its arguments.
    Module,
}

/// The letters of an interpreter's short options.
pub(crate) type Letters = &'static [(Takes, &'static str)];

/// Long options, those of all interpreters together. With `*` at its end a name is the beginning of others.
const LONG: &[(Takes, &[&str])] = &[
    (
        Takes::Nothing,
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
    (Takes::Ends, &["help", "list", "syntax-check", "test", "version"]),
    (Takes::Input, &["interactive", "persist"]),
    (
        Takes::Value,
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
    (Takes::Library, &["experimental-loader", "import", "load", "loader", "preload", "require"]),
    (
        Takes::Setting,
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
    (Takes::File, &["exec", "file", "include", "process-file", "script"]),
    (
        Takes::Text,
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
pub(crate) struct Group<'w> {
    /// What its last letter takes; `None` where that is not known.
    pub(crate) takes: Option<Takes>,
    /// The value that stands in the same word.
    pub(crate) value: Option<&'w str>,
    pub(crate) asks: bool,
    pub(crate) ends: bool,
    /// The rest of the word may be further options.
    pub(crate) unsure: bool,
}

impl<'w> Group<'w> {
    /// Reads a group, without its dash.
    pub(crate) fn read(letters: Letters, group: &'w str) -> Self {
        let mut read = Self::default();
        (read.takes, read.value) = read.last(letters, group);
        read
    }

    fn last(&mut self, letters: Letters, group: &'w str) -> (Option<Takes>, Option<&'w str>) {
        let mut rest = group;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let takes = letter_takes(letters, letter);
            match takes {
                Some(Takes::Nothing) => {}
                Some(Takes::Ends) => self.ends = true,
                Some(Takes::Input) => self.asks = true,
                Some(Takes::Number) => rest = behind_number(rest),
                Some(Takes::NumberOrRest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
                    rest = behind_number(rest);
                }
                Some(Takes::NumberOrRest | Takes::Rest) => {
                    // Perl takes what stands behind a blank for further options.
                    self.unsure |= rest.contains(char::is_whitespace);
                    return (Some(Takes::Rest), None);
                }
                // `-pe`: both are for the same text.
                Some(Takes::Text) if !rest.is_empty() && rest.chars().all(|c| is_text(letters, c)) => {}
                Some(_) => return (takes, Some(rest).filter(|rest| !rest.is_empty())),
                None => {
                    // Where nothing but words are options, what follows is the rest of one.
                    let has_groups = letters.iter().any(|(takes, _)| *takes == Takes::Nothing);
                    let asks = |c| letter_takes(letters, c) == Some(Takes::Input);
                    self.asks |= has_groups && rest.chars().any(asks);
                    return (None, Some(rest).filter(|rest| !rest.is_empty()));
                }
            }
        }
        (Some(Takes::Nothing), None)
    }
}

/// Whether an option takes the next word; `None` where that is not known.
pub(crate) fn takes_next_word(letters: Letters, option: &str) -> Option<bool> {
    let (takes, value) = match option.strip_prefix("--") {
        Some(long) => {
            (long_takes(long.split('=').next().unwrap_or(long)), long.split_once('=').map(|(_, value)| value))
        }
        None => {
            let group = Group::read(letters, option.strip_prefix('-')?);
            (group.takes, group.value)
        }
    };
    let of_itself = match takes? {
        // `node --test` takes files.
        Takes::Ends => return None,
        Takes::Nothing | Takes::Input | Takes::Number | Takes::NumberOrRest | Takes::Rest => false,
        Takes::Value
        | Takes::Library
        | Takes::Setting
        | Takes::File
        | Takes::Text
        | Takes::TextWithArguments
        | Takes::Module => true,
    };
    Some(of_itself && value.is_none())
}

fn letter_takes(letters: Letters, letter: char) -> Option<Takes> {
    letters.iter().find(|(_, group)| group.contains(letter)).map(|(takes, _)| *takes)
}

fn is_text(letters: Letters, letter: char) -> bool {
    letter_takes(letters, letter) == Some(Takes::Text)
}

/// What a long option takes. Node reads `_` as `-`.
pub(crate) fn long_takes(name: &str) -> Option<Takes> {
    let name = name.replace('_', "-");
    let is = |known: &&str| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == **known,
    };
    let whole = LONG.iter().find(|(_, names)| names.contains(&name.as_str()));
    whole.or_else(|| LONG.iter().find(|(_, names)| names.iter().any(&is))).map(|(takes, _)| *takes)
}

/// What stands behind a number: `012`, `0xff`; and behind a word after a colon (`:no-deprecated`), nothing.
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
