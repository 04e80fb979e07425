//! Every `console` block of the README and of `docs/` runs as it is written, and prints what it says.
//!
//! The blocks of one page run in their order, in one folder. `…` in an expected line stands for any text, and a line that
//! is only `…` for any lines. A block with `file=PATH` in its info string is that file, which is there from the start.

use crate::binaries::Home;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

/// The blocks that are not run: the page, and the reason that the info string of the block names.
const NOT_RUN: &[(&str, &str)] = &[
    ("README.md", "needs-a-model"),
    ("docs/guide/agent.md", "needs-a-model"),
    ("docs/guide/hooks-and-events.md", "needs-a-running-server"),
];

/// The folder in which the pages say that they are.
const WORKSPACE: &str = "/srv/app";
/// The home folder of the pages.
const HOME: &str = "/home/me";

/// A fenced block of a page.
#[derive(Debug, Default, PartialEq)]
struct Block {
    /// The number of its first line, from 1.
    line: usize,
    /// The words behind the opening fence.
    info: Vec<String>,
    lines: Vec<String>,
}

impl Block {
    fn option(&self, name: &str) -> Option<&str> {
        self.info.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    /// The commands, each with the lines that it prints.
    fn commands(&self) -> Vec<(String, Vec<&str>)> {
        let mut commands: Vec<(String, Vec<&str>)> = Vec::new();
        for line in &self.lines {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
                (None, Some((command, printed))) if printed.is_empty() && command.ends_with('\\') => {
                    command.push('\n');
                    command.push_str(line);
                }
                (None, Some((_, printed))) => printed.push(line),
                (None, None) => panic!("line {}: a block begins with a command, `$ …`", self.line),
            }
        }
        for (_, printed) in &mut commands {
            while printed.last().is_some_and(|line| line.is_empty()) {
                printed.pop();
            }
        }
        commands
    }
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    for (at, line) in page.lines().enumerate() {
        let fence = line.trim_start().bytes().take_while(|byte| *byte == b'`').count();
        match &mut open {
            None if fence >= 3 => {
                let info = line.trim_start()[fence..].split_whitespace().map(str::to_owned).collect();
                open = Some((fence, Block { line: at + 2, info, lines: Vec::new() }));
            }
            Some((opened, _)) if fence >= *opened && line.trim().len() == fence => {
                blocks.extend(open.take().map(|(_, block)| block));
            }
            Some((_, block)) => block.lines.push(line.to_owned()),
            None => {}
        }
    }
    blocks
}

/// Returns `true` if the line is as expected, where `…` stands for any text.
fn fits_line(expected: &str, line: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    false
}

/// Returns `true` if the lines are as expected, where a line `…` stands for any lines.
fn fits(expected: &[&str], lines: &[&str]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((&"…", rest)) => (0..=lines.len()).any(|skipped| fits(rest, &lines[skipped..])),
        Some((first, rest)) => {
            lines.split_first().is_some_and(|(line, lines)| fits_line(first, line) && fits(rest, lines))
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The README and every page below `docs/`, by their paths in the repository.
fn pages() -> Vec<String> {
    let mut folders = vec![root().join("docs")];
    let mut pages = vec!["README.md".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    pages.sort();
    pages
}

/// A folder as the pages expect it, with a home folder and the built programs.
struct Machine(Home);

impl Machine {
    fn with_files_of(blocks: &[Block]) -> Self {
        let machine = Self(Home::new());
        machine.run("git init --quiet");
        let main = "fn main() {\n    println!(\"hello\");\n}\n";
        fs::write(machine.0.work().join("main.rs"), main).unwrap();
        for block in blocks {
            let Some(name) = block.option("file") else {
                continue;
            };
            let path = match name.strip_prefix("~/") {
                Some(name) => machine.home().join(name),
                None => machine.0.work().join(name),
            };
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, block.lines.join("\n") + "\n").unwrap();
        }
        machine
    }

    fn home(&self) -> PathBuf {
        self.0.work().parent().unwrap().join("home")
    }

    /// Runs a line of a shell and returns what it prints on both outputs, with the paths of the pages.
    fn run(&self, line: &str) -> String {
        let programs = Path::new(env!("CARGO_BIN_EXE_toolstead")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = self.0.command("sh", &["-c", &format!("exec 2>&1\n{line}")]);
        command.env("PATH", format!("{}:{path}", programs.display()));
        // The pages say where files are without these.
        command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME");
        let printed = command.stdin(Stdio::null()).output().unwrap().stdout;
        let mut printed = String::from_utf8(printed).unwrap();
        for (folder, name) in [(self.0.work(), WORKSPACE), (self.home(), HOME)] {
            printed = printed.replace(folder.canonicalize().unwrap().to_str().unwrap(), name);
        }
        printed
    }
}

#[test]
fn every_console_block_prints_what_it_says() {
    let (mut wrong, mut not_run, mut run) = (Vec::new(), Vec::new(), 0);
    for page in pages() {
        let blocks = blocks(&fs::read_to_string(root().join(&page)).unwrap());
        let consoles: Vec<&Block> =
            blocks.iter().filter(|block| block.info.first().is_some_and(|one| one == "console")).collect();
        if consoles.is_empty() {
            continue;
        }
        let machine = Machine::with_files_of(&blocks);
        for block in consoles {
            if let Some(reason) = block.option("no-run") {
                not_run.push((page.clone(), reason.to_owned()));
                continue;
            }
            for (command, expected) in block.commands() {
                let printed = machine.run(&command);
                let lines: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
                if !fits(&expected, &lines) {
                    let expected = expected.join("\n");
                    wrong
                        .push(format!("{page}:{}: `{command}` printed\n{printed}\ninstead of\n{expected}", block.line));
                }
                run += 1;
            }
        }
    }
    println!("{run} commands were run; not run: {not_run:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let not_run: Vec<_> = not_run.iter().map(|(page, reason)| (page.as_str(), reason.as_str())).collect();
    assert_eq!(not_run, NOT_RUN, "add what cannot be run, with its reason");
}

#[test]
fn an_ellipsis_stands_for_any_text_and_any_lines() {
    for (expected, printed, is_met) in [
        ("a\nb", "a\nb", true),
        ("a", "a\nb", false),
        ("a\n…", "a\nb\nc", true),
        ("…\nc", "a\nb\nc", true),
        ("a\n…\nc", "a\nc", true),
        ("a\n…\nc", "a\nb", false),
        ("after … ms", "after 12 ms", true),
        ("after … ms", "after 12 s", false),
        ("…x…y", "1x2y", true),
        ("…x…y", "1x2", false),
        ("x…x", "x", false),
        ("", "", true),
    ] {
        let lines = |text: &'static str| text.lines().collect::<Vec<_>>();
        assert_eq!(fits(&lines(expected), &lines(printed)), is_met, "{expected:?} {printed:?}");
    }
}

#[test]
fn a_page_is_read_as_blocks_of_commands() {
    let page = "text\n```sh file=a.sh\nx\n```\n````console\n$ a \\\n  b\none\n```\n\n$ c\n````\n";
    let blocks = blocks(page);
    assert_eq!(blocks.len(), 2);
    assert_eq!((blocks[0].line, blocks[0].option("file")), (3, Some("a.sh")));
    let expected = [("a \\\n  b".to_owned(), vec!["one", "```"]), ("c".to_owned(), Vec::new())];
    assert_eq!(blocks[1].commands(), expected);
}
