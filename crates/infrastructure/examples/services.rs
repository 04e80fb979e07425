//! Searches the web by a service and prints what it found:
//!
//! `cargo run -p toolstead-infrastructure --example services -- searxng https://search.example.org WORDS…`, or
//! `… -- brave https://api.search.brave.com WORDS… < KEY`
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};
use toolstead_domain::{DomainFilter, Secret, WebQuery, WebSearch, WebSearchContext};
use toolstead_infrastructure::{
    egress::{connector::SystemNetwork, host::HostPatterns},
    helper::{end_helpers, enter_if_helper},
    sandbox::helper::HelperLauncher,
    services::{
        foreign_text::clean_text,
        search::SearchService,
        settings::{SearchProvider, SearchSettings},
    },
    system_clock::SystemClock,
    web::web_client::WebClient,
};

fn main() -> Result<(), Box<dyn Error>> {
    // The pages of DuckDuckGo are read in a child process, which is this program.
    enter_if_helper();
    let found = tokio::runtime::Runtime::new()?.block_on(search());
    end_helpers();
    found
}

async fn search() -> Result<(), Box<dyn Error>> {
    let usage = "usage: services brave|searxng|tavily|exa|duckduckgo ADDRESS WORDS… [< KEY]";
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [provider, address, words @ ..] = words.as_slice() else { return Err(usage.into()) };
    let known = SearchProvider::ALL.into_iter().find(|(word, _)| word == provider);
    let (_, provider) = known.ok_or(usage)?;
    let key = match provider {
        SearchProvider::Searxng | SearchProvider::DuckDuckGo => None,
        SearchProvider::Brave | SearchProvider::Tavily | SearchProvider::Exa => {
            let mut key = String::new();
            std::io::stdin().read_line(&mut key)?;
            Some(Secret::new(key.trim()))
        }
    };
    let settings = SearchSettings { provider, base_url: address.parse()?, key };
    let reach = WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default());
    let service = SearchService::new(settings, reach, Arc::new(HelperLauncher::default()), Arc::new(SystemClock));
    let query = WebQuery { text: words.join(" "), count: 5, page: 0, domains: DomainFilter::All, freshness: None };
    // Where rules hold, they are asked here.
    let bounds = WebSearchContext { deadline: Instant::now() + Duration::from_secs(30), may_reach: &|_| Ok(()) };
    for hit in service.search(&query, bounds).await? {
        let (title, description) = (clean_text(&hit.title), clean_text(&hit.description));
        println!("{title}\n  {}\n  {description}", hit.url);
    }
    Ok(())
}
