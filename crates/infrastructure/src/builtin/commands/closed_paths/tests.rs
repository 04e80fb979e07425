#![expect(clippy::disallowed_methods, reason = "tests make links behind the tools' back")]

use crate::builtin::tests::Bench;
use serde_json::json;
use toolstead_domain::Effect;

#[track_caller]
fn check(rules: &[&str], command: &str, these: &[&str], those: &[&str]) {
    check_on(&Bench::with_deny(rules), command, these, those);
}

/// With rules that require approval, and an approver that approves.
#[track_caller]
fn check_asked(rules: &[&str], command: &str, these: &[&str], those: &[&str]) {
    check_on(&Bench::with_ask(rules), command, these, those);
}

#[track_caller]
fn check_on(bench: &Bench, command: &str, these: &[&str], those: &[&str]) {
    for name in ["a/secret/key", "a/secret/deep/key", "a/open.txt", "open.txt", ".env", "held.lock"] {
        bench.put(name, format!("contents of {name}\n"));
    }
    std::os::unix::fs::symlink(".env", bench.path("link")).unwrap();
    let result = bench.call("bash", json!({"command": command})).unwrap_or_else(|failure| failure.into_result());
    let text = format!("{} {:?}", result.joined_text(), result.structured_content());
    for part in these {
        assert!(text.contains(part), "{command} does not tell `{part}`: {text}");
    }
    for part in those {
        assert!(!text.contains(part), "{command} tells `{part}`: {text}");
    }
}

/// Next to a program on the `PATH`, with which it would be shown.
#[test]
fn own_data_is_hidden_outside_of_the_workspace_too() {
    let tool = tempfile::tempdir().unwrap();
    let top = tool.path().canonicalize().unwrap();
    for (name, text) in [("bin/x", "program\n"), ("data/key", "secret\n")] {
        std::fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
        std::fs::write(top.join(name), text).unwrap();
    }
    let bin = top.join("bin").display().to_string();
    let command = json!({"command": format!("cat {0}/bin/x {0}/data/key; true", top.display())});
    for (data, sees) in [("nothing", true), ("data", false)] {
        let bench = Bench::new().with_path_in(&bin).with_own_data(top.join(data));
        let text = bench.text("bash", command.clone());
        assert!(text.contains("program") && text.contains("secret") == sees, "{text}");
    }
}

#[test]
fn a_command_cannot_read_paths_that_deny_rules_name() {
    let everything = "cat .env link open.txt a/open.txt a/secret/key a/secret/deep/key";
    check(&["Read(.env)"], everything, &["of open.txt", "of a/secret/key"], &["of .env"]);
    check(&["Read(a/secret/**)"], everything, &["of .env", "of a/open.txt"], &["of a/secret/"]);
    check(&["Read(a/secret/**)"], "grep -rh contents .", &["of .env"], &["of a/secret/"]);
    check(
        &["Read(a/secret/key)"],
        "mv a b; mv a/secret b; cat */key */*/key",
        &["of a/secret/deep/key"],
        &["of a/secret/key"],
    );
    check(&["Read(a/secret/key)"], "ln a/secret/key x; cp a/secret/key x; cat x", &[], &["of a/secret/key"]);
    check(&["Read"], everything, &[], &["contents of"]);
}

#[test]
fn paths_of_ask_rules_are_closed_to_a_command_unless_approved_with_it() {
    let all = "cat a/secret/key a/secret/deep/key a/open.txt";
    let of_secret = ["of a/secret/key", "of a/secret/deep/key"];
    for rule in ["Read(a/secret/**)", "Read(a/secret)"] {
        check_asked(&[rule], all, &["of a/open.txt"], &of_secret);
        for opening in ["cat < a/secret/key", "cp a/secret/key x; cat x"] {
            check_asked(&[rule], &format!("{opening}; {all}"), &of_secret[..1], &of_secret[1..]);
        }
    }
    check_asked(&["Read(.env)"], "cat link", &[], &["of .env"]);
    check_asked(&["Read(.env)"], "cat < link", &["of .env"], &[]);
    let write = "for f in a/secret/key a/secret/deep/key a/secret/new; do tee $f <<< changed; cat $f; done";
    for rule in ["Write(a/secret/**)", "Edit(a/secret)"] {
        check_asked(&[rule], &format!("cat a/secret/*; {write}; ls a/secret"), &of_secret, &["new\n"]);
        check_asked(
            &[rule],
            "touch a/secret/new; ls a/secret; tee a/secret/key <<< x; cat a/secret/key",
            &["new\n", "of a/secret/key"],
            &[],
        );
        check_asked(&[rule], "rm a/secret/key; ls a/secret", &["deep\n"], &["key\n"]);
        check_asked(
            &[rule],
            "cp a/secret/key x; cat x; tee a/secret/new <<< y; ls a/secret",
            &of_secret[..1],
            &["new\n"],
        );
        check_asked(
            &[rule],
            "echo changed > a/secret/key; cat a/secret/key; tee a/secret/deep/key <<< x; cat a/secret/deep/key",
            &["changed\n", "of a/secret/deep/key"],
            &of_secret[..1],
        );
    }
}

#[test]
fn paths_of_deny_rules_on_changes_can_be_read_but_not_changed() {
    // With programs whose files the rules do not see: what they see is denied before it runs.
    let change = "truncate -s 0 held.lock; unlink held.lock; tee held.lock <<< x; cat held.lock; tee open.txt <<< ok";
    check(&["Edit(*.lock)"], change, &["of held.lock", "ok\n"], &[]);
    check(
        &["Write(a/**)"],
        "tee a/new <<< x; test -e a/new && echo made; find a -delete; cat a/open.txt; tee new <<< x",
        &["of a/open.txt", "x\n"],
        &["made"],
    );
    check(&["Edit"], "tee open.txt <<< x; cat open.txt", &["of open.txt"], &[]);
}

#[test]
fn approving_a_command_satisfies_an_ask_rule_on_all_changes() {
    for rules in [&["Edit"][..], &["Write", "Edit(other)"]] {
        check_asked(rules, "tee open.txt <<< changed > /dev/null; cat open.txt", &["changed\n"], &["of open.txt"]);
    }
}

#[test]
fn the_target_of_a_link_in_a_sealed_folder_is_sealed() {
    for bench in [Bench::with_deny(&["Edit(links/**)"]), Bench::with_ask(&["Edit(links/**)"])] {
        bench.put("target.txt", "as it was");
        bench.put("links/file", "");
        std::os::unix::fs::symlink("../target.txt", bench.path("links/link")).unwrap();
        check_on(&bench, "tee target.txt <<< changed > /dev/null; cat target.txt", &["as it was"], &["changed"]);
    }
}

#[test]
fn an_approved_ask_rule_on_the_whole_tool_closes_no_paths() {
    for whole in ["bash", "*"] {
        let command = "cat open.txt a/open.txt a/secret/key; cd a; cat ../.env; tee new <<< made";
        check_asked(
            &[whole, "Read(secret/**)"],
            command,
            &["of open.txt", "of a/open.txt", "of .env", "made"],
            &["of a/secret/"],
        );
    }
}

#[test]
fn deeply_nested_paths_are_closed_too() {
    let bench = Bench::with_deny(&["Read(key)", "Edit(held)"]);
    let deep = ["d"; 250].join("/");
    for name in ["key", "held", "open"] {
        bench.put(&format!("{deep}/{name}"), format!("deep {name}\n"));
    }
    let command = format!("cd {deep}; cat key open; tee held <<< changed > /dev/null; cat held");
    check_on(&bench, &command, &["deep open", "deep held"], &["deep key", "changed"]);
}

/// Adds `files` files `NUMBER.json` in seven folders, and one beside the folders.
fn with_many(bench: Bench, files: usize) -> Bench {
    for number in 0..files {
        bench.put(&format!("packages/{}/{number}.json", number % 7), "");
    }
    bench.put("here.json", "as it was");
    bench
}

#[test]
fn too_many_ask_rule_paths_are_sealed_by_folder_and_too_many_denied_paths_are_refused() {
    let many = |bench| with_many(bench, super::bounds::MAX_READ_ONLY + 1);
    let change = "touch packages/8; touch packages/3/new; touch new; tee here.json <<< changed > /dev/null; \
                  ls; ls packages packages/3; cat here.json; false";
    let asked = many(Bench::with_ask(&["Edit(*.json)"]));
    check_on(
        &asked,
        change,
        &[
            "new\n",
            "packages",
            "\n8\n",
            "as it was",
            "because 5002 paths require approval by the ask rule `Edit(*.json)` in the command line",
            "packages/3`",
        ],
        &["2999.json\nnew"],
    );
    assert!(asked.exists("new") && !asked.exists("packages/3/new"));
    // Denied paths stay denied.
    let both = many(Bench::with_ask(&["Edit(*.json)"]).with_rule(Effect::Deny, "Edit(*.lock)"));
    both.put("packages/3/file.lock", "as it was");
    let touched = "touch packages/3/new.json; tee packages/3/file.lock <<< changed; cat packages/3/file.lock";
    check_on(&both, touched, &["as it was"], &[]);
    assert_eq!(both.get("packages/3/file.lock"), b"as it was");
    let denied = many(Bench::with_deny(&["Edit(*.json)"])).call("bash", json!({"command": "true"})).unwrap_err();
    assert!(denied.text().contains("paths of the workspace are closed by rules"), "{}", denied.text());
    assert!(denied.text().contains("5002 of them by the deny rule `Edit(*.json)`"), "{}", denied.text());
}

#[test]
fn other_files_beside_an_approved_one_stay_sealed_even_if_there_are_thousands() {
    let bench = with_many(Bench::with_ask(&["Edit(*.json)"]), super::bounds::MAX_READ_ONLY + 1);
    let command = "echo approved > packages/3/3.json; for f in packages/3/10.json packages/4/4.json here.json; do \
                   tee $f <<< changed; done > /dev/null; cat packages/3/3.json";
    check_on(&bench, command, &["approved"], &[]);
    for name in ["packages/3/10.json", "packages/4/4.json"] {
        assert_eq!(bench.get(name), b"", "{name}");
    }
    assert_eq!(bench.get("here.json"), b"as it was");
}

#[test]
fn a_command_is_refused_if_denied_paths_leave_no_capacity_for_ask_rule_paths() {
    let bench = Bench::with_deny(&["Edit(*.lock)"]).with_rule(Effect::Ask, "Edit(held.json)");
    for number in 0..super::bounds::MAX_READ_ONLY {
        bench.put(&format!("{number}.lock"), "");
    }
    bench.put("held.json", "as it was");
    let refused = bench.call("bash", json!({"command": "tee held.json <<< changed"})).unwrap_err();
    assert!(refused.text().contains("the deny rule `Edit(*.lock)` in the command line"), "{}", refused.text());
    assert_eq!(bench.get("held.json"), b"as it was");
}

#[test]
fn thousands_of_files_are_hidden_individually_and_more_are_refused_with_their_rule() {
    let bench = with_many(Bench::with_ask(&["Read(*.json)"]), 2_500);
    bench.put("packages/3/3.json", "of an approved file\n");
    let command = "cat packages/3/10.json here.json; cat open.txt; cat < packages/3/3.json";
    check_on(&bench, command, &["of open.txt", "of an approved file"], &["as it was"]);
    let bench = with_many(bench, super::bounds::MAX_HIDDEN + 1);
    let refused = bench.call("bash", json!({"command": "true"})).unwrap_err();
    for part in
        ["20002 of them by the ask rule `Read(*.json)` in the command line", "are in `", "/packages`", "Read(data/**)"]
    {
        assert!(refused.text().contains(part), "no `{part}`: {}", refused.text());
    }
}
