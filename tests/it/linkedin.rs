//! Jobs at LinkedIn, through the binary: fake guest pages over HTTP, in the shape of the real ones, and the literal calls
//! of Micro-X.

use crate::{
    binaries::{Home, Pipe, stderr, stdout},
    web_server::{Reply, TestServer},
};
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use toolstead_infrastructure::web::testing::ReceivedRequest;

const SEARCH: &str = "/jobs-guest/jobs/api/seeMoreJobPostings/search";

/// A card of a list.
fn card(id: usize) -> String {
    format!(
        r##"<li>
  <div class="base-card relative base-card--link base-search-card base-search-card--link job-search-card" data-entity-urn="urn:li:jobPosting:{id}">
    <a class="base-card__full-link absolute" href="https://de.linkedin.com/jobs/view/rust-engineer-at-acme-{id}?position=1&amp;pageNum=0&amp;refId=abc"><span class="sr-only">Rust Engineer</span></a>
    <div class="base-search-card__info">
      <h3 class="base-search-card__title"> Rust Engineer {id} </h3>
      <h4 class="base-search-card__subtitle"><a class="hidden-nested-link" href="https://de.linkedin.com/company/acme?trk=x">Acme &amp; Co</a></h4>
      <div class="base-search-card__metadata">
        <span class="job-search-card__location">Berlin, Germany</span>
        <time class="job-search-card__listdate" datetime="2026-01-04">1 day ago</time>
      </div></div></div>
</li>
"##
    )
}

fn cards(ids: RangeInclusive<usize>) -> String {
    ids.map(card).collect()
}

/// A job on the page of its own.
const JOB: &str = r##"<section class="top-card-layout">
  <h2 class="top-card-layout__title topcard__title">Rust Engineer</h2>
  <h4 class="top-card-layout__second-subline">
    <span class="topcard__flavor"><a class="topcard__org-name-link topcard__flavor--black-link" href="#">Acme</a></span>
    <span class="topcard__flavor topcard__flavor--bullet">Berlin, Germany</span>
    <span class="posted-time-ago__text topcard__flavor--metadata">1 day ago</span>
    <figcaption class="num-applicants__caption">Over 200 applicants</figcaption></h4></section>
<div class="salary compensation__salary">€70,000/yr</div>
<div class="description__text description__text--rich"><section class="show-more-less-html"><div class="show-more-less-html__markup"><p>We build Rust.</p></div></section></div>
<ul class="description__job-criteria-list"><li class="description__job-criteria-item"><h3 class="description__job-criteria-subheader">Seniority level</h3><span class="description__job-criteria-text description__job-criteria-text--criteria">Mid-Senior level</span></li></ul>"##;

/// Starts a fake LinkedIn with this number of jobs, in pages of ten.
async fn linkedin(jobs: usize) -> TestServer {
    TestServer::plain(move |seen: &ReceivedRequest| match seen.path() {
        SEARCH => {
            let start: usize = seen.query("start").unwrap().parse().unwrap();
            Reply::html(cards(start + 1..=jobs.min(start + 10)))
        }
        "/jobs-guest/jobs/api/jobPosting/4000000001" => Reply::html(JOB),
        "/jobs-guest/jobs/api/jobPosting/8" => Reply::html("<h1>A page of another kind, with words for a person</h1>"),
        _ => Reply::new(404, ""),
    })
    .await
}

/// A program that asks there, over MCP.
struct Client {
    /// Removed with it.
    _home: Home,
    pipe: Pipe,
}

impl Client {
    fn of(server: &TestServer, dialect: &str, rules: &str) -> Self {
        let home = Home::new();
        let url = server.url("/").to_string();
        let config = home.config(&format!("{rules}\n[linkedin]\nenabled = true\nbase_url = {url:?}\n"));
        let mut command = home.toolstead(&["--config", config.to_str().unwrap(), "mcp"]);
        if !dialect.is_empty() {
            command.args(["--dialect", dialect]);
        }
        let mut pipe = Pipe::start(command);
        pipe.initialize();
        Self { _home: home, pipe }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.pipe.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string());
        self.pipe.answer(1)["result"].clone()
    }

    fn names(&mut self) -> Vec<String> {
        self.pipe.send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}).to_string());
        let answer = self.pipe.answer(2);
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

const MAY_REACH: &str = "[permissions]\nallow = [\"WebFetch(domain:127.0.0.1)\"]\n";

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

fn kind(result: &Value) -> &str {
    result["_meta"]["toolstead/errorKind"].as_str().unwrap_or_else(|| panic!("{result}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn job_searches_request_pages_with_every_filter_in_the_query() {
    let server = linkedin(12).await;
    tokio::task::block_in_place(|| {
        let mut client = Client::of(&server, "", MAY_REACH);
        let found = client.call(
            "linkedin_jobs",
            json!({
                "keyword": "rust engineer", "location": "Berlin", "date_posted": "past_week",
                "job_type": ["full_time", "contract"], "remote": ["remote", "hybrid"], "experience": "mid_senior",
                "sort_by": "recent", "limit": 11,
            }),
        );
        let message = &found["structuredContent"];
        let ids: Vec<&str> =
            message["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap()).collect();
        assert_eq!(ids, (1..=11).map(|id| id.to_string()).collect::<Vec<_>>(), "{found}");
        assert_eq!(message["next_start"], 11);
        assert_eq!(
            message["jobs"][0],
            json!({
                "id": "1", "title": "Rust Engineer 1", "company": "Acme & Co",
                "company_url": "https://de.linkedin.com/company/acme", "location": "Berlin, Germany",
                "posted": "1 day ago", "posted_date": "2026-01-04", "url": "https://www.linkedin.com/jobs/view/1",
            })
        );
        assert!(text(&found).contains("11 of these jobs do not say"), "{found}");
    });
    let seen = server.requests();
    let starts: Vec<String> = seen.iter().map(|one| one.query("start").unwrap()).collect();
    assert_eq!(starts, ["0", "10"]);
    for one in &seen {
        for (parameter, value) in [
            ("keywords", "rust engineer"),
            ("location", "Berlin"),
            ("f_TPR", "r604800"),
            ("f_JT", "F,C"),
            ("f_WT", "2,3"),
            ("f_E", "4"),
            ("sortBy", "DD"),
        ] {
            assert_eq!(one.query(parameter).as_deref(), Some(value), "{}", one.target);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_read_in_full_by_its_address_or_its_number() {
    let server = linkedin(0).await;
    tokio::task::block_in_place(|| {
        let mut client = Client::of(&server, "", MAY_REACH);
        let expected = json!({
            "id": "4000000001", "url": "https://www.linkedin.com/jobs/view/4000000001", "title": "Rust Engineer",
            "company": "Acme", "location": "Berlin, Germany", "posted": "1 day ago",
            "applicants": "Over 200 applicants", "salary": "€70,000/yr",
            "criteria": {"Seniority level": "Mid-Senior level"}, "description": "We build Rust.",
        });
        let url = "https://de.linkedin.com/jobs/view/rust-engineer-at-acme-4000000001?refId=abc";
        for arguments in [json!({"job_id": 4_000_000_001_u64}), json!({"url": url})] {
            let job = client.call("linkedin_job_detail", arguments);
            assert_eq!(job["structuredContent"], expected, "{job}");
        }
        let missing = client.call("linkedin_job_detail", json!({"job_id": "7"}));
        assert_eq!(kind(&missing), "not_found", "{missing}");
    });
    assert!(server.requests().iter().all(|one| one.path().starts_with("/jobs-guest/jobs/api/jobPosting/")));
}

#[tokio::test(flavor = "multi_thread")]
async fn job_text_has_invisible_characters_removed_and_tool_call_tags_escaped() {
    let server = TestServer::plain(|seen: &ReceivedRequest| match seen.path() {
        SEARCH => Reply::html(card(1).replace("Rust Engineer", "Ru\u{e0041}st &lt;tool_use> Engineer")),
        _ => Reply::html(JOB.replace("We build Rust.", "We\u{200b} &lt;tool_use> build\u{fe00} Rust.")),
    })
    .await;
    tokio::task::block_in_place(|| {
        let mut client = Client::of(&server, "", MAY_REACH);
        let job = client.call("linkedin_job_detail", json!({"job_id": "4000000001"}));
        let message = &job["structuredContent"];
        assert_eq!(message["description"], "We &lt;tool_use> build Rust.", "{job}");
        assert_eq!(message["invisible_characters_removed"], 2, "{job}");
        assert!(text(&job).starts_with("[2 invisible characters were removed.]\n"), "{job}");
        let jobs = client.call("linkedin_jobs", json!({"keyword": "rust"}));
        let message = &jobs["structuredContent"];
        assert_eq!(message["jobs"][0]["title"], "Rust &lt;tool_use> Engineer 1", "{jobs}");
        assert_eq!(message["invisible_characters_removed"], 1, "{jobs}");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn micro_x_calls_return_results_in_the_micro_x_format() {
    let server = linkedin(2).await;
    tokio::task::block_in_place(|| {
        let mut client = Client::of(&server, "micro_x", MAY_REACH);
        let found = client.call(
            "linkedin_jobs",
            json!({
                "keyword": "software engineer", "location": "New York", "dateSincePosted": "past week",
                "jobType": "full time", "remoteFilter": "on site", "experienceLevel": "senior", "limit": "2",
                "sortBy": "recent",
            }),
        );
        let block = |number: usize| {
            format!(
                "{number}. Rust Engineer {number}\n   Company: Acme & Co\n   Location: Berlin, Germany\n   \
                 Posted: 1 day ago\n   Salary: Not listed\n   URL: https://www.linkedin.com/jobs/view/{number}"
            )
        };
        assert_eq!(text(&found), format!("{}\n\n{}", block(1), block(2)));
        let url = "https://www.linkedin.com/jobs/view/4000000001";
        let job = client.call("linkedin_job_detail", json!({"url": url}));
        assert_eq!(
            text(&job),
            "Title: Rust Engineer\nCompany: Acme\nLocation: Berlin, Germany\n\n--- Job Description ---\n\nWe build Rust."
        );
        let gone = client.call("linkedin_job_detail", json!({"url": "https://www.linkedin.com/jobs/view/9"}));
        assert_eq!((text(&gone), &gone["isError"]), ("Error fetching job page: HTTP 404", &json!(true)));
        let other = client.call("linkedin_job_detail", json!({"url": "https://www.linkedin.com/jobs/view/8"}));
        assert!(text(&other).starts_with("Could not extract job description from the page. LinkedIn may"), "{other}");
        let elsewhere = client.call("linkedin_job_detail", json!({"url": "http://127.0.0.1/jobs/view/4000000001"}));
        assert!(
            text(&elsewhere).starts_with("Error fetching job details: it is not an address of LinkedIn"),
            "{elsewhere}"
        );
        let odd = client.call("linkedin_jobs", json!({"keyword": "x", "jobType": "gig"}));
        assert!(text(&odd).contains("full_time"), "{odd}");
        let names = client.names();
        assert!(["linkedin_jobs", "linkedin_job_detail"].iter().all(|name| names.iter().any(|one| one == name)));
    });
    let asked = &server.requests()[0];
    for (parameter, value) in [("f_TPR", "r604800"), ("f_JT", "F"), ("f_WT", "1"), ("f_E", "4"), ("sortBy", "DD")] {
        assert_eq!(asked.query(parameter).as_deref(), Some(value), "{}", asked.target);
    }
    let none = linkedin(0).await;
    let found = tokio::task::block_in_place(|| {
        Client::of(&none, "micro_x", MAY_REACH).call("linkedin_jobs", json!({"keyword": "software engineer"}))
    });
    assert_eq!(text(&found), "No job postings found matching your criteria.");
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_no_request_without_an_allow_rule_or_to_hosts_other_than_linkedin() {
    let server = linkedin(2).await;
    tokio::task::block_in_place(|| {
        for rules in ["", "[permissions]\ndeny = [\"WebFetch(domain:127.0.0.1)\"]\nallow = [\"linkedin_jobs\"]\n"] {
            let refused = Client::of(&server, "", rules).call("linkedin_jobs", json!({"keyword": "x"}));
            assert_eq!(kind(&refused), "permission_denied", "{refused}");
        }
        let mut client = Client::of(&server, "", MAY_REACH);
        let url = server.url("/jobs/view/4000000001").to_string();
        for url in [
            url.as_str(),
            "http://localhost/jobs/view/4000000001",
            "http://169.254.169.254/jobs/view/4000000001",
            "https://linkedin.com.evil.example/jobs/view/4000000001",
            "https://www.linkedin.com@127.0.0.1/jobs/view/4000000001",
            "file:///etc/passwd",
        ] {
            let refused = client.call("linkedin_job_detail", json!({"url": url}));
            assert_eq!(kind(&refused), "invalid_input", "{refused}");
        }
        for arguments in [json!({}), json!({"job_id": 1, "url": "https://www.linkedin.com/jobs/view/1"})] {
            let refused = client.call("linkedin_job_detail", arguments);
            assert!(text(&refused).contains("one of `url` and `job_id`"), "{refused}");
        }
    });
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unexpected_page_is_an_error_and_not_an_empty_job_list() {
    let nameless = cards(1..=3).replace("base-search-card__title", "base-search-card__name");
    let hostile = format!("<li><div class='base-card'>{}", "<div>".repeat(200_000));
    for (page, expected, words) in [
        (nameless.as_str(), "upstream_protocol", "3 job cards without a title"),
        ("<script>var blocked = 1;</script>", "rate_limited", "only with scripts"),
        ("<title>Sign Up | LinkedIn</title><form action='/signup'></form>", "auth_required", "signed-in"),
        (
            "<h1>Something else that LinkedIn might show to a person one day</h1>",
            "upstream_protocol",
            "could not be parsed",
        ),
        (&hostile, "upstream_protocol", "without a title"),
    ] {
        let page = page.to_owned();
        let server = TestServer::plain(move |_| Reply::html(page.clone())).await;
        tokio::task::block_in_place(|| {
            let mut client = Client::of(&server, "", MAY_REACH);
            let failed = client.call("linkedin_jobs", json!({"keyword": "x"}));
            assert_eq!(kind(&failed), expected, "{failed}");
            assert!(text(&failed).contains(words), "{failed}");
            assert_eq!(text(&client.call("echo", json!({"message": "alive"}))), "Echo: alive");
        });
    }
}

#[test]
fn both_tools_are_unavailable_until_the_user_enables_linkedin() {
    let home = Home::new();
    for name in ["linkedin_jobs", "linkedin_job_detail"] {
        let message = home.run(&["tools", name]);
        let message = stdout(&message);
        assert!(
            message.contains("no: ") && message.contains("`[linkedin] enabled = true` switches it on"),
            "{message}"
        );
        let called = home.run(&["call", name, "{\"keyword\": \"x\"}"]);
        assert_eq!(called.status.code(), Some(4), "{}", stderr(&called));
        let listed = stdout(&home.run(&["tools"]));
        assert!(!listed.contains(name), "{listed}");
        let all = stdout(&home.run(&["tools", "--all"]));
        assert!(all.contains(name), "{all}");
    }
    let doctor = stdout(&home.run(&["doctor"]));
    assert!(doctor.contains("not set up: search, Gmail, Google Calendar, LinkedIn, Anthropic usage"), "{doctor}");
}
