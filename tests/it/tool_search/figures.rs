//! Figures of the search: its recall, and the requests and tokens that deferral costs and saves until an answer.

use super::catalogue::{SearchApp, catalogue, name};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{fmt::Write as _, path::Path, sync::Arc};
use toolstead_application::{RunAgentCommand, tool_search::ToolSearch};
use toolstead_domain::{
    Block, ConversationId, ModelRequest, Tool, ToolArguments,
    testing::scripted_model::{ScriptedAnswer, ScriptedModel},
};
use toolstead_infrastructure::{
    builtin::{self, InProcessTools, ToolEnvironment},
    egress::connector::{Connector, SystemNetwork},
    http::client::HttpClient,
    models::{EmbeddingsModel, EmbeddingsSettings, KeySource},
    sandbox::workspace::Workspace,
    system_clock::SystemClock,
};
use toolstead_presentation::composition_root::orchestration;
use uuid::Uuid;

/// A paraphrased task with the tools that do it. The queries were written without knowledge of the ranking.
#[derive(Deserialize)]
struct Query {
    query: String,
    expected: Vec<String>,
}

fn queries() -> Vec<Query> {
    serde_json::from_str(include_str!("queries.json")).unwrap()
}

/// Returns the definitions of all built-in tools.
fn built_in() -> Vec<Arc<Tool>> {
    let world = ToolEnvironment::new(Arc::new(Workspace::closed()), Arc::new(SystemClock), "Toolstead".into());
    let provider = InProcessTools::new(builtin::all(), world).unwrap();
    let orchestration = orchestration();
    let all = provider.definitions().iter().chain(orchestration.definitions());
    let all = all.filter(|tool| !["tool_search", "call_tool"].contains(&tool.name().as_str()));
    all.map(|tool| Arc::new(tool.clone())).collect()
}

/// Prints the recall of a search, and returns that among the first five.
async fn recall(ranking: &str, search: &ToolSearch, tools: &[Arc<Tool>]) -> f64 {
    let queries = queries();
    assert!(queries.len() >= 47);
    let mut ranks: Vec<Option<usize>> = Vec::new();
    for Query { query, expected } in &queries {
        let found = search.search(query, tools).await;
        assert_eq!(found.note, None);
        ranks.push(found.tools.iter().position(|tool| expected.iter().any(|name| name == tool.name().as_str())));
    }
    let share = |at: usize| {
        ranks.iter().filter(|rank| rank.is_some_and(|rank| rank < at)).count() as f64 / queries.len() as f64
    };
    let [first, fifth, tenth] = [1, 5, 10].map(share);
    println!(
        "{ranking}: {} queries over {} tools: recall@1 {first:.2}, recall@5 {fifth:.2}, recall@10 {tenth:.2}",
        queries.len(),
        tools.len()
    );
    fifth
}

#[tokio::test]
async fn word_search_ranks_the_tool_among_the_first_five_for_four_of_five_paraphrased_tasks() {
    let found = recall("words", &ToolSearch::default(), &built_in()).await;
    assert!(found >= 0.80, "{found:.3}");
}

/// Without what only built-in tools have, as the definitions of a server.
#[tokio::test]
async fn word_search_finds_two_thirds_of_tools_without_keywords_and_aliases() {
    let plain = built_in().into_iter().map(|tool| {
        let mut tool = Arc::unwrap_or_clone(tool);
        tool.keywords = "";
        tool.aliases.clear();
        Arc::new(tool)
    });
    let found = recall("words, without keywords and aliases", &ToolSearch::default(), &plain.collect::<Vec<_>>()).await;
    assert!(found >= 0.67, "{found:.3}");
}

/// Measures a real service, at the base URL and with the model of these variables; without them, nothing.
#[tokio::test]
async fn an_embeddings_service_named_in_the_environment_is_measured() {
    let variable = |name| std::env::var(name).ok();
    let (Some(base_url), Some(model)) = (variable("TOOLSTEAD_EMBEDDINGS_URL"), variable("TOOLSTEAD_EMBEDDINGS_MODEL"))
    else {
        return;
    };
    let client = HttpClient::new(Connector::to_configured_hosts(Arc::new(SystemNetwork::default())));
    let settings = EmbeddingsSettings { base_url, model: model.clone(), key: KeySource::None };
    let embeddings = EmbeddingsModel::new(settings, client).unwrap();
    recall(&model, &ToolSearch::with_embeddings(Arc::new(embeddings)), &built_in()).await;
}

/// Returns the tokens of a request, four bytes each.
fn tokens_of(request: &ModelRequest) -> usize {
    let tools = request.tools.iter().map(|tool| {
        json!({"name": tool.name, "description": tool.description, "input_schema": &*tool.input_schema})
            .to_string()
            .len()
    });
    let blocks = request.messages.iter().flat_map(|message| &message.blocks).map(bytes_of);
    (request.system.len() + tools.sum::<usize>() + blocks.sum::<usize>()) / 4
}

fn bytes_of(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::ToolUse(call) => {
            call.name.len()
                + match &call.arguments {
                    ToolArguments::Object(object) => Value::Object(object.clone()).to_string().len(),
                    ToolArguments::Malformed(text) => text.len(),
                }
        }
        Block::ToolResult(result) => result.content.iter().map(bytes_of).sum(),
        _ => 0,
    }
}

/// Returns requests, the tokens of the first list and all tokens until the answer of a task that needs two tools.
async fn run(count: usize, is_deferred: bool) -> (usize, usize, usize) {
    let limit = if is_deferred { 1 } else { 0 };
    let settings = format!("[tools]\nselect = \"mcp__office__*\"\ndefer_above = {limit}\ndefer_above_tokens = 0\n");
    let settings = format!("{settings}[permissions]\nallow = [\"{}\", \"{}\"]\n", name(0), name(11));
    let place = SearchApp::with(&settings, catalogue(count)).await;
    let (first, second) = (name(0), name(11));
    let arguments = |number: u32| json!({"filter": "overdue", "limit": number});
    let answers = match is_deferred {
        false => vec![
            ScriptedAnswer::call("c1", &first, arguments(10)),
            ScriptedAnswer::call("c2", &second, arguments(1)),
            ScriptedAnswer::text("Two of the ten invoices are overdue, and a ticket exists for each."),
        ],
        true => vec![
            ScriptedAnswer::call("s1", "tool_search", json!({"query": "list invoices"})),
            ScriptedAnswer::call("c1", "call_tool", json!({"name": first, "arguments": arguments(10)})),
            ScriptedAnswer::call("s2", "tool_search", json!({"query": "create ticket"})),
            ScriptedAnswer::call("c2", "call_tool", json!({"name": second, "arguments": arguments(1)})),
            ScriptedAnswer::text("Two of the ten invoices are overdue, and a ticket exists for each."),
        ],
    };
    let model = Arc::new(ScriptedModel::answering(answers));
    let prompt = "Create a ticket for each overdue invoice.";
    let command = RunAgentCommand::new(ConversationId(Uuid::now_v7()), model.clone(), prompt);
    let mut run = place.running.app.run_agent.start(command);
    while run.next().await.is_some() {}
    let requests = model.requests();
    let (last, _) = (requests.last().unwrap(), assert_eq!(model.left(), 0));
    let results: Vec<&Block> = last.messages.iter().flat_map(|message| &message.blocks).collect();
    assert!(format!("{results:?}").contains(&format!("result of {second}")), "{results:?}");
    let mut list = requests[0].clone();
    list.messages.clear();
    let figures = (requests.len(), tokens_of(&list), requests.iter().map(tokens_of).sum());
    place.close().await;
    figures
}

#[tokio::test]
async fn deferral_costs_requests_and_saves_tokens_where_there_are_many_tools() {
    let mut table = String::from(
        "| tools | list, whole | list, deferred | requests, whole | requests, deferred | tokens, whole | tokens, deferred |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for count in [20, 50, 100, 200, 500] {
        let (whole, deferred) = (run(count, false).await, run(count, true).await);
        writeln!(
            table,
            "| {count} | {} | {} | {} | {} | {} | {} |",
            whole.1, deferred.1, whole.0, deferred.0, whole.2, deferred.2
        )
        .unwrap();
        assert!(count < 200 || deferred.2 < whole.2, "{table}");
    }
    println!("{table}");
    assert_figures("docs/reference/performance.md", &table);
}

/// Checks that a page has this table, with figures that are at most a tenth off.
fn assert_figures(page: &str, table: &str) {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page)).unwrap();
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    for row in table.lines().skip(2) {
        let measured = cells(row);
        let close = |written: &[String]| {
            written.len() == measured.len()
                && written.iter().zip(&measured).all(|(one, other)| match (one.parse::<f64>(), other.parse::<f64>()) {
                    (Ok(one), Ok(other)) => (one - other).abs() <= other / 10.0,
                    _ => one == other,
                })
        };
        assert!(page.lines().map(cells).any(|written| close(&written)), "the page has no row like `{row}`\n{table}");
    }
}
