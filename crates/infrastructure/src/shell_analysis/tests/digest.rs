//! Judgements of 100,000 random command lines, compared with digests of an earlier build. A change of structure or
//! wording leaves every digest unchanged. A change of behaviour is written with `TOOLSTEAD_WRITE_JUDGEMENTS=FILE`, which
//! also stores one judgement a line in `FILE`, so that two builds can be compared with `diff`.

#![expect(clippy::disallowed_methods, reason = "a developer asks the test to write files")]

use super::*;
use serde_json::Map;
use sha2::{Digest as _, Sha256};
use std::{fmt::Write as _, fs};
use toolstead_domain::{
    Access, AccessPath, Category, Effect, PatternContext, PermissionPolicy, PermissionRule, Tool, ToolName, ToolSource,
    WorkspaceRoots, permission::rule::RuleOrigin,
};

const LINES: usize = 100_000;
/// Number of lines in one digest.
const BLOCK: usize = 1000;
const SEED: u64 = 20_261_128;
const DIGESTS: &str = include_str!("digests.txt");

const PROGRAMS: &str = "ls cat echo printf true exit head tail sort uniq wc cut tr grep rg find sed awk tee cp mv rm \
    rmdir mkdir touch ln chmod chown dd tar zip unzip gzip git gh make cargo npm npx node python3 python pip uv ruby \
    perl php lua tclsh bash sh zsh eval source . exec command builtin env sudo doas su timeout nice nohup time xargs \
    parallel curl wget ssh scp rsync docker kubectl systemctl kill ps df du stat diff which cd pushd export unset set \
    test [ read trap alias declare local jq vim less man sqlite3 psql openssl base64 date sleep ./run.sh /usr/bin/git \
    ~/bin/x unknown-program \\ls";
const ARGUMENTS: &str = "a b.txt src src/main.rs ../up /etc/passwd /tmp/x ~ ~/notes * *.rs '' 'two words' \"$HOME\" \
    \"$x\" $x ${x} ${x:-y} $1 \"$@\" $? - -- -n -e -c -i -l -r -f -rf -la -x -o -p -v -9 -5 -n5 -exec -delete -print0 \
    -name --version --help --output=o --exec-path=x --upload-pack=y --config-env=a=b --force -C .. -c1-5 -k2 -d: -t: \
    status log push commit checkout branch diff add rebase config -m message origin main HEAD~1 run test build install \
    exec 1,3p s/a/b/ s/a/b/e s/a/b/w{} {} {a,b} a=b PATH=x +x 644 root:root https://example.com/a @file %n %s \\; + \
    $(pwd) `pwd` \"$(date)\" <(ls) >(cat) a\\ b $'a\\n' é # !x [a-z] ?";
const REDIRECTIONS: &str = ">|out >out >>log 2>err &>all 2>&1 >&2 <in </dev/null >/dev/null 2>/dev/null <<<word \
    >/etc/x >$x >../y >/tmp/z 3<a <>rw >&-";
const JOINERS: &[&str] = &["; ", " && ", " || ", " | ", " |& ", " & ", "\n"];
const PREFIXES: &[&str] =
    &["A=1 ", "PATH=/x ", "LD_PRELOAD=y ", "timeout 5 ", "nice -n 3 ", "sudo ", "env ", "env -i A=b ", "nohup ", "! "];
const FRAMES: &[(&str, &str)] = &[
    ("(", ")"),
    ("{ ", "; }"),
    ("if true; then ", "; fi"),
    ("for f in a b; do ", "; done"),
    ("while read l; do ", "; done"),
    ("cd sub && ", ""),
    ("echo $(", ")"),
    ("bash -c '", "'"),
    ("xargs -0 ", ""),
    ("find . -exec ", " \\;"),
    ("f() { ", "; }; f"),
    ("case $x in a) ", ";; esac"),
    ("cat <<E\n", "\nE"),
    ("cat <<'E' | sh\n", "\nE"),
    ("x=$(", "); echo \"$x\""),
    ("[[ -f x ]] && ", ""),
    ("x=1; ", ""),
];
const RULES: &[(Effect, &str)] = &[
    (Effect::Deny, "Bash(rm *)"),
    (Effect::Deny, "Bash(git push *)"),
    (Effect::Deny, "Write(//etc/**)"),
    (Effect::Deny, "Read(//w/secret/**)"),
    (Effect::Ask, "Bash(curl *)"),
    (Effect::Ask, "Write(//w/src/**)"),
    (Effect::Allow, "Bash(git *)"),
    (Effect::Allow, "Bash(cargo test *)"),
    (Effect::Allow, "Bash(cat *)"),
    (Effect::Allow, "Bash(ls *)"),
    (Effect::Allow, "Bash(make *)"),
    (Effect::Allow, "Bash(grep *)"),
    (Effect::Allow, "Bash(cp *)"),
    (Effect::Allow, "Read(//w/**)"),
    (Effect::Allow, "Write(//w/**)"),
    (Effect::Allow, "Bash(echo a; ls)"),
];

/// A generator of equally distributed numbers (SplitMix64), which gives the same numbers in every build.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    fn is_one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}

/// Writes random command lines.
struct Lines {
    numbers: Numbers,
    programs: Vec<&'static str>,
    arguments: Vec<&'static str>,
    redirections: Vec<&'static str>,
}

impl Lines {
    fn new() -> Self {
        let list = |text: &'static str| text.split_whitespace().collect();
        Self {
            numbers: Numbers(SEED),
            programs: list(PROGRAMS),
            arguments: list(ARGUMENTS),
            redirections: list(REDIRECTIONS),
        }
    }

    fn line(&mut self) -> String {
        if self.numbers.is_one_in(8) {
            return self.changed_row();
        }
        let mut line = self.framed();
        while self.numbers.is_one_in(3) {
            line.push_str(self.numbers.pick(JOINERS));
            line.push_str(&self.framed());
        }
        line
    }

    fn framed(&mut self) -> String {
        let command = self.command();
        if self.numbers.is_one_in(5) {
            let (before, after) = self.numbers.pick(FRAMES);
            return format!("{before}{command}{after}");
        }
        command
    }

    fn command(&mut self) -> String {
        let mut command = String::new();
        while self.numbers.is_one_in(6) {
            command.push_str(self.numbers.pick(PREFIXES));
        }
        command.push_str(self.numbers.pick(&self.programs));
        for _ in 0..self.numbers.below(5) {
            command.push(' ');
            command.push_str(self.numbers.pick(&self.arguments));
        }
        if self.numbers.is_one_in(6) {
            command.push(' ');
            command.push_str(self.numbers.pick(&self.redirections));
        }
        command
    }

    /// Returns a text of the table with one word replaced or one character removed.
    fn changed_row(&mut self) -> String {
        let (text, _) = self.numbers.pick(ROWS);
        if self.numbers.is_one_in(2) {
            let removed = self.numbers.below(text.chars().count().max(1));
            return text.chars().enumerate().filter(|(at, _)| *at != removed).map(|(_, letter)| letter).collect();
        }
        let mut words: Vec<&str> = text.split(' ').collect();
        let replaced = self.numbers.below(words.len());
        words[replaced] = self.numbers.pick(&self.arguments);
        words.join(" ")
    }
}

fn policy() -> PermissionPolicy {
    let base = PatternContext { home: Some("/home/ann".into()), command_tools: &["bash"], ..PatternContext::default() };
    let rule = |(effect, text): &(Effect, &str)| {
        Arc::new(PermissionRule::parse(*effect, text, RuleOrigin::CommandLine, &base).unwrap())
    };
    let roots = WorkspaceRoots { write: vec!["/w".into()], read_only: vec![], forbidden: vec!["/w/data".into()] };
    PermissionPolicy { rules: RULES.iter().map(rule).collect(), roots, ..PermissionPolicy::default() }
}

fn bash() -> Tool {
    let mut tool = Tool::new(ToolName::parse("bash").unwrap(), Map::new(), Category::Shell, ToolSource::BuiltIn);
    tool.takes_command_lines = true;
    tool
}

/// Returns the judgement of a line as text: commands and files with all that rules are compared with, and the decisions
/// of a policy. Reasons are left out, because their wording may change.
fn judgement(line: &str, tool: &Tool, policy: &PermissionPolicy) -> String {
    let analysis = analyse(line, Path::new("/w"));
    let mut text = format!("{line:?}");
    let mut accesses = Vec::new();
    for command in analysis.commands {
        let confidence = match command.clarity {
            ParseConfidence::Plain => "plain",
            ParseConfidence::Exact(_) => "exact",
            ParseConfidence::Opaque(_) => "opaque",
        };
        let (words, readings) = (&command.words, &command.readings);
        let widening = command.widening.map(|widening| (widening.least, widening.offered));
        write!(text, " ; {confidence} {:?} {words:?} {readings:?}", command.text).unwrap();
        write!(text, " {} {widening:?} {}", command.only_changes_files, command.built_in_rule.is_some()).unwrap();
        for path in command.operands.iter().chain(&*command.free) {
            write!(text, " {}", path_text(path)).unwrap();
        }
        accesses.push(Access::RunCommand(command));
    }
    for file_access in analysis.file_accesses {
        let path = AccessPath { lexical: file_access.path.clone(), real: file_access.path, tree: file_access.tree };
        accesses.push(if file_access.writes { Access::WritePath(path) } else { Access::ReadPath(path) });
        let (FileAccessOrigin::Redirection { command } | FileAccessOrigin::Operand { command }) = file_access.origin;
        let is_operand = matches!(file_access.origin, FileAccessOrigin::Operand { .. });
        write!(text, " ; {} {command} {is_operand}", path_text(accesses.last().unwrap())).unwrap();
    }
    let decision = policy.decide(tool, &Map::new(), &accesses);
    let findings: Vec<&str> = decision.trace.iter().map(|finding| finding.verdict.as_str()).collect();
    write!(text, " ; {} {findings:?}", decision.verdict.as_str()).unwrap();
    text
}

fn path_text(access: &Access) -> String {
    let (sign, path) = match access {
        Access::ReadPath(path) => ('<', path),
        Access::WritePath(path) => ('>', path),
        other => panic!("{other:?} is not an access to a path"),
    };
    format!("{sign}{}{}", path.lexical.display(), if path.tree { "/**" } else { "" })
}

#[test]
fn judgements_of_random_command_lines_equal_the_stored_digests() {
    let (mut lines, tool, policy) = (Lines::new(), bash(), policy());
    let lines: Vec<String> = (0..LINES).map(|_| lines.line()).collect();
    let judged: Vec<String> = std::thread::scope(|scope| {
        let judge = |lines: &[String]| lines.iter().map(|line| judgement(line, &tool, &policy)).collect::<Vec<_>>();
        let halves = lines.chunks(LINES / 4).map(|lines| scope.spawn(move || judge(lines))).collect::<Vec<_>>();
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    let digest = |block: &[String]| {
        let hash = Sha256::digest(block.join("\n"));
        hash[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let digests: Vec<String> = judged.chunks(BLOCK).map(digest).collect();
    if let Some(file) = std::env::var_os("TOOLSTEAD_WRITE_JUDGEMENTS") {
        fs::write(file, judged.join("\n")).unwrap();
        let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/shell_analysis/tests/digests.txt");
        fs::write(stored, digests.join("\n") + "\n").unwrap();
    }
    let stored: Vec<&str> = DIGESTS.lines().collect();
    assert_eq!(stored.len(), digests.len());
    let changed: Vec<usize> = (0..stored.len()).filter(|block| stored[*block] != digests[*block]).collect();
    assert!(changed.is_empty(), "the judgements of these blocks of {BLOCK} lines have changed: {changed:?}");
}
