//! The guest pages of LinkedIn: jobs that are offered, and one of them in full (`docs/web.md`).
//!
//! They are HTML for people who are not signed in, and no API. They are asked slowly, one request after another over all of
//! this process, and parsed in a child process.

mod asking;
mod job_id;
mod pace;
mod pages;
mod query;
mod reading;
mod search;

pub use crate::services::linkedin::{
    asking::GuestPages,
    job_id::JobId,
    pace::Pace,
    pages::{Card, Criterion, Job, answer},
    query::{EXPERIENCE, Filter, JOB_TYPE, JobQuery, POSTED, SORTING, WORKPLACE},
    reading::HELPER,
    search::FoundJobs,
};

use url::Url;

/// The guest pages, as the configuration says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedinSettings {
    /// Their address.
    pub base_url: Url,
    /// The name that requests bear; `None`: that of this program.
    pub user_agent: Option<String>,
}

#[cfg(test)]
mod tests;
