//! Contract of every store of large outputs.

use super::{join_all::join_all, samples};
use crate::{
    ports::output_store::{OutputHandle, OutputStore, StoredOutput},
    principal::Principal,
};
use std::{
    collections::BTreeSet,
    io::{Read, Seek, SeekFrom},
    num::NonZeroU64,
};

/// Checks each guarantee of [`OutputStore`], except expiry and restarts, on an empty store.
///
/// # Panics
/// If a guarantee is violated; the message names it.
pub async fn output_store_contract(store: &dyn OutputStore) {
    an_empty_store_has_nothing(store).await;
    what_is_stored_is_found_and_read_from_any_place(store).await;
    the_same_content_has_one_handle_for_each_media_type(store).await;
    a_handle_means_nothing_to_another_principal(store).await;
    outputs_stored_side_by_side_are_all_there(store).await;
    the_latest_come_first(store).await;
}

async fn an_empty_store_has_nothing(store: &dyn OutputStore) {
    let owner = Principal::local();
    for number in [1, 17, u64::MAX] {
        let handle = OutputHandle(NonZeroU64::new(number).expect("not zero"));
        assert_eq!(store.find(&owner, handle).await.unwrap(), None, "an unknown handle names nothing");
        assert!(store.open(&owner, handle).await.unwrap().is_none(), "an unknown handle opens nothing");
    }
    assert_eq!(store.latest(&owner, 10).await.unwrap(), []);
}

async fn what_is_stored_is_found_and_read_from_any_place(store: &dyn OutputStore) {
    let contents: [&[u8]; 4] = [b"one\ntwo\n", b"", "\u{feff}ä🦀\r\n\0".as_bytes(), &[0xff, 0xfe, 0, 1]];
    let types = ["text/plain", "text/plain", "application/json", "image/png"];
    let mut kept = Vec::new();
    for (content, media_type) in contents.into_iter().zip(types) {
        let stored = keep(store, &Principal::local(), media_type, content).await;
        assert_eq!((stored.bytes, stored.media_type.as_str()), (content.len() as u64, media_type));
        kept.push((stored, content));
    }
    // Checked after all of them were stored.
    for (stored, content) in kept {
        assert_eq!(store.find(&Principal::local(), stored.handle).await.unwrap().as_ref(), Some(&stored));
        assert_eq!(read(store, &Principal::local(), &stored, 0).await, content);
        assert_eq!(read(store, &Principal::local(), &stored, 4).await, content.get(4..).unwrap_or_default());
    }
    let large: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    let stored = keep(store, &Principal::local(), "application/octet-stream", &large).await;
    assert_eq!(read(store, &Principal::local(), &stored, 2_999_990).await, large[2_999_990..]);
    assert!(read(store, &Principal::local(), &stored, 0).await == large, "a large content comes back as it was");
}

async fn the_same_content_has_one_handle_for_each_media_type(store: &dyn OutputStore) {
    let owner = Principal::local();
    let text = keep(store, &owner, "text/plain", b"[1]").await;
    assert_eq!(keep(store, &owner, "text/plain", b"[1]").await, text, "the same content has the same handle");
    let json = keep(store, &owner, "application/json", b"[1]").await;
    assert_ne!(json.handle, text.handle, "another media type is another output");
    assert_eq!(json.digest, text.digest, "a digest stands for the content alone");
    assert_ne!(keep(store, &owner, "text/plain", b"[2]").await.digest, text.digest);
}

async fn a_handle_means_nothing_to_another_principal(store: &dyn OutputStore) {
    let [ann, bob] = ["ann", "bob"].map(Principal::token);
    let secret = keep(store, &ann, "text/plain", b"the secret of ann").await;
    let own = keep(store, &bob, "text/plain", b"what bob has").await;
    // Handles may be numbered per principal, so the number may be that of one of his outputs.
    let found = store.find(&bob, secret.handle).await.unwrap();
    assert!(found.is_none_or(|found| found == own), "what one principal stores another does not find");
    let latest = store.latest(&bob, 10).await.unwrap();
    assert_eq!(latest, [own], "a principal lists its own alone");
    // One content of two principals is stored for each of them.
    let same = keep(store, &bob, "text/plain", b"the secret of ann").await;
    assert_eq!(read(store, &bob, &same, 0).await, b"the secret of ann");
    assert_eq!(read(store, &ann, &secret, 0).await, b"the secret of ann");
}

async fn outputs_stored_side_by_side_are_all_there(store: &dyn OutputStore) {
    let owner = Principal::token("crowd");
    // Each content is stored twice.
    let content = |number: usize| format!("content {}", number / 2).into_bytes();
    let stored = join_all((0..100).map(|number| {
        let (owner, content) = (owner.clone(), content(number));
        async move { store.store(&owner, samples::call_id(1), "text/plain", &content).await.unwrap() }
    }))
    .await;
    let handles: BTreeSet<OutputHandle> = stored.iter().map(|stored| stored.handle).collect();
    assert_eq!(handles.len(), 50, "contents that differ have handles that differ, and the same has the same");
    for (number, stored) in stored.iter().enumerate() {
        assert_eq!(read(store, &owner, stored, 0).await, content(number));
    }
}

async fn the_latest_come_first(store: &dyn OutputStore) {
    let owner = Principal::token("list");
    let mut expected = Vec::new();
    for number in 0..5 {
        expected.insert(0, keep(store, &owner, "text/plain", format!("listed {number}").as_bytes()).await);
    }
    assert_eq!(store.latest(&owner, 3).await.unwrap(), expected[..3]);
    assert_eq!(store.latest(&owner, 100).await.unwrap(), expected);
    assert_eq!(store.latest(&owner, 0).await.unwrap(), []);
}

async fn keep(store: &dyn OutputStore, owner: &Principal, media_type: &str, content: &[u8]) -> StoredOutput {
    store.store(owner, samples::call_id(1), media_type, content).await.unwrap()
}

async fn read(store: &dyn OutputStore, owner: &Principal, stored: &StoredOutput, from: u64) -> Vec<u8> {
    let mut content = store.open(owner, stored.handle).await.unwrap().expect("what is stored can be opened");
    content.seek(SeekFrom::Start(from)).unwrap();
    let mut bytes = Vec::new();
    content.read_to_end(&mut bytes).unwrap();
    bytes
}
