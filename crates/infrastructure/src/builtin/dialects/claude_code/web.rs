//! Results of fetching and searching the web in the format of Claude Code.

use crate::builtin::dialects::{
    caller_text::with_members,
    web_page::{content, remark},
};
use http::StatusCode;
use serde_json::{Value, json};
use toolstead_domain::{AdaptedResult, AdapterInput};

/// Returns the answer of the model, the page, or for a redirect to another host an instruction, with the members that
/// Claude Code's clients use. `None` if the call failed, or the result is not only text.
pub(super) fn fetched(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() || !answered.is_text_alone() {
        return None;
    }
    let member = |name: &str| answered.member(name);
    let text = |name: &str| member(name).and_then(Value::as_str);
    let code = member("status").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok())?;
    let status = StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason()).unwrap_or_default();
    let (result, beside) = match (text("redirect_to"), member("processed").is_some_and(|made| made == "extracted")) {
        (Some(to), _) => (moved(answered, to, &format!("{code} {status}")), None),
        (None, true) => (content(answered)?.to_owned(), remark(answered)),
        // The page between its marked lines.
        (None, false) => (answered.text().into_owned(), None),
    };
    let members = json!({
        "bytes": member("bytes"),
        "code": code,
        "codeText": status,
        "result": result,
        "durationMs": member("duration_ms"),
        "url": text("url"),
    });
    Some(with_members(answered, AdaptedResult::text(result).with_extra_block(beside), members))
}

fn moved(answered: &AdapterInput<'_>, to: &str, status: &str) -> String {
    let given = |name: &str| answered.text_argument(name).unwrap_or_default();
    let next = json!({"url": to, "prompt": given("prompt")});
    format!(
        "REDIRECT DETECTED: The URL redirects to a different host.\n\nOriginal URL: {}\nRedirect URL: {to}\nStatus: \
         {status}\n\nNothing was fetched from there. To go on, call WebFetch again with {next}",
        given("url")
    )
}

/// Returns the hits as titles and addresses, and an instruction to name them as sources.
pub(super) fn searched(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
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
    Some(AdaptedResult::text(text).with_structured(json!({"query": query, "results": links})))
}
