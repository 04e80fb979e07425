//! Recall over tools of MCP servers, which have no keywords.

use super::*;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A definition of the scanner's evaluation, whose author knew neither the search nor these queries.
#[derive(Deserialize)]
struct Sample {
    kind: String,
    server: String,
    tool: Map<String, Value>,
}

/// A paraphrased task with the tools that do it, written before the search had synonyms.
#[derive(Deserialize)]
struct Query {
    query: String,
    expected: Vec<String>,
}

fn catalogue() -> Vec<Arc<Tool>> {
    let text = include_str!("../../../../../tests/fixtures/definitions/independent.json");
    let samples: Vec<Sample> = serde_json::from_str(text).unwrap();
    let benign = samples.into_iter().filter(|sample| sample.kind == "benign");
    let tools = benign.map(|sample| {
        let server = ServerName::parse(&sample.server).unwrap();
        let tool = sample.tool["name"].as_str().unwrap().to_owned();
        let name = ToolName::for_upstream(&server, &tool);
        Arc::new(Tool::new(name, sample.tool, Category::Mcp, ToolSource::McpServer { server, tool: tool.into() }))
    });
    tools.collect()
}

#[tokio::test]
async fn words_find_tools_of_servers_by_paraphrased_tasks() {
    let queries: Vec<Query> =
        serde_json::from_str(include_str!("../../../../../tests/fixtures/tool_search_queries.json")).unwrap();
    let tools = catalogue();
    let mut ranks = Vec::new();
    for Query { query, expected } in &queries {
        assert!(expected.iter().all(|name| tools.iter().any(|tool| tool.name().as_str() == name)), "{expected:?}");
        let found = ToolSearch::default().search(query, &tools).await;
        ranks.push(names(&found).iter().position(|name| expected.iter().any(|one| one == name)));
    }
    let share = |at: usize| ranks.iter().flatten().filter(|rank| **rank < at).count() as f64 / queries.len() as f64;
    // The figures in docs/reference/performance.md.
    assert_eq!([1, 5, 10].map(|at| format!("{:.2}", share(at))), ["0.50", "0.73", "0.83"]);
}
