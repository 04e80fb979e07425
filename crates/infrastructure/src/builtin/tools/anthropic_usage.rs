//! The tool `anthropic_usage`.

use crate::{
    builtin::tool_kit::{
        answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
        tool_environment::ToolEnvironment,
    },
    services::{
        anthropic_admin::{
            AdminApi,
            report::{ReportKind, ReportQuery, ReportRequest},
            totals::totals,
        },
        settings::AnthropicAdminSettings,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    time::{Duration, Instant},
};
use toolstead_domain::{
    Access, Availability, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
};

/// Tool that reports usage and cost of an organisation at Anthropic.
pub(crate) struct AnthropicUsage;

/// Time per page of a report; `LONGEST` limits the total.
const TIME: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(300);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Tokens, cost, or Claude Code activity.
    #[schemars(extend("x-advertised" = ""))]
    action: Report,
    /// The beginning: a time like "2026-01-31T00:00:00Z" or a day; for `claude_code` the one day (UTC).
    #[schemars(length(max = 40))]
    #[schemars(extend("x-advertised" = "Time or day; for `claude_code` the one day."))]
    starting_at: String,
    /// The end (exclusive). Not for `claude_code`.
    #[schemars(length(max = 40))]
    #[schemars(extend("x-advertised" = ""))]
    ending_at: Option<String>,
    /// The length of a bucket; `cost` has only days, `claude_code` none.
    #[schemars(extend("x-advertised" = ""))]
    bucket_width: Option<BucketWidth>,
    /// Fields to group by. `usage`: account_id, api_key_id, context_window, inference_geo, model, service_account_id,
    /// service_tier, speed, workspace_id; `cost`: workspace_id, description.
    #[serde(default)]
    #[schemars(length(max = 9))]
    #[schemars(extend("x-advertised" = "Like model, workspace_id; for `cost` description."))]
    group_by: Vec<String>,
    /// Filters for `usage`, as lists by name: models, workspace_ids, api_key_ids, account_ids, service_account_ids,
    /// service_tiers, context_window, inference_geos, speeds.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    filters: BTreeMap<String, Vec<String>>,
    /// Buckets or records per page.
    #[schemars(range(min = 1, max = 1_440))]
    #[schemars(extend("x-advertised" = false))]
    limit: Option<u32>,
    /// The page to begin with: `next_page` of an earlier answer.
    #[schemars(length(min = 1, max = 4_000))]
    #[schemars(extend("x-advertised" = ""))]
    page: Option<String>,
    /// Maximum number of pages to read.
    #[serde(default = "one_page")]
    #[schemars(range(min = 1, max = 50))]
    #[schemars(extend("x-advertised" = ""))]
    max_pages: usize,
}

fn one_page() -> usize {
    1
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Report {
    Usage,
    Cost,
    ClaudeCode,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
enum BucketWidth {
    #[serde(rename = "1m")]
    Minute,
    #[serde(rename = "1h")]
    Hour,
    #[serde(rename = "1d")]
    Day,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    action: &'static str,
    /// Buckets or records as the API gives them; each item of a cost has `amount_usd` beside `amount`, which is in cents.
    data: Vec<Map<String, Value>>,
    /// The sums of `data`; money as exact decimal text, `amount` in cents.
    totals: Map<String, Value>,
    /// Number of pages read.
    pages: usize,
    /// The next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page: Option<String>,
}

impl BuiltInTool for AnthropicUsage {
    const NAME: &str = "anthropic_usage";
    const TITLE: &str = "Usage at Anthropic";
    const DESCRIPTION: &str = "Reports an organisation's usage at Anthropic: tokens (`usage`), money (`cost`, with \
         exact `amount_usd`; without priority tier) or a day of Claude Code activity (`claude_code`), with totals. \
         Reports are paged: `max_pages` reads several pages at once, `page` continues. Usage and cost are some \
         minutes old, Claude Code an hour.";
    const BRIEF: &str = "Reports usage, cost or Claude Code activity at Anthropic.";
    const CATEGORY: Category = Category::Web;
    const TAGS: &[&str] = &["anthropic", "cost", "usage"];
    const KEYWORDS: &str = "account bill billing budget claude consumption expense price spending statistics";
    const ANNOTATIONS: ToolAnnotations =
        ToolAnnotations { idempotent_hint: Some(false), open_world_hint: Some(true), ..ToolAnnotations::READ_ONLY };
    const EXAMPLE: &str =
        r#"{"action": "cost", "starting_at": "2026-01-01", "group_by": ["description"], "max_pages": 5}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        match &world.web().services().anthropic_admin {
            Ok(_) => Availability::Available,
            Err(reason) => Availability::Unavailable(reason.clone()),
        }
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        // The user is not asked to approve an invalid report.
        query(input)?;
        let host = settings(world)?.base_url.host_str();
        Ok(host.map(|host| Access::ReachHost(host.into())).into_iter().collect())
    }

    fn requested_time(&self, input: &Input) -> Option<Duration> {
        Some(TIME.saturating_mul(u32::try_from(input.max_pages).unwrap_or(u32::MAX)).min(LONGEST))
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let query = query(&input)?;
        let judge = |host: &str| run.check_host(host);
        let deadline = run.deadline().min(Instant::now() + LONGEST);
        let (settings, reach) = (settings(run.environment())?, run.environment().web().client());
        let api = AdminApi { settings, reach, judge: &judge, deadline };
        let mut report = api.report(&query, input.max_pages).await?;
        let totals = totals(query.action, &mut report.data).map_err(|error| {
            let message = format!("Anthropic's Admin API returned an amount that cannot be added: {error}");
            ToolFailure::new(ErrorKind::UpstreamProtocol, message)
        })?;
        let object = |value| match value {
            Value::Object(members) => Some(members),
            _ => None,
        };
        let data = report.data.into_iter().filter_map(object).collect();
        let (pages, next_page) = (report.pages, report.next_page);
        let output = Output { action: query.action.word(), data, totals, pages, next_page };
        answer(shown(&output), &output)
    }
}

fn settings(world: &ToolEnvironment) -> Result<&AnthropicAdminSettings, ToolFailure> {
    let settings = world.web().services().anthropic_admin.as_ref();
    settings.map_err(|reason| ToolFailure::new(ErrorKind::Unavailable, reason.clone()))
}

/// Returns the query for the requested report.
fn query(input: &Input) -> Result<ReportQuery, ToolFailure> {
    let action = match input.action {
        Report::Usage => ReportKind::Usage,
        Report::Cost => ReportKind::Cost,
        Report::ClaudeCode => ReportKind::ClaudeCode,
    };
    let width = |width| match width {
        BucketWidth::Minute => "1m",
        BucketWidth::Hour => "1h",
        BucketWidth::Day => "1d",
    };
    let wish = ReportRequest {
        starting_at: input.starting_at.clone(),
        ending_at: input.ending_at.clone(),
        bucket_width: input.bucket_width.map(|given| width(given).to_owned()),
        group_by: input.group_by.clone(),
        filters: input.filters.clone(),
        limit: input.limit,
        page: input.page.clone(),
    };
    action.query(&wish).map_err(|error| ToolFailure::new(ErrorKind::InvalidInput, error.to_string()))
}

/// Formats the report for a model: the totals, then one bucket or record per line.
fn shown(output: &Output) -> String {
    let totals: Vec<String> = output
        .totals
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name} {text}"),
            other => format!("{name} {other}"),
        })
        .collect();
    let mut text = format!("Totals: {}", totals.join(", "));
    for item in &output.data {
        // Writing to a string does not fail, and a JSON object can always be written as JSON.
        let _ = write!(text, "\n{}", serde_json::to_string(item).unwrap_or_default());
    }
    if output.data.is_empty() {
        text.push_str("\nThere is no data for this period.");
    }
    if let Some(next) = &output.next_page {
        let _ = write!(text, "\n[There is more: the totals cover only these pages; continue with `page` {next:?}]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        builtin::{
            tool_kit::{provider::InProcessTools, testing::ToolTestHarness},
            tools::all,
        },
        services::settings::ServiceSettings,
        web::testing::{Reply, TestServer},
    };
    use serde_json::json;
    use std::{path::Path, sync::Arc};
    use toolstead_domain::{Effect, Secret};

    fn run_in(folder: &Path, server: &TestServer) -> ToolTestHarness {
        let admin = AnthropicAdminSettings { base_url: server.url(""), key: Secret::new("sk-ant-admin-1") };
        let mut run = ToolTestHarness::of_tools(all(), folder);
        let services = ServiceSettings { anthropic_admin: Ok(admin), ..ServiceSettings::default() };
        run.world = run.world.clone().with_services(Arc::new(services));
        run.tools = InProcessTools::new(all(), run.world.clone()).unwrap();
        run
    }

    /// Returns the structured result and the text of a call that the API answers with `data`.
    async fn answer_of(arguments: Value, data: Value) -> (Value, String) {
        let folder = tempfile::tempdir().unwrap();
        let answer = json!({"data": data, "has_more": true, "next_page": "page_2"});
        let server = TestServer::plain(move |_| Reply::json(&answer)).await;
        let run = run_in(folder.path(), &server);
        let result = run.call("anthropic_usage", arguments).await.unwrap();
        assert_eq!(run.approval_requests(), [Access::ReachHost("127.0.0.1".into())]);
        (result.structured_content().unwrap().clone(), result.joined_text())
    }

    #[tokio::test]
    async fn a_cost_is_reported_exactly_in_dollars_and_in_cents() {
        let item =
            |amount: &str, currency: &str| json!({"amount": amount, "currency": currency, "cost_type": "tokens"});
        let small: Vec<Value> = (0..1_000).map(|_| item("0.3", "USD")).collect();
        let data = json!([{"starting_at": "a", "results": small}, {"starting_at": "b", "results": [item("123.45", "USD"), item("7", "EUR")]}]);
        let (outcome, text) = answer_of(json!({"action": "cost", "starting_at": "2026-01-01"}), data).await;
        assert_eq!(
            outcome["totals"],
            json!({"amount": "423.45", "amount_usd": "4.2345", "items_in_other_currencies": 1})
        );
        let results = &outcome["data"][1]["results"];
        assert_eq!(
            results[0].to_string(),
            r#"{"amount":"123.45","amount_usd":"1.2345","currency":"USD","cost_type":"tokens"}"#
        );
        assert_eq!((&results[1]["amount"], results[1].get("amount_usd")), (&json!("7"), None));
        assert_eq!((&outcome["next_page"], &outcome["pages"]), (&json!("page_2"), &json!(1)));
        assert!(text.starts_with("Totals: amount 423.45, amount_usd 4.2345,"), "{text}");
        assert!(text.ends_with("continue with `page` \"page_2\"]"), "{text}");
    }

    #[tokio::test]
    async fn usage_and_claude_code_reports_include_totals() {
        let usage = json!([{"starting_at": "a", "results": [
            {"uncached_input_tokens": 1500, "cache_creation": {"ephemeral_1h_input_tokens": 1000, "ephemeral_5m_input_tokens": 500},
             "cache_read_input_tokens": 200, "output_tokens": 500, "server_tool_use": {"web_search_requests": 10}, "model": null},
            {"uncached_input_tokens": 1, "output_tokens": 2}]}, {"starting_at": "b", "results": []}]);
        let (report, _) = answer_of(json!({"action": "usage", "starting_at": "2026-01-01"}), usage.clone()).await;
        assert_eq!(
            report["totals"],
            json!({"uncached_input_tokens": 1501, "ephemeral_1h_input_tokens": 1000, "ephemeral_5m_input_tokens": 500,
                "cache_read_input_tokens": 200, "output_tokens": 502, "web_search_requests": 10})
        );
        assert_eq!(report["data"], usage);
        let record = json!({"date": "a", "actor": {"type": "api_actor", "api_key_name": "ci"},
            "core_metrics": {"num_sessions": 5, "lines_of_code": {"added": 10, "removed": 4}, "commits_by_claude_code": 2, "pull_requests_by_claude_code": 1},
            "model_breakdown": [{"model": "m", "tokens": {"input": 1, "output": 2, "cache_read": 3, "cache_creation": 4},
                "estimated_cost": {"currency": "USD", "amount": 1025.5}}]});
        let data = json!([record, record]);
        let (report, _) = answer_of(json!({"action": "claude_code", "starting_at": "2026-01-01"}), data.clone()).await;
        assert_eq!(
            report["totals"],
            json!({"num_sessions": 10, "lines_added": 20, "lines_removed": 8, "commits_by_claude_code": 4,
                "pull_requests_by_claude_code": 2, "input": 2, "output": 4, "cache_read": 6, "cache_creation": 8,
                "amount": "2051.0", "amount_usd": "20.51"})
        );
        assert_eq!(report["data"], data);
    }

    #[tokio::test]
    async fn invalid_report_arguments_and_denied_hosts_cause_no_request() {
        let folder = tempfile::tempdir().unwrap();
        let server = TestServer::plain(|_| Reply::new(500, "")).await;
        let run = run_in(folder.path(), &server);
        for arguments in [
            json!({"action": "claude_code", "starting_at": "2026-01-01", "ending_at": "2026-01-02"}),
            json!({"action": "cost", "starting_at": "2026-01-01", "bucket_width": "1h"}),
            json!({"action": "spend", "starting_at": "2026-01-01"}),
            json!({"action": "cost", "starting_at": "2026-01-01", "max_pages": 51}),
            json!({"action": "cost"}),
        ] {
            let failure = run.call("anthropic_usage", arguments.clone()).await.unwrap_err();
            assert_eq!(failure.kind, ErrorKind::InvalidInput, "{arguments}: {}", failure.text());
        }
        assert!(run.approval_requests().is_empty());
        let run = run.with_rule(Effect::Deny, "WebFetch(domain:127.0.0.1)");
        let asked = json!({"action": "cost", "starting_at": "2026-01-01"});
        let failure = run.call("anthropic_usage", asked).await.unwrap_err();
        assert_eq!((failure.kind, server.requests().len()), (ErrorKind::PermissionDenied, 0));
    }

    #[tokio::test]
    async fn a_non_numeric_amount_is_an_error_and_not_zero() {
        let folder = tempfile::tempdir().unwrap();
        let answer = json!({"data": [{"results": [{"amount": "a lot", "currency": "USD"}]}], "has_more": false});
        let server = TestServer::plain(move |_| Reply::json(&answer)).await;
        let asked = json!({"action": "cost", "starting_at": "2026-01-01"});
        let failure = run_in(folder.path(), &server).call("anthropic_usage", asked).await.unwrap_err();
        assert!(
            failure.kind == ErrorKind::UpstreamProtocol && failure.text().contains("`a lot`"),
            "{}",
            failure.text()
        );
    }

    #[test]
    fn the_usage_tool_is_unavailable_without_a_configured_service() {
        let folder = tempfile::tempdir().unwrap();
        let run = ToolTestHarness::of_tools(all(), folder.path());
        let availability = run.definition("anthropic_usage").availability.clone();
        assert_eq!(availability, Availability::Unavailable("this program has no such service".into()));
    }
}
