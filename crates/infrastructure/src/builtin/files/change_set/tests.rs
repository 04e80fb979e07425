//! Guarantees of change sets.
#![expect(clippy::disallowed_methods, reason = "somebody else changes a file behind the tools' back")]

use super::*;
use crate::{
    builtin::{
        files::{etag::etag, written_file::notes},
        tests::Bench,
    },
    sandbox::workspace::write::WriteOptions,
};
use rustix::{fs::OFlags, io::Errno};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use serde_json::json;
use toolstead_domain::CallId;
use uuid::Uuid;

const WRITE: WriteOptions = WriteOptions { create_folders: true, overwrite: true, mode: None };

/// Works on a change set of these paths as a tool would.
#[track_caller]
fn with_set<T: Send>(
    bench: &Bench,
    paths: &[&str],
    work: impl FnOnce(ChangeSet<'_>, &ChangeRecorder) -> Result<T, ToolFailure> + Send,
) -> Result<T, ToolFailure> {
    bench.with_files(|files, recording| work(ChangeSet::take(files, paths)?, recording))
}

#[test]
fn a_change_set_changes_several_files_and_records_one_journal_entry() {
    let bench = Bench::new();
    bench.put("a", "old a");
    bench.put("gone", "old gone");
    let changed = with_set(&bench, &["new/b", "a", "gone"], |mut set, recording| {
        set.put(0, b"new b".to_vec(), WRITE);
        set.put(1, b"new a".to_vec(), WRITE);
        set.delete(2);
        set.commit(recording, false)
    })
    .unwrap();
    assert_eq!((bench.get("a"), bench.get("new/b")), (b"new a".to_vec(), b"new b".to_vec()));
    assert_eq!(bench.names("."), ["a", "new"]);
    let shown: Vec<_> =
        changed.iter().map(|one| (one.shown.as_str(), one.before.is_some(), one.after.is_some())).collect();
    assert_eq!(shown, [("new/b", false, true), ("a", true, true), ("gone", true, false)]);
    let [entry] = &bench.journal().entries()[..] else { panic!("one entry") };
    assert_eq!(entry.changes.len(), 3);
    assert_eq!(entry.changes[1].before, changed[1].before);
    assert_eq!(etag(&entry.changes[1].after.unwrap().digest), etag(&digest_of(b"new a")));
}

#[test]
fn a_change_that_cannot_be_recorded_is_not_made() {
    let bench = Bench::new();
    bench.put("a", "old");
    bench.journal().fail_next_record();
    let failure = with_set(&bench, &["a", "folder/b"], |mut set, recording| {
        set.put(0, b"new".to_vec(), WRITE);
        set.put(1, b"new".to_vec(), WRITE);
        set.commit(recording, false)
    })
    .unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Io);
    assert_eq!((bench.get("a"), bench.names(".")), (b"old".to_vec(), vec!["a".to_owned()]));
}

#[test]
fn completed_changes_are_reverted_when_a_later_file_fails() {
    let bench = Bench::new();
    bench.put("a", "old a");
    bench.set_mode("a", 0o640);
    bench.put("b", "old b");
    bench.put("c", "old c");
    let theirs = bench.path("c");
    let failure = with_set(&bench, &["a", "b", "new/n", "c"], |mut set, recording| {
        set.put(0, b"new a".to_vec(), WRITE);
        set.delete(1);
        set.put(2, b"new n".to_vec(), WRITE);
        set.put(3, b"new c".to_vec(), WRITE);
        // Another program that ignores locks.
        std::fs::write(&theirs, "theirs, and longer").unwrap();
        set.commit(recording, false)
    })
    .unwrap_err();
    assert_eq!(failure.kind, ErrorKind::StaleFile);
    assert!(failure.text().contains("The changes to 3 files made before it were reverted."), "{failure}");
    assert_eq!((bench.get("a"), bench.get("b"), bench.mode("a")), (b"old a".to_vec(), b"old b".to_vec(), 0o640));
    assert_eq!(bench.get("c"), b"theirs, and longer");
    assert_eq!(bench.names("."), ["a", "b", "c"], "no draft and no folder is left");
}

/// From now on this thread cannot open a folder to read it, as if the disk failed. Only the sync of names to disk does
/// that here.
fn let_syncing_fail() {
    let (mask, flags) = ((OFlags::DIRECTORY | OFlags::PATH).bits(), OFlags::DIRECTORY.bits());
    let equal = SeccompCmpOp::MaskedEq(mask.into());
    let is_folder = SeccompCondition::new(2, SeccompCmpArgLen::Dword, equal, flags.into()).unwrap();
    let rules = [(libc::SYS_openat, vec![SeccompRule::new(vec![is_folder]).unwrap()])].into();
    let fails = SeccompAction::Errno(Errno::IO.raw_os_error().unsigned_abs());
    let machine = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, fails, machine).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

#[test]
fn a_change_is_reported_as_made_even_if_syncing_to_disk_fails() {
    let bench = Bench::new();
    bench.put("a", "old");
    bench.put("gone", "old");
    let changed = with_set(&bench, &["a", "gone"], |mut set, recording| {
        set.put(0, b"new".to_vec(), WRITE);
        set.delete(1);
        let_syncing_fail();
        set.commit(recording, false)
    })
    .unwrap();
    for one in &changed {
        let notes = notes(one);
        let [note] = &notes[..] else { panic!("{notes:?}") };
        assert!(note.starts_with("The change is made, but syncing it to the disk failed"), "{note}");
    }
    assert_eq!((bench.get("a"), bench.names(".")), (b"new".to_vec(), vec!["a".to_owned()]));
    assert_eq!(bench.known("a"), Some(digest_of(b"new")));
    bench.call("undo", json!({})).unwrap();
    assert_eq!((bench.get("a"), bench.get("gone")), (b"old".to_vec(), b"old".to_vec()));
}

#[test]
fn paths_that_name_the_same_file_share_one_change_and_its_content() {
    let bench = Bench::new();
    bench.put("dir/a", "1");
    bench.link("dir", "link");
    bench.link("dir/a", "direct");
    with_set(&bench, &["dir/a", "link/a", "direct"], |mut set, recording| {
        set.put(0, b"2".to_vec(), WRITE);
        assert_eq!(set.content(1, 100)?.as_deref(), Some(&b"2"[..]));
        set.put(2, b"3".to_vec(), WRITE);
        assert_eq!((set.shown(1), set.content(0, 100)?.as_deref()), ("link/a", Some(&b"3"[..])));
        let changed = set.commit(recording, false)?;
        assert_eq!(changed.len(), 1);
        Ok(())
    })
    .unwrap();
    assert_eq!(bench.get("dir/a"), b"3");
    assert!(bench.is_link("direct"), "a link stays a link");
}

#[test]
fn deleting_a_symbolic_link_is_rejected_and_keeps_its_target() {
    let bench = Bench::new();
    bench.put("dir/a", "1");
    bench.link("dir/a", "link");
    bench.link("dir", "folder");
    let delete = |path: &str| {
        with_set(&bench, &[path], |mut set, recording| {
            set.delete(0);
            set.commit(recording, false)
        })
    };
    let message = delete("link").unwrap_err();
    assert_eq!(message.kind, ErrorKind::UnsupportedType);
    assert!(message.text().contains("is a symbolic link (it leads to"), "{}", message.text());
    assert_eq!(delete("missing").unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(bench.get("dir/a"), b"1");
    delete("folder/a").unwrap();
    assert_eq!(bench.names("dir"), Vec::<String>::new());
}

#[test]
fn a_dry_run_answers_the_same_and_does_nothing() {
    let bench = Bench::new();
    bench.put("a", "old");
    let run = |dry_run| {
        with_set(&bench, &["a", "b/c"], |mut set, recording| {
            set.put(0, b"new".to_vec(), WRITE);
            set.put(1, b"new".to_vec(), WRITE);
            set.commit(recording, dry_run)
        })
        .map(|changed| format!("{changed:?}"))
    };
    let dry = run(true).unwrap();
    assert_eq!((bench.get("a"), bench.names(".").len()), (b"old".to_vec(), 1));
    assert!(bench.journal().entries().is_empty());
    assert_eq!(dry, run(false).unwrap());
}

#[test]
fn unchanged_content_is_recorded_without_a_difference() {
    let bench = Bench::new();
    bench.put_at("a", "same", 5);
    with_set(&bench, &["a"], |mut set, recording| {
        set.put(0, b"same".to_vec(), WRITE);
        set.commit(recording, false)
    })
    .unwrap();
    let entries = bench.journal().entries();
    let [only] = &entries[..] else { panic!("{entries:?}") };
    assert!(only.changes[0].before.is_some());
    assert_eq!(only.changes[0].before, only.changes[0].after);
}

#[test]
fn a_file_too_large_to_undo_is_not_changed() {
    let bench = Bench::new();
    bench.put("a", vec![b'x'; (50 << 20) + 1]);
    let failure = with_set(&bench, &["a"], |mut set, recording| {
        set.put(0, b"new".to_vec(), WRITE);
        set.commit(recording, false)
    })
    .unwrap_err();
    assert_eq!(failure.kind, ErrorKind::TooLarge);
    let next = "could not be undone, so none is made. Write to another path, or let the user move the file away";
    assert!(failure.text().contains(next), "{}", failure.text());
    let failure = bench.call("write_file", json!({"path": "a", "content": "new"})).unwrap_err();
    assert!(failure.text().contains(next), "{}", failure.text());
}

#[test]
fn an_undo_records_the_call_that_it_reverts() {
    let bench = Bench::new();
    let call = CallId(Uuid::from_u128(7));
    bench
        .with_files(|files, recording| {
            let mut set = ChangeSet::take(files, &["a"])?;
            set.put(0, b"x".to_vec(), WRITE);
            set.commit(&recording.clone().reverting(call), false)
        })
        .unwrap();
    assert_eq!(bench.journal().entries()[0].reverts, Some(call));
}

#[test]
fn an_undo_passes_over_a_change_that_was_not_made() {
    let bench = Bench::new();
    bench.call("write_file", json!({"path": "mine", "content": "mine"})).unwrap();
    let theirs = bench.path("theirs");
    let failure = with_set(&bench, &["theirs"], |mut set, recording| {
        set.put(0, b"same".to_vec(), WRITE);
        // Another program that ignores locks, and writes the same content.
        std::fs::write(&theirs, "same").unwrap();
        set.commit(recording, false)
    })
    .unwrap_err();
    assert_eq!(failure.kind, ErrorKind::StaleFile);
    bench.call("undo", json!({})).unwrap();
    assert_eq!(bench.names("."), ["theirs"], "what this session wrote is gone, and theirs is not");
}

#[test]
fn a_path_below_another_and_one_with_very_many_folders_are_refused() {
    let bench = Bench::new();
    let refused = |paths: &[&str]| {
        let failure = with_set(&bench, paths, |mut set, recording| {
            (0..paths.len()).for_each(|index| set.put(index, b"new".to_vec(), WRITE));
            set.commit(recording, false)
        });
        assert!(bench.names(".").is_empty() && bench.journal().entries().is_empty());
        failure.unwrap_err().text()
    };
    let message = refused(&["a", "ab", "a/b"]);
    assert!(message.starts_with("`a/b` is below `a`, which cannot be a file and a folder at once"), "{message}");
    let deep = format!("{}file", "d/".repeat(33));
    assert!(refused(&[&deep]).contains("are missing, and at most 32 are created at once"));
}
