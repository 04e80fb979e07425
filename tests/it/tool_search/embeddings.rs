//! Ranking by a service with OpenAI's `/embeddings`, against a fake of it over loopback.

use super::{
    catalogue::{SearchApp, catalogue},
    names,
};
use crate::support::{StdioClient, call, legacy, text_of};
use axum::{Router, extract::State, http::StatusCode, routing::post};
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};
use tokio::net::TcpListener;
use toolstead_presentation::config::{
    Config,
    layers::{
        environment::EnvironmentVariables,
        request::{ConfigFlags, ConfigRequest},
    },
};

/// A service that can be made to fail, and the requests that it received.
#[derive(Default)]
struct Fake {
    requests: Mutex<Vec<Value>>,
    fails: AtomicBool,
}

/// Gives bills and invoices the same direction, and everything else another.
async fn answer(State(fake): State<Arc<Fake>>, request: String) -> (StatusCode, String) {
    let request: Value = serde_json::from_str(&request).unwrap();
    fake.requests.lock().unwrap().push(request.clone());
    if fake.fails.load(Ordering::Relaxed) {
        return (StatusCode::BAD_REQUEST, json!({"error": {"message": "the model is not loaded"}}).to_string());
    }
    let vector = |text: &Value| {
        let text = text.as_str().unwrap();
        let is_bill = text.contains("bills") || text.contains("invoices");
        let is_list = text.contains("show") || text.contains("list");
        json!([f64::from(u8::from(is_bill)), f64::from(u8::from(is_list)) / 2.0, 0.1])
    };
    let texts = request["input"].as_array().unwrap().iter().enumerate();
    let data: Vec<Value> = texts.map(|(index, text)| json!({"index": index, "embedding": vector(text)})).collect();
    (StatusCode::OK, json!({"data": data}).to_string())
}

#[tokio::test]
async fn search_ranks_by_embeddings_and_falls_back_to_words_if_the_service_fails() {
    let fake = Arc::new(Fake::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/v1/embeddings", post(answer)).with_state(fake.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = format!("[tools.search]\nembeddings = {{ base_url = \"http://{address}/v1\", model = \"mini\" }}\n");
    let place = SearchApp::with(&settings, catalogue(140)).await;
    let mut pipe = StdioClient::legacy(&place.app).await;
    let search = |query: &str| call("tool_search", json!({"query": query, "limit": 3}));
    let answer = pipe.answer_to(legacy(1, "tools/call", search("show me the bills"))).await;
    let found = &answer["result"]["structuredContent"];
    assert_eq!(
        names(found["tools"].as_array().unwrap()),
        ["mcp__office__invoices_list_0", "mcp__office__invoices_list_1", "mcp__office__invoices_list_2"]
    );
    assert_eq!(found.get("note"), None);
    let texts =
        || fake.requests.lock().unwrap().iter().map(|one| one["input"].as_array().unwrap().len()).sum::<usize>();
    let first = texts();
    assert!(first > 140, "{first}");
    assert!(fake.requests.lock().unwrap().iter().all(|one| one["model"] == "mini"));
    // Only the query is new.
    pipe.answer_to(legacy(2, "tools/call", search("show me the bills"))).await;
    assert_eq!(texts(), first + 1);
    fake.fails.store(true, Ordering::Relaxed);
    let answer = pipe.answer_to(legacy(3, "tools/call", search("list tickets"))).await;
    let found = &answer["result"]["structuredContent"];
    assert!(names(found["tools"].as_array().unwrap())[0].starts_with("mcp__office__tickets_list"), "{found}");
    let note = "Ranked by words alone, since the embeddings failed: the model `mini`: the provider answered with HTTP status 400: the model is not loaded.";
    assert_eq!(found["note"], note);
    assert!(text_of(&answer).ends_with(note), "{answer}");
    place.close().await;
}

#[track_caller]
fn check_note(settings: &str, part: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.toml");
    std::fs::write(&file, settings).unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let request = ConfigRequest {
        environment: EnvironmentVariables::new([("HOME", path("home")), ("XDG_DATA_HOME", path("data"))]),
        start: folder.path().into(),
        administrator: path("etc").into(),
        file: Some(file),
        flags: ConfigFlags::default(),
    };
    let config = Config::load(&request).unwrap();
    assert_eq!(config.tools.embeddings.is_none(), part.contains("cannot be used"), "{settings}");
    assert!(config.notes.iter().any(|note| note.to_string().contains(part)), "{settings}: {:?}", config.notes);
}

#[test]
fn embeddings_that_cannot_be_used_are_reported() {
    let table = |rest: &str| format!("[tools.search.embeddings]\n{rest}\n");
    check_note(&table("base_url = \"http://localhost:1/v1\""), "cannot be used: it has no `model`");
    check_note(
        &table("base_url = \"http://u:p@localhost/v1\"\nmodel = \"m\""),
        "cannot be used: its `base_url` has a user",
    );
    let key = "base_url = \"http://example.com/v1\"\nmodel = \"m\"\napi_key_file = \"key\"";
    check_note(&table(key), "goes to its `base_url` without encryption");
}
