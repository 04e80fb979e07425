//! Guest pages as LinkedIn has them, and obstacles to reading them.

use super::{
    pages::{PageParseRequest, ParsedPage, RequestedPageKind, parse_page},
    *,
};
use crate::{
    egress::{connector::SystemNetwork, host::HostPatterns},
    helper_port::NoHelpers,
    web::{
        testing::{Reply, TestServer},
        web_client::WebClient,
    },
};
use serde_json::json;
use std::{
    sync::{Arc, atomic::AtomicUsize, atomic::Ordering},
    time::{Duration, Instant},
};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

const CARD: &str = r##"<li>
  <div class="base-card relative base-card--link base-search-card base-search-card--link job-search-card" data-entity-urn="urn:li:jobPosting:4000000001">
    <a class="base-card__full-link absolute" href="https://de.linkedin.com/jobs/view/rust-engineer-at-acme-4000000001?position=1&amp;pageNum=0&amp;refId=abc"><span class="sr-only">Rust Engineer</span></a>
    <div class="base-search-card__info">
      <h3 class="base-search-card__title"> Rust Engineer </h3>
      <h4 class="base-search-card__subtitle"><a class="hidden-nested-link" href="https://de.linkedin.com/company/acme?trk=public_jobs">Acme &amp; Co</a></h4>
      <div class="base-search-card__metadata">
        <span class="job-search-card__location">Berlin, Germany</span>
        <span class="job-search-card__salary-info">€70,000 - €90,000</span>
        <time class="job-search-card__listdate" datetime="2026-01-04">1 day ago</time>
      </div></div></div>
</li>"##;

const JOB: &str = r##"<section class="top-card-layout">
  <h2 class="top-card-layout__title topcard__title">Rust Engineer</h2>
  <h4 class="top-card-layout__second-subline">
    <span class="topcard__flavor"><a class="topcard__org-name-link topcard__flavor--black-link" href="https://de.linkedin.com/company/acme?trk=x">Acme</a></span>
    <span class="topcard__flavor topcard__flavor--bullet">Berlin, Germany</span>
    <span class="posted-time-ago__text topcard__flavor--metadata">1 day ago</span>
    <figcaption class="num-applicants__caption">Over 200 applicants</figcaption></h4></section>
<div class="salary compensation__salary">€70,000/yr</div>
<div class="description__text description__text--rich"><section class="show-more-less-html"><div class="show-more-less-html__markup"><p>We build…</p><ul><li>Rust</li><li>More at <a href="https://acme.example/jobs">Acme</a></li></ul></div><button>Show more</button></section></div>
<ul class="description__job-criteria-list"><li class="description__job-criteria-item"><h3 class="description__job-criteria-subheader">Seniority level</h3><span class="description__job-criteria-text description__job-criteria-text--criteria">Mid-Senior level</span></li><li class="description__job-criteria-item"><h3 class="description__job-criteria-subheader">Employment type</h3><span class="description__job-criteria-text description__job-criteria-text--criteria">Full-time</span></li></ul>"##;

fn read(wanted: RequestedPageKind, html: &str) -> ParsedPage {
    parse_page(
        html.as_bytes(),
        &PageParseRequest { wanted, url: Url::parse("https://www.linkedin.com/jobs-guest/x").unwrap() },
    )
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn whole_card() -> JobCard {
    JobCard {
        id: some("4000000001"),
        title: "Rust Engineer".into(),
        company: some("Acme & Co"),
        company_url: some("https://de.linkedin.com/company/acme"),
        location: some("Berlin, Germany"),
        posted: some("1 day ago"),
        posted_date: some("2026-01-04"),
        salary: some("€70,000 - €90,000"),
        url: some("https://www.linkedin.com/jobs/view/4000000001"),
    }
}

#[track_caller]
fn check_card(html: &str, expected: JobCard) {
    let ParsedPage::Cards(cards) = read(RequestedPageKind::Cards, html) else { panic!("no cards in {html}") };
    assert_eq!(cards, [Some(expected)], "{html}");
}

#[test]
fn parses_all_fields_of_a_job_card() {
    check_card(CARD, whole_card());
    // The first one of a list may be marked, and so may a new job.
    check_card(&CARD.replace("base-card relative", "base-card relative base-card--active"), whole_card());
    check_card(&CARD.replace("__listdate", "__listdate--new"), whole_card());
    // Without the machine-readable number, the number in the address is used.
    check_card(&CARD.replace("data-entity-urn", "data-other"), whole_card());
}

#[test]
fn a_card_with_missing_fields_is_a_job_only_if_it_has_a_title() {
    let title = "<li><div class='base-card'><h3 class='base-search-card__title'>Rust</h3>";
    check_card(title, JobCard { title: "Rust".into(), ..JobCard::default() });
    let odd = format!(
        "{title}<a class='base-card__full-link' href='javascript:alert(4000000001)'></a>\
         <h4 class='base-search-card__subtitle'><a href='https://evil.example/company'>Acme</a></h4>\
         <time datetime='yesterday'></time></div></li>"
    );
    check_card(&odd, JobCard { title: "Rust".into(), company: some("Acme"), ..JobCard::default() });
    let list = format!(
        "{CARD}<li><div class='base-card'><h3 class='base-search-card__title'> </h3></div></li><li>x</li>{CARD}"
    );
    let ParsedPage::Cards(cards) = read(RequestedPageKind::Cards, &list) else { panic!("no cards") };
    assert_eq!(cards, [Some(whole_card()), None, Some(whole_card())]);
}

#[test]
fn parses_all_job_fields_from_each_page_layout() {
    let whole = Job {
        title: some("Rust Engineer"),
        company: some("Acme"),
        company_url: some("https://de.linkedin.com/company/acme"),
        location: some("Berlin, Germany"),
        posted: some("1 day ago"),
        applicants: some("Over 200 applicants"),
        salary: some("€70,000/yr"),
        criteria: [("Seniority level", "Mid-Senior level"), ("Employment type", "Full-time")]
            .map(|(label, text)| JobAttribute { label: label.into(), text: text.into() })
            .into(),
        description: String::new(),
    };
    for (from, to) in [
        ("", ""),
        // The page for people.
        ("h2", "h1"),
        ("top-card-layout__title topcard__title", "other"),
        ("show-more-less-html__markup", "other"),
        ("topcard__flavor topcard__flavor--bullet", "top-card-layout__bullet"),
    ] {
        let html = match from {
            "" => JOB.to_owned(),
            from => JOB.replace(from, to),
        };
        let ParsedPage::Job(job) = read(RequestedPageKind::Job, &html) else { panic!("no job without {from}") };
        let words: Vec<&str> = job.description.split_whitespace().collect();
        let text = words.join(" ");
        assert!(text.starts_with("We build… - Rust - More at Acme (https://acme.example/jobs)"), "{text}");
        assert_eq!(text.contains("Show more"), from == "show-more-less-html__markup", "{from}");
        assert_eq!(Job { description: String::new(), ..*job }, whole, "{from}");
    }
    let company = JOB.replace("topcard__org-name-link", "top-card-layout__company-name");
    let ParsedPage::Job(job) = read(RequestedPageKind::Job, &company) else { panic!("no job") };
    assert_eq!((job.company, job.company_url), (some("Acme"), None));
}

#[test]
fn empty_script_only_sign_in_and_unrelated_pages_are_distinguished() {
    for (html, expected) in [
        ("", ParsedPage::Empty),
        (" \n<!-- nothing -->\n", ParsedPage::Empty),
        ("<html><head></head><body></body></html>", ParsedPage::Empty),
        ("<script>var a = 1;</script>", ParsedPage::Scripts),
        (
            "<html><head><script>window.x()</script></head><body><noscript>Enable it</noscript></body></html>",
            ParsedPage::Scripts,
        ),
        ("<html><head><script>location = '/authwall?x'</script></head></html>", ParsedPage::Wall),
        ("<title>Sign Up | LinkedIn</title><p>Join now</p>", ParsedPage::Wall),
        ("<title>Security Verification | LinkedIn</title>", ParsedPage::Wall),
        ("<form action='/uas/login-submit'><input name='session_key'></form>", ParsedPage::Wall),
        ("<h1>Hello</h1><p>A page of another kind, with all the words that a person wants.</p>", ParsedPage::Other),
        ("<ul><li>one</li><li>two</li></ul>", ParsedPage::Other),
        ("{\"jobs\": []}", ParsedPage::Other),
    ] {
        for wanted in [RequestedPageKind::Cards, RequestedPageKind::Job] {
            assert_eq!(read(wanted, html), expected, "{wanted:?} in {html}");
        }
    }
    assert_eq!(read(RequestedPageKind::Job, CARD), ParsedPage::Other, "a list is no job");
}

#[test]
fn page_parsing_bounds_the_number_of_cards_and_the_length_of_fields() {
    let many = CARD.repeat(3_000);
    let ParsedPage::Cards(cards) = read(RequestedPageKind::Cards, &many) else { panic!("no cards") };
    assert_eq!(cards.len(), 100);
    let long = "x".repeat(200_000);
    let ParsedPage::Job(job) =
        read(RequestedPageKind::Job, &JOB.replace("Rust Engineer", &long).replace("We build…", &long))
    else {
        panic!("no job")
    };
    assert!(job.title.unwrap().len() <= 300 && job.description.len() <= 100_000);
    for nested in ["<li><div class='base-card'>", "<div>", "<ul><li>", "<table><tr><td>"] {
        let _ = read(RequestedPageKind::Cards, &nested.repeat(50_000));
    }
}

/// Requests a job from a server that gives these answers in turn. Returns the failure and the requests.
async fn refused(replies: Vec<Reply>) -> (ToolFailure, usize) {
    let count = AtomicUsize::new(0);
    let server = TestServer::plain(move |_| {
        let at = count.fetch_add(1, Ordering::Relaxed);
        replies[at.min(replies.len() - 1)].clone()
    })
    .await;
    let failure = asking(&server, None).await;
    (failure, server.requests().len())
}

async fn asking(server: &TestServer, user_agent: Option<&str>) -> ToolFailure {
    let settings = LinkedinSettings { base_url: server.url("/guests"), user_agent: user_agent.map(str::to_owned) };
    let pages = GuestPageClient {
        reach: &WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default()),
        helpers: &NoHelpers,
        settings: &settings,
        pace: &RateLimiter::new(Duration::ZERO),
        judge: &|_| Ok(()),
        deadline: Instant::now() + Duration::from_secs(60),
    };
    pages.job(JobId::of_number(4_000_000_001).unwrap()).await.unwrap_err()
}

#[tokio::test]
async fn linkedin_rate_limits_are_retried_or_reported_with_the_time_to_wait() {
    for status in [429, 999] {
        let (failure, requests) = refused(vec![Reply::new(status, "")]).await;
        assert_eq!((failure.kind, requests), (ErrorKind::RateLimited, 3), "{status}");
        assert_eq!(failure.data, json!({"status": status}));
        assert!(failure.text().contains("at least 60 seconds"), "{}", failure.text());

        let (failure, requests) = refused(vec![Reply::new(status, "").header("Retry-After", "3600")]).await;
        assert_eq!((failure.kind, requests), (ErrorKind::RateLimited, 1), "{status}");
        assert!(failure.text().contains("Wait 3600 seconds"), "{}", failure.text());

        // More than any clock can represent.
        let (failure, requests) = refused(vec![Reply::new(status, "").header("Retry-After", "1e19")]).await;
        assert_eq!((failure.kind, requests), (ErrorKind::RateLimited, 1), "{status}");

        let passing = vec![Reply::new(status, "").header("Retry-After", "0"), Reply::new(404, "")];
        let (failure, requests) = refused(passing).await;
        assert_eq!((failure.kind, requests), (ErrorKind::NotFound, 2), "{status}");
    }
}

#[tokio::test]
async fn linkedin_redirects_are_not_followed_and_error_statuses_have_their_kinds() {
    let to = |place: &str| Reply::redirect(302, place);
    for (reply, kind, words) in [
        (to("/authwall?trk=x"), ErrorKind::AuthRequired, "signed-in"),
        (to("https://www.linkedin.com/login?x=1"), ErrorKind::AuthRequired, "signed-in"),
        (to("https://www.linkedin.com/checkpoint/challenge"), ErrorKind::AuthRequired, "signed-in"),
        (to("https://www.linkedin.com/uas/login"), ErrorKind::AuthRequired, "signed-in"),
        (
            to("https://evil.example/jobs"),
            ErrorKind::UpstreamProtocol,
            "to https://evil.example, which is not followed",
        ),
        (to("http://127.0.0.1:1/jobs"), ErrorKind::UpstreamProtocol, "which is not followed"),
        (Reply::new(302, ""), ErrorKind::UpstreamProtocol, "without an address"),
        (Reply::new(401, ""), ErrorKind::AuthRequired, "signed-in"),
        (Reply::new(403, ""), ErrorKind::AuthRequired, "signed-in"),
        (Reply::new(404, ""), ErrorKind::NotFound, "no job 4000000001"),
        (Reply::new(410, ""), ErrorKind::NotFound, "no job 4000000001"),
        (Reply::new(400, ""), ErrorKind::UpstreamHttp, "HTTP 400"),
        (Reply::new(503, ""), ErrorKind::UpstreamHttp, "HTTP 503"),
    ] {
        let (failure, requests) = refused(vec![reply]).await;
        assert_eq!((failure.kind, requests), (kind, if words == "HTTP 503" { 3 } else { 1 }), "{}", failure.text());
        assert!(failure.text().contains(words), "{}", failure.text());
    }
}

#[tokio::test]
async fn requests_send_the_configured_user_agent_or_the_default_one() {
    let server = TestServer::plain(|_| Reply::new(404, "")).await;
    for name in [None, Some("corp-jobs/1")] {
        asking(&server, name).await;
    }
    let seen = server.requests();
    let [usual, own] = &seen[..] else { panic!("two requests") };
    let ours = concat!("Mozilla/5.0 (compatible; toolstead/", env!("CARGO_PKG_VERSION"), ")");
    assert_eq!((usual.header("user-agent"), own.header("user-agent")), (ours, "corp-jobs/1"));
    assert_eq!(usual.target, "/guests/jobs-guest/jobs/api/jobPosting/4000000001");
    assert_eq!((usual.header("accept-language"), usual.header("cookie")), ("en-US,en;q=0.9", ""));
}
