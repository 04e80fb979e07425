//! Guarantees of `undo` and `redo`.

use crate::builtin::tests::Bench;
use futures::FutureExt;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use toolstead_domain::{ChangeJournal, JournalEntry, Principal, ToolFailure, error_kind::ErrorKind, testing::samples};

/// Replaces the ids of calls by `#1`, `#2`, …
fn numbered(text: &str) -> String {
    (1..30).fold(text.to_owned(), |text, number| {
        text.replace(&samples::call_id(number).to_string(), &format!("#{number}"))
    })
}

fn write(bench: &Bench, path: &str, content: &str) {
    bench.call("write_file", json!({"path": path, "content": content})).unwrap();
}

fn text(bench: &Bench, tool: &str, arguments: Value) -> String {
    numbered(&bench.text(tool, arguments))
}

fn failed(bench: &Bench, tool: &str, arguments: Value) -> (ErrorKind, String) {
    let failure: ToolFailure = bench.call(tool, arguments).unwrap_err();
    (failure.kind, numbered(&failure.text()))
}

#[test]
fn the_last_change_is_undone_and_redone() {
    let bench = Bench::new();
    bench.put("a", "old\n");
    bench.set_mode("a", 0o640);
    bench.call("write_file", json!({"path": "a", "content": "new\n", "mode": "755"})).unwrap();
    let result = bench.call("undo", json!({})).unwrap();
    let expected =
        "Undid `write_file`, the call #1:\n`a` has its former content again\nTo revert this: `redo` with the call #2.";
    assert_eq!(numbered(&result.joined_text()), expected);
    let found = result.structured_content().unwrap();
    assert_eq!(found["files"], json!([{"path": "a", "action": "restored"}]));
    assert_eq!(found["diff"], "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-new\n+old\n");
    assert_eq!((bench.get("a"), bench.mode("a")), (b"old\n".to_vec(), 0o640));
    let expected =
        "Redid `undo`, the call #2:\n`a` has its former content again\nTo revert this: `undo` with the call #3.";
    assert_eq!(text(&bench, "redo", json!({})), expected);
    assert_eq!((bench.get("a"), bench.mode("a")), (b"new\n".to_vec(), 0o755));
    assert_eq!(bench.journal().entries()[1].reverts, Some(bench.journal().entries()[0].call));
}

#[test]
fn undo_and_redo_ignore_a_change_recorded_by_a_later_call() {
    for tool in ["undo", "redo"] {
        let bench = Bench::new();
        write(&bench, "a", "1");
        if tool == "redo" {
            bench.call("undo", json!({})).unwrap();
        }
        // As if another call of the session had changed something while this one waited for approval.
        let last = bench.journal().entries().pop().unwrap();
        let later = JournalEntry { call: samples::call_id(29), ..last.clone() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(bench.journal().record(later, Vec::new())).unwrap();
        let result = bench.call(tool, json!({})).unwrap();
        assert_eq!(result.structured_content().unwrap()["call"], last.call.to_string(), "{tool}");
    }
}

#[test]
fn undo_and_redo_ignore_a_change_that_an_earlier_call_records_late() {
    for tool in ["undo", "redo"] {
        let bench = Bench::new();
        bench.call("working_directory", json!({})).unwrap();
        write(&bench, "a", "1");
        if tool == "redo" {
            bench.call("undo", json!({})).unwrap();
        }
        // The first call began before all others, and takes its time.
        let last = bench.journal().entries().pop().unwrap();
        let late = JournalEntry { call: samples::call_id(1), ..last.clone() };
        let record = || bench.journal().record(late, Vec::new()).now_or_never().unwrap().unwrap();
        let result = bench.call_after(tool, json!({}), record).unwrap();
        assert_eq!(result.structured_content().unwrap()["call"], last.call.to_string(), "{tool}");
    }
}

#[test]
fn a_change_undone_during_approval_is_not_undone_twice() {
    let bench = Bench::new();
    write(&bench, "a", "1");
    write(&bench, "a", "2");
    let failure = bench.call_after("undo", json!({}), || {
        let last = bench.journal().entries().pop().unwrap();
        let undo = JournalEntry { call: samples::call_id(29), reverts: Some(last.call), ..last };
        bench.journal().record(undo, Vec::new()).now_or_never().unwrap().unwrap();
    });
    let message = numbered(&failure.unwrap_err().text());
    assert_eq!(message, "the call #2 has been undone meanwhile by the call #29. Nothing was changed; call again.");
    assert_eq!(bench.get("a"), b"2");
}

#[test]
fn undo_removes_the_folders_that_the_call_created_if_they_are_empty() {
    let bench = Bench::new();
    bench.put("old/x", "");
    let patch =
        "*** Begin Patch\n*** Add File: new/a/1\n+1\n*** Add File: new/2\n+2\n*** Add File: old/b/3\n+3\n*** End Patch";
    bench.call("apply_patch", json!({"patch": patch})).unwrap();
    bench.call("undo", json!({})).unwrap();
    assert_eq!((bench.names("."), bench.names("old")), (vec!["old".to_owned()], vec!["x".to_owned()]));
    bench.call("redo", json!({})).unwrap();
    assert_eq!((bench.get("new/a/1"), bench.get("old/b/3")), (b"1\n".to_vec(), b"3\n".to_vec()));
    // Files of other programs stay, with their folders.
    bench.put("new/a/mine", "");
    bench.call("undo", json!({})).unwrap();
    assert_eq!((bench.names("new"), bench.names("old")), (vec!["a".to_owned()], vec!["x".to_owned()]));
    // A folder that was there before stays, empty as it was.
    bench.call("delete_file", json!({"path": "old/x"})).unwrap();
    write(&bench, "old/y", "1");
    bench.call("undo", json!({})).unwrap();
    assert_eq!(bench.names("old"), Vec::<String>::new());
}

#[test]
fn undo_deletes_new_files_and_restores_deleted_ones() {
    let bench = Bench::new();
    bench.put("dir/old", "x\n");
    bench.set_mode("dir/old", 0o600);
    let patch = "*** Begin Patch\n*** Add File: new\n+y\n*** Delete File: dir/old\n*** End Patch";
    bench.call("apply_patch", json!({"patch": patch})).unwrap();
    let expected = "Undid `apply_patch`, the call #1:\n`dir/old` is restored\n`new` is deleted again\nTo revert this: `redo` with the call #2.";
    assert_eq!(text(&bench, "undo", json!({})), expected);
    assert_eq!((bench.get("dir/old"), bench.mode("dir/old")), (b"x\n".to_vec(), 0o600));
    assert_eq!(bench.names("."), ["dir"]);
}

#[test]
fn a_dry_run_shows_the_diff_and_changes_nothing() {
    let bench = Bench::new();
    bench.put("a", "1\n2\n");
    write(&bench, "a", "1\n3\n");
    let expected = "Would undo `write_file`, the call #1:\n`a` has its former content again\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-3\n+2";
    assert_eq!(text(&bench, "undo", json!({"dry_run": true})), expected);
    assert_eq!((bench.get("a"), bench.journal().entries().len()), (b"1\n3\n".to_vec(), 1));
}

#[test]
fn undo_does_not_overwrite_files_that_have_changed_since() {
    let bench = Bench::new();
    bench.put("a", "1\n");
    bench.put("b", "1\n");
    let patch = "*** Begin Patch\n*** Update File: a\n-1\n+2\n*** Update File: b\n-1\n+2\n*** End Patch";
    bench.call("apply_patch", json!({"patch": patch})).unwrap();
    bench.put("b", "2\nmine\n");
    let expected = "the call #1 cannot be undone, because files have changed since:\n`b`: since then:\n--- a/b\n+++ b/b\n@@ -1 +1,2 @@\n 2\n+mine\nNothing was changed. Changes from outside this session are the reason: read the files, and revert the rest with `edit_file`.";
    assert_eq!(failed(&bench, "undo", json!({})), (ErrorKind::StaleFile, expected.to_owned()));
    assert_eq!((bench.get("a"), bench.get("b")), (b"2\n".to_vec(), b"2\nmine\n".to_vec()));

    bench.put("b", "2\n");
    write(&bench, "a", "3\n");
    let first = bench.journal().entries()[0].call.to_string();
    let expected = "the call #1 cannot be undone, because files have changed since:\n`a`: since then:\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-2\n+3\nNothing was changed. Revert the later calls first, newest first:\n#3 write_file (a)";
    assert_eq!(failed(&bench, "undo", json!({"call": first})), (ErrorKind::StaleFile, expected.to_owned()));
    bench.call("undo", json!({})).unwrap();
    bench.call("undo", json!({"call": first})).unwrap();
    assert_eq!((bench.get("a"), bench.get("b")), (b"1\n".to_vec(), b"1\n".to_vec()));
}

#[test]
fn undo_reports_a_file_that_was_deleted_or_created_since() {
    let bench = Bench::new();
    write(&bench, "a", "1\n");
    let remove = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
    bench.call("apply_patch", json!({"patch": remove})).unwrap();
    bench.put("a", "mine\n");
    let (kind, answer) = failed(&bench, "undo", json!({}));
    assert_eq!(kind, ErrorKind::StaleFile);
    assert!(answer.contains("since:\n`a`: it exists again\nNothing was changed."), "{answer}");

    let bench = Bench::new();
    bench.put("b", "1\n");
    write(&bench, "b", "2\n");
    bench
        .call("apply_patch", json!({"patch": "*** Begin Patch\n*** Update File: b\n*** Move to: c\n*** End Patch"}))
        .unwrap();
    let first = bench.journal().entries()[0].call.to_string();
    let (_, answer) = failed(&bench, "undo", json!({"call": first}));
    assert!(
        answer.contains("have changed since:\n`b`: it was deleted, or is too large\nNothing was changed. Revert the"),
        "{answer}"
    );
}

#[test]
fn undo_and_redo_accept_the_id_of_a_call_or_its_first_or_last_digits() {
    let bench = Bench::new();
    write(&bench, "a", "1");
    write(&bench, "a", "2");
    let ids: Vec<String> = bench.journal().entries().iter().map(|entry| entry.call.to_string()).collect();
    let (kind, answer) = failed(&bench, "undo", json!({"call": &ids[0][..8]}));
    let expected = format!(
        "the ids of 2 calls begin or end with `{}`. Give more digits:\n#2 write_file (a)\n#1 write_file (a)",
        &ids[0][..8]
    );
    assert_eq!((kind, answer), (ErrorKind::AmbiguousMatch, expected));
    let expected = "`zwei` is not a valid id of a call. An id has 32 hexadecimal digits, of which the first or the last 8 or more are enough. The last changes of this session, newest first:\n#2 write_file (a)\n#1 write_file (a)";
    assert_eq!(failed(&bench, "undo", json!({"call": "zwei"})), (ErrorKind::InvalidInput, expected.to_owned()));
    let expected = "no change by the call `00000000` is known: it changed no file, the change is too old, or another principal made it. The last changes of this session, newest first:\n#2 write_file (a)\n#1 write_file (a)";
    assert_eq!(failed(&bench, "undo", json!({"call": "0000-0000"})), (ErrorKind::NotFound, expected.to_owned()));

    bench.call("undo", json!({"call": &ids[1][..18]})).unwrap();
    assert_eq!(bench.get("a"), b"1");
    let expected = "the call #2 is already undone, by the call #6. To redo it, use `redo` with the same id.";
    let (kind, answer) = failed(&bench, "undo", json!({"call": ids[1]}));
    assert_eq!((kind, answer.as_str()), (ErrorKind::InvalidInput, expected));
    let expected = "the call #1 is not undone, so there is nothing to redo. To undo it, use `undo` with the same id.";
    assert_eq!(failed(&bench, "redo", json!({"call": ids[0]})), (ErrorKind::InvalidInput, expected.to_owned()));
    bench.call("redo", json!({"call": &ids[1][ids[1].len() - 8..]})).unwrap();
    assert_eq!(bench.get("a"), b"2");
}

#[test]
fn undoing_a_call_that_changed_nothing_reverts_no_older_change() {
    let patch = |body: &str| json!({"patch": format!("*** Begin Patch\n{body}\n*** End Patch")});
    let back_and_forth = json!({"path": "a", "edits": [
        {"old_text": "new", "new_text": "x"}, {"old_text": "x", "new_text": "new"},
    ]});
    for (tool, arguments) in [
        ("write_file", json!({"path": "a", "content": "new\n"})),
        ("append_file", json!({"path": "a", "content": ""})),
        ("multi_edit", back_and_forth),
        ("apply_patch", patch("*** Add File: a\n+new")),
        ("apply_patch", patch("*** Update File: a\n-new\n+new")),
        ("apply_patch", patch("*** Add File: b\n+x\n*** Delete File: b")),
    ] {
        let bench = Bench::new();
        bench.put("a", "old\n");
        write(&bench, "a", "new\n");
        let result = bench.call(tool, arguments.clone()).unwrap();
        assert_eq!(result.structured_content().unwrap().get("call"), None, "{arguments}");
        assert!(!result.joined_text().contains("`undo`"), "{}", result.joined_text());
        let id = bench.last_call().to_string();
        // Later changes of the file do not matter to that call.
        bench.put("a", "somebody else's\n");
        let nothing = "Nothing to undo: the call #2 changed nothing.";
        assert_eq!(text(&bench, "undo", json!({"dry_run": true})), nothing);
        let goes_on = format!("{nothing} Another `undo` without an id undoes the change before it.");
        assert_eq!(text(&bench, "undo", json!({"call": id})), goes_on, "{arguments}");
        bench.put("a", "new\n");
        let answer = text(&bench, "undo", json!({}));
        assert!(answer.starts_with("Undid `write_file`, the call #1:"), "{answer}");
        assert_eq!(bench.get("a"), b"old\n");
    }
    let bench = Bench::new();
    write(&bench, "a", "1");
    write(&bench, "a", "1");
    assert!(text(&bench, "undo", json!({})).starts_with("Nothing to undo: the call #2 changed nothing."));
    assert_eq!(bench.get("a"), b"1");
    let (_, answer) = failed(&bench, "undo", json!({"call": "00000000"}));
    assert!(answer.contains("#2 write_file (a, changed nothing)\n#1 write_file (a)"), "{answer}");
}

#[test]
fn every_change_names_its_call_and_a_dry_run_names_none() {
    let bench = Bench::new();
    for (tool, mut arguments) in [
        ("write_file", json!({"path": "a", "content": "1\n"})),
        ("append_file", json!({"path": "a", "content": "2\n"})),
        ("edit_file", json!({"path": "a", "old_text": "1", "new_text": "3"})),
        ("multi_edit", json!({"edits": [{"path": "a", "old_text": "2", "new_text": "4"}]})),
        ("delete_file", json!({"path": "a"})),
    ] {
        arguments["dry_run"] = true.into();
        assert_eq!(bench.call(tool, arguments.clone()).unwrap().structured_content().unwrap().get("call"), None);
        arguments["dry_run"] = false.into();
        let result = bench.call(tool, arguments).unwrap();
        let id = bench.journal().entries().last().unwrap().call.to_string();
        assert_eq!(result.structured_content().unwrap()["call"], id, "{tool}");
    }
}

#[test]
fn a_session_undoes_its_own_changes_and_by_id_those_of_its_principal() {
    let bench = Bench::new();
    let expected = "this session has changed no files, so there is nothing to undo. The changes of another session are undone by the id of the call: give it as `call`.";
    assert_eq!(failed(&bench, "undo", json!({})), (ErrorKind::NotFound, expected.to_owned()));
    let expected = "nothing in this session is undone, so there is nothing to redo. Use `undo` first.";
    assert_eq!(failed(&bench, "redo", json!({})), (ErrorKind::NotFound, expected.to_owned()));
    write(&bench, "a", "1");
    let id = bench.last_call().to_string();

    let bench = bench.in_session(Principal::token("other"), "test");
    let (kind, answer) = failed(&bench, "undo", json!({"call": id}));
    assert_eq!(kind, ErrorKind::NotFound);
    assert!(answer.ends_with("or another principal made it. This session has changed no files."), "{answer}");

    let bench = bench.in_session(Principal::local(), "another");
    assert_eq!(failed(&bench, "undo", json!({})).0, ErrorKind::NotFound);
    bench.call("undo", json!({"call": id})).unwrap();
    assert!(bench.names(".").is_empty());

    // The first session finds that nothing is left to do, and selects the change before.
    let bench = bench.in_session(Principal::local(), "test");
    let answer = text(&bench, "undo", json!({}));
    assert!(
        answer.starts_with("Nothing to undo: the files already have their content from before the call"),
        "{answer}"
    );
    let (_, answer) = failed(&bench, "undo", json!({}));
    assert!(answer.starts_with("all changes of this session are already undone"), "{answer}");
}

#[test]
fn a_redo_of_another_session_is_not_undone_by_a_redo() {
    let bench = Bench::new();
    write(&bench, "a", "1");
    bench.call("undo", json!({})).unwrap();
    bench.call("redo", json!({})).unwrap();
    let redo = bench.last_call().to_string();
    let bench = bench.in_session(Principal::local(), "another");
    let (kind, answer) = failed(&bench, "redo", json!({"call": redo}));
    assert_eq!(kind, ErrorKind::InvalidInput);
    assert!(answer.contains("is not undone, so there is nothing to redo"), "{answer}");
    assert_eq!(bench.get("a"), b"1");
}

#[test]
fn undo_reverts_a_change_that_a_crash_left_half_applied() {
    let bench = Bench::new();
    bench.put("a", "1\n");
    bench.put("b", "1\n");
    let patch = "*** Begin Patch\n*** Update File: a\n-1\n+2\n*** Update File: b\n-1\n+2\n*** End Patch";
    bench.call("apply_patch", json!({"patch": patch})).unwrap();
    // As if the process had ended between the two files.
    bench.put("b", "1\n");
    let expected = "Undid `apply_patch`, the call #1:\n`b` was already in that state\n`a` has its former content again\nTo revert this: `redo` with the call #2.";
    assert_eq!(text(&bench, "undo", json!({})), expected);
    assert_eq!((bench.get("a"), bench.get("b")), (b"1\n".to_vec(), b"1\n".to_vec()));
}

#[test]
fn permission_bits_that_the_call_did_not_touch_stay_as_they_are() {
    let bench = Bench::new();
    bench.put("a", "1");
    write(&bench, "a", "2");
    bench.set_mode("a", 0o700);
    bench.call("undo", json!({})).unwrap();
    assert_eq!((bench.get("a"), bench.mode("a")), (b"1".to_vec(), 0o700));
}

#[test]
fn undo_reports_hard_links_that_keep_the_old_content() {
    let bench = Bench::new();
    bench.put("a", "1");
    write(&bench, "a", "2");
    bench.hard_link("a", "b");
    let answer = text(&bench, "undo", json!({}));
    assert!(
        answer.contains("`a` has its former content again. The file had 1 other name (hard link), which still"),
        "{answer}"
    );
}

#[test]
fn undo_declares_accesses_to_the_files_that_it_would_change() {
    let bench = Bench::new();
    bench.put("a", "1");
    write(&bench, "a", "2");
    let shown: Vec<String> = bench.call_unchecked("undo", json!({})).unwrap().iter().map(ToString::to_string).collect();
    let path = bench.path("a");
    assert_eq!(shown, [format!("read {}", path.display()), format!("write {}", path.display())]);
}

#[derive(Debug, Clone)]
enum Step {
    Write(usize, String, Option<&'static str>),
    Delete(usize),
    Move(usize, usize),
    Undo,
    Redo,
}

const FILES: [&str; 3] = ["a", "b", "d/c"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let content = "[xy]{0,2}(\r?\n)?";
    let step = prop_oneof![
        3 => (0..3_usize, content, prop::option::of(prop_oneof![Just("600"), Just("755")]))
            .prop_map(|(file, content, mode)| Step::Write(file, content, mode)),
        1 => (0..3_usize).prop_map(Step::Delete),
        1 => (0..3_usize, 0..3_usize).prop_map(|(from, to)| Step::Move(from, to)),
        2 => Just(Step::Undo),
        2 => Just(Step::Redo),
    ];
    prop::collection::vec(step, 1..15)
}

/// Returns every file with its content and permission bits.
fn tree(bench: &Bench) -> BTreeMap<&'static str, (Vec<u8>, u32)> {
    let there = FILES.into_iter().filter(|name| bench.exists(name));
    there.map(|name| (name, (bench.get(name), bench.mode(name)))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn undoing_every_change_restores_the_initial_files(steps in steps()) {
        let bench = Bench::new();
        bench.put("a", "first\n");
        bench.set_mode("a", 0o640);
        bench.put("d/c", "third");
        let initial = tree(&bench);
        for step in steps {
            let before = tree(&bench);
            let patch = |body: String| json!({"patch": format!("*** Begin Patch\n{body}\n*** End Patch")});
            let result = match &step {
                Step::Write(file, content, mode) => {
                    let mut arguments = json!({"path": FILES[*file], "content": content});
                    if let Some(mode) = mode {
                        arguments["mode"] = (*mode).into();
                    }
                    bench.call("write_file", arguments)
                }
                Step::Delete(file) => bench.call("apply_patch", patch(format!("*** Delete File: {}", FILES[*file]))),
                Step::Move(from, to) => {
                    let body = format!("*** Update File: {}\n*** Move to: {}", FILES[*from], FILES[*to]);
                    bench.call("apply_patch", patch(body))
                }
                Step::Undo => bench.call("undo", json!({})),
                Step::Redo => bench.call("redo", json!({})),
            };
            if result.is_err() {
                prop_assert_eq!(&tree(&bench), &before, "a failure changes nothing: {:?}", step);
            } else if !matches!(step, Step::Undo | Step::Redo) && tree(&bench) != before {
                // Each change can be undone and redone at once.
                let after = tree(&bench);
                bench.call("undo", json!({})).unwrap();
                prop_assert_eq!(&tree(&bench), &before, "{:?}", step);
                bench.call("redo", json!({})).unwrap();
                prop_assert_eq!(&tree(&bench), &after, "{:?}", step);
            }
        }
        loop {
            match bench.call("undo", json!({})) {
                Ok(_) => {}
                Err(failure) => {
                    prop_assert_eq!(failure.kind, ErrorKind::NotFound, "{}", failure.text());
                    break;
                }
            }
        }
        prop_assert_eq!(tree(&bench), initial);
    }
}
