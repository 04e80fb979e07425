//! Queries to the Admin API, checked before they are sent: each report accepts different parameters.

use chrono::{DateTime, NaiveDate};
use std::collections::BTreeMap;

/// A report of Anthropic's Admin API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportKind {
    /// Usage in tokens.
    Usage,
    /// Costs.
    Cost,
    /// Usage of Claude Code.
    ClaudeCode,
}

/// A query, as the caller wrote it.
#[derive(Debug, Clone, Default)]
pub struct ReportRequest {
    /// Start: a time, or a day.
    pub starting_at: String,
    /// End.
    pub ending_at: Option<String>,
    /// Width of a bucket: `1m`, `1h` or `1d`.
    pub bucket_width: Option<String>,
    /// Dimensions to group by.
    pub group_by: Vec<String>,
    /// Filters: the accepted values, by dimension.
    pub filters: BTreeMap<String, Vec<String>>,
    /// Maximum number of buckets or records per page.
    pub limit: Option<u32>,
    /// Token of the page to read, from an earlier answer.
    pub page: Option<String>,
}

/// A query that the API accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportQuery {
    /// The report.
    pub action: ReportKind,
    /// Parameters of the request, as names and values, in their order.
    pub parameters: Vec<(String, String)>,
    /// Token of the first page to read; `None` for the beginning of the report.
    pub page: Option<String>,
    /// `true` if it requires the header for reports by speed.
    pub needs_speed_header: bool,
}

/// The reason why a report does not accept a query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReportRequest {
    /// A parameter has an invalid value.
    #[error("`{parameter}` is `{given}`, but `{action}` accepts {takes}")]
    Value {
        /// Name of the parameter.
        parameter: String,
        /// The given value.
        given: String,
        /// Name of the report.
        action: &'static str,
        /// The accepted values.
        takes: String,
    },
    /// The report has no such parameter.
    #[error("`{action}` has no `{parameter}`: it accepts {takes}")]
    Parameter {
        /// Name of the parameter.
        parameter: &'static str,
        /// Name of the report.
        action: &'static str,
        /// All accepted parameters.
        takes: &'static str,
    },
    /// The end is not after the start.
    #[error("`ending_at` is not after `starting_at`")]
    Backwards,
}

const USAGE_GROUPS: &[&str] = &[
    "account_id",
    "api_key_id",
    "context_window",
    "inference_geo",
    "model",
    "service_account_id",
    "service_tier",
    "speed",
    "workspace_id",
];
const COST_GROUPS: &[&str] = &["workspace_id", "description"];
/// Filters with their values; an empty list accepts any value.
const FILTERS: &[(&str, &[&str])] = &[
    ("models", &[]),
    ("workspace_ids", &[]),
    ("api_key_ids", &[]),
    ("account_ids", &[]),
    ("service_account_ids", &[]),
    ("service_tiers", &["batch", "flex", "flex_discount", "priority", "priority_on_demand", "standard"]),
    ("context_window", &["0-200k", "200k-1M"]),
    ("inference_geos", &[]),
    ("speeds", &["fast", "standard"]),
];

impl ReportKind {
    /// All reports, by name.
    pub const ALL: [(&str, Self); 3] =
        [("usage", Self::Usage), ("cost", Self::Cost), ("claude_code", Self::ClaudeCode)];

    /// Returns the name of the report.
    pub fn word(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Cost => "cost",
            Self::ClaudeCode => "claude_code",
        }
    }

    /// Returns the path of the report below the address of the API.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Usage => "v1/organizations/usage_report/messages",
            Self::Cost => "v1/organizations/cost_report",
            Self::ClaudeCode => "v1/organizations/usage_report/claude_code",
        }
    }

    fn accepted_parameters(self) -> &'static str {
        match self {
            Self::Usage => "`starting_at`, `ending_at`, `bucket_width`, `group_by`, `filters`, `limit`, `page`",
            Self::Cost => "`starting_at`, `ending_at`, `bucket_width` (1d), `group_by`, `limit`, `page`",
            Self::ClaudeCode => "`starting_at` (one day), `limit`, `page`",
        }
    }

    fn widths(self) -> &'static [&'static str] {
        match self {
            Self::Usage => &["1d", "1h", "1m"],
            Self::Cost => &["1d"],
            Self::ClaudeCode => &[],
        }
    }

    fn groups(self) -> &'static [&'static str] {
        match self {
            Self::Usage => USAGE_GROUPS,
            Self::Cost => COST_GROUPS,
            Self::ClaudeCode => &[],
        }
    }

    fn filters(self) -> &'static [(&'static str, &'static [&'static str])] {
        match self {
            Self::Usage => FILTERS,
            Self::Cost | Self::ClaudeCode => &[],
        }
    }

    /// Returns the maximum number of entries per page.
    fn most(self, width: &str) -> u32 {
        match (self, width) {
            (Self::ClaudeCode, _) => 1_000,
            (Self::Usage, "1h") => 168,
            (Self::Usage, "1m") => 1_440,
            _ => 31,
        }
    }

    /// Parses a time in a form that the report accepts. Returns it in the form of the API, and as a point in time.
    fn time(
        self,
        parameter: &str,
        given: &str,
    ) -> Result<(String, DateTime<chrono::FixedOffset>), InvalidReportRequest> {
        let midnight = |day: NaiveDate| day.and_hms_opt(0, 0, 0).map(|time| time.and_utc().fixed_offset());
        let day = NaiveDate::parse_from_str(given, "%Y-%m-%d").ok().filter(|_| given.len() == 10).and_then(midnight);
        let read = match (self, day) {
            (Self::ClaudeCode, Some(time)) => Some((given.to_owned(), time)),
            (Self::ClaudeCode, None) => None,
            (_, Some(time)) => Some((format!("{given}T00:00:00Z"), time)),
            (_, None) => DateTime::parse_from_rfc3339(given).ok().map(|time| (given.to_owned(), time)),
        };
        let takes = match self {
            Self::ClaudeCode => "a day (UTC), like `2026-01-31`",
            Self::Usage | Self::Cost => "a time, like `2026-01-31T00:00:00Z`, or a day (UTC), like `2026-01-31`",
        };
        read.ok_or_else(|| self.value(parameter, given, takes))
    }

    fn value(self, parameter: &str, given: &str, takes: &str) -> InvalidReportRequest {
        let (parameter, given, takes) = (parameter.to_owned(), given.to_owned(), takes.to_owned());
        InvalidReportRequest::Value { parameter, given, action: self.word(), takes }
    }

    fn no_parameter(self, parameter: &'static str) -> InvalidReportRequest {
        InvalidReportRequest::Parameter { parameter, action: self.word(), takes: self.accepted_parameters() }
    }

    /// Checks a query, and converts it to the parameters of the API.
    ///
    /// # Errors
    /// [`InvalidReportRequest`], with the accepted values.
    pub fn query(self, request: &ReportRequest) -> Result<ReportQuery, InvalidReportRequest> {
        let (starting_at, start) = self.time("starting_at", &request.starting_at)?;
        let mut parameters = vec![("starting_at".to_owned(), starting_at)];
        if let Some(ending_at) = &request.ending_at {
            if self == Self::ClaudeCode {
                return Err(self.no_parameter("ending_at"));
            }
            let (ending_at, end) = self.time("ending_at", ending_at)?;
            if end <= start {
                return Err(InvalidReportRequest::Backwards);
            }
            parameters.push(("ending_at".into(), ending_at));
        }
        if let Some(width) = &request.bucket_width {
            if self.widths().is_empty() {
                return Err(self.no_parameter("bucket_width"));
            }
            self.one_of("bucket_width", width, self.widths())?;
            parameters.push(("bucket_width".into(), width.clone()));
        }
        for group in &request.group_by {
            if self.groups().is_empty() {
                return Err(self.no_parameter("group_by"));
            }
            self.one_of("group_by", group, self.groups())?;
            parameters.push(("group_by[]".into(), group.clone()));
        }
        for (name, values) in &request.filters {
            let Some((_, words)) = self.filters().iter().find(|(known, _)| known == name) else {
                if self.filters().is_empty() {
                    return Err(self.no_parameter("filters"));
                }
                let known: Vec<&str> = self.filters().iter().map(|(name, _)| *name).collect();
                return Err(self.value("filters", name, &one_of(&known)));
            };
            for value in values {
                if !words.is_empty() {
                    self.one_of(name, value, words)?;
                }
                parameters.push((format!("{name}[]"), value.clone()));
            }
        }
        if let Some(limit) = request.limit {
            let most = self.most(request.bucket_width.as_deref().unwrap_or("1d"));
            if limit == 0 || limit > most {
                return Err(self.value("limit", &limit.to_string(), &format!("1 to {most} here")));
            }
            parameters.push(("limit".into(), limit.to_string()));
        }
        let needs_speed_header =
            request.group_by.iter().any(|group| group == "speed") || request.filters.contains_key("speeds");
        Ok(ReportQuery { action: self, parameters, page: request.page.clone(), needs_speed_header })
    }

    fn one_of(self, parameter: &str, given: &str, words: &[&str]) -> Result<(), InvalidReportRequest> {
        match words.contains(&given) {
            true => Ok(()),
            false => Err(self.value(parameter, given, &one_of(words))),
        }
    }
}

fn one_of(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(starting_at: &str) -> ReportRequest {
        ReportRequest { starting_at: starting_at.into(), ..ReportRequest::default() }
    }

    #[track_caller]
    fn check(action: ReportKind, wish: &ReportRequest, expected: &[(&str, &str)]) {
        let query = action.query(wish).unwrap();
        let parameters: Vec<(&str, &str)> =
            query.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(parameters, expected);
    }

    #[test]
    fn each_report_request_contains_its_supported_parameters() {
        let start = ("starting_at", "2026-01-01T00:00:00Z");
        check(ReportKind::Cost, &wish("2026-01-01"), &[start]);
        check(
            ReportKind::ClaudeCode,
            &ReportRequest { limit: Some(1_000), ..wish("2026-01-01") },
            &[("starting_at", "2026-01-01"), ("limit", "1000")],
        );
        let usage = ReportRequest {
            ending_at: Some("2026-01-02T00:00:00+01:00".into()),
            bucket_width: Some("1m".into()),
            group_by: vec!["model".into(), "workspace_id".into()],
            filters: BTreeMap::from([
                ("models".to_owned(), vec!["a".to_owned(), "b".into()]),
                ("speeds".to_owned(), vec!["fast".into()]),
            ]),
            limit: Some(1_440),
            page: Some("page_1".into()),
            ..wish("2026-01-01T00:00:00Z")
        };
        check(
            ReportKind::Usage,
            &usage,
            &[
                start,
                ("ending_at", "2026-01-02T00:00:00+01:00"),
                ("bucket_width", "1m"),
                ("group_by[]", "model"),
                ("group_by[]", "workspace_id"),
                ("models[]", "a"),
                ("models[]", "b"),
                ("speeds[]", "fast"),
                ("limit", "1440"),
            ],
        );
        let query = ReportKind::Usage.query(&usage).unwrap();
        assert_eq!((query.page.as_deref(), query.needs_speed_header), (Some("page_1"), true));
        assert!(!ReportKind::Usage.query(&wish("2026-01-01")).unwrap().needs_speed_header);
    }

    #[test]
    fn rejects_unsupported_report_parameters_and_lists_accepted_values() {
        use ReportKind::{ClaudeCode, Cost, Usage};
        let day = || wish("2026-01-01");
        let filtered = |name: &str, value: &str| ReportRequest {
            filters: BTreeMap::from([(name.to_owned(), vec![value.to_owned()])]),
            ..day()
        };
        let grouped = |group: &str| ReportRequest { group_by: vec![group.into()], ..day() };
        let wide = |width: &str| ReportRequest { bucket_width: Some(width.into()), ..day() };
        let limited = |limit| ReportRequest { limit: Some(limit), ..day() };
        for (action, wish, words) in [
            (Usage, wish("yesterday"), "`starting_at` is `yesterday`, but `usage` accepts a time"),
            (Usage, wish("2026-1-1"), "accepts a time"),
            (Usage, wish("2026-01-01T00:00:00"), "accepts a time"),
            (ClaudeCode, wish("2026-01-01T00:00:00Z"), "accepts a day"),
            (
                ClaudeCode,
                ReportRequest { ending_at: Some("2026-01-02".into()), ..day() },
                "`claude_code` has no `ending_at`: it accepts `starting_at`",
            ),
            (Cost, ReportRequest { ending_at: Some("2026-01-01".into()), ..day() }, "not after"),
            (Cost, wide("1h"), "`bucket_width` is `1h`, but `cost` accepts `1d`"),
            (ClaudeCode, wide("1d"), "has no `bucket_width`"),
            (Cost, grouped("model"), "`cost` accepts `workspace_id`, `description`"),
            (Usage, grouped("description"), "accepts `account_id`"),
            (ClaudeCode, grouped("model"), "has no `group_by`"),
            (Cost, filtered("models", "a"), "has no `filters`"),
            (Usage, filtered("model", "a"), "`filters` is `model`"),
            (Usage, filtered("service_tiers", "cheap"), "accepts `batch`"),
            (Usage, filtered("context_window", "1M"), "accepts `0-200k`, `200k-1M`"),
            (Usage, limited(0), "1 to 31"),
            (Usage, limited(32), "1 to 31"),
            (Usage, ReportRequest { limit: Some(169), ..wide("1h") }, "1 to 168"),
            (Cost, limited(32), "1 to 31"),
            (ClaudeCode, limited(1_001), "1 to 1000"),
        ] {
            let error = action.query(&wish).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
