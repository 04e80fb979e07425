mod recall;

use super::*;
use async_trait::async_trait;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use toolstead_domain::{Category, EmbeddingsError, ServerName, ToolName, ToolSource};

fn tool(server: &str, name: &str, description: &str) -> Arc<Tool> {
    let server = ServerName::parse(server).unwrap();
    let definition = json!({"description": description, "inputSchema": {"type": "object"}});
    let source = ToolSource::McpServer { server: server.clone(), tool: name.into() };
    let name = ToolName::for_upstream(&server, name);
    Arc::new(Tool::new(name, definition.as_object().unwrap().clone(), Category::Mcp, source))
}

fn tools() -> Vec<Arc<Tool>> {
    vec![
        tool("git", "log", "Shows the commits of a repository."),
        tool("git", "status", "Shows changed files of a repository."),
        tool("mail", "send", "Sends a message to recipients."),
        tool("mail", "find", "Finds messages by sender or subject."),
    ]
}

fn names(found: &ToolMatches) -> Vec<&str> {
    found.tools.iter().map(|tool| tool.name().as_str()).collect()
}

async fn check(query: &str, expected: &[&str]) {
    let found = ToolSearch::default().search(query, &tools()).await;
    assert_eq!(names(&found), expected, "{query}");
    assert_eq!(found.note, None);
}

#[tokio::test]
async fn a_rare_synonym_does_not_outrank_the_word_itself() {
    let mut tools: Vec<Arc<Tool>> = (1..=5).map(|n| tool("s", &format!("get_{n}"), "")).collect();
    tools.insert(0, tool("s", "download_1", ""));
    let found = ToolSearch::default().search("get it", &tools).await;
    assert_eq!(names(&found).last(), Some(&"mcp__s__download_1"));
}

#[tokio::test]
async fn words_of_any_form_find_tools_and_names_count_most() {
    check("which commit", &["mcp__git__log"]).await;
    check("sending messages", &["mcp__mail__send", "mcp__mail__find"]).await;
    check("repositories", &["mcp__git__log", "mcp__git__status"]).await;
    check("weather", &[]).await;
    check("how to", &[]).await;
}

#[tokio::test]
async fn an_exact_name_is_first_in_any_of_its_forms() {
    for name in ["mcp__mail__find", "mail__find", "MAIL__FIND", "find", "`mcp_mail_find`"] {
        let found = ToolSearch::default().search(name, &tools()).await;
        assert_eq!(names(&found).first(), Some(&"mcp__mail__find"), "{name}");
    }
    let found = ToolSearch::default().search("send a message like mcp__git__log", &tools()).await;
    assert_eq!(names(&found)[..2], ["mcp__git__log", "mcp__mail__send"]);
}

#[tokio::test]
async fn a_required_word_must_occur() {
    check("+subject message", &["mcp__mail__find"]).await;
    check("+messages +recipients", &["mcp__mail__send"]).await;
    check("+weather message", &[]).await;
}

#[tokio::test]
async fn the_words_of_a_tool_are_computed_once_and_cached_while_the_tool_exists() {
    let (search, tools) = (ToolSearch::default(), tools());
    let first = search.words_of(&tools[0]);
    assert!(Arc::ptr_eq(&first, &search.words_of(&tools[0])));
    let size = || search.words.lock().unwrap().len();
    for _ in 0..1_000 {
        search.search("log", &[tool("git", "log", "Shows commits.")]).await;
    }
    assert!(size() < 100, "{}", size());
}

/// Embeddings in which the first letter of a word is its meaning.
#[derive(Default)]
struct Letters {
    texts: AtomicUsize,
    fails: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl Embeddings for Letters {
    fn model(&self) -> &str {
        "letters"
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbeddingsError> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(EmbeddingsError("the service is gone".into()));
        }
        self.texts.fetch_add(texts.len(), Ordering::Relaxed);
        let vector = |text: &String| {
            let mut vector = vec![0.01; 27];
            for word in text.split_whitespace() {
                let letter = word.bytes().next().unwrap_or(b'{').to_ascii_lowercase();
                vector[usize::from(letter.saturating_sub(b'a')).min(26)] += 1.0;
            }
            vector
        };
        Ok(texts.iter().map(vector).collect())
    }
}

#[tokio::test]
async fn configured_embeddings_rank_tools_by_meaning_and_vectors_are_computed_once() {
    let letters = Arc::new(Letters::default());
    let (search, tools) = (ToolSearch::with_embeddings(letters.clone()), tools());
    let found = search.search("big red sheep", &tools).await;
    assert_eq!((names(&found).len(), found.note), (4, None));
    assert_eq!(letters.texts.load(Ordering::Relaxed), 5);
    let found = search.search("fairly +subject", &tools).await;
    assert_eq!(names(&found), ["mcp__mail__find"]);
    assert_eq!(letters.texts.load(Ordering::Relaxed), 6);
    // A changed definition has another vector, and the others keep theirs.
    let changed: Vec<Arc<Tool>> = tools[1..].iter().cloned().chain([tool("git", "log", "Other text.")]).collect();
    search.search("x", &changed).await;
    assert_eq!(letters.texts.load(Ordering::Relaxed), 8);
}

#[tokio::test]
async fn a_search_falls_back_to_words_with_a_note_if_embeddings_fail() {
    let letters = Arc::new(Letters::default());
    letters.fails.store(true, Ordering::Relaxed);
    let found = ToolSearch::with_embeddings(letters).search("commits", &tools()).await;
    assert_eq!(names(&found), ["mcp__git__log"]);
    assert_eq!(found.note.as_deref(), Some("the service is gone"));
}

/// Embeddings that violate their contract.
struct Wrong(Vec<Vec<f32>>);

#[async_trait]
impl Embeddings for Wrong {
    fn model(&self) -> &str {
        "wrong"
    }

    async fn embed(&self, _: Vec<String>) -> Result<Vec<Vec<f32>>, EmbeddingsError> {
        Ok(self.0.clone())
    }
}

#[tokio::test]
async fn unusable_vectors_are_a_failure_of_the_embeddings() {
    let one = &tools()[..1];
    for (vectors, note) in [
        (vec![], "it returned 0 vectors for 1 texts"),
        (vec![vec![0.0, 0.0]], "it returned a vector without a direction"),
        (vec![vec![f32::NAN]], "it returned a vector without a direction"),
        (vec![vec![]], "it returned a vector without a direction"),
    ] {
        let found = ToolSearch::with_embeddings(Arc::new(Wrong(vectors))).search("commits", one).await;
        assert_eq!((names(&found), found.note.as_deref()), (vec!["mcp__git__log"], Some(note)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_search_falls_back_to_words_if_embeddings_time_out() {
    struct Silent;

    #[async_trait]
    impl Embeddings for Silent {
        fn model(&self) -> &str {
            "silent"
        }

        async fn embed(&self, _: Vec<String>) -> Result<Vec<Vec<f32>>, EmbeddingsError> {
            std::future::pending().await
        }
    }

    let found = ToolSearch::with_embeddings(Arc::new(Silent)).search("commits", &tools()).await;
    assert_eq!((names(&found), found.note.as_deref()), (vec!["mcp__git__log"], Some("no answer within 20 s")));
}
