//! Whether what a hook runs is there: a gate whose path is mistyped must not stand open.

use crate::config::environment::Environment;
use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use toolstead_domain::workspace_roots::lexical;
use toolstead_infrastructure::{hooks::definition::HookProgram, sandbox::child_environment};

/// Programs whose first argument is the program that really runs.
const INTERPRETERS: &[&str] =
    &["bash", "sh", "dash", "zsh", "python", "python3", "node", "ruby", "perl", "php", "deno", "bun"];

/// Words of the shell itself. What follows them is not looked at.
const OF_THE_SHELL: &[&str] = &[
    "if", "for", "while", "until", "case", "function", "time", "!", "[", "[[", "test", "cd", "echo", "printf", "exit",
    "export", "set", "true", "false", ":", ".", "source", "exec", "eval", "read", "trap", "command", "ulimit", "umask",
    "wait", "kill", "return", "local", "declare", "unset", "shift",
];

/// The files that decide what runs, as far as that can be told from the line.
///
/// # Errors
/// What is missing, where it is certain that something is.
pub(super) fn look(program: &HookProgram, start: &Path, environment: &Environment) -> Result<Vec<PathBuf>, String> {
    let words = match program {
        HookProgram::Direct(program, arguments) => {
            std::iter::once(program).chain(arguments).map(|word| Some(word.clone())).collect()
        }
        HookProgram::Shell(line) => words(line, start, environment),
    };
    let Some(Some(first)) = words.first() else { return Ok(Vec::new()) };
    let is_assignment = first.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
    let of_the_shell = matches!(program, HookProgram::Shell(_)) && OF_THE_SHELL.contains(&first.as_str());
    if is_assignment || of_the_shell || first.is_empty() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    if first.contains('/') {
        let path = lexical(start, Path::new(first));
        is_executable(&path)?;
        files.push(path);
    } else {
        let path = child_environment::base(|name| environment.get(name).map(str::to_owned)).remove("PATH");
        let path = path.unwrap_or_default();
        let mut folders = path.split(':').filter(|folder| folder.starts_with('/'));
        if !folders.any(|folder| is_executable(&Path::new(folder).join(first)).is_ok()) {
            return Err(format!("the program `{first}` is not in the `PATH` ({path})"));
        }
    }
    let name = Path::new(first).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let (true, Some(Some(script))) = (INTERPRETERS.contains(&name), words.get(1))
        && !script.starts_with('-')
        && (script.contains('/') || script.contains('.'))
    {
        let path = lexical(start, Path::new(script));
        if !path.is_file() {
            return Err(format!("the script `{}` is not there", path.display()));
        }
        files.push(path);
    }
    Ok(real(files))
}

/// The files under their real names as well: rules judge both.
fn real(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    let real: Vec<PathBuf> = files.iter().filter_map(|file| file.canonicalize().ok()).collect();
    files.extend(real);
    files.sort();
    files.dedup();
    files
}

fn is_executable(path: &Path) -> Result<(), String> {
    match path.metadata() {
        Ok(facts) if !facts.is_file() => Err(format!("`{}` is no file", path.display())),
        Ok(facts) if facts.permissions().mode() & 0o111 == 0 => {
            Err(format!("`{}` is not executable: `chmod +x` makes it so", path.display()))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!("`{}` cannot be run: {error}", path.display())),
    }
}

/// The words of the first simple command of a line; `None` for a word that the shell would make something unforeseen of,
/// and nothing behind the first operator.
fn words(line: &str, start: &Path, environment: &Environment) -> Vec<Option<String>> {
    let mut words = Vec::new();
    let mut characters = line.trim().chars().peekable();
    let mut word: Option<String> = None;
    let mut unclear = false;
    let mut quote: Option<char> = None;
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (_, '$') => {
                let name: String = match characters.next_if_eq(&'{') {
                    Some(_) => characters.by_ref().take_while(|c| *c != '}').collect(),
                    None => {
                        let mut name = String::new();
                        while let Some(c) = characters.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                            name.push(c);
                        }
                        name
                    }
                };
                match name.as_str() {
                    "CLAUDE_PROJECT_DIR" | "TOOLSTEAD_PROJECT_DIR" | "PWD" => {
                        word.get_or_insert_default().push_str(&start.to_string_lossy());
                    }
                    "HOME" if environment.get("HOME").is_some() => {
                        word.get_or_insert_default().push_str(environment.get("HOME").unwrap_or_default());
                    }
                    _ => (unclear, _) = (true, word.get_or_insert_default()),
                }
            }
            (_, '`') => (unclear, _) = (true, word.get_or_insert_default()),
            (_, '\\') => match characters.next() {
                Some(c) => word.get_or_insert_default().push(c),
                None => unclear = true,
            },
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => (quote, _) = (Some(c), word.get_or_insert_default()),
            (None, ' ' | '\t') => words.extend(ended(&mut word, &mut unclear)),
            (None, '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '{' | '}' | '#') => break,
            (None, '*' | '?' | '[') => (unclear, _) = (true, word.get_or_insert_default()),
            (None, '~') if word.is_none() && matches!(characters.peek(), None | Some('/')) => {
                match environment.get("HOME") {
                    Some(home) => word = Some(home.to_owned()),
                    None => (unclear, _) = (true, word.get_or_insert_default()),
                }
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(ended(&mut word, &mut unclear));
    words
}

fn ended(word: &mut Option<String>, unclear: &mut bool) -> Option<Option<String>> {
    let unclear = std::mem::take(unclear);
    word.take().map(|word| (!unclear).then_some(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_line_are_those_that_the_shell_would_see() {
        let environment = Environment::new([("HOME", "/home/a")]);
        let words = |line| {
            let words = words(line, Path::new("/w"), &environment);
            words.into_iter().map(|word| word.unwrap_or("?".into())).collect::<Vec<_>>()
        };
        assert_eq!(words(r#""$CLAUDE_PROJECT_DIR"/.claude/x.sh 'a b' c\ d"#), ["/w/.claude/x.sh", "a b", "c d"]);
        assert_eq!(words("${CLAUDE_PROJECT_DIR}/x | jq"), ["/w/x"]);
        assert_eq!(words("~/bin/x --flag; rm y"), ["/home/a/bin/x", "--flag"]);
        assert_eq!(words("$OTHER/x `y` z*"), ["?", "?", "?"]);
        assert_eq!(words(""), [""; 0]);
    }

    #[test]
    fn what_is_certainly_missing_is_told_and_what_is_unclear_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("x.sh");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        let environment = Environment::new([("PATH", "/usr/bin:/bin")]);
        let look = |line: &str| look(&HookProgram::Shell(line.into()), folder.path(), &environment);
        assert!(look("./x.sh").unwrap_err().contains("is not executable"));
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(look("./x.sh --flag").unwrap().contains(&script));
        assert!(look("sh x.sh").unwrap().contains(&script));
        assert!(look("./typo.sh").unwrap_err().contains("typo.sh` cannot be run"));
        assert!(look("sh ./typo.sh").unwrap_err().contains("typo.sh` is not there"));
        assert!(look("no-such-program -x").unwrap_err().contains("`no-such-program` is not in the `PATH`"));
        for unclear in ["$TOOL/x", "if true; then ./typo.sh; fi", "A=b ./typo.sh", "echo hi", "(cd x && y)", ""] {
            assert_eq!(look(unclear), Ok(Vec::new()), "{unclear}");
        }
    }
}
