//! Numbers of jobs, and the addresses that contain one.

use std::fmt;
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};
use url::{Host, Url};

/// The number of a job at LinkedIn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JobId(u64);

const WANTED: &str =
    "Use the address of a job, like https://www.linkedin.com/jobs/view/4000000001, or its number alone.";

impl JobId {
    /// Parses a number, or the address of a job at `linkedin.com` or a subdomain.
    ///
    /// # Errors
    /// `invalid_input` for anything else: another host, a user in the address, a page that does not belong to a job.
    pub fn parse(text: &str) -> Result<Self, ToolFailure> {
        let text = text.trim();
        if let Some(id) = number(text) {
            return Ok(id);
        }
        let wrong = |what: &str| ToolFailure::new(ErrorKind::InvalidInput, what).next(WANTED);
        let url = Url::parse(text).map_err(|_| wrong("it is neither the address of a job nor its number"))?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(wrong("the address of a job must begin with `https://`"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.port().is_some() {
            return Err(wrong("the address of a job must not have a user or a port"));
        }
        if !is_of_linkedin(&url) {
            return Err(wrong("it is not an address of LinkedIn"));
        }
        Self::of(&url).ok_or_else(|| wrong("it is an address of LinkedIn, but not of a job"))
    }

    /// Returns the job of this number; `None` for 0.
    pub fn of_number(number: u64) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// Returns the job of a page: the digits at the end of its path, or the job that a list shows next to itself.
    pub(super) fn of(url: &Url) -> Option<Self> {
        if !is_of_linkedin(url) {
            return None;
        }
        let mut segments = url.path_segments()?.filter(|segment| !segment.is_empty());
        match (segments.next()?, segments.next()) {
            ("jobs", Some("view")) => {
                let name = segments.next()?;
                number(name.rsplit('-').next().unwrap_or(name))
            }
            ("jobs-guest", Some("jobs")) if segments.next() == Some("api") && segments.next() == Some("jobPosting") => {
                number(segments.next()?)
            }
            ("jobs", _) => {
                let mut named = url.query_pairs().filter(|(name, _)| name == "currentJobId");
                named.next().and_then(|(_, value)| number(&value))
            }
            _ => None,
        }
    }

    /// Returns the number at the end of a name such as `urn:li:jobPosting:4000000001`.
    pub(super) fn of_urn(urn: &str) -> Option<Self> {
        number(urn.rsplit(':').next()?)
    }

    /// Returns the address of its page for people, without tracking parameters.
    pub fn page(self) -> String {
        format!("https://www.linkedin.com/jobs/view/{self}")
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn number(text: &str) -> Option<JobId> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten().and_then(JobId::of_number)
}

/// Returns `true` if the host is `linkedin.com` or a subdomain.
pub(super) fn is_of_linkedin(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "linkedin.com" || name.ends_with(".linkedin.com"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_job_address_yields_the_job_id() {
        for text in [
            "4000000001",
            " 4000000001\n",
            "https://www.linkedin.com/jobs/view/4000000001",
            "https://www.linkedin.com/jobs/view/4000000001/",
            "http://linkedin.com/jobs/view/4000000001",
            "https://de.linkedin.com/jobs/view/rust-engineer-at-acme-4000000001?position=1&pageNum=0&refId=abc",
            "HTTPS://DE.LinkedIn.COM/jobs/view/rust-engineer-4000000001/?trackingId=x#top",
            "https://www.linkedin.com/jobs-guest/jobs/api/jobPosting/4000000001",
            "https://www.linkedin.com/jobs/search/?currentJobId=4000000001&keywords=rust",
            "https://www.linkedin.com/jobs/collections/recommended/?currentJobId=4000000001",
        ] {
            let id = JobId::parse(text).unwrap_or_else(|failure| panic!("{text}: {}", failure.text()));
            assert_eq!(id.page(), "https://www.linkedin.com/jobs/view/4000000001", "{text}");
        }
    }

    #[test]
    fn rejects_texts_that_are_not_job_addresses() {
        for text in [
            "",
            "0",
            "-4",
            "4000000001x",
            "99999999999999999999999",
            "rust engineer",
            "http://127.0.0.1/jobs/view/4000000001",
            "http://[::1]/jobs/view/4000000001",
            "http://169.254.169.254/jobs/view/4000000001",
            "http://localhost/jobs/view/4000000001",
            "http://2130706433/jobs/view/4000000001",
            "https://linkedin.com.evil.example/jobs/view/4000000001",
            "https://evillinkedin.com/jobs/view/4000000001",
            "https://evil.example/www.linkedin.com/jobs/view/4000000001",
            "https://www.linkedin.com@evil.example/jobs/view/4000000001",
            "https://me:pass@www.linkedin.com/jobs/view/4000000001",
            "https://www.linkedin.com:8443/jobs/view/4000000001",
            "https://www.linkedin.com./jobs/view/4000000001",
            "https://www.linkedin.com\\@evil.example/jobs/view/4000000001/..",
            "ftp://www.linkedin.com/jobs/view/4000000001",
            "file:///jobs/view/4000000001",
            "data:text/html,4000000001",
            "https://www.linkedin.com/in/somebody-4000000001",
            "https://www.linkedin.com/jobs/view/",
            "https://www.linkedin.com/jobs/view/rust-engineer",
            "https://www.linkedin.com/jobs/search/?keywords=4000000001",
        ] {
            let failure = JobId::parse(text).map(|id| id.page()).unwrap_err();
            assert_eq!(failure.kind, ErrorKind::InvalidInput, "{text}");
        }
    }
}
