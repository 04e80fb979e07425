//! Words that bash itself interprets: reserved words of its grammar, and builtins.

/// Returns `true` if this builtin declares variables.
pub(crate) fn declares(name: &str) -> bool {
    matches!(name, "declare" | "export" | "local" | "readonly" | "typeset")
}

/// Reserved words of bash. If the syntax tree has one as the name of a program, the parser has misread the text.
pub(crate) const RESERVED: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "until", "while", "{", "}",
];

/// Builtins that run their arguments, or change the meaning of later words.
pub(crate) const EVALUATORS: &[&str] = &[
    ".",
    "alias",
    "bind",
    "builtin",
    "command",
    "compgen",
    "complete",
    "compopt",
    "enable",
    "eval",
    "exec",
    "fc",
    "getopts",
    "hash",
    "history",
    "let",
    "mapfile",
    "readarray",
    "shopt",
    "source",
    "trap",
    "unalias",
];

/// Builtins that use their arguments literally.
pub(crate) const PLAIN: &[&str] = &[
    ":", "bg", "break", "caller", "cd", "continue", "dirs", "disown", "echo", "exit", "false", "fg", "help", "kill",
    "logout", "popd", "pushd", "pwd", "return", "shift", "suspend", "times", "true", "type", "ulimit", "umask",
];

/// Builtins that evaluate nothing in some of their forms.
const IN_PLAIN_FORMS: &[&str] = &["[", "jobs", "printf", "read", "set", "test", "time", "unset", "wait"];

/// Reserved words that do not begin a command.
const BEHIND_A_BEGINNING: &[&str] = &["]]", "do", "done", "elif", "else", "esac", "fi", "in", "then", "}"];

/// Returns `true` if a command may begin with this bash word, so that no program of that name has to exist.
pub fn is_shell_word(word: &str) -> bool {
    let is_in = |list: &&[&str]| list.contains(&word);
    let begins = !is_in(&BEHIND_A_BEGINNING);
    begins && (declares(word) || [RESERVED, EVALUATORS, PLAIN, IN_PLAIN_FORMS].iter().any(is_in))
}
