#![expect(clippy::disallowed_methods, reason = "tests set behind the sandbox's back what it would take out again")]

use crate::builtin::tests::Bench;
use serde_json::{Value, json};
use toolstead_domain::{Effect, error_kind::ErrorKind};

/// Creates a repository with two commits.
fn repository() -> Bench {
    filled(Bench::new())
}

fn filled(bench: Bench) -> Bench {
    let script = "export HOME=$PWD GIT_CONFIG_GLOBAL=/dev/null && git init -q -b main . && git config user.name Ada && \
                  git config user.email a@b && echo one > a.txt && git add a.txt && git commit -qm first && \
                  echo two >> a.txt && git commit -qam second && echo three >> a.txt && echo new > -x";
    outside(&bench, script);
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
fn git_shows_log_diff_commits_status_and_blame() {
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
fn programs_configured_by_a_repository_are_not_run() {
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
fn the_git_tool_reports_its_command_and_folder_as_accesses() {
    let bench = repository();
    let judged = bench.call_unchecked("git", json!({"operation": "status"})).unwrap();
    assert_eq!(judged[0].to_string(), "run git status --short --branch --ignore-submodules=all --");
    assert!(judged[1].to_string().ends_with("and everything below"), "{}", judged[1]);
}

/// Creates a repository whose history contains files that rules close, some of them deleted from the working tree.
fn with_secrets(bench: Bench) -> Bench {
    let bench = filled(bench);
    let script = "export HOME=$PWD GIT_CONFIG_GLOBAL=/dev/null; git add . && mkdir -p sub/secret secret && \
                  echo topsecret-1 > secret/key && echo topsecret-2 > sub/secret/key && echo topsecret-3 > secret/gone && \
                  echo open > sub/b.txt && git add . && git commit -qm secrets && git mv secret/gone moved && \
                  echo topsecret-4 >> secret/key && echo fourth >> a.txt && git commit -qam moved && echo topsecret-5 >> secret/key && \
                  echo fifth >> a.txt";
    outside(&bench, script);
    bench
}

#[test]
fn history_omits_the_content_of_files_that_rules_restrict() {
    for bench in [Bench::with_deny(&["Read(secret/**)"]), Bench::with_ask(&["Read(secret)"])] {
        let bench = with_secrets(bench);
        let show = |commit: &str| json!({"operation": "show", "commit": commit});
        check(
            &bench,
            show("HEAD~1"),
            &["secrets", "+open", "3 files that may not be read are omitted"],
            &["topsecret"],
        );
        check(&bench, json!({"operation": "show", "range": "HEAD~2..HEAD"}), &["+open", "+fourth"], &["topsecret-1"]);
        check(&bench, json!({"operation": "diff"}), &["+fifth"], &["topsecret"]);
        check(&bench, json!({"operation": "diff", "commit": "HEAD~2", "dir": "sub"}), &["+fifth"], &["topsecret-1"]);
        check(
            &bench,
            json!({"operation": "diff", "range": "HEAD~2..HEAD~1", "file": "sub"}),
            &["+open"],
            &["topsecret"],
        );
        check(&bench, json!({"operation": "log"}), &["secrets", "moved"], &["topsecret"]);
        check(&bench, show("HEAD:sub/b.txt"), &["open"], &[]);
        check(&bench, json!({"operation": "show", "commit": "HEAD:./b.txt", "dir": "sub"}), &["open"], &[]);
        check(&bench, json!({"operation": "blame", "commit": "HEAD", "file": "a.txt"}), &["fourth"], &["fifth"]);
        // A blob has no path.
        outside(&bench, "git rev-parse HEAD:secret/key > object");
        let object = String::from_utf8(bench.get("object")).unwrap();
        for content in [object.trim(), "HEAD~1^{tree}"] {
            for arguments in [show(content), json!({"operation": "diff", "range": format!("{content}..HEAD")})] {
                let refused = bench.call("git", arguments.clone()).unwrap_err();
                let outcome = refused.into_result().joined_text();
                assert!(outcome.contains("fatal") && !outcome.contains("topsecret"), "{arguments}: {outcome}");
            }
        }
        let refused = bench.call("git", json!({"operation": "log", "dir": ".git"})).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::PermissionDenied);
    }
}

#[test]
fn history_is_refused_if_git_cannot_list_all_affected_files() {
    for bench in [Bench::with_deny(&["Read(secret/**)"]), Bench::with_ask(&["Read(secret)"])] {
        let bench = with_secrets(bench);
        // git shows the newest commit before it detects that an older one is missing.
        outside(&bench, "tree=$(git rev-parse HEAD~2^{tree}); rm -f .git/objects/${tree:0:2}/${tree:2}");
        let refused = bench.call("git", json!({"operation": "show", "range": "HEAD~3..HEAD"})).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::PermissionDenied);
        let outcome = refused.into_result().joined_text();
        assert!(outcome.contains("git did not list all") && !outcome.contains("topsecret"), "{outcome}");
    }
}

#[test]
fn restricted_files_are_omitted_even_if_git_prints_a_warning() {
    let bench = with_secrets(Bench::with_deny(&["Read(secret/**)"]));
    outside(&bench, "git config core.autocrlf true && git checkout -q a.txt && rm -r sub");
    check(&bench, json!({"operation": "diff", "commit": "HEAD"}), &["-open"], &["topsecret"]);
}

#[test]
fn a_history_stored_elsewhere_is_not_shown_if_rules_restrict_files() {
    let elsewhere = [
        "mkdir far; echo 'gitdir: ../.git' > far/.git",
        "mkdir far; ln -s ../.git far/.git",
        "mkdir far; git config core.worktree $PWD/far",
    ];
    for script in elsewhere {
        let calls = [
            json!({"operation": "show", "dir": "far", "commit": "HEAD:./secret/key"}),
            json!({"operation": "blame", "dir": "far", "commit": "HEAD", "file": "secret/key"}),
            json!({"operation": "show", "dir": "far", "commit": "HEAD~1"}),
        ];
        let bench = Bench::new();
        let anchored = format!("Read(/{}/secret/**)", bench.path("").canonicalize().unwrap().display());
        let bench = with_secrets(bench.with_rule(Effect::Deny, &anchored));
        outside(&bench, script);
        for call in calls {
            let refused = bench.call("git", call.clone()).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::PermissionDenied, "{script}: {call}");
        }
        let bench = with_secrets(Bench::new());
        outside(&bench, script);
        check(&bench, json!({"operation": "show", "dir": "far", "commit": "HEAD:a.txt"}), &["fourth"], &[]);
    }
}

/// Creates repositories in sibling folders of the root, with a rule on one of them.
fn beside_each_other(script: &str) -> Bench {
    with_main(Bench::new(), script)
}

fn with_main(bench: Bench, script: &str) -> Bench {
    let anchored = format!("Read(/{}/main/secret/**)", bench.path("").canonicalize().unwrap().display());
    let bench = bench.with_rule(Effect::Deny, &anchored);
    let make = "export HOME=$PWD GIT_CONFIG_GLOBAL=$PWD/settings; git config --global user.name Ada; \
                git config --global user.email a@b; git config --global protocol.file.allow always; \
                git init -q -b main main && cd main && mkdir secret && echo topsecret > secret/key && echo open > a.txt && \
                git add . && git commit -qm first && cd ..";
    outside(&bench, &format!("{make}; {script}"));
    bench
}

#[test]
fn linked_worktrees_and_borrowed_histories_omit_files_that_rules_restrict() {
    for script in [
        "git -C main worktree add -q ../far HEAD",
        "git clone -q --shared main far",
        "git clone -q --shared main near; git clone -q --shared near far",
    ] {
        let bench = beside_each_other(script);
        let show = |commit: &str| json!({"operation": "show", "dir": "far", "commit": commit});
        check(&bench, show("HEAD"), &["+open", "1 files that may not be read are omitted"], &["topsecret"]);
        check(&bench, show("HEAD:a.txt"), &["open"], &[]);
        check(&bench, json!({"operation": "blame", "dir": "far", "file": "a.txt"}), &["open"], &[]);
        check(&bench, json!({"operation": "log", "dir": "far"}), &["first"], &[]);
        for call in [
            show("HEAD:secret/key"),
            show("HEAD:./secret/key"),
            json!({"operation": "show", "dir": "far/secret", "commit": "HEAD:./key"}),
            json!({"operation": "blame", "dir": "far", "file": "secret/key"}),
            json!({"operation": "blame", "dir": "far/secret", "file": "key"}),
        ] {
            let refused = bench.call("git", call.clone()).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::PermissionDenied, "{script}: {call}");
            assert!(!refused.into_result().joined_text().contains("topsecret"), "{script}: {call}");
        }
    }
}

#[test]
fn rules_on_another_root_apply_to_a_history_stored_in_it() {
    let bench = with_main(Bench::with_roots_in(&["own", "main"]), "git -C main worktree add -q ../own/far HEAD");
    let show = |commit: &str| json!({"operation": "show", "dir": "far", "commit": commit});
    check(&bench, show("HEAD"), &["+open", "1 files that may not be read are omitted"], &["topsecret"]);
    assert_eq!(bench.call("git", show("HEAD:secret/key")).unwrap_err().kind, ErrorKind::PermissionDenied);
}

#[test]
fn submodule_history_omits_files_that_rules_on_the_submodule_restrict() {
    let bench = beside_each_other(
        "git init -q -b main around && cd around && git submodule --quiet add ../main sub && git commit -qm sub",
    );
    let anchored = format!("Read(/{}/around/sub/secret/**)", bench.path("").canonicalize().unwrap().display());
    let bench = bench.with_rule(Effect::Deny, &anchored);
    let show = |commit: &str| json!({"operation": "show", "dir": "around/sub", "commit": commit});
    check(&bench, show("HEAD"), &["+open", "1 files that may not be read are omitted"], &["topsecret"]);
    check(&bench, show("HEAD:a.txt"), &["open"], &[]);
    assert_eq!(bench.call("git", show("HEAD:secret/key")).unwrap_err().kind, ErrorKind::PermissionDenied);
}

#[test]
fn objects_borrowed_from_unverifiable_repositories_are_not_shown_if_rules_restrict_files() {
    // The first lender is not a repository's own folder, and the second must not be read.
    let moved =
        "git clone -q --shared main far; mv main/.git/objects lent; echo $PWD/lent > far/.git/objects/info/alternates";
    let hidden = "git clone -q --shared main far";
    for (script, rule) in [(moved, "Read(other)"), (hidden, "Read(main/.git/**)")] {
        let bench = beside_each_other(script).with_rule(Effect::Deny, rule);
        let call = json!({"operation": "show", "dir": "far", "commit": "HEAD"});
        let answer = match bench.call("git", call) {
            Ok(result) => result.joined_text(),
            Err(refused) => refused.into_result().joined_text(),
        };
        assert!(!answer.contains("open") && !answer.contains("topsecret"), "{script}: {answer}");
        assert!(script == hidden || answer.contains("objects/info/alternates"), "{script}: {answer}");
    }
}

#[test]
fn objects_behind_a_symbolic_link_are_not_shown_if_rules_restrict_files() {
    let call = json!({"operation": "show", "commit": "HEAD"});
    for (objects, target) in [(".git/objects", "../lent"), (".git/objects/pack", "../../lent")] {
        let script = format!("git gc -q; mv {objects} lent; ln -s {target} {objects}");
        let bench = filled(Bench::with_deny(&["Read(secret/**)"]));
        check(&bench, call.clone(), &["second"], &[]);
        outside(&bench, &script);
        let refused = bench.call("git", call.clone()).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::PermissionDenied, "{objects}");
        assert!(refused.text().contains(&format!("{objects}` is a link to another folder")), "{}", refused.text());
        let bench = repository();
        outside(&bench, &script);
        check(&bench, call.clone(), &["second"], &[]);
    }
    // A missing folder is not a link.
    let bench = filled(Bench::with_deny(&["Read(secret/**)"]));
    outside(&bench, "rmdir .git/objects/pack");
    check(&bench, call, &["second"], &[]);
}

#[test]
fn a_folder_without_a_repository_is_reported_even_if_rules_restrict_files() {
    let text_of = |bench: Bench| bench.text("git", json!({"operation": "log"}));
    let text_of = [text_of(Bench::new()), text_of(Bench::with_deny(&["Read(secret/**)"]))];
    assert!(text_of.iter().all(|text_of| text_of.contains("fatal: not a git repository")), "{text_of:?}");
}

#[test]
fn git_shows_a_named_file_only_if_rules_or_the_user_allow_reading_it() {
    let named = [
        json!({"operation": "show", "commit": "HEAD:secret/key"}),
        json!({"operation": "show", "commit": "HEAD:secret/gone"}),
        json!({"operation": "show", "commit": "HEAD:./key", "dir": "secret"}),
        json!({"operation": "show", "commit": "HEAD:secret/key", "dir": "sub"}),
        json!({"operation": "show", "file": "secret/key"}),
        json!({"operation": "diff", "range": "HEAD~1..HEAD", "file": "secret"}),
        json!({"operation": "log", "file": "secret/gone"}),
        json!({"operation": "blame", "file": "key", "dir": "secret"}),
    ];
    let bench = with_secrets(Bench::with_deny(&["Read(secret/**)"]));
    for arguments in named {
        let refused = bench.call("git", arguments.clone()).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::PermissionDenied, "{arguments}");
    }
    // A user who approves reading the file sees it.
    let bench = with_secrets(Bench::with_ask(&["Read(secret/**)"]));
    check(&bench, json!({"operation": "show", "commit": "HEAD:secret/key"}), &["topsecret-4"], &["topsecret-5"]);
    check(&bench, json!({"operation": "diff", "file": "secret/key"}), &["topsecret-5"], &["topsecret-2"]);
}

#[test]
fn a_colon_in_a_revision_is_accepted_only_to_show_a_file_of_a_commit() {
    let bench = repository();
    check(&bench, json!({"operation": "show", "commit": "HEAD~1:a.txt"}), &["one"], &["two"]);
    for arguments in [
        json!({"operation": "diff", "range": "HEAD~1:a.txt..HEAD:a.txt"}),
        json!({"operation": "diff", "commit": "HEAD:a.txt"}),
        json!({"operation": "show", "commit": ":a.txt"}),
        json!({"operation": "show", "commit": ":/first"}),
        json!({"operation": "show", "commit": "HEAD^{/a:b}"}),
        json!({"operation": "show", "commit": "HEAD:a.txt", "range": "HEAD~1..HEAD"}),
    ] {
        assert_eq!(bench.call("git", arguments.clone()).unwrap_err().kind, ErrorKind::InvalidInput, "{arguments}");
    }
}
