//! Rules that are reported, and rules that cover something and are not reported.

use super::*;
use toolstead_domain::{Effect, PatternContext, permission::rule::RuleOrigin};

fn rule(text: &str) -> PermissionRule {
    PermissionRule::parse(Effect::Allow, text, RuleOrigin::CommandLine, &PatternContext::default()).unwrap()
}

/// Returns the remark about the rule on commands with this pattern.
fn note_for(pattern: &str) -> Option<String> {
    let rule = rule(&format!("Bash({pattern})"));
    Some(IneffectivePattern::of(&rule.outline()?)?.describe(&rule))
}

#[test]
fn a_wildcard_rule_that_covers_no_command_is_reported() {
    for (pattern, says) in [
        ("sudo *", "covers no command: sudo starts another program, and a wildcard never covers that"),
        ("npx *", "npx starts another program"),
        ("npx tsc *", "write each command whole, without `*`, such as `Bash(npx tsc x)`"),
        ("npx:*", "npx starts another program"),
        ("npx tsc --p*", "npx starts another program"),
        ("docker *", "docker starts"),
        ("kubectl get *", "kubectl starts"),
        ("awk *", "covers no command but questions such as `awk --version`: awk runs the text it is given"),
        ("psql *", "but questions such as `psql --version`: "),
        ("xargs *", "xargs"),
        ("tee *", "tee writes"),
        ("sed -i *", "sed may run or write"),
        ("node -e *", "node runs the text"),
        ("python3 -c *", "python3 runs the text"),
        ("bash *", "bash runs the text or the file"),
        ("env *", "env starts"),
        ("ssh *", "ssh starts"),
        ("./run.sh *", "a program given by its path may be any program"),
        ("./run*", "a program given by its path"),
        ("/usr/bin/*", "a program given by its path"),
        ("git -c *", "options before git's subcommand"),
        ("git bisect *", "this subcommand of git"),
        ("npm exec *", "this subcommand of npm"),
        ("cargo +nightly *", "this subcommand of cargo"),
        ("find * -delete", "such as `Bash(find x -delete)`"),
        ("find * -exec *", "makes find run"),
        ("eval *", "the shell evaluates"),
        ("source *", "the shell evaluates"),
        ("for *", "covers no command: "),
        ("! *", "covers no command: "),
        ("# *", "covers no command: "),
    ] {
        let answer = note_for(pattern).unwrap();
        assert!(answer.contains(says), "{pattern}: {answer}");
    }
}

#[test]
fn rules_without_wildcards_or_with_an_open_program_name_are_not_reported() {
    for pattern in ["npx tsc", "sudo ls", "* --help", "sud*", "g*"] {
        assert_eq!(note_for(pattern), None, "{pattern}");
    }
    for other in ["Bash", "Read(//x/**)", "npx_tool", "WebFetch(domain:*.example.com)"] {
        assert_eq!(rule(other).outline(), None, "{other}");
    }
}

/// Plain commands of all kinds, some with the only words that make them so.
const PLAIN: &[&str] = &[
    "ls -l x",
    "cat x y",
    "git status --short",
    "git log --oneline -n 5",
    "git checkout main",
    "git diff --stat",
    "git remote show origin",
    "git --no-pager log -p",
    "git -C x status",
    "git submodule update --init",
    "git lfs pull",
    "git config --get user.name",
    "git config --list",
    "git stash list",
    "cargo test -p x --lib",
    "cargo --locked build",
    "cargo --color never build",
    "npm run test:unit",
    "npm --prefix x run build",
    "npm -w x test",
    "pnpm --filter x test",
    "pnpm -r build",
    "yarn workspace x test",
    "yarn --cwd x build",
    "go tool cover -func x",
    "go test ./...",
    "gh pr view 1",
    "gh pr list",
    "pip show requests",
    "cargo run --release",
    "pip install -r x",
    "python3 -m pytest -q",
    "python3 -u x.py y",
    "python3 -Wignore -m pytest",
    "mapfile -t x",
    "rustc -C opt-level=3 x.rs",
    "node x.js",
    "node --version",
    "perl -I lib x.pl",
    "ruby -I lib x.rb",
    "php -S localhost:1 x.php",
    "lua x.lua",
    "julia -p 2 x.jl",
    "guile -L x y.scm",
    "tsx x.ts",
    "Rscript x.R",
    "awk --version",
    "psql --version",
    "bun --version",
    "sqlite3 --version",
    "sed -n 1,5p x",
    "sed s/a/b/ x",
    "sed -e s/a/b/ x",
    "find . -name x -type f",
    "fd -e rs x",
    "rg -n x y",
    "tar xf x.tar",
    "tar -tf x",
    "sort -u x",
    "curl -s https://x.org",
    "curl -o /dev/null https://x.org",
    "curl -sSo /dev/null https://x.org",
    "rsync -a x y",
    "make V=1 test",
    "make -C x all",
    "cmake -DTESTS=ON .",
    "dd if=x bs=1",
    "command -v x",
    "export LANG=C",
    "export NODE_ENV=test",
    "declare x=1",
    "set -e",
    "unset x",
    "read -r x",
    "printf %s x",
    "test -f x",
    "[ -f x ]",
    "cd x",
    "kill -9 1",
    "wait 1",
    "mkdir -p x/y",
    "rm -rf x",
    "cp -r x y",
    "mv x y",
    "touch x",
    "chmod +x y",
    "java -jar x.jar",
    "mvn -q test",
    "gradle build",
    "terraform plan",
    "gcc -O2 x.c",
    "rustc --edition 2024 x.rs",
    "jq .a x",
    "unzip -l x",
    "foo --run rm x",
    "xdg-open x",
    "systemctl status x",
    "journalctl -u x",
    "tree -L 2",
    "R --version",
];

#[test]
fn a_wildcard_that_covers_a_plain_command_is_never_reported_as_covering_none() {
    let mut tried = 0;
    for line in PLAIN {
        let commands = commands_of(line);
        let [command] = &commands[..] else { panic!("{line}: {commands:?}") };
        assert_eq!(command.clarity, ParseConfidence::Plain, "{line}");
        let words: Vec<&str> = command.words.iter().map(|word| &**word).collect();
        let beginnings = (1..=words.len()).map(|count| format!("{} *", words[..count].join(" ")));
        let with_a_gap = (1..words.len().max(2) - 1).map(|at| {
            let mut words = words.clone();
            words[at] = "*";
            words.join(" ")
        });
        for pattern in beginnings.chain(with_a_gap) {
            if let Ok(rule) = PermissionRule::parse(
                Effect::Allow,
                &format!("Bash({pattern})"),
                RuleOrigin::Program,
                &PatternContext::default(),
            ) {
                assert!(rule.meets(&[Access::RunCommand(command.clone())], &Default::default()), "{pattern}: {line}");
                let message = note_for(&pattern).filter(|message| !message.contains("no command but questions"));
                assert_eq!(message, None, "{pattern} covers {line}");
                tried += 1;
            }
        }
    }
    assert!(tried > 250, "{tried}");
}

#[test]
fn the_catalogue_identifies_programs_that_start_other_programs() {
    for (name, expected) in [
        ("docker", true),
        ("/usr/bin/sudo", true),
        ("fish", true),
        ("timeout", false),
        ("git", false),
        ("unheard-of", false),
    ] {
        assert_eq!(starts_others(name), expected, "{name}");
    }
}
