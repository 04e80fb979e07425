//! Effects of setting variables, by the name of the variable.

/// Returns `true` if this text is a valid variable name.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Possible effect of setting a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariableEffect {
    /// No effect that matters to a rule.
    Harmless,
    /// A possible change of what programs do.
    ChangesPrograms,
    /// A change of which programs run, or a value that the shell evaluates.
    ChangesTheShell,
}

/// Variables that change how programs print, not what they do.
const HARMLESS: &[&str] = &[
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "DEBIAN_FRONTEND",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LINES",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "SOURCE_DATE_EPOCH",
    "TERM",
    "TZ",
];

/// Variables that the shell interprets.
const OF_THE_SHELL: &[&str] = &[
    "CDPATH",
    "COMP_WORDBREAKS",
    "DIRSTACK",
    "ENV",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "EXECIGNORE",
    "FIGNORE",
    "FUNCNAME",
    "FUNCNEST",
    "GLOBIGNORE",
    "GROUPS",
    "HISTCMD",
    "HISTFILE",
    "HOME",
    "IFS",
    "LINENO",
    "MAIL",
    "MAILCHECK",
    "MAILPATH",
    "MAPFILE",
    "OLDPWD",
    "OPTARG",
    "OPTERR",
    "OPTIND",
    "PATH",
    "PIPESTATUS",
    "POSIXLY_CORRECT",
    "PPID",
    "PROMPT_COMMAND",
    "PROMPT_DIRTRIM",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PWD",
    "RANDOM",
    "READLINE_LINE",
    "REPLY",
    "SECONDS",
    "SHELL",
    "SHELLOPTS",
    "SHLVL",
    "SRANDOM",
    "TIMEFORMAT",
    "TMOUT",
    "TMPDIR",
    "UID",
    "_",
];

/// Returns `true` if a variable with this value changes how programs print, and nothing that they do.
pub(crate) fn is_harmless(name: &str, value: &str) -> bool {
    variable(name) == VariableEffect::Harmless && is_harmless_value(name, value)
}

/// Returns `true` if this value of a harmless variable is harmless. Some programs insert it into a path or a text that
/// they run.
fn is_harmless_value(name: &str, value: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.,:@=+-".contains(&byte);
    let zone = |byte: u8| plain(byte) || byte == b'/';
    match name {
        "TZ" => value.bytes().all(zone) && !value.starts_with(['/', ':']) && !value.contains(".."),
        _ => value.bytes().all(plain),
    }
}

/// Endings of names of variables that contain a program, or options that name one.
const NAME_PROGRAMS: &[&str] = &[
    "ASKPASS",
    "BROWSER",
    "COMMAND",
    "EDITOR",
    "EXTERNAL_DIFF",
    "GIT_SSH",
    "LAUNCHER",
    "LESSCLOSE",
    "LESSOPEN",
    "LINKER",
    "MAKEFLAGS",
    "PAGER",
    "PERL5OPT",
    "RUBYOPT",
    "RUNNER",
    "SHELL",
    "TAR_OPTIONS",
    "VISUAL",
    "WRAPPER",
    "_CMD",
    "_RSH",
];

/// Variables with short names that contain a program.
const PROGRAMS: &[&str] =
    &["AR", "AS", "CARGO", "CC", "CPP", "CXX", "LD", "MAKE", "NODE", "PYTHON", "RUSTC", "RUSTDOC"];

/// Returns `true` if programs start the value of this variable.
pub(crate) fn names_a_program(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    PROGRAMS.contains(&name.as_str())
        || name.starts_with("GIT_CONFIG")
        || name.starts_with("NPM_CONFIG_")
        || NAME_PROGRAMS.iter().any(|end| name.ends_with(end))
}

/// Returns the possible effect of setting this variable.
pub(crate) fn variable(name: &str) -> VariableEffect {
    if HARMLESS.contains(&name) || name.starts_with("LC_") {
        VariableEffect::Harmless
    } else if OF_THE_SHELL.contains(&name)
        || ["BASH", "LD_", "COMP_", "COPROC", "READLINE_"].iter().any(|prefix| name.starts_with(prefix))
    {
        VariableEffect::ChangesTheShell
    } else {
        VariableEffect::ChangesPrograms
    }
}

/// Returns `true` if a variable that is set only for the shell cannot reach a program, unless it was in the environment
/// before. Names in the environment are in upper case, except those of proxies and npm. `LINE` is the usual variable of
/// loops that read lines.
pub(crate) fn stays_in_the_shell(name: &str) -> bool {
    let lower = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    name == "LINE"
        || lower
            && !name.ends_with("_proxy")
            && !name.starts_with("npm_")
            && name != "_"
            && !matches!(name, "histchars" | "auto_resume")
}
