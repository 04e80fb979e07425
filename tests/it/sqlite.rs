//! The database under concurrent processes and abrupt ends.
//!
//! A test that needs a second process starts this test binary again, for that one test alone. An environment variable
//! informs the copy that it is the other process.

use serde_json::json;
use sqlx::{ConnectOptions, Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use toolstead_domain::{
    AppendError, Block, CallId, Clock, ContentDigest, ConversationEventKind, ConversationStore, DefinitionVersion,
    ExecutionFilter, ExecutionLog, ExecutionOutcome, ItemKey, ItemKind, OutcomeKind, OutputHandle, OutputStore,
    PinnedServerKey, Principal, StoredOutput, Timestamp, ToolExecution,
    testing::{
        change_journal_contract, conversation_store_contract, fixed_clock::FixedClock,
        reopened_contract::reopened_stores_contract, samples, stores_contract::stores_contract,
    },
};
use toolstead_infrastructure::sqlite::{AuditRetention, ContentRetention, Database, DatabaseOptions, OpenError};
use uuid::Uuid;

/// Variable with the database on which a copy of this binary works.
const OTHER_PROCESS: &str = "TOOLSTEAD_TEST_DATABASE";

#[tokio::test]
async fn every_store_keeps_its_contract() {
    let (_folder, database) = new_database().await;
    stores_contract(&database.stores(workspace())).await;
    database.close().await;
}

#[tokio::test]
async fn a_server_that_lists_new_resources_each_time_does_not_fill_the_database() {
    const LISTED: u32 = 4_000;
    let (_folder, database) = new_database().await;
    let store = database.definitions();
    let server = PinnedServerKey { configured_in: "/c".into(), name: "s".into() };
    let version = |name: String, number, definition| DefinitionVersion {
        key: ItemKey::new(ItemKind::Resource, name),
        number,
        definition,
        seen_at: Timestamp(i64::from(number)),
        approval: None,
        findings: Vec::new(),
        has_hard_finding: false,
    };
    for list in 0..4 {
        let names = (0..LISTED).map(|number| format!("a://{list}/{number}"));
        let added: Vec<_> = names.clone().map(|name| version(name, 1, Some(json!({})))).collect();
        store.add(&server, &added).await.unwrap();
        let removed: Vec<_> = names.map(|name| version(name, 2, None)).collect();
        store.add(&server, &removed).await.unwrap();
    }
    let offered = version("a://offered".into(), 1, Some(json!({"name": "r"})));
    store.add(&server, std::slice::from_ref(&offered)).await.unwrap();
    let stored = store.versions(&server).await.unwrap();
    assert_eq!(stored.len(), 2 * 10_000 + 1, "the last 10,000 removed ones are known");
    assert!(stored.contains(&offered));
    database.close().await;
}

#[tokio::test]
async fn recorded_file_versions_of_a_session_survive_closing_the_database() {
    let (folder, database) = new_database().await;
    let (me, path) = (Principal::local(), Path::new("/w/read"));
    database.read_state(workspace()).record_version(&me, "s", path, ContentDigest([7; 32])).await.unwrap();
    database.close().await;
    let database = Database::open(options(folder.path()), clock()).await.unwrap();
    let known = database.read_state(workspace()).known(&me, "s", path).await.unwrap();
    assert_eq!(known, Some(ContentDigest([7; 32])));
    assert_eq!(database.read_state(Path::new("/v")).known(&me, "s", path).await.unwrap(), None);
    database.close().await;
}

#[tokio::test]
async fn workspaces_of_one_principal_share_only_the_numbering_of_handles() {
    let (_folder, database) = new_database().await;
    let [here, there] = ["/w", "/w/there"].map(|workspace| database.output_store(Path::new(workspace)));
    let mine = store(&*here, "the same content").await;
    let theirs = store(&*there, "the same content").await;
    assert_eq!([mine.handle, theirs.handle].map(|handle| handle.to_string()), ["o1", "o2"]);
    assert_eq!(store(&*here, "the same content").await, mine);
    assert_eq!(there.find(&Principal::local(), mine.handle).await.unwrap(), None);
    assert_eq!((content(&*here, theirs.handle).await, content(&*there, mine.handle).await), (None, None));
    assert_eq!(here.latest(&Principal::local(), 10).await.unwrap(), [mine]);

    let [here, there] = ["/w", "/w/there"].map(|workspace| database.change_journal(Path::new(workspace)));
    let (first, second) = (change_journal_contract::entry(1), change_journal_contract::entry(2));
    here.record(first.clone(), change_journal_contract::contents()).await.unwrap();
    there.record(second.clone(), change_journal_contract::contents()).await.unwrap();
    let local = Principal::local();
    assert_eq!(there.find(&local, first.call).await.unwrap(), None);
    assert_eq!(here.find(&local, first.call).await.unwrap(), Some(first.clone()));
    assert_eq!(here.of_session(&local, &first.session, 10).await.unwrap(), [first]);
    assert_eq!(there.of_session(&local, &second.session, 10).await.unwrap(), [second]);
    database.close().await;
}

#[tokio::test]
async fn a_power_safe_database_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let options = DatabaseOptions { power_safe: true, ..options(folder.path()) };
    let database = Database::open(options, clock()).await.unwrap();
    stores_contract(&database.stores(workspace())).await;
    database.close().await;
}

#[tokio::test]
async fn every_store_returns_its_content_after_the_database_is_reopened() {
    let folder = tempfile::tempdir().unwrap();
    let mut opened: Option<Database> = None;
    reopened_stores_contract(async || {
        if let Some(database) = opened.take() {
            database.close().await;
        }
        let database = Database::open(options(folder.path()), clock()).await.unwrap();
        opened.insert(database).stores(workspace())
    })
    .await;
    opened.unwrap().close().await;
}

/// An edit waits on a blocking thread. All of these threads may be waiting at the same time, so that no further one is
/// available.
#[test]
fn changes_are_recorded_even_if_every_blocking_thread_waits_for_a_change() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().max_blocking_threads(1).build().unwrap();
    let edits = async {
        let (_folder, database) = new_database().await;
        database.tidied().await;
        let edits: Vec<_> = (0..4)
            .map(|number| {
                let (journal, runtime) = (database.change_journal(workspace()), tokio::runtime::Handle::current());
                let (entry, contents) = (change_journal_contract::entry(number), change_journal_contract::contents());
                tokio::task::spawn_blocking(move || runtime.block_on(journal.record(entry, contents)))
            })
            .collect();
        store(&*database.output_store(workspace()), "an output beside them").await;
        for edit in edits {
            edit.await.unwrap().unwrap();
        }
        database.close().await;
    };
    let ended = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), edits).await });
    // A thread that waits for ever would keep the runtime from ending.
    runtime.shutdown_background();
    assert!(ended.is_ok(), "the edits wait for each other");
}

#[tokio::test]
async fn a_new_database_is_private_to_its_owner_and_can_be_reopened_after_closing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new").join("data").join("toolstead.db");
    let database = Database::open(DatabaseOptions::at(&path), clock()).await.unwrap();
    database.tool_repository().set_enabled("shell", false).await.unwrap();
    let log = database.execution_log();
    log.record(samples::execution(1)).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    database.close().await;
    assert_eq!(
        messages_of(&log.record(samples::execution(2)).await.unwrap_err()),
        [format!("could not record the call {}", samples::call_id(2)), "the database is closed".into()]
    );
    let left: Vec<_> = fs::read_dir(path.parent().unwrap().join("instances")).unwrap().collect();
    assert!(left.is_empty(), "a closed database leaves no lock file: {left:?}");

    let database = Database::open(DatabaseOptions::at(&path), clock()).await.unwrap();
    assert_eq!(database.tool_repository().disabled().await.unwrap(), ["shell"]);
    assert_eq!(rows(&*database.execution_log()).await, [samples::execution(1)]);
    database.close().await;
}

#[tokio::test]
async fn opening_deletes_expired_and_excess_audit_records() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(options(folder.path()), clock()).await.unwrap();
    for number in 0..10 {
        database.execution_log().record(samples::execution(number)).await.unwrap();
    }
    database.close().await;
    let retention = AuditRetention { max_age: Duration::from_secs(3600), max_rows: 6 };
    let later = Timestamp(samples::execution(7).started.0 + 3_600_000_000);
    for (now, left) in [(samples::START, [9, 8, 7, 6, 5, 4].as_slice()), (later, &[9, 8, 7])] {
        let options = DatabaseOptions { retention, ..options(folder.path()) };
        let database = Database::open(options, Arc::new(FixedClock::at(now))).await.unwrap();
        let log = database.execution_log();
        let expected: Vec<ToolExecution> = left.iter().map(|number| samples::execution(*number)).collect();
        let deleted = async {
            while rows(&*log).await != expected {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), deleted).await.unwrap();
        database.close().await;
    }
}

#[tokio::test]
async fn records_expire_only_if_the_clock_stays_ahead_and_not_after_a_single_jump() {
    const DAY: i64 = 24 * 60 * 60 * 1_000_000;
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(options(folder.path()), clock()).await.unwrap();
    database.tidied().await;
    database.execution_log().record(samples::execution(1)).await.unwrap();
    let stored = store(&*database.output_store(workspace()), "kept").await;
    let entry = change_journal_contract::entry(1);
    database.change_journal(workspace()).record(entry.clone(), change_journal_contract::contents()).await.unwrap();
    database.close().await;
    for (days, is_kept) in [(200, true), (0, true), (3, true), (1, true), (200, true), (201, false)] {
        let now = Timestamp(samples::START.0 + days * DAY);
        let database = expire_at(folder.path(), ContentRetention::default(), now).await;
        let kept = (
            rows(&*database.execution_log()).await.len(),
            content(&*database.output_store(workspace()), stored.handle).await.is_some(),
            database.change_journal(workspace()).find(&Principal::local(), entry.call).await.unwrap().is_some(),
        );
        assert_eq!(kept, (usize::from(is_kept), is_kept, is_kept), "day {days}");
        database.close().await;
    }
}

#[tokio::test]
async fn handles_survive_a_restart_and_are_never_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(options(folder.path()), clock()).await.unwrap();
    let first = store(&*database.output_store(workspace()), "one").await;
    assert_eq!(first.handle.to_string(), "o1");
    database.close().await;
    let database = Database::open(options(folder.path()), clock()).await.unwrap();
    assert_eq!(content(&*database.output_store(workspace()), first.handle).await.as_deref(), Some("one"));
    assert_eq!(store(&*database.output_store(workspace()), "one").await, first);
    assert_eq!(store(&*database.output_store(workspace()), "two").await.handle.to_string(), "o2");
    database.close().await;

    let database = expire(folder.path(), ContentRetention { max_bytes: 0, ..ContentRetention::default() }).await;
    assert_eq!(content(&*database.output_store(workspace()), first.handle).await, None);
    assert_eq!(files(&folder.path().join("blobs")), 0, "a content goes with what needed it");
    assert_eq!(store(&*database.output_store(workspace()), "one").await.handle.to_string(), "o3");
    database.close().await;
}

#[tokio::test]
async fn outputs_and_changes_expire_by_age_and_size_oldest_first_and_shared_contents_remain() {
    let folder = tempfile::tempdir().unwrap();
    let at = |seconds: i64| Timestamp(samples::START.0 + seconds * 1_000_000);
    for (seconds, text) in [(0, "before\n"), (1, "second"), (3, "third")] {
        let database = Database::open(options(folder.path()), Arc::new(FixedClock::at(at(seconds)))).await.unwrap();
        store(&*database.output_store(workspace()), text).await;
        database.close().await;
    }
    // Needs the same content as the first output, and one more.
    let mut entry = change_journal_contract::entry(1);
    entry.at = at(2);
    let database = Database::open(options(folder.path()), Arc::new(FixedClock::at(at(4)))).await.unwrap();
    database.change_journal(workspace()).record(entry.clone(), change_journal_contract::contents()).await.unwrap();
    // Stored again, so it is the newest now.
    store(&*database.output_store(workspace()), "second").await;
    database.close().await;
    assert_eq!(files(&folder.path().join("blobs")), 4);

    let handle = |number: u64| OutputHandle(number.try_into().unwrap());
    let kept = async |database: &Database| {
        let (outputs, journal) = (database.output_store(workspace()), database.change_journal(workspace()));
        let mut kept: Vec<String> = Vec::new();
        for number in 1..=3 {
            kept.extend(content(&*outputs, handle(number)).await);
        }
        kept.extend(journal.find(&Principal::local(), entry.call).await.unwrap().map(|_| "entry".to_owned()));
        kept
    };
    let contents = ContentRetention { max_age: Duration::from_millis(3500), max_bytes: 1 << 30 };
    let database = expire_at(folder.path(), contents, at(4)).await;
    assert_eq!(kept(&database).await, ["second", "third", "entry"]);
    let digest = entry.changes[0].before.unwrap().digest;
    assert_eq!(database.change_journal(workspace()).content(digest).await.unwrap().as_deref(), Some(&b"before\n"[..]));
    database.close().await;

    let contents = ContentRetention { max_age: Duration::MAX, max_bytes: 12 };
    let database = expire_at(folder.path(), contents, at(4)).await;
    assert_eq!(kept(&database).await, ["second", "third"]);
    assert_eq!(database.change_journal(workspace()).content(digest).await.unwrap(), None);
    database.close().await;
    let contents = ContentRetention { max_age: Duration::MAX, max_bytes: 10 };
    let database = expire_at(folder.path(), contents, at(4)).await;
    assert_eq!(kept(&database).await, ["second"], "the one that was stored last stays");
    assert_eq!(files(&folder.path().join("blobs")), 1);
    database.close().await;
}

#[tokio::test]
async fn stored_contents_stay_within_their_size_limit_while_the_process_runs() {
    let folder = tempfile::tempdir().unwrap();
    let contents = ContentRetention { max_bytes: 1_000_000, ..ContentRetention::default() };
    let options = DatabaseOptions { contents, ..options(folder.path()) };
    let database = Database::open(options, clock()).await.unwrap();
    database.tidied().await;
    let outputs = database.output_store(workspace());
    let first = store(&*outputs, &"0".repeat(100_000)).await;
    for number in 1..20 {
        store(&*outputs, &number.to_string().repeat(100_000)).await;
    }
    let within = async {
        while content(&*outputs, first.handle).await.is_some() || files(&folder.path().join("blobs")) > 10 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), within).await.unwrap();
    database.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_concurrent_outputs_remain_intact_while_another_instance_expires_contents() {
    let folder = tempfile::tempdir().unwrap();
    let keeping = Database::open(options(folder.path()), clock()).await.unwrap();
    // The same contents come and go there, at the same time.
    let expiring = ContentRetention { max_bytes: 0, ..ContentRetention::default() };
    let expire = async {
        for _ in 0..10 {
            expire(folder.path(), expiring).await.close().await;
        }
    };
    let stores = (0..100_u64).map(|number| {
        let outputs = keeping.output_store(workspace());
        tokio::spawn(async move {
            let text = format!("{} ", number % 10).repeat(10_000);
            let stored = store(&*outputs, &text).await;
            // It may have expired at once, but it is never another.
            let found = content(&*outputs, stored.handle).await;
            assert!(found.is_none_or(|found| found == text), "{}", stored.handle);
            stored
        })
    });
    let stores: Vec<_> = stores.collect();
    expire.await;
    for stored in stores {
        stored.await.unwrap();
    }
    let outputs = keeping.output_store(workspace());
    let last = store(&*outputs, "the last").await;
    assert_eq!(content(&*outputs, last.handle).await.as_deref(), Some("the last"));
    for kept in outputs.latest(&Principal::local(), 1000).await.unwrap() {
        assert!(content(&*outputs, kept.handle).await.is_some(), "{} is listed and broken", kept.handle);
    }
    keeping.close().await;
}

#[tokio::test]
async fn a_kill_while_outputs_are_stored_leaves_no_broken_handles_and_no_orphaned_files() {
    if let Some(path) = std::env::var_os(OTHER_PROCESS) {
        return store_for_ever(path.into()).await;
    }
    let folder = tempfile::tempdir().unwrap();
    for round in 1..=5_usize {
        let mut child = OtherProcess::start(
            "sqlite::a_kill_while_outputs_are_stored_leaves_no_broken_handles_and_no_orphaned_files",
            &path(folder.path()),
        );
        let lines = child.output.by_ref().lines().map_while(Result::ok);
        let mut message: Vec<String> = lines.filter(|line| line.starts_with("stored ")).take(7 * round).collect();
        child.process.kill().unwrap();
        message.extend(child.output.by_ref().lines().map_while(Result::ok).filter(|line| line.starts_with("stored ")));
        child.process.wait().unwrap();

        let database = Database::open(options(folder.path()), clock()).await.unwrap();
        database.tidied().await;
        let outputs = database.output_store(workspace());
        for line in message {
            let handle = line["stored ".len()..].parse().unwrap();
            assert!(content(&*outputs, handle).await.is_some(), "{handle} was told and is gone");
        }
        let kept = outputs.latest(&Principal::local(), 10_000).await.unwrap();
        for one in &kept {
            let text = content(&*outputs, one.handle).await.expect("a handle that is listed names something");
            assert_eq!(text.len() as u64, one.bytes);
        }
        assert_eq!(files(&folder.path().join("blobs")), kept.len(), "files without a row are swept away");
        database.close().await;
    }
}

#[tokio::test]
async fn a_kill_during_a_conversation_leaves_only_complete_additions() {
    if let Some(path) = std::env::var_os(OTHER_PROCESS) {
        return converse_for_ever(path.into()).await;
    }
    let (me, folder) = (Principal::local(), tempfile::tempdir().unwrap());
    let mut before = 0;
    for round in 1..=5_usize {
        let mut child = OtherProcess::start(
            "sqlite::a_kill_during_a_conversation_leaves_only_complete_additions",
            &path(folder.path()),
        );
        let lines = child.output.by_ref().lines().map_while(Result::ok);
        let mut message: Vec<String> = lines.filter(|line| line.starts_with("added ")).take(40 * round).collect();
        child.process.kill().unwrap();
        message.extend(child.output.by_ref().lines().map_while(Result::ok).filter(|line| line.starts_with("added ")));
        child.process.wait().unwrap();

        let database = Database::open(options(folder.path()), clock()).await.unwrap();
        let conversations = database.conversations(workspace());
        let begun = conversation_store_contract::conversation(1);
        let events = conversations.events(&me, begun.id).await.unwrap();
        let acknowledged: u64 = message.last().unwrap()["added ".len()..].parse().unwrap();
        assert!(events.len() as u64 >= acknowledged, "{acknowledged} were told, and there are {}", events.len());
        assert!(events.iter().map(|event| event.number).eq(1..=events.len() as u64), "there is a gap");
        let one = conversation_store_contract::one_of_each();
        assert_eq!(events.len() % one.len(), 0, "an addition is there in part");
        assert!(events.iter().map(|event| &event.kind).eq(one.iter().cycle().take(events.len())));
        let known = conversations.find(&me, begun.id).await.unwrap().unwrap();
        assert_eq!(known.events, events.len() as u64);
        assert!(events.len() > before, "the next process goes on");
        before = events.len();
        database.close().await;
    }
}

#[tokio::test]
async fn two_instances_cannot_append_to_a_conversation_at_once_and_workspaces_are_isolated() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = [(); 2].map(|()| Database::open(options(folder.path()), clock()));
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    let [here, too] = [&first, &second].map(|database| database.conversations(workspace()));
    let (me, begun) = (Principal::local(), conversation_store_contract::conversation(1));
    here.begin(&begun).await.unwrap();
    let (one, id) = (conversation_store_contract::one_of_each, begun.id);
    let add = |store: Arc<dyn ConversationStore>| async move {
        store.append(&Principal::local(), id, 0, samples::START, one()).await
    };
    let added = tokio::join!(add(here.clone()), add(too.clone()));
    let (Ok(_), Err(refused)) = (match added {
        (Err(_), Ok(_)) => (added.1, added.0),
        _ => added,
    }) else {
        panic!("one of the two is refused");
    };
    assert!(matches!(refused, AppendError::GoesOnElsewhere { expected: 0, .. }), "{refused:?}");
    assert_eq!(too.events(&me, begun.id).await.unwrap().len(), one().len());

    let there = second.conversations(Path::new("/w/there"));
    assert_eq!(there.find(&me, begun.id).await.unwrap(), None);
    assert_eq!(there.events(&me, begun.id).await.unwrap(), []);
    assert_eq!(there.latest(&me, 10).await.unwrap(), []);
    let refused = there.append(&me, begun.id, one().len() as u64, samples::START, one()).await;
    assert!(matches!(refused, Err(AppendError::NotFound(_))), "{refused:?}");
    first.close().await;
    second.close().await;
}

#[tokio::test]
async fn an_event_that_is_too_large_is_refused_and_nothing_beside_it_is_added() {
    let (_folder, database) = new_database().await;
    let (conversations, begun) = (database.conversations(workspace()), conversation_store_contract::conversation(1));
    conversations.begin(&begun).await.unwrap();
    let said = |bytes: usize| ConversationEventKind::UserSaid { blocks: vec![Block::text("x".repeat(bytes))] };
    let add = |expected, events| conversations.append(&begun.principal, begun.id, expected, samples::START, events);
    let refused = add(0, vec![said(1), said(17 << 20)]).await.unwrap_err();
    let AppendError::Store(refused) = refused else { panic!("{refused:?}") };
    assert!(
        messages_of(&refused).last().unwrap().contains("at most 16777216 are allowed"),
        "{:?}",
        messages_of(&refused)
    );
    assert_eq!(add(0, vec![said(15 << 20)]).await.unwrap(), 1);
    let events = conversations.events(&begun.principal, begun.id).await.unwrap();
    assert_eq!(events.into_iter().map(|event| event.kind).collect::<Vec<_>>(), [said(15 << 20)]);
    database.close().await;
}

#[tokio::test]
async fn an_incomplete_sweep_of_leftover_files_is_repeated_after_the_next_start() {
    let folder = closed_database().await;
    let dead = folder.path().join("instances").join(format!("{}.lock", Uuid::from_u128(7)));
    fs::write(&dead, "").unwrap();
    // A folder in the place of a content ends the sweep as a kill would: halfway.
    let shard = folder.path().join("blobs/ab");
    let [stuck, stray] = ["0", "f"].map(|digit| shard.join(digit.repeat(62)));
    fs::create_dir_all(&stuck).unwrap();
    let database = Database::open(options(folder.path()), clock()).await.unwrap();
    database.tidied().await;
    assert!(dead.exists(), "it says that a sweep is due");
    database.close().await;

    fs::remove_dir(&stuck).unwrap();
    for path in [&stuck, &stray] {
        fs::write(path, "left behind").unwrap();
    }
    let database = Database::open(options(folder.path()), clock()).await.unwrap();
    database.tidied().await;
    assert_eq!((files(&folder.path().join("blobs")), dead.exists()), (0, false));
    database.close().await;
}

#[tokio::test]
async fn leftover_content_entries_do_not_cause_valid_contents_to_expire() {
    let (folder, database) = new_database().await;
    let kept = store(&*database.output_store(workspace()), "kept").await;
    database.close().await;
    let statement = "INSERT INTO contents (digest, bytes) VALUES (zeroblob(32), 5000000)";
    sqlx::query(statement).execute(&mut raw(folder.path()).await).await.unwrap();
    let contents = ContentRetention { max_bytes: 1_000_000, ..ContentRetention::default() };
    let database = expire(folder.path(), contents).await;
    assert_eq!(content(&*database.output_store(workspace()), kept.handle).await.as_deref(), Some("kept"));
    database.close().await;
    let total: i64 =
        sqlx::query_scalar("SELECT bytes FROM contents_total").fetch_one(&mut raw(folder.path()).await).await.unwrap();
    assert_eq!(total, 4);
}

/// The others wait for the write lock meanwhile.
#[tokio::test]
async fn opening_does_not_wait_for_a_sweep_of_many_files() {
    let folder = closed_database().await;
    fs::write(folder.path().join("instances").join(format!("{}.lock", Uuid::from_u128(7))), "").unwrap();
    for number in 0..20_000_u32 {
        let name = format!("{:02x}/{number:062x}", number % 256);
        let path = folder.path().join("blobs").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let blobs = folder.path().join("blobs");
    let database = Database::open(options(folder.path()), clock()).await.unwrap();
    assert!(files(&blobs) > 0, "the sweep is over before somebody can work");
    database.execution_log().record(samples::execution(2)).await.unwrap();
    assert!(files(&blobs) > 0, "recording waits for the whole sweep");
    database.tidied().await;
    assert_eq!(files(&blobs), 0);
    database.close().await;
}

#[tokio::test]
async fn a_database_that_a_later_version_wrote_is_left_alone() {
    let folder = closed_database().await;
    let statement = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                     VALUES (900, 'later', 1, x'00', 0)";
    sqlx::query(statement).execute(&mut raw(folder.path()).await).await.unwrap();
    let error = refused(folder.path()).await;
    assert!(matches!(error, OpenError::Newer { version: 900, .. }), "{error:?}");
    assert!(error.to_string().ends_with("update this program, or choose another path for the database"), "{error}");
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM tool_executions")
        .fetch_one(&mut raw(folder.path()).await)
        .await
        .unwrap();
    assert_eq!(rows, 1);
}

#[tokio::test]
async fn a_database_with_a_changed_migration_is_refused() {
    let folder = closed_database().await;
    let statement = "UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 2";
    sqlx::query(statement).execute(&mut raw(folder.path()).await).await.unwrap();
    let error = refused(folder.path()).await;
    assert!(matches!(error, OpenError::ChangedMigration { version: 2, .. }), "{error:?}");
}

#[tokio::test]
async fn a_file_of_another_kind_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = path(folder.path());
    let garbage = "Dear diary, this is no database. ".repeat(200);
    fs::write(&path, &garbage).unwrap();
    let error = refused(folder.path()).await;
    assert!(matches!(error, OpenError::NotOurs { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        format!(
            "`{}` is not a database of Toolstead: move it away, or choose another path for the database",
            path.display()
        )
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), garbage);

    fs::remove_file(&path).unwrap();
    sqlx::query("CREATE TABLE notes (text TEXT)").execute(&mut raw(folder.path()).await).await.unwrap();
    let error = refused(folder.path()).await;
    assert!(matches!(error, OpenError::NotOurs { .. }), "{error:?}");

    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = refused(folder.path()).await;
    assert!(matches!(error, OpenError::NotOurs { .. }), "{error:?}");
}

#[tokio::test]
async fn opening_a_damaged_database_returns_an_error() {
    let folder = closed_database().await;
    let path = path(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    // The header stays, the schema behind it goes.
    bytes[100..4096].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    let error = refused(folder.path()).await;
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
}

#[tokio::test]
async fn a_folder_that_cannot_be_created_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    // Not even the superuser can create a folder below a file.
    let error = Database::open(DatabaseOptions::at(file.join("data/toolstead.db")), clock()).await.unwrap_err();
    assert!(matches!(error, OpenError::CreateFolder { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("could not create the folder `{}/data` for the database", file.display()));
}

#[tokio::test]
async fn a_database_lock_is_awaited_until_the_timeout_and_then_reported() {
    let folder = closed_database().await;
    let impatient = DatabaseOptions { busy_timeout: Duration::from_millis(50), ..options(folder.path()) };
    let power_safe = DatabaseOptions { power_safe: true, ..impatient.clone() };
    let database = Database::open(power_safe, clock()).await.unwrap();
    let log = database.execution_log();
    let mut other = raw(folder.path()).await;
    let transaction = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    assert_eq!(
        messages_of(&log.record(samples::execution(7)).await.unwrap_err())[1],
        "another program has locked the database"
    );
    assert_eq!(log.find(samples::call_id(7)).await.unwrap(), None, "reading does not wait for a writer");
    transaction.rollback().await.unwrap();
    log.record(samples::execution(7)).await.unwrap();
    database.close().await;

    sqlx::raw_sql("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let error = Database::open(impatient, clock()).await.unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error:?}");
    other.close().await.unwrap();
    let database = Database::open(options(folder.path()), clock()).await.unwrap();
    assert_eq!(rows(&*database.execution_log()).await, [7, 1].map(samples::execution));
    database.close().await;
}

#[tokio::test]
async fn a_database_lock_delays_no_calls_at_first_and_loses_no_records() {
    let folder = closed_database().await;
    let impatient = DatabaseOptions { busy_timeout: Duration::from_millis(50), ..options(folder.path()) };
    let database = Database::open(impatient, clock()).await.unwrap();
    let log = database.execution_log();
    let mut other = raw(folder.path()).await;
    let transaction = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let mut recorded = 1;
    let error = loop {
        match log.record(samples::execution(recorded + 1)).await {
            Ok(()) => recorded += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(messages_of(&error)[1], "another program has locked the database");
    assert!(recorded > 1, "the first ones are on record");
    let all: Vec<ToolExecution> = (1..=recorded).rev().map(samples::execution).collect();
    assert_eq!(rows(&*log).await, all, "reading does not wait for a writer");
    transaction.rollback().await.unwrap();
    log.record(samples::execution(recorded + 1)).await.unwrap();
    database.close().await;
    let database = Database::open(options(folder.path()), clock()).await.unwrap();
    assert_eq!(rows(&*database.execution_log()).await.len() as u32, recorded + 1);
    database.close().await;
}

#[tokio::test]
async fn a_call_is_listed_with_its_latest_outcome_before_the_database_is_updated() {
    let folder = closed_database().await;
    let database = Database::open(options(folder.path()), clock()).await.unwrap();
    let log = database.execution_log();
    let running = samples::running_execution(2);
    log.record(running.clone()).await.unwrap();
    let mut other = raw(folder.path()).await;
    let transaction = loop {
        let mut transaction = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
        let rows: Vec<Uuid> =
            sqlx::query_scalar("SELECT id FROM tool_executions").fetch_all(&mut *transaction).await.unwrap();
        if rows.len() == 2 {
            break transaction;
        }
        transaction.rollback().await.unwrap();
    };
    let waiting = ToolExecution { outcome: ExecutionOutcome::InputRequired, ..running };
    log.record(waiting.clone()).await.unwrap();
    for (outcome, expected) in [(OutcomeKind::InputRequired, vec![waiting]), (OutcomeKind::Running, vec![])] {
        let filter = ExecutionFilter { outcome: Some(outcome), ..ExecutionFilter::default() };
        assert_eq!(log.list(&filter).await.unwrap(), expected);
    }
    transaction.rollback().await.unwrap();
    database.close().await;
}

#[tokio::test]
async fn a_killed_process_loses_no_acknowledged_records_and_does_not_affect_other_processes() {
    if let Some(path) = std::env::var_os(OTHER_PROCESS) {
        return record_for_ever(path.into()).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let sibling = Database::open(options(folder.path()), clock()).await.unwrap();
    let living = samples::running_execution(1);
    sibling.execution_log().record(living.clone()).await.unwrap();
    let mut acknowledged = BTreeMap::new();
    for round in 1..=5 {
        let mut child = OtherProcess::start(
            "sqlite::a_killed_process_loses_no_acknowledged_records_and_does_not_affect_other_processes",
            &path(folder.path()),
        );
        for row in child.acknowledged().take(200 * round) {
            acknowledged.insert(row.0, row.1);
        }
        child.process.kill().unwrap();
        // What it said before it died counts, too.
        acknowledged.extend(child.acknowledged());
        child.process.wait().unwrap();

        let database = Database::open(options(folder.path()), clock()).await.unwrap();
        let log = database.execution_log();
        let mut interrupted = 0;
        for (id, outcome) in &acknowledged {
            let found = log.find(*id).await.unwrap().unwrap_or_else(|| panic!("{id} was acknowledged and is gone"));
            match (outcome, found.outcome) {
                (OutcomeKind::Succeeded, ExecutionOutcome::Succeeded) => {}
                // The final row may have been committed without that the child came to say so.
                (OutcomeKind::Running, ExecutionOutcome::Succeeded) => {}
                (OutcomeKind::Running, ExecutionOutcome::Interrupted) => interrupted += 1,
                wrong => panic!("{id}: {wrong:?}"),
            }
        }
        assert!(interrupted > 0, "the child had calls that never end");
        let running = ExecutionFilter { outcome: Some(OutcomeKind::Running), ..ExecutionFilter::default() };
        assert_eq!(
            log.list(&running).await.unwrap().as_slice(),
            std::slice::from_ref(&living),
            "the calls of the living still run"
        );
        database.close().await;
    }
    assert!(acknowledged.len() > 1000);
    let done = samples::execution(1);
    sibling.execution_log().record(done.clone()).await.unwrap();
    assert_eq!(sibling.execution_log().find(done.id).await.unwrap(), Some(done));
    sibling.close().await;
}

#[tokio::test]
async fn processes_that_open_a_new_database_at_the_same_moment_all_work() {
    const ROWS: u32 = 50;
    if let Some(path) = std::env::var_os(OTHER_PROCESS) {
        return record_some(path.into(), ROWS).await;
    }
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let name = "sqlite::processes_that_open_a_new_database_at_the_same_moment_all_work";
        let mut children = [(); 4].map(|()| OtherProcess::start(name, &path(folder.path())));
        // They are there and wait; now they start.
        for child in &mut children {
            child.acknowledged().next().unwrap();
        }
        for child in &mut children {
            child.input.write_all(b"go\n").unwrap();
        }
        for child in &mut children {
            let mut rest = String::new();
            child.output.read_to_string(&mut rest).unwrap();
            assert!(child.process.wait().unwrap().success(), "{rest}");
        }
        let database = Database::open(options(folder.path()), clock()).await.unwrap();
        assert_eq!(rows(&*database.execution_log()).await.len(), 4 * ROWS as usize);
        database.close().await;
    }
}

#[tokio::test]
async fn a_full_disk_is_reported_and_loses_no_data() {
    if let Some(path) = std::env::var_os(OTHER_PROCESS) {
        return fill_the_disk(path.into()).await;
    }
    let folder = tempfile::tempdir().unwrap();
    // A file system of 4 MB that only the child and its shell see, and that ends with them.
    let script = "mount -t tmpfs -o size=4m none \"$1\" || exit 77; shift; exec \"$@\"";
    let test = "sqlite::a_full_disk_is_reported_and_loses_no_data";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(folder.path());
    command.arg(std::env::current_exe().unwrap()).args([test, "--exact"]);
    match command.env(OTHER_PROCESS, path(folder.path())).output() {
        Ok(output) if output.status.success() => {}
        // `unshare` is not there (an error or 127), may not do that (1), or the mount failed (77). The writer's own
        // tests fill a database without a file system for it.
        Ok(output) if !matches!(output.status.code(), Some(1 | 77 | 127)) => {
            panic!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        }
        other => say(&format!("not tested, because no file system of a test's own can be mounted here: {other:?}")),
    }
}

/// The child that is killed: sixteen callers that never stop, every hundredth call of theirs never ends.
async fn record_for_ever(path: PathBuf) {
    let database = Database::open(DatabaseOptions::at(path), clock()).await.unwrap();
    let callers = (0..16).map(|_| {
        let log = database.execution_log();
        tokio::spawn(async move {
            for turn in 0_u64.. {
                let id = CallId(Uuid::now_v7());
                let running = ToolExecution { id, ..samples::running_execution(0) };
                log.record(running).await.unwrap();
                say(&format!("running {id}"));
                if turn % 100 != 0 {
                    log.record(ToolExecution { id, ..samples::execution(0) }).await.unwrap();
                    say(&format!("succeeded {id}"));
                }
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

/// The child that is killed while it stores.
async fn store_for_ever(path: PathBuf) {
    let database = Database::open(DatabaseOptions::at(path), clock()).await.unwrap();
    let stores = (0..4).map(|_| {
        let outputs = database.output_store(workspace());
        tokio::spawn(async move {
            loop {
                let text = format!("{} ", Uuid::now_v7()).repeat(5000);
                say(&format!("stored {}", store(&*outputs, &text).await.handle));
            }
        })
    });
    futures::future::join_all(stores).await;
}

/// Child process that is killed while a conversation continues. Resumes where it ended before, if it did.
async fn converse_for_ever(path: PathBuf) {
    let database = Database::open(DatabaseOptions::at(path), clock()).await.unwrap();
    let (conversations, begun) = (database.conversations(workspace()), conversation_store_contract::conversation(1));
    let known = conversations.find(&begun.principal, begun.id).await.unwrap();
    if known.is_none() {
        conversations.begin(&begun).await.unwrap();
    }
    let mut events = known.map_or(0, |known| known.events);
    loop {
        let more = conversation_store_contract::one_of_each();
        events = conversations.append(&begun.principal, begun.id, events, samples::START, more).await.unwrap();
        say(&format!("added {events}"));
    }
}

/// One of several child processes that open the same new database on request.
async fn record_some(path: PathBuf, rows: u32) {
    say(&format!("running {}", Uuid::nil()));
    io::stdin().read_line(&mut String::new()).unwrap();
    let database = Database::open(DatabaseOptions::at(path), clock()).await.unwrap();
    for _ in 0..rows {
        let id = CallId(Uuid::now_v7());
        database.execution_log().record(ToolExecution { id, ..samples::execution(0) }).await.unwrap();
    }
    database.close().await;
}

/// The child that has a small file system for itself.
async fn fill_the_disk(path: PathBuf) {
    let ballast = path.with_file_name("ballast");
    // More than the rest: all rows may wait in the backlog when the disk is full, and its file goes after their commit.
    fs::write(&ballast, vec![0; 9 << 18]).unwrap();
    let database = Database::open(DatabaseOptions::at(&path), clock()).await.unwrap();
    let log = database.execution_log();
    let row = |number| ToolExecution { arguments: "x".repeat(8000).into(), ..samples::execution(number) };
    let mut recorded = 0;
    let error = loop {
        assert!(recorded < 1000, "the disk is larger than it was to be");
        match log.record(row(recorded + 1)).await {
            Ok(()) => recorded += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(messages_of(&error)[1], "the disk is full");
    assert!(recorded > 10, "{recorded}");
    let all: Vec<ToolExecution> = (1..=recorded).rev().map(row).collect();
    assert_eq!(rows(&*log).await, all, "what was acknowledged is there");
    let another = Database::open(DatabaseOptions::at(&path), clock()).await;
    if let Err(error) = another {
        assert!(matches!(error, OpenError::DiskFull { .. }), "{error:?}");
    }

    fs::remove_file(ballast).unwrap();
    log.record(row(recorded + 1)).await.unwrap();
    database.close().await;
    let database = Database::open(DatabaseOptions::at(&path), clock()).await.unwrap();
    assert_eq!(rows(&*database.execution_log()).await.len() as u32, recorded + 1);
    database.close().await;
}

/// A copy of this test binary that runs one test, as another process at the database.
struct OtherProcess {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl OtherProcess {
    fn start(test: &str, path: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture"]).env(OTHER_PROCESS, path);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, input, output }
    }

    /// Returns the calls that the process reported as committed. Other lines belong to the test harness.
    fn acknowledged(&mut self) -> impl Iterator<Item = (CallId, OutcomeKind)> {
        let lines = self.output.by_ref().lines().map_while(Result::ok);
        lines.filter_map(|line| {
            let (outcome, id) = line.split_once(' ')?;
            Some((CallId(id.parse().ok()?), OutcomeKind::parse(outcome)?))
        })
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Writes a line at once, past the test harness.
fn say(line: &str) {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}").unwrap();
    stdout.flush().unwrap();
}

fn path(folder: &Path) -> PathBuf {
    folder.join("toolstead.db")
}

fn options(folder: &Path) -> DatabaseOptions {
    DatabaseOptions::at(path(folder))
}

/// Returns the workspace that everything belongs to, except where a test uses another one.
fn workspace() -> &'static Path {
    Path::new("/w")
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(FixedClock::at(samples::START))
}

async fn new_database() -> (TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(options(folder.path()), clock()).await.unwrap();
    (folder, database)
}

/// Returns a folder with a database that contains one record and is not open.
async fn closed_database() -> TempDir {
    let (folder, database) = new_database().await;
    database.execution_log().record(samples::execution(1)).await.unwrap();
    database.close().await;
    folder
}

/// The database, past everything that Toolstead thinks of it.
async fn raw(folder: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path(folder)).create_if_missing(true).connect().await.unwrap()
}

async fn refused(folder: &Path) -> OpenError {
    Database::open(options(folder), clock()).await.unwrap_err()
}

async fn store(outputs: &dyn OutputStore, text: &str) -> StoredOutput {
    outputs.store(&Principal::local(), samples::call_id(1), "text/plain", text.as_bytes()).await.unwrap()
}

async fn content(outputs: &dyn OutputStore, handle: OutputHandle) -> Option<String> {
    let mut content = outputs.open(&Principal::local(), handle).await.unwrap()?;
    let mut text = String::new();
    content.read_to_string(&mut text).unwrap();
    Some(text)
}

async fn expire(folder: &Path, contents: ContentRetention) -> Database {
    expire_at(folder, contents, samples::START).await
}

/// Opens the database at that time and returns it once nothing is left that has to go.
async fn expire_at(folder: &Path, contents: ContentRetention, now: Timestamp) -> Database {
    let options = DatabaseOptions { contents, ..options(folder) };
    let database = Database::open(options, Arc::new(FixedClock::at(now))).await.unwrap();
    database.tidied().await;
    database
}

/// Returns the number of files in the folder.
fn files(folder: &Path) -> usize {
    let entries: Vec<PathBuf> = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    entries.iter().map(|path| if path.is_dir() { files(path) } else { 1 }).sum()
}

/// Every row, newest first.
async fn rows(log: &dyn ExecutionLog) -> Vec<ToolExecution> {
    log.list(&ExecutionFilter { limit: u32::MAX, ..ExecutionFilter::default() }).await.unwrap()
}

/// The error and its causes, as an operator reads them.
fn messages_of(error: &(dyn Error + 'static)) -> Vec<String> {
    std::iter::successors(Some(error), |error| (*error).source()).map(ToString::to_string).collect()
}
