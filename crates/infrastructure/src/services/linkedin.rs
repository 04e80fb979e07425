//! The guest pages of LinkedIn: lists of jobs, and job descriptions (`docs/guide/web.md`).
//!
//! They are HTML for visitors without an account, not an API. They are requested slowly, one request at a time in the
//! whole process, and parsed in a child process.

mod guest_page_client;
mod job_id;
mod pace;
mod pages;
mod query;
mod reading;
mod search;

pub use crate::services::linkedin::{
    guest_page_client::GuestPageClient,
    job_id::JobId,
    pace::RateLimiter,
    pages::{Job, JobAttribute, JobCard, answer},
    query::{EXPERIENCE, JOB_TYPE, JobQuery, POSTED, SORTING, SearchFilterDefinition, WORKPLACE},
    reading::HELPER,
    search::FoundJobs,
};

use url::Url;

/// Settings for the guest pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedinSettings {
    /// Address of the pages.
    pub base_url: Url,
    /// User agent of requests; `None`: that of Toolstead.
    pub user_agent: Option<String>,
}

#[cfg(test)]
mod tests;
