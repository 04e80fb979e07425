//! The tool `linkedin_jobs`.

use crate::{
    builtin::tool_kit::{
        built_in_tool::BuiltInTool,
        foreign_answer::{foreign_answer, foreign_output_schema},
        tool_context::ToolContext,
        tool_environment::ToolEnvironment,
    },
    services::linkedin::{
        EXPERIENCE, FoundJobs, GuestPageClient, JOB_TYPE, JobCard, JobQuery, LinkedinSettings, POSTED, RateLimiter,
        SORTING, SearchFilterDefinition, WORKPLACE,
    },
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use toolstead_domain::{
    Access, Availability, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
};

/// Tool that searches the guest pages of LinkedIn for jobs.
pub(crate) struct LinkedinJobs;

/// Time allowed per page of results, including the pause before it.
const TIME_OF_PAGE: Duration = Duration::from_secs(5);
/// Additional time for pauses that LinkedIn requires.
const TIME_TO_WAIT: Duration = Duration::from_secs(60);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Words to look for, like "rust engineer".
    #[schemars(length(min = 1, max = 500))]
    #[schemars(extend("x-advertised" = ""))]
    keyword: String,
    /// City, region or country.
    #[schemars(length(min = 1, max = 200))]
    #[schemars(extend("x-advertised" = ""))]
    location: Option<String>,
    /// Only jobs that were posted within this time.
    #[serde(default)]
    #[schemars(schema_with = "posted")]
    #[schemars(extend("x-advertised" = ""))]
    date_posted: Option<String>,
    /// Only these employment types.
    #[serde(default)]
    #[schemars(schema_with = "job_types")]
    #[schemars(extend("x-advertised" = ""))]
    job_type: Vec<String>,
    /// Only these workplace types.
    #[serde(default)]
    #[schemars(schema_with = "workplaces")]
    #[schemars(extend("x-advertised" = ""))]
    remote: Vec<String>,
    /// Only these experience levels.
    #[serde(default)]
    #[schemars(schema_with = "experiences")]
    #[schemars(extend("x-advertised" = ""))]
    experience: Vec<String>,
    /// Maximum jobs.
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = 100))]
    #[schemars(extend("x-advertised" = ""))]
    limit: usize,
    /// The order of the jobs.
    #[serde(default)]
    #[schemars(schema_with = "orders")]
    #[schemars(extend("x-advertised" = false))]
    sort_by: Option<String>,
    /// Number of jobs to skip: `next_start` of the previous call.
    #[serde(default)]
    #[schemars(range(max = 999))]
    #[schemars(extend("x-advertised" = ""))]
    start: usize,
}

fn usual_limit() -> usize {
    10
}

fn one_of(filter: &SearchFilterDefinition) -> Schema {
    json_schema!({"type": "string", "enum": filter.words().collect::<Vec<_>>()})
}

fn some_of(filter: &SearchFilterDefinition) -> Schema {
    json_schema!({"type": "array", "items": one_of(filter), "default": []})
}

fn posted(_: &mut SchemaGenerator) -> Schema {
    one_of(&POSTED)
}

fn job_types(_: &mut SchemaGenerator) -> Schema {
    some_of(&JOB_TYPE)
}

fn workplaces(_: &mut SchemaGenerator) -> Schema {
    some_of(&WORKPLACE)
}

fn experiences(_: &mut SchemaGenerator) -> Schema {
    some_of(&EXPERIENCE)
}

fn orders(_: &mut SchemaGenerator) -> Schema {
    one_of(&SORTING)
}

#[derive(Serialize, JsonSchema)]
struct Output {
    jobs: Vec<JobSummary>,
    /// `start` of the next call; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_start: Option<usize>,
    /// Further remarks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct JobSummary {
    /// The number of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    company: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    company_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    /// As the page says, like "1 day ago".
    #[serde(skip_serializing_if = "Option::is_none")]
    posted: Option<String>,
    /// The day, like "2026-01-04".
    #[serde(skip_serializing_if = "Option::is_none")]
    posted_date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    salary: Option<String>,
    /// Its web page.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl From<JobCard> for JobSummary {
    fn from(card: JobCard) -> Self {
        let JobCard { id, title, company, company_url, location, posted, posted_date, salary, url } = card;
        Self { id, title, company, company_url, location, posted, posted_date, salary, url }
    }
}

impl BuiltInTool for LinkedinJobs {
    const NAME: &str = "linkedin_jobs";
    const TITLE: &str = "Search jobs at LinkedIn";
    const DESCRIPTION: &str = "Searches LinkedIn's public pages for jobs, and returns title, company, \
                               place, day, salary if given, and address of each. Pages of ten are slow, one a \
                               second; `linkedin_job_detail` reads one job in full. LinkedIn may ignore the filter \
                               `remote`: jobs with another workplace are left out, and the result has the number of \
                               jobs with none.";
    const BRIEF: &str = "Searches LinkedIn for jobs.";
    const CATEGORY: Category = Category::Web;
    const TAGS: &[&str] = &["jobs", "search"];
    const KEYWORDS: &str = "career employer hiring position posting recruiting vacancy";
    const ANNOTATIONS: ToolAnnotations =
        ToolAnnotations { idempotent_hint: Some(false), open_world_hint: Some(true), ..ToolAnnotations::READ_ONLY };
    const EXAMPLE: &str = r#"{"keyword": "rust engineer", "location": "Berlin", "date_posted": "past_week", "remote": ["remote", "hybrid"]}"#;
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

    async fn accesses(&self, _: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        let host = settings(world)?.base_url.host_str().unwrap_or_default();
        Ok(vec![Access::ReachHost(host.into())])
    }

    fn requested_time(&self, input: &Input) -> Option<Duration> {
        let pages = u32::try_from(input.limit.div_ceil(10) + 1).ok()?;
        Some(TIME_TO_WAIT + TIME_OF_PAGE * pages)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let pages = GuestPageClient {
            reach: run.environment().web().client(),
            helpers: run.environment().processes().helpers(),
            settings: settings(run.environment())?,
            pace: RateLimiter::of_process(),
            judge: &|host| run.check_host(host),
            deadline: run.deadline(),
        };
        let query = JobQuery {
            keyword: input.keyword,
            location: input.location,
            posted: input.date_posted.into_iter().collect(),
            job_type: input.job_type,
            workplace: input.remote,
            experience: input.experience,
            sort_by: input.sort_by.into_iter().collect(),
            limit: input.limit,
            start: input.start,
        };
        let FoundJobs { jobs, next_start, notes } = pages.jobs(&query).await?;
        let output = Output { jobs: jobs.into_iter().map(Into::into).collect(), next_start, notes };
        foreign_answer(text(&output, query.start), &output, 0)
    }
}

fn settings(world: &ToolEnvironment) -> Result<&LinkedinSettings, ToolFailure> {
    world.web().services().linkedin.as_ref().map_err(|reason| ToolFailure::new(ErrorKind::Unavailable, reason.clone()))
}

fn text(output: &Output, start: usize) -> String {
    let mut blocks: Vec<String> = output.jobs.iter().enumerate().map(|(at, job)| block(start + at + 1, job)).collect();
    if blocks.is_empty() {
        blocks.push(if start == 0 { "No job matches." } else { "No further job matches." }.into());
    }
    blocks.extend(output.notes.iter().cloned());
    blocks.extend(output.next_start.map(|next| format!("There may be more: continue with `start` {next}.")));
    blocks.join("\n\n")
}

fn block(number: usize, job: &JobSummary) -> String {
    let mut lines = vec![format!("{number}. {}", job.title)];
    let posted = match (&job.posted, &job.posted_date) {
        (Some(words), Some(day)) => Some(format!("{words} ({day})")),
        (words, day) => words.clone().or(day.clone()),
    };
    let facts = [
        ("Company", job.company.clone()),
        ("Location", job.location.clone()),
        ("Posted", posted),
        ("Salary", job.salary.clone()),
        ("Id", job.id.clone()),
        ("URL", job.url.clone()),
    ];
    lines.extend(facts.into_iter().filter_map(|(label, fact)| Some(format!("   {label}: {}", fact?))));
    lines.join("\n")
}
