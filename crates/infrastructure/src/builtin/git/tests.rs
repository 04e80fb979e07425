#![expect(clippy::disallowed_methods, reason = "tests set behind the sandbox's back what it would take out again")]

use crate::builtin::tests::Bench;
use serde_json::{Value, json};
use toolstead_domain::error_kind::ErrorKind;

/// A repository with two commits, as bash makes it.
fn repository() -> Bench {
    let bench = Bench::new();
    let script = "export HOME=$PWD GIT_CONFIG_GLOBAL=/dev/null && git init -q -b main . && git config user.name Ada && \
                  git config user.email a@b && echo one > a.txt && git add a.txt && git commit -qm first && \
                  echo two >> a.txt && git commit -qam second && echo three >> a.txt && echo new > -x";
    let made = bench.call("bash", json!({"command": script})).unwrap();
    assert!(!made.is_error(), "{}", made.joined_text());
    bench
}

/// Runs a script outside of the sandbox, in the repository.
#[track_caller]
fn outside(bench: &Bench, script: &str) {
    let bash = std::process::Command::new("bash").args(["-c", script]).current_dir(bench.path("")).status();
    assert!(bash.unwrap().success());
}

#[track_caller]
fn check(bench: &Bench, arguments: Value, these: &[&str], those: &[&str]) {
    let text = bench.text("git", arguments.clone());
    for part in these {
        assert!(text.contains(part), "{arguments} does not tell `{part}`: {text}");
    }
    for part in those {
        assert!(!text.contains(part), "{arguments} tells `{part}`: {text}");
    }
}

#[test]
fn a_repository_is_shown() {
    let bench = repository();
    check(&bench, json!({"operation": "log"}), &["first", "second", "Ada"], &[]);
    check(&bench, json!({"operation": "log", "n": 1}), &["second"], &["first"]);
    check(&bench, json!({"operation": "log", "range": "HEAD~1..HEAD"}), &["second"], &["first"]);
    check(&bench, json!({"operation": "log", "file": "-x"}), &[], &["first"]);
    check(&bench, json!({"operation": "diff"}), &["+three"], &["+two"]);
    check(&bench, json!({"operation": "diff", "range": "HEAD~1..HEAD"}), &["+two"], &["+three"]);
    check(&bench, json!({"operation": "show", "commit": "HEAD~1"}), &["first", "+one"], &["+two"]);
    check(&bench, json!({"operation": "status"}), &["## main", " M a.txt", "?? -x"], &[]);
    check(&bench, json!({"operation": "blame", "file": "a.txt", "range": "2,2"}), &["two", "Ada"], &["one"]);
}

#[test]
fn options_are_not_taken_for_commits() {
    let bench = repository();
    for arguments in [
        json!({"operation": "log", "commit": "--output=stolen"}),
        json!({"operation": "diff", "range": "--no-index"}),
        json!({"operation": "log", "n": 201}),
        json!({"operation": "blame", "file": "a.txt", "range": "1,2 --contents x"}),
        json!({"operation": "blame"}),
        json!({"operation": "push"}),
    ] {
        assert_eq!(bench.call("git", arguments.clone()).unwrap_err().kind, ErrorKind::InvalidInput, "{arguments}");
    }
    assert!(!bench.exists("stolen"));
}

#[test]
fn nothing_that_a_repository_names_is_run() {
    let bench = repository();
    let hostile = [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "gpg.program",
    ];
    let set: String = hostile.iter().map(|key| format!("git config {key} 'touch stolen-{key}; cat' && ")).collect();
    let script = format!(
        "{set} git config log.showSignature true && git config core.hooksPath $PWD/hooks && \
         echo '*.txt diff=evil filter=evil' > .gitattributes && touch a.txt"
    );
    outside(&bench, &script);
    outside(&bench, "rm -f stolen*");
    for arguments in [
        json!({"operation": "status"}),
        json!({"operation": "diff"}),
        json!({"operation": "log"}),
        json!({"operation": "show"}),
        json!({"operation": "blame", "file": "a.txt"}),
    ] {
        bench.call("git", arguments).unwrap();
    }
    let stolen: Vec<String> = bench.names("").into_iter().filter(|name| name.starts_with("stolen")).collect();
    assert!(stolen.is_empty(), "{stolen:?}");
}

#[test]
fn a_filter_that_cannot_be_switched_off_is_refused() {
    let bench = repository();
    let script = "git config 'filter.a=b.clean' 'touch stolen' && echo '*.txt filter=a=b' > .gitattributes";
    outside(&bench, script);
    let refused = bench.call("git", json!({"operation": "status"})).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::PermissionDenied);
    assert!(!bench.exists("stolen"));
}

#[test]
fn what_it_runs_is_judged_and_a_repository_around_the_root_is_not_shown() {
    let bench = repository();
    let judged = bench.call_unchecked("git", json!({"operation": "status"})).unwrap();
    assert_eq!(judged[0].to_string(), "run git status --short --branch --ignore-submodules=all --");
    assert!(judged[1].to_string().ends_with("and everything below"), "{}", judged[1]);
}
