//! The words that bash itself understands: those of its grammar, and its own commands.

/// Whether this command of bash declares variables.
pub(crate) fn declares(name: &str) -> bool {
    matches!(name, "declare" | "export" | "local" | "readonly" | "typeset")
}

/// Words of the grammar: where the tree takes one for a program, it has misread the text.
pub(crate) const RESERVED: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "until", "while", "{", "}",
];

/// Commands of bash that run their arguments, or change what later words mean.
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

/// Commands of bash that take their arguments as they stand.
pub(crate) const PLAIN: &[&str] = &[
    ":", "bg", "break", "caller", "cd", "continue", "dirs", "disown", "echo", "exit", "false", "fg", "help", "kill",
    "logout", "popd", "pushd", "pwd", "return", "shift", "suspend", "times", "true", "type", "ulimit", "umask",
];

/// Commands of bash that do what they say in some of their forms.
const IN_PLAIN_FORMS: &[&str] = &["[", "jobs", "printf", "read", "set", "test", "time", "unset", "wait"];

/// Words of the grammar that begin no command.
const BEHIND_A_BEGINNING: &[&str] = &["]]", "do", "done", "elif", "else", "esac", "fi", "in", "then", "}"];

/// Whether a command may begin with this word of bash, so that no program of its name must be there.
pub fn is_shell_word(word: &str) -> bool {
    let is_in = |list: &&[&str]| list.contains(&word);
    let begins = !is_in(&BEHIND_A_BEGINNING);
    begins && (declares(word) || [RESERVED, EVALUATORS, PLAIN, IN_PLAIN_FORMS].iter().any(is_in))
}
