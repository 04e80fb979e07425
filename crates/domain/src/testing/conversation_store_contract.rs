//! Contract of every store of conversations.

use super::{join_all::join_all, samples};
use crate::{
    conversation::{
        Conversation, ConversationId, Delegation,
        event::{ConversationEvent, ConversationEventKind},
    },
    model::{
        message::{Block, Image, SealedBlock, ToolArguments, ToolResultBlock, ToolUse},
        reply::StopReason,
        usage::TokenUsage,
    },
    ports::{
        clock::Timestamp,
        conversation_store::{AppendError, ConversationStore},
    },
    principal::Principal,
};
use serde_json::json;

/// Checks each guarantee of [`ConversationStore`], except restarts and kills, on an empty store.
///
/// # Panics
/// If a guarantee is violated; the message names it.
pub async fn conversation_store_contract(store: &dyn ConversationStore) {
    an_empty_store_knows_nothing(store).await;
    a_conversation_comes_back_as_it_was_begun(store).await;
    an_id_is_taken_once(store).await;
    events_come_back_as_they_were_with_their_numbers_and_times(store).await;
    of_two_who_add_at_once_one_is_refused(store).await;
    a_conversation_is_its_principals_alone(store).await;
    a_copy_has_the_first_events_and_goes_its_own_way(store).await;
    the_one_that_was_added_to_last_is_listed_first(store).await;
    those_of_agents_are_found_by_the_session_that_handed_them_over(store).await;
}

/// Returns a conversation of the local user without events; its id, title and time depend on `number`.
pub fn conversation(number: u32) -> Conversation {
    Conversation::new(id(number), Principal::local(), format!("talk {number}"), at(number))
}

/// Returns one event of each kind, with values that are hard to store.
pub fn one_of_each() -> Vec<ConversationEventKind> {
    let sealed = || SealedBlock {
        provider: "anthropic".into(),
        raw: "{\"b\":1.0, \"a\" : \"\\u00e4\\u0000\"}".into(),
        shown: Some("hm\n".into()),
    };
    let image = Image { media_type: "image/png".into(), data: "aGVsbG8=".into() };
    let call = |id: &str, arguments, sealed| {
        Block::ToolUse(ToolUse { id: id.into(), name: "srv.read_file".into(), arguments, sealed })
    };
    let arguments = ToolArguments::parse(r#"{"z": 18446744073709551615, "a": [1.5, null, {"deep": "\u0000ä"}]}"#);
    let usage = TokenUsage { input_tokens: 1, cache_read_tokens: 2, cache_write_tokens: 3, output_tokens: 1 << 52 };
    let answered = |blocks, stop| ConversationEventKind::ModelAnswered { blocks, model: "m-1".into(), stop, usage };
    let ended = |call, is_error, record| ConversationEventKind::CallEnded {
        result: ToolResultBlock {
            id: "call_1".into(),
            name: "srv.read_file".into(),
            content: vec![Block::text("'; DROP TABLE x; --\0"), Block::Image(image.clone())],
            is_error,
        },
        call,
        record,
    };
    let turn = |message| ConversationEventKind::TurnEnded { outcome: "finished".into(), message };
    vec![
        ConversationEventKind::UserSaid { blocks: vec![Block::text("ä\u{0}\n"), Block::Image(image.clone())] },
        answered(
            vec![
                Block::Sealed(sealed()),
                call("call_1", arguments, Some(sealed())),
                call("call_2", ToolArguments::Malformed("{\"a\":".into()), None),
            ],
            Some(StopReason::ToolUse),
        ),
        ended(Some(samples::call_id(7)), false, json!({"toolName": "read_file", "unknown": [1, {"x": null}]})),
        ended(None, true, json!(null)),
        ConversationEventKind::Compacted { summary: "much".into(), kept_from: 2 },
        ConversationEventKind::Masked { events: vec![3, 4] },
        answered(Vec::new(), None),
        turn(None),
        turn(Some("why".into())),
        ConversationEventKind::TakenBack { to: 1 },
    ]
}

fn id(number: u32) -> ConversationId {
    ConversationId(samples::call_id(number).0)
}

fn at(number: u32) -> Timestamp {
    Timestamp(samples::START.0 + i64::from(number))
}

fn user_message(text: impl Into<String>) -> Vec<ConversationEventKind> {
    vec![ConversationEventKind::UserSaid { blocks: vec![Block::text(text)] }]
}

fn numbered(from: u64, at: Timestamp, kinds: Vec<ConversationEventKind>) -> Vec<ConversationEvent> {
    (from..).zip(kinds).map(|(number, kind)| ConversationEvent { number, at, kind }).collect()
}

async fn begin_conversation(store: &dyn ConversationStore, number: u32) -> Conversation {
    let begun = conversation(number);
    store.begin(&begun).await.unwrap();
    begun
}

async fn an_empty_store_knows_nothing(store: &dyn ConversationStore) {
    let me = Principal::local();
    assert_eq!(store.find(&me, id(1)).await.unwrap(), None);
    assert_eq!(store.events(&me, id(1)).await.unwrap(), []);
    assert_eq!(store.latest(&me, 10).await.unwrap(), []);
    let nowhere = store.append(&me, id(1), 0, at(1), user_message("hello")).await;
    assert!(matches!(nowhere, Err(AppendError::NotFound(missing)) if missing == id(1)), "{nowhere:?}");
}

async fn a_conversation_comes_back_as_it_was_begun(store: &dyn ConversationStore) {
    let mut hostile = conversation(10);
    hostile.title = "'; DROP TABLE x; --\n\u{0}ä".into();
    hostile.profile = Some("reviewer".into());
    hostile.updated = at(11);
    for begun in [conversation(9), hostile] {
        store.begin(&begun).await.unwrap();
        assert_eq!(store.find(&begun.principal, begun.id).await.unwrap(), Some(begun.clone()));
        assert_eq!(store.events(&begun.principal, begun.id).await.unwrap(), []);
    }
}

async fn an_id_is_taken_once(store: &dyn ConversationStore) {
    let first = begin_conversation(store, 20).await;
    let second = Conversation { title: "another".into(), ..first.clone() };
    assert!(store.begin(&second).await.is_err(), "an id names one conversation");
    assert_eq!(store.find(&first.principal, first.id).await.unwrap(), Some(first));
}

async fn events_come_back_as_they_were_with_their_numbers_and_times(store: &dyn ConversationStore) {
    let Conversation { id, principal, .. } = begin_conversation(store, 30).await;
    let first = store.append(&principal, id, 0, at(31), user_message("hello")).await.unwrap();
    assert_eq!(first, 1, "numbers begin with 1");
    let kinds = one_of_each();
    let last = store.append(&principal, id, 1, at(32), kinds.clone()).await.unwrap();
    assert_eq!(last, 11, "and have no gaps");
    assert_eq!(store.append(&principal, id, 11, at(33), Vec::new()).await.unwrap(), 11, "nothing adds nothing");
    let events = [numbered(1, at(31), user_message("hello")), numbered(2, at(32), kinds)].concat();
    assert_eq!(store.events(&principal, id).await.unwrap(), events);
    let found = store.find(&principal, id).await.unwrap().unwrap();
    assert_eq!((found.events, found.created, found.updated), (11, at(30), at(32)));
}

async fn of_two_who_add_at_once_one_is_refused(store: &dyn ConversationStore) {
    let Conversation { id, principal, .. } = begin_conversation(store, 40).await;
    for wrong in [1, u64::MAX] {
        let refused = store.append(&principal, id, wrong, at(41), user_message("late")).await;
        let outcome = matches!(refused, Err(AppendError::GoesOnElsewhere { found: 0, expected }) if expected == wrong);
        assert!(outcome, "{refused:?}");
    }
    let texts: Vec<String> = (0..20).map(|number| format!("says {number}")).collect();
    let added = join_all(texts.iter().map(|text| store.append(&principal, id, 0, at(42), user_message(text)))).await;
    let won: Vec<usize> = (0..20).filter(|number| added[*number].is_ok()).collect();
    let &[winner] = won.as_slice() else { panic!("one of those who expect the same is the first: {won:?}") };
    let refused = added.iter().filter(|added| matches!(added, Err(AppendError::GoesOnElsewhere { found: 1, .. })));
    assert_eq!(refused.count(), 19, "the others are told");
    let events = store.events(&principal, id).await.unwrap();
    assert_eq!(events, numbered(1, at(42), user_message(&texts[winner])), "what was refused is not there");
}

async fn a_conversation_is_its_principals_alone(store: &dyn ConversationStore) {
    let (own, ann) = (begin_conversation(store, 50).await, Principal::token("ann"));
    let id = own.id;
    store.append(&own.principal, id, 0, at(51), user_message("mine")).await.unwrap();
    assert_eq!(store.find(&ann, id).await.unwrap(), None, "an id is no key to another's conversation");
    assert_eq!(store.events(&ann, id).await.unwrap(), []);
    assert_eq!(store.latest(&ann, 10).await.unwrap(), []);
    let refused = store.append(&ann, id, 1, at(52), user_message("hers")).await;
    assert!(matches!(refused, Err(AppendError::NotFound(_))), "{refused:?}");
    let copy = |original| Conversation { principal: ann.clone(), forked_from: Some((original, 1)), ..conversation(51) };
    assert!(store.begin(&copy(id)).await.is_err(), "nor can it be copied");
    assert_eq!(store.latest(&ann, 10).await.unwrap(), []);
    // Another principal may have a conversation with the same id, and neither can read the other.
    let hers = Conversation { principal: ann.clone(), title: "hers".into(), ..own.clone() };
    store.begin(&hers).await.unwrap();
    store.append(&ann, id, 0, at(53), user_message("hers")).await.unwrap();
    assert_eq!(store.events(&ann, id).await.unwrap(), numbered(1, at(53), user_message("hers")));
    assert_eq!(store.events(&own.principal, id).await.unwrap(), numbered(1, at(51), user_message("mine")));
    assert_eq!(store.find(&own.principal, id).await.unwrap().map(|found| found.title), Some(own.title));
}

async fn a_copy_has_the_first_events_and_goes_its_own_way(store: &dyn ConversationStore) {
    let Conversation { id: original, principal, .. } = begin_conversation(store, 60).await;
    let kinds = one_of_each();
    store.append(&principal, original, 0, at(61), kinds.clone()).await.unwrap();
    let fork = |number, events| Conversation { forked_from: Some((original, events)), ..conversation(number) };
    let copy = fork(62, 4);
    store.begin(&copy).await.unwrap();
    let found = store.find(&principal, copy.id).await.unwrap();
    assert_eq!(found, Some(Conversation { events: 4, ..copy.clone() }));
    let first = numbered(1, at(61), kinds[..4].to_vec());
    assert_eq!(store.events(&principal, copy.id).await.unwrap(), first, "with their numbers and times");
    assert_eq!(store.append(&principal, copy.id, 4, at(63), user_message("its own")).await.unwrap(), 5);
    let own = [first, numbered(5, at(63), user_message("its own"))].concat();
    assert_eq!(store.events(&principal, copy.id).await.unwrap(), own);
    let unchanged = store.events(&principal, original).await.unwrap();
    assert_eq!(unchanged, numbered(1, at(61), kinds), "the original does not go on");
    store.begin(&fork(64, 0)).await.unwrap();
    assert_eq!(store.events(&principal, fork(64, 0).id).await.unwrap(), []);
    let nothing = Conversation { forked_from: Some((id(99), 0)), ..conversation(65) };
    for impossible in [fork(65, 11), fork(65, u64::MAX), nothing] {
        assert!(store.begin(&impossible).await.is_err(), "there is no such original: {impossible:?}");
        assert_eq!(store.find(&principal, impossible.id).await.unwrap(), None, "and nothing of the copy is kept");
    }
}

async fn the_one_that_was_added_to_last_is_listed_first(store: &dyn ConversationStore) {
    let (ben, numbers) = (Principal::token("ben"), 70..74);
    for number in numbers.clone() {
        store.begin(&Conversation { principal: ben.clone(), ..conversation(number) }).await.unwrap();
    }
    // Even if the clock does not advance, or was set back, the order is that of adding.
    for (number, time) in [(72, 80), (70, 80), (71, 79)] {
        store.append(&ben, id(number), 0, at(time), user_message("on")).await.unwrap();
    }
    let listed = async |limit| {
        let listed = store.latest(&ben, limit).await.unwrap();
        listed.into_iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(10).await, [71, 70, 72, 73].map(id));
    assert_eq!(listed(2).await, [71, 70].map(id));
    assert_eq!(listed(0).await, []);
}

async fn those_of_agents_are_found_by_the_session_that_handed_them_over(store: &dyn ConversationStore) {
    let (eve, other) = (Principal::token("eve"), Principal::token("other"));
    let begun = |number, principal: &Principal, session: &str| Conversation {
        principal: principal.clone(),
        delegated_by: Some(Delegation {
            session: session.into(),
            call: samples::call_id(number),
            agent: format!("agent {number}").into(),
        }),
        ..conversation(number)
    };
    let own = Conversation { principal: eve.clone(), ..conversation(80) };
    store.begin(&own).await.unwrap();
    for one in [begun(81, &eve, "s"), begun(82, &eve, "s"), begun(83, &eve, "t"), begun(84, &other, "s")] {
        store.begin(&one).await.unwrap();
        let found = store.find(&one.principal, one.id).await.unwrap();
        assert_eq!(found.and_then(|found| found.delegated_by), one.delegated_by);
    }
    store.append(&eve, id(81), 0, at(85), user_message("on")).await.unwrap();
    let listed = async |principal: &Principal, session: &str, limit| {
        let listed = store.delegated_in(principal, session, limit).await.unwrap();
        listed.into_iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(&eve, "s", 10).await, [81, 82].map(id));
    assert_eq!(listed(&eve, "s", 1).await, [id(81)]);
    assert_eq!((listed(&eve, "t", 10).await, listed(&other, "s", 10).await), (vec![id(83)], vec![id(84)]));
    assert_eq!(listed(&eve, "u", 10).await, []);
    let latest = store.latest(&eve, 10).await.unwrap();
    assert_eq!(latest.into_iter().map(|one| one.id).collect::<Vec<_>>(), [own.id]);
}
