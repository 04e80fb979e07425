//! `grep` and `glob` find what ripgrep and fd find, in a tree of 20,000 files.
//!
//! Both sides are invoked with equivalent options. Intentional differences are excluded from the comparisons or have
//! their own test beside the tools:
//! - version-control folders are never searched (ripgrep and fd: when hidden files are), here by `-g !.git`, `-E .git`;
//! - `.gitignore` applies outside of repositories as well (`--no-require-git`), and a nested repository ends the
//!   patterns of those around it, as in git and in ripgrep 13, not in later ones;
//! - ignore files above the workspace's root and the user's own are not read, and symbolic links to ignore files are
//!   not followed;
//! - a requested `glob` does not include ignored or hidden files again, and a file type does not include hidden ones;
//! - `$` matches before a carriage return (`--crlf`), where `.` does not match that;
//! - a binary file that is named is skipped as well, where ripgrep reports that it matches;
//! - `glob` treats a link like its target inside the workspace, and reads `.rgignore` like `grep`, which fd does not.

mod tree;

use crate::binaries::{Home, Pipe};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Stdio},
};

const FILES: usize = 20_000;

/// A server whose workspace is the tree.
struct Searched {
    home: Home,
    server: Pipe,
    calls: u64,
}

impl Searched {
    fn start() -> Self {
        let home = Home::new();
        tree::grow(&home.work(), FILES);
        let config =
            home.config("[limits]\noutput_bytes = 10000000\n[files]\nsearch_hits = 1000000\nsearch_seconds = 300\n");
        let mut command = home.toolstead(&["-q", "mcp", "--config"]);
        command.arg(config);
        let mut server = Pipe::start(command);
        server.initialize();
        Self { home, server, calls: 0 }
    }

    /// The structured content of a call that has to succeed.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.calls += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.calls, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        self.server.send(request.to_string());
        let answer = self.server.answer(self.calls);
        let message = answer["result"]["structuredContent"].clone();
        assert!(
            message["truncated"] == false,
            "{arguments}: {}",
            answer.to_string().chars().take(2000).collect::<String>()
        );
        message
    }

    /// Returns the output of a program that searches the tree.
    fn output(&self, program: &str, arguments: &[String]) -> String {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("HOME", self.home.data()).current_dir(self.home.work());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).stdin(Stdio::null());
        let output = command.output().unwrap_or_else(|error| {
            panic!("`{program}` cannot be run ({error}): run `make peers`, or apt-get install ripgrep fd-find")
        });
        // 1 says that nothing was found.
        let is_fine = matches!(output.status.code(), Some(0 | 1));
        assert!(is_fine, "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn ripgrep(&self, arguments: &str) -> String {
        let mut all =
            words("--no-config --color never --null --no-heading -g !.git --no-require-git --no-ignore-global");
        all.extend(words(arguments));
        if !all.iter().any(|argument| argument.starts_with("./")) {
            all.push("./".into());
        }
        self.output("rg", &all)
    }
}

/// Splits the text at blanks; `%` stands for a blank in a word.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(|word| word.replace('%', " ")).collect()
}

fn path_of(text: &str) -> String {
    text.strip_prefix("./").unwrap_or(text).trim_end_matches('/').to_owned()
}

fn strings<'a>(list: &'a Value, member: &'a str) -> impl Iterator<Item = String> + 'a {
    list.as_array().unwrap().iter().map(move |item| {
        let item = if member.is_empty() { item } else { &item[member] };
        item.as_str().unwrap().to_owned()
    })
}

#[track_caller]
fn same<T: Ord + std::fmt::Debug>(what: &str, ours: &BTreeSet<T>, theirs: &BTreeSet<T>) {
    let only_ours: Vec<_> = ours.difference(theirs).take(5).collect();
    let only_theirs: Vec<_> = theirs.difference(ours).take(5).collect();
    assert!(
        only_ours.is_empty() && only_theirs.is_empty(),
        "{what}: {} here, {} there; only here {only_ours:?}, only there {only_theirs:?}",
        ours.len(),
        theirs.len()
    );
}

/// Number of the searches below that are also compared by the number of lines that they find.
const COUNTED: usize = 13;

/// Arguments of ours, ripgrep's, and the fewest files that have to be found.
const GREP: &[(&str, &str, usize)] = &[
    (r#"{"pattern": "needle"}"#, "--hidden needle", 2000),
    (r#"{"pattern": "needle", "no_ignore": true}"#, "--hidden --no-ignore needle", 4000),
    (r#"{"pattern": "needle", "show_hidden": false}"#, "needle", 1000),
    (r#"{"pattern": "needle", "show_hidden": false, "no_ignore": true}"#, "--no-ignore needle", 1000),
    (r#"{"pattern": "needle", "ignore_case": true}"#, "--hidden -i needle", 2000),
    (r#"{"pattern": "Needle|TODO", "no_ignore": true}"#, "--hidden --no-ignore Needle|TODO", 2000),
    (r#"{"pattern": "a.b", "fixed_strings": true}"#, "--hidden -F a.b", 1000),
    (r#"{"pattern": "foo(bar)", "fixed_strings": true, "ignore_case": true}"#, "--hidden -F -i foo(bar)", 1000),
    (r#"{"pattern": "naïve"}"#, "--hidden naïve", 1000),
    (r#"{"pattern": "STRASSE|straße", "ignore_case": true}"#, "--hidden -i STRASSE|straße", 1000),
    (r#"{"pattern": "\\}\\s*$"}"#, "--hidden --crlf \\}\\s*$", 1000),
    (r#"{"pattern": "^needle"}"#, "--hidden ^needle", 1000),
    (r#"{"pattern": "^$"}"#, "--hidden --crlf ^$", 1000),
    (r#"{"pattern": "\\bfox\\b.*\\bneedle\\b"}"#, "--hidden \\bfox\\b.*\\bneedle\\b", 100),
    (r#"{"pattern": "error\\[E\\d{4}\\]"}"#, "--hidden error\\[E\\d{4}\\]", 1000),
    (r#"{"pattern": "(?i)todo:\\s+LATER"}"#, "--hidden (?i)todo:\\s+LATER", 1000),
    (r#"{"pattern": "[[:digit:]]{10}"}"#, "--hidden [[:digit:]]{10}", 1000),
    (r#"{"pattern": "\\p{Lu}eedle"}"#, "--hidden \\p{Lu}eedle", 1000),
    (r#"{"pattern": "(?-u)\\xefve"}"#, "--hidden (?-u)\\xefve", 10),
    (r#"{"pattern": "tab\\there"}"#, "--hidden tab\\there", 1000),
    (r#"{"pattern": "yneedlez"}"#, "--hidden yneedlez", 50),
    (r#"{"pattern": "no such text anywhere"}"#, "--hidden no%such%text%anywhere", 0),
    (
        r#"{"pattern": "main\\(\\) \\{ \\n", "multiline": true}"#,
        "--hidden -U --multiline-dotall main\\(\\)%\\{%\\n",
        100,
    ),
    (r#"{"pattern": "TODO.{1,40}needle", "multiline": true}"#, "--hidden -U --multiline-dotall TODO.{1,40}needle", 100),
    (r#"{"pattern": "needle", "file_type": "rust", "no_ignore": true}"#, "--hidden --no-ignore -t rust needle", 500),
    (r#"{"pattern": "needle", "file_type": "py"}"#, "--hidden -t py needle", 100),
    (r#"{"pattern": "needle", "file_type": "md"}"#, "--hidden -t md needle", 100),
    (r#"{"pattern": "needle", "glob": "*.rs", "no_ignore": true}"#, "--hidden --no-ignore -g *.rs needle", 500),
    (
        r#"{"pattern": "needle", "glob": "*.{c,h} *.py", "no_ignore": true}"#,
        "--hidden --no-ignore -g *.{c,h} -g *.py needle",
        500,
    ),
    (r#"{"pattern": "needle", "glob": "!*.rs,!docs/"}"#, "--hidden -g !*.rs -g !docs/ needle", 1000),
    (
        r#"{"pattern": "needle", "glob": "**/src/**", "no_ignore": true}"#,
        "--hidden --no-ignore -g **/src/** needle",
        50,
    ),
    (r#"{"pattern": "needle", "glob": "/src/*.rs", "no_ignore": true}"#, "--hidden --no-ignore -g /src/*.rs needle", 0),
    (r#"{"pattern": "needle", "path": "rg"}"#, "--hidden needle ./rg", 50),
    (r#"{"pattern": "needle", "path": "odd"}"#, "--hidden needle ./odd", 9),
    (r#"{"pattern": "-dash|needle", "path": "odd", "glob": "-*"}"#, "--hidden -g -* -e -dash|needle ./odd", 1),
];

#[test]
fn grep_finds_the_files_that_ripgrep_finds() {
    let mut tree = Searched::start();
    for (number, (arguments, theirs, least)) in GREP.iter().enumerate() {
        let mut arguments: Value = serde_json::from_str(arguments).unwrap();
        arguments["head_limit"] = 0.into();
        let what = arguments.to_string();
        arguments["output_mode"] = "files_with_matches".into();
        let ours: BTreeSet<String> = strings(&tree.call("grep", &arguments)["files"], "").collect();
        let theirs_all = tree.ripgrep(&format!("-l {theirs}"));
        let found = theirs_all.split('\0').filter(|path| !path.is_empty()).map(path_of).collect();
        same(&format!("files of {what}"), &ours, &found);
        assert!(ours.len() >= *least, "{what} finds {} files only", ours.len());

        // Counting takes its time, and only the first searches differ in what they do to a file.
        if number >= COUNTED {
            continue;
        }
        arguments["output_mode"] = "count".into();
        let answer = tree.call("grep", &arguments);
        let ours: BTreeSet<(String, u64)> = strings(&answer["counts"], "path")
            .zip(answer["counts"].as_array().unwrap().iter().map(|count| count["count"].as_u64().unwrap()))
            .collect();
        same(&format!("counts of {what}"), &ours, &counts(&tree.ripgrep(&format!("-c {theirs}"))));
    }
}

/// `path NUL count` in lines; a path may hold a line break.
fn counts(mut text: &str) -> BTreeSet<(String, u64)> {
    let mut counts = BTreeSet::new();
    while let Some((path, rest)) = text.split_once('\0') {
        let (count, rest) = rest.split_once('\n').unwrap();
        let count = count.trim_end().parse().unwrap_or_else(|_| panic!("no count of `{path}`: {count}"));
        counts.insert((path_of(path), count));
        text = rest;
    }
    counts
}

/// `path NUL line : text` in lines.
fn lines(mut text: &str) -> BTreeSet<(String, u64, String)> {
    let mut lines = BTreeSet::new();
    loop {
        // A remark of ripgrep's about the rest of a binary file.
        while let Some((path, rest)) = text.split_once('\n')
            && path.contains(": WARNING: stopped searching binary file")
        {
            text = rest;
        }
        let Some((path, rest)) = text.split_once('\0') else { return lines };
        let (number, rest) = rest.split_once(':').unwrap();
        let (line, rest) = rest.split_once('\n').unwrap();
        lines.insert((path_of(path), number.parse().unwrap(), line.trim_end_matches('\r').into()));
        text = rest;
    }
}

#[test]
fn grep_shows_the_lines_that_ripgrep_shows() {
    let mut tree = Searched::start();
    for (arguments, theirs) in [
        (r#"{"pattern": "needle", "path": "src"}"#, "--hidden needle ./src"),
        (r#"{"pattern": "Straße", "path": "lib"}"#, "--hidden Straße ./lib"),
        (r#"{"pattern": "TODO|fox", "path": "docs", "ignore_case": true}"#, "--hidden -i TODO|fox ./docs"),
        (r#"{"pattern": "[a-z]+\\+[a-z]", "only_matching": true}"#, "--hidden -o [a-z]+\\+[a-z]"),
        (r#"{"pattern": "E\\d+", "only_matching": true, "path": "rg"}"#, "--hidden -o E\\d+ ./rg"),
        (r#"{"pattern": "needle here"}"#, "--hidden needle%here"),
        (
            r#"{"pattern": "main\\(\\) \\{ \\n[^\\n]+", "multiline": true, "only_matching": true}"#,
            "--hidden -o -U main\\(\\)%\\{%\\n[^\\n]+",
        ),
    ] {
        let mut arguments: Value = serde_json::from_str(arguments).unwrap();
        arguments["head_limit"] = 0.into();
        arguments["output_mode"] = "content".into();
        let answer = tree.call("grep", &arguments);
        let ours: BTreeSet<(String, u64, String)> = answer["matches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| {
                let text = |member: &str| found[member].as_str().unwrap().to_owned();
                (text("path"), found["line"].as_u64().unwrap(), text("text"))
            })
            .collect();
        let theirs = lines(&tree.ripgrep(&format!("-n {theirs}")));
        // What is cut here is long there.
        let is_short = |line: &(String, u64, String)| line.2.chars().count() <= 500;
        let (ours, theirs): (BTreeSet<_>, BTreeSet<_>) =
            (ours.into_iter().filter(is_short).collect(), theirs.into_iter().filter(is_short).collect());
        same(&format!("lines of {arguments}"), &ours, &theirs);
        assert!(!ours.is_empty(), "{arguments}");
    }
}

/// Arguments of ours and fd's; `@` is the root.
const GLOB: &[(&str, &str)] = &[
    (r#"{"pattern": "**/*.rs"}"#, "-I *.rs"),
    (r#"{"pattern": "**/*.rs", "show_hidden": false}"#, "-I --no-hidden *.rs"),
    (r#"{"pattern": "**/*.rs", "respect_gitignore": true}"#, "*.rs"),
    (r#"{"pattern": "**/*.{md,txt}", "respect_gitignore": true}"#, "*.{md,txt}"),
    (r#"{"pattern": "**/README*.md"}"#, "-I README*.md"),
    (r#"{"pattern": "**/main?[0-9]*.[ch]"}"#, "-I main?[0-9]*.[ch]"),
    (r#"{"pattern": "*.txt"}"#, "-I -p @/*.txt"),
    (r#"{"pattern": "src/*"}"#, "-I -p @/src/*"),
    (r#"{"pattern": "src/**/*.rs"}"#, "-I -p @/src/**/*.rs"),
    (r#"{"pattern": "**/src/*.rs"}"#, "-I -p @/**/src/*.rs"),
    (r#"{"pattern": "**/lib/**/*.py"}"#, "-I -p @/**/lib/**/*.py"),
    (r#"{"pattern": "{a,b}/**/*.c"}"#, "-I -p @/{a,b}/**/*.c"),
    (r#"{"pattern": "**/*.log", "max_depth": 3}"#, "-I -d 3 *.log"),
    (r#"{"pattern": "**/link*", "type": "any"}"#, "-I link*"),
    (r#"{"pattern": "**/link*"}"#, "-I link*"),
    (r#"{"pattern": "**/[a-c]", "type": "directory"}"#, "-I [a-c]"),
    (r#"{"pattern": "**/src*", "type": "directory", "respect_gitignore": true}"#, "src*"),
    (r#"{"pattern": "odd/*"}"#, "-I -p @/odd/*"),
    (r#"{"pattern": "**/no such name"}"#, "-I no%such%name"),
];

#[test]
fn glob_finds_what_fd_finds() {
    let mut tree = Searched::start();
    let root = tree.home.work().canonicalize().unwrap();
    for (arguments, theirs) in GLOB {
        let mut arguments: Value = serde_json::from_str(arguments).unwrap();
        arguments["limit"] = 10_000.into();
        let answer = tree.call("glob", &arguments);
        let ours: BTreeSet<String> = strings(&answer["files"], "path").collect();
        assert_eq!(answer["total_seen"], ours.len());
        let mut all = words("--color never -0 -H -s -E .git --glob");
        all.extend(words(theirs).into_iter().map(|word| word.replace('@', root.to_str().unwrap())));
        let text = tree.output("fdfind", &all);
        let is_wanted = |path: &String| is_wanted(&root, path, arguments["type"].as_str());
        let found = text.split('\0').filter(|path| !path.is_empty()).map(path_of).filter(is_wanted);
        // Its own ignore files, and not ripgrep's, are what fd reads.
        let respects = arguments["respect_gitignore"] == true;
        let counts = |path: &String| !respects || !path.starts_with("rg/");
        let theirs: BTreeSet<String> = found.filter(counts).collect();
        same(&format!("{arguments}"), &ours.into_iter().filter(counts).collect(), &theirs);
    }
}

/// Returns `true` if a path is of the type. Inside the root, a link has the type of its target.
fn is_wanted(root: &Path, path: &str, wanted: Option<&str>) -> bool {
    if wanted == Some("any") {
        return true;
    }
    // A name that is not UTF-8 is never a link here.
    let Ok(real) = root.join(path).canonicalize() else { return path.contains('\u{fffd}') };
    real.starts_with(root) && real.is_dir() == (wanted == Some("directory"))
}
