//! Commands that need no approval of their own, and commands that look like them.

use super::*;

/// Returns the programs in a text that a built-in rule allows.
fn allowed(text: &str) -> Vec<String> {
    let analysis = analyse(text, Path::new("/w"));
    let allowed = analysis.commands.iter().filter(|command| command.built_in_rule.is_some());
    allowed.map(|command| command.words[0].to_string()).collect()
}

#[track_caller]
fn check(allows: &[&str], rows: &[&str]) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|text| (text, allowed(text)))
        .filter(|(_, allowed)| allowed != allows)
        .map(|(text, allowed)| format!("{text:?} allows {allowed:?}, expected {allows:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_that_only_end_or_print_are_allowed() {
    check(&["true"], &["make || true", "true", "true a 'b c'", "true 2>/dev/null", "x=1; true \"$x\""]);
    check(&[":"], &[":", "while :; do make; done", ": done"]);
    check(&["exit"], &["exit", "exit 3", "make || exit 255", "make; exit $?", "make; exit \"$?\""]);
    check(
        &["echo"],
        &[
            "echo done",
            "echo",
            "echo -n 'a b'",
            "echo -e 'a\\tb' \"c\"",
            "make; echo \"exit $?\"",
            "make; echo exit=$?",
            "for i in 1 2; do echo \"run $i\"; done",
            "echo \"${i}\" \"$PWD\"",
            "echo '$SECRET'",
            "echo a 2>&1",
            "echo a >&2",
            "echo a > /dev/null",
            "LC_ALL=C echo a",
            "(echo a)",
            "echo a | tee b",
            "echo a &",
            "x=$(echo a)",
        ],
    );
    check(
        &["printf"],
        &["printf '%s\\n' \"$PWD\"", "printf x", "printf '%5.2f%%n %-3d\\n' 1.5 2", "printf '%(%F)T'", "printf %s a"],
    );
}

#[test]
fn filters_of_a_pipe_are_allowed() {
    for filter in [
        "head",
        "head -5",
        "head -n 5",
        "head -n5",
        "head -qn -5",
        "head -c 2000",
        "head --lines=5",
        "head --lines 5",
        "head --bytes=2k",
        "tail -5",
        "tail -n +2",
        "tail --lines=+2",
        "wc",
        "wc -lw",
        "wc --lines",
        "sort",
        "sort -rn",
        "sort -t: -k2,2n",
        "sort -t ':' -k 2.1,3.4nr -u",
        "sort --key=2 --reverse --unique",
        "uniq -c",
        "uniq --count -f 1",
        "cut -d: -f1",
        "cut -d ' ' -f 1,3-5",
        "cut -c1-80",
        "cut --delimiter=, --fields=2 --output-delimiter=';'",
        "tr a b",
        "tr -d '\\n'",
        "tr '[:upper:]' '[:lower:]'",
        "tr -cs a-z '\\n'",
        "head -5 2>&1",
        "head -5 2>/dev/null",
        "head -5 > /dev/null",
        "head -5 1>&2",
        "LC_ALL=C sort",
        "LANG=C.UTF-8 LC_ALL=C sort -u",
    ] {
        let name = filter.split(' ').find(|word| !word.contains('=')).unwrap();
        let table = [
            format!("ls | {filter}"),
            format!("ls 2>&1 | {filter}"),
            format!("ls |& {filter}"),
            format!("ls |\n  {filter}"),
            format!("cd web && ls | {filter} && make"),
            format!("ls | {filter}; make"),
            format!("x=$(ls | {filter})"),
            format!("make \"$(ls | {filter})\"; ls"),
            format!("if ls | {filter}; then make; fi"),
            format!("ls | {filter} | cat"),
        ];
        // Other arguments make `make` opaque, and with it the whole text.
        for text in table.iter().filter(|text| !text.starts_with("make")) {
            check(&[name], &[text]);
        }
        check(&[], &[&table[7]]);
    }
    check(&["cut", "sort", "uniq"], &["grep -rn x . | cut -d: -f1 | sort | uniq -c"]);
}

#[test]
fn a_filter_without_a_pipe_or_with_unsafe_arguments_is_not_allowed() {
    for command in [
        // A file, or an argument that may be one.
        "head x",
        "head -5 x",
        "head -5 2>/dev/null x",
        "head 2>&1 -5 x",
        "head -- x",
        "head --",
        "head -",
        "head -n 5 -",
        "head *",
        "head $x",
        "head \"$x\"",
        "head -n \"$x\"",
        "head ~/x",
        "head {a,b}",
        "head <(ls)",
        "head -n 5x",
        "head -n",
        "head -n -",
        "head +5",
        "tail +5",
        "uniq - out",
        "uniq in out",
        "uniq out",
        "uniq -5",
        "sort a",
        "sort +1",
        "wc a",
        "cut -f1 a",
        "cut -f1 -- a",
        "tr",
        "tr -d",
        "tr a b c",
        "tr [a-z] b",
        // Options that wait, write, or run something.
        "tail -f",
        "tail -F",
        "tail -5f",
        "tail -fn5",
        "tail -nf",
        "tail --follow",
        "tail --follow=name",
        "tail --pid=1",
        "tail -s 1",
        "tail --retry",
        "sort -o f",
        "sort -of",
        "sort -uo f",
        "sort -no",
        "sort --output=f",
        "sort --output f",
        "sort --out=f",
        "sort --o f",
        "sort -T d",
        "sort -S 1",
        "sort -k1o",
        "sort -k 1,1o",
        "sort --compress-program=x",
        "sort --comp=x",
        "sort --files0-from=x",
        "sort --random-source=x",
        "sort --batch-size=2",
        "sort --parallel=99",
        "wc --files0-from=-",
        "wc --files0=-",
        "wc --fi -",
        // Abbreviations of options on the list.
        "head --line=5",
        "sort --rev",
        "cut --field=1",
        // Other programs.
        "grep x",
        "cat",
        "tac",
        "tee",
        "sed p",
        "./head",
        "/usr/bin/head",
        "'head'",
        "he\"ad\"",
        "\\head",
        "$x",
        "head2",
        "timeout 5 head",
        "nice head",
        "command head",
        "env head",
        "sudo head",
        "xargs head",
        // An environment that may change the commands.
        "PATH=. head",
        "LD_PRELOAD=x head",
        "LC_ALL=../x sort",
        "LC_ALL=$x sort",
        "TMPDIR=. sort",
        "POSIXLY_CORRECT=1 sort",
        "_POSIX2_VERSION=199209 sort",
        "FOO=1 head",
        // Standard input is not a pipe.
        "head < x",
        "head 0< x",
        "head <&3",
        "head 0<&-",
        "head 0>&1",
        "head 0> x",
        "head <> x",
        "head <<< x",
        "head 3> x",
        "< x head",
        // A pipe that a compound command reads.
        "{ head; }",
        "(head)",
        "while head; do make; done",
        "if head; then make; fi",
        "! head",
        "time head",
    ] {
        check(&[], &[&format!("ls | {command}")]);
    }
    check(
        &[],
        &[
            "head",
            "head -5",
            "ls; head",
            "ls && head",
            "ls || head",
            "ls & head",
            "ls\nhead",
            "head | cat",
            "head -5 < /etc/passwd",
            "{ ls | cat; head; }",
            "ls | cat; head",
            "ls | { cat; head -1; }",
            "ls | head < x",
            "ls | head 2>&1 < x",
            "ls | head <<E\nx\nE",
            "x=$(head)",
            "ls | cat \"$(head)\"",
            "sh -c 'ls | head'",
        ],
    );
}

#[test]
fn commands_that_only_appear_to_print_are_not_allowed() {
    check(
        &[],
        &[
            "ls > x; echo a > x",
            "ls > x; { echo a; } > x",
            "while :; do :; done",
            "[[ -f .env ]] && echo yes",
            "[[ a -nt b ]] || exit 3",
            "[[ $x == a || -e b ]] && :",
            "until exit 1; do echo a; done &",
            "for f in *; do echo \"$f\"; done",
            "for f in /etc/*; do printf '%s\\n' \"$f\"; done",
            "for f in a {b,/etc/*}; do echo \"$f\"; done",
            "y='*'; for f in $y; do echo \"$f\"; done",
            "for f in $(echo '/etc/*'); do :; done",
            "select f in *; do :; done",
            "x=(*); echo \"$x\"",
            "x=(a $y); echo \"$x\"",
            "echo *",
            "echo ~",
            "echo ~/x",
            "echo a?",
            "echo {1..9}",
            "echo $x",
            "echo $?*",
            "echo \"$(cat x)\"",
            "echo `id`",
            "echo \"${x:-$(id)}\"",
            "echo \"$SECRET\"",
            "echo \"${SECRET}\"",
            "echo \"${#x}\"",
            "echo \"$@\"",
            "x=$SECRET; echo \"$x\"",
            "x=${SECRET:-1}; echo \"$x\"",
            "for x in $SECRET; do echo \"$x\"; done",
            "read x <<< \"$SECRET\"; echo \"$x\"",
            "echo $((1 + 2))",
            "'echo' a",
            "/bin/echo a",
            "command echo a",
            "builtin echo a",
            "env echo a",
            "timeout 5 echo a",
            "FOO=1 echo a",
            "PATH=. echo a",
            "printf",
            "printf -v x a",
            "printf -v PATH %s ./bin",
            "printf -- a",
            "printf %n x",
            "printf '12345%n' PATH",
            "printf '%s%5ln' a PATH",
            "printf \"$x\"",
            "printf \"%$x\" a",
            "printf '%s' *",
            "exit $x",
            "exit \"$x\"",
            "exit 1 2",
            "exit -1",
            "exit 1111",
            "exit 'a[$(id)]'",
            "true *",
            "true \"$(id)\"",
            "/bin/true",
            "false",
            "test -f x",
            "pwd",
        ],
    );
}

#[test]
fn no_command_is_allowed_if_part_of_the_text_is_not_understood() {
    for before in [
        "head() { rm x; }",
        "function head { rm x; }",
        "echo() { rm x; }",
        "alias head='rm x'",
        "enable -n echo",
        "hash -p ./x head",
        "exec < x",
        "exec > x",
        "eval \"$x\"",
        "source x",
        ". ./x",
        "trap 'rm x' EXIT",
        "shopt -s expand_aliases",
        "PATH=.:$PATH",
        "export PATH=.",
        "declare PATH=.",
        "read PATH < x",
        "for PATH in .; do ls; done",
        "printf -v PATH .",
        "printf '12345%n' PATH",
        "BASH_ENV=x",
        "$x",
    ] {
        check(&[], &[&format!("{before}; ls | head -5; echo a"), &format!("ls | head -5; echo a; {before}")]);
    }
}

#[test]
fn a_format_of_printf_that_sets_a_variable_is_opaque() {
    for (text, is_opaque) in [
        ("printf '12345%n' PATH", true),
        ("printf '%5hhn' PATH", true),
        ("printf -- '%n' PATH", true),
        ("printf -- \"$x\" PATH", true),
        ("printf '%%n' PATH", false),
        ("printf -- '%s' PATH", false),
        ("printf '%d items\\n' 5", false),
    ] {
        assert_eq!(analyse(text, Path::new("/w")).is_opaque(), is_opaque, "{text}");
    }
}
