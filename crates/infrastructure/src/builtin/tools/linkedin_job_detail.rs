//! The tool `linkedin_job_detail`.

use crate::{
    builtin::tool_kit::{
        built_in_tool::BuiltInTool,
        foreign_answer::{foreign_answer, foreign_output_schema},
        tool_context::ToolContext,
        tool_environment::ToolEnvironment,
    },
    services::linkedin::{GuestPageClient, Job, JobAttribute, JobId, LinkedinSettings, RateLimiter},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};
use toolstead_domain::{
    Access, Availability, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
};

/// Tool that reads one job at LinkedIn.
pub(crate) struct LinkedinJobDetail;

/// Timeout of a call, including the pauses that LinkedIn requires.
const TIME: Duration = Duration::from_secs(60);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The address of the job at LinkedIn.
    #[schemars(length(min = 1, max = 2_000))]
    #[schemars(extend("x-advertised" = "Its address."))]
    url: Option<String>,
    /// Its number, instead of `url`.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-advertised" = "Or its number."))]
    job_id: Option<u64>,
}

impl Input {
    /// Returns the number of the requested job; fails unless exactly one of `url` and `job_id` is given and valid.
    fn job(&self) -> Result<JobId, ToolFailure> {
        let named = match (&self.url, self.job_id) {
            (Some(url), None) => Some(JobId::parse(url)?),
            (None, Some(number)) => JobId::of_number(number),
            _ => None,
        };
        let message = "exactly one of `url` and `job_id` is required";
        named.ok_or_else(|| ToolFailure::new(ErrorKind::InvalidInput, message))
    }
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// The number of the job.
    id: String,
    /// Its web page.
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    company: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    company_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    /// As the page says, like "1 day ago".
    #[serde(skip_serializing_if = "Option::is_none")]
    posted: Option<String>,
    /// As the page says, like "Over 200 applicants".
    #[serde(skip_serializing_if = "Option::is_none")]
    applicants: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    salary: Option<String>,
    /// Facts by their labels: "Seniority level", "Employment type", "Job function", "Industries".
    criteria: BTreeMap<String, String>,
    description: String,
}

impl BuiltInTool for LinkedinJobDetail {
    const NAME: &str = "linkedin_job_detail";
    const TITLE: &str = "Read a job at LinkedIn";
    const DESCRIPTION: &str = "Reads one job at LinkedIn in full, from its public page: title, company, place, day, number of \
                               applicants, salary if given, seniority, employment, function, industries, and the \
                               description as text. `linkedin_jobs` finds jobs.";
    const BRIEF: &str = "Reads a job at LinkedIn in full.";
    const CATEGORY: Category = Category::Web;
    const TAGS: &[&str] = &["jobs"];
    const KEYWORDS: &str = "career employer position posting vacancy";
    const ANNOTATIONS: ToolAnnotations =
        ToolAnnotations { idempotent_hint: Some(false), open_world_hint: Some(true), ..ToolAnnotations::READ_ONLY };
    const EXAMPLE: &str = r#"{"url": "https://www.linkedin.com/jobs/view/4000000001"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(foreign_output_schema::<Output>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        match &world.web().services().linkedin {
            Ok(_) => Availability::Available,
            Err(reason) => Availability::Unavailable(reason.clone()),
        }
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        input.job()?;
        let host = settings(world)?.base_url.host_str().unwrap_or_default();
        Ok(vec![Access::ReachHost(host.into())])
    }

    fn requested_time(&self, _: &Input) -> Option<Duration> {
        Some(TIME)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let id = input.job()?;
        let pages = GuestPageClient {
            reach: run.environment().web().client(),
            helpers: run.environment().processes().helpers(),
            settings: settings(run.environment())?,
            pace: RateLimiter::of_process(),
            judge: &|host| run.check_host(host),
            deadline: run.deadline(),
        };
        let Job { title, company, company_url, location, posted, applicants, salary, criteria, description } =
            pages.job(id).await?;
        let text = text(
            &[
                ("Title", title.as_ref()),
                ("Company", company.as_ref()),
                ("Location", location.as_ref()),
                ("Posted", posted.as_ref()),
                ("Applicants", applicants.as_ref()),
                ("Salary", salary.as_ref()),
            ],
            &criteria,
            &id.page(),
            &description,
        );
        let output = Output {
            id: id.to_string(),
            url: id.page(),
            title,
            company,
            company_url,
            location,
            posted,
            applicants,
            salary,
            criteria: criteria.into_iter().map(|one| (one.label, one.text)).collect(),
            description,
        };
        foreign_answer(text, &output, 0)
    }
}

fn settings(world: &ToolEnvironment) -> Result<&LinkedinSettings, ToolFailure> {
    world.web().services().linkedin.as_ref().map_err(|reason| ToolFailure::new(ErrorKind::Unavailable, reason.clone()))
}

fn text(facts: &[(&str, Option<&String>)], criteria: &[JobAttribute], url: &str, description: &str) -> String {
    let facts = facts.iter().filter_map(|(label, fact)| Some(format!("{label}: {}", (*fact)?)));
    let criteria = criteria.iter().map(|one| format!("{}: {}", one.label, one.text));
    let head: Vec<String> = facts.chain(criteria).chain([format!("URL: {url}")]).collect();
    format!("{}\n\n{description}", head.join("\n"))
}
