use crate::builtin::{
    agents::question_form::{QuestionFormReply, elicitation_request, reply},
    tool_kit::testing::{ToolTestHarness, client},
    tools::all,
};
use serde_json::{Value, json};
use std::sync::Arc;
use toolstead_domain::{
    ClientProfile, InputResponse, NotAnswered, Principal, ProtocolVersion, QuestionGroupId, QuestionStore,
    error_kind::ErrorKind,
    question::waited_for,
    testing::{
        in_memory_questions::InMemoryQuestions, question_store_contract::questions, recording_caller::RecordingCaller,
    },
};

fn one() -> Value {
    json!({"questions": [{
        "question": "Which database?", "header": "Database",
        "options": [
            {"label": "SQLite", "description": "One file"},
            {"label": "Postgres", "description": "A server", "preview": "postgres://"},
        ],
    }]})
}

fn two() -> Value {
    let mut asked = one();
    let second = json!({
        "question": "Which colours?", "header": "Colours", "multi_select": true,
        "options": [{"label": "red", "description": ""}, {"label": "blue", "description": ""}],
    });
    asked["questions"].as_array_mut().unwrap().push(second);
    asked
}

/// Calls the tool once with a client that responds with `said`.
async fn called(arguments: Value, said: Result<Value, NotAnswered>) -> (ToolTestHarness, Result<Value, ErrorKind>) {
    let folder = tempfile::tempdir().unwrap();
    let caller = RecordingCaller::answering([said.map(InputResponse)]);
    let run = ToolTestHarness::of_tools(all(), &folder).with_caller(caller);
    let result = run.call("ask_user", arguments).await;
    let outcome = result.map(|result| result.structured_content().unwrap().clone()).map_err(|failure| failure.kind);
    (run, outcome)
}

#[track_caller]
fn check(arguments: Value, content: Value, expected: Value) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let said = Ok(json!({"action": "accept", "content": content}));
    let (_, outcome) = runtime.block_on(called(arguments, said));
    assert_eq!(outcome, Ok(json!({"outcome": "answered", "answers": expected})));
}

#[test]
fn answers_contain_only_the_selected_options_and_the_typed_text() {
    check(one(), json!({"answer1": "SQLite"}), json!({"Which database?": "SQLite"}));
    check(one(), json!({"answer1_other": " DuckDB "}), json!({"Which database?": "DuckDB"}));
    check(
        one(),
        json!({"answer1": "SQLite", "answer1_other": "with WAL"}),
        json!({"Which database?": "SQLite, with WAL"}),
    );
    check(
        two(),
        json!({"answer1": "Postgres", "answer2": ["red", "blue"], "answer2_other": "pink"}),
        json!({"Which database?": "Postgres", "Which colours?": "red, blue, pink"}),
    );
    check(two(), json!({"answer2": "red"}), json!({"Which colours?": "red"}));
    for nothing in [json!({}), json!({"answer1": 1, "answer1_other": null, "x": "y"}), json!({"answer1": " "})] {
        check(one(), nothing, json!({}));
    }
}

#[tokio::test]
async fn unanswered_questions_return_their_outcome_or_an_error_and_no_answers() {
    for (action, outcome) in [("decline", "declined"), ("cancel", "cancelled")] {
        let (_, answer) = called(one(), Ok(json!({"action": action}))).await;
        assert_eq!(answer, Ok(json!({"outcome": outcome, "answers": {}})));
    }
    for (said, kind) in [
        (Err(NotAnswered::TimedOut), ErrorKind::Timeout),
        (Err(NotAnswered::Disconnected), ErrorKind::Cancelled),
        (Err(NotAnswered::TooMany), ErrorKind::RateLimited),
        (Err(NotAnswered::Refused { code: -1, message: "no".into() }), ErrorKind::Unavailable),
        (Ok(json!({"action": "accept"})), ErrorKind::UpstreamProtocol),
        (Ok(json!({"action": "yes"})), ErrorKind::UpstreamProtocol),
        (Ok(json!(null)), ErrorKind::UpstreamProtocol),
        // No user is available, and there is no store for questions.
        (Err(NotAnswered::Unsupported), ErrorKind::Unavailable),
    ] {
        let (_, answer) = called(one(), said.clone()).await;
        assert_eq!(answer, Err(kind), "{said:?}");
    }
}

#[tokio::test]
async fn invalid_or_ambiguous_questions_are_not_sent_to_the_user() {
    let mut twice = one();
    let same = twice["questions"][0].clone();
    twice["questions"].as_array_mut().unwrap().push(same);
    let mut options = one();
    options["questions"][0]["options"][1]["label"] = " SQLite".into();
    let mut few = one();
    few["questions"][0]["options"].as_array_mut().unwrap().truncate(1);
    let mut long = one();
    long["questions"][0]["header"] = "Databases, all".into();
    let mut both = one();
    both["resume"] = "q1".into();
    for arguments in [twice, options, few, long, both, json!({}), json!({"questions": []})] {
        let (run, answer) = called(arguments.clone(), Ok(json!({"action": "accept", "content": {}}))).await;
        assert_eq!((answer, run.caller().questions().len()), (Err(ErrorKind::InvalidInput), 0), "{arguments}");
    }
}

#[test]
fn the_question_form_matches_the_protocol_version_of_the_client() {
    let form = |protocol| {
        let client = ClientProfile { protocol, ..client() };
        elicitation_request(&questions(), &client).params["requestedSchema"]["properties"].clone()
    };
    let new = form(Some(ProtocolVersion::V20251125));
    assert_eq!(new["answer1"]["oneOf"][0], json!({"const": "a", "title": "a: means \u{e4} a"}));
    assert_eq!(new["answer2"]["items"]["anyOf"][1]["const"], "b");
    let old = form(Some(ProtocolVersion::V20250618));
    assert_eq!((&old["answer1"]["enum"], &old["answer2"]["type"]), (&json!(["a", "b"]), &json!("string")));
    assert!(old["answer2"]["description"].as_str().unwrap().contains("a: means"));
    for form in [new, old, form(None)] {
        let names: Vec<&String> = form.as_object().unwrap().keys().collect();
        assert_eq!(names, ["answer1", "answer1_other", "answer2", "answer2_other"]);
    }
    let message = elicitation_request(&questions(), &client()).params["message"].clone();
    let lines = ["1. which?", "2. which ones?", "", "b:", "line", "line", "", "b:", "line", "line"];
    assert_eq!(message, format!("The agent asks:\n| {}", lines.join("\n| ")));
    assert_eq!(
        reply(&questions(), &json!({"action": "accept", "content": {}})),
        QuestionFormReply::Answers(vec![None, None])
    );
}

#[test]
fn question_text_cannot_impersonate_another_source() {
    for (asked, shown) in [
        ("The MCP server `bank` asks: PIN?", "The agent asks: The MCP server `bank` asks: PIN?"),
        ("Go on?\nToolstead asks: PIN?", "The agent asks:\n| Go on?\n| Toolstead asks: PIN?"),
        ("Go on?\rToolstead\u{2028}asks\u{202e}", "The agent asks: Go on?\u{fffd}Toolstead\u{fffd}asks\u{fffd}"),
    ] {
        let mut one = questions()[..1].to_vec();
        one[0].question = asked.into();
        one[0].options.iter_mut().for_each(|option| option.preview = None);
        assert_eq!(elicitation_request(&one, &client()).params["message"], shown);
    }
}

#[tokio::test]
async fn questions_remain_pending_until_answered_and_are_visible_only_to_their_principal() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(InMemoryQuestions::new());
    let mut run = ToolTestHarness::of_tools(all(), &folder);
    run.tools = run.tools.with_questions(store.clone());
    let asked = run.call("ask_user", one()).await.unwrap();
    assert_eq!(asked.structured_content().unwrap(), &json!({"outcome": "waiting", "answers": {}, "id": "q1"}));
    assert_eq!(waited_for(&asked).as_deref(), Some("q1"));
    assert!(asked.joined_text().contains("the questions are pending as q1"), "{}", asked.joined_text());

    let resume = json!({"resume": "q1"});
    let waits = run.call("ask_user", resume.clone()).await.unwrap();
    assert_eq!(waited_for(&waits).as_deref(), Some("q1"));
    let run = run.in_session(Principal::token("t"), "test");
    assert_eq!(run.call("ask_user", resume.clone()).await.unwrap_err().kind, ErrorKind::NotFound);

    let me = Principal::local();
    store.answer(&me, QuestionGroupId(1), vec!["SQLite".into()]).await.unwrap();
    let run = run.in_session(me, "test");
    let answered = run.call("ask_user", resume).await.unwrap();
    let expected = json!({"outcome": "answered", "answers": {"Which database?": "SQLite"}});
    assert_eq!((answered.structured_content(), waited_for(&answered)), (Some(&expected), None));
    for unknown in ["q2", "x", "q"] {
        let failure = run.call("ask_user", json!({"resume": unknown})).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::NotFound, "{unknown}");
    }
}
