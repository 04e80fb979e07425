//! Parsing of the guest pages, which is the work of the child process.

use super::job_id::{JobId, is_of_linkedin};
use crate::web::page::{
    LinkStyle, text_below,
    tree::{self, NodeId, PageTree},
};
use serde::{Deserialize, Serialize};
use std::io::Read;
use url::Url;

/// Maximum number of cards of one page.
const MAX_CARDS: usize = 100;
/// Maximum length of a title, a name or a place, in characters.
const MAX_NAME: usize = 300;
/// Maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 100_000;
/// Length below which the text of a page shows that scripts must build the page, in characters.
const LITTLE_TEXT: usize = 40;

/// A job in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCard {
    /// Its number, if the card contains it.
    pub id: Option<String>,
    /// Its title.
    pub title: String,
    /// Name of the company.
    pub company: Option<String>,
    /// Address of the page of the company.
    pub company_url: Option<String>,
    /// Its location.
    pub location: Option<String>,
    /// Time since it was posted, in the words of the page.
    pub posted: Option<String>,
    /// Day on which it was posted: `2026-01-04`.
    pub posted_date: Option<String>,
    /// Salary, in the words of the page.
    pub salary: Option<String>,
    /// Address of its page for people.
    pub url: Option<String>,
}

/// A job in full.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its title.
    pub title: Option<String>,
    /// Name of the company.
    pub company: Option<String>,
    /// Address of the page of the company.
    pub company_url: Option<String>,
    /// Its location.
    pub location: Option<String>,
    /// Time since it was posted, in the words of the page.
    pub posted: Option<String>,
    /// Number of applicants, in the words of the page.
    pub applicants: Option<String>,
    /// Salary, in the words of the page.
    pub salary: Option<String>,
    /// Seniority, employment type, function and industries, as on the page.
    pub criteria: Vec<JobAttribute>,
    /// Its description, as text.
    pub description: String,
}

/// One attribute of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobAttribute {
    /// Its label.
    pub label: String,
    /// Its value.
    pub text: String,
}

/// A kind of page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RequestedPageKind {
    /// A list of jobs.
    Cards,
    /// A job.
    Job,
}

/// The order for the child process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PageParseRequest {
    pub(super) wanted: RequestedPageKind,
    /// Address of the page, to which its links are relative.
    pub(super) url: Url,
}

/// Contents of a page, or its actual kind if it does not have the requested contents.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ParsedPage {
    /// A list of jobs. A card without a title is `None` at its position.
    Cards(Vec<Option<JobCard>>),
    /// A job.
    Job(Box<Job>),
    /// An empty page.
    Empty,
    /// A page for signing in, or a captcha.
    Wall,
    /// A page that scripts must build.
    Scripts,
    /// Another kind of page.
    Other,
}

/// Parses the guest page in `input` for a request in JSON, and returns the parsed page in JSON; `null` for an invalid
/// request. This is the work of the helper [`HELPER`](super::HELPER): call it only in a confined process.
pub fn answer(order: &str, input: &mut dyn Read) -> Vec<u8> {
    let mut html = Vec::new();
    let found = serde_json::from_str::<PageParseRequest>(order).ok().map(|order| {
        // The bytes before a read error are parsed as a page, too.
        let _ = input.read_to_end(&mut html);
        parse_page(&html, &order)
    });
    serde_json::to_vec(&found).unwrap_or_default()
}

/// Parses a page. Must never be called on foreign bytes in the process of the runtime.
pub(super) fn parse_page(html: &[u8], order: &PageParseRequest) -> ParsedPage {
    let tree = tree::parse_as_is(html, None);
    let page = PageDocument { tree: &tree, url: &order.url };
    let found = match order.wanted {
        RequestedPageKind::Cards => page.cards(),
        RequestedPageKind::Job => page.job().map(|job| ParsedPage::Job(Box::new(job))),
    };
    found.unwrap_or_else(|| page.kind())
}

struct PageDocument<'a> {
    tree: &'a PageTree,
    url: &'a Url,
}

impl PageDocument<'_> {
    /// Returns the first element with this tag, one of whose classes contains this word.
    fn first(&self, below: NodeId, tag: &str, class: &str) -> Option<NodeId> {
        self.tree.select(below, tag, class).next()
    }

    /// Returns the text of an element, unless it is empty.
    fn text(&self, node: NodeId) -> Option<String> {
        let text: String = self.tree.text_of(node).trim().chars().take(MAX_NAME).collect();
        (!text.is_empty()).then_some(text)
    }

    /// Returns the text of the first nonempty element among these tags with words of their classes.
    fn words(&self, below: NodeId, places: &[(&str, &str)]) -> Option<String> {
        let nodes = places.iter().flat_map(|(tag, class)| self.tree.select(below, tag, class));
        nodes.into_iter().find_map(|node| self.text(node))
    }

    /// Returns the LinkedIn address of a link, without tracking parameters; `None` if the link leads elsewhere.
    fn address(&self, node: NodeId) -> Option<Url> {
        // A fragment of this page leads nowhere else.
        let href = self.tree.attribute(node, "href").map(str::trim).filter(|href| !href.starts_with('#'))?;
        let mut url = self.url.join(href).ok()?;
        if url.scheme() != "https" || !is_of_linkedin(&url) || !url.username().is_empty() || url.port().is_some() {
            return None;
        }
        url.set_query(None);
        url.set_fragment(None);
        (url.as_str().len() <= 2 * MAX_NAME).then_some(url)
    }

    fn cards(&self) -> Option<ParsedPage> {
        let (mut seen, mut cards) = (Vec::new(), Vec::new());
        for item in self.tree.select(self.tree.root(), "li", "") {
            let Some(body) = self.first(item, "div", "base-card") else { continue };
            if seen.contains(&body) || seen.len() == MAX_CARDS {
                continue;
            }
            seen.push(body);
            cards.push(self.card(item, body));
        }
        (!cards.is_empty()).then_some(ParsedPage::Cards(cards))
    }

    /// Returns a card; `None` if it has no title.
    fn card(&self, item: NodeId, body: NodeId) -> Option<JobCard> {
        let title = self.words(item, &[("h3", "base-search-card__title")])?;
        let link = self.first(item, "a", "base-card__full-link").and_then(|link| self.address(link));
        let urn = self.tree.attribute(body, "data-entity-urn").and_then(JobId::of_urn);
        let id = urn.or_else(|| JobId::of(link.as_ref()?));
        let company = self.first(item, "h4", "base-search-card__subtitle");
        let time = self.first(item, "time", "");
        let date = time.and_then(|time| self.tree.attribute(time, "datetime")).map(str::trim);
        Some(JobCard {
            id: id.map(|id| id.to_string()),
            title,
            company: company.and_then(|node| self.text(node)),
            company_url: company.and_then(|node| self.address(self.first(node, "a", "")?)).map(String::from),
            location: self.words(item, &[("span", "job-search-card__location")]),
            posted: time.and_then(|time| self.text(time)),
            posted_date: date.filter(|date| is_date(date)).map(str::to_owned),
            salary: self.words(item, &[("span", "job-search-card__salary")]),
            url: id.map(JobId::page).or(link.map(String::from)),
        })
    }

    /// Returns the job of the page; `None` if there is no description.
    fn job(&self) -> Option<Job> {
        let root = self.tree.root();
        // The inner element: the outer one also contains the buttons that expand it.
        let descriptions = ["show-more-less-html__markup", "description__text", "decorated-job-posting__details"];
        let mut nodes = descriptions.iter().flat_map(|class| self.tree.select(root, "", class));
        let description = nodes.find_map(|node| {
            let text = text_below(self.tree, node, self.url, LinkStyle::Parentheses);
            (!text.trim().is_empty()).then_some(text)
        })?;
        let criteria = self.tree.select(root, "li", "description__job-criteria-item").filter_map(|item| {
            let label = self.words(item, &[("h3", "description__job-criteria-subheader"), ("h3", "")])?;
            let text = self.words(item, &[("span", "description__job-criteria-text"), ("span", "")])?;
            Some(JobAttribute { label, text })
        });
        let company = self.first(root, "a", "topcard__org-name-link");
        Some(Job {
            title: self.words(
                root,
                &[
                    ("h1", "top-card-layout__title"),
                    ("h2", "top-card-layout__title"),
                    ("", "topcard__title"),
                    ("h1", ""),
                    ("h2", ""),
                ],
            ),
            company: company
                .and_then(|node| self.text(node))
                .or_else(|| self.words(root, &[("", "top-card-layout__company-name"), ("span", "topcard__flavor")])),
            company_url: company.and_then(|node| self.address(node)).map(String::from),
            location: self.words(root, &[("span", "topcard__flavor--bullet"), ("span", "top-card-layout__bullet")]),
            posted: self.words(root, &[("", "posted-time-ago__text")]),
            applicants: self.words(root, &[("", "num-applicants__caption")]),
            salary: self.words(root, &[("", "compensation__salary"), ("div", "salary")]),
            criteria: criteria.take(20).collect(),
            description: description.trim().chars().take(MAX_DESCRIPTION).collect(),
        })
    }

    /// Returns the kind of a page without the requested contents.
    fn kind(&self) -> ParsedPage {
        let root = self.tree.root();
        let words = self.tree.text_of(root);
        let scripts: Vec<NodeId> = self.tree.select(root, "script", "").collect();
        let in_scripts = |word: &str| {
            let texts = scripts.iter().flat_map(|script| self.tree.children(*script));
            texts.into_iter().any(|text| self.tree.text(text).is_some_and(|text| text.contains(word)))
        };
        let title = self.first(root, "title", "").map(|title| {
            let texts = self.tree.children(title).filter_map(|text| self.tree.text(text));
            texts.collect::<String>().to_lowercase()
        });
        let is_titled =
            |words: &[&str]| title.as_ref().is_some_and(|title| words.iter().any(|word| title.contains(word)));
        let has_form = self.tree.select(root, "form", "").any(|form| {
            let leads = self.tree.attribute(form, "action").unwrap_or_default();
            ["login", "uas/", "signup", "checkpoint", "authwall"].iter().any(|word| leads.contains(word))
        });
        let is_wall =
            is_titled(&["sign up", "sign in", "log in", "join linkedin", "security verification", "authwall"])
                || has_form
                || ["authwall", "/checkpoint/"].into_iter().any(in_scripts);
        match words.trim().chars().count() {
            _ if is_wall => ParsedPage::Wall,
            0..LITTLE_TEXT if !scripts.is_empty() => ParsedPage::Scripts,
            0 if title.is_none() => ParsedPage::Empty,
            _ => ParsedPage::Other,
        }
    }
}

/// Returns `true` for a day in the format of HTML: `2026-01-04`.
fn is_date(text: &str) -> bool {
    let is_digits = |part: &str, digits: usize| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split('-').collect();
    matches!(parts[..], [year, month, day] if is_digits(year, 4) && is_digits(month, 2) && is_digits(day, 2))
}
