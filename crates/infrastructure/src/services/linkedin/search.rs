//! One search over many pages: selects the next page, and collects the jobs.

use super::{
    pages::JobCard,
    query::{JobQuery, WORKPLACE},
};
use std::{collections::HashSet, mem::take};
use toolstead_domain::ToolFailure;

/// Number of jobs per page. LinkedIn requires starts that are multiples of it.
const PAGE: usize = 10;
/// Upper bound of the starts that LinkedIn accepts.
const LAST: usize = 1_000;
/// Maximum number of pages of one search.
const MAX_PAGES: usize = 20;

/// The result of a search.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FoundJobs {
    /// The jobs, without duplicates.
    pub jobs: Vec<JobCard>,
    /// Start of a further search; `None` if there are no more jobs.
    pub next_start: Option<usize>,
    /// Notes for the reader, each a sentence.
    pub notes: Vec<String>,
}

/// A search in progress.
#[derive(Debug)]
pub(super) struct SearchProgress<'a> {
    query: &'a JobQuery,
    jobs: Vec<JobCard>,
    seen: HashSet<String>,
    notes: Vec<String>,
    nameless: usize,
    other_workplaces: usize,
    pages: usize,
    /// Start of the next page.
    page: usize,
    /// Number of jobs to skip on that page: a start between two pages is on the earlier one.
    skipped: usize,
    is_over: bool,
    next_start: Option<usize>,
}

impl<'a> SearchProgress<'a> {
    pub(super) fn of(query: &'a JobQuery) -> Self {
        let page = query.start / PAGE * PAGE;
        Self {
            query,
            jobs: Vec::new(),
            seen: HashSet::new(),
            notes: Vec::new(),
            nameless: 0,
            other_workplaces: 0,
            pages: 0,
            page,
            skipped: query.start - page,
            is_over: false,
            next_start: None,
        }
    }

    /// Returns the start of the next page; `None` at the end.
    pub(super) fn next_page(&self) -> Option<usize> {
        (!self.is_over && self.page < LAST).then_some(self.page)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Adds the cards of the next page; `None` if there is no such page. Ends the search there, at the limit of jobs or
    /// pages, and at a page without new jobs. A card without a title is `None`.
    pub(super) fn add(&mut self, page: Option<Vec<Option<JobCard>>>) {
        let Some(cards) = page else { return self.end(None) };
        self.pages += 1;
        let length = cards.len().max(PAGE);
        let mut is_news = false;
        for (at, card) in cards.into_iter().enumerate().skip(take(&mut self.skipped)) {
            if self.jobs.len() == self.query.limit {
                return self.end(Some(self.page + at));
            }
            match card {
                Some(card) => is_news |= self.take(card),
                None => self.nameless += 1,
            }
        }
        self.page += length;
        match () {
            // A page without new jobs repeats the last one.
            () if !is_news => self.end(None),
            () if self.jobs.len() == self.query.limit || self.pages == MAX_PAGES => self.end(Some(self.page)),
            () => {}
        }
    }

    /// Ends the search before the next page, whose request failed.
    pub(super) fn break_off(&mut self, why: &ToolFailure) {
        self.notes.push(format!("The search ended early: {}", why.text()));
        self.end(Some(self.page + self.skipped));
    }

    fn end(&mut self, next_start: Option<usize>) {
        (self.is_over, self.next_start) = (true, next_start.filter(|start| *start < LAST));
    }

    /// Adds a job, or counts it if it states another workplace than requested. Returns `false` for a duplicate.
    fn take(&mut self, card: JobCard) -> bool {
        // A card without a number is identified by its whole contents.
        let name = card.id.clone().unwrap_or_else(|| format!("{card:?}"));
        if !self.seen.insert(name) {
            return false;
        }
        let wanted = &self.query.workplace;
        match stated_workplace(&card) {
            Some(stated) if !wanted.is_empty() && !wanted.iter().any(|word| word == stated) => {
                self.other_workplaces += 1
            }
            _ => self.jobs.push(card),
        }
        true
    }

    /// Returns the jobs, with notes on omitted ones.
    pub(super) fn found(mut self) -> FoundJobs {
        if !self.query.workplace.is_empty() {
            let silent = self.jobs.iter().filter(|job| stated_workplace(job).is_none()).count();
            let words = self.query.workplace.join(" or ");
            if silent > 0 {
                self.notes.push(format!(
                    "LinkedIn may have ignored the filter {words}: {silent} of these jobs do not say where \
                     the work is done. `linkedin_job_detail` shows more."
                ));
            }
            if self.other_workplaces > 0 {
                self.notes
                    .push(format!("Jobs with another workplace than {words} were omitted: {}.", self.other_workplaces));
            }
        }
        if self.nameless > 0 {
            self.notes.push(format!("Job cards without a title were omitted: {}.", self.nameless));
        }
        FoundJobs { jobs: self.jobs, next_start: self.next_start, notes: self.notes }
    }
}

/// Returns the word of [`WORKPLACE`] that a card states: in its location, or in brackets in its title. The rest of a
/// title may mean something else ("Remote Sensing Engineer"). A card that states two different words counts as stating
/// none.
fn stated_workplace(card: &JobCard) -> Option<&'static str> {
    let title = card.title.to_lowercase();
    let in_brackets = title.split(['(', '[']).skip(1).filter_map(|part| part.split([')', ']']).next());
    let place = card.location.as_deref().unwrap_or_default().to_lowercase();
    let said: String = in_brackets.chain([place.as_str()]).map(|part| format!("{part} | ")).collect();
    let words: Vec<&str> =
        said.split(|c: char| !c.is_alphanumeric() && c != '|').filter(|word| !word.is_empty()).collect();
    let mut stated = WORKPLACE.words().filter(|word| {
        let parts: Vec<&str> = word.split('_').collect();
        words.windows(parts.len()).any(|window| window == parts)
    });
    stated.next().filter(|_| stated.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use toolstead_domain::error_kind::ErrorKind;

    fn card(id: usize) -> JobCard {
        JobCard { id: Some(id.to_string()), title: format!("Job {id}"), ..JobCard::default() }
    }

    /// Runs a search over pages of this size with these jobs, and returns the requested pages.
    fn searched(query: &JobQuery, size: usize, jobs: &[usize]) -> (FoundJobs, Vec<usize>) {
        let mut search = SearchProgress::of(query);
        let mut asked = Vec::new();
        while let Some(start) = search.next_page() {
            asked.push(start);
            let cards: Vec<_> = jobs.iter().skip(start).take(size).map(|id| Some(card(*id))).collect();
            search.add((!cards.is_empty()).then_some(cards));
        }
        (search.found(), asked)
    }

    fn ids(found: &FoundJobs) -> Vec<usize> {
        found.jobs.iter().map(|job| job.id.as_ref().unwrap().parse().unwrap()).collect()
    }

    fn query(limit: usize, start: usize) -> JobQuery {
        JobQuery { keyword: "rust".into(), limit, start, ..JobQuery::default() }
    }

    #[test]
    fn pages_are_asked_for_until_there_are_enough_jobs() {
        let jobs: Vec<usize> = (1..=35).collect();
        for (limit, start, size, pages, found, next) in [
            (10, 0, 10, &[0][..], 1..=10, Some(10)),
            (5, 0, 10, &[0], 1..=5, Some(5)),
            (25, 0, 10, &[0, 10, 20], 1..=25, Some(25)),
            (100, 0, 10, &[0, 10, 20, 30, 40], 1..=35, None),
            (10, 5, 10, &[0, 10], 6..=15, Some(15)),
            (10, 30, 10, &[30, 40], 31..=35, None),
            (30, 0, 25, &[0, 25], 1..=30, Some(30)),
            (3, 25, 25, &[20], 26..=28, Some(28)),
        ] {
            let (outcome, asked) = searched(&query(limit, start), size, &jobs);
            assert_eq!((ids(&outcome), outcome.next_start), (found.collect(), next), "{limit} from {start}");
            assert_eq!(asked, pages, "{limit} from {start}");
        }
    }

    proptest! {
        #[test]
        fn consecutive_searches_return_every_job_exactly_once(count in 0_usize..120, limit in 1_usize..40) {
            let jobs: Vec<usize> = (1..=count).collect();
            let (mut found, mut start) = (Vec::new(), Some(0));
            while let Some(from) = start {
                let (outcome, asked) = searched(&query(limit, from), 10, &jobs);
                prop_assert!(asked.iter().all(|page| page % PAGE == 0) && outcome.jobs.len() <= limit);
                found.extend(ids(&outcome));
                start = outcome.next_start;
            }
            prop_assert_eq!(found, jobs);
        }
    }

    #[test]
    fn duplicate_jobs_are_returned_once_and_a_repeated_page_ends_the_search() {
        let (found, _) = searched(&query(100, 0), 10, &[1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 9, 10]);
        assert_eq!(ids(&found), (1..=10).collect::<Vec<_>>());
        let again = query(100, 0);
        let mut search = SearchProgress::of(&again);
        for _ in 0..2 {
            assert!(search.next_page().is_some());
            search.add(Some((1..=10).map(|id| Some(card(id))).collect()));
        }
        assert_eq!(search.next_page(), None);
        assert_eq!(search.found().next_start, None);
    }

    #[test]
    fn every_search_stops_at_the_maximum_number_of_pages() {
        let all = query(100, 0);
        let mut search = SearchProgress::of(&all);
        let mut pages = 0;
        while let Some(start) = search.next_page() {
            pages += 1;
            let one = JobCard { title: format!("{start}"), location: Some("On-site".into()), ..JobCard::default() };
            search.add(Some(vec![Some(one), None]));
        }
        assert!(pages <= MAX_PAGES, "{pages}");
        let far = query(10, 999);
        assert_eq!(SearchProgress::of(&far).next_page(), Some(990));
    }

    #[test]
    fn a_search_that_fails_midway_returns_its_jobs_and_notes_the_failure() {
        let many = query(30, 0);
        let mut search = SearchProgress::of(&many);
        assert!(search.is_empty());
        search.add(Some((1..=10).map(|id| (id != 4).then(|| card(id))).collect()));
        search.break_off(&ToolFailure::new(ErrorKind::RateLimited, "no more").next("Wait."));
        assert_eq!(search.next_page(), None);
        let found = search.found();
        assert_eq!((found.jobs.len(), found.next_start), (9, Some(10)));
        assert_eq!(
            found.notes,
            ["The search ended early: no more. Wait.", "Job cards without a title were omitted: 1."]
        );
    }

    #[test]
    fn the_workplace_is_read_from_labels_and_unset_if_missing_or_contradictory() {
        for (title, location, expected) in [
            ("Rust Engineer", "Berlin, Germany (Remote)", Some("remote")),
            ("Rust Engineer", "Remote", Some("remote")),
            ("Rust Engineer [Hybrid]", "Berlin", Some("hybrid")),
            ("Rust Engineer (f/m/x, On-site)", "Berlin", Some("on_site")),
            ("Rust Engineer", "Berlin (On site)", Some("on_site")),
            ("Remote Sensing Engineer", "Berlin", None),
            ("Hybrid Cloud Engineer", "Berlin", None),
            ("Rust Engineer (Remote)", "Berlin (Hybrid)", None),
            ("Engineer (on)", "Site 7", None),
            ("Rust Engineer", "Berlin", None),
        ] {
            let card = JobCard { title: title.into(), location: Some(location.into()), ..JobCard::default() };
            assert_eq!(stated_workplace(&card), expected, "{title}, {location}");
        }
    }

    #[test]
    fn the_workplace_filter_omits_other_workplaces_and_counts_jobs_that_state_none() {
        let place = |id: usize, location: &str| JobCard { location: Some(location.into()), ..card(id) };
        let remote = JobQuery { workplace: vec!["remote".into()], ..query(10, 0) };
        let mut search = SearchProgress::of(&remote);
        let cards = [place(1, "Berlin (Remote)"), place(2, "Berlin (Hybrid)"), place(3, "Berlin")];
        search.add(Some(cards.map(Some).to_vec()));
        let found = search.found();
        assert_eq!(ids(&found), [1, 3]);
        assert_eq!(
            found.notes,
            [
                "LinkedIn may have ignored the filter remote: 1 of these jobs do not say where the work is done. \
                 `linkedin_job_detail` shows more.",
                "Jobs with another workplace than remote were omitted: 1.",
            ]
        );
    }
}
