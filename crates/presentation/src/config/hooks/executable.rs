//! Finds the files that the command of a hook or a server runs, and checks that the program of a hook exists. A
//! mistyped path must not disable a gate.

use crate::config::layers::environment::EnvironmentVariables;
use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use toolstead_domain::workspace_roots::lexical;
use toolstead_infrastructure::{
    child_environment,
    hooks::definition::HookProgram,
    shell_analysis::catalogue::{OperandKind, is_shell_word, known_as, program},
};

/// Subcommands of package runners (`pnpm dlx`) that are followed by what is run.
const RUNNING: &[&str] = &["run", "exec", "dlx", "x", "tool"];

/// Options of runners without a value: the program to run may follow directly.
const WITHOUT_WORDS: &[&str] = &["-y", "--yes", "-q", "--quiet", "--silent", "--no-install", "--offline", "--isolated"];

/// File name extensions of code for interpreters.
const CODE: &[&str] =
    &["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "py", "rb", "pl", "php", "sh", "bash", "zsh", "jar"];

/// Shell words that read commands from a file.
const SOURCING: &[&str] = &[".", "source"];

/// Shell words that are followed by a command.
const BEFORE_A_COMMAND: &[&str] =
    &["if", "then", "elif", "else", "while", "until", "do", "!", "time", "exec", "command", ".", "source"];

/// Maximum number of nested command lines that are examined.
const MAX_LINES: usize = 64;

/// Returns the files that decide what a hook runs, as far as its command line shows, as written and with symbolic links
/// resolved.
///
/// # Errors
/// Description of a file that is certainly missing or not executable.
pub(super) fn look(
    program: &HookProgram,
    start: &Path,
    environment: &EnvironmentVariables,
) -> Result<Vec<PathBuf>, String> {
    let commands = match program {
        HookProgram::Direct(program, arguments) => {
            vec![std::iter::once(program).chain(arguments).map(|word| Some(word.clone())).collect()]
        }
        HookProgram::Shell(line) => commands(line, start, environment),
    };
    let is_shell = matches!(program, HookProgram::Shell(_));
    if let Some(first) = commands.first() {
        check(first, is_shell, start, environment)?;
    }
    Ok(real(programs_of(&commands, start, environment)))
}

/// Returns the files that a program runs with these arguments, as far as the line shows. The files need not exist.
pub(in crate::config) fn run_by(
    program: &str,
    arguments: &[String],
    start: &Path,
    environment: &EnvironmentVariables,
) -> Vec<PathBuf> {
    let words = std::iter::once(program).chain(arguments.iter().map(String::as_str));
    let command = words.map(|word| Some(word.to_owned())).collect();
    programs_of(&[command], start, environment)
}

/// Returns the simple commands of each command line that these words pass to a shell (`sh -c LINE`). A word that is not
/// certain is empty.
pub(in crate::config) fn lines_within(
    words: &[&str],
    start: &Path,
    environment: &EnvironmentVariables,
) -> Vec<Vec<String>> {
    let Some(shell) = words.iter().position(|word| program(word).is_shell()) else { return Vec::new() };
    let is_line = |pair: &[&str]| pair[0].starts_with('-') && pair[0].ends_with('c');
    let lines = words[shell + 1..].windows(2).filter(|pair| is_line(pair)).map(|pair| pair[1]);
    let all = lines.flat_map(|line| commands(line, start, environment));
    all.map(|command| command.into_iter().map(Option::unwrap_or_default).collect()).collect()
}

/// Checks that the program of a command exists, and the script of an interpreter, as far as they are certain.
fn check(
    words: &[Option<String>],
    is_shell: bool,
    start: &Path,
    environment: &EnvironmentVariables,
) -> Result<(), String> {
    let Some(Some(first)) = words.first() else { return Ok(()) };
    let of_the_shell = is_shell && is_shell_word(first);
    if is_assignment(first) || of_the_shell || first.is_empty() {
        return Ok(());
    }
    if first.contains('/') {
        is_executable(&lexical(start, Path::new(first)))?;
    } else {
        let path = child_environment::base(|name| environment.get(name).map(str::to_owned)).remove("PATH");
        let path = path.unwrap_or_default();
        let mut folders = path.split(':').filter(|folder| folder.starts_with('/'));
        if !folders.any(|folder| is_executable(&Path::new(folder).join(first)).is_ok()) {
            return Err(format!("the program `{first}` is not in the `PATH` ({path})"));
        }
    }
    // Scala also accepts the name of a class.
    let takes_files = runs_scripts(first) && known_as(first) != "scala";
    if let (true, Some(Some(script))) = (takes_files, words.get(1))
        && !script.starts_with('-')
        && (script.contains('/') || script.contains('.'))
    {
        let path = lexical(start, Path::new(script));
        if !path.is_file() {
            return Err(format!("the script `{}` is not there", path.display()));
        }
    }
    Ok(())
}

/// Returns the files that these commands run, as far as the lines show: programs named with a path, scripts of
/// interpreters, and all other executable files among the words.
fn programs_of(commands: &[Vec<Option<String>>], start: &Path, environment: &EnvironmentVariables) -> Vec<PathBuf> {
    let (mut folder, mut files) = (start.to_path_buf(), Vec::new());
    for command in commands {
        let words: Vec<&str> = command.iter().map(|word| word.as_deref().unwrap_or_default()).collect();
        let is_before = |word: &&str| is_assignment(word) || BEFORE_A_COMMAND.contains(word);
        let (before, words) = words.split_at(words.iter().take_while(|word| is_before(word)).count());
        let is_sourced = before.last().is_some_and(|word| SOURCING.contains(word));
        if let ["cd", to, ..] = words {
            folder = lexical(&folder, Path::new(to));
            continue;
        }
        // The interpreter whose script has not been found yet, and the option before this word.
        let (mut waiting, mut option, mut shell): (Option<&str>, Option<&str>, bool) = (None, None, false);
        // A module or a package was named, so the words after it are its arguments and normally not programs.
        let mut is_named_otherwise = false;
        for (index, word) in words.iter().enumerate() {
            if word.starts_with('-') {
                if let (true, true, Some(line)) = (shell, word.ends_with('c'), words.get(index + 1)) {
                    files.extend(programs_of(&self::commands(line, &folder, environment), &folder, environment));
                }
                option = Some(word);
                continue;
            }
            let path = lexical(&folder, Path::new(word));
            let option = option.take();
            let may_run = waiting.is_some() && (!is_named_otherwise || is_code(word));
            let is_script = || path.is_file() && (may_run || is_executable(&path).is_ok());
            // A missing script is included, because it runs as soon as it is created.
            let is_missing_script = || {
                let interpreter = waiting.filter(|name| runs_scripts(name) && !is_named_otherwise);
                let is_next = interpreter.is_some_and(|name| !may_come_before_script(name, option, word));
                let is_line = shell && option.is_some_and(|option| option.ends_with('c'));
                is_next && !is_line && is_code(word) && !path.exists()
            };
            let is_named = (index == 0 && (word.contains('/') || is_sourced)) || is_missing_script();
            if is_named || (!word.is_empty() && is_script()) {
                files.push(path);
                waiting = waiting.filter(|program| may_come_before_script(program, option, word));
            }
            is_named_otherwise |= waiting.is_some_and(|program| names_package(program, option, word));
            if runs_scripts(word) || runs_others(word) {
                (waiting, is_named_otherwise) = (Some(*word), false);
            }
            shell |= program(word).is_shell();
        }
    }
    files
}

/// Returns `true` if a word that is also the name of a file may be a subcommand or the value of an option, and not the
/// script.
fn may_come_before_script(name: &str, option: Option<&str>, word: &str) -> bool {
    let interpreter = program(name).interpreter();
    let has_subcommands = runs_others(name) || interpreter.is_some_and(|one| one.operand() == OperandKind::Subcommand);
    let takes_word = |option: &str| match interpreter {
        _ if option.contains('=') => false,
        _ if program(name).is_shell() => option.ends_with(['o', 'O']) || option.ends_with("file"),
        one => one.and_then(|one| one.takes_next_word(option)).unwrap_or(true),
    };
    (has_subcommands && !word.contains(['.', '/'])) || option.is_some_and(takes_word)
}

/// Returns `true` if this word names a module or package and not a file, as in `python -m` and `npx`.
fn names_package(name: &str, option: Option<&str>, word: &str) -> bool {
    let is_of_option = option.is_some_and(|option| !option.contains('=') && !WITHOUT_WORDS.contains(&option));
    match program(name).interpreter() {
        Some(one) if one.runs_modules() => option == Some("-m"),
        _ => program(name).runs_packages() && !is_of_option && !RUNNING.contains(&word),
    }
}

/// Returns `true` if this program runs the file named by its first operand.
fn runs_scripts(name: &str) -> bool {
    let operand = program(name).interpreter().map(|one| one.operand());
    program(name).is_shell() || matches!(operand, Some(OperandKind::Script | OperandKind::Subcommand))
}

/// Returns `true` if this program runs another program that is named among its arguments.
fn runs_others(name: &str) -> bool {
    program(name).runs_packages() || matches!(known_as(name), "env" | "xargs")
}

fn is_code(word: &str) -> bool {
    Path::new(word).extension().and_then(|end| end.to_str()).is_some_and(|end| CODE.contains(&end))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/') && !name.starts_with('-'))
}

/// Adds the resolved paths of the files, because rules are checked against both.
fn real(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    let real: Vec<PathBuf> = files.iter().filter_map(|file| file.canonicalize().ok()).collect();
    files.extend(real);
    files.sort();
    files.dedup();
    files
}

fn is_executable(path: &Path) -> Result<(), String> {
    match path.metadata() {
        Ok(facts) if !facts.is_file() => Err(format!("`{}` is not a file", path.display())),
        Ok(facts) if facts.permissions().mode() & 0o111 == 0 => {
            Err(format!("`{}` is not executable: `chmod +x` makes it so", path.display()))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!("`{}` cannot be run: {error}", path.display())),
    }
}

/// Returns the words of each simple command of a line, split at operators, and then those of command substitutions. A
/// word is `None` if the shell would expand it in a way that is not known here.
fn commands(line: &str, start: &Path, environment: &EnvironmentVariables) -> Vec<Vec<Option<String>>> {
    let (mut lines, mut commands, mut next) = (vec![line.to_owned()], Vec::new(), 0);
    while let Some(line) = lines.get(next).filter(|_| next < MAX_LINES).cloned() {
        commands.extend(commands_of(&line, start, environment, &mut lines));
        next += 1;
    }
    commands
}

/// Returns the commands of the line itself. Appends the lines nested in it to `lines`.
fn commands_of(
    line: &str,
    start: &Path,
    environment: &EnvironmentVariables,
    lines: &mut Vec<String>,
) -> Vec<Vec<Option<String>>> {
    let mut commands = Vec::new();
    let mut words = Vec::new();
    let mut characters = line.trim().chars().peekable();
    let mut word: Option<String> = None;
    let mut unclear = false;
    let mut quote: Option<char> = None;
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (_, '$') if characters.next_if_eq(&'(').is_some() => {
                lines.push(substituted(&mut characters));
                (unclear, _) = (true, word.get_or_insert_default());
            }
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
            (_, '`') => {
                lines.push(characters.by_ref().take_while(|c| *c != '`').collect());
                (unclear, _) = (true, word.get_or_insert_default());
            }
            (_, '\\') => match characters.next() {
                Some(c) => word.get_or_insert_default().push(c),
                None => unclear = true,
            },
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => (quote, _) = (Some(c), word.get_or_insert_default()),
            (None, ' ' | '\t') => words.extend(ended(&mut word, &mut unclear)),
            (None, '<' | '>') => words.extend(ended(&mut word, &mut unclear)),
            (None, '#') if word.is_none() => while characters.next_if(|c| *c != '\n').is_some() {},
            (None, '\n' | ';' | '&' | '|' | '(' | ')' | '{' | '}') => {
                words.extend(ended(&mut word, &mut unclear));
                commands.push(std::mem::take(&mut words));
            }
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
    commands.push(words);
    commands
}

/// Reads the text between `$(` and its `)`.
fn substituted(characters: &mut impl Iterator<Item = char>) -> String {
    let (mut text, mut depth, mut quote) = (String::new(), 1, None);
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                text.push(c);
                text.extend(characters.next());
                continue;
            }
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') if depth == 1 => break,
            (None, ')') => depth -= 1,
            (None, _) => {}
        }
        text.push(c);
    }
    text
}

fn ended(word: &mut Option<String>, unclear: &mut bool) -> Option<Option<String>> {
    let unclear = std::mem::take(unclear);
    word.take().map(|word| (!unclear).then_some(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_hook_command_are_those_that_the_shell_would_produce() {
        let environment = EnvironmentVariables::new([("HOME", "/home/a")]);
        let words = |line| {
            let words = commands(line, Path::new("/w"), &environment).swap_remove(0);
            words.into_iter().map(|word| word.unwrap_or("?".into())).collect::<Vec<_>>()
        };
        assert_eq!(words(r#""$CLAUDE_PROJECT_DIR"/.claude/x.sh 'a b' c\ d"#), ["/w/.claude/x.sh", "a b", "c d"]);
        assert_eq!(words("${CLAUDE_PROJECT_DIR}/x | jq"), ["/w/x"]);
        assert_eq!(words("~/bin/x --flag; rm y"), ["/home/a/bin/x", "--flag"]);
        assert_eq!(words("$OTHER/x `y` z*"), ["?", "?", "?"]);
        assert_eq!(words(""), [""; 0]);
    }

    #[test]
    fn finds_every_existing_file_that_a_hook_command_line_may_run() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let plain = ["z.py", "data.json", "run", "setup.js", "hook.js"].map(|name| (name, 0o644));
        for (name, mode) in [("x.sh", 0o755), ("sub/y.sh", 0o755)].into_iter().chain(plain) {
            std::fs::write(folder.path().join(name), "").unwrap();
            std::fs::set_permissions(folder.path().join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let environment = EnvironmentVariables::new([("PATH", "/usr/bin:/bin")]);
        let found = |line: &str| {
            let files = look(&HookProgram::Shell(line.into()), folder.path(), &environment).unwrap();
            let names = files.iter().filter_map(|file| file.strip_prefix(folder.path()).ok()?.to_str());
            names.map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        for (line, expected) in [
            ("./x.sh", "x.sh"),
            ("A=b ./x.sh", "x.sh"),
            ("cat data.json | ./x.sh", "x.sh"),
            ("cd sub && ./y.sh", "sub/y.sh"),
            ("\"$CLAUDE_PROJECT_DIR\"/sub/y.sh; ./x.sh", "sub/y.sh x.sh"),
            ("if true; then ./x.sh; fi", "x.sh"),
            ("sh -e x.sh data.json", "x.sh"),
            ("env python3 -u z.py data.json", "z.py"),
            ("sh -c 'test -e a || ./x.sh'", "x.sh"),
            ("cat data.json z.py", ""),
            ("true # ./x.sh", ""),
            // A file is called as a subcommand is, or is what an option takes.
            ("true; uv run z.py data.json", "run z.py"),
            ("true; uv run --with data.json z.py", "data.json run z.py"),
            ("true; deno run hook.js data.json", "hook.js run"),
            ("sh run z.py", "run"),
            ("true; node -r ./setup.js hook.js data.json", "hook.js setup.js"),
            ("true; node --require=./setup.js hook.js data.json", "hook.js"),
            ("bash -o pipefail z.py data.json", "z.py"),
            // Options that take nothing, and one that is not known.
            ("true; node --inspect hook.js data.json", "hook.js"),
            ("true; node --max_old_space_size=99 --no-warnings hook.js data.json", "hook.js"),
            ("true; node -C run hook.js data.json", "hook.js run"),
            ("true; node --unheard-of hook.js data.json", "data.json hook.js"),
            ("true; perl -wT z.py data.json", "z.py"),
            ("true; ruby -W0 z.py data.json", "z.py"),
            // Every shell and interpreter of the catalogue, under the names of its versions as well.
            ("true; fish z.py data.json", "z.py"),
            ("true; ksh -c './x.sh data.json'", "x.sh"),
            ("true; python3.12 -u z.py data.json", "z.py"),
            ("true; Rscript z.py data.json", "z.py"),
            ("true; poetry run z.py data.json", "run z.py"),
            ("true; python3 -Xdev -u z.py data.json", "z.py"),
            ("true; python3 -W run z.py data.json", "run z.py"),
            // What a module or a package is given is data, unless it is code.
            ("true; python3 -m mod data.json", ""),
            ("true; uvx server-x --db-path data.json", ""),
            ("true; npx -y @scope/server-x data.json ./setup.js", "setup.js"),
            ("true; uv run server-x data.json", "run"),
            ("true; npx tsx hook.js data.json", "hook.js"),
            ("true; uv tool run server-x --config data.json ./x.sh", "run x.sh"),
            (". z.py", "z.py"),
            ("true; source z.py data.json", "z.py"),
            ("A=\"$(./x.sh a)\"; echo \"b $(sub/y.sh \"c)\")\"", "sub/y.sh x.sh"),
            ("echo `./x.sh` $(cat $(sub/y.sh))", "sub/y.sh x.sh"),
            ("echo '$(./x.sh)'", ""),
        ] {
            assert_eq!(found(line), expected, "{line}");
        }
    }

    #[test]
    fn definitely_missing_hook_programs_are_reported_and_unclear_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("x.sh");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        let environment = EnvironmentVariables::new([("PATH", "/usr/bin:/bin")]);
        let look = |line: &str| look(&HookProgram::Shell(line.into()), folder.path(), &environment);
        assert!(look("./x.sh").unwrap_err().contains("is not executable"));
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(look("./x.sh --flag").unwrap().contains(&script));
        assert!(look("sh x.sh").unwrap().contains(&script));
        assert!(look("./typo.sh").unwrap_err().contains("typo.sh` cannot be run"));
        assert!(look("sh ./typo.sh").unwrap_err().contains("typo.sh` is not there"));
        assert!(look("no-such-program -x").unwrap_err().contains("`no-such-program` is not in the `PATH`"));
        assert!(look("then ./x.sh").unwrap_err().contains("`then` is not in the `PATH`"));
        for unclear in [
            "$TOOL/x",
            "if true; then no-such-program; fi",
            "A=b no-such-program",
            "echo hi",
            "pushd x",
            "(cd x && y)",
            "",
        ] {
            assert_eq!(look(unclear), Ok(Vec::new()), "{unclear}");
        }
        for guarded in [
            "A=b ./typo.sh",
            "test -x typo.sh && ./typo.sh",
            "if true; then ./typo.sh; fi",
            "test -x typo.sh && sh typo.sh none.txt",
        ] {
            assert_eq!(look(guarded), Ok(vec![folder.path().join("typo.sh")]), "{guarded}");
        }
    }
}
