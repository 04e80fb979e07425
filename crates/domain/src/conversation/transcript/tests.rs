use super::*;
use crate::{
    model::{
        message::{Image, ToolArguments},
        usage::TokenUsage,
    },
    testing::samples::START,
};
use ConversationEventKind::{CallEnded, Compacted, Masked, ModelAnswered, TakenBack, TurnEnded, UserSaid};
use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any, prop_oneof, proptest},
    sample::select,
};
use serde_json::{Map, json};

fn user(text: &str) -> ConversationEventKind {
    UserSaid { blocks: vec![Block::text(text)] }
}

fn call(id: &str) -> Block {
    let arguments = ToolArguments::Object(Map::new());
    Block::ToolUse(ToolUse { id: id.into(), name: format!("tool_{id}"), arguments, sealed: None })
}

fn sealed() -> Block {
    Block::Sealed(SealedBlock { provider: "anthropic".into(), raw: "{}".into(), shown: None })
}

fn answer_of(blocks: Vec<Block>, stop: Option<StopReason>) -> ConversationEventKind {
    ModelAnswered { blocks, model: "m".into(), stop, usage: TokenUsage::default() }
}

/// An answer of texts, and of calls, which are written `#id`.
fn model(parts: &[&str]) -> ConversationEventKind {
    let block = |part: &&str| part.strip_prefix('#').map_or_else(|| Block::text(*part), call);
    answer_of(parts.iter().map(block).collect(), Some(StopReason::EndTurn))
}

fn ended(id: &str, text: &str) -> ConversationEventKind {
    let content = vec![Block::text(text)];
    let result = ToolResultBlock { id: id.into(), name: format!("tool_{id}"), content, is_error: false };
    CallEnded { result, call: None, record: json!({"outputs": [{"handle": "o17"}]}) }
}

fn events(kinds: Vec<ConversationEventKind>) -> Vec<ConversationEvent> {
    (1..).zip(kinds).map(|(number, kind)| ConversationEvent { number, at: START, kind }).collect()
}

/// A message as one line: `user: =id text | said`.
fn line(message: &Message) -> String {
    let blocks: Vec<String> = message
        .blocks
        .iter()
        .map(|block| match block {
            Block::Text { text } => text.clone(),
            Block::Image(_) => "(image)".into(),
            Block::ToolUse(call) => format!("#{}", call.id),
            Block::ToolResult(result) => {
                let failed = if result.is_error { "!" } else { "" };
                let content = Message { role: Role::User, blocks: result.content.clone() };
                format!("={}{failed} {}", result.id, content.text())
            }
            Block::Sealed(_) => "(sealed)".into(),
        })
        .collect();
    let role = if message.role == Role::User { "user" } else { "model" };
    format!("{role}: {}", blocks.join(" | "))
}

fn check(kinds: Vec<ConversationEventKind>, expected: &[&str]) {
    let lines: Vec<String> = messages(&events(kinds)).iter().map(line).collect();
    assert_eq!(lines, expected);
}

#[test]
fn tool_results_follow_their_calls_in_call_order() {
    check(vec![], &[]);
    check(vec![user("hello"), model(&["hi"])], &["user: hello", "model: hi"]);
    check(
        vec![user("look"), model(&["so", "#a", "#b"]), ended("b", "B"), ended("a", "A"), model(&["done"])],
        &["user: look", "model: so | #a | #b", "user: =a A | =b B", "model: done"],
    );
}

#[test]
fn user_texts_sent_between_tool_results_follow_all_results() {
    check(
        vec![user("look"), model(&["#a", "#b"]), ended("a", "A"), user("hurry"), ended("b", "B"), user("up")],
        &["user: look", "model: #a | #b", "user: =a A | =b B | hurry | up"],
    );
}

#[test]
fn a_call_without_a_result_was_interrupted() {
    let interrupted = format!("user: =a A | =b! {INTERRUPTED} | again");
    check(
        vec![user("look"), model(&["#a", "#b"]), ended("a", "A"), user("again")],
        &["user: look", "model: #a | #b", &interrupted],
    );
    let both = format!("user: =a! {INTERRUPTED}");
    check(vec![user("look"), model(&["#a"]), model(&["well"])], &["user: look", "model: #a", &both, "model: well"]);
}

#[test]
fn a_result_without_its_call_is_left_out() {
    check(vec![user("look"), ended("a", "A"), model(&["hm"]), ended("b", "B")], &["user: look", "model: hm"]);
    // The same id again is another call.
    check(
        vec![user("x"), model(&["#a"]), ended("a", "1"), ended("a", "2"), model(&["#a"]), ended("a", "3")],
        &["user: x", "model: #a", "user: =a 1", "model: #a", "user: =a 3"],
    );
}

#[test]
fn undone_events_have_no_effect_on_the_messages() {
    let said = || vec![user("one"), model(&["1"]), user("two"), model(&["2"])];
    let taken = |to, more: Vec<ConversationEventKind>| [said(), vec![TakenBack { to }], more].concat();
    check(taken(2, vec![user("three")]), &["user: one", "model: 1", "user: three"]);
    check(taken(0, vec![user("three")]), &["user: three"]);
    check(taken(99, vec![]), &["user: one", "model: 1", "user: two", "model: 2"]);
    // Undoing does not restore events that were undone before.
    check(taken(1, vec![user("three"), TakenBack { to: 3 }]), &["user: one"]);
    // A summary and a mask are undone like all other events.
    check(
        vec![user("x"), model(&["#a"]), ended("a", "A"), Masked { events: vec![3] }, TakenBack { to: 3 }],
        &["user: x", "model: #a", "user: =a A"],
    );
    check(
        vec![user("x"), model(&["y"]), Compacted { summary: "s".into(), kept_from: 3 }, TakenBack { to: 2 }],
        &["user: x", "model: y"],
    );
}

#[test]
fn a_summary_replaces_all_events_before_its_kept_range() {
    let compacted = |kept_from| {
        vec![
            user("one"),
            model(&["#a"]),
            ended("a", "A"),
            model(&["1"]),
            user("two"),
            Compacted { summary: "S".into(), kept_from },
            model(&["2"]),
        ]
    };
    let summary = format!("user: {SUMMARY}S");
    check(compacted(5), &[&format!("{summary} | two"), "model: 2"]);
    check(compacted(4), &[&summary, "model: 1", "user: two", "model: 2"]);
    // Its call is summed up, so the result goes with it.
    check(compacted(3), &[&summary, "model: 1", "user: two", "model: 2"]);
    check(compacted(2), &[&summary, "model: #a", "user: =a A", "model: 1", "user: two", "model: 2"]);
    check(compacted(7), &[&summary, "model: 2"]);
    // The last summary counts.
    let again = [compacted(5), vec![user("three"), Compacted { summary: "T".into(), kept_from: 8 }]].concat();
    check(again, &[&format!("user: {SUMMARY}T | three")]);
}

#[test]
fn a_masked_output_is_replaced_by_a_reference_to_its_stored_copy() {
    let pointer =
        "[This output of `tool_a` (5 bytes) is left out to keep the conversation short. It is stored as o17.]";
    check(
        vec![user("x"), model(&["#a", "#b"]), ended("a", "large"), ended("b", "B"), Masked { events: vec![3, 99] }],
        &["user: x", "model: #a | #b", &format!("user: =a {pointer} | =b B")],
    );
}

#[test]
fn messages_omit_invalid_blocks_begin_with_the_user_and_alternate_roles() {
    check(
        vec![
            user("x"),
            model(&["", " \n"]),
            user(" "),
            model(&["a"]),
            TurnEnded { outcome: "failed".into(), message: None },
        ],
        &["user: x", "model: a"],
    );
    check(vec![model(&["first"])], &[&format!("user: {GO_ON}"), "model: first"]);
    check(vec![UserSaid { blocks: vec![call("a"), sealed(), Block::text("x")] }], &["user: x"]);
    check(vec![user("x"), model(&["a"]), model(&["b"])], &["user: x", "model: a | b"]);
}

#[test]
fn trailing_thinking_is_omitted_only_from_truncated_or_textless_answers() {
    let thought = |stop, blocks| vec![user("x"), answer_of(blocks, stop)];
    let text = || Block::text("t");
    for stop in [None, Some(StopReason::MaxTokens)] {
        check(thought(stop, vec![sealed()]), &["user: x"]);
        check(thought(stop, vec![sealed(), text(), sealed()]), &["user: x", "model: (sealed) | t"]);
    }
    check(thought(Some(StopReason::EndTurn), vec![sealed(), Block::text(" "), sealed()]), &["user: x"]);
    check(thought(Some(StopReason::EndTurn), vec![text(), sealed()]), &["user: x", "model: t | (sealed)"]);
}

fn any_block() -> impl Strategy<Value = Block> {
    let id = || select(vec!["a", "b", "c"]);
    prop_oneof![
        select(vec!["", " ", "text"]).prop_map(Block::text),
        Just(Block::Image(Image { media_type: "image/png".into(), data: "AA==".into() })),
        id().prop_map(call),
        id().prop_map(call),
        id().prop_map(|id| match ended(id, "out") {
            CallEnded { result, .. } => Block::ToolResult(result),
            _ => sealed(),
        }),
        Just(sealed()),
    ]
}

fn any_event() -> impl Strategy<Value = ConversationEventKind> {
    let number = || 0_u64..40;
    let stop = select(vec![None, Some(StopReason::EndTurn), Some(StopReason::MaxTokens), Some(StopReason::ToolUse)]);
    prop_oneof![
        3 => vec(any_block(), 0..4).prop_map(|blocks| UserSaid { blocks }),
        5 => (vec(any_block(), 0..5), stop).prop_map(|(blocks, stop)| answer_of(blocks, stop)),
        6 => (select(vec!["a", "b", "c"]), any::<bool>()).prop_map(|(id, blank)| ended(id, if blank { "" } else { "out" })),
        1 => number().prop_map(|kept_from| Compacted { summary: "s".into(), kept_from }),
        1 => vec(number(), 0..4).prop_map(|events| Masked { events }),
        1 => Just(TurnEnded { outcome: "finished".into(), message: None }),
        1 => number().prop_map(|to| TakenBack { to }),
    ]
}

/// The invariants of [`messages`]' documentation.
fn is_one_that_providers_take(messages: &[Message]) {
    for (number, message) in messages.iter().enumerate() {
        assert_eq!(message.role == Role::User, number % 2 == 0, "the two speak in turn, the person first");
        assert!(!message.blocks.is_empty(), "no message is empty");
        let asked: Vec<&str> = match number.checked_sub(1) {
            Some(before) => messages[before].tool_uses().map(|call| call.id.as_str()).collect(),
            None => Vec::new(),
        };
        let results = message.blocks.iter().map_while(|block| match block {
            Block::ToolResult(result) => Some(result.id.as_str()),
            _ => None,
        });
        let results: Vec<&str> = results.collect();
        assert_eq!(results, asked, "each call has its result, in order, before all else");
        let later = message.blocks[results.len()..].iter();
        for block in later {
            let stands_right = match block {
                Block::Text { text } => !text.trim().is_empty(),
                Block::Image(_) => true,
                Block::ToolUse(_) | Block::Sealed(_) => message.role == Role::Assistant,
                Block::ToolResult(_) => false,
            };
            assert!(stands_right, "{block:?}");
        }
    }
    assert!(messages.last().is_none_or(|last| last.tool_uses().next().is_none()), "no call is left without a result");
}

proptest! {
    #[test]
    fn any_events_produce_messages_that_providers_accept(kinds in vec(any_event(), 0..40)) {
        is_one_that_providers_take(&messages(&events(kinds)));
    }

    #[test]
    fn any_prefix_of_a_log_produces_messages_that_providers_accept(kinds in vec(any_event(), 0..30)) {
        let events = events(kinds);
        for length in 0..=events.len() {
            is_one_that_providers_take(&messages(&events[..length]));
        }
    }
}
