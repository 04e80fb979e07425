//! Answers of the tools for the web.

use serde_json::{Value, json};
use toolstead_domain::alias::face::{Answered, Said};

/// What was found, as titles and addresses; and that sources are to be named.
pub(super) fn searched(answered: &Answered<'_>) -> Option<Said> {
    if answered.error_kind().is_some() {
        return None;
    }
    let query = answered.member("query")?.as_str()?;
    let links: Vec<Value> = answered
        .member("results")?
        .as_array()?
        .iter()
        .map(|hit| json!({"title": hit.get("title"), "url": hit.get("url")}))
        .collect();
    let found = match links.is_empty() {
        true => "No links found.".to_owned(),
        false => format!(
            "Links: {}\n\nREMINDER: End your answer with a list \"Sources:\" of those that you use, as Markdown links.",
            Value::Array(links.clone())
        ),
    };
    let text = format!("Web search results for query: \"{query}\"\n\n{found}");
    Some(Said::text(text).with_structured(json!({"query": query, "results": links})))
}
