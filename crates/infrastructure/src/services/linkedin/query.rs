//! A search for jobs, and the address of its guest pages.

use crate::services::address::below;
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};
use url::Url;

/// A filter: its parameter, and its words with their codes at LinkedIn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchFilterDefinition {
    parameter: &'static str,
    words: &'static [(&'static str, &'static str)],
}

/// Maximum time since the posting of a job.
pub const POSTED: SearchFilterDefinition = SearchFilterDefinition {
    parameter: "f_TPR",
    words: &[("24hr", "r86400"), ("past_week", "r604800"), ("past_month", "r2592000")],
};

/// Type of employment.
pub const JOB_TYPE: SearchFilterDefinition = SearchFilterDefinition {
    parameter: "f_JT",
    words: &[
        ("full_time", "F"),
        ("part_time", "P"),
        ("contract", "C"),
        ("temporary", "T"),
        ("internship", "I"),
        ("volunteer", "V"),
        ("other", "O"),
    ],
};

/// Place of work.
pub const WORKPLACE: SearchFilterDefinition =
    SearchFilterDefinition { parameter: "f_WT", words: &[("on_site", "1"), ("remote", "2"), ("hybrid", "3")] };

/// Required experience.
pub const EXPERIENCE: SearchFilterDefinition = SearchFilterDefinition {
    parameter: "f_E",
    words: &[
        ("internship", "1"),
        ("entry_level", "2"),
        ("associate", "3"),
        ("mid_senior", "4"),
        ("director", "5"),
        ("executive", "6"),
    ],
};

/// Order of the jobs.
pub const SORTING: SearchFilterDefinition =
    SearchFilterDefinition { parameter: "sortBy", words: &[("relevant", "R"), ("recent", "DD")] };

/// A search for jobs. Each filter is a list of its words; an empty list matches all jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobQuery {
    /// Words to search for.
    pub keyword: String,
    /// Name of a place.
    pub location: Option<String>,
    /// Words of [`POSTED`].
    pub posted: Vec<String>,
    /// Words of [`JOB_TYPE`].
    pub job_type: Vec<String>,
    /// Words of [`WORKPLACE`].
    pub workplace: Vec<String>,
    /// Words of [`EXPERIENCE`].
    pub experience: Vec<String>,
    /// Words of [`SORTING`].
    pub sort_by: Vec<String>,
    /// Maximum number of jobs.
    pub limit: usize,
    /// Number of jobs to skip.
    pub start: usize,
}

impl SearchFilterDefinition {
    /// Returns all words of the filter.
    pub fn words(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.words.iter().map(|(word, _)| *word)
    }

    /// Returns the value of its parameter; `None` if no words are given.
    fn value(&self, given: &[String]) -> Result<Option<String>, ToolFailure> {
        let code = |word: &String| {
            let found = self.words.iter().find(|(known, _)| known == word);
            found.map(|(_, code)| *code).ok_or_else(|| {
                let known = self.words().collect::<Vec<_>>().join(", ");
                ToolFailure::new(ErrorKind::InvalidInput, format!("`{word}` is not one of {known}"))
            })
        };
        let codes = given.iter().map(code).collect::<Result<Vec<_>, _>>()?;
        Ok((!codes.is_empty()).then(|| codes.join(",")))
    }
}

impl JobQuery {
    /// Returns the address of the page that begins with the job of this index.
    pub(super) fn url(&self, base: &Url, start: usize) -> Result<Url, ToolFailure> {
        let mut url = below(base, "jobs-guest/jobs/api/seeMoreJobPostings/search");
        let filters = [
            (&POSTED, &self.posted),
            (&JOB_TYPE, &self.job_type),
            (&WORKPLACE, &self.workplace),
            (&EXPERIENCE, &self.experience),
            (&SORTING, &self.sort_by),
        ];
        let mut pairs = url.query_pairs_mut();
        pairs.append_pair("keywords", &self.keyword);
        if let Some(location) = &self.location {
            pairs.append_pair("location", location);
        }
        for (filter, words) in filters {
            if let Some(value) = filter.value(words)? {
                pairs.append_pair(filter.parameter, &value);
            }
        }
        pairs.append_pair("start", &start.to_string());
        drop(pairs);
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn every_filter_value_maps_to_its_query_parameter() {
        let base = Url::parse("https://www.linkedin.com").unwrap();
        let asked = |query: JobQuery| {
            let url = JobQuery { keyword: "rust".into(), ..query }.url(&base, 0).unwrap();
            url.query().unwrap().strip_prefix("keywords=rust").unwrap().strip_suffix("&start=0").unwrap().to_owned()
        };
        assert_eq!(asked(JobQuery::default()), "");
        for (word, code) in [("24hr", "r86400"), ("past_week", "r604800"), ("past_month", "r2592000")] {
            assert_eq!(asked(JobQuery { posted: words(&[word]), ..Default::default() }), format!("&f_TPR={code}"));
        }
        for (word, code) in [
            ("full_time", "F"),
            ("part_time", "P"),
            ("contract", "C"),
            ("temporary", "T"),
            ("internship", "I"),
            ("volunteer", "V"),
            ("other", "O"),
        ] {
            assert_eq!(asked(JobQuery { job_type: words(&[word]), ..Default::default() }), format!("&f_JT={code}"));
        }
        for (word, code) in [("on_site", 1), ("remote", 2), ("hybrid", 3)] {
            assert_eq!(asked(JobQuery { workplace: words(&[word]), ..Default::default() }), format!("&f_WT={code}"));
        }
        for (word, code) in [
            ("internship", 1),
            ("entry_level", 2),
            ("associate", 3),
            ("mid_senior", 4),
            ("director", 5),
            ("executive", 6),
        ] {
            assert_eq!(asked(JobQuery { experience: words(&[word]), ..Default::default() }), format!("&f_E={code}"));
        }
        for (word, code) in [("recent", "DD"), ("relevant", "R")] {
            assert_eq!(asked(JobQuery { sort_by: words(&[word]), ..Default::default() }), format!("&sortBy={code}"));
        }
    }

    #[test]
    fn a_query_is_encoded_into_one_address_without_parameter_injection() {
        let query = JobQuery {
            keyword: "c++ & f_E=6#x".into(),
            location: Some("Zürich, Switzerland".into()),
            posted: words(&["24hr"]),
            job_type: words(&["full_time", "contract"]),
            workplace: words(&["remote", "hybrid"]),
            experience: words(&["entry_level"]),
            sort_by: words(&["recent"]),
            ..Default::default()
        };
        let url = query.url(&Url::parse("http://127.0.0.1:8080/linkedin/").unwrap(), 30).unwrap();
        assert_eq!(
            url.as_str(),
            "http://127.0.0.1:8080/linkedin/jobs-guest/jobs/api/seeMoreJobPostings/search?keywords=c%2B%2B+%26+f_E%3D6%23x\
             &location=Z%C3%BCrich%2C+Switzerland&f_TPR=r86400&f_JT=F%2CC&f_WT=2%2C3&f_E=2&sortBy=DD&start=30"
        );
    }

    #[test]
    fn an_unknown_filter_value_is_rejected_with_the_accepted_values() {
        let query = JobQuery { workplace: words(&["remote", "moon"]), ..Default::default() };
        let failure = query.url(&Url::parse("https://h").unwrap(), 0).unwrap_err();
        assert_eq!(
            (failure.kind, &*failure.message),
            (ErrorKind::InvalidInput, "`moon` is not one of on_site, remote, hybrid")
        );
    }
}
