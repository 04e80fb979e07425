//! Contract of every journal of file changes.

use super::{join_all::join_all, samples};
use crate::{
    content_digest::ContentDigest,
    ports::change_journal::{ChangeJournal, FileChange, FileState, JournalEntry, StoredBlob},
    principal::Principal,
};
use std::{ffi::OsString, os::unix::ffi::OsStringExt};

/// Contents, each with its SHA-256.
const CONTENTS: [(&[u8], &str); 3] = [
    (b"before\n", "9160d4be34c8695bd172a76c7c7966587ea5a4d991ad22c87b2b91af54aa9ebb"),
    (b"after\n", "7b9a72466d3960eb2aacccfc848939453490db0678bd4725def3f789b891c919"),
    (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
];

/// Checks each guarantee of [`ChangeJournal`], except expiry and restarts, on an empty journal.
///
/// # Panics
/// If a guarantee is violated; the message names it.
pub async fn change_journal_contract(journal: &dyn ChangeJournal) {
    an_empty_journal_knows_nothing(journal).await;
    an_entry_comes_back_as_it_was_with_its_contents(journal).await;
    steps_of_one_call_are_one_entry(journal).await;
    an_entry_is_its_principals_alone(journal).await;
    a_session_is_listed_newest_first(journal).await;
    entries_recorded_side_by_side_are_all_there(journal).await;
}

/// Returns the entry of a call that replaced the content `before\n` of one file by `after\n`.
pub fn entry(number: u32) -> JournalEntry {
    let state = |which: usize| Some(FileState { digest: digest(which), mode: 0o644 });
    JournalEntry {
        call: samples::call_id(number),
        principal: Principal::local(),
        session: "session-1".into(),
        tool: "write_file".into(),
        at: samples::START,
        changes: vec![FileChange {
            path: format!("/w/{number}").into(),
            before: state(0),
            after: state(1),
            made_folders: 0,
        }],
        reverts: None,
    }
}

/// Returns the contents that [`entry`] refers to.
pub fn contents() -> Vec<StoredBlob> {
    [0, 1].map(|which| StoredBlob { digest: digest(which), bytes: CONTENTS[which].0.to_vec() }).to_vec()
}

fn digest(which: usize) -> ContentDigest {
    CONTENTS[which].1.parse().unwrap()
}

async fn an_empty_journal_knows_nothing(journal: &dyn ChangeJournal) {
    assert_eq!(journal.find(&Principal::local(), samples::call_id(0)).await.unwrap(), None);
    assert_eq!(journal.of_session(&Principal::local(), "session-1", 10).await.unwrap(), []);
    assert_eq!(journal.content(digest(0)).await.unwrap(), None);
}

async fn an_entry_comes_back_as_it_was_with_its_contents(journal: &dyn ChangeJournal) {
    comes_back(journal, entry(1), contents()).await;
    assert_eq!(journal.content(digest(0)).await.unwrap().as_deref(), Some(CONTENTS[0].0));
    assert_eq!(journal.content(digest(1)).await.unwrap().as_deref(), Some(CONTENTS[1].0));
    assert_eq!(journal.content(digest(2)).await.unwrap(), None, "what nobody gave is not kept");
    // Contents that are stored already, and an empty one.
    let empty = FileState { digest: digest(2), mode: 0o100_755 };
    let hostile = OsString::from_vec(b"/w/\xff '; DROP TABLE x; -- \n \xc3\xa4".to_vec());
    let mut created = entry(2);
    created.changes = vec![
        FileChange { path: hostile.into(), before: None, after: Some(empty), made_folders: 3 },
        FileChange {
            path: "/w/gone".into(),
            before: Some(FileState { digest: digest(1), mode: 0 }),
            after: None,
            made_folders: 0,
        },
    ];
    created.reverts = Some(samples::call_id(1));
    let empty = StoredBlob { digest: digest(2), bytes: Vec::new() };
    comes_back(journal, created, vec![contents().remove(1), empty]).await;
    assert_eq!(journal.content(digest(2)).await.unwrap().as_deref(), Some(&[][..]));
    // A content that is too large to store is referenced but missing.
    let mut unkept = entry(3);
    unkept.changes[0].before = Some(FileState { digest: ContentDigest([7; 32]), mode: 0o600 });
    comes_back(journal, unkept, Vec::new()).await;
    assert_eq!(journal.content(ContentDigest([7; 32])).await.unwrap(), None);
}

async fn steps_of_one_call_are_one_entry(journal: &dyn ChangeJournal) {
    let mut second = entry(10);
    second.changes[0].path = "/w/second".into();
    journal.record(entry(10), contents()).await.unwrap();
    journal.record(second.clone(), contents()).await.unwrap();
    let found = journal.find(&Principal::local(), samples::call_id(10)).await.unwrap().unwrap();
    let both = [entry(10).changes, second.changes].concat();
    assert_eq!(found, JournalEntry { changes: both, ..entry(10) }, "the steps stand in their order");
}

async fn an_entry_is_its_principals_alone(journal: &dyn ChangeJournal) {
    let ann = Principal::token("ann");
    let own = JournalEntry { principal: ann.clone(), ..entry(20) };
    journal.record(own.clone(), contents()).await.unwrap();
    assert_eq!(journal.find(&Principal::local(), own.call).await.unwrap(), None);
    assert_eq!(journal.find(&ann, own.call).await.unwrap().as_ref(), Some(&own));
    let listed = journal.of_session(&Principal::local(), "session-1", 100).await.unwrap();
    assert!(listed.iter().all(|entry| entry.principal == Principal::local()), "a session's name is no key to others'");
    assert_eq!(journal.of_session(&ann, "session-1", 100).await.unwrap(), [own]);
}

async fn a_session_is_listed_newest_first(journal: &dyn ChangeJournal) {
    let of = |number: u32| JournalEntry { session: format!("session-{}", number % 2 + 2), ..entry(number) };
    for number in 30..40 {
        journal.record(of(number), contents()).await.unwrap();
    }
    // A further step does not make an entry newer.
    journal.record(of(32), contents()).await.unwrap();
    let listed = journal.of_session(&Principal::local(), "session-2", 3).await.unwrap();
    assert_eq!(listed, [38, 36, 34].map(of));
    assert_eq!(journal.of_session(&Principal::local(), "session-2", 100).await.unwrap().len(), 5);
    assert_eq!(journal.of_session(&Principal::local(), "session-2", 0).await.unwrap(), []);
}

async fn entries_recorded_side_by_side_are_all_there(journal: &dyn ChangeJournal) {
    let recorded = join_all((100..150).map(|number| journal.record(entry(number), contents()))).await;
    assert!(recorded.iter().all(Result::is_ok), "entries recorded side by side are all recorded");
    for number in 100..150 {
        assert_eq!(journal.find(&Principal::local(), samples::call_id(number)).await.unwrap(), Some(entry(number)));
    }
}

async fn comes_back(journal: &dyn ChangeJournal, entry: JournalEntry, contents: Vec<StoredBlob>) {
    journal.record(entry.clone(), contents).await.unwrap();
    assert_eq!(journal.find(&entry.principal, entry.call).await.unwrap(), Some(entry));
}
